"""Norms of affine functions by the first-order method: Clarabel's answers, closed forms, and bounds that hold from the first step."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pytest

from oco.compiler.problem.canonical import Canonical, canonical
from oco.dsl.load import parse
from oco.evaluation.comparators import Budget, Status
from oco.evaluation.comparators.compare import compare
from oco.evaluation.comparators.conic import Program
from oco.evaluation.comparators.conic_comparators import _Whole
from oco.evaluation.comparators.conic_solver import Answer, solve_conic
from oco.evaluation.comparators.functions import Rounds
from oco.evaluation.comparators.norms import solve_norms
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
    "no curvature": "decision X[4, 3] in box(-1, 1)\nminimize sum(a * X) + 0.4 * nuclear_norm(X)\n",
}


def problem_of(text: str, seed: int = 0) -> tuple[Canonical, Data]:
    problem = canonical(parse(HEAD + text))
    values = np.clip(np.random.default_rng(seed).normal(0.4, 0.7, (12, 4, 3)), -2, 2)
    return problem, load_data(problem, {"a": values})


def program_of(text: str) -> Program:
    problem, data = problem_of(text)
    whole = _Whole.of(Rounds.of(problem, data.given, np.arange(1, 13)))
    assert whole is not None
    return whole.program


@pytest.mark.parametrize("name", CASES)
def test_the_first_order_method_finds_what_clarabel_finds(name: str) -> None:
    p, until = program_of(CASES[name]), perf_counter() + 20
    found, meant = solve_norms(p, until), solve_conic(p, until)
    assert isinstance(found, Answer) and isinstance(meant, Answer)
    value, bound = (float(v[0]) for v in (found.certified.f, found.certified.bound))
    assert value == pytest.approx(float(meant.certified.f[0]), rel=1e-6)
    assert bound <= float(meant.certified.f[0]) + 1e-9 * abs(value) and value - bound <= 1e-6 * abs(value)
    assert found.certified.near[0] <= 1e-9


@pytest.mark.parametrize("name", CASES)
def test_a_bound_holds_whenever_the_time_is_over(name: str) -> None:
    p = program_of(CASES[name])
    found, meant = solve_norms(p, 0.0), solve_conic(p, perf_counter() + 20)
    assert isinstance(found, Answer) and isinstance(meant, Answer)
    best = float(meant.certified.bound[0])
    assert found.certified.bound[0] <= best + 1e-7 * abs(best)
    assert found.certified.f[0] >= best - 1e-7 * abs(best)


@pytest.mark.parametrize(
    "text",
    (
        f"decision X[4, 3] in box(-1, 1)\n{SQUARES} + nuclear_norm(X)\nsubject to\n    g: sum(X) <= 1\n",
        f"decision X[4, 3] in box(-1, 1)\n{SQUARES} + nuclear_norm(X - a)\n",
        f"decision X[4, 3] in box(-1, 1)\n{SQUARES}\n",
    ),
)
def test_other_programs_are_left_to_others(text: str) -> None:
    assert solve_norms(program_of(text), perf_counter() + 5) is None


def test_a_large_regularizer_shrinks_the_singular_values_of_the_mean() -> None:
    """min sum_t |X - a_t|^2 / 2 + tau |X|_*: those of the mean, less tau (Cai, Candes & Shen 2010, Theorem 2.1)."""
    rng = np.random.default_rng(3)
    a = np.clip(rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40)) * 0.3 + 0.2 * rng.normal(size=(20, 60, 40)), -2, 2)
    text = (
        "model m\nhorizon T = 20\nstream a[60, 40] in [-2, 2]\ndecision X[60, 40] in ball(60)\n"
        "minimize 0.5 * sum_squares(X - a) + 1.5 * nuclear_norm(X)\n"
    )
    problem = canonical(parse(text))
    found = compare(problem, load_data(problem, {"a": a}), "static", Budget(seconds=30))
    u, s, v = np.linalg.svd(a.mean(axis=0), full_matrices=False)
    best = (u * np.maximum(s - 1.5, 0)) @ v
    value = 0.5 * np.square(best - a).sum() + 20 * 1.5 * np.maximum(s - 1.5, 0).sum()
    assert found.status is Status.CERTIFIED and found.method == "augmented Lagrangian"
    assert found.value == pytest.approx(value, rel=1e-7) and found.bound <= value * (1 + 1e-9)
    np.testing.assert_allclose(found.decision["X"], best, atol=1e-3)
