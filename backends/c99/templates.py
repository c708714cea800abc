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
    "maximum": _by_kind("@max", "@max_int"),
    "minimum": _by_kind("@min", "@min_int"),
    "lt": _compare("<"),
    "le": _compare("<="),
    "eq": _compare("=="),
    "and": lambda args, kind: logical("&&", Level.AND, args),
    "or": lambda args, kind: logical("||", Level.OR, args),
    "where": _where,
}

HELPERS: dict[str, str] = {
    # The place of the first entry outside; the first loop has no way out in its middle, so that it vectorizes.
    "outside": """int @outside(const double *v, int n, double lower, double upper) {
    int inside = 1, i = 0;
    for (int k = 0; k < n; ++k) {
        inside &= (v[k] >= lower) & (v[k] <= upper);
    }
    while (!inside && v[i] >= lower && v[i] <= upper) {
        ++i;
    }
    return inside ? n : i;
}""",
    "outside_each": """int @outside_each(const double *v, int n, const double *lower, const double *upper) {
    int inside = 1, i = 0;
    for (int k = 0; k < n; ++k) {
        inside &= (v[k] >= lower[k]) & (v[k] <= upper[k]);
    }
    while (!inside && v[i] >= lower[i] && v[i] <= upper[i]) {
        ++i;
    }
    return inside ? n : i;
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
    # Within one unit of the last place; without branches, so that loops of them vectorize, which libm's do not.
    "exp": """double @exp(double x) {
    /* e^x = 2^k e^r with |r| <= log(2)/2: a Taylor polynomial, and the exponent's bits in two halves for results below 2^-1022 */
    const double below = x > 710.0 ? 710.0 : x;
    const double a = below < -746.0 ? -746.0 : below;
    const double k = (a * 0x1.71547652b82fep+0 + 0x1.8p52) - 0x1.8p52;
    const double r = (a - k * 0x1.62e42fefap-1) - k * 0x1.cf79abc9e3b3ap-40;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = 1.0 + (p * r * r + r);
    const double half = k * 0.5 + 0x1.8p52, rest = (k - (half - 0x1.8p52)) + 0x1.8p52;
    uint64_t u, v;
    memcpy(&u, &half, sizeof u);
    memcpy(&v, &rest, sizeof v);
    u = (u + 1023) << 52;
    v = (v + 1023) << 52;
    double s, t;
    memcpy(&s, &u, sizeof s);
    memcpy(&t, &v, sizeof t);
    return p * s * t;
}""",
    "log": """double @log(double x) {
    /* log x = k log 2 + log(1 + f) with 1 + f between sqrt(1/2) and sqrt(2); the latter by its series in f / (2 + f) */
    const double y = x < 0x1p-1022 ? x * 0x1p54 : x, shift = x < 0x1p-1022 ? 54.0 : 0.0;
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
    double q = 2.0 / 21.0;
    q = q * z + 2.0 / 19.0;
    q = q * z + 2.0 / 17.0;
    q = q * z + 2.0 / 15.0;
    q = q * z + 2.0 / 13.0;
    q = q * z + 2.0 / 11.0;
    q = q * z + 2.0 / 9.0;
    q = q * z + 2.0 / 7.0;
    q = q * z + 2.0 / 5.0;
    q = q * z + 2.0 / 3.0;
    const double found = k * 0x1.62e42fefap-1 - ((h - (s * (h + q * z) + k * 0x1.cf79abc9e3b3ap-40)) - f);
    return x > 0 ? (x <= DBL_MAX ? found : x) : x == 0 ? -INFINITY : x != x ? x : NAN;
}""",
    "where": "double @where(int c, double a, double b) { return c ? a : b; }",
    "where_int": "int64_t @where_int(int c, int64_t a, int64_t b) { return c ? a : b; }",
    "max": "double @max(double a, double b) { return a >= b || a != a ? a : b; }",
    "min": "double @min(double a, double b) { return a <= b || a != a ? a : b; }",
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
