"""Table of distributions, and the distribution of a stream: support, mean, variance and draws, truncated to the
stream's bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from oco.dsl.diagnostics import InternalError
from oco.dsl.dims import Shape, broadcast, show
from oco.dsl.domains import Complaint
from oco.dsl.expressions import Expr
from oco.dsl.families import FAMILIES, Args, Array, Family
from oco.dsl.records import dataclass
from oco.dsl.statements import Distribution

RARE = 0.05
"""Probability below which a truncated draw inverts the distribution function instead of rejecting values outside."""

MANY = 1000
"""Categories of the distribution that a hint writes out, at most."""


@dataclass(frozen=True)
class DistributionKind:
    """Row of the table: `parameters` are given in order, `keywords` by name (`pareto(3, mean = 8)`); `wants` has a
    condition for each. `centre` is the parameter that is the mean where no value is cut off; "mean" where there is one.
    """

    name: str
    doc: str
    wants: Mapping[str, str]
    parameters: tuple[str, ...]
    keywords: tuple[str, ...] = ()
    centre: str = "mean"

    @property
    def family(self) -> Family:
        """Family with the moments and draws of the distribution."""
        return FAMILIES[self.name]

    @property
    def signature(self) -> str:
        """Signature in the language, as `pareto(shape, mean = ...)`."""
        return f"{self.name}({', '.join((*self.parameters, *(f'{k} = ...' for k in self.keywords)))})"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all arguments in order."""
        return (*self.parameters, *self.keywords)


DISTRIBUTIONS: dict[str, DistributionKind] = {
    kind.name: kind
    for kind in (
        DistributionKind("uniform", "any number in [lo, hi], all alike", {}, ("lo", "hi")),
        DistributionKind("normal", "the bell curve", {"sd": "positive"}, ("mean", "sd")),
        DistributionKind("poisson", "counts of independent arrivals", {"mean": "positive"}, ("mean",)),
        DistributionKind("exponential", "waiting times", {"mean": "positive"}, ("mean",)),
        DistributionKind("pareto", "heavy tails", {"shape": "above 1", "mean": "positive"}, ("shape",), ("mean",)),
        DistributionKind("bernoulli", "1 with probability p, else 0", {"p": "a probability"}, ("p",), centre="p"),
        DistributionKind("binomial", "successes in n trials", {"n": "whole", "p": "a probability"}, ("n", "p")),
        DistributionKind(
            "gamma", "sums of waiting times", {"shape": "positive", "mean": "positive"}, ("shape",), ("mean",)
        ),
        DistributionKind("beta", "a share between 0 and 1", {"a": "positive", "b": "positive"}, ("a", "b")),
        DistributionKind("lognormal", "exp of a normal(mu, sigma)", {"sigma": "positive"}, ("mu", "sigma")),
        DistributionKind("categorical", "0, 1, ... with the probabilities p", {"p": "probabilities"}, ("p",)),
        DistributionKind("constant", "always v", {}, ("v",), centre="v"),
    )
}

_WANTS: dict[str, tuple[Callable[[Array], Any], str]] = {
    "positive": (lambda v: v > 0, "must be positive"),
    "above 1": (lambda v: v > 1, "must be above 1, or the mean is infinite"),
    "a probability": (lambda v: (v >= 0) & (v <= 1), "must lie between 0 and 1"),
    "probabilities": (lambda v: v >= 0, "must be 0 or more"),
    "whole": (lambda v: (v >= 1) & (v == np.floor(v)), "must be an integer from 1 on"),
}


def check_shapes(kind: DistributionKind, shape: Shape, given: Mapping[str, Shape]) -> Complaint | None:
    """Check that arguments broadcast to the stream's shape; a categorical distribution has one vector of probabilities
    for all entries.
    """
    for name, result in given.items():
        if kind.name == "categorical":
            if len(result) != 1:
                message = f"has shape {show(result)}" if result else "is a number"
                return Complaint("OCO422", name, f"`{name}` is a vector of probabilities; here it {message}")
        elif broadcast(result, shape) != shape:
            fits = f"a stream of shape {show(shape)}" if shape else "a stream that is a number"
            return Complaint("OCO422", name, f"`{name}` has shape {show(result)}, which does not fit {fits}")
    return None


def check_values(kind: DistributionKind, given: Args) -> Complaint | None:
    """Complaint about values of the arguments; those absent from `given` have no value yet."""
    for name, rule in kind.wants.items():
        if name not in given:
            continue
        holds, words = _WANTS[rule]
        wrong = np.argwhere(~np.asarray(holds(given[name])))
        if len(wrong):
            at = tuple(wrong[0])
            where = f"entry [{', '.join(map(str, at))}] of " if at else ""
            return Complaint(
                "OCO423", name, f"{where}`{name}` {words}; it is {repr(given[name][at].item()).removesuffix('.0')}"
            )
    if kind.name == "uniform" and len(given) == 2 and not np.all(given["lo"] < given["hi"]):
        return Complaint("OCO423", "lo", "`lo` must be below `hi`", "for a fixed value write constant(v)")
    if kind.name == "categorical" and "p" in given and abs(float(given["p"].sum()) - 1) > 1e-9:
        return Complaint(
            "OCO423", "p", f"the probabilities must add up to 1; they add up to {float(given['p'].sum()):.12g}"
        )
    return None


def within(low: Array, high: Array, whole: bool, ends: tuple[str, str]) -> str | None:
    """Distribution, as in the language, whose truncation to [low, high] has this range as its support.

    `low` and `high` have an entry for each of the stream's, and `ends` are the words for them; None where no
    distribution fits.
    """
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return None if whole else "normal(0, 1)"
    least, greatest = float(low.min()), float(high.max())
    if not whole:
        return f"uniform({', '.join(ends)})" if (low < high).all() else None
    if least < 0:
        return None
    if greatest <= 1:
        return "bernoulli(0.5)"
    if greatest < MANY:
        return f"categorical(ones({greatest + 1:.0f}) / {greatest + 1:.0f})"
    return f"poisson({(least + greatest) / 2:.0f})"


@dataclass(frozen=True)
class TruncatedDistribution:
    """Distribution of one round of a stream of `shape`, truncated (not clipped) to [lower, upper] entry by entry."""

    kind: str
    args: Mapping[str, Array]
    shape: tuple[int, ...]
    lower: Array
    upper: Array

    @property
    def discrete(self) -> bool:
        """True where values are integers."""
        return FAMILIES[self.kind].discrete

    def at(self, places: Sequence[int]) -> TruncatedDistribution:
        """Distribution of the entries at these flat positions of the stream, shape (len(places),)."""

        def taken(values: Array) -> Array:
            return np.broadcast_to(values, self.shape).reshape(-1)[list(places)]

        shared = self.kind == "categorical"  # its probabilities are those of every entry
        args = self.args if shared else {n: taken(a) for n, a in self.args.items()}
        return replace(self, args=args, shape=(len(places),), lower=taken(self.lower), upper=taken(self.upper))

    def probability(self) -> Array:
        """Probability P(lower <= X <= upper) before truncation."""
        return self._moment(0)

    @property
    def stated_mean(self) -> Array | None:
        """Mean that the distribution is given by, shape `shape`; None where values are cut off or it has no such parameter."""
        centre = self.args.get(DISTRIBUTIONS[self.kind].centre)
        least, most = FAMILIES[self.kind].support(self.args)
        if centre is None or np.any(least < self.lower) or np.any(most > self.upper):
            return None
        return np.broadcast_to(centre, self.shape)

    def mean(self) -> Array:
        """Mean of the truncated distribution, shape `shape`."""
        stated = self.stated_mean
        if stated is not None:
            return stated
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = self._few(1) / self._few(0)  # as few numbers as the parameters have
        return np.broadcast_to(np.clip(mean, self.lower, self.upper), self.shape)

    def variance(self) -> Array:
        """Variance of the truncated distribution; infinite for a tail too heavy."""
        centre = self.mean()
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = self._moment(2) / self._moment(0) - centre**2
        return np.broadcast_to(np.maximum(spread, 0.0), self.shape)

    def quantile(self, share: float) -> Array:
        """Least value of each entry that is reached with probability `share` (0 to 1), shape `shape`."""
        return self._invert(np.full(self.shape, share))

    def sample(self, rng: np.random.Generator, rounds: int) -> Array:
        """Independent draws for `rounds` rounds: (rounds, *shape), int64 for a discrete distribution."""
        size = (rounds, *self.shape)
        values = np.asarray(FAMILIES[self.kind].draw(self.args, rng, size))
        probability = self._few(0)
        if not np.all(probability > 0):
            raise InternalError(f"draws of the distribution {self.kind} from a range that it never falls in")
        rare = probability < RARE
        if rare.any():
            values = np.where(rare, self._invert(rng.random(size)), values)
        least, most = FAMILIES[self.kind].support(self.args)
        if np.any(least < self.lower) or np.any(most > self.upper):
            while (outside := self._outside(values)).any():
                values = np.where(outside, FAMILIES[self.kind].draw(self.args, rng, size), values)
        return values.astype(np.int64) if self.discrete else values

    def _outside(self, values: Array) -> Array:
        """Mask of the entries outside the bounds."""
        outside = values < self.lower
        outside |= values > self.upper
        return outside

    def _moment(self, k: int) -> Array:
        return np.broadcast_to(self._few(k), self.shape)

    def _few(self, k: int) -> Array:
        """Moment in a shape that broadcasts to the stream's."""
        with np.errstate(all="ignore"):  # far tails overflow and underflow to the values that they have in the limit
            return np.asarray(FAMILIES[self.kind].moment(k, self.args, self.lower, self.upper))

    def _invert(self, u: Array) -> Array:
        """Quantiles at u of the truncated distribution, by bisection of P(lower <= X <= x)."""
        family, total = FAMILIES[self.kind], self.probability()
        low, high = self._finite(*(np.broadcast_to(end, u.shape) for end in (self.lower, self.upper)))
        while True:
            middle = np.floor((low + high) / 2) if self.discrete else low + (high - low) / 2
            if np.all((low >= high) | (not self.discrete and ((middle <= low) | (middle >= high)))):
                return high
            reached = family.moment(0, self.args, self.lower, middle) >= u * total
            low, high = np.where(reached, low, middle + 1 if self.discrete else middle), np.where(reached, middle, high)

    def _finite(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Finite ends that leave out only negligible probability; the ends themselves where doubles hold none."""
        anchor = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
        total, width = self.probability(), 1.0
        while np.isfinite(width):
            left = np.where(np.isinf(low), anchor - width, low)
            right = np.where(np.isinf(high), anchor + width, high)
            if np.all(FAMILIES[self.kind].moment(0, self.args, left, right) >= (1 - 1e-12) * total):
                return left, right
            width *= 2.0
        largest = np.finfo(np.float64).max
        return np.where(np.isinf(low), -largest, low), high


def truncated(
    distribution: Distribution,
    array: Callable[[Expr], Array],
    shape: tuple[int, ...],
    bounds: tuple[Array, Array] | None = None,
) -> TruncatedDistribution:
    """Truncated distribution for a stream of `shape`; `array` gives the value of an argument."""
    kind = DISTRIBUTIONS[distribution.kind]
    exprs = dict(zip(kind.parameters, distribution.args)) | dict(distribution.options)
    args = {name: np.asarray(array(e), dtype=np.float64) for name, e in exprs.items()}
    lower, upper = (np.asarray(end, dtype=np.float64) for end in kind.family.support(args))
    if bounds is not None:
        lower, upper = np.maximum(lower, bounds[0]), np.minimum(upper, bounds[1])
    if kind.family.discrete:
        lower, upper = np.ceil(lower), np.floor(upper)
    return TruncatedDistribution(kind.name, args, shape, lower, upper)
