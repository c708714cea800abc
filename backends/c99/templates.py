"""How one entry of each elementwise operation is written in C: one row an operation."""

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
    """A function of libm, or a helper (`@name`) that the module brings along."""
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


# `kind` is that of the first argument; for `where`, of the second. Helpers are written with a leading @.
TEMPLATES: dict[str, Template] = {
    "neg": _negation,
    "abs": _by_kind("fabs", "@abs_int"),
    "sqrt": _function("sqrt"),
    "exp": _function("exp"),
    "log": _function("log"),
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
    "where": lambda args, kind: conditional(args),
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
