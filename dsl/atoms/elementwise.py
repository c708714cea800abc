"""Functions of each entry."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.atoms import divergences, forms, pieces, powers, proximal, replay
from oco.dsl.atoms.base import Atom, Curvature, Monotone, Regularity
from oco.dsl.atoms.rules import (
    CONCAVE,
    CONVEX,
    NEITHER,
    UNKNOWN,
    UP,
    Intervals,
    Varies,
    always,
    down,
    even,
    needs,
    nonnegative,
    positive,
    up,
)
from oco.dsl.atoms.shapes import entrywise
from oco.dsl.atoms.whole import whole
from oco.dsl.expressions import Call, Expr
from oco.dsl.intervals import Interval, point

_ZERO, _ONE = point(0.0), point(1.0)


def _huber_lower(o: Any, c: Call, x: Any, *rest: Any) -> Any:
    """Huber function m (2 |x| - m) with m = min(|x|, M): x**2 inside, 2 M |x| - M**2 outside."""
    size = o.abs(x)
    inner = o.minimum(size, rest[0] if rest else 1.0)
    return inner * (2.0 * size - inner)


def _huber_bounds(c: Call, x: Interval, *rest: Interval) -> Interval:
    """Range of the Huber function, which grows with |x| and with M."""
    size, limit = x.abs(), rest[0] if rest else _ONE

    def at(end: np.ndarray[Any, Any], bound: np.ndarray[Any, Any]) -> Interval:
        inner = np.minimum(end, np.maximum(bound, 0.0))
        return point(inner) * (point(2.0) * point(end) - point(inner))

    shape = np.broadcast_shapes(x.shape, limit.shape)
    low, high = at(size.lo, limit.lo), at(size.hi, limit.hi)
    return Interval(np.maximum(low.lo, 0.0), high.hi, shape)


def _huber_vjp(e: Any, c: Call, g: Expr) -> tuple[Expr | None, ...]:
    """Cotangents 2 clip(x, -M, M) towards x; 2 (|x| - min(|x|, M)) towards M."""
    x = c.args[0]
    limit = c.args[1] if len(c.args) > 1 else e.number(1)
    towards_x = e.collapse(e.mul(g, e.mul(e.number(2), e.call("_clip", x, limit))), c.shape, x.shape)
    if len(c.args) == 1:
        return (towards_x,)
    outside = e.call("pos", e.sub(e.call("abs", x), limit))
    return towards_x, e.collapse(e.mul(g, e.mul(e.number(2), outside)), c.shape, limit.shape)


def _huber_curvature(call: Call, intervals: Intervals, varies: Varies) -> Curvature:
    """Curvature: convex in x; in M no rule."""
    return UNKNOWN if len(varies) > 1 and varies[1] else CONVEX


def _huber_in_cvxpy(cp: Any, call: Call, x: Any, m: Any = 1.0) -> Any:
    """CVXPY expression, whose huber takes one number for M; those of entries scale an M of 1."""
    if not np.ndim(m):
        return cp.huber(x, m)
    return cp.multiply(m.value**2, cp.huber(x / m.value + np.zeros(np.broadcast_shapes(x.shape, m.shape))))


def _huber_allowed(call: Call, x: Interval, *rest: Interval) -> str:
    return "" if not rest or rest[0].positive else f"huber needs a positive M, and its range is {rest[0]}"


def _entropy_bounds(c: Call, x: Interval) -> Interval:
    """Range of -x log(x), which rises to 1/e at 1/e and falls after it."""
    inside = x.maximum(_ZERO)
    low, high = (-(point(end) * point(end).log()) for end in (inside.lo, inside.hi))
    top = point(-1.0).exp()
    peak = np.exp(-1.0)
    over = (inside.lo <= peak * (1 + 1e-15)) & (inside.hi >= peak * (1 - 1e-15))
    hi = np.maximum(low.hi, high.hi)
    return Interval(np.minimum(low.lo, high.lo), np.where(over, top.hi, np.minimum(hi, top.hi)), x.shape)


def _entropy_monotone(c: Call, x: Interval) -> tuple[Monotone]:
    peak = float(np.exp(-1.0))
    return (UP if x.greatest < peak else Monotone.DOWN if x.least > peak else NEITHER,)


def _squared(e: Any, c: Call, g: Expr) -> tuple[Expr]:
    return (e.mul(g, e.mul(e.number(2), c.args[0])),)


def _logarithm_of(o: Any, x: Any) -> Any:
    """Logarithm log(x), with 0 at x = 0, where it is multiplied by x."""
    return o.log(o.where(o.eq(x, 0.0), 1.0, x))


ELEMENTWISE: tuple[Atom, ...] = (
    Atom(
        "square",
        "x squared",
        (1, 1),
        entrywise,
        lower=lambda o, c, x: x * x,
        bounds=lambda c, x: x.square(),
        curvature=always(CONVEX),
        monotone=even,
        vjp=_squared,
        cvxpy=lambda cp, c, x: cp.square(x),
        integer=whole,
        proximal=proximal.square,
        form=forms.SQUARE,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.even(np.square),
        latex=r"\left(#1\right)^2",
    ),
    Atom(
        "sqrt",
        "the square root",
        (1, 1),
        entrywise,
        lower=lambda o, c, x: o.sqrt(x),
        bounds=lambda c, x: x.sqrt(),
        curvature=always(CONCAVE),
        monotone=up,
        vjp=lambda e, c, g: (e.div(g, e.mul(e.number(2), c)),),
        cvxpy=lambda cp, c, x: cp.sqrt(x),
        allowed=needs("a nonnegative argument", nonnegative),
        proximal=proximal.square_root,
        form=forms.ROOT,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.monotone(np.sqrt, 0.0),
        latex=r"\sqrt{#1}",
    ),
    Atom(
        "exp",
        "e to the power x",
        (1, 1),
        entrywise,
        lower=lambda o, c, x: o.exp(x),
        bounds=lambda c, x: x.exp(),
        curvature=always(CONVEX),
        monotone=up,
        vjp=lambda e, c, g: (e.mul(g, c),),
        cvxpy=lambda cp, c, x: cp.exp(x),
        proximal=proximal.exponential,
        form=forms.EXPONENTIAL,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.monotone(np.exp),
        latex=r"\exp\left(#1\right)",
    ),
    Atom(
        "log",
        "the natural logarithm",
        (1, 1),
        entrywise,
        lower=lambda o, c, x: o.log(x),
        bounds=lambda c, x: x.log(),
        curvature=always(CONCAVE),
        monotone=up,
        vjp=lambda e, c, g: (e.div(g, c.args[0]),),
        cvxpy=lambda cp, c, x: cp.log(x),
        allowed=needs("a positive argument", positive),
        proximal=proximal.logarithm,
        form=forms.LOGARITHM,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.monotone(np.log, 0.0),
        latex=r"\log\left(#1\right)",
    ),
    Atom(
        "log1p",
        "log(1 + x)",
        (1, 1),
        entrywise,
        lower=lambda o, c, x: o.log1p(x),
        bounds=lambda c, x: x.log1p(),
        curvature=always(CONCAVE),
        monotone=up,
        vjp=lambda e, c, g: (e.div(g, e.add(e.number(1), c.args[0])),),
        cvxpy=lambda cp, c, x: cp.log1p(x),
        allowed=needs("an argument above -1", lambda x: x.least > -1),
        proximal=proximal.logarithm_of_one_more,
        form=forms.Logarithm(1.0),
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.monotone(np.log1p, -1.0),
        latex=r"\log\left(1 + #1\right)",
    ),
    Atom(
        "logistic",
        "log(1 + exp(x))",
        (1, 1),
        entrywise,
        lower=lambda o, c, x: o.maximum(x, 0.0) + o.log1p(o.exp(-o.abs(x))),
        bounds=lambda c, x: x.logistic(),
        curvature=always(CONVEX),
        monotone=up,
        vjp=lambda e, c, g: (e.mul(g, e.call("_sigmoid", c.args[0])),),
        cvxpy=lambda cp, c, x: cp.logistic(x),
        form=forms.SOFT_PLUS,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.monotone(lambda v: np.logaddexp(0.0, v)),
        latex=r"\log\left(1 + e^{#1}\right)",
    ),
    Atom(
        "huber",
        "x**2 where |x| <= M, else 2 * M * |x| - M**2; M is 1 unless given",
        (1, 2),
        entrywise,
        lower=_huber_lower,
        bounds=_huber_bounds,
        curvature=_huber_curvature,
        monotone=even,
        vjp=_huber_vjp,
        cvxpy=_huber_in_cvxpy,
        allowed=_huber_allowed,
        proximal=proximal.huber,
        parameters=("x", "M"),
        regularity=Regularity.SMOOTH,
        exact=True,
        decided=pieces.huber,
    ),
    Atom(
        "entr",
        "-x * log(x), and 0 at 0",
        (1, 1),
        entrywise,
        lower=lambda o, c, x: -x * _logarithm_of(o, x),
        bounds=_entropy_bounds,
        curvature=always(CONCAVE),
        monotone=_entropy_monotone,
        vjp=lambda e, c, g: (e.minus(e.mul(g, e.add(e.call("log", c.args[0]), e.number(1)))),),
        cvxpy=lambda cp, c, x: cp.entr(x),
        allowed=needs("a nonnegative argument", nonnegative),
        proximal=proximal.entropy,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.entropy,
    ),
    Atom(
        "kl_div",
        "x * log(x / y) - x + y",
        (2, 2),
        entrywise,
        lower=lambda o, c, x, y: divergences.relative_entropy(o, x, y) + (y - x),
        bounds=divergences.kl_bounds,
        curvature=always(CONVEX),
        monotone=divergences.kl_monotone,
        vjp=divergences.kl_vjp,
        cvxpy=lambda cp, c, x, y: cp.kl_div(x, y),
        allowed=divergences.allowed,
        regularity=Regularity.SMOOTH,
        exact=True,
    ),
    Atom(
        "rel_entr",
        "x * log(x / y)",
        (2, 2),
        entrywise,
        lower=lambda o, c, x, y: divergences.relative_entropy(o, x, y),
        bounds=divergences.relative_bounds,
        curvature=always(CONVEX),
        monotone=divergences.relative_monotone,
        vjp=divergences.relative_vjp,
        cvxpy=lambda cp, c, x, y: cp.rel_entr(x, y),
        allowed=divergences.allowed,
        regularity=Regularity.SMOOTH,
        exact=True,
    ),
    Atom(
        "inv_pos",
        "1 / x for positive x",
        (1, 1),
        entrywise,
        lower=lambda o, c, x: 1.0 / x,
        bounds=lambda c, x: _ONE / x.maximum(_ZERO),
        curvature=always(CONVEX),
        monotone=down,
        vjp=lambda e, c, g: (e.minus(e.div(g, e.square(c.args[0]))),),
        cvxpy=lambda cp, c, x: cp.inv_pos(x),
        allowed=needs("a positive argument", positive),
        proximal=proximal.inverse,
        form=forms.RECIPROCAL,
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.reciprocal,
        latex=r"\frac{1}{#1}",
    ),
    Atom(
        "power",
        "x to the power p",
        (2, 2),
        entrywise,
        proximal=proximal.power,
        parameters=("x", "p"),
        form=forms.Power(),
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.power,
        **powers.POWER_RULES,
    ),
)
