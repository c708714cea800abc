"""Prices of budgets in units of what came: against a literal reference, the inequalities of the proof, and bounds that are too wide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import oco
from oco.dsl.text.formatter import format_text
from tests.test_pacing import BACKENDS, KINDS, SIMPLEX, planned, sequence, text

FACTORS = (0.05, 1.0)


def reference(data: dict[str, Any], budgets: Any, c: float) -> tuple[Any, Any, Any]:
    """Decisions (T, 4), and mu and S (T, K), of `SIMPLEX`, whose last channel costs nothing: the least entry of the priced slope."""
    T, K = len(data["gain"]), len(budgets)
    mu, S, P, spent, rows = np.zeros(K), np.ones(K), 0.0, np.zeros(K), []
    for t in range(T):
        a = np.array([np.append(data[k][t], 0.0) for k in ("fee", "load")])
        slope = -np.append(data["gain"][t], 0.0)
        P = max(P, np.sqrt(2) * np.linalg.norm(slope))
        w = np.eye(4)[np.argmin(slope + (P * mu * T / budgets) @ a)]
        fits = [1.0, *(left / cost for left, cost in zip(budgets - spent, a @ w) if cost > left)]
        x = np.eye(4)[3] + min(fits) * (w - np.eye(4)[3])
        spent = spent + a @ x
        over = a @ x * T / budgets - 1
        S = S + over**2
        mu = np.maximum(mu + c * over / np.sqrt(S), 0)
        rows.append((x, mu, S))
    return tuple(map(np.array, zip(*rows)))  # type: ignore[return-value]


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_decides_as_the_listing(backend: str) -> None:
    rng = np.random.default_rng(2)
    data = {"fee": rng.uniform(0, 2, (60, 3)), "gain": rng.uniform(0, 1, (60, 3)), "load": rng.uniform(0, 1, (60, 3))}
    model = SIMPLEX[: SIMPLEX.index("using")] + "using pacing with c = 0.3\n"
    learner = oco.compile(oco.parse(model)).learner(backend=backend)
    xs, mus, sums = reference(data, np.array([12.0, 6.0]), 0.3)
    assert mus.max(axis=0).min() > 0.1  # both budgets have a price
    for t in range(60):
        np.testing.assert_allclose(learner.decide(**{k: v[t] for k, v in data.items()}), xs[t], atol=1e-6)
        learner.observe()
        np.testing.assert_allclose(learner.value("mu"), mus[t], atol=1e-6)
        np.testing.assert_allclose(learner.value("S"), sums[t], rtol=1e-6)


@pytest.mark.parametrize("c", FACTORS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_inequalities_of_the_proof_hold_with_what_came(kind: str, c: float) -> None:
    T, budget = 256, 51.2
    data, over, regret = sequence(kind, T, 3), 0.0, 0.0
    plan = oco.compile(oco.parse(text(T, budget, more=f"using pacing with c = {c}, units = user\n")))
    learner = plan.learner(backend="numpy")
    for fee, gain in zip(data["fee"], data["gain"]):
        x = np.asarray(learner.decide(fee=fee, gain=gain))
        learner.observe()
        over, regret = over + float(fee @ x) * T / budget - 1, regret - float(gain @ x)
        S, mu, P = (float(np.squeeze(learner.value(n))) for n in ("S", "mu", "P"))
        assert mu <= 1 + c
        assert over <= (1 + c) * np.sqrt(S) / c
    np.testing.assert_allclose(P, np.sqrt(3) * np.linalg.norm(data["gain"], axis=1).max())
    regret -= planned(data, budget / T)
    most = 3 * T / budget
    bound = P * (((1 + c) ** 2 / (2 * c) + c + (1 + c) / c) * np.sqrt(S) + most)
    assert regret <= bound <= plan.guarantee.regret_curve(T)[-1]


def test_the_promise_is_the_bound_at_the_largest_of_what_may_come() -> None:
    T, c, P, C = 400, 0.5, 3.0, 3 / 0.2
    plan = oco.compile(oco.parse(text(T, 0.2 * T, more=f"using pacing with c = {c}\n")))
    root = np.sqrt(1 + T * (C - 1) ** 2)
    wanted = P * (((1 + c) ** 2 / (2 * c) + c) * root + C + (1 + c) / c * root)
    assert plan.guarantee.regret_curve(T)[-1] == pytest.approx(wanted, rel=1e-5)


def seats(wide: float) -> str:
    return format_text(f"""\
model seats
horizon T = 800
decision accept in box(0, 1)
context price in [0, {600 * wide:g}]
context use[3] in [0, {wide:g}]
maximize price * accept
subject to
    left: use * accept <= [130, 145, 110]  in total
using pacing
""")


def requests(seed: int) -> dict[str, Any]:
    """Requests for one to three legs, dearer with each."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 6, 800)
    use = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 1, 1]], dtype=float)[kind]
    mean = np.array([120, 100, 130, 190, 200, 270])[kind]
    return {"use": use, "price": np.minimum(mean * rng.lognormal(0, 0.4, 800), 600)}


def test_bounds_ten_times_as_wide_change_little_and_the_best_in_hindsight_is_near() -> None:
    for seed in range(2):
        data = requests(seed)
        found = linprog(-data["price"], data["use"].T, [130, 145, 110], bounds=(0, 1))
        near, wide = (oco.compile(oco.parse(seats(k))).run(data) for k in (1, 10))
        assert abs(wide.loss.sum() / near.loss.sum() - 1) < 0.001
        assert near.loss.sum() < 0.93 * found.fun
        assert (data["use"].T @ wide.decisions.ravel() <= [130, 145, 110]).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_is_spent_before_there_is_something_to_gain(backend: str) -> None:
    data = sequence("drawn", 60, 1)
    data["gain"][:20] = 0
    x = oco.compile(oco.parse(text(60, 9, more="using pacing\n"))).run(data, backend=backend).decisions
    assert not x[:20].any() and x[20:].any()


def test_pilot_runs_take_prices_though_a_mixture_applies() -> None:
    """Rules of a mixture spend evenly; what prices gain over them in a short run is within chance."""
    model, data = seats(1).replace("using pacing\n", ""), requests(0)
    plan = oco.compile(oco.parse(model), data=data)
    assert plan.choice.winner is not None and plan.choice.winner.name == "pacing"
    assert any(v.algorithm.mixes for v in plan.choice.usable)
