"""Wealth of bets that may begin in any round, and the alarm when it has grown too much for chance.

A bet that begins in round j and pays e_j, e_{j+1}, ... has the wealth e_j ... e_t. With a share w_j of one unit put aside for each round,
the total of what was begun and what is still put aside,

    M_t = sum_b pi_b S_{b,t} + 1 - sum_{j <= t} w_j,    S_{b,t} = (S_{b,t-1} + w_t) e_{b,t},

is a martingale with M_0 = 1 where all statements hold (each e has the mean one given the past), and never negative. So by Ville's
inequality P(M_t >= 1/alpha for some t) <= alpha, over all rounds and all statements together. Beginning anew in each round is that of
e-detectors (Shin, Ramdas & Rinaldo 2022), with shares in the place of a sum, so that false alarms are bounded for ever and not in their
frequency: a change late in a run is seen as soon as wealth has grown by log 1/alpha + log 1/w + log 1/pi from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from oco.compiler.evidence.bets import StatedEntry, payments, stated_entries
from oco.compiler.problem.canonical import Canonical
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
TOGETHER = 1 << 20
"""Payments that are worked out at once."""
A_ROUND = 200
"""Payments that take as long as what a round takes besides, both in NumPy."""
QUICKLY = 1 << 24
"""Payments that are worked out at once without keeping them."""


class Growth(Protocol):
    """Wealth of bets over rounds: that after the last of them, by bet (B,), and that of all, weighted by their stakes, after each (T,).

    begun   wealth before these rounds (B,)
    values  of each stream, (T, entries)
    last    values of the round before, by stream; none before the first
    shares  w_t of each round (T,)
    """

    def __call__(
        self, begun: Floats, values: Mapping[str, Floats], last: Mapping[str, Floats], shares: Floats
    ) -> tuple[Floats, Floats]:
        """Wealth after the rounds, by bet (B,), and that of all after each round (T,)."""
        ...

    def at_most(
        self, begun: Floats, values: Mapping[str, Floats], last: Mapping[str, Floats], shares: Floats
    ) -> tuple[Floats, float]:
        """Bounds of the same, quickly: of the wealth after the rounds, by bet (B,), from bounds of that before, and of that of all after
        each round (); nan where there is none.
        """
        ...


def _flat(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Floats]:
    """Values of these streams as (T, entries)."""
    arrays = {n: np.asarray(values[n], dtype=np.float64) for n in names}
    return {n: a.reshape(len(a), -1) for n, a in arrays.items()}


@lru_cache(maxsize=16)
def stakes(entries: tuple[StatedEntry, ...]) -> Floats:
    """pi of each bet (B,): the same for each statement, shared by its bets."""
    owners = _owners(entries)
    sizes = np.bincount(owners)
    return np.asarray(1 / (len(sizes) * sizes[owners]))


@lru_cache(maxsize=16)
def _owners(entries: tuple[StatedEntry, ...]) -> Floats:
    """Position of each bet's statement, (B,)."""
    counts = [b.count for e in entries for b in e.bets]
    return np.repeat(np.arange(len(counts)), counts)


@dataclass(frozen=True)
class Alarm:
    """Round in which the wealth reached 1/alpha, and the statement that most of it was won from."""

    round: int
    statement: str
    alpha: float

    def __str__(self) -> str:
        return (
            f"since round {self.round} no longer claimed: {self.statement}. Bets against it won more than {1 / self.alpha:.6g} times their "
            f"stake, which has the probability {self.alpha:.4g} at most where all that the model states of its streams holds"
        )


_WARNING = re.compile(
    r"since round (\d+) no longer claimed: (.*)\. Bets against it won more than .* of its streams holds(?:; (.*))?"
)


def read_alarm(warnings: Iterable[str]) -> tuple[int, str, str] | None:
    """Round and statement of the first alarm among warnings, and what was done about it ("": nothing); None where there is none."""
    for text in warnings:
        if (match := _WARNING.fullmatch(text)) is not None:
            return int(match[1]), match[2], match[3] or ""
    return None


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence after some rounds; immutable.

    begun   wealth of the bets that were begun, by bet (B,), of shares that sum to 1 - `aside`
    last    values of the round before, by stream
    """

    entries: tuple[StatedEntry, ...]
    alpha: float
    horizon: int | None
    rounds: int
    begun: Floats
    aside: float = 1.0
    last: Mapping[str, Floats] = field(default_factory=dict)
    alarm: Alarm | None = None

    @classmethod
    def of(cls, problem: Canonical, alpha: float, streams: frozenset[str] | None = None) -> Evidence:
        """Evidence before the first round, against what a problem states of these streams, or of all."""
        if not 0 < alpha < 1:
            raise ValueError(f"alpha is a probability between 0 and 1, not {alpha!r}")
        entries = stated_entries(problem, streams)
        count = sum(b.count for e in entries for b in e.bets)
        return cls(entries, alpha, problem.horizon, 0, np.zeros(count))

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the streams that something is stated of."""
        return tuple(dict.fromkeys(e.stream for e in self.entries))

    @property
    def statements(self) -> tuple[str, ...]:
        """Statements that are bet against, in words."""
        return tuple(b.statement for e in self.entries for b in e.bets)

    @property
    def wealth(self) -> float:
        """M_t."""
        return float(stakes(self.entries) @ self.begun) + self.aside if self.entries else 1.0

    def after(self, values: Mapping[str, Any]) -> Evidence:
        """Evidence after one more round of these streams."""
        return self.after_rounds({n: np.asarray(v)[None] for n, v in values.items()})

    def after_rounds(self, values: Mapping[str, Any], growth: Growth | None = None) -> Evidence:
        """Evidence after rounds of these streams, arrays with the round first; that at its alarm where there is one. `growth` is that of
        `entries`, where there is a quicker one than NumPy's.
        """
        if not self.entries or self.alarm is not None:
            return self
        arrays = {n: np.asarray(values[n]) for n in self.streams}
        total = len(next(iter(arrays.values())))
        step = max(1, (TOGETHER if growth is None else QUICKLY) // max(len(self.begun), 1))
        result = self
        for start in range(0, total, step):
            flat = _flat({n: a[start : start + step] for n, a in arrays.items()}, self.streams)
            result = result._after(flat) if growth is None else result._grown(flat, growth)
            if result.alarm is not None:
                break
        return result

    def surely_quiet(self, parts: Iterable[Mapping[str, Any]], growth: Growth) -> bool:
        """True where bounds of the wealth show that there is no alarm in rounds of these parts, arrays of the streams with the round first;
        where they do not, there may be one.
        """
        bounds = self
        for part in parts if self.entries else ():
            flat = _flat(part, self.streams)
            rounds, shares, aside = bounds._stakes(len(next(iter(flat.values()))))
            begun, most = growth.at_most(bounds.begun, flat, bounds.last, shares)
            if not most + bounds.aside < 1 / self.alpha:
                return False
            last = {n: a[-1] for n, a in flat.items()}
            bounds = replace(bounds, rounds=int(rounds[-1]), begun=begun, aside=float(aside[-1]), last=last)
        return self.alarm is None

    def _grown(self, flat: dict[str, Floats], growth: Growth) -> Evidence:
        """Evidence after rounds by `growth`; the round of an alarm is worked out in NumPy, from the wealth before it."""
        rounds, shares, aside = self._stakes(len(next(iter(flat.values()))))
        begun, totals = growth(self.begun, flat, self.last, shares)
        over = np.flatnonzero(~(totals + aside < 1 / self.alpha))
        if len(over):
            return self._around(int(over[0]), flat, growth)
        last = {n: a[-1] for n, a in flat.items()}
        return replace(self, rounds=int(rounds[-1]), begun=begun, aside=float(aside[-1]), last=last)

    def _around(self, at: int, flat: dict[str, Floats], growth: Growth) -> Evidence:
        """Evidence after rounds, or at an alarm in one of them, where `growth` has one in round `at`, from 0."""
        before = self._grown({n: a[:at] for n, a in flat.items()}, growth) if at else self
        result = before if before.alarm else before._after({n: a[at : at + 1] for n, a in flat.items()})
        return result.after_rounds({n: a[at + 1 :] for n, a in flat.items()}, growth)

    def _stakes(self, count: int) -> tuple[Floats, Floats, Floats]:
        """Numbers of the next rounds, the shares that begin to bet in them, and what is still put aside after them, (count,) each."""
        rounds = self.rounds + 1 + np.arange(count)
        shares = self._shares(rounds)
        return rounds, shares, np.maximum(self.aside - np.cumsum(shares), 0.0)

    def _after(self, flat: dict[str, Floats]) -> Evidence:
        wealth = payments(self.entries, flat, dict(self.last))
        count = len(wealth)
        rounds, shares, aside = self._stakes(count)
        with np.errstate(over="ignore", invalid="ignore"):
            before = self.begun
            for share, row in zip(shares, wealth):  # payments become the wealth in place
                row *= before + share
                before = row
            totals = wealth @ stakes(self.entries) + aside
        over = np.flatnonzero(~(totals < 1 / self.alpha))
        at = int(over[0]) if len(over) else count - 1
        alarm = self._alarm(int(rounds[at]), wealth[at]) if len(over) else None
        last = {n: a[at] for n, a in flat.items()}
        return replace(self, rounds=int(rounds[at]), begun=wealth[at], aside=float(aside[at]), last=last, alarm=alarm)

    def _shares(self, rounds: Floats) -> Floats:
        """w_t: equal over a known horizon and none after it, 1 / (t (t + 1)) else."""
        if self.horizon is None:
            return np.asarray(1.0 / (rounds * (rounds + 1.0)))
        return np.where(rounds <= self.horizon, 1.0 / self.horizon, 0.0)

    def _alarm(self, round: int, wealth: Floats) -> Alarm:
        won = np.bincount(_owners(self.entries), weights=stakes(self.entries) * wealth)
        return Alarm(round, self.statements[int(np.argmax(won))], self.alpha)
