"""Bets against what a model states of its streams, within a learner: their wealth stands in its state (`wealth.py` has the recursion).

Bets of an entry of a stream are a row: those on its mean, on independence and on its distribution one after another. Where an entry has
none of a kind they pay one and have no stake.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from oco.compiler.evidence.bets import LEAST, Bets, StatedEntry, stated_entries
from oco.compiler.evidence.wealth import Alarm
from oco.compiler.ir.program import DType
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.problem.canonical import Canonical
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
BEYOND = 3e38
"""Edge that no value is above, which a number of single precision holds, too."""
WEALTH, AWAY, ALARM, REFUTED = "bets_wealth", "bets_last", "alarm_round", "alarm_statement"
SYMBOLS = {
    WEALTH: "wealth of the bets against what the model states of its streams, an entry of a stream each row",
    AWAY: "differences of these entries from their means in the round before",
    ALARM: "round in which the bets refuted what the model states of its streams; 0 before",
    REFUTED: "number of the statement from which most was won then, from 0",
}


@dataclass(frozen=True, eq=False)
class BetTables:
    """Bets of all watched entries of a problem as arrays.

    kinds   for each of the kinds that occur, the bets of each entry, None where it has none
    """

    entries: tuple[StatedEntry, ...]
    kinds: tuple[tuple[Bets | None, ...], ...]

    @classmethod
    def of(cls, problem: Canonical) -> BetTables:
        """Tables for what a problem states of its streams."""
        entries = stated_entries(problem)
        by_kind = [tuple(next((b for b in e.bets if _kind(b) == k), None) for e in entries) for k in range(3)]
        return cls(entries, tuple(row for row in by_kind if any(row)))

    @cached_property
    def statements(self) -> tuple[str, ...]:
        """Statement of each kind and entry in words, the entries of a kind side by side; "" where there is none."""
        return tuple("" if b is None else b.statement for row in self.kinds for b in row)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Number of bets of an entry, by kind."""
        return tuple(max(b.count for b in row if b is not None) for row in self.kinds)

    @cached_property
    def means(self) -> Floats:
        """Stated mean of each entry, (E,)."""
        return np.array([next((b.mean for b in e.bets if b.slopes is not None), 0.0) for e in self.entries])

    @cached_property
    def stakes(self) -> Floats:
        """Part of the stake of each bet, (E, J): the same for each statement, shared by its bets."""
        many = sum(map(bool, self.statements))
        parts = [
            [np.zeros(n) if b is None else _padded(np.full(b.count, 1 / (many * b.count)), n) for b in row]
            for row, n in zip(self.kinds, self.counts)
        ]
        return np.concatenate([np.array(part) for part in parts], axis=1)

    def slopes(self, kind: int) -> Floats:
        """Slopes of the bets of a kind on means, (E, bets)."""
        n = self.counts[kind]
        rows = [np.zeros(n) if b is None or b.slopes is None else _padded(b.slopes, n) for b in self.kinds[kind]]
        return np.array(rows)

    def bins(self, kind: int) -> tuple[Floats, Floats]:
        """Edges between the bins of each entry, (E, K - 1), and payments of the bets on each bin, (E, K, bets)."""
        width = max(b.edges.size for b in self.kinds[kind] if b is not None and b.edges is not None)
        edges = np.full((len(self.entries), width), BEYOND)
        odds = np.ones((len(self.entries), width + 1, self.counts[kind]))
        for k, b in enumerate(self.kinds[kind]):
            if b is not None and b.edges is not None and b.odds is not None:
                edges[k, : b.edges.size] = b.edges
                odds[k, : b.odds.shape[1]] = b.odds.T
        return edges, odds


def _kind(bets: Bets) -> int:
    return 2 if bets.odds is not None else int(bets.serial)


def _padded(values: Floats, count: int) -> Floats:
    return np.concatenate([values, np.zeros(count - len(values))])


@dataclass(frozen=True, eq=False)
class AlertTerms:
    """Terms in which a learner says that its streams are not as stated.

    statements  in words, by the number in the state
    result      of an alarm for the rule, in words
    guarantee   lines of the guarantee of the rule that decides after an alarm; None where that is the one before
    """

    alpha: float
    statements: tuple[str, ...]
    result: str
    guarantee: tuple[str, ...] | None = None

    def alarm(self, state: Mapping[str, Any]) -> Alarm | None:
        """Alarm that a state tells of, by field; None where there was none."""
        since = int(state[ALARM])
        return Alarm(since, self.statements[int(state[REFUTED])], self.alpha) if since else None


class EvidenceKeeper:
    """Wealth of the bets beside the state of a rule, updated with each round."""

    def __init__(self, t: Tracer, problem: Canonical, alpha: float) -> None:
        self.t, self.alpha, self.horizon = t, alpha, problem.horizon
        self.tables = BetTables.of(problem)
        self.names = (WEALTH, AWAY, ALARM, REFUTED)

    def start(self) -> dict[str, Value]:
        """Fields before the first round."""
        t, shape = self.t, self.tables.stakes.shape
        return {WEALTH: t.zeros(shape), AWAY: t.zeros(shape[:1]), ALARM: t.lift(0), REFUTED: t.lift(0)}

    def after(self, seen: Mapping[str, Value], fields: Mapping[str, Value]) -> dict[str, Value]:
        """Fields after a round with these streams, while there was no alarm."""
        t, now = self.t, self.t.to_float(fields["round"])
        t.note("bets against what the model states of its streams, paid with the round")
        values = self._values(seen)
        away = values - t.constant(self.tables.means, "stated_means", "the means that the model states")
        share, aside = self._shares(now)
        wealth = (fields[WEALTH] + share) * self._paid(values, away, fields[AWAY])
        won = wealth * t.constant(self.tables.stakes, "stakes", "part of the stake of each bet")
        alarm = t.where(t.sum(won) + aside < 1 / self.alpha, 0, fields["round"])
        (refuted,) = t.if_(alarm > 0, lambda: [self._most_won(won)], lambda: [t.lift(0)])
        return {WEALTH: wealth, AWAY: away, ALARM: alarm, REFUTED: refuted}

    def _values(self, seen: Mapping[str, Value]) -> Value:
        """Watched entries of the streams, (E,)."""
        t, parts = self.t, list[Value]()
        for name in dict.fromkeys(e.stream for e in self.tables.entries):
            places = [e.place for e in self.tables.entries if e.stream == name]
            value = t.reshape(seen[name], (math.prod(seen[name].shape),))
            value = value if value.dtype is DType.FLOAT else t.to_float(value)
            whole = places == list(range(value.size))
            parts.append(value if whole else value[t.constant(np.array(places), "watched", "entries that are watched")])
        return parts[0] if len(parts) == 1 else t.concat(*parts)

    def _shares(self, now: Value) -> tuple[Value, Value]:
        """Part of the stake that begins to bet in a round, and what is still put aside after it."""
        t, T = self.t, self.horizon
        if T is None:
            return 1.0 / (now * (now + 1.0)), 1.0 / (now + 1.0)
        return t.where(now <= float(T), 1.0 / T, 0.0), t.maximum(1.0 - now / float(T), 0.0)

    def _paid(self, values: Value, away: Value, before: Value) -> Value:
        """Payments of all bets in a round, (E, J)."""
        t, parts = self.t, list[Value]()
        for k, row in enumerate(self.tables.kinds):
            kind = next(_kind(b) for b in row if b is not None)
            if kind == 2:
                parts.append(self._on_bins(k, values))
                continue
            bet_on = away * t.sign(before) if kind else away
            slopes = t.constant(self.tables.slopes(k), "slopes", "sizes of the bets on means")
            parts.append(t.maximum(1.0 + t.reshape(bet_on, (values.size, 1)) * slopes, LEAST))
        return parts[0] if len(parts) == 1 else t.concat(*parts, axis=1)

    def _on_bins(self, kind: int, values: Value) -> Value:
        """Payments of the bets on distributions, (E, bets)."""
        t, (edges, odds) = self.t, self.tables.bins(kind)
        above = t.reshape(values, (values.size, 1)) > t.constant(edges, "edges", "between the bins of the values")
        rows = t.iota(values.size) * odds.shape[1] + t.to_int(t.sum(t.to_float(above), axis=1))
        table = odds.reshape(-1, odds.shape[2])
        return t.gather(t.constant(table, "odds", "payments of the bets on the distribution, a bin each row"), rows)

    def _most_won(self, won: Value) -> Value:
        """Number of the statement from which most was won."""
        ends = np.cumsum(self.tables.counts)
        parts = [self.t.sum(won[:, a:b], axis=1) for a, b in zip([0, *ends.tolist()], ends.tolist())]
        wins = parts[0] if len(parts) == 1 else self.t.concat(*parts)
        return self.t.argmax(wins)
