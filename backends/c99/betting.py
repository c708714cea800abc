"""Wealth of bets against stated streams, in C (`bets.c`)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from oco.backends.c99.build import bets_library
from oco.compiler.evidence.bets import LEAST, LEVELS, StatedEntry
from oco.compiler.evidence.wealth import stakes
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
Rounded = Callable[[Any], Floats]
LANES, NARROW = 8, 16
"""Bets of a group, which one vector holds, in double precision and in single precision."""
UNIT = 2.0**-24
"""Largest relative error of a rounding to single precision.

A bound takes e = b + s a for a payment p = 1 + lambda a, two roundings after those of s and a. With s = (1 + 8 u) lambda, b >= 1 + 12 u and
u the unit, e is at least (1 + 3 u) p, since |lambda a| <= 1 + p: by more than the product with the wealth and the sum with a share lose.
"""
SUMS = 0.01
"""Relative error at most of sums of positive numbers in single precision: those of 10^5 terms, while a tile has a few thousand."""
LINE = 64
"""Bytes of a line of the cache."""
MEAN, SERIAL, BINNED = range(3)
"""Kinds of statements about an entry, one of each at most, in the order of their lanes."""


class _Entry(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("first", "mean", "serial", "binned", "odds")),
        ("prior", ctypes.c_double * 3),
    ]


class _Beside(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("first", "count", "stream", "place", "edges", "binned")),
        *((name, ctypes.c_double * LANES) for name in ("centre", "low", "high")),
    ]


class _Tables(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("slope", "base", "least", "edges", "odds")]


@lru_cache(maxsize=16)
def growth(entries: tuple[StatedEntry, ...]) -> NativeGrowth:
    """Growth of the wealth of bets on entries, with its tables in memory."""
    return NativeGrowth(entries)


@dataclass(frozen=True, eq=False)
class _Layout:
    """Bets in groups of lanes, filled up with bets that pay nothing.

    entries  rows of C, one an entry
    places   lane of each bet (B,)
    width    number of lanes
    stake    sum of the stakes of all lanes
    columns  slopes, bases and least payments by lane, edges, and odds: what `tables` points to
    """

    entries: Any
    places: Floats
    width: int
    stake: float
    columns: tuple[Floats, ...]

    @property
    def tables(self) -> _Tables:
        """Addresses of the columns."""
        return _Tables(*(c.ctypes.data for c in self.columns))


@np.errstate(over="ignore")
def _above(values: Any) -> Floats:
    """Numbers of single precision above these, of which none is negative, by two units at least; processors take long for smaller ones than
    the least.
    """
    return np.maximum(np.asarray((1.0 + 4 * UNIT) * np.asarray(values), dtype=np.float32), np.finfo(np.float32).tiny)


@np.errstate(over="ignore")
def _laid_out(
    entries: tuple[StatedEntry, ...], edges: Floats, lanes: int, rounded: Rounded, spare: float = 0.0, more: float = 0.0
) -> _Layout:
    """Layout with so many lanes to a group, with payments of `1 + spare` times themselves and `more`, in numbers that are `rounded`."""
    bets = [b for e in entries for b in e.bets]
    groups = [-(-b.count // lanes) for b in bets]
    firsts = np.cumsum([0, *groups]) * lanes
    width, kind = int(firsts[-1]), rounded(np.zeros(1)).dtype
    places = np.concatenate([first + np.arange(b.count) for first, b in zip(firsts, bets)])
    slope, base, least = (np.zeros(width, kind) for _ in range(3))
    rows, odds, total = (_Entry * len(entries))(), [np.zeros(0, kind)], 0.0
    stake, begun = stakes(entries), np.cumsum([0, *(b.count for b in bets)])
    statements = iter(zip(bets, firsts, groups, stake[begun[:-1]]))
    for row, entry in zip(rows, entries):
        for number, (b, first, count, prior) in enumerate(islice(statements, len(entry.bets))):
            row.first = row.first if number else first
            total += prior * lanes * count
            if b.odds is not None:
                row.binned, row.prior[BINNED], row.odds = count, prior, sum(map(len, odds))
                odds.append(_in_lanes(rounded((1.0 + spare) * b.odds), count * lanes))
                continue
            own = slice(int(first), int(first) + b.count)
            slope[own], base[own] = (1.0 + spare) * np.asarray(b.slopes), rounded(np.array(1.0 + spare + more))
            least[own] = rounded(np.array((1.0 + spare) * LEAST + more))
            if b.serial:
                row.serial, row.prior[SERIAL] = count, prior
            else:
                row.mean, row.prior[MEAN] = count, prior
    return _Layout(rows, places, width, total, (slope, base, least, edges, _aligned(np.concatenate(odds))))


class NativeGrowth:
    """`Growth` of the bets of these entries.

    Wealth differs from that in NumPy by rounding alone: products and sums are fused.
    """

    def __init__(self, entries: tuple[StatedEntry, ...]) -> None:
        library = bets_library()
        self._play, self._most = library.oco_bets_play, library.oco_bets_most
        self._play.restype, self._most.restype = None, ctypes.c_double
        self._streams = tuple(dict.fromkeys(e.stream for e in entries))
        self._places = [(e.stream, e.place) for e in entries]
        self._taken = _scattered(entries)
        self._groups, edges = _groups(entries, self._taken)
        self._wide = _laid_out(entries, edges, LANES, np.asarray)
        self._narrow = _laid_out(entries, edges, NARROW, _above, 8 * UNIT, 4 * UNIT)

    def __call__(
        self, begun: Floats, values: Mapping[str, Floats], last: Mapping[str, Floats], shares: Floats
    ) -> tuple[Floats, Floats]:
        """Wealth after rounds, by bet (B,), and what it is in all after each of them (T,)."""
        own, totals, later = self._wide, np.empty(len(shares)), np.append(shares[1:], 0.0)
        wealth = np.full(own.width, shares[0])
        wealth[own.places] += begun
        self._through(self._play, own, wealth, values, last, later, _pointer(totals))
        return wealth[own.places], totals - own.stake * later

    def at_most(
        self, begun: Floats, values: Mapping[str, Floats], last: Mapping[str, Floats], shares: Floats
    ) -> tuple[Floats, float]:
        """Bounds of the wealth after rounds, by bet (B,), and one of what it is in all after each of them."""
        own, later = self._narrow, _above(np.append(shares[1:], 0.0))
        wealth = np.full(own.width, _above(shares[0]))
        wealth[own.places] += _above(begun)
        most = self._through(self._most, own, wealth, values, last, later)
        return wealth[own.places], (1.0 + SUMS) * float(most)

    def _through(
        self,
        function: Any,
        own: _Layout,
        wealth: Floats,
        values: Mapping[str, Floats],
        last: Mapping[str, Floats],
        later: Floats,
        *more: Any,
    ) -> Any:
        """Result of a function of C that takes wealth by lane through rounds, in place; `later`: shares of the rounds after each."""
        rows = [
            _in_rows(values[n].take(self._taken[n], axis=1) if n in self._taken else values[n]) for n in self._streams
        ]
        addresses = (ctypes.c_void_p * len(rows))(*(r.ctypes.data for r in rows))
        strides = np.array([r.strides[0] // r.itemsize for r in rows])
        before = np.array([last[stream][place] if last else np.nan for stream, place in self._places])
        return function(
            _pointer(wealth),
            *(own.entries, self._groups, ctypes.c_int64(len(self._groups)), ctypes.byref(own.tables)),
            *(addresses, _pointer(strides), _pointer(before), _pointer(later), ctypes.c_int64(len(later))),
            *more,
        )


def _scattered(entries: Sequence[StatedEntry]) -> dict[str, list[int]]:
    """Places of the entries of streams whose entries do not lie beside each other: these are taken out of their rows before."""
    places: dict[str, list[int]] = {}
    for e in entries:
        places.setdefault(e.stream, []).append(e.place)
    return {stream: own for stream, own in places.items() if own[-1] - own[0] != len(own) - 1}


def _groups(entries: Sequence[StatedEntry], taken: Mapping[str, Sequence[int]]) -> tuple[Any, Floats]:
    """Entries beside each other, `LANES` of them at most, and the edges of their bins, a row of lanes for each; `taken`: `_scattered`."""
    streams = dict.fromkeys(e.stream for e in entries)
    runs = [
        own[k : k + LANES]
        for own in ([e for e in entries if e.stream == s] for s in streams)
        for k in range(0, len(own), LANES)
    ]
    results, edges, first = (_Beside * len(runs))(), [np.zeros(0)], 0
    for row, own in zip(results, runs):
        stream, place = own[0].stream, own[0].place
        row.first, row.count, row.stream = first, len(own), [*streams].index(stream)
        row.place = taken[stream].index(place) if stream in taken else place
        binned = [next((b.edges for b in e.bets if b.edges is not None), np.zeros(0)) for e in own]
        row.edges, row.binned = sum(map(len, edges)), any(map(len, binned))
        if row.binned:
            full = [np.pad(b, (0, len(LEVELS) - len(b)), constant_values=np.inf) for b in binned]
            edges.append(_in_lanes(np.array(full), LANES))
        for k, entry in enumerate(own):
            row.centre[k], row.low[k], row.high[k] = _above_the_least(entry)
        first += len(own)
    return results, np.concatenate(edges)


def _in_lanes(rows: Floats, width: int) -> Floats:
    """Columns of rows, each filled up with zeros to so many lanes, one after the other."""
    result = np.zeros((rows.shape[1], width), rows.dtype)
    result[:, : len(rows)] = rows.T
    return result.reshape(-1)


def _above_the_least(entry: StatedEntry) -> tuple[float, float, float]:
    """Mean of an entry, and the differences from it between which all bets on it pay more than the least."""
    mean, low, high = 0.0, -np.inf, np.inf
    for b in entry.bets:
        if b.slopes is None:
            continue
        ends = (LEAST - 1.0) / b.slopes
        own = float(ends[b.slopes > 0].max(initial=-np.inf)), float(ends[b.slopes < 0].min(initial=np.inf))
        least, greatest = (max(own[0], -own[1]), min(own[1], -own[0])) if b.serial else own
        mean, low, high = b.mean, max(low, least), min(high, greatest)
    return mean, low, high


def _in_rows(values: Floats) -> Floats:
    """Values (T, entries) whose rows lie in one piece."""
    near = values.shape[1] == 1 or values.strides[1] == values.itemsize
    return values if near and values.strides[0] % values.itemsize == 0 else np.ascontiguousarray(values)


def _aligned(values: Floats) -> Floats:
    """Copy of values that begins where a line of the cache does, so that rows of lanes lie in one each."""
    space = np.empty(values.nbytes + LINE, np.uint8)
    result = space[-space.ctypes.data % LINE :][: values.nbytes].view(values.dtype)
    result[:] = values
    return result


def _pointer(array: Floats) -> Any:
    return ctypes.c_void_p(array.ctypes.data)
