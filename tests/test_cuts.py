"""Domains narrowed behind `with`: what is written, read back, decided and refused."""

from __future__ import annotations

import math
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from thorough import thorough

import oco
from oco.compiler.domains import Domain, cut, domain
from oco.compiler.domains.dual_newton import CutDual
from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Type
from oco.compiler.problem.canonical import canonical
from oco.dsl.diagnostics import OcoError
from oco.dsl.primitives import PRIMITIVES
from oco.dsl.text.formatter import format_text

TEXT = """model m
param A[2, 3] = [[1, 2, 3], [-1, 0, 1]]
horizon T = 20
decision x[3] in {domain}
stream c[3] in [-1, 1]
minimize sum(c * x)
"""

CUTS = {
    "box(0, 1) with sum(x) <= 2": lambda x, A: [x >= 0, x <= 1, cp.sum(x) <= 2],
    "box(0, 1) with A @ x <= [2, 1], x[0] >= 0.25": lambda x, A: [x >= 0, x <= 1, A @ x <= [2, 1], x[0] >= 0.25],
    "box(0, [1, 2, 3]) with sum(x) == 1.5": lambda x, A: [x >= 0, x <= [1, 2, 3], cp.sum(x) == 1.5],
    "ball(1) with x[0] == 0.5, 2 * x[1] <= x[2]": lambda x, A: [cp.norm(x) <= 1, x[0] == 0.5, 2 * x[1] <= x[2]],
    "simplex with x[0] <= 0.5": lambda x, A: [x >= 0, cp.sum(x) == 1, x[0] <= 0.5],
}


def model(domain: str) -> oco.Model:
    return oco.parse(TEXT.format(domain=domain))


@pytest.mark.parametrize("domain", CUTS)
def test_cuts_are_read_back(domain: str) -> None:
    first = model(domain)
    assert oco.parse(first.to_oco()) == first
    assert f"in {domain}\n" in first.to_oco()
    assert format_text(TEXT.format(domain=domain)) == TEXT.format(domain=domain)


@pytest.mark.parametrize("domain", CUTS)
def test_cut_domains_are_the_sets_that_are_written(domain: str) -> None:
    plan, rng = oco.compile(model(domain)), np.random.default_rng(0)
    d, x = plan.canonical.blocks[0].domain, cp.Variable(3)
    rows = CUTS[domain](x, np.array([[1, 2, 3], [-1, 0, 1]]))
    for v in 2 * rng.standard_normal((3, 3)):
        cp.Problem(cp.Minimize(cp.sum_squares(x - v)), rows).solve(solver=cp.CLARABEL)
        p = d.project_array(v)
        assert d.contains(p, 1e-9) and all(np.max(r.violation()) <= 1e-6 for r in rows)
        assert np.linalg.norm(p - v) == pytest.approx(np.linalg.norm(x.value - v), abs=1e-6)
        x.value = p
        assert all(np.max(r.violation()) <= 1e-8 for r in rows)
    learner = plan.learner()
    for c in rng.uniform(-1, 1, (10, 3)):
        assert d.contains(learner.decide(), 1e-9)
        learner.observe(c=c)


@pytest.mark.parametrize("domain", ["box(0, 1) with A @ x <= [2, 1], x[0] >= 0.25", "ball(1) with x[0] == 0.5"])
def test_cut_domains_are_projected_onto_in_c(domain: str) -> None:
    plan, rng = oco.compile(model(domain)), np.random.default_rng(1)
    one, other = plan.learner(backend="numpy"), plan.learner(backend="c")
    for c in rng.uniform(-1, 1, (15, 3)):
        np.testing.assert_allclose(other.decide(), one.decide(), atol=1e-10)
        one.observe(c=c)
        other.observe(c=c)


def test_the_builder_writes_cuts() -> None:
    m = oco.Model("m", horizon=20)
    A = m.param("A", (2, 3), value=[[1, 2, 3], [-1, 0, 1]])
    x = m.decision("x", 3, domain=oco.box(0, 1), cuts=lambda x: [A @ x <= [2, 1], x[0] >= 0.25])
    c = m.stream("c", 3, bounds=(-1, 1))
    m.minimize(oco.sum(c * x))
    assert m.build() == model("box(0, 1) with A @ x <= [2, 1], x[0] >= 0.25")


@pytest.mark.parametrize(
    "domain, code, said",
    [
        ("box(0, 1) with sum(x) >= 4", "OCO410", "empty"),
        ("box(0, 1) with x[0] + x[1] == 3", "OCO410", "empty"),
        ("ball(1) with x[0] >= 2", "OCO410", "empty"),
        ("ball(1) with x[0] >= 1", "OCO410", "no interior"),
        ("box(0, 1) with 0 * x[0] <= -1", "OCO410", "never holds"),
        ("box(0, 1) with sum(square(x)) <= 1", "OCO419", "affine"),
        ("box(0, 1) with A[0, 0] <= 1", "OCO419", "narrows nothing"),
        ("box(0, 1) with t * x[0] <= 1", "OCO419", "known before the first round"),
        ("box(0, 1) with A @ x <= [1, 2, 3]", "OCO301", "shape"),
        ("ball(-1) with x[0] <= 0", "OCO411", "positive"),
    ],
)
def test_what_narrows_nothing_or_too_much_is_refused(domain: str, code: str, said: str) -> None:
    with pytest.raises(OcoError) as caught:
        oco.compile(model(domain))
    assert caught.value.code == code and said in str(caught.value)
    assert caught.value.span is not None


@pytest.mark.parametrize("tilt", [0.0, 1e-2, 1e-4, 1e-6, 1e-7, 1e-9])
def test_support_of_a_cut_ball_is_never_too_small(tilt: float) -> None:
    """Over the disc with x_0 <= 1/2 the cost (1, tilt) has its most, 1/2 + tilt sqrt(3)/2, at the end of the chord."""
    half = cut(domain("ball", (3,), 1.0), [[1.0, 0, 0]], 0.5)
    most = 0.5 + tilt * math.sqrt(0.75)
    assert most <= half.support(np.array([1.0, tilt, 0.0])) <= most + 1e-10


def test_a_cost_along_the_row_of_a_cut_ball_has_a_face_of_minimisers() -> None:
    """Every point of { |x| <= 4, sum(x) = 5 } is one; the multipliers of a step of length one prove it at once."""
    half = cut(domain("ball", (6,), 4.0), np.ones((1, 6)), 5.0)
    x = half.lmo_array(-np.ones(6))
    assert 5 - 1e-10 <= x.sum() <= 5 + 1e-12 and np.linalg.norm(x) <= 4
    assert 5 <= half.support(np.ones(6)) <= 5 + 1e-9


def test_geometry_of_caps_is_known() -> None:
    """Of { |x| <= 1, u'x <= b }: for b < 0 the largest ball fills the height of the cap, and its widest chord is the rim of it."""
    u = np.array([1.0, 2.0, 2.0]) / 3
    for b in (-0.9, -0.6, 0.0, 0.5):
        cap = cut(domain("ball", (3,), 1.0), [u], b)
        assert cap.inner_radius == pytest.approx((1 + b) / 2, rel=1e-6)
        np.testing.assert_allclose(cap.inner_centre, (b - 1) / 2 * u, atol=1e-5)
        assert cap.diameter("l2") == pytest.approx(2 * math.sqrt(1 - min(b, 0) ** 2), rel=1e-9)
        assert cap.radius == pytest.approx(1.0)
        # from the centre on the axis the farthest points are on the rim, or the pole of the sphere
        height = (b - 1) / 2
        rim = math.hypot(b - height, math.sqrt(1 - b * b))
        assert rim * (1 - 1e-9) <= cap.radius_about_centre <= 1.0001 * max(rim, 1 + height)


def test_inner_balls_of_matrices_are_known() -> None:
    """Trace at most -1/2 in the nuclear ball of 2 x 2 matrices: X = -a I keeps (1 - 2 a) / sqrt 2 = (2 a - 1/2) / sqrt 2."""
    half = cut(domain("nuclear_ball", (2, 2), 1.0), [np.eye(2).ravel()], -0.5)
    assert half.inner_radius == pytest.approx(0.25 / math.sqrt(2), rel=1e-6)
    np.testing.assert_allclose(half.inner_centre, -0.375 * np.eye(2), atol=1e-4)


@pytest.mark.parametrize("kind", ["ball", thorough("group_ball"), thorough("nuclear_ball"), "spectrahedron"])
def test_costs_almost_normal_to_a_cut_are_minimised(kind: str) -> None:
    """The value at the point found and the bound of the dual meet."""
    base = {
        "ball": lambda: domain("ball", (3, 3), 1.0),
        "group_ball": lambda: domain("group_ball", (9,), 1.0, np.arange(9) // 3),
        "nuclear_ball": lambda: domain("nuclear_ball", (3, 3), 1.0),
        "spectrahedron": lambda: domain("spectrahedron", (3, 3), 1.0),
    }[kind]()
    row = np.array([0, 1.0, 0, 1, 0, 0, 0, 0, 0])
    d = cut(base, [row], 0.2)
    rng = np.random.default_rng(5)
    inside = d.sample(rng, 4)
    for tilt in (1e-2, 1e-5, 1e-8, 1e-9):
        c = (row + tilt * rng.standard_normal(9)).reshape(d.shape)
        x = d.lmo_array(-c)
        assert d.contains(x, 1e-9)
        assert d.support(c) - np.sum(c * x) <= 1e-10 * np.linalg.norm(c)
        assert all(np.sum(c * y) <= np.sum(c * x) + 1e-10 for y in inside)


def test_cut_ellipsoids_are_the_same_at_every_scale() -> None:
    """The nearest points and the minimisers of { x'P^-1 x <= 1 about c } cut by a plane, 1e-150 and 1e150 times as large."""
    rng, tilt = np.random.default_rng(6), np.array([[1.0, 0.5, 0.0], [0.0, 0.3, -0.2], [0.4, 0.0, 2.0]])
    one, *others = (
        cut(domain("ellipsoid", (3,), s * s * (tilt @ tilt.T), s * np.ones(3)), [[1, 1, 0]], 1.5 * s)
        for s in (1.0, 1e-150, 1e150)
    )
    x = cp.Variable(3)
    for v in 3 * rng.standard_normal((3, 3)):
        p, u = one.project_array(v), one.lmo_array(v)
        cp.Problem(cp.Minimize(cp.sum_squares(x - v)), one.constraints(cp, x)).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(p, x.value, atol=1e-4)
        for other, s in zip(others, (1e-150, 1e150)):
            np.testing.assert_allclose(other.project_array(s * v), s * p, rtol=0, atol=1e-11 * s)
            assert np.sum(v * other.lmo_array(v)) / s == pytest.approx(np.sum(v * u), abs=1e-10)
            assert other.diameter("l2") == pytest.approx(s * one.diameter("l2"), rel=1e-6)


def test_costs_at_which_a_projection_stands_still_are_minimised() -> None:
    """Far along this cost the projection on the nuclear ball is a vertex and does not move with the multipliers."""
    rows = [[1, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 0]]
    d, c = cut(domain("nuclear_ball", (2, 3), 1.0), rows, [0.3, -0.1]), np.array([[-1.0, 0, 0], [0, -2, 0]])
    x, free = d.lmo_array(c), cp.Variable((2, 3))
    least = cp.Problem(cp.Minimize(cp.sum(cp.multiply(c, free))), d.constraints(cp, free)).solve(solver=cp.CLARABEL)
    assert d.contains(x, 1e-9)
    assert np.sum(c * x) == pytest.approx(least, abs=1e-6)
    assert np.sum(c * x) + d.support(-c) <= 1e-10


def jacobian(d: Domain, v: np.ndarray) -> np.ndarray:
    """The generalized Jacobian of the projection at v, written out."""
    point, whole = Type(DType.FLOAT, (d.size,)), Type(DType.FLOAT, (d.size, d.size))
    run = as_numpy("jacobian", d.project_jacobian, point, point, whole)
    return np.asarray(run(v, d.project_array(v), np.eye(d.size))[0])


def test_jacobians_of_repeated_and_idle_rows() -> None:
    """Rows that are said twice, or that never hold anything back, change no derivative; every Jacobian is symmetric, between 0 and I."""
    rng, base = np.random.default_rng(8), domain("ball", (4,), 1.0)
    row, other = rng.standard_normal((2, 4))
    once = cut(base, [row], 0.1, [other], 0.2)
    twice = cut(base, [row, 2 * row, row], [0.1, 0.2, 5.0], [other, -other], [0.2, -0.2])
    for v in 2 * rng.standard_normal((8, 4)):
        J = jacobian(once, v)
        np.testing.assert_allclose(jacobian(twice, v), J, atol=1e-7)
        np.testing.assert_allclose(J, J.T, atol=1e-12)
        values = np.linalg.eigvalsh(J)
        assert values[0] >= -1e-12 and values[-1] <= 1 + 1e-12
        np.testing.assert_allclose(J @ other, 0, atol=1e-12)


def test_alike_domains_are_one_set_and_others_are_not() -> None:
    domains = (
        "ball(1) with a[0] <= 0.5",
        "ball(1) with b[0] <= 1 / 2",
        "ball(1) with d[1] <= 0.5",
        "ball(1)",
        "ball(2)",
        "ball(1)",
    )
    declared = "".join(f"decision {n}[3] in {d}\n" for n, d in zip("abdefg", domains))
    model = oco.parse(f"model m\nhorizon T = 9\n{declared}minimize a[0]\n")
    a, b, d, e, f, g = (block.domain for block in canonical(model).blocks)
    assert a is b and e is g
    assert a is not d and e is not f and a is not e


@pytest.mark.parametrize("n", [4, 12])
def test_a_cut_that_misses_the_base_is_found_in_a_few_steps(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of equal weights is constant on the simplex, so that its curvature in the dual is 0, or rounding of either sign: then the
    multiplier alone proves that no point is in the cut, with the least of <lam C, x> at a vertex (Farkas).
    """
    count, sort = [0], PRIMITIVES["sort"]

    def counted(*args: Any, **attrs: Any) -> Any:
        count[0] += 1  # once a projection
        return sort(*args, **attrs)

    monkeypatch.setitem(PRIMITIVES, "sort", counted)
    C, side = np.full((1, n), -1 / math.sqrt(n)), np.array([-1 / math.sqrt(n) - 0.0015])
    kinds = [Type(DType.FLOAT, s) for s in ((n,), (1,))]
    solve = as_numpy("solve", lambda t, v, lam: CutDual(t, domain("simplex", (n,)), C, side, 1).solve(v, lam), *kinds)
    lam, _ = solve(np.full(n, 1 / n) + 1e-4 * np.cos(np.arange(n)), np.zeros(1))
    assert np.min(lam @ C) - lam @ side > 0
    assert count[0] <= 20
