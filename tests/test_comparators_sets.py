"""Comparators over every kind of set, of functions with kinks, and in other units."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from comparator_cases import check_certificate, drawn, problem, reference

from oco.evaluation.comparators import Comparator, ComparatorStatus
from oco.evaluation.comparators.compare import compare
from oco.evaluation.data import load_data

DOMAINS = {
    "a cross-polytope by its facets": ("", "decision x[4] in l1_ball(1.5)\n"),
    "a cross-polytope by its projection": ("", "decision x[14] in l1_ball(2)\n"),
    "an ellipsoid": (
        "param P[3, 3] = [[2, 0.3, 0], [0.3, 1, 0], [0, 0, 1]]\n",
        "decision x[3] in ellipsoid(P, [1, 0, 0])\n",
    ),
    "a polytope": (
        "param A[4, 3] = [[1, 1, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1]]\n",
        "decision x[3] in polytope(A, [1, 0.5, 0.5, 0.5])\n",
    ),
    "a capped simplex": ("", "decision x[5] in capped_simplex(0.4)\n"),
    "the positive part of a ball": ("", "decision x[5] in nonneg_ball(1)\n"),
    "a ball of groups": ("", "decision x[6] in group_ball(1, [0, 0, 1, 1, 2, 2])\n"),
}


@pytest.mark.parametrize(("params", "decision"), DOMAINS.values(), ids=DOMAINS.keys())
def test_every_kind_of_set(params: str, decision: str) -> None:
    n = int(decision.split("[")[1].split("]")[0])
    body = f"{params}{decision}stream a[{n}] in [-1, 1]\nminimize sum_squares(x - 2 * a) + a @ x\n"
    p = problem(body + "subject to\n    tilt: a[0] * x[0] + x[1] <= 0.1    on average\n", 20)
    data = drawn(p, 20)
    found = compare(p, data, "static")
    assert found.status is ComparatorStatus.CERTIFIED and abs(found.gap) <= 1e-6 * abs(found.value)
    assert found.value == pytest.approx(reference(p, data, list(range(20)), averages=True), rel=1e-6)
    dynamic = compare(p, data.first(3), "dynamic")
    assert dynamic.status is ComparatorStatus.CERTIFIED
    assert dynamic.losses[2] == pytest.approx(reference(p, data, [2], averages=False), rel=1e-5)


def test_a_matrix_of_small_nuclear_norm() -> None:
    """Gathered squares: the sum over the rounds is a weighted least-squares problem, here solved by CVXPY as one."""
    text = (
        "decision X[5, 4] in nuclear_ball(2)\nstream row[6] in 0..4\nstream col[6] in 0..3\nstream y[6] in [-1, 1]\n"
        "stream G[5, 4] in [-1, 1]\nminimize 0.5 * sum_squares(X[row, col] - y)\nsubject to\n    side: sum(G * X) <= 0    on average\n"
    )
    p = problem(text, 30)
    rng = np.random.default_rng(0)
    row, col, y = rng.integers(0, 5, (30, 6)), rng.integers(0, 4, (30, 6)), rng.uniform(-1, 1, (30, 6))
    G = rng.uniform(-1, 1, (30, 5, 4))
    found = compare(p, load_data(p, {"row": row, "col": col, "y": y, "G": G}), "static")
    X = cp.Variable((5, 4))
    entries = X[row.ravel(), col.ravel()]
    constraints = [cp.normNuc(X) <= 2, cp.sum(cp.multiply(G.mean(axis=0), X)) <= 0]
    value = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(entries - y.ravel())), constraints).solve(solver="CLARABEL")
    assert found.status is ComparatorStatus.CERTIFIED and found.value == pytest.approx(value, rel=1e-6)


KINKS = {
    "absolute deviations": "decision x[3] in box(-2, 2)\nstream a[3] in [-1, 1]\nstream y in [-3, 3]\nminimize abs(a @ x - y)\n",
    "hinge losses with a shared norm": (
        "decision x[3] in ball(2)\nstream a[3] in [-1, 1]\nminimize hinge(a @ x) + 0.1 * norm1(x) + 0.01 * sum_squares(x)\n"
    ),
    "the largest of affine functions": (
        "decision x[3] in simplex\nstream A[4, 3] in [-1, 1]\nminimize max(A @ x)\nsubject to\n    first: x[0] <= 0.5    each round\n"
    ),
    "norms in constraints": (
        "decision x[4] in box(-1, 1)\nstream c[4] in [-1, 1]\nstream r in [0.5, 1]\nminimize c @ x\nsubject to\n"
        "    length: norm2(x) <= r    each round\n    spread: norm_inf(x - c) <= 1.5    on average\n"
    ),
    "smooth and kinked parts": (
        "decision x[2] in box(-3, 3)\nstream a[2] in [-2, 2]\nminimize sum_squares(x - a) + 2 * sum(abs(x - 0.5 * a)) + pos(x[0] - a[1])\n"
    ),
    "concave kinks that are subtracted": (
        "decision x[2] in box(0, 3)\nstream a[2] in [0.5, 2]\nminimize a @ x - 2 * min(a * x) - minimum(x[0], a[0])\n"
    ),
    "columns": (
        "decision X[2, 3] in box(-1, 1)\nstream B[2, 3] in [-1, 1]\n"
        "minimize sum(max(X - B, axis = 1)) - 0.2 * sum(X * B) + sum(norm1(X, axis = 0))\n"
    ),
}


@pytest.mark.parametrize("body", KINKS.values(), ids=KINKS.keys())
def test_functions_with_kinks(body: str) -> None:
    p = problem(body, 15)
    data = drawn(p, 15)
    found = compare(p, data, "static")
    check_certificate(found)
    assert found.value == pytest.approx(reference(p, data, list(range(15)), averages=True), rel=1e-5, abs=1e-5)
    dynamic = compare(p, data, "dynamic")
    check_certificate(dynamic)
    for t in (0, 7, 14):
        assert dynamic.losses[t] == pytest.approx(reference(p, data, [t], averages=False), rel=1e-5, abs=1e-5)
    assert set(found.decision) == set(dynamic.decision) == {b.name for b in p.blocks}


@pytest.mark.parametrize("loss_scale", [1e-4, 1e5])
@pytest.mark.parametrize("set_scale", [1e-3, 1e4])
@pytest.mark.parametrize("shape", ["box(0, {s})", "ball({s})", "simplex({s})"])
def test_units_do_not_matter(loss_scale: float, set_scale: float, shape: str) -> None:
    """The same problem in other units has the same decisions, and is certified as sharply."""

    def solved(f: float, s: float) -> Comparator:
        body = (
            f"decision x[4] in {shape.format(s=s)}\nstream c[4] in [-1, 1]\nstream A[2, 4] in [-1, 1]\nstream b[2] in [0.3, 1]\n"
            f"minimize {f} * (c @ x / {s} + 0.2 * sum_squares(x - {s} * c) / {s} ** 2)\n"
            f"subject to\n    limits: A @ x <= {s} * b    each round\n"
        )
        p = problem(body, 10)
        return compare(p, drawn(p, 10), "dynamic")

    plain, scaled = solved(1.0, 1.0), solved(loss_scale, set_scale)
    check_certificate(plain)
    assert scaled.status is plain.status is ComparatorStatus.CERTIFIED
    np.testing.assert_allclose(scaled.losses / loss_scale, plain.losses, atol=1e-7)
    np.testing.assert_allclose(scaled.decision["x"] / set_scale, plain.decision["x"], atol=1e-4)
