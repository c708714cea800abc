"""Bandits with arms: probabilities, estimates and the bound of Tsallis-INF, beside literal ones."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import oco

Array = np.ndarray[Any, Any]
T, K, C = 600, 5, 4.0
TEXT = f"""\
model arms
horizon T = {T}
decision p[{K}] in simplex rounded
stream reward[{K}] in [0, 2]
maximize reward @ p
feedback bandit
"""


@cache
def plan() -> Any:
    return oco.compile(oco.parse(TEXT))


def rewards(seed: int) -> Array:
    """Rewards of 0 and 2, with chances that change places in the middle."""
    rng = np.random.default_rng(seed)
    chances = np.linspace(0.2, 0.6, K)
    later = np.arange(T)[:, None] >= T // 2
    return 2.0 * (rng.random((T, K)) < np.where(later, chances[::-1], chances))


def probabilities(L: Array, eta: float) -> Array:
    """Minimizer of <L, u> - (2 / eta) sum sqrt(u) over the simplex, by bisection of its multiplier."""
    ends = L.min() - np.sqrt(len(L)) / eta - 1e-9, L.min() - 1 / eta
    mu = brentq(lambda m: ((eta * (L - m)) ** -2.0).sum() - 1, *ends, xtol=1e-15) if len(L) > 1 else L[0] - 1 / eta
    x = (eta * (L - mu)) ** -2.0
    return x / x.sum()


def literal(reward: Array, arms: Array) -> tuple[Array, Array]:
    """Probabilities of all rounds (T, K) where these arms were drawn (T,), and L in the end."""
    L, x = np.zeros(K), np.zeros((T, K))
    for t in range(T):
        eta = min(1.0, C / np.sqrt(t + 1))
        x[t] = probabilities(L, eta)
        b = np.where(x[t] >= eta**2, 0.5, 0.0)
        L, k = L + b, arms[t]
        L[k] += ((2 - reward[t, k]) / 2 - b[k]) / x[t, k]
    return x, L - L.min()


def test_it_is_chosen_for_arms_and_for_nothing_else() -> None:
    assert plan().algorithm == "tsallis-inf"
    assert [v.name for v in plan().choice.usable] == ["tsallis-inf"]
    with pytest.raises(oco.OcoError, match="the draw alone"):
        oco.compile(oco.parse(TEXT.replace("simplex rounded", "{0, 1}")))
    with pytest.raises(oco.OcoError, match="not linear"):
        oco.compile(oco.parse(TEXT.replace("reward @ p", "reward @ p - sum_squares(p)")))
    with pytest.raises(oco.OcoError, match="one of several arms"):
        oco.compile(oco.parse(TEXT.replace(" rounded", "")), algorithm="tsallis-inf")


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_a_run_is_the_literal_one(backend: str) -> None:
    """With the arms of a run the literal recursion has the estimates of the learner, and its probabilities are those of the arms."""
    reward, learner = rewards(1), plan().learner(backend=backend, seed=3)
    arms = np.zeros(T, dtype=int)
    for t in range(T):
        p = learner.decide()
        assert sorted(p) == [0.0] * (K - 1) + [1.0]
        arms[t] = int(np.argmax(p))
        learner.observe(loss=-reward[t, arms[t]])
    x, L = literal(reward, arms)
    apart = (arms[:, None] == np.arange(K)).sum(axis=0) - x.sum(axis=0)
    assert (abs(apart) <= 4 * np.sqrt((x * (1 - x)).sum(axis=0))).all()
    np.testing.assert_allclose(learner.values["L"], L, rtol=1e-9, atol=1e-9)


def test_numpy_and_c_draw_alike_and_fleets_do() -> None:
    data = {"reward": rewards(2)}
    runs = [plan().run(data, backend=b, seed=7).decisions for b in ("numpy", "c")]
    np.testing.assert_array_equal(*runs)
    fleet, learners = plan().fleet(2, seeds=(7, 8)), [plan().learner(seed=s) for s in (7, 8)]
    for t in range(20):
        p = fleet.decide()
        np.testing.assert_array_equal(p, [learner.decide() for learner in learners])
        losses = -(p @ data["reward"][t])
        fleet.observe(loss=losses)
        for learner, loss in zip(learners, losses, strict=True):
            learner.observe(loss=loss)


@pytest.mark.parametrize("eta", [1.0, 0.5, 0.1, 0.01])
def test_the_lemma_of_the_proof_holds(eta: float) -> None:
    """Mean of the sum of s_i <= eta sqrt(K) / 4 + (3/2) K eta^2, with s_i as the greatest value over v on a fine grid."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        x, losses = rng.dirichlet(np.full(K, rng.choice([0.05, 0.3, 2.0]))) + 1e-9, rng.integers(0, 2, K) * 1.0
        x /= x.sum()
        b = np.where(x >= eta**2, 0.5, 0.0)
        total = 0.0
        for k in range(K):
            y = b - 0.5
            y[k] = (losses[k] - b[k]) / x[k] + b[k] - 0.5
            q = eta * np.sqrt(x) * y
            assert (q >= -0.5 - 1e-9).all()
            s = np.sqrt(x) * q**2 / (eta * (1 + q))
            v = x[:, None] * np.linspace(0, 4, 4001) ** 2
            grid = y[:, None] * (x[:, None] - v) - (np.sqrt(v) - np.sqrt(x[:, None])) ** 2 / (eta * np.sqrt(x[:, None]))
            assert (grid.max(axis=1) <= s + 1e-9 * (1 + abs(s))).all()
            total += x[k] * s.sum()
        assert total <= eta * np.sqrt(K) / 4 + 1.5 * K * eta**2


def test_the_bound_holds_against_an_adversary_and_shrinks_with_the_rounds() -> None:
    """The best arm loses at times, the others win at others: mean regret of 20 runs is below the bound, which falls below the most."""
    data = {"reward": rewards(6)}
    bound = plan().guarantee.regret_bound.number
    regrets = [plan().run(data, backend="c", seed=s).regret("static") for s in range(20)]
    assert np.mean(regrets) <= bound(T)
    long = oco.compile(oco.parse(TEXT.replace(f"T = {T}", "T = 1000000"))).guarantee.regret_bound.number
    assert long(10**6) < 0.02 * 2 * 10**6
