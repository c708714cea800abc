"""Families of distributions: partial moments in closed form, and draws.

For a random variable X and lo <= hi, `moment(k, args, lo, hi)` is E[X^k 1{lo <= X <= hi}] for k = 0, 1, 2: the mean of
the distribution truncated to [lo, hi] is moment 1 over moment 0. Each is a probability under the same family with
shifted parameters, x f(x; a) being proportional to f(x; a + 1) or so (Johnson, Kotz & Balakrishnan, Continuous
Univariate Distributions; Johnson, Kemp & Kotz, Univariate Discrete Distributions).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from oco.dsl.magnitudes import HUGE
from oco.dsl.records import dataclass

Array = np.ndarray[Any, Any]
Args = Mapping[str, Array]
Size = tuple[int, ...]
FEW = 64


@dataclass(frozen=True)
class Family:
    """Family of distributions. `moment` as above; `support` is the least interval of probability 1; `draw(args, rng,
    size)` gives untruncated values.
    """

    support: Callable[[Args], tuple[Any, Any]]
    moment: Callable[[int, Args, Array, Array], Array]
    draw: Callable[[Args, np.random.Generator, Size], Array]
    discrete: bool = False


def _between(below: Callable[[Array], Array], above: Callable[[Array], Array], lo: Array, hi: Array) -> Array:
    """Probability P(lo < X <= hi) from the distribution function or its complement, whichever loses fewer digits."""
    upper_tail = below(lo) > 0.5
    return np.maximum(np.where(upper_tail, above(lo) - above(hi), below(hi) - below(lo)), 0.0)


def _below(z: Array) -> Array:
    """Probability P(Z <= z) of a standard normal. For a few numbers SciPy would take longer to load."""
    if z.size <= FEW:
        return np.reshape([0.5 * math.erfc(-v / math.sqrt(2)) for v in z.flat], z.shape)
    from scipy.special import ndtr

    return np.asarray(ndtr(z))


# uniform(lo, hi)


def _uniform_moment(k: int, args: Args, lo: Array, hi: Array) -> Array:
    power = sum(lo**i * hi ** (k - i) for i in range(k + 1)) / (k + 1)  # (hi^(k+1) - lo^(k+1)) / ((k+1) (hi - lo))
    return np.asarray(power * (hi - lo) / (args["hi"] - args["lo"]))


# normal(mean, sd)


def _standard_moments(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Moments E[Z^k 1{a <= Z <= b}] of a standard normal, k = 0, 1, 2."""

    def density(z: Array) -> Array:
        return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))

    def tail(z: Array) -> Array:
        return np.where(np.isinf(z), 0.0, z) * density(z)

    probability = _between(_below, lambda z: _below(-z), a, b)
    return probability, density(a) - density(b), probability + tail(a) - tail(b)


def _normal_moment(k: int, args: Args, lo: Array, hi: Array) -> Array:
    mean, sd = args["mean"], args["sd"]
    p, first, second = _standard_moments((lo - mean) / sd, (hi - mean) / sd)
    return np.asarray((p, mean * p + sd * first, mean**2 * p + 2 * mean * sd * first + sd**2 * second)[k])


# lognormal(mu, sigma): E[X^k 1] = exp(k mu + k^2 sigma^2 / 2) P(lo <= exp(N(mu + k sigma^2, sigma)) <= hi)


def _lognormal_moment(k: int, args: Args, lo: Array, hi: Array) -> Array:
    mu, sigma = args["mu"], args["sigma"]
    with np.errstate(divide="ignore"):
        a, b = ((np.log(np.maximum(end, 0.0)) - mu) / sigma - k * sigma for end in (lo, hi))
    return np.asarray(np.exp(k * mu + 0.5 * k * k * sigma**2) * _between(_below, lambda z: _below(-z), a, b))


# gamma(shape, mean): E[X^k 1] = scale^k shape (shape + 1) ... P(lo <= Gamma(shape + k, scale) <= hi)


def _gamma_moment(k: int, args: Args, lo: Array, hi: Array) -> Array:
    from scipy.special import gammainc, gammaincc

    shape, scale = args["shape"], args["mean"] / args["shape"]
    factor = (np.ones_like(scale), scale * shape, scale**2 * shape * (shape + 1))[k]
    a, b = (np.maximum(end, 0.0) / scale for end in (lo, hi))
    return np.asarray(factor * _between(lambda z: gammainc(shape + k, z), lambda z: gammaincc(shape + k, z), a, b))


def _exponential(args: Args) -> Args:
    """Exponential distribution as the gamma distribution of shape 1."""
    return {"shape": np.ones_like(args["mean"], dtype=float), "mean": args["mean"]}


# beta(a, b): E[X^k 1] = a (a + 1) ... / ((a + b) (a + b + 1) ...) P(lo <= Beta(a + k, b) <= hi)


def _beta_moment(k: int, args: Args, lo: Array, hi: Array) -> Array:
    from scipy.special import betainc

    a, b = args["a"], args["b"]
    factor = (np.ones_like(a + b), a / (a + b), a * (a + 1) / ((a + b) * (a + b + 1)))[k]
    x, y = (np.clip(end, 0.0, 1.0) for end in (lo, hi))
    return np.asarray(factor * _between(lambda z: betainc(a + k, b, z), lambda z: betainc(b, a + k, 1 - z), x, y))


# pareto(shape, mean): density shape scale^shape / x^(shape + 1) for x >= scale = mean (shape - 1) / shape


def _pareto_scale(args: Args) -> Array:
    return np.asarray(args["mean"] * (args["shape"] - 1) / args["shape"])


def _pareto_moment(k: int, args: Args, lo: Array, hi: Array) -> Array:
    shape, scale = args["shape"], _pareto_scale(args)
    lo, hi = np.maximum(lo, scale) / scale, np.maximum(hi, scale) / scale
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_case = np.where(shape == k, np.log(hi) - np.log(lo), 0.0)
        power = np.where(shape == k, 1.0, k - shape)
        general = (hi**power - lo**power) / power
    return np.asarray(scale**k * shape * np.where(shape == k, log_case, general))


# poisson(mean): E[X 1] = mean P(lo - 1 <= X <= hi - 1), E[X (X - 1) 1] = mean^2 P(lo - 2 <= X <= hi - 2)


def _factorial_moments(k: int, parts: Callable[[int], Array]) -> Array:
    """Moments E[X^k 1] from E[X (X - 1) ... (X - j + 1) 1] = parts(j)."""
    return parts(k) if k < 2 else parts(2) + parts(1)


SMALL_MEAN, LARGEST_SEEN = 100.0, 1000
"""Means up to which probabilities of single numbers are added up; beyond the second number those of such a mean are below all doubles."""


@lru_cache(maxsize=FEW)
def _poisson_sums(mean: float) -> Array:
    """Probabilities P(X <= k) and P(X > k), shape (2, k), for k up to `LARGEST_SEEN`."""
    each = np.exp(-mean) * np.cumprod(np.append(1.0, mean / np.arange(1.0, LARGEST_SEEN + 1)))
    sums = np.stack([np.cumsum(each), np.append(np.cumsum(each[:0:-1])[::-1], 0.0)])
    sums.setflags(write=False)
    return sums


def _poisson(x: Array, mean: Array) -> tuple[Array, Array]:
    """Probabilities P(X <= x) and P(X > x), for x >= 0. For a few small means SciPy would take longer to load."""
    if mean.size > FEW or np.any(mean > SMALL_MEAN):
        from scipy.special import pdtr, pdtrc

        return np.asarray(pdtr(x, mean)), np.asarray(pdtrc(x, mean))
    sums = np.stack([_poisson_sums(float(m)) for m in mean.flat])
    places = np.arange(mean.size).reshape(mean.shape), np.minimum(x, LARGEST_SEEN).astype(int)
    return sums[places[0], 0, places[1]], sums[places[0], 1, places[1]]


def _poisson_moment(k: int, args: Args, lo: Array, hi: Array) -> Array:
    mean = args["mean"]

    def below(x: Array) -> Array:
        return np.where(x < 0, 0.0, np.where(np.isinf(x), 1.0, _poisson(np.clip(x, 0, HUGE), mean)[0]))

    def above(x: Array) -> Array:
        return np.where(x < 0, 1.0, np.where(np.isinf(x), 0.0, _poisson(np.clip(x, 0, HUGE), mean)[1]))

    return _factorial_moments(k, lambda j: mean**j * _between(below, above, lo - 1 - j, hi - j))


# binomial(n, p): the same with n (n - 1) ... p^j and n - j trials


def _binomial_moment(k: int, args: Args, lo: Array, hi: Array) -> Array:
    from scipy.special import betainc

    trials, p = args["n"], args["p"]

    def part(j: int) -> Array:
        left = np.maximum(trials - j, 0)
        factor = (np.ones_like(p), trials * p, trials * (trials - 1) * p**2)[j]

        def below(x: Array) -> Array:  # P(X <= x) = I_{1-p}(left - x, x + 1)
            inside = betainc(np.maximum(left - x, 1), np.maximum(x, 0) + 1, 1 - p)
            return np.where(x < 0, 0.0, np.where(x >= left, 1.0, inside))

        def above(x: Array) -> Array:
            inside = betainc(np.maximum(x, 0) + 1, np.maximum(left - x, 1), p)
            return np.where(x < 0, 1.0, np.where(x >= left, 0.0, inside))

        return np.asarray(factor * _between(below, above, lo - 1 - j, hi - j))

    return _factorial_moments(k, part)


def _bernoulli(args: Args) -> Args:
    return {"n": np.ones_like(args["p"], dtype=float), "p": args["p"]}


MOST_ADDED = 1_000
"""Limit on probabilities added up one by one where the bounds differ from entry to entry."""

# categorical(p): 0, 1, ..., k - 1 with the probabilities p; constant(v)


def _categorical_moment(k: int, args: Args, lo: Array, hi: Array) -> Array:
    parts = args["p"] * np.arange(len(args["p"]), dtype=float) ** k
    total = np.zeros(np.broadcast_shapes(lo.shape, hi.shape))
    if total.size > 1 and len(parts) > MOST_ADDED:
        sums = np.append(0.0, np.cumsum(parts))
        first, last = np.clip(np.ceil(lo), 0, len(parts)), np.clip(np.floor(hi) + 1, 0, len(parts))
        return np.asarray(sums[np.maximum(first, last).astype(int)] - sums[first.astype(int)])
    if total.size == 1:
        values = np.arange(len(parts))
        return np.reshape(np.cumsum(np.where((lo <= values) & (values <= hi), parts, 0.0))[-1], total.shape)
    for value, part in enumerate(parts):
        total = total + np.where((lo <= value) & (value <= hi), part, 0.0)
    return np.asarray(total)


def _categorical_draw(args: Args, rng: np.random.Generator, size: Size) -> Array:
    edges = np.cumsum(args["p"])
    return np.minimum(np.searchsorted(edges / edges[-1], rng.random(size), side="right"), len(edges) - 1)


def _constant_moment(k: int, args: Args, lo: Array, hi: Array) -> Array:
    value = args["v"]
    return np.where((lo <= value) & (value <= hi), np.asarray(value, dtype=float) ** k, 0.0)


FAMILIES: dict[str, Family] = {
    "uniform": Family(
        lambda a: (a["lo"], a["hi"]), _uniform_moment, lambda a, rng, size: rng.uniform(a["lo"], a["hi"], size)
    ),
    "normal": Family(
        lambda a: (-np.inf, np.inf), _normal_moment, lambda a, rng, size: rng.normal(a["mean"], a["sd"], size)
    ),
    "lognormal": Family(
        lambda a: (0.0, np.inf), _lognormal_moment, lambda a, rng, size: rng.lognormal(a["mu"], a["sigma"], size)
    ),
    "exponential": Family(
        lambda a: (0.0, np.inf),
        lambda k, a, lo, hi: _gamma_moment(k, _exponential(a), lo, hi),
        lambda a, rng, size: rng.exponential(a["mean"], size),
    ),
    "gamma": Family(
        lambda a: (0.0, np.inf),
        _gamma_moment,
        lambda a, rng, size: rng.gamma(a["shape"], a["mean"] / a["shape"], size),
    ),
    "beta": Family(lambda a: (0.0, 1.0), _beta_moment, lambda a, rng, size: rng.beta(a["a"], a["b"], size)),
    "pareto": Family(
        lambda a: (_pareto_scale(a), np.inf),
        _pareto_moment,
        lambda a, rng, size: _pareto_scale(a) * (1.0 + rng.pareto(a["shape"], size)),
    ),
    "poisson": Family(
        lambda a: (0.0, np.inf), _poisson_moment, lambda a, rng, size: rng.poisson(a["mean"], size), discrete=True
    ),
    "binomial": Family(
        lambda a: (0.0, a["n"]),
        _binomial_moment,
        lambda a, rng, size: rng.binomial(np.asarray(a["n"], dtype=np.int64), a["p"], size),
        discrete=True,
    ),
    "bernoulli": Family(
        lambda a: (0.0, 1.0),
        lambda k, a, lo, hi: _binomial_moment(k, _bernoulli(a), lo, hi),
        lambda a, rng, size: rng.binomial(1, a["p"], size),
        discrete=True,
    ),
    "categorical": Family(
        lambda a: (0.0, float(len(a["p"]) - 1)), _categorical_moment, _categorical_draw, discrete=True
    ),
    "constant": Family(
        lambda a: (a["v"], a["v"]), _constant_moment, lambda a, rng, size: np.broadcast_to(a["v"], size)
    ),
}
