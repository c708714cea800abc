"""NumPy expressions of the operations of the IR: a call of the function that is their meaning, or a row of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from oco.backends.python.expressions import (
    NUMPY_KINDS,
    Level,
    Text,
    call,
    comparison,
    infix,
    length_text,
    method,
    shape_text,
    subscript,
)
from oco.backends.python.uses import is_square
from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import DType, Equation, Type
from oco.dsl.primitives import PRIMITIVES, has_name, numpy_name

Template = Callable[[Sequence[Text], Equation], Text]
Statement = Callable[[str, Sequence[Text], Equation], list[str]]


def _made(e: Equation) -> Type:
    return e.outs[0].type


def _infix(symbol: str, level: Level) -> Template:
    return lambda args, e: infix(symbol, level, args, _made(e))


def _number(text: Text) -> Text:
    """Number of Python's, which counts twice as fast as NumPy's, of one that NumPy gives; arrays as they are."""
    return replace(call("float", [text], text.type), weak=True) if text.type == Type(DType.FLOAT) else text


def _matrix_product(args: Sequence[Text], e: Equation) -> Text:
    """Product `a.dot(b)`, which for small arrays takes half the time of `a @ b`."""
    return _number(method(args[0], "dot", args[1].code, _made(e)))


def _compare(symbol: str) -> Template:
    return lambda args, e: comparison(symbol, args, _made(e))


def _function(name: str, *, plain: bool = False) -> Template:
    """Call `np.name(args)`; `plain` functions convert integers to floats themselves."""

    def write(args: Sequence[Text], e: Equation) -> Text:
        if len(args) == 2:
            return call(name, [args[0].beside(args[1]), args[1].beside(args[0])], _made(e))
        shown = [a.plain if plain and a.whole else a.code for a in args]
        return call(name, shown, _made(e))

    return write


def _scalar(word: str, name: str) -> Template:
    """Call of a Python function for a number, of a NumPy function for an array."""
    general = _function(name, plain=True)

    def write(args: Sequence[Text], e: Equation) -> Text:
        return general(args, e) if _made(e).shape else replace(call(word, args, _made(e)), weak=True)

    return write


_array_sqrt = _function("np.sqrt", plain=True)


def _sqrt(args: Sequence[Text], e: Equation) -> Text:
    """Square root; NumPy gives NaN for negative numbers where Python raises."""
    if _made(e).shape:
        return _array_sqrt(args, e)
    return replace(call("math.sqrt" if args[0].nonnegative else "root", args, _made(e)), weak=True)


def _extreme(name: str, word: str, careful: str) -> Template:
    """Call of Python's `min` for integers, and beside a literal number: it gives its first argument where that is
    NaN.
    """
    general = _function(name)

    def write(args: Sequence[Text], e: Equation) -> Text:
        if _made(e).shape:
            return general(args, e)
        first, second = args[::-1] if args[0].is_literal and args[0].nonzero else args
        safe = second.is_literal and second.code != "np.nan"
        known = call(word if safe or _made(e).dtype is DType.INT else careful, [first, second], _made(e))
        return replace(known, weak=any(a.weak for a in args))

    return write


def _method(name: str) -> Template:
    def write(args: Sequence[Text], e: Equation) -> Text:
        axis = dict(e.attrs).get("axis")
        return _number(method(args[0], name, "" if axis is None else f"axis={axis}", _made(e)))

    return write


_general_sum = _method("sum")


def _sum(args: Sequence[Text], e: Equation) -> Text:
    """Sum of entries; of a mask the number of entries that hold."""
    (x,) = args
    is_mask = x.plain and not x.whole and not x.is_literal
    if not is_mask or _made(e).shape:
        return _general_sum(args, e)
    return replace(call("float", [f"np.count_nonzero({x.plain})"], _made(e)), weak=True)


def _negation(args: Sequence[Text], e: Equation) -> Text:
    return Text(f"-{args[0].at(Level.SIGN)}", Level.SIGN, _made(e), weak=args[0].weak)


def _product(args: Sequence[Text], e: Equation) -> Text:
    """Product `a * b`, and `x ** 2` for the square of an array."""
    if is_square(e):
        return Text(f"{args[0].at(Level.ATOM)} ** 2", Level.POWER, _made(e))
    return infix("*", Level.PRODUCT, args, _made(e))


def _quotient(symbol: str, function: str) -> Template:
    """Quotient `a / b`; NumPy gives an infinity where two Python floats would raise for a zero."""

    def write(args: Sequence[Text], e: Equation) -> Text:
        if args[0].weak and args[1].weak and not args[1].nonzero:
            return replace(call(function, args, _made(e)), weak=True)
        return infix(symbol, Level.PRODUCT, args, _made(e))

    return write


def _power(args: Sequence[Text], e: Equation) -> Text:
    """Power `x ** 3` for an array and a number; np.power elsewhere, because `**` rounds otherwise for scalars and some
    exponents.
    """
    base, exponent = args
    if not exponent.is_literal or not base.type.shape or exponent.code in ("-1.0", "0.0", "0.5", "1.0", "2.0"):
        return call("np.power", [base, exponent], _made(e))
    return Text(f"{base.at(Level.ATOM)} ** {(exponent.plain or exponent.code)}", Level.POWER, _made(e))


def _logical(word: str, sign: str, word_level: Level, sign_level: Level) -> Template:
    """Expression `a and b` for single truth values, `a & b` for arrays."""

    def write(args: Sequence[Text], e: Equation) -> Text:
        scalar = not _made(e).shape
        return infix(word if scalar else sign, word_level if scalar else sign_level, args, _made(e))

    return write


def _not(args: Sequence[Text], e: Equation) -> Text:
    if _made(e).shape:
        return Text(f"~{args[0].at(Level.SIGN)}", Level.SIGN, _made(e))
    return Text(f"not {args[0].at(Level.NOT)}", Level.NOT, _made(e))


def _to_float(args: Sequence[Text], e: Equation) -> Text:
    x = args[0]
    code = f"{x.at(Level.ATOM)}.astype(float)" if x.type.shape else f"float({x.code})"
    whole = x.type.dtype is DType.INT
    return Text(code, Level.ATOM, _made(e), x.code, x.level, whole=whole, weak=not x.type.shape)


def _to_int(args: Sequence[Text], e: Equation) -> Text:
    return method(args[0], "astype", "np.int64", _made(e)) if _made(e).shape else call("int", args, _made(e))


def _where(args: Sequence[Text], e: Equation) -> Text:
    condition, a, b = args
    if condition.type.shape or not a.type.shape == b.type.shape == _made(e).shape:
        return call("np.where", args, _made(e))
    code = f"{a.at(Level.OR)} if {condition.at(Level.OR)} else {b.at(Level.CONDITIONAL)}"
    return Text(code, Level.CONDITIONAL, _made(e), weak=a.weak or b.weak)


def _transpose(args: Sequence[Text], e: Equation) -> Text:
    return Text(f"{args[0].at(Level.ATOM)}.T", Level.ATOM, _made(e))


def _outer(args: Sequence[Text], e: Equation) -> Text:
    vectors = all(len(a.type.shape) == 1 for a in args)
    return call("np.outer" if vectors else "np.multiply.outer", args, _made(e))


def _reshape(args: Sequence[Text], e: Equation) -> Text:
    shape = e.attr("shape")
    if shape == args[0].type.shape:
        return args[0]
    if not shape:
        return subscript(args[0], ", ".join("0" for _ in args[0].type.shape), _made(e))
    if shape == (1,) and not args[0].type.shape:
        return call("np.array", [f"[{args[0].code}]"], _made(e))
    if args[0].type.shape:
        return method(args[0], "reshape", ", ".join(map(length_text, shape)), _made(e))
    return call("np.reshape", [args[0], shape_text(shape)], _made(e))


def _broadcast(args: Sequence[Text], e: Equation) -> Text:
    return call("np.full", [shape_text(e.attr("shape")), args[0]], _made(e))


def _concat(args: Sequence[Text], e: Equation) -> Text:
    options = [] if e.attr("axis") == 0 else [f"axis={e.attr('axis')}"]
    return call("np.concatenate", [f"[{', '.join(a.code for a in args)}]", *options], _made(e))


def _stack(args: Sequence[Text], e: Equation) -> Text:
    name = "np.stack" if args[0].type.shape else "np.array"
    return call(name, [f"[{', '.join(a.code for a in args)}]"], _made(e))


def _slice(args: Sequence[Text], e: Equation) -> Text:
    ranges = list(zip(e.attr("starts"), e.attr("stops"), args[0].type.shape))
    while len(ranges) > 1 and ranges[-1][:2] == (0, ranges[-1][2]):
        ranges.pop()
    shown = [f"{start or ''}:{'' if stop == n else stop}" for start, stop, n in ranges]
    return subscript(args[0], ", ".join(shown), _made(e))


def _gather(args: Sequence[Text], e: Equation) -> Text:
    """Entries `x[i]`; of one integer Python's own, which counts several times as fast as NumPy's."""
    if _made(e) == Type(DType.INT):
        return method(args[0], "item", ", ".join(a.code for a in args[1:]), _made(e))
    return subscript(args[0], ", ".join(a.code for a in args[1:]), _made(e))


def _full(args: Sequence[Text], e: Equation) -> Text:
    shape, value = shape_text(e.attr("shape")), args[0]
    if value.code in ("0.0", "1.0"):
        return call("np.zeros" if value.code == "0.0" else "np.ones", [shape], _made(e))
    kind = [] if _made(e).dtype is DType.FLOAT else [NUMPY_KINDS[_made(e).dtype]]
    return call("np.full", [shape, value, *kind], _made(e))


def _size(name: str) -> Template:
    return lambda args, e: call(name, [length_text(e.attr("n"))], _made(e))


def _argsort(args: Sequence[Text], e: Equation) -> Text:
    return call("np.argsort", [args[0], 'kind="stable"'], _made(e))


def _svd(args: Sequence[Text], e: Equation) -> Text:
    return call("np.linalg.svd", [args[0], "full_matrices=False"], _made(e))


def _entries(args: Sequence[Text], e: Equation) -> Text:
    """Entries `x.item()`, or `a, b = x.tolist()`: Python's own numbers."""
    (x,), made = args, _made(e)
    if len(e.outs) == 1:
        return replace(method(x, "item", "", made), weak=made.dtype is DType.FLOAT)
    flat = x if len(x.type.shape) == 1 else method(x, "ravel", "", x.type)
    return method(flat, "tolist", "", made)


def _meaning(op: str) -> Template:
    """Call of the function that is the meaning of an operation, with its attributes as keywords."""
    known = numpy_name(op)
    name = f"np.{known}" if known else PRIMITIVES[op].__name__
    plain = _function(name)

    def write(args: Sequence[Text], e: Equation) -> Text:
        options = [f"{o}={e.attr(o)!r}" for o in OPS[op].attrs]
        return call(name, [*args, *options], _made(e)) if options else plain(args, e)

    return write


_SPELLED: dict[str, Template] = {
    "neg": _negation,
    "abs": _scalar("abs", "np.abs"),
    "sqrt": _sqrt,
    "exp": _function("np.exp", plain=True),
    "log": _function("np.log", plain=True),
    "log1p": _function("np.log1p", plain=True),
    "expm1": _function("np.expm1", plain=True),
    "not": _not,
    "to_float": _to_float,
    "to_int": _to_int,
    "add": _infix("+", Level.SUM),
    "sub": _infix("-", Level.SUM),
    "mul": _product,
    "div": _quotient("/", "ratio"),
    "pow": _power,
    "mod": _quotient("%", "np.mod"),
    "maximum": _extreme("np.maximum", "max", "larger"),
    "minimum": _extreme("np.minimum", "min", "smaller"),
    "lt": _compare("<"),
    "le": _compare("<="),
    "eq": _compare("=="),
    "and": _logical("and", "&", Level.AND, Level.BIT_AND),
    "or": _logical("or", "|", Level.OR, Level.BIT_OR),
    "where": _where,
    "sum": _sum,
    "max": _method("max"),
    "min": _method("min"),
    "prod": _method("prod"),
    "any": _method("any"),
    "all": _method("all"),
    "argmax": _method("argmax"),
    "argmin": _method("argmin"),
    "matmul": _matrix_product,
    "outer": _outer,
    "transpose": _transpose,
    "reshape": _reshape,
    "broadcast": _broadcast,
    "concat": _concat,
    "stack": _stack,
    "slice": _slice,
    "gather": _gather,
    "entries": _entries,
    "full": _full,
    "iota": _size("np.arange"),
    "eye": _size("np.eye"),
    "argsort": _argsort,
    "weighted_quantile": lambda args, e: replace(call("weighted_quantile", args, _made(e)), weak=True),
    "svd": _svd,
}
"""Operations that are written in another way than by the function that is their meaning."""


def _put(out: str, args: Sequence[Text], e: Equation) -> list[str]:
    x, value, *indices = args
    # rows lie one after the other, as in a restored state: products round by how their factors lie in memory
    copy = [] if x.code == out else [f'{out} = np.array({x.code}, order="C")']
    return [*copy, f"{out}[{', '.join(i.code for i in indices)}] = {value.code}"]


def _scatter_add(out: str, args: Sequence[Text], e: Equation) -> list[str]:
    values, *indices = args
    place = indices[0].code if len(indices) == 1 else f"({', '.join(i.code for i in indices)})"
    return [f"{out} = np.zeros({shape_text(e.attr('shape'))})", f"np.add.at({out}, {place}, {values.code})"]


STATEMENTS: dict[str, Statement] = {"put": _put, "scatter_add": _scatter_add}

_BY_MEANING = [op for op in PRIMITIVES if op not in _SPELLED.keys() | STATEMENTS.keys() and has_name(op)]
TEMPLATES: dict[str, Template] = _SPELLED | {op: _meaning(op) for op in _BY_MEANING}

MEANINGS = tuple(PRIMITIVES[op] for op in _BY_MEANING if numpy_name(op) is None)
"""Functions of ours that modules call by name, and include."""
