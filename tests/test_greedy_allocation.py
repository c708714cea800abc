"""Totals over many entries: greedy_allocation from the cheapest on and projecting without sorting, against sorting and exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_domains_c import operations
from test_domains_hostile import SCALES, entries
from thorough import turns

from oco.backends.contract import Contract
from oco.backends.python.selection import weighted_quantile
from oco.backends.registry import backend
from oco.compiler.domains import Domain, cut, domain, greedy_allocation
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Field, Type
from oco.compiler.ir.trace import Tracer
from oco.dsl.primitives import PRIMITIVES

N = 3000
LARGE = 1e308
FLOAT = DType.FLOAT
ROUNDINGS = 16 * N * 2.0**-53
"""Of the size of an entry: how far their sum may be off."""
Array = np.ndarray


def clouds(n: int = N) -> dict[str, Array]:
    rng = np.random.default_rng(2)
    return {
        "normal": rng.standard_normal(n),
        "cauchy": rng.standard_cauchy(n),
        "few values": np.round(rng.standard_normal(n)),
        "equal": np.zeros(n),
        "rising": np.arange(n) / n,
        "falling": -np.arange(n) / n,
        "periodic": np.arange(n) % 10 - 4.0,
        "one value often": np.where(rng.random(n) < 0.9, 0.5, rng.standard_normal(n)),
        "halving": np.ldexp(1.0, -(np.arange(n) % 1000)),
        "far": np.tile([1e150, -1e150], n // 2),
        "signs of zero": np.where(rng.random(n) < 0.5, 0.0, -0.0),
    }


def greedy(prices: Array, room: Array, amount: float) -> list[Fraction]:
    """What each entry gets, one after the other from the cheapest on, in rational arithmetic."""
    got, left = [Fraction(0)] * len(prices), Fraction(amount)
    for k in sorted(range(len(prices)), key=lambda k: (prices[k], k)):
        got[k] = min(Fraction(float(room[k])), left)
        left -= got[k]
    return got


@given(
    st.lists(st.tuples(entries, st.sampled_from([0.0, 1.0, 0.25]) | st.floats(0, 1)), min_size=1, max_size=12),
    st.floats(0, 1),
    st.sampled_from(SCALES),
)
def test_filling_by_the_last_price_is_filling_in_order(rows, share: float, scale: float) -> None:
    """Both rules give what rational arithmetic gives, to rounding, at any scale, with ties and zeros."""
    prices, room = np.array(rows).T
    amount = scale * share * room.sum()
    exact = greedy(prices, scale * room, amount)
    types = (Type(FLOAT, prices.shape), Type(FLOAT, room.shape))
    with pytest.MonkeyPatch.context() as patch:
        for most in (0, 12):
            patch.setattr(greedy_allocation, "SORTED", most)
            (found,) = as_numpy("fill", lambda t, p, r: greedy_allocation.filled(t, p, r, amount), *types)(
                prices, scale * room
            )
            worst = max(abs(Fraction(float(a)) - b) for a, b in zip(found, exact))
            assert worst <= Fraction(scale) * Fraction(1, 10**14)


def in_c() -> Callable[..., float]:
    t = Tracer("quantile")
    made = trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (1,)))],
        feedback=[Field("keys", Type(FLOAT, (N,))), Field("weights", Type(FLOAT, (N,))), Field("amount", Type(FLOAT))],
        init=lambda start: {"found": t.lift(0.0)},
        decide=lambda state, drawn: {"x": t.zeros((1,))},
        update=lambda state, seen, drawn: {
            "found": t.maximum(t.minimum(t.weighted_quantile(*seen.values()), LARGE), -LARGE)
        },
    )
    compiled = backend("c").compile(made, Contract("", "", None, {"x": np.zeros(1)}))

    def quantile(*args: Any) -> float:
        found = float(compiled.update(1, 0.0, *args)[1])
        return math.copysign(math.inf, found) if abs(found) == LARGE else found  # a learner's state is finite

    return quantile


def test_quantiles_of_many_entries_are_those_of_sorting() -> None:
    """Whole weights add up exactly, so that the key is the same to the bit, in NumPy and in C."""
    rng, native = np.random.default_rng(5), in_c()
    several = {"equal": np.ones(N), "several": rng.integers(0, 4, N) * 1.0, "rare": (rng.random(N) < 0.01) * 1.0}
    hostile = {
        "with NaN": np.where(rng.random(N) < 0.3, np.nan, rng.standard_normal(N)),
        "all NaN": np.full(N, np.nan),
        "infinite": rng.choice([-np.inf, np.inf, 1.0, 2.0], N),
    }
    for name, keys in {**clouds(), **hostile}.items():
        for weights in several.values():
            whole = float(weights.sum())
            for amount in (0.0, 1.0, np.floor(whole / 3), whole - 1, whole, whole + 1):
                expected = PRIMITIVES["weighted_quantile"](keys, weights, amount)
                if amount > 0:
                    assert weighted_quantile(keys, weights, amount) == expected, (name, amount)
                    assert native(keys, weights, amount) == expected, (name, amount)
                else:  # nothing lighter than the least key is asked for, and none below it weighs
                    below = [weights[keys < f(keys, weights, amount)].sum() for f in (weighted_quantile, native)]
                    assert below == [0, 0], name


SETS: dict[str, Callable[[float], Domain]] = {
    "budget": lambda s: domain("budget", (N,), s * np.linspace(-1, 0, N), s * np.linspace(0, 2, N), 0.1 * N * s),
    "capped": lambda s: domain("capped_simplex", (N,), 5 * s / N, s),
    "wide": lambda s: domain("capped_simplex", (N,), 0.5 * s, s),
    "row": lambda s: cut(domain("box", (N,), -s, 2 * s), np.linspace(-1, 2, N)[None], 3 * s),
    "row-equal": lambda s: cut(domain("box", (N,), 0, s), E=1 + np.arange(N)[None] % 7 / 8, f=0.2 * N * s),
}


@pytest.mark.parametrize(("name", "way"), turns([*SETS], [("numpy", 1.0), ("numpy", 1e150), ("c", 1e-150)]))
def test_many_entries_are_projected_and_filled(name: str, way: tuple[str, float]) -> None:
    """As by the interpreter, which sorts, and in the set."""
    target, scale = way
    d = SETS[name](scale)
    program = operations(d)
    rule = backend(target).compile(program, Contract("", "", None, {"x": np.zeros(1)})).update
    places = {f.name: k for k, f in enumerate(program.state)}
    state = [np.zeros(d.shape) for _ in places][1:]
    for cloud, v in clouds().items():
        v = np.clip(scale * v, -1e150, 1e150)
        p, x = d.project_array(v), d.lmo_array(v)
        found = rule(1, *state, v, d.centre())
        assert d.contains(p, 1e-12) and d.contains(x, 10 * ROUNDINGS), cloud
        assert d.contains(found[places["project"]], ROUNDINGS), cloud
        far = 1e-12 * max(d.radius, float(np.abs(v).max()))
        np.testing.assert_allclose(found[places["project"]], p, rtol=0, atol=far)
        np.testing.assert_allclose(found[places["lmo"]], x, rtol=0, atol=1e-12 * scale * N)


@pytest.mark.parametrize("name", SETS)
def test_many_entries_are_nearest_and_cheapest(name: str) -> None:
    """A projection is clip(v - theta a) with one theta; a linear minimum is that of CVXPY."""
    d, v = SETS[name](1.0), np.random.default_rng(8).standard_normal(N)
    p = d.project_array(v)
    x = cp.Variable(N)
    problem = cp.Problem(cp.Minimize(v @ x), d.constraints(cp, x))
    problem.solve(solver=cp.HIGHS)
    assert v @ d.lmo_array(v) == pytest.approx(problem.value, rel=1e-7)
    for y in (d.centre(), d.lmo_array(p - v), d.lmo_array(v - p)):
        assert (v - p) @ (y - p) <= 1e-9 * d.radius * np.linalg.norm(v)
