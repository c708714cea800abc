"""Functions of all entries, or of those along one axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oco.dsl.atoms import forms, norms, replay
from oco.dsl.atoms.base import Atom, Regularity
from oco.dsl.atoms.rules import (
    AFFINE,
    CONCAVE,
    CONVEX,
    always,
    axis,
    even,
    even_curvature,
    kept,
    up,
)
from oco.dsl.atoms.shapes import reduced
from oco.dsl.atoms.whole import whole
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Expr
from oco.dsl.intervals import Interval, interval, point
from oco.dsl.rounded_numbers import LARGEST

AXIS = ("axis", "over")


def _count(c: Call) -> int:
    """Number of entries that each result reduces."""
    at = axis(c)
    shape = known(c.args[0].shape)
    return math.prod(shape) if at is None else shape[at]


def log_sum_exp(o: Any, c: Call, x: Any) -> Any:
    """Soft maximum log(sum(exp(x))), scaled by the largest entry so that nothing overflows."""
    at = axis(c)
    top = o.max(x, axis=at)
    spread = o.reshape(top, shape=kept(c)) if c.args[0].shape else top
    return top + o.log(o.sum(o.exp(x - spread), axis=at))


def _log_sum_exp_bounds(c: Call, x: Interval) -> Interval:
    """Range of the soft maximum, which grows with every entry."""
    low, high = (_log_sum_exp_at(c, interval(end, end, x.shape)) for end in (x.lo, x.hi))
    return Interval(low.lo, high.hi, low.shape)


def _log_sum_exp_at(c: Call, x: Interval) -> Interval:
    at = axis(c)
    top = x.max(at)
    top = Interval(np.clip(top.lo, -LARGEST, LARGEST), np.clip(top.hi, -LARGEST, LARGEST), top.shape)
    spread = top.reshape(kept(c)) if x.shape else top
    return top + (x - spread).exp().sum(at).log()


def _norm2_vjp(e: Any, c: Call, g: Expr) -> tuple[Expr]:
    return (e.mul(e.spread(g, c), e.call("_unit", c.args[0], **dict(c.options))),)


REDUCTIONS: tuple[Atom, ...] = (
    Atom(
        "sum",
        "the sum",
        (1, 1),
        reduced,
        lower=lambda o, c, x: o.sum(x, axis=axis(c)),
        bounds=lambda c, x: x.sum(axis(c)),
        curvature=always(AFFINE),
        monotone=up,
        vjp=lambda e, c, g: (e.spread(g, c),),
        cvxpy=lambda cp, c, x: cp.sum(x, axis=axis(c)),
        options=(*AXIS, "by"),
        integer=whole,
        form=forms.TOTAL,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.reduced(np.sum),
        latex=r"\textstyle\sum\left(#1\right)",
    ),
    Atom(
        "mean",
        "the mean",
        (1, 1),
        reduced,
        lower=lambda o, c, x: o.sum(x, axis=axis(c)) / float(_count(c)),
        bounds=lambda c, x: x.sum(axis(c)) / point(float(_count(c))),
        curvature=always(AFFINE),
        monotone=up,
        vjp=lambda e, c, g: (e.spread(e.div(g, e.number(_count(c))), c),),
        cvxpy=lambda cp, c, x: cp.mean(x, axis=axis(c)),
        options=AXIS,
        form=forms.MEAN,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.reduced(np.mean),
    ),
    Atom(
        "max",
        "the largest entry",
        (1, 1),
        reduced,
        lower=lambda o, c, x: o.max(x, axis=axis(c)),
        bounds=lambda c, x: x.max(axis(c)),
        curvature=always(CONVEX),
        monotone=up,
        vjp=lambda e, c, g: (e.mul(e.spread(g, c), e.call("_peak", c.args[0], **dict(c.options))),),
        cvxpy=lambda cp, c, x: cp.max(x, axis=axis(c)),
        options=AXIS,
        integer=whole,
        form=forms.LARGEST_ENTRY,
        regularity=Regularity.CONTINUOUS,
        exact=True,
        replay=replay.reduced(np.max),
        latex=r"\max\left(#1\right)",
        several="maximum",
    ),
    Atom(
        "min",
        "the smallest entry",
        (1, 1),
        reduced,
        lower=lambda o, c, x: o.min(x, axis=axis(c)),
        bounds=lambda c, x: x.min(axis(c)),
        curvature=always(CONCAVE),
        monotone=up,
        vjp=lambda e, c, g: (e.mul(e.spread(g, c), e.call("_peak", e.minus(c.args[0]), **dict(c.options))),),
        cvxpy=lambda cp, c, x: cp.min(x, axis=axis(c)),
        options=AXIS,
        integer=whole,
        form=forms.SMALLEST_ENTRY,
        regularity=Regularity.CONTINUOUS,
        exact=True,
        replay=replay.reduced(np.min),
        latex=r"\min\left(#1\right)",
        several="minimum",
    ),
    Atom(
        "norm1",
        "the sum of absolute values",
        (1, 1),
        reduced,
        lower=lambda o, c, x: o.sum(o.abs(x), axis=axis(c)),
        bounds=lambda c, x: x.abs().sum(axis(c)),
        curvature=even_curvature,
        monotone=even,
        vjp=lambda e, c, g: (e.mul(e.spread(g, c), e.call("_sign", c.args[0])),),
        cvxpy=lambda cp, c, x: cp.sum(cp.abs(x), axis=axis(c)),
        options=AXIS,
        integer=whole,
        form=forms.SUM_OF_SIZES,
        regularity=Regularity.CONTINUOUS,
        exact=True,
        replay=replay.reduced(np.sum, replay.sizes),
        latex=r"\left\lVert #1 \right\rVert_1",
    ),
    Atom(
        "norm2",
        "the Euclidean norm of the entries, also of a matrix (Frobenius; CVXPY takes its largest singular value, here `sigma_max`)",
        (1, 1),
        reduced,
        lower=lambda o, c, x: o.sqrt(o.sum(x * x, axis=axis(c))),
        bounds=lambda c, x: x.square().sum(axis(c)).sqrt(),
        curvature=always(CONVEX),
        monotone=even,
        vjp=_norm2_vjp,
        cvxpy=lambda cp, c, x: cp.pnorm(x, 2, axis=axis(c)),
        options=AXIS,
        form=forms.LENGTH,
        regularity=Regularity.CONTINUOUS,
        exact=True,
        replay=replay.length,
        norm=norms.EUCLIDEAN,
        latex=r"\left\lVert #1 \right\rVert_2",
    ),
    Atom(
        "norm_inf",
        "the largest absolute value",
        (1, 1),
        reduced,
        lower=lambda o, c, x: o.max(o.abs(x), axis=axis(c)),
        bounds=lambda c, x: x.abs().max(axis(c)),
        curvature=always(CONVEX),
        monotone=even,
        vjp=lambda e, c, g: (
            e.mul(
                e.spread(g, c),
                e.mul(e.call("_sign", c.args[0]), e.call("_peak", e.call("abs", c.args[0]), **dict(c.options))),
            ),
        ),
        cvxpy=lambda cp, c, x: cp.max(cp.abs(x), axis=axis(c)),
        options=AXIS,
        integer=whole,
        form=forms.LARGEST_SIZE,
        regularity=Regularity.CONTINUOUS,
        exact=True,
        replay=replay.reduced(np.max, replay.sizes),
        latex=r"\left\lVert #1 \right\rVert_\infty",
    ),
    Atom(
        "sum_squares",
        "the sum of squares",
        (1, 1),
        reduced,
        lower=lambda o, c, x: o.sum(x * x, axis=None),
        bounds=lambda c, x: x.square().sum(),
        curvature=always(CONVEX),
        monotone=even,
        vjp=lambda e, c, g: (e.mul(e.mul(g, e.number(2)), c.args[0]),),
        cvxpy=lambda cp, c, x: cp.sum_squares(x),
        integer=whole,
        form=forms.SUM_OF_SQUARES,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.reduced(np.sum, replay.square),
        latex=r"\left\lVert #1 \right\rVert_2^2",
    ),
    Atom(
        "log_sum_exp",
        "log of the sum of exp",
        (1, 1),
        reduced,
        lower=log_sum_exp,
        bounds=_log_sum_exp_bounds,
        curvature=always(CONVEX),
        monotone=up,
        vjp=lambda e, c, g: (e.mul(e.spread(g, c), e.call("_softmax", c.args[0], **dict(c.options))),),
        cvxpy=lambda cp, c, x: cp.log_sum_exp(x, axis=axis(c)),
        options=AXIS,
        form=forms.SoftMaximum(),
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.reduced(replay.soft_maximum),
        latex=r"\log\textstyle\sum\exp\left(#1\right)",
    ),
)
