"""Domains against CVXPY: projection, linear minimisation, support, hull and inner ball, each from the set as CVXPY states it."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from domain_cases import BRIEF, CASES, Case, points

from oco.compiler.domains import Domain

FINE = 1e-7
"""What the solver leaves of an objective, relative to the squares or products of the sizes in it."""


@pytest.fixture
def count(request: pytest.FixtureRequest) -> int:
    """Points a domain: `pytest tests/test_domains_cvxpy.py --points 1000 -rP` takes ten minutes and prints the worst differences."""
    return int(request.config.getoption("--points"))


every = pytest.mark.parametrize("case", BRIEF, ids=lambda case: case.name)
minimising = pytest.mark.parametrize("case", BRIEF, ids=lambda case: case.name)


TIGHT = {"solver": cp.CLARABEL, "tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
ATTEMPTS = (TIGHT, {"solver": cp.CLARABEL}, {"solver": cp.SCS, "eps": 1e-9, "max_iters": 100_000})


def solved(problem: cp.Problem) -> float:
    """The optimal value, by the first solver and tolerance that gets there."""
    for attempt in ATTEMPTS:
        try:
            problem.solve(**attempt)
        except cp.SolverError:
            continue
        if problem.status in ("optimal", "optimal_inaccurate"):
            return float(problem.value)
    raise AssertionError("CVXPY finds no solution")


def stated(d: Domain) -> tuple[Any, list[Any], Any]:
    """A variable, its constraints, and a parameter of the same shape."""
    x = cp.Variable(d.shape)
    return x, d.constraints(cp, x), cp.Parameter(d.shape)


@every
def test_projection(case: Case, count: int) -> None:
    """No farther than the solver's point, and near it: a solver finds a point to about half the digits of its objective."""
    d = case.at(1.0)
    x, constraints, v = stated(d)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - v)), constraints)
    rng = np.random.default_rng(11)
    apart, farther = 0.0, 0.0
    for point in rng.permutation(points(d, rng, max(count // 3, 6)))[:count]:
        v.value = point
        solved(problem)
        p = d.project_array(point)
        scale = max(d.radius, np.abs(point).max())
        assert d.contains(p, case.tolerance)
        farther = max(farther, (np.sum((p - point) ** 2) - np.sum((x.value - point) ** 2)) / scale**2)
        apart = max(apart, np.abs(p - x.value).max() / scale)
    print(f"{case.name}: {count} points, apart {apart:.1e}, farther {farther:.1e}")
    assert farther <= FINE
    assert apart <= 5e-4


@minimising
def test_linear_minimisation(case: Case, count: int) -> None:
    d = case.at(1.0)
    x, constraints, c = stated(d)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(c, x))), constraints)
    rng = np.random.default_rng(12)
    worst = 0.0
    for k in range(count):
        cost = rng.standard_normal(d.shape)
        c.value = cost if k % 2 else np.round(cost)
        least = solved(problem)
        found = float(np.sum(c.value * d.lmo_array(c.value)))
        outward = -d.support(-c.value)
        worst = max(worst, abs(found - least), abs(outward - least))
    print(f"{case.name}: {count} costs, worst difference {worst:.1e}")
    assert worst <= 1e-6 * max(d.radius, 1e-3)


@minimising
def test_hull(case: Case) -> None:
    d = case.at(1.0)
    x, constraints, axis = stated(d)
    problem = cp.Problem(cp.Maximize(cp.sum(cp.multiply(axis, x))), constraints)
    for k in range(0, d.size, max(1, d.size // 4)):
        axis.value = np.eye(d.size)[k].reshape(d.shape)
        assert d.upper.flat[k] == pytest.approx(solved(problem), abs=1e-6 * max(d.radius, 1e-3))
        axis.value = -axis.value
        assert d.lower.flat[k] == pytest.approx(-solved(problem), abs=1e-6 * max(d.radius, 1e-3))


@every
def test_no_larger_ball_fits(case: Case) -> None:
    """For polyhedra: the Chebyshev centre as a linear program within the affine hull."""
    d = case.at(1.0)
    if d.inner_radius == 0:
        assert d.sample(np.random.default_rng(0), 5).std(axis=0).max() <= 1e-9 * d.radius
        return
    facets = d.halfspaces()
    if facets is None:
        pytest.skip("not a polyhedron")
    A, b = facets.A, facets.b
    equalities = d.affine_hull()[0]
    Z = np.linalg.svd(equalities)[2][len(equalities) :].T if len(equalities) else np.eye(d.size)
    w, rho = cp.Variable(Z.shape[1]), cp.Variable()
    x = d.centre().ravel() + Z @ w
    lengths = np.linalg.norm(A @ Z, axis=1)
    kept = lengths > 1e-9
    problem = cp.Problem(cp.Maximize(rho), [A[kept] @ x + lengths[kept] * rho <= b[kept]])
    best = solved(problem)
    if "inner_radius" in d.bounds_only:
        assert 0 < d.inner_radius <= best * (1 + 1e-6)
        return
    assert d.inner_radius == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("case", [c for c in CASES if c.at(1.0).geometry == "entropy"], ids=lambda case: case.name)
def test_entropic_step(case: Case) -> None:
    d = case.at(1.0)
    rng = np.random.default_rng(13)
    for x in 0.8 * d.sample(rng, 4) + 0.2 * d.centre():
        p = rng.standard_normal(d.shape)
        u = cp.Variable(d.shape)
        objective = cp.sum(cp.multiply(p, u)) + cp.sum(cp.kl_div(u, x))
        solved(cp.Problem(cp.Minimize(objective), d.constraints(cp, u)))
        np.testing.assert_allclose(d.bregman_step_array(x, p), u.value, atol=2e-5 * d.radius)
