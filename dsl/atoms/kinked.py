"""Functions of each entry that have kinks: absolute values, parts, and the largest of several."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from oco.dsl.atoms import forms, pieces, proximal, replay
from oco.dsl.atoms.base import Atom, Curvature, Regularity
from oco.dsl.atoms.rules import (
    AFFINE,
    CONCAVE,
    CONVEX,
    Intervals,
    Varies,
    down,
    even,
    even_curvature,
    hinged_at,
    up,
)
from oco.dsl.atoms.shapes import entrywise
from oco.dsl.atoms.whole import whole
from oco.dsl.expressions import Call, Expr
from oco.dsl.intervals import Interval, point

_ZERO, _ONE = point(0.0), point(1.0)


def _extreme_curvature(kind: Curvature) -> Any:
    """Curvature of maximum and minimum: affine when one argument is beyond all others on the whole range."""

    def rule(call: Call, intervals: Intervals, varies: Varies) -> Curvature:
        signed = intervals if kind is CONVEX else tuple(-i for i in intervals)
        for i, one in enumerate(signed):
            if all(bool(np.all(one.lo > other.hi)) for j, other in enumerate(signed) if j != i):
                return AFFINE
        return kind

    return rule


def _extreme_vjp(largest: bool) -> Any:
    """Cotangents of an extreme: all of it to the first argument that is extreme, each compared with the extreme of
    those after it. A slope that is a function of the extreme is written as one of the argument, whose range it has, and
    is masked: it may be infinite where the argument is not extreme.
    """

    def rule(e: Any, c: Call, g: Expr) -> tuple[Expr, ...]:
        results: list[Expr] = []
        left: Expr = e.number(1)
        for i, arg in enumerate(c.args):
            share = left
            if after := c.args[i + 1 :]:
                other = after[0] if len(after) == 1 else e.call(c.atom, *after)
                here = e.call("_nonneg", e.sub(arg, other) if largest else e.sub(other, arg))
                share, left = e.mul(left, here), e.mul(left, e.sub(e.number(1), here))
            if e.reads(g, c):
                slope = e.where_equal(g, c, e.broadcast(arg, c.shape))
                mine = e.call("_masked", share, e.broadcast(slope, c.shape))
            else:
                mine = e.mul(share, g)
            results.append(e.collapse(e.broadcast(mine, c.shape), c.shape, arg.shape))
        return tuple(results)

    return rule


def _where(e: Any, c: Call, g: Expr, active: Expr) -> Expr:
    """Cotangent g where `active` is above 0, else 0, also where g is infinite because the part is 0 there."""
    step = e.call("_positive", active)
    masked = e.may_be_infinite(g, c)
    result: Expr = e.call("_masked", step, e.broadcast(g, c.shape)) if masked else e.mul(g, step)
    return result


KINKED: tuple[Atom, ...] = (
    Atom(
        "abs",
        "the absolute value",
        (1, 1),
        entrywise,
        lower=lambda o, c, x: o.abs(x),
        bounds=lambda c, x: x.abs(),
        curvature=even_curvature,
        monotone=even,
        vjp=lambda e, c, g: (e.mul(g, e.call("_sign", c.args[0])),),
        cvxpy=lambda cp, c, x: cp.abs(x),
        integer=whole,
        proximal=proximal.absolute,
        form=forms.SIZE,
        regularity=Regularity.CONTINUOUS,
        exact=True,
        replay=replay.even(np.abs),
        decided=pieces.size,
        latex=r"\left\lvert #1 \right\rvert",
    ),
    Atom(
        "pos",
        "max(x, 0)",
        (1, 1),
        entrywise,
        lower=lambda o, c, x: o.maximum(x, 0),
        bounds=lambda c, x: x.maximum(_ZERO),
        curvature=hinged_at(0.0),
        monotone=up,
        vjp=lambda e, c, g: (_where(e, c, g, c.args[0]),),
        cvxpy=lambda cp, c, x: cp.pos(x),
        integer=whole,
        proximal=proximal.positive_part,
        form=forms.POSITIVE_PART,
        regularity=Regularity.CONTINUOUS,
        exact=True,
        replay=lambda c, x: replay.above(x),
        decided=pieces.positive_part,
        latex=r"\left[#1\right]_+",
    ),
    Atom(
        "neg",
        "max(-x, 0)",
        (1, 1),
        entrywise,
        lower=lambda o, c, x: o.maximum(-x, 0),
        bounds=lambda c, x: (-x).maximum(_ZERO),
        curvature=hinged_at(0.0),
        monotone=down,
        vjp=lambda e, c, g: (e.minus(_where(e, c, g, e.minus(c.args[0]))),),
        cvxpy=lambda cp, c, x: cp.neg(x),
        integer=whole,
        proximal=proximal.negative_part,
        form=forms.NEGATIVE_PART,
        regularity=Regularity.CONTINUOUS,
        exact=True,
        replay=replay.negative_part,
        latex=r"\left[-(#1)\right]_+",
    ),
    Atom(
        "hinge",
        "max(1 - x, 0)",
        (1, 1),
        entrywise,
        lower=lambda o, c, x: o.maximum(1.0 - x, 0.0),
        bounds=lambda c, x: (_ONE - x).maximum(_ZERO),
        curvature=hinged_at(1.0),
        monotone=down,
        vjp=lambda e, c, g: (e.minus(_where(e, c, g, e.sub(e.number(1), c.args[0]))),),
        cvxpy=lambda cp, c, x: cp.pos(1 - x),
        proximal=proximal.hinge,
        form=forms.HINGE,
        regularity=Regularity.CONTINUOUS,
        exact=True,
        replay=replay.hinge,
        latex=r"\left[1 - (#1)\right]_+",
    ),
    Atom(
        "maximum",
        "the largest of several arguments, entry by entry",
        (2, None),
        entrywise,
        parameters=("xs",),
        lower=lambda o, c, *xs: reduce(o.maximum, xs),
        bounds=lambda c, *xs: reduce(Interval.maximum, xs),
        curvature=_extreme_curvature(CONVEX),
        monotone=up,
        vjp=_extreme_vjp(largest=True),
        cvxpy=lambda cp, c, *xs: cp.maximum(*xs),
        integer=whole,
        form=forms.LARGEST,
        regularity=Regularity.CONTINUOUS,
        exact=True,
        replay=replay.extreme(np.maximum),
        decided=pieces.extreme(largest=True),
    ),
    Atom(
        "minimum",
        "the smallest of several arguments, entry by entry",
        (2, None),
        entrywise,
        parameters=("xs",),
        lower=lambda o, c, *xs: reduce(o.minimum, xs),
        bounds=lambda c, *xs: reduce(Interval.minimum, xs),
        curvature=_extreme_curvature(CONCAVE),
        monotone=up,
        vjp=_extreme_vjp(largest=False),
        cvxpy=lambda cp, c, *xs: cp.minimum(*xs),
        integer=whole,
        form=forms.SMALLEST,
        regularity=Regularity.CONTINUOUS,
        exact=True,
        replay=replay.extreme(np.minimum),
        decided=pieces.extreme(largest=False),
    ),
)
