"""The smallest box around a polyhedron: by few linear programs where rows state bounds, and never too small."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import oco
from oco.compiler.domains import cut, domain, in_units
from oco.compiler.domains.programs import LinearPrograms
from oco.compiler.problem.canonical import canonical


@pytest.fixture
def counted(monkeypatch):
    """How many linear programs are solved."""
    solved, program = [], LinearPrograms.solve
    monkeypatch.setattr(LinearPrograms, "solve", lambda *args: solved.append(1) or program(*args))
    return solved


def ends(A, b):
    """The same entry by entry."""
    found = [
        linprog(sign * axis, A_ub=A, b_ub=b, bounds=(None, None)).fun * sign
        for sign in (1.0, -1.0)
        for axis in np.eye(A.shape[1])
    ]
    return np.array(found).reshape(2, -1)


@pytest.mark.parametrize("seed", range(4))
def test_a_polytope_has_the_ends_of_linear_programs_and_no_vertex_outside(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(40, 9))
    b = rng.uniform(0.5, 2, 40) * 10.0 ** (3 * seed - 4)
    d = domain("polytope", A.shape[1:], A, b)
    expected = ends(A, b)
    width = expected[1] - expected[0]
    assert np.all(np.abs([d.lower, d.upper] - expected) <= 1e-9 * width)
    for c in rng.normal(size=(20, 9)):
        x = d.lmo_array(c)
        assert np.all(d.lower - 1e-12 * width <= x) and np.all(x <= d.upper + 1e-12 * width)


def test_a_box_with_cuts_takes_few_programs(counted):
    n = 60
    a, top = np.linspace(1, 2, n), 0.3 * n
    d = cut(domain("box", (n,), 0.0, 1.0), np.array([a, a[::-1]]), np.array([top, top]))
    np.testing.assert_array_equal([d.lower, d.upper], [np.zeros(n), np.ones(n)])
    assert len(counted) < 20


def test_a_bound_that_no_point_meets_gives_way_to_the_one_that_is_met(counted):
    """x + y <= 1 leaves nothing of x <= 5; y <= 0.25 holds, and x >= 0.1 with it."""
    A = np.array([[1.0, 1], [1, 0], [0, 1], [-1, 0], [0, -1]])
    d = domain("polytope", (2,), A, np.array([1.0, 5, 0.25, -0.1, 0]))
    np.testing.assert_allclose([d.lower, d.upper], [[0.1, 0], [1, 0.25]], rtol=1e-14, atol=0)


def test_units_keep_the_ends(counted):
    rng = np.random.default_rng(7)
    d = domain("polytope", (12,), rng.normal(size=(60, 12)), np.ones(60))
    before = len(counted)
    scaled = in_units(d, np.zeros(()), 8.0)
    assert len(counted) - before <= 1  # the largest ball within
    np.testing.assert_array_equal(scaled.lower, d.lower / 8)
    np.testing.assert_array_equal(scaled.upper, d.upper / 8)


@pytest.mark.parametrize(
    "text", ["x[0] + x[1] + x[2] <= 1", "3 * x[0] + 7 * x[1] + 0.1 * x[2] <= 2.9", "x[0] <= x[1] / 3"]
)
def test_rounded_corners_leave_no_bound_outside_the_box_that_is_cut(text: str) -> None:
    """1e-17 below 0 takes the sign from `fee @ x`, so that a budget in total would be refused."""
    model = oco.parse(f"model m\nhorizon T = 9\ndecision x[3] in box(0, 1) with {text}\nminimize sum(x)\n")
    d = canonical(model).blocks[0].domain
    assert (d.lower == 0).all() and (d.upper <= 1).all()
