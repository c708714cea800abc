"""Bets against what a model states of its streams: functions of a value whose mean is one if the statement holds.

mean          1 + lambda (x - mu), with lambda of both signs and of several sizes, such that it is positive over the range of x
              (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting")
independence  1 + lambda s (x - mu), with s the sign of the last x - mu: its mean given the past is one
distribution  q_k / p_k on bin k of the values, p their stated probabilities, q those of an alternative that is shifted or stretched
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical, StreamRange
from oco.dsl.distributions import TruncatedDistribution
from oco.dsl.families import FAMILIES
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
MOST_WATCHED = 64
"""Entries of a stream that are watched, so that a round of a large one stays cheap; bets on fewer are as sound."""
SIZES = (0.9, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015)
"""Shares of the largest bets that stay positive; the small ones are for small shifts."""
SERIAL = (0.5, 0.12, 0.03)
LEVELS = (0.001, 0.01, 0.05, 0.15, 0.35, 0.65, 0.85, 0.95, 0.99, 0.999)
"""Quantiles between the bins of a distribution."""
SHIFTS = (-4.0, -2.0, -1.0, -0.5, -0.25, 0.25, 0.5, 1.0, 2.0, 4.0)
LEAST = 1e-9
"""Least payment of a bet: it would be less for values outside of the range alone."""
STRETCHES = (-0.5, -0.25, 0.15, 0.3, 0.6)
"""Alternatives: p_k exp(a z_k) and p_k exp(a z_k^2), with z_k the normal score of bin k."""


@dataclass(frozen=True, eq=False)
class Bets:
    """Bets against one statement about an entry of a stream.

    statement  in words
    slopes     lambda of each bet on the mean, (J,); none of a distribution
    serial     True where the slopes are multiplied with the sign of the last difference from the mean
    edges      between bins (K - 1,), and `odds` (J, K), the payments of the bets on each; none of a mean
    """

    statement: str
    mean: float = 0.0
    slopes: Floats | None = None
    serial: bool = False
    edges: Floats | None = None
    odds: Floats | None = None

    @cached_property
    def count(self) -> int:
        """J: number of bets."""
        return len(self.slopes if self.slopes is not None else self.odds)  # type: ignore[arg-type]

    def paid(self, values: Floats, before: float) -> Floats:
        """Payments of each bet for values (T,), `before` being the value before the first (nan: none), shape (T, J)."""
        if self.odds is not None:
            assert self.edges is not None
            return np.asarray(self.odds.T[np.searchsorted(self.edges, values, side="left")])
        away = values - self.mean
        if self.serial:
            last = np.concatenate([[before], values[:-1]]) - self.mean
            away = away * np.where(np.isnan(last), 0.0, np.sign(last))
        assert self.slopes is not None
        return np.maximum(1.0 + away[:, None] * self.slopes, LEAST)


@dataclass(frozen=True, eq=False)
class StatedEntry:
    """Entry of a stream about which a model states something, with the bets against it; `place` is its flat position."""

    stream: str
    place: int
    bets: tuple[Bets, ...]


@lru_cache(maxsize=16)
def stated_entries(problem: Canonical, streams: frozenset[str] | None = None) -> tuple[StatedEntry, ...]:
    """Statements of a problem about means and distributions of these streams, or of all, for `MOST_WATCHED` entries of each at most."""
    stated = (s for s in problem.streams if s.stochastic and s.mean is not None)
    return tuple(entry for s in stated if streams is None or s.name in streams for entry in _entries(s))


def _entries(stream: StreamRange) -> Iterator[StatedEntry]:
    """Entries of a stream that can be bet on, spread evenly where there are more than are watched."""
    low, high, mean = (_flat(a, stream.shape) for a in (stream.lower, stream.upper, stream.mean))
    places = np.linspace(0, low.size - 1, min(low.size, MOST_WATCHED)).astype(int).tolist()
    bins = None if stream.distribution is None else _bins(stream.distribution.at(places))
    for n, k in enumerate(places):
        place = ", ".join(map(str, np.unravel_index(k, stream.shape)))
        name = f"{stream.name}[{place}]" if stream.shape else stream.name
        bets = list(_on_mean(name, float(low[k]), float(high[k]), float(mean[k])))
        if bins is not None and (own := _on_bins(bins[0][:, n], bins[1][:, n])) is not None:
            bets.append(Bets(f"`{name}` has the distribution that is stated", edges=own[0], odds=own[1]))
        if bets:
            yield StatedEntry(stream.name, k, tuple(bets))


def _flat(values: Any, shape: tuple[int, ...]) -> Floats:
    return np.broadcast_to(np.asarray(values, dtype=np.float64), shape).reshape(-1)


def _on_mean(name: str, low: float, high: float, mean: float) -> Iterator[Bets]:
    """Bets on the mean, and on its independence of the value before."""
    up = SIZES if mean > low > -np.inf else ()
    down = SIZES if mean < high < np.inf else ()
    if not np.isfinite(mean) or not (up or down):
        return
    slopes = [c / (mean - low) for c in up] + [-c / (high - mean) for c in down]
    yield Bets(f"the mean of `{name}` is {mean:.6g}", mean, np.array(slopes))
    if up and down:
        least = 1 / max(mean - low, high - mean)
        both = [sign * c * least for c in SERIAL for sign in (1, -1)]
        yield Bets(f"rounds of `{name}` are independent", mean, np.array(both), serial=True)


def _bins(own: TruncatedDistribution) -> tuple[Floats, Floats]:
    """Quantiles at `LEVELS` of each entry, and the probabilities of values up to them, (levels, entries) both."""
    family, total = FAMILIES[own.kind], _flat(own.probability(), own.shape)
    edges = [own.quantile(q) for q in LEVELS]
    with np.errstate(all="ignore"):
        reached = [_flat(family.moment(0, own.args, own.lower, e), own.shape) / total for e in edges]
    return np.array([_flat(e, own.shape) for e in edges]), np.minimum(reached, 1.0)


def _on_bins(edges: Floats, reached: Floats) -> tuple[Floats, Floats] | None:
    """Edges (K - 1,) and odds (J, K) of an entry, bins without probability left out; None where all values are in one."""
    rises = np.diff(reached, prepend=0.0) > 0
    edges, reached = edges[rises], reached[rises]
    chance = np.diff(reached, prepend=0.0, append=1.0)
    if chance[-1] <= 0:
        edges, chance = edges[:-1], chance[:-1]
    if len(chance) < 2 or not np.isfinite(chance).all():
        return None
    chance = chance / chance.sum()
    scores = _normal_scores(np.cumsum(chance) - chance / 2)
    tilts = [*(a * scores for a in SHIFTS), *(a * scores**2 for a in STRETCHES)]
    return edges, np.array([_odds(chance, tilt) for tilt in tilts])


def _odds(chance: Floats, tilt: Floats) -> Floats:
    """q / p for q in proportion to p exp(tilt)."""
    weights = np.exp(tilt - tilt.max())
    return np.asarray(weights / float(chance @ weights))


def _normal_scores(shares: Floats) -> Floats:
    """Quantiles of the normal distribution, near enough for alternatives: a logistic curve."""
    cut = np.clip(shares, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(cut / (1 - cut)) / 1.702)


def payments(entries: Sequence[StatedEntry], values: dict[str, Floats], before: dict[str, Floats]) -> Floats:
    """Payments of all bets in rounds of these streams, each (T, entries); `before`: the round before, (entries,). Shape (T, B)."""
    parts = []
    for e in entries:
        last = float(before[e.stream][e.place]) if e.stream in before else np.nan
        parts += [b.paid(values[e.stream][:, e.place], last) for b in e.bets]
    return np.concatenate(parts, axis=1)
