"""Bounds of polyhedra that are too large for a linear program for each end: never within what a program finds, and not far beyond."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from thorough import corners

from oco.compiler.domains import cut, domain, make, programs
from oco.compiler.domains.analytic import Centre, interior_point, largest_ball
from oco.compiler.domains.programs import LinearPrograms, Steps, cheapest_rows
from oco.compiler.domains.reduced import Reduced
from oco.compiler.domains.reduction import reduce_polyhedron
from oco.compiler.prover.check import check
from oco.compiler.prover.types import Status
from oco.dsl.diagnostics import OcoError
from oco.dsl.load import parse

FEW = 5_000_000


def ends(A: np.ndarray, b: np.ndarray, E: np.ndarray, f: np.ndarray) -> np.ndarray | int:
    """The least and the greatest value of each entry by a program each; the status of one that finds none."""
    equalities = {"A_eq": E, "b_eq": f} if len(E) else {}
    found = [
        linprog(sign * axis, A_ub=A, b_ub=b, **equalities, bounds=(None, None), method="highs")
        for sign in (1.0, -1.0)
        for axis in np.eye(A.shape[1])
    ]
    wrong = next((r.status for r in found if r.status), 0)
    return wrong or np.array([r.x[k % A.shape[1]] for k, r in enumerate(found)]).reshape(2, -1)


def random_rows(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Bounded, unbounded, empty and flat sets, with rows of few or of many numbers, of all scales."""
    n = int(rng.integers(2, 9))
    m = int(rng.integers(n, 6 * n))
    A = rng.integers(-4, 5, (m, n)) * (rng.random((m, n)) < rng.choice([0.4, 1.0]))
    A[~A.any(axis=1), 0] = 1
    b = rng.choice([0.0, 1.0, 1.0, 1.0]) + rng.random(m) - rng.choice([0.0, 0.0, 0.6])
    if rng.random() < 0.6:
        A, b = np.concatenate([A, np.eye(n), -np.eye(n)]), np.concatenate([b, np.full(2 * n, rng.choice([1.0, 9.0]))])
    k = int(rng.integers(0, n)) if rng.random() < 0.4 else 0
    E = rng.normal(size=(k, n))
    return A.astype(float), b * 10.0 ** rng.integers(-3, 4), E, E @ rng.normal(size=n) * rng.choice([0.0, 0.1])


def reduced(A: np.ndarray, b: np.ndarray, E: np.ndarray, f: np.ndarray, steps: int) -> Reduced | str:
    try:
        return reduce_polyhedron(A, b, E, f, "the polytope", steps=steps)
    except OcoError as error:
        return error.code


@pytest.mark.parametrize("seed", corners(range(60), range(10)))
def test_bounds_hold_what_programs_find(seed: int) -> None:
    rows = random_rows(np.random.default_rng(seed))
    expected, exact, bounded = ends(*rows), reduced(*rows, 10**9), reduced(*rows, FEW)
    if isinstance(expected, int):
        assert isinstance(exact, str) and isinstance(bounded, str)
        assert exact == ("OCO410" if expected == 2 else "OCO418") or expected not in (2, 3)
        return
    if isinstance(exact, str):
        assert exact == bounded == "OCO410"  # of a set so thin that the tolerances of solvers differ
        return
    assert isinstance(bounded, Reduced)
    width = float(np.max(expected[1] - expected[0])) + 1e-9 * float(np.max(np.abs(expected)))
    np.testing.assert_allclose(exact.hull, expected, rtol=0, atol=1e-6 * width)
    lower, upper = bounded.hull
    assert np.all(lower <= expected[0] + 1e-6 * width) and np.all(upper >= expected[1] - 1e-6 * width)
    assert np.all(upper - lower <= 1.2 * (expected[1] - expected[0]) + 0.2 * width)
    for r in (exact, bounded):
        assert r.dimension == exact.dimension
        assert np.max(rows[0] @ r.origin - rows[1]) <= 1e-7 * width * np.abs(rows[0]).max()
    if exact.dimension and bounded.loose:
        assert 0.5 * np.min(exact.h) * exact.size <= np.min(bounded.h) * bounded.size
        assert np.min(bounded.h) * bounded.size <= np.min(exact.h) * exact.size * (1 + 1e-6)


def test_a_large_polytope_is_bounded_within_a_few_percent() -> None:
    rng = np.random.default_rng(1)
    A, b = rng.integers(-4, 5, (200, 60)).astype(float), np.ones(200)
    d = domain("polytope", (60,), A, b)
    assert "hull" in d.bounds_only and "inner_radius" in d.bounds_only
    for i in range(0, 60, 12):
        for sign, bound in ((1.0, d.upper[i]), (-1.0, -d.lower[i])):
            least = linprog(-sign * np.eye(60)[i], A_ub=A, b_ub=b, bounds=(None, None)).fun
            assert -least <= bound * (1 + 1e-9) and bound <= -least * 1.1
    assert d.contains(d.centre()) and d.interior_margin(d.centre()) == pytest.approx(d.inner_radius)


def test_bounds_of_any_linear_function_hold() -> None:
    rng = np.random.default_rng(2)
    G = rng.normal(size=(90, 12))
    G /= np.linalg.norm(G, axis=1, keepdims=True)
    h = rng.uniform(0.1, 1.0, 90) + G @ np.full(12, 0.7)
    inside = interior_point(G, h)
    assert inside is not None and np.min(h - G @ inside) > 0
    centre = Centre.of(G, h, inside)
    assert centre is not None and np.linalg.norm((1 / centre.slack) @ G) < 1e-6 * np.sum(1 / centre.slack)
    C = rng.normal(size=(12, 7))
    exact = [-linprog(-c, A_ub=G, b_ub=h, bounds=(None, None)).fun for c in C.T]
    found = centre.greatest(C)
    least = np.array([linprog(c, A_ub=G, b_ub=h, bounds=(None, None)).fun for c in C.T])
    assert np.all(found >= exact) and np.all(found - exact <= 0.05 * (exact - least))
    ball = linprog(np.eye(13)[12] * -1, A_ub=np.column_stack([G, np.ones(90)]), b_ub=h, bounds=(None, None))
    radius = float(np.min(h - G @ largest_ball(G, h, centre.w)))
    assert 0.7 * -ball.fun <= radius <= -ball.fun * (1 + 1e-9)


def test_minimisation_begins_at_the_vertex_of_a_program() -> None:
    rng = np.random.default_rng(3)
    d = domain("polytope", (24,), rng.normal(size=(80, 24)), np.ones(80))
    r = d._reduced  # type: ignore[attr-defined]
    for c in rng.normal(size=(4, 24)):
        rows = cheapest_rows(c @ r.Z, r.G, r.h)
        assert rows is not None and np.linalg.matrix_rank(r.G[rows]) == 24
        x = d.lmo_array(c)
        exact = linprog(c, A_ub=d.halfspaces().A, b_ub=d.halfspaces().b, bounds=(None, None)).fun
        assert d.contains(x, 1e-12) and c @ x == pytest.approx(exact, rel=1e-9)


def test_programs_end_with_their_steps() -> None:
    rng = np.random.default_rng(4)
    program = LinearPrograms(rng.normal(size=(120, 30)), np.ones(120), np.zeros((0, 30)), np.zeros(0))
    c = rng.normal(size=30)
    steps = Steps(program.set_up + 3 * program.pivot)
    assert program.solve(c, steps) is None and steps.left < program.pivot
    assert program.solve(c, Steps()).status == 0


@pytest.mark.parametrize("kind", ["rows", "cut", "flow"])
def test_rows_that_do_not_fit_into_memory_are_refused_before_they_are_made(kind: str) -> None:
    with pytest.raises(OcoError) as caught:
        match kind:
            case "rows":
                domain("polytope", (6000,), np.broadcast_to(1.0, (6000, 6000)), 1.0)
            case "cut":
                cut(make.domain("birkhoff", (80, 80), 80), np.eye(2, 6400), 0.5)
            case "flow":
                domain("flow", (6000,), np.array([[k, k + 1] for k in range(6000)]), 0, 6000)
    assert caught.value.code == "OCO805"


def test_programs_that_are_needed_have_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set has its ends and its inside however few steps there are for what is merely tighter."""
    rng = np.random.default_rng(6)
    A = rng.normal(size=(60, 8))
    monkeypatch.setattr(programs, "LARGEST", 1)
    d = domain("polytope", (8,), A, np.ones(60))
    for k in range(8):
        unit = np.arange(8) == k
        assert d.upper[k] >= -linprog(-1.0 * unit, A_ub=A, b_ub=np.ones(60), bounds=(None, None)).fun - 1e-9
    assert np.all(A @ d.centre() < 1.0)


def test_many_rows_bound_a_curved_set_by_its_base() -> None:
    rng = np.random.default_rng(5)
    A = rng.normal(size=(40, 10))
    d = cut(domain("ball", (10,), 2.0), A, 3.0)
    assert "hull" in d.bounds_only
    for c in rng.normal(size=(10, 10)):
        x = d.project_array(10 * c)
        assert np.all(d.lower <= x) and np.all(x <= d.upper) and c @ x <= d.support(c) * (1 + 1e-14)
    assert d.interior_margin(d.centre()) > 0 and np.all(A @ d.centre() < 3.0)


def test_a_bound_of_the_size_does_not_contradict_an_assumption() -> None:
    """The diameter of this polytope is only bounded, by its box: that it is less can be assumed; of a box it cannot."""
    rng = np.random.default_rng(6)
    text = "model m\nhorizon T = 9\n{0}decision x[12] in {1}\nstream c[12] in [-1, 1]\nminimize c @ x\nassume domain.diameter.l2 <= {2}\n"
    rows = f"param A[40, 12] = {rng.integers(-4, 5, (40, 12)).tolist()}\n"
    widest = check(parse(text.format(rows, "polytope(A, 1)", 99)))["domain.diameter.l2"].value
    assumed = check(parse(text.format(rows, "polytope(A, 1)", 0.9 * widest)))["domain.diameter.l2"]
    assert assumed.value == 0.9 * widest and assumed.status is Status.DECLARED
    with pytest.raises(OcoError, match="OCO620"):
        check(parse(text.format("", "box(0, 1)", 3)))
