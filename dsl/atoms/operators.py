"""Operators of the language."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.atoms import forms, proximal, replay, shapes
from oco.dsl.atoms.base import Atom, Curvature, Monotone, Regularity
from oco.dsl.atoms.powers import POWER_RULES
from oco.dsl.atoms.rules import (
    AFFINE,
    CONCAVE,
    CONVEX,
    DOWN,
    NEITHER,
    UNKNOWN,
    UP,
    Intervals,
    Varies,
    always,
    bilinear,
    bilinear_monotone,
    by_sign,
    down,
    neither,
    same,
    up,
)
from oco.dsl.atoms.whole import counting, whole
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Expr
from oco.dsl.intervals import Interval


def _product_bounds(call: Call, left: Interval, right: Interval) -> Interval:
    return left.square() if same(call) else left * right


def _matmul_bounds(call: Call, left: Interval, right: Interval) -> Interval:
    return left.square().sum() if same(call) and call.shape == () else left @ right


def _quotient_curvature(call: Call, intervals: Intervals, varies: Varies) -> Curvature:
    """Curvature of a / b: affine in a; in b it depends on the signs of a and b."""
    above, below = intervals
    if not varies[1]:
        return AFFINE
    side = UP if below.positive else DOWN if (-below).positive else NEITHER
    sign = by_sign(above)
    if varies[0] or NEITHER in (side, sign):
        return UNKNOWN
    return CONVEX if side is sign else CONCAVE


def _quotient_monotone(call: Call, above: Interval, below: Interval) -> tuple[Monotone, Monotone]:
    flipped = {UP: DOWN, DOWN: UP, NEITHER: NEITHER}
    one_side = below.positive or (-below).positive
    return by_sign(below) if one_side else NEITHER, flipped[by_sign(above)] if one_side else NEITHER


def _divisor_allowed(call: Call, above: Interval, below: Interval) -> str:
    return "" if below.positive or (-below).positive else f"the divisor's range {below} holds 0"


def _quotient_in_cvxpy(cp: Any, c: Call, above: Any, below: Any) -> Any:
    """CVXPY expression, which divides by data and by positive variables; a nonpositive divisor changes sign."""
    if below.is_constant():
        return above / below
    return cp.multiply(above, -cp.inv_pos(-below) if below.is_nonpos() else cp.inv_pos(below))


def _product_vjp(e: Any, c: Call, g: Expr) -> tuple[Expr, Expr]:
    left, right = c.args
    return e.collapse(e.mul(g, right), c.shape, left.shape), e.collapse(e.mul(g, left), c.shape, right.shape)


def _quotient_vjp(e: Any, c: Call, g: Expr) -> tuple[Expr, Expr]:
    left, right = c.args
    towards_right = e.minus(e.div(e.mul(g, left), e.square(right)))
    return e.collapse(e.div(g, right), c.shape, left.shape), e.collapse(towards_right, c.shape, right.shape)


def _matmul_vjp(e: Any, c: Call, g: Expr) -> tuple[Expr, Expr]:
    """Cotangents of y = a @ b: towards a g b', towards b a' g, where vectors are rows or columns."""
    left, right = c.args
    match len(left.shape), len(right.shape):
        case 1, 1:
            return e.mul(g, right), e.mul(g, left)
        case 2, 1:
            return e.mul(e.as_column(g, c.shape), right), e.matmul_all(e.transpose(left), g, c.shape)
        case 1, _:
            return e.matmul_all(right, g, c.shape), e.mul(e.as_column(left, left.shape), g)
    whole_g = e.broadcast(g, c.shape)
    return e.matmul(whole_g, e.transpose(right)), e.matmul(e.transpose(left), whole_g)


def _remainder_bounds(call: Call, left: Interval, right: Interval) -> Interval:
    """Range of a % b for b > 0: exact between two multiples of b."""
    lo, hi, least, most = np.broadcast_arrays(left.lo, left.hi, right.lo, right.hi)
    with np.errstate(all="ignore"):
        multiple = np.floor(lo / most)
        fixed = (least == most) & (multiple == np.floor(hi / most)) & np.isfinite(multiple)
        below = np.where(lo >= 0, np.minimum(hi, most - 1), most - 1)
        return Interval(
            np.where(fixed, lo - multiple * most, 0.0), np.where(fixed, hi - multiple * most, below), known(call.shape)
        )


def _range_bounds(call: Call, first: Interval, last: Interval) -> Interval:
    return Interval(first.lo, last.hi, known(call.shape))


OPERATORS: tuple[Atom, ...] = (
    Atom(
        "range",
        "integers from a to b, both included",
        (2, 2),
        shapes.whole_range,
        parameters=("a", "b"),
        lower=lambda o, c, first, last: o.iota(n=c.shape[0]) + first,
        bounds=_range_bounds,
        curvature=always(AFFINE),
        monotone=up,
        vjp=lambda e, c, g: (None, None),
        cvxpy=lambda cp, c, first, last: cp.Constant(range(int(first), int(last) + 1)),
        operator="..",
        precedence=1,
        integer=counting,
        regularity=Regularity.SMOOTH,
        exact=True,
    ),
    Atom(
        "add",
        "the sum, entry by entry",
        (2, 2),
        shapes.entrywise,
        lower=lambda o, c, a, b: a + b,
        bounds=lambda c, a, b: a + b,
        curvature=always(AFFINE),
        monotone=up,
        vjp=lambda e, c, g: tuple(e.collapse(g, c.shape, a.shape) for a in c.args),
        cvxpy=lambda cp, c, a, b: a + b,
        operator="+",
        ufunc="add",
        precedence=2,
        integer=whole,
        form=forms.SUM,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.rising(np.add),
    ),
    Atom(
        "sub",
        "the difference, entry by entry",
        (2, 2),
        shapes.entrywise,
        lower=lambda o, c, a, b: a - b,
        bounds=lambda c, a, b: a - b,
        curvature=always(AFFINE),
        monotone=lambda c, a, b: (UP, DOWN),
        vjp=lambda e, c, g: (
            e.collapse(g, c.shape, c.args[0].shape),
            e.collapse(e.minus(g), c.shape, c.args[1].shape),
        ),
        cvxpy=lambda cp, c, a, b: a - b,
        operator="-",
        ufunc="subtract",
        precedence=2,
        integer=whole,
        form=forms.DIFFERENCE,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.difference,
    ),
    Atom(
        "mul",
        "the product, entry by entry",
        (2, 2),
        shapes.entrywise,
        lower=lambda o, c, a, b: a * b,
        bounds=_product_bounds,
        curvature=bilinear,
        monotone=bilinear_monotone,
        vjp=_product_vjp,
        cvxpy=lambda cp, c, a, b: cp.multiply(a, b),
        operator="*",
        ufunc="multiply",
        precedence=3,
        integer=whole,
        form=forms.TIMES,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.times,
    ),
    Atom(
        "div",
        "the quotient, entry by entry",
        (2, 2),
        shapes.entrywise,
        lower=lambda o, c, a, b: a / b,
        bounds=lambda c, a, b: a / b,
        curvature=_quotient_curvature,
        monotone=_quotient_monotone,
        vjp=_quotient_vjp,
        cvxpy=_quotient_in_cvxpy,
        operator="/",
        ufunc="divide",
        precedence=3,
        allowed=_divisor_allowed,
        form=forms.QUOTIENT,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.divided,
    ),
    Atom(
        "mod",
        "the remainder of integers, entry by entry: 0, ..., b - 1",
        (2, 2),
        shapes.remainder,
        lower=lambda o, c, a, b: a % b,
        bounds=_remainder_bounds,
        curvature=always(UNKNOWN),
        monotone=neither,
        vjp=lambda e, c, g: (None, None),
        cvxpy=lambda cp, c, a, b: cp.Constant(np.mod(*(cp.Constant(v).value for v in (a, b)))),
        operator="%",
        ufunc="remainder",
        precedence=3,
        integer=whole,
        form=forms.REMAINDER,
        allowed=lambda c, a, b: "" if b.positive else f"the range {b} of what it is divided by is not positive",
    ),
    Atom(
        "matmul",
        "the matrix product",
        (2, 2),
        shapes.product,
        lower=lambda o, c, a, b: a @ b,
        bounds=_matmul_bounds,
        curvature=bilinear,
        monotone=bilinear_monotone,
        vjp=_matmul_vjp,
        cvxpy=lambda cp, c, a, b: a @ b,
        operator="@",
        ufunc="matmul",
        precedence=3,
        integer=whole,
        form=forms.MATRIX_PRODUCT,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.product,
    ),
    Atom(
        "minus",
        "the negative of every entry",
        (1, 1),
        shapes.entrywise,
        lower=lambda o, c, x: -x,
        bounds=lambda c, x: -x,
        curvature=always(AFFINE),
        monotone=down,
        vjp=lambda e, c, g: (e.minus(g),),
        cvxpy=lambda cp, c, x: -x,
        operator="-",
        ufunc="negative",
        precedence=4,
        integer=whole,
        form=forms.NEGATIVE,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.negative,
    ),
    Atom(
        "pow",
        "the left side to the power of the right",
        (2, 2),
        shapes.entrywise,
        operator="**",
        ufunc="power",
        precedence=5,
        proximal=proximal.power,
        form=forms.Power(),
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.power,
        **POWER_RULES,
    ),
    Atom(
        "transpose",
        "the transpose",
        (1, 1),
        shapes.transposed,
        lower=lambda o, c, x: o.transpose(x),
        bounds=lambda c, x: x.transpose(),
        curvature=always(AFFINE),
        monotone=up,
        vjp=lambda e, c, g: (e.transpose(e.broadcast(g, c.shape)),),
        cvxpy=lambda cp, c, x: x.T,
        operator=".T",
        precedence=6,
        integer=whole,
        form=forms.TRANSPOSE,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.monotone(np.transpose),
    ),
)
