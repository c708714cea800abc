"""Wealth of bets against stated streams, in C (`bets.c`)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from oco.backends.c99.build import bets_library
from oco.compiler.evidence.bets import LEAST, StatedEntry
from oco.compiler.evidence.wealth import stakes

Floats = np.ndarray[Any, Any]
LANES = 8
"""Bets of a group, which one vector holds."""
MEAN, SERIAL, BINNED = range(3)
"""Kinds of statements about an entry, one of each at most, in the order of their lanes."""


class _Entry(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("first", "mean", "serial", "binned", "odds")),
        ("prior", ctypes.c_double * 3),
    ]


class _Beside(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("first", "count", "stream", "place", "edges", "bins")),
        *((name, ctypes.c_double * LANES) for name in ("centre", "low", "high")),
    ]


class _Tables(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("slope", "base", "least", "edges", "odds")]


@lru_cache(maxsize=16)
def growth(entries: tuple[StatedEntry, ...]) -> NativeGrowth:
    """Growth of the wealth of bets on entries, with its tables in memory."""
    return NativeGrowth(entries)


class NativeGrowth:
    """`Growth` of the bets of these entries.

    Wealth differs from that in NumPy by rounding alone: products and sums are fused.
    """

    def __init__(self, entries: tuple[StatedEntry, ...]) -> None:
        self._play = bets_library().oco_bets_play
        self._play.restype = None
        self._streams = tuple(dict.fromkeys(e.stream for e in entries))
        bets = [b for e in entries for b in e.bets]
        groups = [-(-b.count // LANES) for b in bets]
        firsts = np.cumsum([0, *groups]) * LANES
        self._width = int(firsts[-1])
        self._lanes = np.concatenate([first + np.arange(b.count) for first, b in zip(firsts, bets)])
        self._slope, self._base, self._least = (np.zeros(self._width) for _ in range(3))
        self._entries, self._places = (_Entry * len(entries))(), [(e.stream, e.place) for e in entries]
        self._groups, edges = _groups(entries, self._streams)
        odds, self._stake = [np.zeros(0)], 0.0
        stake, begun = stakes(entries), np.cumsum([0, *(b.count for b in bets)])
        statements = iter(zip(bets, firsts, groups, stake[begun[:-1]]))
        for row, entry in zip(self._entries, entries):
            for number, (b, first, count, prior) in enumerate(islice(statements, len(entry.bets))):
                row.first = row.first if number else first
                self._stake += prior * LANES * count
                if b.odds is not None:
                    row.binned, row.prior[BINNED], row.odds = count, prior, sum(map(len, odds))
                    odds.append(_in_lanes(b.odds, count * LANES))
                    continue
                own = slice(int(first), int(first) + b.count)
                self._slope[own], self._base[own], self._least[own] = b.slopes, 1.0, LEAST
                if b.serial:
                    row.serial, row.prior[SERIAL] = count, prior
                else:
                    row.mean, row.prior[MEAN] = count, prior
        self._edges, self._odds = edges, _aligned(np.concatenate(odds))
        columns = (self._slope, self._base, self._least, self._edges, self._odds)
        self._tables = _Tables(*(c.ctypes.data for c in columns))

    def __call__(
        self, begun: Floats, values: Mapping[str, Floats], last: Mapping[str, Floats], shares: Floats
    ) -> tuple[Floats, Floats]:
        """Wealth after rounds, by bet (B,), and what it is in all after each of them (T,)."""
        wealth, totals, later = np.full(self._width, shares[0]), np.empty(len(shares)), np.append(shares[1:], 0.0)
        wealth[self._lanes] += begun
        rows = [_in_rows(values[n]) for n in self._streams]
        addresses = (ctypes.c_void_p * len(rows))(*(r.ctypes.data for r in rows))
        strides = np.array([r.strides[0] // r.itemsize for r in rows])
        before = np.array([last[stream][place] if last else np.nan for stream, place in self._places])
        self._play(
            _pointer(wealth),
            *(self._entries, self._groups, ctypes.c_int64(len(self._groups)), ctypes.byref(self._tables)),
            *(addresses, _pointer(strides), _pointer(before), _pointer(later)),
            *(ctypes.c_int64(len(shares)), _pointer(totals)),
        )
        return wealth[self._lanes], totals - self._stake * later


def _groups(entries: Sequence[StatedEntry], streams: Sequence[str]) -> tuple[Any, Floats]:
    """Entries beside each other, `LANES` of them at most, and the edges of their bins, a row of lanes for each."""
    runs: list[list[StatedEntry]] = []
    for k, entry in enumerate(entries):
        if (
            k
            and len(runs[-1]) < LANES
            and (entry.stream, entry.place - 1) == (entries[k - 1].stream, entries[k - 1].place)
        ):
            runs[-1].append(entry)
        else:
            runs.append([entry])
    results, edges, first = (_Beside * len(runs))(), [np.zeros(0)], 0
    for row, own in zip(results, runs):
        row.first, row.count, row.stream, row.place = first, len(own), streams.index(own[0].stream), own[0].place
        binned = [next((b.edges for b in e.bets if b.edges is not None), np.zeros(0)) for e in own]
        row.edges, row.bins = sum(map(len, edges)), 1 + max(map(len, binned))
        edges.append(
            _in_lanes(np.array([np.pad(b, (0, row.bins - 1 - len(b)), constant_values=np.inf) for b in binned]), LANES)
        )
        for k, entry in enumerate(own):
            row.centre[k], row.low[k], row.high[k] = _above_the_least(entry)
        first += len(own)
    return results, np.concatenate(edges)


def _in_lanes(rows: Floats, width: int) -> Floats:
    """Columns of rows, each filled up with zeros to so many lanes, one after the other."""
    result = np.zeros((rows.shape[1], width))
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
    line = LANES * values.itemsize
    space = np.empty(len(values) + LANES)
    result = space[-space.ctypes.data % line // values.itemsize :][: len(values)]
    result[:] = values
    return result


def _pointer(array: Floats) -> Any:
    return ctypes.c_void_p(array.ctypes.data)
