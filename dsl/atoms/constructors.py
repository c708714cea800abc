"""Arrays from lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.atoms import forms, shapes
from oco.dsl.atoms.base import Atom, Regularity
from oco.dsl.atoms.rules import AFFINE, always, up
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Expr
from oco.dsl.intervals import Interval, point


def no_vjp(e: Any, c: Call, g: Expr) -> tuple[None, ...]:
    """No cotangents: the arguments are lengths or constants."""
    return (None,) * len(c.args)


def _filled_bounds(value: float) -> Any:
    return lambda c, *lengths: point(value).broadcast(c.shape)


def _counts(c: Call) -> tuple[int, int]:
    """Entries of v, and the number of repetitions of each."""
    (total,), base = known(c.shape), known(c.args[0].shape)
    length = base[0] if base else 1
    return length, total // length


def _repeat_lower(o: Any, c: Call, x: Any, count: Any) -> Any:
    length, times = _counts(c)
    total = length * times
    return o.reshape(o.broadcast(o.reshape(x, shape=(length, 1)), shape=(length, times)), shape=(total,))


def _repeat_bounds(c: Call, x: Interval, count: Interval) -> Interval:
    _, times = _counts(c)
    lo, hi = x.reshape((x.size,)).expanded()
    return Interval(np.repeat(lo, times), np.repeat(hi, times), (lo.size * times,))


def _repeat_vjp(e: Any, c: Call, g: Expr) -> tuple[Expr, None]:
    base = c.args[0]
    grouped = e.reshape(e.broadcast(g, c.shape), _counts(c))
    return e.reshape(e.call("sum", grouped, axis=1), base.shape), None


CONSTRUCTORS: tuple[Atom, ...] = (
    Atom(
        "ones",
        "an array of ones; the arguments are its shape",
        (0, None),
        shapes.filled,
        parameters=("shape",),
        lower=lambda o, c, *lengths: o.full(1.0, shape=c.shape),
        bounds=_filled_bounds(1.0),
        curvature=always(AFFINE),
        monotone=up,
        vjp=no_vjp,
        cvxpy=lambda cp, c, *lengths: cp.Constant(np.ones(c.shape)),
        form=forms.Uniform(1.0),
        regularity=Regularity.SMOOTH,
    ),
    Atom(
        "zeros",
        "an array of zeros; the arguments are its shape",
        (0, None),
        shapes.filled,
        parameters=("shape",),
        lower=lambda o, c, *lengths: o.full(0.0, shape=c.shape),
        bounds=_filled_bounds(0.0),
        curvature=always(AFFINE),
        monotone=up,
        vjp=no_vjp,
        cvxpy=lambda cp, c, *lengths: cp.Constant(np.zeros(c.shape)),
        form=forms.Uniform(0.0),
        regularity=Regularity.SMOOTH,
    ),
    Atom(
        "eye",
        "the identity matrix",
        (1, 1),
        shapes.identity,
        parameters=("n",),
        lower=lambda o, c, length: o.eye(n=c.shape[0]),
        bounds=lambda c, length: point(np.eye(c.shape[0])),
        curvature=always(AFFINE),
        monotone=up,
        vjp=no_vjp,
        cvxpy=lambda cp, c, length: cp.Constant(np.eye(c.shape[0])),
        regularity=Regularity.SMOOTH,
    ),
    Atom(
        "repeat",
        "each entry of v, k times",
        (2, 2),
        shapes.repeated,
        parameters=("v", "k"),
        lower=_repeat_lower,
        bounds=_repeat_bounds,
        curvature=always(AFFINE),
        monotone=up,
        vjp=_repeat_vjp,
        cvxpy=lambda cp, c, x, count: np.repeat(np.eye(x.size), int(count.value), axis=0) @ cp.vec(x, order="C"),
        integer=lambda c: c.args[0].integer,
        regularity=Regularity.SMOOTH,
    ),
)
