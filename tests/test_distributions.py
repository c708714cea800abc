"""The families of streams against scipy.stats: truncated moments by its quadrature and sums, draws by goodness of fit."""

from __future__ import annotations

from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from oco.dsl import families
from oco.dsl.distributions import DISTRIBUTIONS, TruncatedDistribution
from oco.dsl.families import FAMILIES
from oco.dsl.load import parse

INF = np.inf

# kind, arguments, the law in scipy, and ranges that cut it: none, one side, both, far tails, single values
CASES: list[tuple[str, dict[str, float], Any, list[tuple[float, float]]]] = [
    ("uniform", {"lo": -1, "hi": 3}, stats.uniform(-1, 4), [(-INF, INF), (0, INF), (-0.5, 0.5), (2.999, 7)]),
    ("normal", {"mean": 1, "sd": 2}, stats.norm(1, 2), [(-INF, INF), (0, INF), (-1, 1.5), (9, 12), (-9, -8)]),
    ("poisson", {"mean": 4.5}, stats.poisson(4.5), [(-INF, INF), (2, INF), (0, 6), (3, 5), (15, 30), (4, 4)]),
    ("poisson", {"mean": 2500}, stats.poisson(2500), [(0, 3200), (2600, 3200), (2400, 2450)]),
    ("exponential", {"mean": 2}, stats.expon(scale=2), [(-INF, INF), (1, INF), (0.5, 3), (20, 25)]),
    ("pareto", {"shape": 3, "mean": 8}, stats.pareto(3, scale=16 / 3), [(-INF, INF), (7, INF), (6, 50), (0, 400)]),
    ("pareto", {"shape": 2, "mean": 5}, stats.pareto(2, scale=2.5), [(3, 40), (0, 250)]),
    ("bernoulli", {"p": 0.3}, stats.bernoulli(0.3), [(-INF, INF), (1, 1), (0, 0.5)]),
    ("binomial", {"n": 12, "p": 0.4}, stats.binom(12, 0.4), [(-INF, INF), (3, 7), (11, 12), (0, 0), (5, 5)]),
    ("gamma", {"shape": 2.5, "mean": 5}, stats.gamma(2.5, scale=2), [(-INF, INF), (4, INF), (1, 6), (30, 40)]),
    ("beta", {"a": 2, "b": 3.5}, stats.beta(2, 3.5), [(-INF, INF), (0.5, INF), (0.2, 0.4), (0.95, 1)]),
    ("lognormal", {"mu": 0.5, "sigma": 0.75}, stats.lognorm(0.75, scale=np.exp(0.5)), [(-INF, INF), (1, INF), (0.5, 4), (20, 30)]),
]  # fmt: skip
EACH = [(kind, args, distribution, cut) for kind, args, distribution, cuts in CASES for cut in cuts]


def distribution(
    kind: str, args: dict[str, Any], cut: tuple[float, float], shape: tuple[int, ...] = ()
) -> TruncatedDistribution:
    arrays = {n: np.asarray(v, dtype=float) for n, v in args.items()}
    low, high = (np.asarray(end, dtype=float) for end in FAMILIES[kind].support(arrays))
    lower, upper = np.maximum(low, cut[0]), np.minimum(high, cut[1])
    if FAMILIES[kind].discrete:
        lower, upper = np.ceil(lower), np.floor(upper)
    return TruncatedDistribution(kind, arrays, shape, lower, upper)


@cache
def reference(scipy_distribution: Any, cut: tuple[float, float]) -> tuple[float, float]:
    """Mean and variance of the truncated law: a sum over its values, or quadrature of quantiles."""
    low, high = cut
    if hasattr(scipy_distribution.dist, "pmf"):
        values = np.arange(max(np.ceil(low), 0), min(np.floor(high), scipy_distribution.ppf(1 - 1e-16) + 200) + 1)
        weights = np.exp(scipy_distribution.logpmf(values) - scipy_distribution.logpmf(values).max())
        mean = float(np.average(values, weights=weights))
        return mean, float(np.average((values - mean) ** 2, weights=weights))
    low, high = max(low, scipy_distribution.support()[0]), min(high, scipy_distribution.support()[1])
    x, w = np.polynomial.legendre.leggauss(400)
    if np.isinf(low) or np.isinf(high):
        mean = scipy_distribution.expect(lambda v: v, lb=low, ub=high, conditional=True)
        return mean, scipy_distribution.expect(lambda v: (v - mean) ** 2, lb=low, ub=high, conditional=True)
    # panels that halve in width towards both ends keep the rule exact to rounding near kinks of the density
    edges = low + (high - low) * np.linspace(0, 1, 65)
    nodes = (edges[:-1, None] + edges[1:, None] + (edges[1:, None] - edges[:-1, None]) * x) / 2
    weights = w * np.exp(scipy_distribution.logpdf(nodes) - scipy_distribution.logpdf(nodes).max())
    mean = float(np.average(nodes, weights=weights))
    return mean, float(np.average((nodes - mean) ** 2, weights=weights))


@pytest.mark.parametrize(("kind", "args", "scipy_distribution", "cut"), EACH)
def test_moments_of_the_truncated_law(
    kind: str, args: dict[str, float], scipy_distribution: Any, cut: tuple[float, float]
) -> None:
    found = distribution(kind, args, cut)
    mean, variance = reference(scipy_distribution, cut)
    scale = abs(mean) + np.sqrt(variance)
    assert float(found.mean()) == pytest.approx(mean, abs=1e-7 * scale)
    assert float(found.variance()) == pytest.approx(variance, abs=1e-5 * scale**2, rel=1e-6)


@pytest.mark.parametrize(("kind", "args", "scipy_distribution", "cut"), EACH)
def test_draws_follow_the_truncated_law(
    kind: str, args: dict[str, float], scipy_distribution: Any, cut: tuple[float, float]
) -> None:
    found = distribution(kind, args, cut)
    draws = found.sample(np.random.default_rng(7), 4000)
    assert draws.shape == (4000,)
    assert (draws >= found.lower).all() and (draws <= found.upper).all()
    mean, variance = reference(scipy_distribution, cut)
    if np.isfinite(variance):
        assert abs(draws.mean() - mean) <= 5 * np.sqrt(variance / 4000) + 1e-12 * abs(mean)
    if not FAMILIES[kind].discrete:
        low, high = scipy_distribution.cdf(found.lower), scipy_distribution.cdf(found.upper)
        if high - low > 1e-6:
            uniform = (scipy_distribution.cdf(draws) - low) / (high - low)
            assert stats.kstest(uniform, "uniform", method="asymp").pvalue > 1e-4


def test_categorical_and_constant() -> None:
    found = distribution("categorical", {"p": [0.2, 0.0, 0.5, 0.3]}, (-INF, INF))
    assert float(found.mean()) == pytest.approx(0.5 * 2 + 0.3 * 3)
    assert float(found.variance()) == pytest.approx(0.5 * 4 + 0.3 * 9 - 1.9**2)
    draws = found.sample(np.random.default_rng(0), 20000)
    assert draws.dtype == np.int64
    assert np.bincount(draws, minlength=4) / 20000 == pytest.approx([0.2, 0.0, 0.5, 0.3], abs=0.02)
    cut = distribution("categorical", {"p": [0.2, 0.0, 0.5, 0.3]}, (1, 2))
    assert float(cut.mean()) == 2.0
    always = distribution("constant", {"v": [1.5, 2.5]}, (-INF, INF), (2,))
    assert always.mean().tolist() == [1.5, 2.5]
    assert (always.sample(np.random.default_rng(0), 3) == [1.5, 2.5]).all()


def test_arguments_and_bounds_stretch_to_the_shape() -> None:
    found = TruncatedDistribution(
        "normal",
        {"mean": np.array([0.0, 10.0, -10.0]), "sd": np.array([[1.0], [2.0]])},
        (2, 3),
        np.array([-3.0, 7.0, -13.0]),
        np.array([3.0, 13.0, -7.0]),
    )
    assert found.mean().shape == (2, 3)
    assert found.mean() == pytest.approx(np.array([[0, 10, -7.0], [0, 10, -7.0]]), abs=4.5)
    draws = found.sample(np.random.default_rng(1), 500)
    assert draws.shape == (500, 2, 3)
    assert (draws <= [3.0, 13.0, -7.0]).all()


def test_a_rare_range_is_drawn_by_inversion() -> None:
    """P(N(0, 1) in [8, 9]) is about 6e-16: no number of ordinary draws would find it."""
    found = distribution("normal", {"mean": 0, "sd": 1}, (8, 9))
    draws = found.sample(np.random.default_rng(3), 4000)
    expected = stats.truncnorm(8, 9)
    assert (
        stats.kstest(
            (stats.norm.sf(8) - stats.norm.sf(draws)) / (stats.norm.sf(8) - stats.norm.sf(9)), "uniform"
        ).pvalue
        > 1e-4
    )
    assert draws.mean() == pytest.approx(float(expected.mean()), abs=0.01)


def test_the_same_seed_gives_the_same_draws() -> None:
    found = distribution("poisson", {"mean": 30}, (0, 40), (3,))
    first, second = (found.sample(np.random.default_rng(5), 100) for _ in range(2))
    assert (first == second).all()


def test_an_infinite_variance_is_said_to_be_infinite() -> None:
    assert np.isinf(distribution("pareto", {"shape": 2, "mean": 5}, (-INF, INF)).variance())


def test_every_distribution_has_a_law_and_every_law_a_distribution() -> None:
    assert set(DISTRIBUTIONS) == set(FAMILIES)


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_every_distribution_can_be_written(kind: str) -> None:
    written = {
        "uniform": "uniform(0, 1)",
        "normal": "normal(0, 1)",
        "poisson": "poisson(3)",
        "exponential": "exponential(2)",
        "pareto": "pareto(3, mean = 8)",
        "bernoulli": "bernoulli(0.5)",
        "binomial": "binomial(5, 0.5)",
        "gamma": "gamma(2, mean = 3)",
        "beta": "beta(2, 3)",
        "lognormal": "lognormal(0, 1)",
        "categorical": "categorical([0.5, 0.5])",
        "constant": "constant(2)",
    }[kind]
    model = parse(f"model m\nhorizon T = 9\ndecision x[2] in box(0, 1)\nstream a[2] ~ {written}\nminimize a @ x\n")
    distribution = model.streams[0].distribution
    assert distribution is not None and distribution.kind == kind


def test_few_probabilities_of_a_normal_law_equal_those_of_scipy() -> None:
    """Without loading SciPy; far into both tails."""
    z = np.concatenate([np.linspace(-37, 37, 61), [np.inf, -np.inf, 0.0]])
    assert z.size <= families.FEW
    found, expected = families._below(z), special.ndtr(z)
    assert (found[-3:] == [1.0, 0.0, 0.5]).all()
    assert (
        np.abs(found / expected - 1)[:-3] <= 1e-15 * (1 + z[:-3] ** 2 / 2)
    ).all()  # exp(-z**2 / 2) has no more digits
    assert families._below(np.array(0.0)) == 0.5 and families._below(np.zeros((0, 3))).shape == (0, 3)


def test_few_probabilities_of_a_poisson_law_are_those_of_the_incomplete_gamma_function() -> None:
    """Without loading SciPy, whose digits are fewer; P(X > k) = P(k + 1, mean), both tails down to the least doubles."""
    means = np.array([1e-9, 0.3, 1.0, 15.0, 37.7, families.SMALL_MEAN])
    places = np.array([0.0, 1.0, 2.5, 15.0, 40.0, 100.0, 150.0, 250.0, 400.0, 999.0, 1000.0, 1e300]).reshape(-1, 1)
    below, above = families._poisson(places, means)
    with mpmath.workdps(40):
        for (k, m), mean in np.ndenumerate(np.broadcast_to(means, below.shape)):
            shape = int(min(places[k, 0], 2000)) + 1
            tails = [(0, mean, above), (mean, mpmath.inf, below)]
            for lower, upper, found in tails:
                expected = mpmath.gammainc(shape, lower, upper, regularized=True)
                assert abs(found[k, m] - expected) <= 5e-15 * expected + 1e-305
    large = families._poisson(places[:-1], np.full(families.FEW + 1, 15.0))  # many: by SciPy
    for few, many in zip((below, above), large, strict=True):
        np.testing.assert_allclose(many[:, 0], few[:-1, 3], rtol=5e-13)


@pytest.mark.parametrize("size", [(), (1,), (5,)])
def test_moments_of_a_long_categorical_law_are_sums_over_its_values(size: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    p /= p.sum()
    low, high = rng.uniform(-100, 2000, size), rng.uniform(1000, 3500, size)
    for k in range(3):
        found = FAMILIES["categorical"].moment(k, {"p": p}, np.asarray(low), np.asarray(high))
        values = np.arange(3000.0)
        expected = [(p * values**k)[(values >= a) & (values <= b)].sum() for a, b in zip(np.ravel(low), np.ravel(high))]
        assert found.shape == size and np.allclose(np.ravel(found), expected, rtol=1e-12)
