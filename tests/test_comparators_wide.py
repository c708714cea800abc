"""Comparators of decisions with so many entries that no matrix of second derivatives fits: closed forms, and the reason where none fits."""

from __future__ import annotations

import numpy as np
import pytest
from comparator_cases import problem

from oco.evaluation.comparators import ComparatorBudget, ComparatorStatus
from oco.evaluation.comparators.compare import compare
from oco.evaluation.data import load_data

N, T = 2000, 5
NARROW = ComparatorBudget(memory=8 * N**2 // 4)
"""Room for the data and for diagonals, not for a matrix."""
DOMAINS = {"box": "box(-1, 1)", "cut box": "box(-1, 1) with sum(x) == 5", "simplex": "simplex(3)"}


def best_entries(mean: np.ndarray, shift: float) -> np.ndarray:
    """Minimizer over [-1, 1] of log(1 + exp(x)) + (mean + shift) x in each entry."""
    slope = np.clip(-(mean + shift), 1e-12, 1 - 1e-12)
    return np.asarray(np.clip(np.log(slope / (1 - slope)), -1, 1))


def closed_form(kind: str, mean: np.ndarray) -> np.ndarray:
    """Minimizer of the sum of the entries' functions, the multiplier of a total by bisection."""
    if kind == "box":
        return best_entries(mean, 0.0)
    total, floor = (5.0, -1.0) if kind == "cut box" else (3.0, 0.0)
    low, high = -3.0, 3.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(best_entries(mean, middle), floor).sum() > total else (low, middle)
    return np.maximum(best_entries(mean, (low + high) / 2), floor)


@pytest.mark.parametrize("kind", DOMAINS)
def test_separable_losses_need_no_matrix(kind: str) -> None:
    p = problem(
        f"decision x[{N}] in {DOMAINS[kind]}\nstream s[{N}] ~ uniform(-0.9, -0.1)\nminimize sum(logistic(x)) + s @ x\n",
        T,
    )
    data = load_data(p)
    found = compare(p, data, "static", NARROW)
    mean = data.read(0, T)["s"].mean(axis=0)
    x = closed_form(kind, mean)
    exact = T * float(np.log1p(np.exp(x)).sum() + mean @ x)
    assert found.status is ComparatorStatus.CERTIFIED
    assert found.value == pytest.approx(exact, rel=1e-5) and found.bound <= exact + 1e-6 * abs(exact)


def test_what_needs_a_matrix_says_so() -> None:
    p = problem(
        f"decision x[{N}] in box(-1, 1)\nstream s[{N}] ~ uniform(0, 1)\nminimize (s @ x) ** 2 + sum(exp(x))\n", T
    )
    found = compare(p, load_data(p), "static", NARROW)
    assert found.status is ComparatorStatus.NOT_COMPUTED and "second derivatives" in found.words
