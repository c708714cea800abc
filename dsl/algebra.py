"""Expressions for derivatives: constructors that simplify lightly, so that emitted code reads as a person would write
it.

A cotangent may be smaller than its variable where its entries are equal: 2 represents an array of twos. `collapse` and
`broadcast` bring it to a shape. The functions preserve values, not rounding: constants are multiplied out.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from oco.dsl import build
from oco.dsl.atoms import form_of, forms, is_entrywise, regularity_of
from oco.dsl.atoms.base import Regularity
from oco.dsl.diagnostics import InternalError
from oco.dsl.dims import Shape
from oco.dsl.dims import broadcast as broadcast_shapes
from oco.dsl.expressions import Call, Constant, Expr, constant

call, index, array = build.call, build.index, build.array

DEPTH = 8
"""Calls through which a slope is looked through for the value whose slope it is."""


def number(value: float) -> Constant:
    """Constant with a float value."""
    return constant(float(value))


def value_of(expr: Expr) -> float | None:
    """Value of a constant all of whose entries are equal."""
    if isinstance(form := form_of(expr), forms.Uniform):
        return form.value
    if not isinstance(expr, Constant) or expr.value.array.size == 0:
        return None
    first = expr.value.array.flat[0]
    return float(first) if expr.shape == () or bool(np.all(expr.value.array == first)) else None


def _args(expr: Expr) -> tuple[Expr, ...]:
    if not isinstance(expr, Call):
        raise InternalError("arguments of what is not a call")
    return expr.args


def _stretched(shape: Shape, *others: Shape) -> bool:
    """True where an entrywise operation of this shape with the others has this shape."""
    return broadcast_shapes(shape, *others) == shape


def minus(x: Expr) -> Expr:
    """Negative, with double negatives removed and signs absorbed into leading numbers."""
    if isinstance(x, Constant):
        return constant(-x.value.array)
    if form_of(x) is forms.NEGATIVE:
        return _args(x)[0]
    if form_of(x) is forms.DIFFERENCE:
        return sub(_args(x)[1], _args(x)[0])
    return mul(number(-1), x) if _leads(x) else call("minus", x)


def _folded(op: Callable[..., Any], *args: Expr) -> Expr | None:
    """Result of an operation on constants where it is finite."""
    values = [a.value.array for a in args if isinstance(a, Constant)]
    if len(values) < len(args):
        return None
    with np.errstate(all="ignore"):
        value = op(*values)
    return constant(value) if np.all(np.isfinite(value)) else None


def add(a: Expr, b: Expr) -> Expr:
    """Sum; zeros vanish and negatives become subtractions."""
    if value_of(a) == 0 and _stretched(b.shape, a.shape):
        return b
    if value_of(b) == 0 and _stretched(a.shape, b.shape):
        return a
    if (result := _folded(operator.add, a, b)) is not None:
        return result
    if form_of(b) is forms.NEGATIVE:
        return sub(a, _args(b)[0])
    if form_of(a) is forms.NEGATIVE:
        return sub(b, _args(a)[0])
    return call("add", a, b)


def sub(a: Expr, b: Expr) -> Expr:
    """Difference; zeros vanish and negatives become additions."""
    if value_of(b) == 0 and _stretched(a.shape, b.shape):
        return a
    if value_of(a) == 0 and _stretched(b.shape, a.shape):
        return minus(b)
    if (result := _folded(operator.sub, a, b)) is not None:
        return result
    return add(a, _args(b)[0]) if form_of(b) is forms.NEGATIVE else call("sub", a, b)


def reads(expr: Expr, value: Expr, depth: int = DEPTH) -> bool:
    """True where `expr` depends on `value` within `depth` calls, other than by steps, which say where it lies alone."""
    if expr is value:
        return True
    if not depth or not isinstance(expr, Call) or regularity_of(expr) is Regularity.ANY:
        return False
    return any(reads(c, value, depth - 1) for c in expr.children)


def may_be_infinite(expr: Expr, value: Expr, depth: int = DEPTH) -> bool:
    """True where `expr` is infinite at some values of `value`: it divides by what depends on it, within `depth` calls, takes its
    logarithm, or a negative power.
    """
    if not depth or not isinstance(expr, Call):
        return False
    base = _singular_at_zero(expr)
    if base is not None and reads(base, value, depth - 1):
        return True
    return any(may_be_infinite(c, value, depth - 1) for c in expr.children)


def _singular_at_zero(node: Call) -> Expr | None:
    """Part of a call at whose zeros it is infinite; None where it has none."""
    match form_of(node), node.children:
        case (forms.Quotient(), (_, base)) | (forms.Logarithm(), (base,)):
            return base
        case forms.Power(exponent), (base, *rest):
            power = value_of(rest[0]) if exponent is None and rest else exponent
            return base if power is not None and power < 0 else None
    return None


def where_equal(expr: Expr, old: Expr, new: Expr, depth: int = DEPTH) -> Expr:
    """`expr` at the entries at which `new` equals `old`, written with `new` where it depends on `old` entry by entry.

    Values of `old` are looked for `depth` calls deep: `expr` itself where there are none.
    """
    if expr is old:
        return new
    if expr.shape != old.shape or not is_entrywise(expr) or not reads(expr, old, depth):
        return expr
    return expr.with_children(tuple(where_equal(c, old, new, depth - 1) for c in expr.children))


def mul(a: Expr, b: Expr) -> Expr:
    """Product; numbers gather in front, signs outside, and a number over an expression stays a quotient."""
    if _is_number(b) and not _is_number(a):
        a, b = b, a
    factor = value_of(a) if a.shape == () else None
    if factor == 0:
        return number(0) if b.shape == () else broadcast(number(0), b.shape)
    if factor == 1 or (value_of(a) == 1 and _stretched(b.shape, a.shape)):
        return b
    if value_of(b) == 1 and _stretched(a.shape, b.shape):
        return a
    if (result := _folded(operator.mul, a, b)) is not None:
        return result
    if factor is not None and isinstance(b, Call) and (result := _absorbed(a, b)) is not None:
        return result
    if factor == -1:
        return minus(b)
    if form_of(a) is forms.NEGATIVE:
        return minus(mul(_args(a)[0], b))
    if form_of(b) is forms.NEGATIVE:
        return minus(mul(a, _args(b)[0]))
    return _product(a, b)


def _leads(x: Expr) -> bool:
    """True where a product or quotient begins with a number."""
    if form_of(x) not in (forms.TIMES, forms.QUOTIENT):
        return False
    first = _args(x)[0]
    return _is_number(first) or (form_of(x) is forms.QUOTIENT and form_of(first) is forms.TIMES and _leads(first))


def _is_number(x: Expr) -> bool:
    return isinstance(x, Constant) and x.shape == ()


def _absorbed(factor: Expr, b: Call) -> Expr | None:
    """Product of a number and a call that begins with a number, as one number. None where their product overflows."""
    if form_of(b) is forms.NEGATIVE:
        return mul(minus(factor), b.args[0])
    if not _leads(b):
        return None
    first, second = b.args
    lead = _absorbed(factor, first) if isinstance(first, Call) else _folded(operator.mul, factor, first)
    if lead is None:
        return None
    return mul(lead, second) if form_of(b) is forms.TIMES else div(lead, second)


def _product(a: Expr, b: Expr) -> Expr:
    """Product in which (c / d) * b is (c * b) / d, and a number in front of either factor goes in front of both."""
    for one, other in ((a, b), (b, a)):
        if (form := form_of(one)) in (forms.TIMES, forms.QUOTIENT) and _is_number(_args(one)[0]):
            lead, rest = _args(one)
            if isinstance(other, Constant) and (form is forms.TIMES or _folded(operator.mul, lead, other) is None):
                continue
            if form is forms.QUOTIENT:
                return div(mul(lead, other), rest)
            return mul(lead, mul(rest, other) if one is a else mul(other, rest))
    return call("mul", a, b)


def div(a: Expr, b: Expr) -> Expr:
    """Quotient; a divisor 1 vanishes and a sign moves outside."""
    if value_of(b) == 1 and _stretched(a.shape, b.shape):
        return a
    if (result := _folded(operator.truediv, a, b)) is not None:
        return result
    if form_of(a) is forms.NEGATIVE:
        return minus(div(_args(a)[0], b))
    return call("div", a, b)


def square(x: Expr) -> Expr:
    """Square, entry by entry."""
    result = _folded(np.square, x)
    return call("square", x) if result is None else result


def pow(x: Expr, p: Expr) -> Expr:
    """Power x**p, entry by entry; exponents 0 and 1 vanish."""
    exponent = value_of(p) if p.shape == () else None
    if exponent == 0 and x.shape == ():
        return number(1)
    if exponent == 1:
        return x
    return call("pow", x, p)


def transpose(x: Expr) -> Expr:
    """Transpose; vectors are unchanged and double transposes vanish."""
    if len(x.shape) < 2:
        return x
    return _args(x)[0] if form_of(x) is forms.TRANSPOSE else call("transpose", x)


def broadcast(x: Expr, shape: Shape) -> Expr:
    """Expression x at full shape."""
    if x.shape == shape:
        return x
    if isinstance(x, Constant) and x.shape == () and value_of(x) in (0, 1) and all(isinstance(d, int) for d in shape):
        return call("zeros" if value_of(x) == 0 else "ones", *(d for d in shape if isinstance(d, int)))
    return call("_broadcast", x, shape=shape)


def reshape(x: Expr, shape: Shape) -> Expr:
    """Entries of x in another shape, in C order."""
    return x if x.shape == shape else call("_reshape", x, shape=shape)


def collapse(g: Expr, shape: Shape, target: Shape) -> Expr:
    """Cotangent of an argument of shape `target` that was broadcast to `shape`: summed over the broadcast axes."""
    if target == shape:
        return g
    lead = len(shape) - len(target)
    stretched = [k for k in range(len(shape)) if k < lead or target[k - lead] != shape[k]]
    if g.shape == ():
        return mul(number(math.prod(_length(shape[k]) for k in stretched)), g)
    if form_of(g) is forms.NEGATIVE:
        return minus(collapse(_args(g)[0], shape, target))
    if all(d == 1 for d in target):
        return reshape(_total(broadcast(g, shape)), target)
    reduced = broadcast(g, shape)
    for k in reversed(stretched):
        reduced = call("sum", reduced, axis=k)
    return reshape(reduced, target)


def _total(g: Expr) -> Expr:
    """Sum of all entries; for a product of two vectors, their inner product."""
    if form_of(g) is forms.TIMES and all(a.shape == g.shape and len(a.shape) == 1 for a in _args(g)):
        return matmul(*_args(g))
    return call("sum", g)


def _length(dim: Any) -> int:
    if not isinstance(dim, int):
        raise InternalError(f"a derivative over an axis of unknown length {dim}")
    return dim


def spread(g: Expr, c: Call) -> Expr:
    """Cotangent of a reduction, shaped so that it broadcasts against the reduction's argument."""
    axis = c.option("axis")
    if axis is None or g.shape == () or int(axis) == 0:
        return g
    shape = c.args[0].shape
    full = broadcast(g, shape[: int(axis)] + shape[int(axis) + 1 :])
    return reshape(full, (*shape[: int(axis)], 1, *shape[int(axis) + 1 :]))


def as_column(g: Expr, shape: Shape) -> Expr:
    """Vector of this shape as one column; a value without distinct entries is unchanged."""
    return g if g.shape == () else reshape(broadcast(g, shape), (*shape, 1))


def matmul(a: Expr, b: Expr) -> Expr:
    """Matrix product; a number in front of either factor goes in front of both."""
    for one, other in ((a, b), (b, a)):
        if form_of(one) is forms.NEGATIVE:
            inner = _args(one)[0]
            return minus(matmul(inner, other) if one is a else matmul(other, inner))
        if form_of(one) is forms.TIMES and _args(one)[0].shape == () and isinstance(_args(one)[0], Constant):
            lead, rest = _args(one)
            return mul(lead, matmul(rest, other) if one is a else matmul(other, rest))
    return call("matmul", a, b)


def matmul_all(matrix: Expr, g: Expr, shape: Shape) -> Expr:
    """Product `matrix @ g`, where g represents a vector of this shape: equal entries give the sum of the columns."""
    if g.shape != () or shape == ():
        return matmul(matrix, g)
    columns = (
        call("sum", _args(matrix)[0], axis=0) if form_of(matrix) is forms.TRANSPOSE else call("sum", matrix, axis=1)
    )
    return mul(g, columns)
