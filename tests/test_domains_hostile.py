"""Domains under hostile floats: scales from 1e-150 to 1e150, ties, zeros, subnormals, points on the boundary, tangent and far."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from domain_cases import BRIEF, Case
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import thorough

from oco.compiler.domains import domain

SCALES = (1e-150, 1e-12, 1.0, 1e12, 1e150)

entries = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 1 / 3, 2.0, 5e-324, -5e-324, 1e-17, 1 + 2e-16, 1 - 1e-16]),
    st.floats(-2, 2),
    st.floats(-1e6, 1e6),
    st.floats(-1e150, 1e150),
)


def one_domain(case: Case, data: st.DataObject) -> None:
    scale = data.draw(st.sampled_from(SCALES if case.scales else (1.0,)), label="scale")
    d = case.at(scale)
    relative = data.draw(st.lists(entries, min_size=d.size, max_size=d.size), label="entries")
    limit = 1e150
    v = np.clip(scale * np.reshape(relative, d.shape), -limit, limit)
    p = d.project_array(v)
    assert d.contains(p, case.tolerance)
    again = d.project_array(p)
    np.testing.assert_allclose(again, p, rtol=0, atol=100 * case.tolerance * max(d.radius, float(np.abs(p).max())))
    assert d.contains(d.lmo_array(v), case.tolerance)


@pytest.mark.parametrize("case", BRIEF, ids=lambda case: case.name)
def test_projection_and_minimisation_stay_in_the_set(case: Case) -> None:
    @settings(max_examples=settings().max_examples // 8)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        one_domain(case, data)

    check()


def exact_clip_to_total(v: np.ndarray, lo: list[float], hi: list[float], total: float) -> list[Fraction]:
    """clip(v - theta, lo, hi) with the sum `total`, in rational arithmetic: theta from the breakpoints of the sum."""
    x, low, high, rest = (
        [Fraction(float(e)) for e in v],
        list(map(Fraction, lo)),
        list(map(Fraction, hi)),
        Fraction(total),
    )

    def clipped(theta: Fraction) -> list[Fraction]:
        return [min(max(a - theta, b), c) for a, b, c in zip(x, low, high)]

    breaks = sorted({a - b for a, b in zip(x, low)} | {a - b for a, b in zip(x, high)})
    left = max((b for b in breaks if sum(clipped(b)) >= rest), default=breaks[0])
    right = min((b for b in breaks if sum(clipped(b)) <= rest), default=breaks[-1])
    above, below = sum(clipped(left)), sum(clipped(right))
    theta = left if above == below else left + (right - left) * (above - rest) / (above - below)
    return clipped(theta)


def assert_close(found: np.ndarray, expected: list[Fraction], size: float) -> None:
    """To 1e-12 of the size of the set."""
    worst = max(abs(Fraction(float(a)) - b) for a, b in zip(found, expected))
    assert worst <= Fraction(size) * Fraction(1, 10**12)


@given(st.lists(entries, min_size=1, max_size=8), st.sampled_from(SCALES))
def test_simplex_is_exact(relative: list[float], scale: float) -> None:
    v = np.clip(scale * np.array(relative), -1e150, 1e150)
    n = len(relative)
    expected = exact_clip_to_total(v, [0.0] * n, [scale] * n, scale)
    assert_close(domain("simplex", (n,), scale).project_array(v), expected, scale)


@pytest.mark.parametrize("total", [1e-3, 1e-8, 1e-14, 1e-30, 1e-250])
def test_a_total_far_below_the_bounds_is_met_to_its_own_rounding(total: float) -> None:
    d = domain("budget", (2,), 0.0, 1.0, total)
    for v in ([0.7, 0.3], [0.7, 0.7], [-0.3, 0.2], [1e9, 1e9]):
        p = d.project_array(np.array(v))
        assert_close(p, exact_clip_to_total(np.array(v), [0.0, 0.0], [1.0, 1.0], total), total)


@pytest.mark.parametrize("shift", [thorough(0.0), 0.3, thorough(-0.6), 40.0])
def test_a_total_of_many_small_entries_is_met_wherever_they_lie(shift: float) -> None:
    """Shifts below and above those after which the search is begun again."""
    v = np.random.default_rng(0).normal(0, 0.01, 150) + shift
    p = domain("capped_simplex", (150,), 0.01).project_array(v)
    assert_close(p, exact_clip_to_total(v, [0.0] * 150, [0.01] * 150, 1.0), 0.01)
    assert abs(math.fsum(p) - 1) <= 1e-14


def test_bounds_far_out_of_reach_leave_the_others_exact() -> None:
    lo, hi, total = np.array([-1e-16, 0.0]), np.array([-1e-16, 4e-9]), -1e-16 + 6e-23
    p = domain("budget", (2,), lo, hi, total).project_array(np.array([-5.7e-9, 2e-9]))
    assert_close(p, exact_clip_to_total(np.array([-5.7e-9, 2e-9]), list(lo), list(hi), total), 1e-16)


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 2), entries), min_size=1, max_size=8),
    st.floats(0, 1),
    st.sampled_from(SCALES),
)
def test_budget_is_exact(rows: list[tuple[float, float, float]], share: float, scale: float) -> None:
    lo = np.array([scale * low for low, _, _ in rows])
    hi = np.array([scale * (low + width) for low, width, _ in rows])
    total = float(np.clip((1 - share) * math.fsum(lo) + share * math.fsum(hi), math.fsum(lo), math.fsum(hi)))
    v = np.clip(scale * np.array([e for _, _, e in rows]), -1e150, 1e150)
    d = domain("budget", (len(rows),), lo, hi, total)
    p = d.project_array(v)
    assert d.contains(p, 1e-12)
    assert_close(p, exact_clip_to_total(v, list(lo), list(hi), total), 10 * scale)


@given(
    st.lists(st.tuples(st.floats(0.05, 1), st.floats(1e-3, 1), entries), min_size=2, max_size=8),
    st.floats(0.1, 0.9),
    st.sampled_from(SCALES),
)
def test_entropic_step_is_exact(rows: list[tuple[float, float, float]], share: float, scale: float) -> None:
    """u = clip(e^-theta x e^-p): the logarithms of the entries between their bounds differ from log x - p by one number."""
    cap, x, p = (np.array(column) for column in zip(*rows))
    p = np.clip(p, -1e6, 1e6)
    total = share * math.fsum(scale * cap)
    d = domain("capped_simplex", (len(rows),), scale * cap, total)
    u = d.bregman_step_array(scale * x, p)
    assert d.contains(u, 1e-12)
    z = np.log(x) - p
    full = u >= scale * cap * (1 - 1e-12)
    free = (u > 1e-290 * total) & ~full
    theta = (z - np.log(np.where(free, u, 1.0) / scale))[free]
    room = 1e-12 * max(1.0, np.abs(z).max())
    if len(theta):
        assert theta.max() - theta.min() <= room
        assert np.min((z - np.log(cap))[full], initial=np.inf) >= theta.max() - room


def test_simplex_of_many_entries_sums_exactly() -> None:
    """The projection sorts nothing and loses nothing at a million entries, equal, geometric, alternating or random."""
    n = 10**6
    d = domain("simplex", (n,), 1.0)
    rng = np.random.default_rng(0)
    clouds = [
        np.zeros(n),
        0.999 ** np.arange(n),
        np.tile([1e150, -1e150], n // 2),
        rng.standard_normal(n),
        rng.standard_cauchy(n),
    ]
    for v in clouds:
        p = d.project_array(v)
        assert d.contains(p, 1e-12)
        w = v - v.max()
        theta = np.max(w - p)
        np.testing.assert_allclose(p, np.maximum(w - theta, 0), atol=1e-12)


def on_simplex(w: np.ndarray, total: float) -> np.ndarray:
    """The projection of a vector on the simplex, by sorting."""
    largest = np.sort(w)[::-1]
    shares = (np.cumsum(largest) - total) / np.arange(1, len(w) + 1)
    return np.maximum(w - shares[np.flatnonzero(largest > shares)[-1]], 0)


@pytest.mark.parametrize("scale", SCALES)
def test_matrix_sets_are_given_by_their_spectra(scale: float) -> None:
    """Projections and minimisers of nuclear balls and spectrahedra against singular values and eigenvalues written out at scale one."""
    rng = np.random.default_rng(20)
    for m, n in ((3, 3), (2, 5), (6, 4)):
        d = domain("nuclear_ball", (m, n), 2 * scale)
        for k in range(30):
            v = 10.0 ** rng.integers(-1, 3) * np.round(rng.standard_normal((m, n)), 1 if k % 3 else 9)
            u, sigma, vt = np.linalg.svd(v, full_matrices=False)
            p = (u * (sigma if sigma.sum() <= 2 else on_simplex(sigma, 2.0))) @ vt
            np.testing.assert_allclose(d.project_array(scale * v) / scale, p, rtol=0, atol=2e-12)
            assert np.sum(v * (d.lmo_array(scale * v) / scale)) == pytest.approx(-2 * np.linalg.norm(v, 2), rel=1e-13)
    for n in (1, 2, 5):
        d = domain("spectrahedron", (n, n), scale)
        for _ in range(30):
            v = 10.0 ** rng.integers(-1, 3) * rng.standard_normal((n, n))
            values, q = np.linalg.eigh((v + v.T) / 2)
            p = (q * on_simplex(values, 1.0)) @ q.T
            np.testing.assert_allclose(d.project_array(scale * v) / scale, p, rtol=0, atol=1e-12)
            least = np.sum(v * (d.lmo_array(scale * v) / scale))
            assert least == pytest.approx(values[0], abs=1e-13 * np.abs(v).max())


@pytest.mark.parametrize("scale", SCALES)
def test_von_neumann_steps_are_exact(scale: float) -> None:
    """exp(log X - P) scaled to the trace, in 40 digits."""
    d, rng = domain("spectrahedron", (3, 3), scale), np.random.default_rng(21)
    for x in 0.9 * d.sample(rng, 4) + 0.1 * d.centre():
        p = rng.standard_normal((3, 3))
        p = 3 * (p + p.T)
        with mpmath.workdps(40):
            values, q = mpmath.eigsy(mpmath.matrix((x / scale).tolist()))
            log_x = q * mpmath.diag([mpmath.log(e) for e in values]) * q.T
            exponents, q = mpmath.eigsy(log_x - mpmath.matrix(p.tolist()))
            weights = [mpmath.exp(e - max(exponents)) for e in exponents]
            exact = q * mpmath.diag([w / sum(weights) for w in weights]) * q.T
            expected = np.array(exact.tolist(), dtype=float)
        np.testing.assert_allclose(d.bregman_step_array(x, p) / scale, expected, rtol=0, atol=1e-13)
