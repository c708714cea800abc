"""Atoms that only derivatives make: signs, masks, weights, and the transposes of broadcasting and indexing."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.atoms import forms, pieces, replay
from oco.dsl.atoms.base import Atom, Regularity
from oco.dsl.atoms.constructors import no_vjp
from oco.dsl.atoms.index import cvxpy_scatter, lower_scatter, slice_ends
from oco.dsl.atoms.reductions import AXIS
from oco.dsl.atoms.rules import AFFINE, NEITHER, UNKNOWN, UP, always, axis, kept, neither, up
from oco.dsl.atoms.shapes import entrywise
from oco.dsl.dims import Shape, known
from oco.dsl.expressions import Call, Constant, Expr, Slice
from oco.dsl.intervals import Interval, interval, point
from oco.dsl.primitives import ArrayOps

RANK_TOLERANCE = 1e-12  # of the largest singular value


def _given(call: Call) -> Shape:
    """Shape stored in the call itself."""
    return call.shape


def _argument(call: Call) -> Shape:
    return call.args[0].shape


def _step(strict: bool) -> Any:
    """Step function: 1 where x > 0 (strict) or x >= 0, else 0."""

    def bounds(c: Call, x: Interval) -> Interval:
        ends = [(end > 0) if strict else (end >= 0) for end in (x.lo, x.hi)]
        return Interval(ends[0].astype(float), ends[1].astype(float), x.shape)

    return bounds


def _within(lo: float, hi: float) -> Any:
    return lambda c, *args: interval(lo, hi, c.shape)


def _over(o: Any, c: Call, x: Any, reduce: str) -> Any:
    """Reduction of x that broadcasts against it."""
    result = getattr(o, reduce)(x, axis=axis(c))
    return o.reshape(result, shape=kept(c)) if c.args[0].shape else result


def _peak(o: Any, c: Call, x: Any) -> Any:
    """Weight 1 shared equally among the largest entries."""
    largest = o.to_float(o.eq(x, _over(o, c, x, "max")))
    return largest / _over(o, c, largest, "sum")


def _softmax(o: Any, c: Call, x: Any) -> Any:
    raised = o.exp(x - _over(o, c, x, "max"))
    return raised / _over(o, c, raised, "sum")


def _softmax_vjp(e: Any, c: Call, g: Expr) -> tuple[Expr]:
    """Cotangent s (g - <s, g>)."""
    along = dict(c.options)
    inner = e.spread(e.call("sum", e.broadcast(e.mul(g, c), c.shape), **along), c)
    return (e.mul(c, e.sub(g, inner)),)


def _unit(o: Any, c: Call, x: Any) -> Any:
    """Unit vector x over its Euclidean norm; 0 at 0."""
    size = o.sqrt(_over(o, c, x * x, "sum"))
    return x / o.where(o.eq(size, 0.0), 1.0, size)


def _unit_vjp(e: Any, c: Call, g: Expr) -> tuple[Expr]:
    """Cotangent (g - u <u, g>) / |x|."""
    along = dict(c.options)
    inner = e.spread(e.call("sum", e.broadcast(e.mul(g, c), c.shape), **along), c)
    size = e.spread(e.call("norm2", c.args[0], **along), c)
    return (e.div(e.sub(g, e.mul(c, inner)), size),)


def _polar(o: Any, c: Call, x: Any) -> Any:
    """Product U V' over the singular values that are not 0: a subgradient of the nuclear norm."""
    u, s, vt = o.svd(x)
    return (u * o.to_float(o.lt(RANK_TOLERANCE * o.max(s, axis=None), s))) @ vt


def _leading(o: Any, c: Call, x: Any) -> Any:
    """Outer product of the leading singular pair: a subgradient of the largest singular value."""
    u, _, vt = o.svd(x)
    lead = o.eq(o.iota(n=min(known(c.shape))), 0)
    return (u * o.to_float(lead)) @ vt


def _spread(c: Call, reduced: Interval) -> Interval:
    """Range of a reduction, shaped so that it broadcasts against the argument."""
    return reduced.reshape(known(kept(c))) if c.args[0].shape else reduced


def _peak_bounds(c: Call, x: Interval) -> Interval:
    """Range of the weights: an entry that is below another everywhere has none; one that is alone on top has all of it."""
    floor = _spread(c, x.max(axis(c)))
    lo, hi = x.expanded()
    ahead = (hi >= floor.lo).astype(np.float64)
    rivals = interval(ahead, ahead).sum(axis(c))
    alone = ahead * np.broadcast_to(_spread(c, rivals).hi <= 1, lo.shape)
    return Interval(alone, ahead, x.shape)


def _softmax_bounds(c: Call, x: Interval) -> Interval:
    """Range of softmax: each entry grows with its own argument and falls with the others."""
    if not x.bounded:
        return interval(0.0, 1.0, x.shape)
    top = _spread(c, x.max(axis(c)))
    shifted = x - Interval(top.hi, top.hi, top.shape)
    low, high = (Interval(end, end, x.shape).exp() for end in (shifted.lo, shifted.hi))
    least = low / (low + (_spread(c, high.sum(axis(c))) - high))
    most = high / (high + (_spread(c, low.sum(axis(c))) - low))
    return Interval(np.clip(least.lo, 0.0, 1.0), np.clip(most.hi, 0.0, 1.0), x.shape)


def _unit_bounds(c: Call, x: Interval) -> Interval:
    """Range of x over its norm, between -1 and 1."""
    size = _spread(c, x.square().sum(axis(c)).sqrt())
    result = x / size if size.positive else interval(-1.0, 1.0, x.shape)
    return Interval(np.clip(result.lo, -1.0, 1.0), np.clip(result.hi, -1.0, 1.0), x.shape)


def _scatter_bounds(c: Call, values: Interval, *items: Interval) -> Interval:
    """Range of sums at positions: 0 or a sum of at most all values; of those that fall on a position where it is known."""
    if all(i.is_point for i in items):
        return _scattered(c, values, items)
    many = point(float(max(values.size, 1)))
    lo, hi = (many * values.min()).lo, (many * values.max()).hi
    return Interval(np.minimum(lo, 0.0), np.maximum(hi, 0.0), known(c.shape))


def _scattered(c: Call, values: Interval, items: tuple[Interval, ...]) -> Interval:
    """Sums at known positions, widened by their rounding where several values fall on one entry."""
    known_places = iter(items)
    ends = [
        known(slice_ends(i, d)) if isinstance(i, Slice) else next(known_places).expanded()[0].astype(np.int64)
        for i, d in zip(c.args[1:], c.shape)
    ]
    shape = known(c.args[0].shape)
    lo, hi, count, size = (
        lower_scatter(ArrayOps(), c, np.array(np.broadcast_to(v, shape)), *ends)
        for v in (values.lo, values.hi, np.ones(()), values.magnitude)
    )
    slack = np.where(count > 1, size * count * 2.0**-52, 0.0)
    return interval(lo - slack, hi + slack)


def _sigmoid(o: Any, c: Call, x: Any) -> Any:
    """Sigmoid 1 / (1 + exp(-x)) without overflow: through tanh's half-angle on |x|."""
    small = o.exp(-o.abs(x))
    return o.where(o.le(0.0, x), 1.0, small) / (1.0 + small)


def _sigmoid_slope(o: Any, c: Call, x: Any) -> Any:
    """Derivative of the sigmoid, exp(-|x|) / (1 + exp(-|x|))^2."""
    small = o.exp(-o.abs(x))
    whole = 1.0 + small
    return small / (whole * whole)


def _clip_bounds(c: Call, x: Interval, limit: Interval) -> Interval:
    return x.maximum(-limit).minimum(limit)


def _clip_vjp(e: Any, c: Call, g: Expr) -> tuple[Expr, Expr | None]:
    """Cotangents: 1 towards x inside; the sign of x towards M outside."""
    x, limit = c.args
    inside = e.call("_within", x, limit)
    towards_x = e.collapse(e.mul(g, inside), c.shape, x.shape)
    if isinstance(limit, Constant):
        return towards_x, None
    outside = e.mul(e.call("_sign", x), e.sub(e.number(1), inside))
    return towards_x, e.collapse(e.mul(g, outside), c.shape, limit.shape)


def _within_bounds(c: Call, x: Interval, limit: Interval) -> Interval:
    """Range of the mask, which falls with |x| and rises with M."""
    size = x.abs()
    shape = np.broadcast_shapes(x.shape, limit.shape)
    return Interval((size.hi <= limit.lo).astype(np.float64), (size.lo <= limit.hi).astype(np.float64), shape)


def _masked_bounds(c: Call, mask: Interval, y: Interval) -> Interval:
    """Range of y where the mask may be above 0, joined with 0 where it may not."""
    kept, dropped = mask.hi > 0, mask.lo <= 0
    lo = np.where(dropped, np.minimum(y.lo, 0.0), y.lo)
    hi = np.where(dropped, np.maximum(y.hi, 0.0), y.hi)
    shape = np.broadcast_shapes(mask.shape, y.shape)
    return Interval(np.where(kept, lo, 0.0), np.where(kept, hi, 0.0), shape)


def _quantile(o: Any, c: Call, rows: Any, count: Any, amount: Any) -> Any:
    """Least entry of the first `count` rows up to which there are `amount` of them, for each place of a row."""
    length, *shape = known(c.args[0].shape)
    size = int(np.prod(shape, dtype=np.int64))
    flat = o.reshape(rows, shape=(length, size))
    counts, amounts, places = o.reshape(count, shape=(size,)), o.reshape(amount, shape=(size,)), o.iota(n=length)

    def one(i: int) -> Any:
        keys = o.reshape(o.slice(flat, starts=(0, i), stops=(length, i + 1)), shape=(length,))
        own, wanted = (o.reshape(o.slice(v, starts=(i,), stops=(i + 1,)), shape=()) for v in (counts, amounts))
        return o.weighted_quantile(keys, o.to_float(o.lt(o.to_float(places), own)), wanted)

    return o.reshape(o.stack(*(one(i) for i in range(size))), shape=tuple(shape))


def _reshape_bounds(c: Call, x: Interval) -> Interval:
    return x.reshape(known(c.shape))


def _row(name: str, doc: str, **columns: Any) -> Atom:
    """Row with the common properties of internal atoms. Only the linear ones have a CVXPY equivalent: it has no signs,
    masks and weights.
    """
    defaults: dict[str, Any] = {
        "arity": (1, 1),
        "shape": entrywise,
        "curvature": always(UNKNOWN),
        "monotone": neither,
        "vjp": no_vjp,
        "cvxpy": None,
    }
    return Atom(name=name, doc=doc, **{**defaults, **columns})


_LINEAR: dict[str, Any] = {"shape": _given, "curvature": always(AFFINE), "monotone": up}

INTERNAL: tuple[Atom, ...] = (
    _row(
        "_sign",
        "-1, 0 or 1",
        lower=lambda o, c, x: o.sign(x),
        bounds=lambda c, x: x.sign(),
        monotone=up,
        form=forms.SIGN,
        away=lambda e, c: c.args[0],
        decided=pieces.sign,
        replay=replay.rising(np.sign),
    ),
    _row(
        "_positive",
        "1 where x > 0, else 0",
        lower=lambda o, c, x: o.to_float(o.lt(0.0, x)),
        bounds=_step(strict=True),
        monotone=up,
        form=forms.STEP,
        away=lambda e, c: c.args[0],
        decided=pieces.positive,
        replay=replay.rising(lambda v: (v > 0) * 1.0),
    ),
    _row(
        "_nonneg",
        "1 where x >= 0, else 0",
        lower=lambda o, c, x: o.to_float(o.le(0.0, x)),
        bounds=_step(strict=False),
        monotone=up,
        away=lambda e, c: c.args[0],
        decided=pieces.nonnegative,
        replay=replay.rising(lambda v: (v >= 0) * 1.0),
    ),
    _row(
        "_masked",
        "y where the mask is above 0, else 0, also where y is infinite",
        arity=(2, 2),
        lower=lambda o, c, mask, y: o.where(o.lt(0.0, mask), y, 0.0),
        bounds=_masked_bounds,
        monotone=lambda c, *args: (NEITHER, UP),
        vjp=lambda e, c, g: (None, e.collapse(e.call("_masked", c.args[0], g), c.shape, c.args[1].shape)),
        regularity=Regularity.SMOOTH,
        exact=True,
        decided=pieces.masked,
    ),
    _row(
        "_sigmoid",
        "1 / (1 + exp(-x))",
        lower=_sigmoid,
        bounds=lambda c, x: x.sigmoid(),
        monotone=up,
        vjp=lambda e, c, g: (e.mul(g, e.call("_bell", c.args[0])),),
        regularity=Regularity.SMOOTH,
        exact=True,
        replay=replay.monotone(replay.sigmoid),
    ),
    _row(
        "_bell",
        "the slope of _sigmoid",
        lower=_sigmoid_slope,
        bounds=lambda c, x: x.bell(),
        vjp=lambda e, c, g: (
            e.mul(g, e.mul(c, e.sub(e.number(1), e.mul(e.number(2), e.call("_sigmoid", c.args[0]))))),
        ),
        regularity=Regularity.SMOOTH,
        exact=True,
    ),
    _row(
        "_clip",
        "x cut off at -M and M",
        arity=(2, 2),
        lower=lambda o, c, x, limit: o.minimum(o.maximum(x, -limit), limit),
        bounds=_clip_bounds,
        monotone=lambda c, *args: (UP, NEITHER),
        vjp=_clip_vjp,
        regularity=Regularity.CONTINUOUS,
        exact=True,
        decided=pieces.clip,
    ),
    _row(
        "_within",
        "1 where |x| <= M, else 0",
        arity=(2, 2),
        lower=lambda o, c, x, limit: o.to_float(o.le(o.abs(x), limit)),
        bounds=_within_bounds,
        away=lambda e, c: e.call("sub", e.call("abs", c.args[0]), c.args[1]),
        decided=pieces.within,
    ),
    _row(
        "_peak",
        "the weight 1 shared among the largest entries",
        lower=_peak,
        bounds=_peak_bounds,
        options=AXIS,
        form=forms.UnitVector(),
    ),
    _row(
        "_softmax",
        "exp(x) over its sum",
        lower=_softmax,
        bounds=_softmax_bounds,
        vjp=_softmax_vjp,
        options=AXIS,
        form=forms.UnitVector(),
        regularity=Regularity.SMOOTH,
    ),
    _row(
        "_unit",
        "x over its norm",
        lower=_unit,
        bounds=_unit_bounds,
        vjp=_unit_vjp,
        options=AXIS,
        form=forms.UnitVector(),
        away=lambda e, c: e.call("norm2", c.args[0], **dict(c.options)),
    ),
    _row("_polar", "the sign of a matrix", shape=_argument, lower=_polar, bounds=_within(-1, 1), decomposes=True),
    _row(
        "_leading", "the leading singular pair", shape=_argument, lower=_leading, bounds=_within(-1, 1), decomposes=True
    ),
    _row(
        "_quantile",
        "the least entry of the first rows up to which there are an amount of them",
        arity=(3, 3),
        shape=lambda c: c.args[0].shape[1:],
        lower=_quantile,
        bounds=_within(-np.inf, np.inf),
    ),
    _row(
        "_broadcast",
        "x stretched to the call's shape",
        lower=lambda o, c, x: o.broadcast(x, shape=c.shape),
        bounds=lambda c, x: x.broadcast(c.shape),
        vjp=lambda e, c, g: (e.collapse(g, c.shape, c.args[0].shape),),
        cvxpy=lambda cp, c, x: cp.broadcast_to(x, known(c.shape)),
        form=forms.Stretched(),
        regularity=Regularity.SMOOTH,
        **_LINEAR,
    ),
    _row(
        "_reshape",
        "the entries of x in the call's shape, in C order",
        lower=lambda o, c, x: o.reshape(x, shape=c.shape),
        bounds=_reshape_bounds,
        vjp=lambda e, c, g: (e.reshape(e.broadcast(g, c.shape), c.args[0].shape),),
        cvxpy=lambda cp, c, x: cp.reshape(x, known(c.shape), order="C"),
        form=forms.Reshaped(),
        regularity=Regularity.SMOOTH,
        exact=True,
        **_LINEAR,
    ),
    _row(
        "_scatter",
        "zeros of the call's shape, with the values added at the items of an index",
        arity=(2, None),
        lower=lower_scatter,
        bounds=_scatter_bounds,
        vjp=lambda e, c, g: (e.index(e.broadcast(g, c.shape), c.args[1:]), *(None for _ in c.args[1:])),
        cvxpy=cvxpy_scatter,
        form=forms.Scattered(),
        regularity=Regularity.SMOOTH,
        **_LINEAR,
    ),
)
