"""Season of data: the number of rounds after which they repeat themselves, by their autocorrelation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from oco.dsl.magnitudes import SMALLEST

Floats = np.ndarray[Any, Any]

SHARE = 0.2
"""Share of the rounds that are looked at, so that the others still show what a season is worth."""
MOST_ROUNDS = 1 << 18
"""Rounds that are looked at, from which on their number shows no more: the memory for them does not grow with the data."""
LEAST_ROUNDS = 12  # rounds from which a correlation says something
LEAST_CORRELATION, DEVIATIONS = 0.1, 3.0
"""Least correlation at a season: this number, and so many standard deviations of the correlation of noise."""
DIP = 0.1
"""Least fall of the correlation before it rises again: a trend falls without an end."""
LIKE_PEAK = 0.9
"""Share of the largest correlation at which a shorter season is preferred to its multiples."""
MOST_ENTRIES, LEAST_ENTRIES = 200, 8
"""Entries of streams that are transformed: the others have the same season."""
MOST_NUMBERS = 1 << 20
"""Numbers that are transformed, where they are not those of `LEAST_ENTRIES`: a season of many rounds shows in few entries."""
OF_WAVES, OF_EVENTS = 2.0, 3.0
"""Standard deviations of the correlation of events that a season's is above: where it is a wave, and where it is not."""
TROUGH = 0.9
"""Share of its correlation by which the correlation of a wave falls below 0 before it."""
SEEN = 3
"""Times that a season has come in these rounds, at least, where it is no wave."""
ALONE = 0.5
"""Least correlation at a season of one stream where all together show none."""
MANIFOLD = 2
"""Least number of its own seasons that a season has which a stream does not share: the phases of that are learned so much later."""
USUAL = (7, 12, 24, 48, 52, 96, 168, 288, 336, 365, 672)
"""Seasons of calendars and clocks, one of which is taken where it is near a peak and its correlation nearly as large."""
NEAR, NEARLY = 0.1, 0.8


def season_of(data: Mapping[str, Floats], names: Iterable[str]) -> int:
    """Rounds of the season of these streams (the round first), as the first `SHARE` of the rounds show it; 1 where none shows."""
    values = _first(data, names)
    if len(values) < LEAST_ROUNDS:
        return 1
    correlations = _correlations(values)
    return _repeats(correlations, _least(correlations, len(values)))


def _first(data: Mapping[str, Floats], names: Iterable[str]) -> Floats:
    """First `SHARE` of the rounds of these streams, or `MOST_ROUNDS`, (R, E), of evenly spread entries where there are many numbers."""
    own = [np.asarray(data[n]) for n in names if n in data]
    rounds = min(int(SHARE * min((len(v) for v in own), default=0)), MOST_ROUNDS)
    if not rounds:
        return np.zeros((0, 1))
    entries = [(v[:rounds].reshape(rounds, -1), e) for v in own for e in range(v[:1].size)]
    most = min(MOST_ENTRIES, max(LEAST_ENTRIES, MOST_NUMBERS // rounds))
    return np.stack([v[:, e] for v, e in entries[:: -(-len(entries) // most)]], axis=1).astype(np.float64, copy=False)


def own_seasons(data: Mapping[str, Floats], names: Iterable[str]) -> dict[str, int]:
    """Seasons of streams that have their own, by name, and under "" the season of all others: where that of all together is worth less to a
    stream, or is a multiple of what is worth as much, or where only this stream shows one.
    """
    given = [n for n in names if n in data]
    common, own = season_of(data, given), dict[str, int]()
    for name in given:
        season = season_of(data, [name])
        if season == 1 or abs(season - common) <= NEAR * common:
            continue
        r = _correlations(_first(data, [name]))
        if common == 1:
            worse = bool(r[season] >= ALONE)
        else:
            worse = common >= len(r) or r[common] < LIKE_PEAK * r[season] or MANIFOLD * season <= common
        if worse:
            own[name] = season
    rest = season_of(data, [n for n in given if n not in own]) if own else common
    rest = max(own.values(), default=1) if rest == 1 else rest  # the others have none: they take that of most rounds
    return {"": rest, **{n: k for n, k in own.items() if k != rest}}


def _correlations(values: Floats) -> Floats:
    """Mean over the entries of the autocorrelation at lags 0..R/2 of what is above a straight line, of (R, E) values.

    The inverse transform is linear, so that one is enough for the mean of all spectra.
    """
    rounds = len(values)
    lags, columns = np.arange(rounds // 2 + 1), values.T
    slope = np.linspace(-1.0, 1.0, rounds)  # orthogonal to a constant, so that each is fitted by itself
    levels, trends = columns.mean(axis=1), columns @ slope / max(float(slope @ slope), SMALLEST)
    sizes = np.einsum("er,er->e", columns, columns)
    padded, moving = _fast_length(rounds + len(lags)), 0
    spectra = np.zeros(padded // 2 + 1)
    for column, level, trend, size in zip(columns, levels, trends, sizes):
        rest = column - (level + trend * slope)
        energy = float(rest @ rest)
        if energy > 1e-12 * max(float(size), SMALLEST * rounds):
            spectrum = np.fft.rfft(rest, padded)
            spectra += (spectrum.real**2 + spectrum.imag**2) / energy
            moving += 1
    total = np.fft.irfft(spectra, padded)[: len(lags)]
    return np.asarray(total / max(moving, 1) * rounds / (rounds - lags))


def _fast_length(least: int) -> int:
    """Smallest product of 2, 3 and 5 from `least` on: a length of fast transforms."""
    return min(m << max(0, int(np.ceil(np.log2(least / m)))) for m in (1, 3, 5, 9, 15, 25, 45, 75, 225))


def _least(r: Floats, rounds: int) -> Floats:
    """Least correlation that shows a season at each lag of correlations r from lag 0 on.

    Events of several rounds, floods or outages, are as far apart as chance has it, and much is alike at that lag: the variance of r at
    lag k is (1 + 2 sum_j r_j^2) / (R - k) over the lags j within an event (Bartlett 1946), before the first at which r is not positive.
    """
    within = r[1 : int(np.argmax(r <= 0.0)) if (r <= 0.0).any() else len(r)]
    lags, is_wave = np.arange(len(r)), np.minimum.accumulate(r) <= -TROUGH * r
    deviations = np.sqrt((1.0 + 2.0 * (within**2).sum()) / (rounds - lags))
    of_events = np.where(SEEN * lags <= rounds, OF_EVENTS * deviations, np.inf)
    return np.maximum(
        max(LEAST_CORRELATION, DEVIATIONS / np.sqrt(rounds)), np.where(is_wave, OF_WAVES * deviations, of_events)
    )


def _repeats(r: Floats, least: Floats) -> int:
    """Least lag at which the correlation r (lags from 0) rises to a peak that is nearly the largest; 1 where none is at least `least`."""
    lags = np.arange(2, len(r) - 1)
    before = np.minimum.accumulate(r)
    peaks = lags[(r[lags] >= r[lags - 1]) & (r[lags] >= r[lags + 1]) & (r[lags] >= before[lags] + DIP)]
    peaks = peaks[r[peaks] >= least[peaks]]
    if not len(peaks):
        return 1
    peak = int(peaks[r[peaks] >= LIKE_PEAK * r[peaks].max()][0])
    near = [k for k in USUAL if abs(k - peak) <= NEAR * peak and k < len(r) and r[k] >= NEARLY * r[peak]]
    return max(near, key=lambda k: r[k], default=peak)
