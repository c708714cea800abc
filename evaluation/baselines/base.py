"""Interface of a rule, the table of rounds that it plays on, and the result of playing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from time import perf_counter
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from oco.compiler.problem.canonical import Canonical, StreamRange
from oco.dsl import algebra
from oco.dsl.expressions import Expr, Kind, Name
from oco.dsl.records import dataclass
from oco.dsl.statements import Stream
from oco.evaluation.comparators.base import ComparatorBudget
from oco.evaluation.comparators.compare import compare
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.comparators.moves import moving_losses
from oco.evaluation.cost import Trade
from oco.evaluation.data import Data

Array = np.ndarray[Any, Any]

FIRST = 0.2  # share of the rounds on which a rule may choose its numbers
MEMORY = 1 << 29  # bytes of data beyond which rules are left out
SECONDS = 20.0
"""Seconds for one rule by the model of costs, which says the same on every machine."""
CALL, ENTRY, STEP = 12e-3, 12e-6, 1e-4
"""Seconds of a solver's call, of each number and each constraint of a round in it, and of a round without a solver, on a usual machine."""
NUMBER = 1e-9
"""Seconds of a number of data in an evaluation of the constraints in many rounds at once, on a usual machine."""
PROGRAM = 1.5e-3
"""Seconds of a call of a solver whose program is formed already."""
UNTIMED = ComparatorBudget(1e9)
"""Budget of a solver that goes on until it ends: rules are left out by their work, never by the clock."""
KNOWN = 1e-6  # of its size: excess of a known constraint within what solvers leave


class RuleUnavailable(Exception):
    """Raised by a rule that cannot be played; the message is the reason in words."""


class DecisionRule(Protocol):
    """Rule of decision with a name in words."""

    @property
    def name(self) -> str:
        """Rule in words."""

    def decide(self, game: Game) -> Array:
        """Decisions of all rounds, flattened (T, n). Row t depends on the rounds before t and on the contexts of round t.

        Raises RuleUnavailable where the rule does not apply, or takes too long.
        """


@dataclass(eq=False)
class WorkAllowance:
    """Seconds that a rule's work costs so far by the model of costs, and those allowed."""

    allowed: float
    spent: float = 0.0

    def count(self, calls: int, rounds: int, entries: int) -> None:
        """Count calls of a solver for so many rounds of so many numbers and constraints together.

        Raises RuleUnavailable where that is too much.
        """
        self._spend(CALL * calls + ENTRY * rounds * entries, _solving(rounds))

    def count_programs(self, rounds: int, entries: int) -> None:
        """Count calls for so many rounds, one each, of a program that is formed once. Raises RuleUnavailable where that is too much."""
        self._spend((PROGRAM + ENTRY * entries) * rounds, _solving(rounds))

    def foresee(self, calls: int, rounds: int, entries: int) -> None:
        """Raise RuleUnavailable where so many rounds are too much both by these calls and with a program formed once, counting nothing."""
        least = min(CALL * calls, PROGRAM * rounds) + ENTRY * rounds * entries
        if self.spent + least > self.allowed:
            raise RuleUnavailable(f"{_solving(rounds)} is more than the work for one rule")

    def count_steps(self, rounds: int) -> None:
        """Count so many rounds without a solver. Raises RuleUnavailable where that is too much."""
        self._spend(STEP * rounds, f"stepping through {rounds:,} rounds")

    def count_evaluations(self, count: int, numbers: int) -> None:
        """Count evaluations of the constraints on so many numbers of data each. Raises RuleUnavailable where that is too much."""
        self._spend((STEP + NUMBER * numbers) * count, f"evaluating the constraints {count:,} times")

    def _spend(self, seconds: float, doing: str) -> None:
        self.spent += seconds
        if self.spent > self.allowed:
            raise RuleUnavailable(f"{doing} is more than the work for one rule")


def _solving(rounds: int) -> str:
    return f"solving {rounds:,} problems"


@dataclass(frozen=True, eq=False)
class Game:
    """Rounds of a problem as a table, with the trade by which a rule may choose its numbers on the first rounds.

    streams  arrays with the round first, by name
    meter    work of the rule, which hangs on the problem alone
    """

    problem: Canonical
    streams: Mapping[str, Array]
    rounds: int
    trade: Trade
    meter: WorkAllowance = field(default_factory=lambda: WorkAllowance(math.inf))

    @classmethod
    def of(cls, problem: Canonical, data: Data, trade: Trade, seconds: float = SECONDS) -> Game:
        """Table of all rounds of the data. Raises RuleUnavailable where it would be too large."""
        if data.absent:
            raise RuleUnavailable(f"the values of {', '.join(f'`{n}`' for n in data.absent)} were not kept")
        if data.nbytes > MEMORY:
            raise RuleUnavailable(f"the data takes {data.nbytes / 2**30:.3g} GiB")
        return cls(problem, data.read(0, data.rounds), data.rounds, trade, WorkAllowance(seconds))

    @property
    def first(self) -> int:
        """Number of rounds on which numbers are chosen; the choice counts from the next round on."""
        return max(1, int(FIRST * self.rounds))

    @cached_property
    def table(self) -> RoundArrays:
        """Rounds with their true data."""
        return RoundArrays.of(self.problem, self.streams, np.arange(self.rounds) + 1)

    def play(self, name: str, x: Array, seconds: float = 0.0) -> Played:
        """Losses and constraints of decisions x (T, n)."""
        return measured(self.table, name, x, seconds)


@dataclass(frozen=True, eq=False)
class Played:
    """Rule played over T rounds: decisions by name (T, *shape), loss (T,), constraints g (T, N), equalities h (T, M)."""

    name: str
    decisions: Mapping[str, Array]
    loss: Array
    constraints: Array
    equalities: Array
    seconds: float = 0.0

    def after(self, start: int) -> Played:
        """Rounds from `start` (from 0) on."""
        return self._part(slice(start, None))

    def before(self, stop: int) -> Played:
        """First `stop` rounds."""
        return self._part(slice(stop))

    def _part(self, rounds: slice) -> Played:
        decisions = {name: x[rounds] for name, x in self.decisions.items()}
        return Played(
            self.name, decisions, self.loss[rounds], self.constraints[rounds], self.equalities[rounds], self.seconds
        )


@dataclass(frozen=True)
class SkippedRule:
    """Rule that was not played, with the reason in words."""

    name: str
    why: str


def depends_on_earlier_rounds(problem: Canonical) -> bool:
    """True where what a round may decide hangs on decisions before it, in which rules that decide all rounds at once are no decisions."""
    return bool(problem.carried) or any(c.moving is not None for c in problem.inequalities)


def measured(table: RoundArrays, name: str, x: Array, seconds: float = 0.0) -> Played:
    """Decisions x (T, n) with their losses and constraints in the rounds of a table."""
    problem = table.problem
    loss = moving_losses(table, x)
    g = stacked(table, [c.expr for c in problem.inequalities], x)
    h = stacked(table, [c.expr for c in problem.equalities], x)
    decisions = {name: x[:, table.places[name]].reshape(len(x), *shape) for name, shape in table.layout}
    return Played(name, decisions, loss, g, h, seconds)


def stacked(table: RoundArrays, exprs: Sequence[Expr], x: Array) -> Array:
    """Entries of expressions at the points x (T, n), one for each round: (T, entries)."""
    values = [table.at_each(e, x).reshape(table.count, -1) for e in exprs]
    return np.concatenate([np.zeros((table.count, 0)), *values], axis=1)


def play(
    rule: DecisionRule, problem: Canonical, data: Data, trade: Trade, seconds: float = SECONDS
) -> Played | SkippedRule:
    """Play a rule over all rounds of the data, within so many seconds by the model of costs."""
    began = perf_counter()
    try:
        game = Game.of(problem, data, trade, seconds)
        return game.play(rule.name, within_known(game, decisions(rule, game)), perf_counter() - began)
    except RuleUnavailable as reason:
        return SkippedRule(rule.name, str(reason))


def within_known(game: Game, x: Array) -> Array:
    """Decisions x (T, n), each moved to the nearest one that satisfies the known constraints of its round where it breaks one.

    Raises RuleUnavailable where the solver ends without a decision.
    """
    problem = game.problem
    known = tuple(c for c in problem.inequalities if c.known)
    if not known:
        return x
    g = stacked(game.table, [c.expr for c in known], x)
    rows = np.flatnonzero((g > KNOWN * np.maximum(np.abs(g).max(axis=0), 1.0)).any(axis=1))
    if not len(rows):
        return x
    given = {name: values[rows] for name, values in game.streams.items()}
    objective, targets = apart_from(problem, given, x[rows])
    numbers = replace(
        problem, objective=objective, inequalities=known, equalities=(), streams=(*problem.streams, *targets)
    )
    game.meter.count(1, len(rows), problem.size + sum(c.size for c in known))
    best = compare(numbers, Data(numbers, len(rows), MappingProxyType(given)), "dynamic", UNTIMED)
    if best.losses is None:
        raise RuleUnavailable(best.why)
    moved = x.copy()
    moved[rows] = np.concatenate([best.decision[b.name].reshape(len(rows), -1) for b in problem.blocks], axis=1)
    return moved


def apart_from(problem: Canonical, given: dict[str, Array], x: Array) -> tuple[Expr, list[StreamRange]]:
    """Squared distance of the decisions from points x (R, n), whose entries join the data `given` as streams; these streams."""
    objective: Expr = algebra.number(0)
    streams, column = [], 0
    ends = np.asarray(-np.inf), np.asarray(np.inf)
    for b in problem.blocks:
        name = f"_target_{b.name}"
        own = Name(b.name, Kind.DECISION, shape=b.shape)
        apart = algebra.sub(own, Name(name, Kind.STREAM, shape=b.shape))
        objective = algebra.add(objective, algebra.call("sum_squares", apart))
        streams.append(StreamRange(name, b.shape, *ends, False, Stream(name, (), b.shape, None)))
        given[name] = x[:, column : column + b.domain.size].reshape(len(x), *b.shape)
        column += b.domain.size
    return objective, streams


def decisions(rule: DecisionRule, game: Game) -> Array:
    """Decisions (T, n) of a rule; under delayed feedback in turns, in each of which it knows the rounds before, as learners do."""
    return interleaved([rule.decide(own) for own in in_turn(game)], game.rounds)


def in_turn(game: Game) -> list[Game]:
    """Games of the learners in turn under delayed feedback; the game alone where feedback comes at once."""
    turns = min(game.problem.delay + 1, game.rounds)
    if turns == 1:
        return [game]
    own = [{name: values[i::turns] for name, values in game.streams.items()} for i in range(turns)]
    return [replace(game, streams=s, rounds=len(range(i, game.rounds, turns))) for i, s in enumerate(own)]


def interleaved(parts: Sequence[Array], rounds: int) -> Array:
    """Rows of all rounds, of those of the rounds of each turn."""
    if len(parts) == 1:
        return parts[0]
    result = np.empty((rounds, *parts[0].shape[1:]), parts[0].dtype)
    for i, part in enumerate(parts):
        result[i :: len(parts)] = part
    return result
