"""Predictions that count as far as they have foretold what came: noise about 0, levels that jump, and what regressions miss of late."""

from __future__ import annotations

import numpy as np
import pytest
from driving import Array, plan_for

import oco
from oco.compiler.algorithms.context_regression import LEVEL_RATE
from oco.compiler.algorithms.predictions import FORGETTING, LAST, OVERALL, places, shrunk_entries
from oco.compiler.algorithms.shrinkage import ERRORS
from oco.compiler.problem.canonical import canonical

HEDGE = """\
model hedge
horizon T = 600
context exposure in [-1, 1]
decision x in box(-2, 2)
stream ret in [-20, 20]
minimize -(ret * (exposure - x)) + 0.5 * square(exposure - x)
"""
ROUNDS = 600


def factor(pairs: Array) -> float:
    """Part of a prediction that counts, by those before it and what came, (rounds, 2): what bets on its sign won, in standard errors."""
    found = [0.0]
    for kept in (1.0, 0.98):
        share = kept ** np.arange(len(pairs))[::-1]
        d, s = pairs[pairs[:, 0] != 0].T
        share = share[pairs[:, 0] != 0]
        won = share @ (s * np.sign(d))
        square = min(share**2 @ s**2, share**2 @ (s - d) ** 2)
        found.append(1 - 3.0**2 * square / won**2 if won > 0 else 0.0)
    return max(found)


def factors(sums: Array) -> Array:
    """Factors by the sums that a learner keeps, (3, shares, ...): what bets won, squares of what came, squares of what was missed."""
    won, came, missed = sums
    square = np.divide(np.minimum(came, missed), won**2, out=np.full_like(won, np.inf), where=won > 0)
    return np.asarray(np.maximum(1 - ERRORS**2 * square, 0).max(axis=0))


def followed(ret: Array) -> Array:
    """Factors of the averages `FORGETTING` after each round of these returns, (rounds, averages)."""
    learner, found = plan_for(HEDGE, "hedged").learner(), []
    for r in ret:
        learner.decide(exposure=0.0)
        learner.observe(ret=float(r))
        found.append(factors(np.asarray(learner.value("foretold"))[:, :, : len(FORGETTING), 0]))
    return np.array(found)


def test_noise_foretells_nothing_and_a_level_that_jumps_is_followed() -> None:
    """Z standard errors, one side: less than 1% of noise counts in each row. A level of four deviations is seen as soon as the average of
    rate 0.08 has it, and the last value within as many rounds as their sum takes to outgrow Z deviations of 600 rounds of noise.
    """
    rng = np.random.default_rng(3)
    ret = rng.normal(0, 1, ROUNDS)
    ret[500:] += 4
    counts = followed(ret)
    assert (counts[20:500] > 0).mean() < 0.01
    assert (counts[520:] > 0.5)[:, [0, LAST]].all() and counts[-1, OVERALL] > 0.5
    assert (followed(rng.normal(10, 0.1, 30))[1:] > 0.99).all()


@pytest.mark.parametrize("unit", [1.0, 2.0**-20])
def test_factors_are_those_of_what_bets_on_signs_have_won(unit: float) -> None:
    """The sums of a learner against the literal ones, in any unit of the data."""
    ret = unit * np.random.default_rng(5).normal(0.3, 1, 80)
    rows, pairs = np.zeros(len(FORGETTING)), [list[tuple[float, float]]() for _ in FORGETTING]
    for t, (r, counts) in enumerate(zip(ret, followed(ret)), 1):
        if t > 1:
            for own, d in zip(pairs, rows):
                own.append((d, r))
            np.testing.assert_allclose(counts, [factor(np.array(own)) for own in pairs], rtol=1e-9, atol=1e-12)
        rows = rows + np.maximum(FORGETTING, 1 / t) * (r - rows)


def test_decisions_do_not_follow_noise() -> None:
    """What is risked beside the exposure is less than a third of what the average of all returns costs, from the fiftieth round on."""
    rng = np.random.default_rng(7)
    data = {"exposure": np.clip(0.5 * np.sin(np.arange(ROUNDS) / 30), -1, 1), "ret": rng.normal(0, 1, ROUNDS)}
    trace = plan_for(HEDGE, "hedged").run(data)
    risked = (data["exposure"] - np.asarray(trace.decisions).ravel())[50:] ** 2
    mean = np.cumsum(data["ret"]) / np.arange(1, ROUNDS + 1)
    assert risked.sum() < (mean[49:-1] ** 2).sum() / 3


def test_only_what_the_loss_is_affine_in_and_may_have_either_sign_is_shrunk() -> None:
    text = """
        model m
        horizon T = 9
        decision x[2] in box(0, 1)
        stream gain[2] in [-1, 1]
        stream price in [0, 1]
        stream level in [-1, 1]
        minimize -(gain @ x) + price * sum(x) + square(x[0] - level)
    """
    assert shrunk_entries(canonical(oco.parse(text))).tolist() == [True, True, False, False]


def test_what_regressions_miss_of_late_is_added_as_far_as_it_foretells() -> None:
    """A level that jumps by six deviations, beside a context that tells the rest, against a literal average of what is missed; the median
    error falls by a sixth.
    """
    T, text = 180, "model m\nhorizon T = 180\ncontext z in [-1, 1]\ndecision x in box(0, 60)\nstream need in [0, 60]\n"
    text += "minimize 3 * pos(need - x) + pos(x - need)\n"
    rng = np.random.default_rng(2)
    z = rng.uniform(-1, 1, T)
    need = 20 + 5 * z + rng.normal(0, 1, T) + 6 * (np.arange(T) >= 60)
    plan = oco.compile(oco.parse(text), "hedged")
    learner, (row,) = plan.learner(), places(canonical(oco.parse(text)), 1)[4]
    level, pairs, made, without = 0.0, list[tuple[float, float]](), list[float](), list[float]()
    for t in range(T):
        learner.decide(z=z[t])
        predicted = float(np.asarray(learner.value("predicted"))[row, 0])
        counts = factor(np.array(pairs)) if pairs else 0.0
        assert float(np.asarray(learner.value("off_level"))[0]) == pytest.approx(level, abs=1e-9)
        made.append(predicted)
        off = need[t] - (predicted - counts * level) if t else 0.0  # no prediction but early ones is cut to its range
        if t and level:
            pairs.append((level, off))
        level += max(LEVEL_RATE, 1 / (t + 1)) * (off - level)
        learner.observe(need=need[t])
        without.append(need[t] - off)
    errors = [float(np.median(np.abs(need - own)[70:])) for own in (np.array(made), np.array(without))]
    assert errors[0] < 5 / 6 * errors[1] and counts > 0.5
