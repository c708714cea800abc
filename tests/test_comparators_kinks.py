"""Norms of affine functions by the first-order method: Clarabel's answers, closed forms, and bounds that hold from the first step."""

from __future__ import annotations

from time import perf_counter

import cvxpy as cp
import numpy as np
import pytest
from thorough import one_in

from oco.compiler.problem.canonical import Canonical, canonical
from oco.dsl.load import parse
from oco.evaluation.comparators import ComparatorBudget, ComparatorStatus, conic_comparators
from oco.evaluation.comparators.compare import compare
from oco.evaluation.comparators.conic import ConicProgram
from oco.evaluation.comparators.conic_comparators import _Whole
from oco.evaluation.comparators.conic_solver import Answer, solve_conic
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.comparators.kinks import kinked_program
from oco.evaluation.comparators.region import Region, region
from oco.evaluation.data import Data, load_data

HEAD = "model m\nhorizon T = 12\nstream a[4, 3] in [-2, 2]\n"
SQUARES = "minimize sum_squares(X - a)"
CASES = {
    "nuclear norm over a box": f"decision X[4, 3] in box(-0.5, 1)\n{SQUARES} + nuclear_norm(X)\n",
    "nuclear norm over a ball": f"decision X[4, 3] in ball(1)\n{SQUARES} + 0.5 * nuclear_norm(X)\n",
    "spectral norm over a nuclear ball": f"decision X[4, 3] in nuclear_ball(1.5)\n{SQUARES} + sigma_max(2 * X - 1)\n",
    "two norms": f"decision X[4, 3] in box(-1, 1)\n{SQUARES} + sigma_max(X) + 2 * nuclear_norm(X.T - 0.1)\n",
    "two decisions": "decision X[4, 3] in box(-1, 1)\ndecision y[2] in simplex\n"
    "minimize sum_squares(X - a) + nuclear_norm(X) + norm2(y - [0.3, 0.1]) + 3 * y[0]\n",
    "absolute values": "decision X[4, 3] in box(-1, 1)\nminimize sum(abs(X - a)) + 0.2 * sum_squares(X)\n",
    "the largest of two pieces": "decision X[4, 3] in ball(2)\nminimize max(X - a) + sum(maximum(X, -a, 0.5 * X + 0.1))\n",
    "positive parts and a norm": "decision X[4, 3] in box(-1, 1)\nminimize sum(pos(a - X)) + 0.3 * nuclear_norm(X) + sum(abs(X))\n",
    "the least of two pieces": "decision X[4, 3] in nuclear_ball(1)\nminimize -sum(minimum(X, a)) + norm2(X - a)\n",
    "under a limit": f"decision X[4, 3] in box(-1, 1)\n{SQUARES} + nuclear_norm(X)\nsubject to\n    g: sum(X) <= 1\n",
    "under limits that differ": "decision X[4, 3] in box(-1, 1)\nminimize sum(abs(X - a))\nsubject to\n    g: sum(a * X) <= 2\n",
    "beside a logarithm": "decision X[4, 3] in box(0, 1)\nminimize sum(abs(X - a)) - sum(log(1 + X + a[0, 0] ** 2))\n",
    "in the mean": "decision X[4, 3] in box(-1, 1)\nminimize norm2(X - a)\nsubject to\n"
    "    h: sum(X[0]) == 0.5 * a[0, 0]    on average\n    g: sum(X) >= 1 + a[1, 1]    on average\n",
    "no curvature": "decision X[4, 3] in box(-1, 1)\nminimize sum(a * X) + 0.4 * nuclear_norm(X)\n",
}


def problem_of(text: str, seed: int = 0) -> tuple[Canonical, Data]:
    problem = canonical(parse(HEAD + text))
    values = np.clip(np.random.default_rng(seed).normal(0.4, 0.7, (12, 4, 3)), -2, 2)
    return problem, load_data(problem, {"a": values})


def program_of(text: str) -> tuple[ConicProgram, Region]:
    problem, data = problem_of(text)
    whole = _Whole.of(RoundArrays.of(problem, data.given, np.arange(1, 13)))
    assert whole is not None
    return whole.program, region(problem)


def solve_kinked(p: ConicProgram, place: Region, until: float) -> Answer:
    kinked = kinked_program(p, place)
    assert kinked is not None
    return kinked.solved(until)


@pytest.mark.parametrize("name", one_in(2, CASES))
def test_the_first_order_method_finds_what_clarabel_finds(name: str) -> None:
    (p, place), until = program_of(CASES[name]), perf_counter() + 20
    found, meant = solve_kinked(p, place, until), solve_conic(p, until)
    assert isinstance(found, Answer) and isinstance(meant, Answer)
    value, bound = (float(v[0]) for v in (found.certified.f, found.certified.bound))
    assert value == pytest.approx(float(meant.certified.f[0]), rel=1e-6)
    assert bound <= float(meant.certified.f[0]) + 1e-9 * abs(value) and value - bound <= 1e-6 * abs(value)
    assert found.certified.violation[0] <= 1e-6


@pytest.mark.parametrize("name", CASES)
def test_a_bound_holds_whenever_the_time_is_over(name: str) -> None:
    p, place = program_of(CASES[name])
    found, meant = solve_kinked(p, place, 0.0), solve_conic(p, perf_counter() + 20)
    assert isinstance(found, Answer) and isinstance(meant, Answer)
    best = float(meant.certified.bound[0])
    assert found.certified.bound[0] <= best + 1e-7 * abs(best)
    if found.certified.violation[0] <= 1e-9:
        assert found.certified.f[0] >= best - 1e-7 * abs(best)


@pytest.mark.parametrize(
    "text",
    (
        f"decision X[4, 3] in box(-1, 1)\n{SQUARES} + nuclear_norm(X)\nsubject to\n    g: norm1(X) <= 1\n",
        "decision X[4, 3] in box(-1, 1)\nminimize exp(max(X - a))\n",
        f"decision X[4, 3] in box(-1, 1)\n{SQUARES} + norm2(abs(X - a))\n",
        f"decision X[4, 3] in box(-1, 1)\n{SQUARES}\n",
    ),
)
def test_other_programs_are_left_to_others(text: str) -> None:
    assert kinked_program(*program_of(text)) is None


def test_a_large_regularizer_shrinks_the_singular_values_of_the_mean() -> None:
    """min sum_t |X - a_t|^2 / 2 + tau |X|_*: those of the mean, less tau (Cai, Candes & Shen 2010, Theorem 2.1)."""
    rng = np.random.default_rng(3)
    a = np.clip(rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40)) * 0.3 + 0.2 * rng.normal(size=(20, 60, 40)), -2, 2)
    text = (
        "model m\nhorizon T = 20\nstream a[60, 40] in [-2, 2]\ndecision X[60, 40] in ball(60)\n"
        "minimize 0.5 * sum_squares(X - a) + 1.5 * nuclear_norm(X)\n"
    )
    problem = canonical(parse(text))
    found = compare(problem, load_data(problem, {"a": a}), "static", ComparatorBudget(seconds=30))
    u, s, v = np.linalg.svd(a.mean(axis=0), full_matrices=False)
    best = (u * np.maximum(s - 1.5, 0)) @ v
    value = 0.5 * np.square(best - a).sum() + 20 * 1.5 * np.maximum(s - 1.5, 0).sum()
    assert found.status is ComparatorStatus.CERTIFIED and found.method == "augmented Lagrangian"
    assert found.value == pytest.approx(value, rel=1e-7) and found.bound <= value * (1 + 1e-9)
    np.testing.assert_allclose(found.decision["X"], best, atol=1e-3)


def test_the_sum_of_distances_is_least_at_the_median() -> None:
    a = np.random.default_rng(5).uniform(-2, 2, 3001)
    problem = canonical(
        parse("model m\nhorizon T = 3001\ndecision x in box(-2, 2)\nstream a in [-2, 2]\nminimize abs(x - a)\n")
    )
    rounds = RoundArrays.of(problem, {"a": a}, np.arange(3001) + 1)
    whole = _Whole.of(rounds)
    assert whole is not None
    found = solve_kinked(whole.program, region(problem), perf_counter() + 20).certified
    least = np.abs(a - np.median(a)).sum()
    assert found.f[0] == pytest.approx(least, rel=1e-6) and found.bound[0] <= least * (1 + 1e-12)
    assert found.x[0, 0] == pytest.approx(np.median(a), abs=1e-3)


def test_a_point_that_breaks_a_limit_is_drawn_towards_the_start() -> None:
    p, place = program_of(CASES["under limits that differ"])
    kinked = kinked_program(p, place)
    assert kinked is not None and np.all(kinked.limits.at(kinked.padded(place.start)) < 0)
    outside = np.full(12, 1.0)
    assert kinked.limits.at(kinked.padded(outside)).max() > 0
    inside = kinked.drawn_in(outside)
    assert kinked.limits.at(kinked.padded(inside)).max() == pytest.approx(0.0, abs=1e-12)
    share = (inside - outside) / (place.start - outside)
    np.testing.assert_allclose(share, share[0])


def test_limits_that_cannot_hold_are_not_met_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conic_comparators, "SPARSE", 1.0)
    problem, data = problem_of(
        "decision X[4, 3] in box(-1, 1)\nminimize sum(abs(X - a))\nsubject to\n    g: sum(X) >= 13\n"
    )
    found = compare(problem, data, "static", ComparatorBudget(seconds=0.5))
    assert (
        found.status is ComparatorStatus.NOT_COMPUTED
        and "met within the budget" in found.why
        and np.isfinite(found.bound)
    )


@pytest.mark.parametrize("most", (False, True))
def test_multipliers_of_maxima_are_the_nearest_ones(most: bool) -> None:
    """Nonnegative entries with a given sum, or at most that; maxima of two and of three pieces."""
    text = "decision X[4, 3] in box(-1, 1)\nminimize sum(abs(X - a)) + sum(maximum(X, -a, 0.5 * X + 0.1))\n"
    kinked = kinked_program(*program_of(text))
    assert kinked is not None and kinked.maxima.members.shape[1] == 3
    maxima, rng = kinked.maxima, np.random.default_rng(0)
    y = rng.normal(size=len(maxima.rows.constant))
    total = rng.uniform(0.1, 2, len(maxima.members))
    near = maxima.onto(y, total, np.full(len(total), most))
    for members, sum_ in zip(maxima.members[::29], total[::29]):
        rows = members[members >= 0]
        x = cp.Variable(len(rows), nonneg=True)
        within = cp.sum(x) <= sum_ if most else cp.sum(x) == sum_
        cp.Problem(cp.Minimize(cp.sum_squares(x - y[rows])), [within]).solve(solver="CLARABEL")
        np.testing.assert_allclose(near[rows], x.value, atol=1e-6)
