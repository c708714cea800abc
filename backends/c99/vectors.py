"""Values of a block of learners as vectors: GNU C's vector types, which gcc and clang (hence zig) compile for any
machine.

An array whose last axis has the length LANE is an array of vectors without that axis. Truth values are masks, all bits
zero or one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oco.backends.c99.expressions import C_TYPES, Level, Text
from oco.compiler.ir.lanes import LANE
from oco.compiler.ir.program import DType, Type
from oco.dsl.diagnostics import InternalError

WIDTH = 8
"""Learners in a vector."""
FLOAT, INT, BOOL = DType.FLOAT, DType.INT, DType.BOOL
TYPES = {FLOAT: "@vector", INT: "@whole", BOOL: "@whole"}


def c_type(made: Type) -> str:
    """C type of an entry."""
    return (TYPES if is_vector(made) else C_TYPES)[made.dtype]


def zero(made: Type) -> str:
    """Entry that is zero."""
    return REDUCTIONS["sum"][0 if made.dtype is FLOAT else 1][0] if is_vector(made) else "0"


def is_vector(made: Type) -> bool:
    """True where an entry is a vector over the learners of a block."""
    return made.shape[-1:] == (LANE,)


def without_lanes(shape: Sequence[int]) -> tuple[int, ...]:
    """Axes in memory."""
    return tuple(shape[:-1] if tuple(shape[-1:]) == (LANE,) else shape)


def splat(text: Text, kind: DType) -> Text:
    """Vector with one number in all lanes."""
    if kind is BOOL:
        return Text(f"@splat_whole(-(int64_t){text.at(Level.UNARY)})")
    return Text(f"@splat({text.code})" if kind is FLOAT else f"@splat_whole({text.code})")


Operand = tuple[Text, Type]
Template = Callable[[Sequence[Operand]], str]


def _wide(x: Operand) -> str:
    text, made = x
    return (text if is_vector(made) else splat(text, made.dtype)).at(Level.UNARY)


def _beside(x: Operand) -> str:
    """Operand beside a vector: a number is copied to all lanes, a truth value becomes a mask."""
    text, made = x
    return _wide(x) if made.dtype is BOOL else text.at(Level.UNARY)


def _infix(symbol: str) -> Template:
    return lambda args: f"({_beside(args[0])} {symbol} {_beside(args[1])})"


def _compare(symbol: str) -> Template:
    return lambda args: f"((@whole)({_wide(args[0])} {symbol} {_wide(args[1])}))"


def _eq(args: Sequence[Operand]) -> str:
    if args[0][1].dtype is BOOL:
        return f"(~({_wide(args[0])} ^ {_wide(args[1])}))"
    return _compare("==")(args)


def _each(name: str, whole: str = "") -> Template:
    """Call of a function of this file, another for integers."""
    return lambda args: f"{whole if whole and args[-1][1].dtype is not FLOAT else name}({', '.join(map(_wide, args))})"


def _bound(name: str, of_number: str, whole: str) -> Template:
    """Larger or smaller of two. Beside a literal number, which is not NaN, one comparison is enough."""
    each = _each(name, whole)
    return lambda args: _each(of_number)(args) if args[1][1].dtype is FLOAT and args[1][0].is_number else each(args)


def _where(args: Sequence[Operand]) -> str:
    (condition, made), a, b = args
    if not is_vector(made):
        return f"({condition.at(Level.OR)} ? {_wide(a)} : {_wide(b)})"
    return f"{'@choose' if a[1].dtype is FLOAT else '@choose_whole'}({condition.code}, {_wide(a)}, {_wide(b)})"


def _to_float(args: Sequence[Operand]) -> str:
    ((text, made),) = args
    if made.dtype is BOOL:
        return f"@choose({text.code}, @splat(1.0), @splat(0.0))"
    return text.code if made.dtype is FLOAT else f"__builtin_convertvector({text.code}, @vector)"


def _to_int(args: Sequence[Operand]) -> str:
    ((text, made),) = args
    if made.dtype is BOOL:
        return f"(-{text.at(Level.UNARY)})"
    return text.code if made.dtype is INT else f"__builtin_convertvector({text.code}, @whole)"


def lane_by_lane(template: Callable[[Sequence[Text], DType], Text], args: Sequence[Operand], made: DType) -> str:
    """Operation without a template over vectors, by its template over numbers in each lane."""
    names = {
        k: f"own_{k}_{len(text.code)}" for k, (text, given) in enumerate(args) if is_vector(given)
    }  # longer than those within
    declared = "".join(f"{TYPES[args[k][1].dtype]} {name} = {args[k][0].code}; " for k, name in names.items())

    def number(k: int, lane: int) -> Text:
        text, given = args[k]
        if k not in names:
            return text
        return Text(f"({names[k]}[{lane}] != 0)" if given.dtype is BOOL else f"{names[k]}[{lane}]")

    def entry(lane: int) -> str:
        code = template([number(k, lane) for k in range(len(args))], args[-1][1].dtype).code
        return f"-({code})" if made is BOOL else code

    return f"(__extension__ ({{ {declared}({TYPES[made]}){{{', '.join(map(entry, range(WIDTH)))}}}; }}))"


TEMPLATES: dict[str, Template] = {
    "neg": lambda args: f"(-{_wide(args[0])})",
    "not": lambda args: f"(~{_wide(args[0])})",
    "isfinite": lambda args: f"((@whole)({_wide(args[0])} - {_wide(args[0])} == @splat(0.0)))",
    "abs": _each("@v_abs", "@v_abs_whole"),
    "sign": _each("@v_sign", "@v_sign_whole"),
    **{name: _each(f"@v_{name}") for name in ("sqrt", "exp", "log", "log1p", "expm1", "floor", "pow")},
    "mod": _each("@v_mod", "@v_mod_whole"),
    "to_float": _to_float,
    "to_int": _to_int,
    "add": _infix("+"),
    "sub": _infix("-"),
    "mul": _infix("*"),
    "div": _infix("/"),
    "maximum": _bound("@v_max", "@v_at_least", "@v_max_whole"),
    "minimum": _bound("@v_min", "@v_at_most", "@v_min_whole"),
    "lt": _compare("<"),
    "le": _compare("<="),
    "eq": _eq,
    "and": _infix("&"),
    "or": _infix("|"),
    "where": _where,
}
"""Elementwise operations that are quicker than lane by lane."""

# Running values over vectors: where they begin, and how an entry {1} joins {0}; then those of integers and masks.
REDUCTIONS: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "sum": (("@splat(0.0)", "{0} += {1};"), ("@splat_whole(0)", "{0} += {1};")),
    "prod": (("@splat(1.0)", "{0} *= {1};"), ("@splat_whole(1)", "{0} *= {1};")),
    "max": (
        ("@splat(-INFINITY)", "{0} = @v_max({0}, {1});"),
        ("@splat_whole(INT64_MIN)", "{0} = @v_max_whole({0}, {1});"),
    ),
    "min": (
        ("@splat(INFINITY)", "{0} = @v_min({0}, {1});"),
        ("@splat_whole(INT64_MAX)", "{0} = @v_min_whole({0}, {1});"),
    ),
    "any": (("", ""), ("@splat_whole(0)", "{0} |= {1};")),
    "all": (("", ""), ("@splat_whole(-1)", "{0} &= {1};")),
}
OVER_LANES = {"any": ("false", "{0} |= @some({1});"), "all": ("true", "{0} &= !@some(~{1});")}


def reduction(op: str, made: Type, over_lanes: bool) -> tuple[str, str]:
    """Start of a running value, and the step that joins an entry to it."""
    if over_lanes:
        if op not in OVER_LANES:
            raise InternalError(f"{op} over the learners of a block")
        return OVER_LANES[op]
    return REDUCTIONS[op][0 if made.dtype is FLOAT else 1]


def _lanewise(name: str, expression: str, kind: str, second: bool = False) -> str:
    """Definition of a function lane by lane; `expression` in a and b."""
    parameters = f"@{kind} x, @{kind} y" if second else f"@{kind} x"
    inner = "double" if kind == "vector" else "int64_t"
    more = f", b = y[l]" if second else ""  # noqa: F541
    return (
        f"@{kind} @{name}({parameters}) {{\n    for (int l = 0; l < {WIDTH}; ++l) {{\n"
        f"        const {inner} a = x[l]{more};\n        x[l] = {expression};\n    }}\n    return x;\n}}"
    )


def _columns(name: str, kind: str, entry: str) -> str:
    """Definition of a function that puts rows, a learner each, side by side; the last of `count` rows fills the lanes
    without a learner.
    """
    entries = ", ".join(f"row[{lane}][i]" for lane in range(WIDTH))
    return f"""void @{name}(const {entry} *rows, int n, int count, @{kind} *to) {{
    const {entry} *row[{WIDTH}];
    for (int l = 0; l < {WIDTH}; ++l) {{
        row[l] = rows + (l < count ? l : count - 1) * n;
    }}
    for (int i = 0; i < n; ++i) {{
        to[i] = (@{kind}){{{entries}}};
    }}
}}"""


def _picked() -> str:
    """Definition of a function that puts picked rows side by side; lanes of one row or two get it by copies of its entries."""
    entries = ", ".join(f"row[{lane}][i]" for lane in range(WIDTH))
    return f"""void @picked(const double *rows, int stride, const int64_t *place, int n, int count, @vector *to) {{
    const double *row[{WIDTH}], *other = rows + place[0] * stride;
    for (int l = 0; l < {WIDTH}; ++l) {{
        row[l] = rows + place[l < count ? l : count - 1] * stride;
        other = row[l] != row[0] ? row[l] : other;
    }}
    @whole second = {{0}};
    bool few = true;
    for (int l = 0; l < {WIDTH}; ++l) {{
        second[l] = -(int64_t)(row[l] == other);
        few &= row[l] == other || row[l] == row[0];
    }}
    if (few) {{
        for (int i = 0; i < n; ++i) {{
            to[i] = @choose(second, @splat(other[i]), @splat(row[0][i]));
        }}
        return;
    }}
    for (int i = 0; i < n; ++i) {{
        to[i] = (@vector){{{entries}}};
    }}
}}"""


_SIZE = WIDTH * 8
DECLARED = {
    "vector": f"typedef double @vector __attribute__((vector_size({_SIZE}), aligned(8)));",
    "whole": f"typedef int64_t @whole __attribute__((vector_size({_SIZE}), aligned(8)));",
}
"""Types of vectors."""
HELPERS: dict[str, str] = {
    "splat": "@vector @splat(double a) { return a - (@vector){0}; }",
    "splat_whole": "@whole @splat_whole(int64_t a) { return a - (@whole){0}; }",
    "choose": "@vector @choose(@whole m, @vector a, @vector b) { return (@vector)((m & (@whole)a) | (~m & (@whole)b)); }",
    "choose_whole": "@whole @choose_whole(@whole m, @whole a, @whole b) { return (m & a) | (~m & b); }",
    "columns": _columns("columns", "vector", "double"),
    "columns_whole": _columns("columns_whole", "whole", "int64_t"),
    "picked": _picked(),
    "some": f"""bool @some(@whole m) {{
    int64_t any = 0;
    for (int l = 0; l < {WIDTH}; ++l) {{
        any |= m[l];
    }}
    return any != 0;
}}""",
    "v_max": "@vector @v_max(@vector a, @vector b) { return @choose((@whole)(a >= b) | (@whole)(a != a), a, b); }",
    "v_min": "@vector @v_min(@vector a, @vector b) { return @choose((@whole)(a <= b) | (@whole)(a != a), a, b); }",
    "v_at_least": "@vector @v_at_least(@vector a, @vector b) { return @choose((@whole)(a < b), b, a); }",
    "v_at_most": "@vector @v_at_most(@vector a, @vector b) { return @choose((@whole)(a > b), b, a); }",
    "v_max_whole": "@whole @v_max_whole(@whole a, @whole b) { return @choose_whole((@whole)(a >= b), a, b); }",
    "v_min_whole": "@whole @v_min_whole(@whole a, @whole b) { return @choose_whole((@whole)(a <= b), a, b); }",
    "v_abs": "@vector @v_abs(@vector a) { return (@vector)((@whole)a & INT64_MAX); }",
    "v_abs_whole": "@whole @v_abs_whole(@whole a) { return @v_max_whole(a, -a); }",
    "v_sign": _lanewise("v_sign", "a > 0 ? 1.0 : a < 0 ? -1.0 : a == 0 ? 0.0 : a", "vector"),
    "v_sign_whole": _lanewise("v_sign_whole", "(a > 0) - (a < 0)", "whole"),
    **{f"v_{f}": _lanewise(f"v_{f}", f"{f}(a)", "vector") for f in ("sqrt", "log1p", "expm1", "floor")},
    **{f"v_{f}": _lanewise(f"v_{f}", f"@{f}(a)", "vector") for f in ("exp", "log")},
    "v_pow": _lanewise("v_pow", "pow(a, b)", "vector", second=True),
    "v_mod": _lanewise("v_mod", "@mod(a, b)", "vector", second=True),
    "v_mod_whole": _lanewise("v_mod_whole", "@mod_int(a, b)", "whole", second=True),
}
