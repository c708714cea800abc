"""Laws that every domain obeys, whatever its kind: each test runs over all of them."""

from __future__ import annotations

import numpy as np
import pytest
from domain_cases import BRIEF, Case, points
from thorough import thorough, turns

from oco.compiler.domains import Domain
from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Type

every = pytest.mark.parametrize("case", BRIEF, ids=lambda case: case.name)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def inner(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.sum(a * b))


@every
def test_projection_is_the_nearest_point(case: Case) -> None:
    """The variational inequality: <v - p, y - p> <= 0 for every y of the set, by the support function where it is exact."""
    d = case.at(1.0)
    samples = d.sample(rng(), 60)
    for v in points(d, rng()):
        p = d.project_array(v)
        assert d.contains(p, case.tolerance)
        residual = v - p
        scale = max(d.radius, float(np.abs(v).max())) ** 2
        sampled = "support" in d.bounds_only
        farthest = max(inner(residual, y) for y in samples) if sampled else d.support(residual)
        assert farthest - inner(residual, p) <= 10 * case.tolerance * scale


@every
def test_projection_keeps_points_of_the_set(case: Case) -> None:
    d = case.at(1.0)
    for y in d.sample(rng(), 20):
        np.testing.assert_allclose(d.project_array(y), y, atol=10 * case.tolerance * d.radius)
    for v in points(d, rng()):
        p = d.project_array(v)
        np.testing.assert_allclose(d.project_array(p), p, atol=10 * case.tolerance * d.radius)


@every
def test_projection_is_firmly_nonexpansive(case: Case) -> None:
    d = case.at(1.0)
    cloud = points(d, rng())
    for u, v in zip(cloud, cloud[::-1]):
        p, q = d.project_array(u), d.project_array(v)
        scale = max(d.radius, float(np.abs(cloud).max())) ** 2
        assert inner(p - q, p - q) <= inner(p - q, u - v) + 10 * case.tolerance * scale


@every
@pytest.mark.parametrize("scale", [thorough(1e-150), thorough(1e4), 1e150])
def test_projection_scales_with_the_set(case: Case, scale: float) -> None:
    if not case.scales:
        pytest.skip("no argument to scale it by")
    d, scaled = case.at(1.0), case.at(scale)
    for v in points(d, rng(), 3):
        expected = scale * d.project_array(v)
        found = scaled.project_array(scale * v)
        assert scaled.contains(found, case.tolerance)
        np.testing.assert_allclose(found, expected, atol=100 * case.tolerance * scaled.radius, rtol=0)


@every
def test_jacobian_is_the_derivative_of_the_projection(case: Case) -> None:
    """Against central differences at points where the projection is smooth on the whole difference."""
    d = case.at(1.0)
    k = 3
    point, rows = Type(DType.FLOAT, d.shape), Type(DType.FLOAT, (k, *d.shape))
    jacobian = as_numpy("jacobian", lambda t, v, p, M: d.project_jacobian(t, v, p, M), point, point, rows)
    generator, step, tested = rng(), 1e-6 * d.radius, 0
    for v in d.centre() + 1.5 * d.radius * generator.standard_normal((12, *d.shape)):
        M = generator.standard_normal((k, *d.shape))
        p, moves = d.project_array(v), [(d.project_array(v + step * m), d.project_array(v - step * m)) for m in M]
        if any(np.abs(up + down - 2 * p).max() > 1e-3 * step for up, down in moves):
            continue
        tested += 1
        expected = np.stack([(up - down) / (2 * step) for up, down in moves])
        np.testing.assert_allclose(jacobian(v, p, M)[0], expected, atol=2e-5)
    assert tested >= 5


@every
def test_linear_minimisation_attains_the_support(case: Case) -> None:
    d = case.at(1.0)
    samples = d.sample(rng(), 10)
    for c in rng().standard_normal((20, *d.shape)):
        x = d.lmo_array(c)
        assert d.contains(x, case.tolerance)
        assert inner(c, x) == pytest.approx(-d.support(-c), abs=10 * case.tolerance * d.radius)
        assert all(inner(c, y) >= inner(c, x) - case.tolerance * d.radius for y in samples)


@every
@pytest.mark.parametrize("scale", [1e-150, thorough(1e-3), thorough(7.0), thorough(1e150)])
def test_linear_minimisation_is_homogeneous(case: Case, scale: float) -> None:
    d = case.at(1.0)
    for c in np.round(3 * rng().standard_normal((10, *d.shape))):
        expected, found = d.lmo_array(c), d.lmo_array(scale * c)
        assert inner(c, found) == pytest.approx(inner(c, expected), abs=100 * case.tolerance * d.radius)
        assert d.contains(found, case.tolerance)


@every
def test_linear_minimisation_is_deterministic_at_ties(case: Case) -> None:
    d = case.at(1.0)
    x = d.lmo_array(np.zeros(d.shape))
    assert d.contains(x, case.tolerance)
    np.testing.assert_array_equal(x, d.lmo_array(np.zeros(d.shape)))


@every
def test_samples_and_the_centre_belong_to_the_set(case: Case) -> None:
    d = case.at(1.0)
    samples = d.sample(rng(), 100)
    assert samples.shape == (100, *d.shape)
    assert all(d.contains(y, case.tolerance) for y in samples)
    assert d.contains(d.centre(), case.tolerance)
    assert d.in_relative_interior(d.centre())
    assert not d.contains(np.full(d.shape, 10 * d.radius))
    assert not d.contains(np.full(d.shape, np.nan))
    assert not d.contains(np.zeros((*d.shape, 2)))


@every
def test_hull_is_the_support_along_the_axes(case: Case) -> None:
    d = case.at(1.0)
    for k, e in enumerate(np.eye(d.size)):
        axis = e.reshape(d.shape)
        assert d.upper.flat[k] == pytest.approx(d.support(axis), abs=10 * case.tolerance * d.radius)
        assert d.lower.flat[k] == pytest.approx(-d.support(-axis), abs=10 * case.tolerance * d.radius)


def widest(d: Domain, order: int, starts: int) -> float:
    """The greatest distance found by alternating linear maximisation from random directions (a lower bound)."""
    best = 0.0
    for start in rng().standard_normal((starts, *d.shape)):
        c, last = start, -1.0
        for _ in range(8):
            x, y = d.lmo_array(-c), d.lmo_array(c)
            distance = float(np.linalg.norm((x - y).ravel(), order))
            if distance <= last:  # it grows from step to step, or stays
                break
            c, last = (x - y) if order == 2 else np.sign(x - y), distance
        best = max(best, last)
    return best


@pytest.mark.parametrize(("case", "norm"), turns(BRIEF, ("l1", "l2")), ids=lambda value: getattr(value, "name", value))
def test_diameter_is_attained(case: Case, norm: str) -> None:
    d, order = case.at(1.0), int(norm[1])
    exact = f"diameter.{norm}" not in d.bounds_only
    found = widest(d, order, 15 if exact else 3)
    assert found <= d.diameter(norm) * (1 + 1e-9)
    if exact:
        assert found == pytest.approx(d.diameter(norm), rel=1e-6)


def farthest(d: Domain, centre: np.ndarray) -> float:
    """The greatest distance from `centre`: over the vertices, or found by repeated linear maximisation (a lower bound)."""
    vertices = d.vertices()
    if vertices is not None:
        return float(max(np.linalg.norm((v - centre).ravel()) for v in vertices))
    best = 0.0
    for start in rng().standard_normal((10, *d.shape)):
        c, last = start, -1.0
        for _ in range(12):
            x = d.lmo_array(-c)
            distance = float(np.linalg.norm((x - centre).ravel()))
            if distance <= last:  # it grows from step to step, or stays
                break
            c, last = x - centre, distance
        best = max(best, last)
    return best


@every
def test_radii_are_attained(case: Case) -> None:
    d = case.at(1.0)
    for centre, radius, name in (
        (np.zeros(d.shape), d.radius, "radius"),
        (d.centre(), d.radius_about_centre, "radius_about_centre"),
    ):
        best = farthest(d, centre)
        assert best <= radius * (1 + 1e-9)
        if name not in d.bounds_only:
            assert best == pytest.approx(radius, rel=1e-6, abs=1e-9)


def directions(d: Domain, count: int) -> np.ndarray:
    """Unit vectors parallel to the affine hull; empty when the set is one point."""
    A, _ = d.affine_hull()
    u = rng().standard_normal((count, d.size))
    if len(A):
        basis = np.linalg.svd(A)[2][len(A) :]
        plain = u @ basis.T @ basis
        tangent = np.stack([d.tangent(row.reshape(d.shape)).ravel() for row in u])
        np.testing.assert_allclose(tangent, plain, atol=1e-9)
        u = plain
    u = u[np.linalg.norm(u, axis=1) > 1e-8]
    return (u / np.linalg.norm(u, axis=1, keepdims=True)).reshape(-1, *d.shape)


@every
def test_inner_ball_lies_in_the_set(case: Case) -> None:
    d = case.at(1.0)
    centre, radius = d.inner_centre, d.inner_radius
    assert d.interior_margin(centre) == pytest.approx(radius, rel=1e-6, abs=1e-12)
    for u in directions(d, 50):
        assert d.contains(centre + radius * u, case.tolerance)


@every
def test_interior_margin_is_a_ball_within_the_set(case: Case) -> None:
    d = case.at(1.0)
    supports = [(u, d.support(u)) for u in directions(d, 20)]
    for y in d.sample(rng(), 10):
        margin = d.interior_margin(y)
        for u, support in supports:
            assert d.contains(y + max(margin, 0) * u, case.tolerance)
            assert support - inner(u, y) >= margin - 10 * case.tolerance * d.radius


@every
def test_affine_hull_holds_every_point(case: Case) -> None:
    d = case.at(1.0)
    A, b = d.affine_hull()
    assert A.shape == (len(b), d.size)
    spread = d.sample(rng(), 3 * d.size + 10).reshape(-1, d.size)
    np.testing.assert_allclose(spread @ A.T, np.tile(b, (len(spread), 1)), atol=1e-9 * d.radius)
    assert np.linalg.matrix_rank(A) == len(b)
    assert np.linalg.matrix_rank(spread - spread[0], tol=1e-9 * d.radius) == d.size - len(b) == d.dimension


@every
def test_vertices_span_the_support(case: Case) -> None:
    d = case.at(1.0)
    vertices = d.vertices()
    if vertices is None:
        return
    assert all(d.contains(v, case.tolerance) for v in vertices)
    assert len(np.unique(np.round(vertices, 9), axis=0)) == len(vertices)
    for c in rng().standard_normal((20, *d.shape)):
        assert max(inner(c, v) for v in vertices) == pytest.approx(d.support(c), abs=10 * case.tolerance * d.radius)


def divergence(d: Domain, x: np.ndarray, y: np.ndarray) -> float:
    """D(x, y) for the mirror map of the domain."""
    if d.geometry == "euclidean":
        return inner(x - y, x - y) / 2
    if d.geometry == "von neumann":
        (a, p), (b, q) = np.linalg.eigh(x), np.linalg.eigh(y)
        cross = np.sum((p.T @ q) ** 2 * np.outer(a, np.log(b)))
        return float(np.sum(a * np.log(np.maximum(a, 1e-300))) - cross - np.sum(a) + np.sum(b))
    ratio = np.where(x > 0, x, 1.0) / y
    return float(np.sum(x * np.log(ratio) - x + y))


@every
def test_bregman_step_minimises(case: Case) -> None:
    """Three points: <p, u> + D(u, x) + D(y, u) <= <p, y> + D(y, x) for every y of the set."""
    d = case.at(1.0)
    generator = rng()
    others = d.sample(generator, 10)
    for x in 0.9 * d.sample(generator, 10) + 0.1 * d.centre():
        p = (1.0 if d.geometry == "entropy" else d.radius) * generator.standard_normal(d.shape)
        u = d.bregman_step_array(x, p)
        assert d.contains(u, case.tolerance)
        for y in others:
            left = inner(p, u) + divergence(d, u, x) + divergence(d, y, u)
            assert left <= inner(p, y) + divergence(d, y, x) + 100 * case.tolerance * max(1.0, d.radius) ** 2


@every
def test_bregman_radius_bounds_the_divergence_from_the_centre(case: Case) -> None:
    d = case.at(1.0)
    far = [divergence(d, d.lmo_array(c), d.centre()) for c in rng().standard_normal((40, *d.shape))]
    assert max(far) <= d.bregman_radius * (1 + 1e-9) + 1e-12
    assert d.bregman_radius <= d.bregman_diameter
