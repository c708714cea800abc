"""Closed forms of proximal points against bisection in fifty digits on the condition of optimality, which knows nothing of them."""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from thorough import one_in

from oco.dsl.atoms import ATOMS
from oco.dsl.build import call
from oco.dsl.evaluate import OPS
from oco.dsl.expressions import Expr, Kind, Name, constant

mp.mp.dps = 50
X = Name("x", Kind.DECISION, shape=())
Slope = Callable[[mp.mpf], mp.mpf]

# The derivative of each function, the least z of its domain, and the sign that makes it convex.
CASES: dict[str, tuple[Expr, Slope, float, int]] = {
    "abs": (call("abs", X), mp.sign, -np.inf, 1),
    "pos": (call("pos", X), lambda z: mp.mpf(z > 0), -np.inf, 1),
    "neg": (call("neg", X), lambda z: -mp.mpf(z < 0), -np.inf, 1),
    "hinge": (call("hinge", X), lambda z: -mp.mpf(z < 1), -np.inf, 1),
    "square": (call("square", X), lambda z: 2 * z, -np.inf, 1),
    "power 2": (call("pow", X, constant(2)), lambda z: 2 * z, -np.inf, 1),
    "huber": (call("huber", X), lambda z: 2 * min(max(z, -1), 1), -np.inf, 1),
    "huber 3": (call("huber", X, constant(3.0)), lambda z: 2 * min(max(z, -3), 3), -np.inf, 1),
    "log": (call("log", X), lambda z: 1 / z, 0.0, -1),
    "log1p": (call("log1p", X), lambda z: 1 / (1 + z), -1.0, -1),
    "exp": (call("exp", X), mp.exp, -np.inf, 1),
    "entr": (call("entr", X), lambda z: -mp.log(z) - 1, 0.0, -1),
    "sqrt": (call("sqrt", X), lambda z: 1 / (2 * mp.sqrt(z)), 0.0, -1),
    "power 1/2": (call("pow", X, constant(0.5)), lambda z: 1 / (2 * mp.sqrt(z)), 0.0, -1),
    "inv_pos": (call("inv_pos", X), lambda z: -1 / z**2, 0.0, 1),
    "power -1": (call("power", X, constant(-1.0)), lambda z: -1 / z**2, 0.0, 1),
}
VALUES = [-1e6, -300.0, -7.3, -1.0, -1e-3, 0.0, 1e-6, 0.5, 1.0, 1.0001, 4.0, 55.0, 1e3, 1e6]
WEIGHTS = [1e-12, 1e-6, 0.02, 0.5, 1.0, 3.7, 100.0, 1e5]


def root(slope: Slope, floor: float, v: float, w: float) -> mp.mpf:
    """Where (z - v) + w slope(z) changes its sign, by bisection; on a domain from `floor` in the logarithm of the distance."""
    value, weight = mp.mpf(v), mp.mpf(w)

    def f(z: mp.mpf) -> mp.mpf:
        return z - value + weight * slope(z)

    if floor == -np.inf:
        low, high, place = mp.mpf(-1e8), mp.mpf(1e8), lambda s: s
    else:
        low, high, place = mp.mpf(-100), mp.mpf(60), lambda s: mp.mpf(floor) + mp.exp(s)
    for _ in range(230):
        middle = (low + high) / 2
        low, high = (middle, high) if f(place(middle)) < 0 else (low, middle)
    return place((low + high) / 2)


@pytest.mark.parametrize("name", one_in(2, CASES))
def test_pull_of_every_row_is_that_of_the_proximal_point(name: str) -> None:
    expr, slope, floor, sign = CASES[name]
    v, w = (a.ravel() for a in np.meshgrid(VALUES, WEIGHTS))
    rule = ATOMS[expr.atom].proximal  # type: ignore[attr-defined]
    assert rule is not None
    found = np.broadcast_to(rule(OPS, expr, v, sign * w), v.shape)
    own = 1.0 if name in ("log1p", "hinge") else 0.0  # the size of the number in 1 + x
    for k in range(len(v)):
        z = root(slope, floor, v[k], sign * w[k])
        assert float(abs(mp.mpf(found[k]) - (mp.mpf(v[k]) - z))) <= 4e-15 * (own + abs(v[k]) + abs(float(z))) + 1e-40, (
            v[k],
            w[k],
        )


@pytest.mark.parametrize("name", CASES)
def test_without_weight_nothing_pulls_within_the_domain(name: str) -> None:
    expr, _, floor, sign = CASES[name]
    v = np.array([x for x in VALUES if x > floor])
    rule = ATOMS[expr.atom].proximal  # type: ignore[attr-defined]
    assert rule is not None
    assert np.abs(rule(OPS, expr, v, sign * np.zeros(len(v)))).max() <= 1e-15 * np.abs(v).max()


def test_powers_without_a_closed_form_say_so() -> None:
    assert ATOMS["power"].proximal is not None
    assert ATOMS["power"].proximal(OPS, call("power", X, constant(3.5)), 1.0, 1.0) is None
