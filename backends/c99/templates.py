"""C expressions for one entry of each elementwise operation: one row an operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oco.backends.c99.expressions import Level, Text, call, comparison, conditional, infix, logical
from oco.compiler.ir.program import DType

Template = Callable[[Sequence[Text], DType], Text]
FLOAT, INT, BOOL = DType.FLOAT, DType.INT, DType.BOOL


def _infix(symbol: str, level: Level) -> Template:
    return lambda args, kind: infix(symbol, level, args)


def _compare(symbol: str) -> Template:
    return lambda args, kind: comparison(symbol, args)


def _function(name: str) -> Template:
    """Call of a function of libm, or of the library (`@name`)."""
    return lambda args, kind: call(name, args)


def _by_kind(of_float: str, of_int: str) -> Template:
    return lambda args, kind: call(of_float if kind is FLOAT else of_int, args)


def _bound(name: str, of_number: str, whole: str) -> Template:
    """Larger or smaller of two. Beside a literal number, which is not NaN, one comparison is enough."""
    each = _by_kind(name, whole)
    return lambda args, kind: call(of_number, args) if kind is FLOAT and args[1].is_number else each(args, kind)


def _negation(args: Sequence[Text], kind: DType) -> Text:
    inner = args[0].at(Level.UNARY)
    return Text(f"-({inner})" if inner.startswith("-") else f"-{inner}", Level.UNARY)


def _cast(to: str) -> Template:
    return lambda args, kind: Text(f"({to}){args[0].at(Level.UNARY)}", Level.UNARY)


def _not(args: Sequence[Text], kind: DType) -> Text:
    return Text(f"!{args[0].at(Level.UNARY)}", Level.UNARY)


def _isfinite(args: Sequence[Text], kind: DType) -> Text:
    return comparison("!=", [call("isfinite", args), Text("0")])


def _where(args: Sequence[Text], kind: DType) -> Text:
    """Choice between two values, both read: of `c ? a[i] : b[i]` in nested loops gcc 12 drops entries of b at -O3 -mavx2."""
    return conditional(args) if kind is BOOL else call("@where" if kind is FLOAT else "@where_int", args)


# `kind` is that of the first argument; for `where`, of the second.
TEMPLATES: dict[str, Template] = {
    "neg": _negation,
    "abs": _by_kind("fabs", "@abs_int"),
    "sqrt": _function("sqrt"),
    "exp": _function("@exp"),
    "log": _function("@log"),
    "log1p": _function("log1p"),
    "expm1": _function("expm1"),
    "sign": _by_kind("@sign", "@sign_int"),
    "floor": _function("floor"),
    "not": _not,
    "isfinite": _isfinite,
    "to_float": _cast("double"),
    "to_int": _cast("int64_t"),
    "add": _infix("+", Level.SUM),
    "sub": _infix("-", Level.SUM),
    "mul": _infix("*", Level.PRODUCT),
    "div": _infix("/", Level.PRODUCT),
    "pow": _function("pow"),
    "mod": _by_kind("@mod", "@mod_int"),
    "maximum": _bound("@max", "@at_least", "@max_int"),
    "minimum": _bound("@min", "@at_most", "@min_int"),
    "lt": _compare("<"),
    "le": _compare("<="),
    "eq": _compare("=="),
    "and": lambda args, kind: logical("&&", Level.AND, args),
    "or": lambda args, kind: logical("||", Level.OR, args),
    "where": _where,
}


def _joined(op: str, step: str, count: int) -> tuple[str, str]:
    """Function that joins values, halves with halves: none waits for all before it."""
    halves = [count >> k for k in range(1, count.bit_length())]
    turns = [f"    for (int i = 0; i < {n}; ++i) {{ {step.format('v[i]', f'v[i + {n}]')} }}" for n in halves]
    return f"{op}_of_{count}", "\n".join((f"double @{op}_of_{count}(double *v) {{", *turns, "    return v[0];", "}"))


def _extreme(name: str, sign: str, end: str) -> str:
    """Function that finds the largest or least entry; NaN is looked for apart, which vectorizes, so that the chain is of one operation."""
    return f"""double @{name}(const double *v, int n) {{
    double found = {end};
    int64_t wrong = 0;
    for (int i = 0; i < n; ++i) {{
        found = v[i] {sign} found ? v[i] : found;
    }}
    for (int i = 0; i < n; ++i) {{
        wrong |= v[i] != v[i] ? -1 : 0;
    }}
    return wrong ? NAN : found;
}}"""


HELPERS: dict[str, str] = {
    # The place of the first entry outside; the first loop has no way out in its middle, so that it vectorizes.
    "outside": """int @outside(const double *v, int n, double lower, double upper) {
    int64_t inside = -1; /* as wide as the numbers, and so are the masks of vectors */
    int i = 0;
    for (int k = 0; k < n; ++k) {
        inside &= (v[k] >= lower) & (v[k] <= upper) ? -1 : 0;
    }
    while (!inside && v[i] >= lower && v[i] <= upper) {
        ++i;
    }
    return inside ? n : i;
}""",
    "outside_each": """int @outside_each(const double *v, int n, const double *lower, const double *upper) {
    int64_t inside = -1;
    int i = 0;
    for (int k = 0; k < n; ++k) {
        inside &= (v[k] >= lower[k]) & (v[k] <= upper[k]) ? -1 : 0;
    }
    while (!inside && v[i] >= lower[i] && v[i] <= upper[i]) {
        ++i;
    }
    return inside ? n : i;
}""",
    "finite": """int @finite(const double *v, int n) {
    int64_t wrong = 0; /* negative once an exponent has all its bits */
    for (int k = 0; k < n; ++k) {
        uint64_t u;
        memcpy(&u, v + k, sizeof u);
        wrong |= (int64_t)((u & 0x7ff0000000000000u) + 0x0010000000000000u);
    }
    return wrong >= 0;
}""",
    "dot": """double @dot(const double *restrict a, const double *restrict b, int n) {
    double s[8] = {0}; /* eight sums at once: one alone would wait for each addition */
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        for (int k = 0; k < 8; ++k) {
            s[k] += a[i + k] * b[i + k];
        }
    }
    for (; i < n; ++i) {
        s[0] += a[i] * b[i];
    }
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}""",
    # Without rounding between, where the processor has such an operation; by name, since compilers would fuse otherwise in a fleet.
    "fma": """double @fma(double a, double b, double c) {
#if defined(__FMA__) || defined(FP_FAST_FMA)
    return fma(a, b, c);
#else
    return a * b + c;
#endif
}""",
    # Within one unit of the last place; without branches, so that loops of them vectorize, which libm's do not. The polynomials meet
    # their functions at Chebyshev's points: relative errors 3.4e-19 (exp) and 4.7e-18 (log).
    "exp": """double @exp(double x) {
    /* e^x = 2^k e^r with |r| <= log(2)/2: a polynomial, and 2^k in two halves for results below 2^-1022 */
    const double shifted = @fma(x, 0x1.71547652b82fep+0, 0x1.8p52), k = shifted - 0x1.8p52;
    const double r = @fma(-k, 0x1.cf79abc9e3b3ap-40, @fma(-k, 0x1.62e42fefap-1, x));
    double p = 0x1.1f72fc74cb69cp-29;
    p = @fma(p, r, 0x1.af4ddd87988f4p-26);
    p = @fma(p, r, 0x1.27e4db67b358ep-22);
    p = @fma(p, r, 0x1.71de023754ddep-19);
    p = @fma(p, r, 0x1.a01a01a6d780cp-16);
    p = @fma(p, r, 0x1.a01a01abe62e4p-13);
    p = @fma(p, r, 0x1.6c16c16c162d6p-10);
    p = @fma(p, r, 0x1.11111111100dfp-7);
    p = @fma(p, r, 0x1.5555555555556p-5);
    p = @fma(p, r, 0x1.5555555555557p-3);
    p = @fma(p, r, 0x1p-1);
    p = 1.0 + @fma(p * r, r, r);
    uint64_t u, v;
    memcpy(&u, &shifted, sizeof u); /* its last bits are those of k */
    u += 2046;
    v = u >> 1;
    u = (u - v) << 52;
    v <<= 52;
    double s, t;
    memcpy(&s, &u, sizeof s);
    memcpy(&t, &v, sizeof t);
    const double y = x < -746.0 ? 0.0 : p * s * t;
    return x > 710.0 ? INFINITY : y;
}""",
    "log_scaled": """double @log_scaled(double y, double shift) {
    /* log y - shift log 2 of a positive y that is no less than 2^-1022: y = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), and
       log(1 + f) by a polynomial in f / (2 + f) */
    uint64_t u, e;
    memcpy(&u, &y, sizeof u);
    e = (u - 0x3fe6a09e667f3bcdu + 0x3ff0000000000000u) >> 52;
    u -= (e - 1023) << 52;
    e |= 0x4330000000000000u;
    double m, k;
    memcpy(&m, &u, sizeof m);
    memcpy(&k, &e, sizeof k);
    k = k - (0x1p52 + 1023.0) - shift;
    const double f = m - 1.0, s = f / (2.0 + f), z = s * s, h = 0.5 * f * f;
    double q = 0x1.2b584c80de001p-3;
    q = @fma(q, z, 0x1.39fe603f8739ep-3);
    q = @fma(q, z, 0x1.7462b4ac51915p-3);
    q = @fma(q, z, 0x1.c71c62e57c0cfp-3);
    q = @fma(q, z, 0x1.2492492df14bfp-2);
    q = @fma(q, z, 0x1.99999999952e2p-2);
    q = @fma(q, z, 0x1.5555555555558p-1);
    return k * 0x1.62e42fefap-1 - ((h - @fma(s, @fma(q, z, h), k * 0x1.cf79abc9e3b3ap-40)) - f);
}""",
    "log": """double @log(double x) {
    const double y = x < 0x1p-1022 ? x * 0x1p54 : x, shift = x < 0x1p-1022 ? 54.0 : 0.0;
    const double found = @log_scaled(y, shift);
    return x > 0 ? (x <= DBL_MAX ? found : x) : x == 0 ? -INFINITY : x != x ? x : NAN;
}""",
    "mantissa": """double @mantissa(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    u = (u & 0xfffffffffffffu) | 0x3ff0000000000000u;
    memcpy(&x, &u, sizeof x);
    return x;
}""",
    # A rounding for each factor, as a sum of logarithms has for each term.
    "sum_of_logs": """double @sum_of_logs(const double *x, int n) {
    /* of 512 numbers at a time: the logarithm of the product of their mantissas in [1, 2), and log 2 times the sum of their exponents */
    double sum = 0;
    for (int first = 0; first < n; first += 512) {
        const int count = n - first < 512 ? n - first : 512;
        int64_t exponents = 0, outside = 0; /* negative: some number is not positive, not finite or below 2^-1022 */
        for (int i = 0; i < count; ++i) {
            uint64_t u;
            memcpy(&u, x + first + i, sizeof u);
            const int64_t e = (int64_t)(u >> 52);
            exponents += e;
            outside |= (e - 1) | (2046 - e);
        }
        if (outside < 0) {
            for (int i = 0; i < count; ++i) {
                sum += @log(x[first + i]);
            }
            continue;
        }
        double parts[8] = {1, 1, 1, 1, 1, 1, 1, 1};
        int i = 0;
        for (; i + 8 <= count; i += 8) {
            for (int k = 0; k < 8; ++k) {
                parts[k] *= @mantissa(x[first + i + k]);
            }
        }
        for (int k = 0; i + k < count; ++k) {
            parts[k] *= @mantissa(x[first + i + k]);
        }
        const double product = ((parts[0] * parts[1]) * (parts[2] * parts[3])) * ((parts[4] * parts[5]) * (parts[6] * parts[7]));
        sum += @log_scaled(product, 0.0) + (double)(exponents - 1023 * (int64_t)count) * 0x1.62e42fefa39efp-1;
    }
    return sum;
}""",
    "sum_of_logs_above": """double @sum_of_logs_above(const double *x, int n) {
    /* of numbers that are at least 1/8, 512 at a time: products of 256 of them cannot be too small, and tell whether they are too large */
    double sum = 0;
    for (int first = 0; first < n; first += 512) {
        const int count = n - first < 512 ? n - first : 512;
        double parts[8] = {1, 1, 1, 1, 1, 1, 1, 1};
        int i = 0;
        for (; i + 8 <= count; i += 8) {
            for (int k = 0; k < 8; ++k) {
                parts[k] *= x[first + i + k];
            }
        }
        for (int k = 0; i + k < count; ++k) {
            parts[k] *= x[first + i + k];
        }
        const double one = (parts[0] * parts[1]) * (parts[2] * parts[3]), other = (parts[4] * parts[5]) * (parts[6] * parts[7]);
        sum += one <= DBL_MAX && other <= DBL_MAX ? @log_scaled(one, 0.0) + @log_scaled(other, 0.0) : @sum_of_logs(x + first, count);
    }
    return sum;
}""",
    "ahead": """int @ahead(const double *row, int size, int asked) {
    /* asks for 32 numbers more of the next round's row, behind this one; without a branch, which would stand in a loop */
    const int more = asked < size ? asked : size;
#if defined(__GNUC__)
    for (int i = 0; i < 32; i += 8) {
        __builtin_prefetch((const void *)((uintptr_t)row + sizeof(double) * (uintptr_t)(size + more + i)));
    }
#else
    (void)row;
#endif
    return more + 32;
}""",
    "where": "double @where(int c, double a, double b) { return c ? a : b; }",
    "where_int": "int64_t @where_int(int c, int64_t a, int64_t b) { return c ? a : b; }",
    "max": "double @max(double a, double b) { return a >= b || a != a ? a : b; }",
    "min": "double @min(double a, double b) { return a <= b || a != a ? a : b; }",
    **{
        name: _extreme(name, sign, end)
        for name, sign, end in (("largest", ">", "-INFINITY"), ("least", "<", "INFINITY"))
    },
    "at_least": "double @at_least(double a, double b) { return b > a ? b : a; }",
    "at_most": "double @at_most(double a, double b) { return b < a ? b : a; }",
    **dict(
        _joined(op, step, count)
        for op, step in (("sum", "{0} += {1};"), ("max", "{0} = @max({0}, {1});"), ("min", "{0} = @min({0}, {1});"))
        for count in (32,)
    ),
    "max_int": "int64_t @max_int(int64_t a, int64_t b) { return a >= b ? a : b; }",
    "min_int": "int64_t @min_int(int64_t a, int64_t b) { return a <= b ? a : b; }",
    "abs_int": "int64_t @abs_int(int64_t a) { return a < 0 ? -a : a; }",
    "sign": "double @sign(double a) { return a > 0 ? 1.0 : a < 0 ? -1.0 : a == 0 ? 0.0 : a; }",
    "sign_int": "int64_t @sign_int(int64_t a) { return (a > 0) - (a < 0); }",
    "mod": """double @mod(double a, double b) {
    const double r = fmod(a, b);
    return r == 0 ? copysign(0.0, b) : (r < 0) != (b < 0) ? r + b : r;
}""",
    "mod_int": """int64_t @mod_int(int64_t a, int64_t b) {
    const int64_t r = b == 0 ? 0 : a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}""",
}
