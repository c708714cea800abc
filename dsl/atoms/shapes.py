"""Shape rules: the shape of a call from the shapes of its arguments, or an error (OCO3xx) in the user's words."""

from __future__ import annotations

from collections.abc import Callable

from oco.dsl.atoms.expression_names import describe, with_shape
from oco.dsl.diagnostics import fail
from oco.dsl.dims import Dim, Shape, SymbolicDim, add, broadcast, multiply, show, symbol
from oco.dsl.expressions import Call, Constant, Expr, Kind, Name

ShapeRule = Callable[[Call], Shape]


def as_dim(expr: Expr, role: str) -> Dim:
    """Dimension from an integer, an integer param, or sums and products of them."""
    if expr.shape == () and isinstance(expr, Constant) and expr.integer:
        return int(expr.value.array)
    if expr.shape == () and isinstance(expr, Name) and expr.kind is Kind.PARAM:
        return symbol(expr.name)
    if isinstance(expr, Call) and expr.shape == ():
        dims = [as_dim(a, role) for a in expr.args]
        match expr.atom:
            case "add":
                return add(*dims)
            case "sub":
                return add(dims[0], multiply(-1, dims[1]))
            case "mul":
                return multiply(*dims)
            case "minus":
                return multiply(-1, dims[0])
    message = f"has shape {show(expr.shape)}" if expr.shape else "is not"
    raise fail(
        "OCO307",
        f"{role} must be an integer fixed before the first round; {describe(expr)} {message}",
        expr.span,
        "use an integer, or a param that is one",
    )


def size(expr: Expr, role: str) -> Dim:
    """Dimension, checked to be at least 1 where it is known."""
    dim = as_dim(expr, role)
    if not isinstance(dim, SymbolicDim) and dim < 1:
        raise fail("OCO308", f"{role} must be at least 1, here it is {dim}", expr.span)
    return dim


def entrywise(call: Call) -> Shape:
    """Common shape of all arguments by NumPy's broadcasting."""
    shape = broadcast(*(a.shape for a in call.args))
    if shape is not None:
        return shape
    sides = ("the left side", "the right side") if len(call.args) == 2 else ("an argument",) * len(call.args)
    message = [with_shape(a, side) for a, side in zip(call.args, sides)]
    stated = ", ".join(message[:-1]) + f" and {message[-1]}"
    raise fail("OCO301", f"these shapes do not fit entry by entry: {stated}", call.span, _entrywise_hint(call))


def _entrywise_hint(call: Call) -> str:
    if call.atom == "mul" and _inner(call.args[0].shape, call.args[1].shape):
        return f"for the matrix product write {describe(call.args[0], 'left')} @ {describe(call.args[1], 'right')}"
    if any(a.shape[::-1] == b.shape for a in call.args for b in call.args if a is not b and len(a.shape) == 2):
        return "one is the transpose of the other: write .T after it"
    return "shapes fit when they are equal from the last axis on, or one of them is 1 there"


def _inner(left: Shape, right: Shape) -> bool:
    return bool(left) and bool(right) and left[-1] == right[0 if len(right) == 1 else -2]


def product(call: Call) -> Shape:
    """Shape of `a @ b` of vectors and matrices: the last axis of `a` meets the first of `b`."""
    left, right = call.args
    for side, word in ((left, "left"), (right, "right")):
        if len(side.shape) not in (1, 2):
            raise fail(
                "OCO302",
                f"@ takes vectors and matrices; {with_shape(side, f'the {word} side')}",
                side.span,
                "to multiply by a number write *" if side.shape == () else "",
            )
    if not _inner(left.shape, right.shape):
        met = f"{left.shape[-1]} columns" if len(left.shape) == 2 else f"{left.shape[-1]} entries"
        rows = f"{right.shape[0]} rows" if len(right.shape) == 2 else f"{right.shape[0]} entries"
        raise fail(
            "OCO302",
            f"{with_shape(left, 'the left side')} and {with_shape(right, 'the right side')}: "
            f"the left side's {met} do not meet the right side's {rows}",
            call.span,
            _product_hint(left, right),
        )
    return left.shape[:-1] + right.shape[1:]


def _product_hint(left: Expr, right: Expr) -> str:
    if len(left.shape) == 2 and _inner(left.shape[::-1], right.shape):
        return f"the transpose fits: {_bare(left)}.T"
    if len(right.shape) == 2 and _inner(left.shape, right.shape[::-1]):
        return f"the transpose fits: {_bare(right)}.T"
    if len(left.shape) == len(right.shape) == 1:
        return "a product of two vectors takes as many entries of one as of the other: change the length of one of them"
    if _inner(right.shape, left.shape):
        return f"exchanged they fit: {_bare(right)} @ {_bare(left)}"
    return f"the two lengths must be equal: change the shape of {_bare(left)} or of {_bare(right)}"


def _bare(expr: Expr) -> str:
    """Name of an expression, or its text in brackets where it has none."""
    return expr.name if isinstance(expr, Name) else "(...)"


def transposed(call: Call) -> Shape:
    """Shape of the transpose. Raises OCO306 for more than two axes."""
    (base,) = call.args
    if len(base.shape) > 2:
        raise fail("OCO306", f".T takes a matrix; {with_shape(base, 'its argument')}", call.span)
    return base.shape[::-1]


def reduced(call: Call) -> Shape:
    """Shape of a reduction: a scalar, or the other axes."""
    (base,) = call.args
    axis = call.option("axis")
    return () if axis is None else base.shape[: int(axis)] + base.shape[int(axis) + 1 :]


def of_rank(*ranks: int, result: Callable[[Shape], Shape] = lambda shape: ()) -> ShapeRule:
    """Rule that the single argument has one of these numbers of axes."""
    wanted = " or ".join({0: "a number", 1: "a vector", 2: "a matrix"}[rank] for rank in ranks)

    def rule(call: Call) -> Shape:
        (base,) = call.args
        if len(base.shape) not in ranks:
            raise fail("OCO306", f"{call.atom} takes {wanted}; {with_shape(base, 'its argument')}", base.span)
        return result(base.shape)

    return rule


def square_matrix(call: Call, of: Expr) -> Dim:
    """Order of a square matrix. Raises OCO306 for other shapes."""
    if len(of.shape) != 2 or of.shape[0] != of.shape[1]:
        raise fail("OCO306", f"{call.atom} takes a square matrix; {with_shape(of, 'its argument')}", of.span)
    return of.shape[0]


def trace(call: Call) -> Shape:
    """Shape () of the trace of a square matrix."""
    square_matrix(call, call.args[0])
    return ()


def diagonal(call: Call) -> Shape:
    """Shape of `diag`: a matrix for a vector, a vector for a square matrix."""
    (base,) = call.args
    return base.shape * 2 if len(base.shape) == 1 else (square_matrix(call, base),)


def vectors(call: Call) -> tuple[Dim, Dim]:
    """Lengths of two vectors. Raises OCO306 for other shapes."""
    for arg in call.args:
        if len(arg.shape) != 1:
            raise fail("OCO306", f"{call.atom} takes two vectors; {with_shape(arg, 'its argument')}", arg.span)
    return call.args[0].shape[0], call.args[1].shape[0]


def dot(call: Call) -> Shape:
    """Shape () of an inner product. Raises OCO302 where the lengths differ."""
    left, right = vectors(call)
    if left != right:
        message = " and ".join(with_shape(a) for a in call.args)
        raise fail(
            "OCO302", f"dot takes two vectors of one length; {message}", call.span, "change the length of one of them"
        )
    return ()


def quadratic(call: Call) -> Shape:
    """Shape () of `quad_form(x, P)`: x of shape [n], P of shape [n, n]."""
    x, matrix = call.args
    if len(x.shape) != 1:
        raise fail("OCO306", f"quad_form takes a vector first; {with_shape(x, 'its argument')}", x.span)
    if square_matrix(call, matrix) != x.shape[0]:
        raise fail(
            "OCO302",
            f"{with_shape(x)}, but {with_shape(matrix)}: their lengths differ",
            call.span,
            f"{_bare(matrix)} has a row and a column for each entry of {_bare(x)}",
        )
    return ()


def filled(call: Call) -> Shape:
    """Shape of `ones(3)`, `zeros(m, n)`: the arguments themselves."""
    return tuple(size(a, f"a length in {call.atom}") for a in call.args)


def identity(call: Call) -> Shape:
    """Shape of `eye(n)`."""
    return (size(call.args[0], "the size of eye"),) * 2


def repeated(call: Call) -> Shape:
    """Shape of `repeat(v, k)`: each entry of v, k times."""
    base, count = call.args
    if len(base.shape) > 1:
        raise fail("OCO306", f"repeat takes a number or a vector; {with_shape(base, 'its argument')}", base.span)
    return (multiply(base.shape[0] if base.shape else 1, size(count, "the number of repeats")),)


def remainder(call: Call) -> Shape:
    """Shape of `a % b`. Raises OCO326 where an argument is not declared to be whole."""
    for arg in call.args:
        if not arg.integer:
            message = f"a remainder is one of integers; {describe(arg)} is not declared to be whole"
            raise fail("OCO326", message, arg.span, "declare it with integers: `in 0..k-1`; a share is 0.05, not 5%")
    return entrywise(call)


def whole_range(call: Call) -> Shape:
    """Shape of `a..b`, both ends included."""
    first, last = (as_dim(a, "an end of ..") for a in call.args)
    length = add(add(last, multiply(-1, first)), 1)
    if isinstance(length, int) and length < 1:
        raise fail("OCO308", f"{first}..{last} is empty: the second end is below the first", call.span)
    return (length,)
