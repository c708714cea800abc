"""Comparators of norms of matrices: closed forms, sets of matrices, constraints that cannot hold, and sums too long for one program."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from comparator_cases import check_certificate, drawn, problem, reference

from oco.evaluation.comparators import ComparatorBudget, ComparatorStatus
from oco.evaluation.comparators.compare import compare, compare_prefixes
from oco.evaluation.data import load_data


def test_singular_values_are_shrunk() -> None:
    """min |X - M|^2 / 2 + r |X|_nuclear = M with each singular value less r, and not below zero (Cai, Candes & Shen 2010)."""
    text = "decision X[4, 3] in box(-9, 9)\nstream M[4, 3] in [-2, 2]\nminimize 0.5 * sum_squares(X - M) + {} * {}(X)\n"
    p = problem(text.format(0.7, "nuclear_norm"), 8)
    data = drawn(p, 8)
    static, dynamic = compare(p, data, "static"), compare(p, data, "dynamic")
    for found, targets in ((static, data.array("M").mean(axis=0)[None]), (dynamic, data.array("M"))):
        check_certificate(found)
        u, s, vt = np.linalg.svd(targets, full_matrices=False)
        shrunk = u @ (np.maximum(s - 0.7, 0.0)[:, :, None] * vt)
        np.testing.assert_allclose(np.reshape(found.decision["X"], shrunk.shape), shrunk, atol=1e-4)


def test_the_largest_singular_values_are_cut() -> None:
    """min |X - M|^2 / 2 + r sigma_max(X) = M less its projection on the nuclear ball of radius r (Moreau)."""
    p = problem(
        "decision X[3, 3] in box(-9, 9)\nstream M[3, 3] in [-2, 2]\nminimize 0.5 * sum_squares(X - M) + 2 * sigma_max(X)\n",
        1,
    )
    data = drawn(p, 1)
    ball = problem("decision X[3, 3] in nuclear_ball(2)\nstream M[3, 3] in [-2, 2]\nminimize sum_squares(X - M)\n", 1)
    found, M = compare(p, data, "static"), data.array("M")[0]
    check_certificate(found)
    np.testing.assert_allclose(found.decision["X"], M - ball.blocks[0].domain.project_array(M), atol=1e-4)


MATRICES = {
    "a nuclear ball": "decision X[3, 4] in nuclear_ball(1.5)\nstream B[3, 4] in [-1, 1]\nminimize nuclear_norm(X - B)\n",
    "a spectrahedron": "decision X[3, 3] in spectrahedron(2)\nstream B[3, 3] in [-1, 1]\nminimize sigma_max(X - B) + sum(B * X)\n",
    "kinks on a spectrahedron": (
        "decision X[3, 3] in spectrahedron(1)\nstream B[3, 3] in [-1, 1]\nminimize sum(abs(X - B))\n"
        "subject to\n    near: nuclear_norm(X - B) <= 3.5    on average\n"
    ),
    "a limit on a nuclear ball": (
        "decision X[3, 4] in nuclear_ball(2)\nstream B[3, 4] in [-1, 1]\nminimize sum(B * X)\n"
        "subject to\n    small: sigma_max(X) <= 0.7    each round\n"
    ),
    "two decisions": (
        "decision X[2, 3] in box(-1, 1)\ndecision w[3] in simplex\nstream B[2, 3] in [-1, 1]\nstream a[3] in [-1, 1]\n"
        "minimize nuclear_norm(X - B) + a @ w - log(w[0] + 0.1)\nsubject to\n"
        "    size: sigma_max(X + B) <= 1.5 + w[1]    each round\n    same: a @ w == sum(X) / 10    on average\n"
    ),
}


@pytest.mark.parametrize("body", MATRICES.values(), ids=MATRICES.keys())
def test_norms_of_matrices_on_sets_of_matrices(body: str) -> None:
    p = problem(body, 4)
    data = drawn(p, 4)
    static, dynamic = compare(p, data, "static"), compare(p, data, "dynamic")
    check_certificate(static)
    check_certificate(dynamic)
    assert static.value == pytest.approx(reference(p, data, [0, 1, 2, 3], averages=True), rel=1e-6)
    assert dynamic.losses is not None
    assert dynamic.losses[2] == pytest.approx(reference(p, data, [2], averages=False), rel=1e-6)
    assert all(b.domain.contains(static.decision[b.name], 1e-7) for b in p.blocks)
    several = compare_prefixes(p, data, np.array([2, 4]))
    assert several.status == (ComparatorStatus.CERTIFIED,) * 2
    assert several.value[0] == pytest.approx(reference(p, data, [0, 1], averages=True), rel=1e-6)


def test_norms_that_cannot_be_small_in_two_rounds_are_broken_least() -> None:
    """sigma_max(X - B) <= 0.25 for B = 0, 0 and the identity: half of it breaks them by 0.25, which is least."""
    p = problem(
        "decision X[2, 2] in box(-1, 2)\nstream b in [0, 1]\nminimize sum_squares(X)\n"
        "subject to\n    near: sigma_max(X - b * eye(2)) <= 0.25    each round\n",
        3,
    )
    data = load_data(p, {"b": np.array([0.0, 0.0, 1.0])})
    found = compare(p, data, "static")
    assert (
        found.status is ComparatorStatus.LEAST_VIOLATING
        and 3 in found.impossible
        and "cannot hold together" in found.words
    )
    np.testing.assert_allclose(found.decision["X"], 0.5 * np.eye(2), atol=1e-3)
    assert found.violation[0] == pytest.approx(0.25, abs=1e-4)
    assert compare(p, data, "dynamic").status is ComparatorStatus.CERTIFIED
    several = compare_prefixes(p, data, np.array([2, 3]))
    assert several.status == (ComparatorStatus.CERTIFIED, ComparatorStatus.LEAST_VIOLATING) and several.value[
        0
    ] == pytest.approx(0.0, abs=1e-6)


def test_means_of_norms_that_cannot_hold() -> None:
    p = problem(
        "decision X[2, 3] in box(-1, 1)\nstream B[2, 3] in [-1, 1]\nminimize sum(B * X)\n"
        "subject to\n    far: nuclear_norm(X - 3 - B) <= 0.3    on average\n",
        4,
    )
    data = drawn(p, 4)
    static, dynamic = compare(p, data, "static"), compare(p, data, "dynamic")
    assert static.status is ComparatorStatus.LEAST_VIOLATING and "means" in static.why
    assert dynamic.status is ComparatorStatus.LEAST_VIOLATING and dynamic.impossible.tolist() == [1, 2, 3, 4]


def test_sums_of_norms_too_long_for_one_program_go_along_their_slopes(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "decision X[3, 4] in box(-1, 1)\nstream B[3, 4] in [-1, 1]\nminimize nuclear_norm(X - B)\n"
    p = problem(body, 60)
    data = drawn(p, 60)
    whole = compare(p, data, "static")
    monkeypatch.setattr(sys.modules["oco.evaluation.comparators.conic_comparators"], "NODE", 1.0)
    rough = compare(p, data, "static")
    assert "Clarabel" in whole.method and "Lagrangian" in rough.method
    assert rough.bound <= whole.value + 1e-6 and whole.bound <= rough.value + 1e-6
    assert rough.value == pytest.approx(whole.value, rel=1e-3) and rough.gap <= 1e-2 * rough.value
    assert compare_prefixes(p, data, np.array([20, 60])).value[1] == pytest.approx(whole.value, rel=1e-3)


def test_norms_of_matrices_beyond_the_budget_cost_at_least_nothing() -> None:
    p = problem("decision X[3, 4] in nuclear_ball(1)\nstream B[3, 4] in [-1, 1]\nminimize nuclear_norm(X - B)\n", 30)
    data = drawn(p, 30)
    late = compare(p, data, "dynamic", ComparatorBudget(seconds=0.0))
    assert late.status is ComparatorStatus.NOT_COMPUTED and "budget" in late.words and late.bound == 0.0
    static = compare(p, data, "static", ComparatorBudget(seconds=0.0))
    assert (
        static.status is ComparatorStatus.INTERVAL and static.bound <= compare(p, data, "static").value <= static.value
    )
