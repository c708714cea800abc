"""Wealth of bets against stated streams, in C (`bets.c`)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from oco.backends.c99.build import bets_library
from oco.compiler.evidence.bets import LEAST, Bets, StatedEntry
from oco.compiler.evidence.wealth import stakes

Floats = np.ndarray[Any, Any]
LANES = 8
"""Bets of a group, which one vector holds."""
MEAN, SERIAL, BINNED = range(3)
"""Kinds of statements about an entry, one of each at most, in the order of their lanes."""


class _Entry(ctypes.Structure):
    _fields_ = [
        *(
            (name, ctypes.c_int64)
            for name in ("stream", "place", "first", "mean", "serial", "binned", "edges", "bins", "odds")
        ),
        *((name, ctypes.c_double) for name in ("centre", "low", "high")),
        ("prior", ctypes.c_double * 3),
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
        edges, odds, self._stake = [np.zeros(0)], [np.zeros(0)], 0.0
        stake, begun = stakes(entries), np.cumsum([0, *(b.count for b in bets)])
        statements = iter(zip(bets, firsts, groups, stake[begun[:-1]]))
        for row, entry in zip(self._entries, entries):
            row.stream, row.place = self._streams.index(entry.stream), entry.place
            row.low, row.high = -np.inf, np.inf
            for number, (b, first, count, prior) in enumerate(islice(statements, len(entry.bets))):
                row.first = row.first if number else first
                self._stake += prior * LANES * count
                if b.odds is not None:
                    row.binned, row.prior[BINNED] = count, prior
                    row.edges, row.odds = sum(map(len, edges)), sum(map(len, odds))
                    row.bins = self._on_bins(b, count * LANES, edges, odds)
                    continue
                ends = self._on_mean(b, int(first))
                row.centre, row.low, row.high = b.mean, max(row.low, ends[0]), min(row.high, ends[1])
                if b.serial:
                    row.serial, row.prior[SERIAL] = count, prior
                else:
                    row.mean, row.prior[MEAN] = count, prior
        self._edges, self._odds = np.concatenate(edges), _aligned(np.concatenate(odds))
        columns = (self._slope, self._base, self._least, self._edges, self._odds)
        self._tables = _Tables(*(c.ctypes.data for c in columns))

    def _on_mean(self, bets: Bets, first: int) -> tuple[float, float]:
        """Differences from the mean between which all of these bets pay more than the least; their lanes are filled."""
        slopes = bets.slopes
        assert slopes is not None
        own = slice(first, first + len(slopes))
        self._slope[own], self._base[own], self._least[own] = slopes, 1.0, LEAST
        ends = (LEAST - 1.0) / slopes
        low, high = float(ends[slopes > 0].max(initial=-np.inf)), float(ends[slopes < 0].min(initial=np.inf))
        return (max(low, -high), min(high, -low)) if bets.serial else (low, high)

    @staticmethod
    def _on_bins(bets: Bets, width: int, edges: list[Floats], odds: list[Floats]) -> int:
        """Number of bins, whose edges and payments are appended, a row of lanes for each bin."""
        assert bets.edges is not None and bets.odds is not None
        table = np.zeros((bets.odds.shape[1], width))
        table[:, : bets.count] = bets.odds.T
        edges.append(bets.edges)
        odds.append(table.reshape(-1))
        return len(table)

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
            *(self._entries, ctypes.c_int64(len(self._places)), ctypes.byref(self._tables)),
            *(addresses, _pointer(strides), _pointer(before), _pointer(later)),
            *(ctypes.c_int64(len(shares)), _pointer(totals)),
        )
        return wealth[self._lanes], totals - self._stake * later


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
