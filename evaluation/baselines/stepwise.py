"""Rules played round after round, where a round leaves something to the next: previous decisions, states, margins of shares of rounds.

All rules are played side by side, a round at a time: each has its own past. A round is one program whose parameters are its numbers; where
the model has no such program, or the round no decision that its constraints allow, it is solved as comparators are. Known constraints are
met with what is known before the decision, and a constraint in a share of the rounds with the margin that the model's own learner would
have, or all with their fallbacks where a round has no room for these. Under delayed feedback data are predicted in turns, in each of which
the rounds before are known, as learners do; what rounds leave is that of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical, StreamRange
from oco.dsl.evaluate import Evaluation
from oco.dsl.expressions import Expr, Kind, Name, rewrite, rewrite_all
from oco.dsl.records import dataclass
from oco.dsl.statements import Stream
from oco.evaluation.baselines.base import (
    UNTIMED,
    Game,
    Played,
    RuleUnavailable,
    SkippedRule,
    in_turn,
    interleaved,
    measured,
    stacked,
)
from oco.evaluation.baselines.predictions import Predictor, as_real, indices, predicted
from oco.evaluation.baselines.resolve import PREFIX, Resolving
from oco.evaluation.baselines.round_program import RoundProgram
from oco.evaluation.comparators.compare import compare
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.data import Data

Array = np.ndarray[Any, Any]
ROUND = "_round"
WINDOW = 200
"""Rounds whose errors a margin is a quantile of."""


@dataclass(frozen=True)
class StepRule:
    """Rule that solves each round on predictions, with a quantile of its errors so far as margin of what is learned (None: no margin)."""

    predictor: Predictor
    quantile: float | None = None

    @property
    def name(self) -> str:
        """Rule in words."""
        head = f"re-solve with {self.predictor.words}"
        if self.quantile is None:
            return head
        return f"{head}, margin: {self.quantile:.4g} quantile of the last {WINDOW} errors"

    def margin(self, errors: Array) -> Array:
        """Margins (N,) from the errors so far (t, N)."""
        if self.quantile is None or not len(errors):
            return np.zeros(errors.shape[1])
        return np.asarray(np.quantile(errors[-WINDOW:], self.quantile, axis=0))


def play_stepwise(rules: Sequence[StepRule], game: Game) -> list[Played | SkippedRule]:
    """Play rules together over all rounds of a game, whose problem may have previous decisions and states."""
    began, rounds, size = perf_counter(), len(rules) * game.rounds, game.problem.size
    try:
        game.meter.foresee(game.rounds, rounds, size)  # before a program is formed, which takes a while
        steps = _Steps(rules, game)
        if steps.program:
            game.meter.count_programs(rounds, size)
        else:
            game.meter.count(game.rounds, rounds, size)
        for t in range(game.rounds):
            steps.play(t)
    except RuleUnavailable as reason:
        return [SkippedRule(r.name, str(reason)) for r in rules]
    seconds = (perf_counter() - began) / max(len(rules), 1)
    return [steps.played(k, r.name, seconds) for k, r in enumerate(rules)]


class _Steps:
    """Decisions of K rules up to a round, what each left to the next, and the errors of the constraints that it predicted."""

    def __init__(self, rules: Sequence[StepRule], game: Game) -> None:
        learned = game.problem.learned
        self.rules, self.game = rules, game
        self.measured, self.own = _with_round(learned.whole), _with_round(learned)
        solving = replace(learned, inequalities=(*learned.inequalities, *learned.known), known=())
        self.solving = Resolving(replace(game, problem=_with_round(solving)), {}).problem
        self.program = RoundProgram.of(self.solving)
        self.learned = sum(c.size for c in learned.inequalities)
        self.revealed = [s for s in learned.revealed if s.name in game.streams]
        self.carried = learned.carried
        margins = [c.margin for c in learned.known if c.margin is not None]
        self.fallbacks = [pair for margin in margins for pair in margin.fallbacks]
        self.moved = [s for s in self.carried if s.following is not None]
        self.late = {s.name: s.expected for s in self.carried if s.expected}
        self.following = Evaluation(*rewrite_all([s.following for s in self.moved if s.following], _round_as_stream))
        self.turns = min(game.problem.delay + 1, game.rounds)
        self.predictions = [_predicted(replace(game, problem=_revealed(learned)), r.predictor) for r in rules]
        self.kept = indices(learned)
        K, T = len(rules), game.rounds
        centre = {b.name: b.domain.centre() for b in learned.blocks}
        first = {s.name: centre[s.stream.previous] if s.stream.previous else np.asarray(s.first) for s in self.carried}
        self.left = {
            name: np.array(np.broadcast_to(v, (K, *np.shape(v))), dtype=np.float64) for name, v in first.items()
        }
        self.past = {s.name: np.zeros((K, T, *s.shape)) for s in self.carried}
        self.x = np.zeros((K, T, learned.size))
        self.errors = np.zeros((K, T, self.learned))

    def play(self, t: int) -> None:
        """Decide round t (from 0) for all rules, and take over what it leaves to the next."""
        self.left |= {s.name: self.left[s.expects] for s in self.carried if s.expects}
        for name, values in self.left.items():
            self.past[name][:, t] = values
        expected = self._expected(t)
        self.left |= {self.late[name]: level for name, level in expected.items()}
        own = slice(t % self.turns, t, self.turns)
        margins = np.array([r.margin(self.errors[k, own]) for k, r in enumerate(self.rules)])
        as_predicted = self._given(t, self._predicted(t)) | expected
        x = self.x[:, t] = self._solved(as_predicted, margins)
        true = self._given(
            t, {s.name: np.repeat(self.game.streams[s.name][t : t + 1], len(x), axis=0) for s in self.revealed}
        )
        exprs = [c.expr for c in self.own.inequalities]
        usual = stacked(self._table(as_predicted), [as_real(e, self.kept) for e in exprs], x)
        self.errors[:, t] = stacked(self._table(true), exprs, x) - usual
        self.left = self._following(true, x)

    def _predicted(self, t: int) -> dict[str, Array]:
        """Data of round t as each rule predicts them."""
        return {s.name: np.stack([p[s.name][t] for p in self.predictions]) for s in self.revealed}

    def _expected(self, t: int) -> dict[str, Array]:
        """Levels of late states before round t, by the last ones that are known and the rounds since, as they were predicted."""
        begun = max(t - self.turns + 1, 0)
        levels = {name: self.past[name][:, begun] for name in self.late}
        for k in range(begun, t) if levels else ():
            before = {name: past[:, k] for name, past in self.past.items()}
            after = self._following(
                {**self._predicted(k), **before, **levels, ROUND: np.full(len(self.rules), k + 1.0)}, self.x[:, k]
            )
            levels = {name: after[name] for name in self.late}
        return levels

    def _given(self, t: int, values: Mapping[str, Array]) -> dict[str, Array]:
        """Data of round t for each rule, with what its round before left."""
        return {**values, **self.left, ROUND: np.full(len(self.rules), float(t + 1))}

    def _table(self, data: Mapping[str, Array]) -> RoundArrays:
        return RoundArrays.of(self.measured, data, np.arange(len(self.rules)) + 1)

    def _solved(self, data: Mapping[str, Array], margins: Array) -> Array:
        """Best decisions (K, n) on these data with margins (K, N) of what is learned."""
        given, column, K = dict(data), 0, len(self.rules)
        wide = np.concatenate(
            [margins, np.zeros((K, sum(c.size for c in self.solving.inequalities) - self.learned))], axis=1
        )
        for k, c in enumerate(self.solving.inequalities):
            given[f"{PREFIX}{k}"] = wide[:, column : column + c.size].reshape(K, *c.shape)
            column += c.size
        own = ({name: values[k : k + 1] for name, values in given.items()} for k in range(K))
        return np.concatenate([self._best(row) for row in own])

    def _best(self, row: Mapping[str, Array]) -> Array:
        """Best decision (1, n) of a round whose data have the shapes (1, *shape)."""
        tries = [{name: values[0] for name, values in row.items()}]
        tries += [{**tries[0], **{a: tries[0][b] for a, b in self.fallbacks}}] if self.fallbacks else []
        if self.program and (x := self.program.solved(*tries)) is not None:
            return x[None]
        self.game.meter.count(1, 1, self.solving.size)
        best = compare(self.solving, Data(self.solving, 1, MappingProxyType(dict(row))), "dynamic", UNTIMED)
        if best.losses is None:
            raise RuleUnavailable(best.why)
        return np.concatenate([best.decision[b.name].reshape(1, -1) for b in self.solving.blocks], axis=1)

    def _following(self, data: Mapping[str, Array], x: Array) -> dict[str, Array]:
        """Values that the round leaves to the next."""
        places, shapes = self._table(data).places, dict(self._table(data).layout)
        decided = {name: x[:, place].reshape(len(x), *shapes[name]) for name, place in places.items()}
        left = {s.name: decided[s.stream.previous] for s in self.carried if s.stream.previous}
        moved = [self.following.each({name: v[k] for name, v in {**data, **decided}.items()}) for k in range(len(x))]
        for i, s in enumerate(self.moved):
            rows = [np.broadcast_to(values[i], s.shape) for values in moved]
            left[s.name] = np.array(rows, dtype=np.float64)
        return left

    def played(self, k: int, name: str, seconds: float) -> Played:
        """Losses and constraints of a rule in all rounds."""
        T = self.game.rounds
        streams = {**self.game.streams, **{n: v[k] for n, v in self.past.items()}, ROUND: np.arange(T) + 1.0}
        return measured(RoundArrays.of(self.measured, streams, np.arange(T) + 1), name, self.x[k], seconds)


def _predicted(game: Game, predictor: Predictor) -> dict[str, Array]:
    """Predictions of all streams (T, *shape), each from the rounds before whose feedback has come."""
    parts = [predicted(own, predictor) for own in in_turn(game)]
    return {name: interleaved([part[name] for part in parts], game.rounds) for name in parts[0]}


def _revealed(problem: Canonical) -> Canonical:
    """Problem with the streams that data give alone."""
    return replace(problem, streams=problem.revealed)


def _with_round(problem: Canonical) -> Canonical:
    """Problem in which the round's number is a stream: rows of a table are rules, all in one round."""
    ends = np.asarray(-np.inf), np.asarray(np.inf)
    number = StreamRange(ROUND, (), *ends, False, Stream(ROUND, (), (), None, known=True))
    return replace(
        problem,
        objective=rewrite(problem.objective, _round_as_stream),
        inequalities=tuple(replace(c, expr=rewrite(c.expr, _round_as_stream)) for c in problem.inequalities),
        equalities=tuple(replace(c, expr=rewrite(c.expr, _round_as_stream)) for c in problem.equalities),
        streams=(*problem.streams, number),
    )


def _round_as_stream(node: Expr) -> Expr:
    return Name(ROUND, Kind.STREAM) if isinstance(node, Name) and node.kind is Kind.ROUND else node
