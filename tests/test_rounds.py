"""Sums over stretches of rounds against the same sums over every round: never below, and above by less than a thousandth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oco
from oco.compiler.algorithms.classic import path_weight
from oco.compiler.algorithms.xie2020 import ORGFW
from oco.compiler.theory.schedule import Floats, Rounds, Schedule
from oco.compiler.theory.settings import along, parse_formula, schedule_symbols

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
N = 50_000
CLOSE = ("sqrt(t)", "3 * t", "1 / t", "t**(3/4) + 2", "t**2", "t - sqrt(t)", "sqrt(t) * log(t + 1)", "7", "t**(-1/3)")
BENT = ("floor(sqrt(t))", "max(30, sqrt(t))", "min(90, sqrt(t))", "abs(t - 7000.5)", "exp(-t / 9000)", "2**(t / 5000)")
ROUNDING = 1e-10


def both(formula: str, rounds: Rounds) -> tuple[Schedule, Schedule]:
    """The formula over stretches, and over each round."""
    read = parse_formula(formula, schedule_symbols())
    return along(read, rounds, N), along(read, Rounds.every(N), N)


def above(found: Floats, true: Floats, rounds: Rounds, most: float = np.inf) -> None:
    """`found` at the ends of the stretches is at least what is true there, and at most by this share more."""
    wanted = true[rounds.last.astype(int) - 1]
    size = np.maximum(np.abs(wanted), 1e-9)
    assert ((found - wanted) / size).min() >= -ROUNDING
    assert ((found - wanted) / size).max() <= most


def test_few_stretches_cover_all_rounds() -> None:
    for n in (1, 999, 1000, 1001, 5000, 10**6, 10**15):
        rounds = Rounds.of(n)
        assert rounds.n == n and rounds.count.sum() == n and (rounds.count > 0).all()
        assert len(rounds.last) <= 1001 + 50 * max(0.0, np.log2(n / 1000))
    assert Rounds.of(1000).single and not Rounds.of(1100).single


@pytest.mark.parametrize("modulus", [2.0, 0.3, 1e-7])
@pytest.mark.parametrize("formula", ["1 / ({0} * t)", "1 / sqrt(({0} * t)**2)", "t**(-1) / {0}"])
def test_inverse_steps_that_grow_by_the_modulus_grow_by_nothing_more(formula: str, modulus: float) -> None:
    """The steps of strongly convex losses: what is left beside the modulus must not add up over the rounds."""
    thin, _ = both(formula.format(modulus), Rounds.of(N))
    assert thin.inverse.growth(modulus)[-1] <= 1e-9 * modulus * N


@pytest.mark.parametrize("formula", CLOSE + BENT)
def test_sums_over_stretches_are_upper_bounds(formula: str) -> None:
    """Sums, sums of inverses, growth, peaks, parts of sums and the heaviest walk; close for smooth formulas."""
    rounds = Rounds.of(N)
    thin, full = both(formula, rounds)
    most = 1e-3 if formula in CLOSE else np.inf
    above(thin.sums(), full.sums(), rounds, most)
    above(thin.growth(), full.growth(), rounds, most)
    above(thin.growth(0.003), full.growth(0.003), rounds, 2 * most)
    above(thin.peaks(), full.peaks(), rounds, most)
    if full.positive and thin.positive:
        above(thin.inverse.sums(), full.inverse.sums(), rounds, most)
    assert full.nondecreasing or not thin.nondecreasing
    assert thin.nondecreasing or not full.nondecreasing
    for path in (0.3, 17.7, N / 3.3, 2.0 * N):
        above(path_weight(thin, 1.0, path), path_weight(full, 1.0, path), rounds, most)


def test_values_between_the_ends_are_enclosed() -> None:
    """Each round's value, and its change from the round before, lie in the enclosures of their stretch."""
    rounds = Rounds.of(N)
    stretch = np.searchsorted(rounds.last, np.arange(1, N + 1))
    late = stretch[stretch >= 1000]
    for formula in CLOSE + BENT:
        thin, full = both(formula, rounds)
        slack = 1e-9 * np.abs(full.last[len(stretch) - len(late) :])
        values, change = full.last[-len(late) :], np.diff(full.last)[-len(late) :]
        for x, (low, high) in ((values, thin.values), (change, thin.change)):
            assert (x >= low[late] - slack).all() and (x <= high[late] + slack).all(), formula


def test_a_double_sum_is_bounded() -> None:
    """orgfw: sum_t (D R + sum_{j<t} e_j) / t, against the double sum itself."""
    v = {"R": 2.0, "D": 3.0, "L": 0.7, "K": float(N)}
    t = np.arange(1.0, N + 1)
    grown = 2.0 * np.sqrt(36 + (t - 1) * 4.4**2) / (t + 1) + 0.7 * 4 / (2 * (t + 1))
    true = float(((6.0 + np.cumsum(grown) - grown) / t).sum())
    assert true * (1 - ROUNDING) <= ORGFW.regret(None, v) <= true * 1.001  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["tracking", "online_qp", "portfolio", "matrix_completion"])
def test_guarantees_are_at_most_a_thousandth_above_those_of_all_rounds(name: str) -> None:
    """Of every algorithm on the examples: `number`, with which the curve ends, against the sum over all rounds."""
    compared = 0
    plan = oco.compile(oco.load(EXAMPLES / f"{name}.oco"), settings="paper").with_horizon(20_000)
    for verdict in plan.verdicts:
        for bound in () if verdict.guarantee is None else verdict.guarantee.bounds:
            all_rounds, number = bound.after(Rounds.every(20_000), 20_000), bound.number(20_000)
            if all_rounds is None or number is None or not np.isfinite(all_rounds[-1]):
                continue
            assert all_rounds[-1] * (1 - ROUNDING) <= number <= all_rounds[-1] * 1.001, (verdict.name, bound.measure)
            curve = bound.curve(20_000, 20_000)
            assert curve is not None and curve[-1] == number and np.array_equal(curve[:-1], all_rounds[:-1])
            compared += 1
    assert compared >= 4


def test_guarantees_of_restarted_methods_too() -> None:
    model = oco.parse(
        "model m\nhorizon T unknown\ndecision x[2] in ball(1)\nstream c[2] in [-1, 1]\nminimize c @ x\n"
        "subject to\n    cap: x[0] <= c[1] + 1.5    each round\n"
    )
    restarted = 0
    for verdict in oco.compile(model, settings="paper").verdicts:
        if verdict.guarantee is None or "restarted" not in verdict.guarantee.theorem:
            continue
        for bound in verdict.guarantee.bounds:
            all_rounds, number = bound.after(Rounds.every(30_000), 30_000), bound.number(30_000)
            assert all_rounds is not None and number is not None
            assert all_rounds[-1] * (1 - ROUNDING) <= number <= all_rounds[-1] * 1.001, (verdict.name, bound.measure)
            assert bound.number(10**12) is not None
            restarted += 1
    assert restarted >= 2


def test_a_horizon_of_a_trillion_rounds_is_a_horizon() -> None:
    """Every algorithm has settings and a guarantee, whose regret a round falls; a learner plays."""
    plan = oco.compile(oco.load(EXAMPLES / "online_qp.oco"), settings="paper")
    far = plan.with_horizon(10**12)
    assert far.horizon == 10**12 and far.guarantee is not None
    regret, near = far.guarantee.regret(), plan.with_horizon(10**6).guarantee
    assert regret is not None and near is not None
    assert regret / 1e12 < 0.1 * (near.regret() or 0.0) / 1e6
    learner = far.learner(backend="numpy")
    learner.decide()
    learner.observe(**{s.name: np.zeros(s.shape) + s.lower for s in plan.canonical.streams})
    assert learner.round == 2


def test_stretches_are_not_many() -> None:
    """A guarantee at 10^12 rounds reads fewer than twice as many numbers as one at 10^4."""
    assert len(Rounds.of(10**12).last) < 2.2 * len(Rounds.of(10**4).last)
