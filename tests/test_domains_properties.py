"""Properties of domains against samples of the set: boxes, balls, bounds over ranges of coefficients, sums and quadratics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from domain_cases import CASES, Case

from oco.compiler.domains import Domain
from oco.dsl.build import call
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import constant
from oco.dsl.intervals import interval


def each(has: Callable[[Domain], object]) -> pytest.MarkDecorator:
    """Every case of a domain with a property."""
    return pytest.mark.parametrize("case", [c for c in CASES if has(c.at(1.0))], ids=lambda case: case.name)


def points(d: Domain, count: int = 40) -> np.ndarray:
    """Points of the set: of its inside, and extreme ones where it tells them."""
    rng = np.random.default_rng(3)
    return np.array([*d.sample(rng, count), *(d.lmo_array(rng.standard_normal(d.shape)) for _ in range(5))])


@each(lambda d: d.is_box or d.is_ball or d.is_simplex)
def test_boxes_and_balls_are_these_sets(case: Case) -> None:
    d, rng = case.at(1.0), np.random.default_rng(4)
    for _ in range(10):
        if d.is_box:
            corner = np.where(rng.random(d.shape) < 0.5, d.lower, d.upper)
            assert d.contains(corner)
        if d.is_ball:
            far = rng.standard_normal(d.shape)
            assert d.contains(far * d.radius / np.linalg.norm(far)) and not d.contains(
                1.01 * far * d.radius / np.linalg.norm(far)
            )
        if d.is_simplex:
            share = rng.dirichlet(np.ones(d.size)).reshape(d.shape)
            assert d.contains(share * points(d)[0].sum())
            assert np.all(d.lower >= 0)


@each(lambda d: d.sign_symmetric)
def test_sets_of_symmetric_signs_hold_every_change_of_signs(case: Case) -> None:
    d, rng = case.at(1.0), np.random.default_rng(5)
    for x in points(d):
        if d.spectral:
            left, values, right = np.linalg.svd(x, full_matrices=False)
            assert d.contains(left * (values * rng.choice((-1.0, 1.0), values.shape)) @ right)
        else:
            assert d.contains(x * rng.choice((-1.0, 1.0), d.shape))


@each(lambda d: d.tight_hull)
def test_a_tight_hull_is_attained(case: Case) -> None:
    d = case.at(1.0)
    lower, upper = (np.broadcast_to(end, d.shape) for end in (d.lower, d.upper))
    for k in np.ndindex(d.shape):
        along = np.zeros(d.shape)
        along[k] = 1.0
        assert d.support(along) == pytest.approx(upper[k], rel=1e-12, abs=1e-12)
        assert -d.support(-along) == pytest.approx(lower[k], rel=1e-12, abs=1e-12)


@each(lambda d: d.support_over(interval(0.7, 0.7, d.shape)))
def test_linear_functions_with_coefficients_in_ranges_stay_below_their_bound(case: Case) -> None:
    d, rng = case.at(1.0), np.random.default_rng(6)
    lo, hi = rng.normal(size=d.shape) - 1.0, rng.normal(size=d.shape) + 1.0
    lo, hi = np.minimum(lo, hi), np.maximum(lo, hi)
    for a in (interval(lo, hi, d.shape), interval(-0.5, 1.5, d.shape), interval(0.7, 0.7, d.shape)):
        bound = d.support_over(a)
        if bound is None:
            continue
        below, above = (np.broadcast_to(end, d.shape) for end in (a.lo, a.hi))
        values = [d.support(below + rng.random(d.shape) * (above - below)) for _ in range(30)]
        values += [d.support(rng.choice((0.0, 1.0), size=d.shape) * (above - below) + below) for _ in range(30)]
        values += [d.support(below), d.support(above), d.support(np.where(abs(below) > abs(above), below, above))]
        assert max(values) <= bound.value * (1 + 1e-12)  # the values are rounded too
        if bound.attained:
            assert max(values) == pytest.approx(bound.value, rel=1e-9)


@each(lambda d: d.entry_sum)
def test_the_sum_over_entries_holds_of_every_point(case: Case) -> None:
    d = case.at(1.0)
    tie = d.entry_sum
    assert tie is not None
    sums = [float((evaluate(call(tie.of, constant(x)), {}) if tie.of else x).sum()) for x in points(d)]
    assert max(sums) <= tie.level * (1 + 1e-9) + 1e-12
    if tie.equal:
        assert min(sums) == pytest.approx(tie.level)


@each(lambda d: d.row)
def test_the_row_and_the_bounds_are_the_set(case: Case) -> None:
    d, rng = case.at(1.0), np.random.default_rng(8)
    row = d.row
    assert row is not None
    size = float(np.sum(abs(row.weights) * np.maximum(abs(d.lower), abs(d.upper)))) + abs(row.total)
    over = [float(np.sum(row.weights * x)) - row.total for x in points(d)]
    assert max(over) <= 1e-9 * size and (not row.equal or min(over) >= -1e-9 * size)
    for _ in range(20):
        corner = np.where(rng.random(d.shape) < 0.5, d.lower, d.upper)
        share = d.lower + rng.random(d.shape) * (d.upper - d.lower)
        a, b = (float(np.sum(row.weights * x)) - row.total for x in (corner, share))
        if a * b < 0:
            met = corner + a / (a - b) * (share - corner)
            assert d.contains(met, 1e-8)
        if not row.equal:
            assert d.contains(share, 1e-8) == (b <= 0) or abs(b) <= 1e-6 * size


@each(lambda d: d.quadratic)
def test_the_quadratic_inequality_and_the_bounds_are_the_set(case: Case) -> None:
    d, rng = case.at(1.0), np.random.default_rng(7)
    q = d.quadratic
    assert q is not None

    def value(x: np.ndarray) -> float:
        v = x.ravel()
        bent = v @ (q.square * v if q.square.ndim == 1 else q.square @ v) / 2
        return float(q.constant + q.linear @ v + bent)

    inside = points(d)
    assert max(map(value, inside)) <= 1e-9
    for x in inside:
        moved = np.clip(x + rng.standard_normal(d.shape) * d.radius, d.lower, d.upper)
        if abs(value(moved)) > 1e-6:
            assert d.contains(moved) == (value(moved) < 0)
