"""Predictions of a round's data from the rounds before it, and from what is known before the decision; a row for each of the ways:

* averages that forget: s <- s + max(rate, 1/t) (s_t - s), rate 0 for the mean of all rounds, 1 for the last one;
* with a season of k rounds (streams may have their own) averages of its phases, and days within weeks with levels (`profiles`);
* where the loss has kinks that move with a stream, as that of unsold stock with demand, quantiles about the best of the others
  (`error_quantiles`);
* where a stream of stated distribution enters constraints alone, in one direction, its quantile, and the recent average of the others;
* the model's own predictions, of the streams that it predicts, and the recent average of the others;
* where stores look ahead and no season is known, averages of the phases of the one that is detected (`detected_seasons`);
* contexts in the place of streams of their shape and range, as forecasts are, and the recent average of the others;
* with contexts a linear regression on them and on the last values (`context_regression`).

Where a stream has come with both signs, the loss is affine in it, and moves or sizes of decisions cost, what is learned of it counts as far
as it has foretold (`shrinkage`): noise about 0, as returns and errors of forecasts are, is predicted as 0, so that decisions do not follow
it. Prices that never were below 0 have a level, whatever range is declared, and count from the first round on.

Where feedback comes d rounds late, a round's data predict the round d + 1 later: the averages of the data are kept beside the
predictions that were made with them, and the rounds of each phase are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from oco.compiler.algorithms.context_regression import ContextRegression, context_now, contexts
from oco.compiler.algorithms.detected_seasons import DetectedSeasons, seasons_tried
from oco.compiler.algorithms.error_quantiles import LEVELS, ErrorQuantiles
from oco.compiler.algorithms.memory import as_function_of
from oco.compiler.algorithms.profiles import ROWS, Profiles
from oco.compiler.algorithms.shrinkage import Shrinkage
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Structured
from oco.compiler.lowering.predicted_round import (
    data_of,
    data_ranges,
    parts_of,
    picking,
    positions,
    predicted_of,
    stated_value,
    within_ranges,
)
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined
from oco.compiler.problem.calculus import gradient, vector_jacobian
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.feedback_delay import expected_names
from oco.compiler.problem.monotone import direction
from oco.compiler.problem.stream_ranges import may_forecast
from oco.compiler.problem.structure import is_affine
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.dsl.expressions import Call, Constant, Expr, Kind, Name, names, walk

Floats = np.ndarray[Any, Any]
FORGETTING = (0.08, 0.0, 0.5, 1.0)
"""Rates at which averages of the data forget; 0: the mean of all rounds; 1: the last values."""
OVERALL, RECENT, LAST = (FORGETTING.index(rate) for rate in (0.0, 0.5, 1.0))
SPREAD_OF = 0
"""Seasonal prediction whose errors have quantiles, the one without a level: their shifts follow it."""
APART = (0, 4, 8, 3, 7, 2, 6, 1, 5)
"""Places of the levels of late states beside those of streams: their errors come of the rounds before, so that both hardly correlate."""
STATED = (0.98, 0.999)
"""Quantiles of stated distributions, on the worse side."""
AVERAGE = "average"
"""State under delays: averages of the data."""
FORETOLD, SIGNS = "foretold", "signs"
SYMBOLS = {
    FORETOLD: "sums of what came in the direction of predictions, of its squares, and of squares of what they missed",
    SIGNS: "1 where data below 0 have come, and where data above it have",
}
"""State of the predictions that are shrunk, by name."""


@lru_cache(maxsize=16)
def forecasts(canonical: Canonical) -> dict[str, str]:
    """Context that may be a forecast of each stream, by their shapes and ranges, where there is one and the model predicts nothing else."""
    apart = {*picking(canonical), *canonical.lookahead.contexts}
    known = [s for s in canonical.streams if s.name in canonical.context and s.name not in apart]
    streams, stated = {s.name: s for s in canonical.streams}, {n for n, _ in canonical.predictions}
    pairs = {
        n: [c.name for c in known if may_forecast(c, streams[n])]
        for n in predicted_of(canonical).streams
        if n not in stated
    }
    return {n: one for n, fitting in pairs.items() for one in fitting if len(fitting) == 1}


@lru_cache(maxsize=16)
def quantiles(canonical: Canonical) -> Floats | None:
    """Quantiles `STATED` of the entries of the data that stand at one, else NaN, (quantiles, entries); None where none do."""
    ranges, streams = Enclosure(ProofContext(canonical).box), {s.name: s for s in canonical.streams}
    in_loss, rows = set(names(canonical.objective, Kind.STREAM)), list[list[Floats]]()
    for name in predicted_of(canonical).streams:
        own, using = streams[name], [c for c in canonical.inequalities if name in names(c.expr, Kind.STREAM)]
        signs = {direction(c.expr, name, ranges) for c in using}
        worse = signs.pop() if len(signs) == 1 and own.distribution is not None and name not in in_loss else None
        ends = [np.nan if not worse else own.distribution.quantile(q if worse > 0 else 1 - q) for q in STATED]  # type: ignore[union-attr]
        rows.append([np.broadcast_to(np.asarray(e, dtype=np.float64), own.shape).ravel() for e in ends])
    table = np.array([np.concatenate(parts) for parts in zip(*rows)]) if rows else np.zeros((len(STATED), 0))
    return None if np.isnan(table).all() else table


@lru_cache(maxsize=16)
def kinked_streams(canonical: Canonical) -> tuple[str, ...]:
    """Predicted streams with which the loss's kinks move, so that its slope jumps."""
    problem = (canonical.unscaled or canonical).played
    slopes = gradient(problem.objective, tuple(b.name for b in problem.blocks)).values()
    own, positions = predicted_of(canonical).streams, picking(canonical)
    return tuple(n for n in own if n not in positions and any(_jumps(g, n) for g in slopes))


def kinked_entries(canonical: Canonical) -> Floats:
    """True for the entries of the data that are those of such streams."""
    own, kinked = predicted_of(canonical).streams, kinked_streams(canonical)
    return np.repeat(np.array([n in kinked for n in own], dtype=bool), list(own.values()))


def _jumps(slope: Expr, stream: str) -> bool:
    """True where a slope jumps with a stream: what jumps has no derivative towards it."""
    parts = walk(as_function_of(slope, (stream,)))
    return any(isinstance(n, Call) and stream in names(n, Kind.DECISION) and _is_flat(n, stream) for n in parts)


def _is_flat(expr: Expr, stream: str) -> bool:
    """True where the derivative towards the stream is 0 everywhere."""
    weights = Name("_weights", Kind.STREAM, shape=expr.shape)
    towards = vector_jacobian(expr, weights, (stream,))[stream]
    return isinstance(towards, Constant) and not np.any(towards.value.array)


@lru_cache(maxsize=16)
def shrunk_entries(canonical: Canonical) -> Floats:
    """True for the entries of the data that may be of either sign, and that the loss is affine in: its mean is that at their mean. None is
    where a linear loss charges no moves: then following noise costs nothing on average, and faint signals gain.
    """
    own, (lower, upper) = predicted_of(canonical).streams, data_ranges(canonical)
    if canonical.moving is None and is_affine(canonical.objective, tuple(b.name for b in canonical.blocks)):
        return np.zeros(lower.shape, dtype=bool)
    affine = [is_affine(as_function_of(canonical.objective, (n,)), (n,)) for n in own]
    return np.asarray((lower < 0.0) & (upper > 0.0) & np.repeat(np.array(affine, dtype=bool), list(own.values())))


def places(canonical: Canonical, season: int) -> tuple[tuple[int, ...], ...]:
    """Rows of the averages, of the seasons, of the stated quantiles, of the quantiles of errors, of the regression, and of the model's own
    predictions, of forecasts and of seasons that are detected.
    """
    sizes = (
        len(FORGETTING),
        ROWS if season > 1 else 0,
        0 if quantiles((canonical.unscaled or canonical).played) is None else len(STATED),
        len(LEVELS) if kinked_streams(canonical) else 0,
        1 if contexts(canonical) else 0,
        int(_states(canonical)) + (1 if forecasts(canonical) else 0) + detects_seasons(canonical, season),
    )
    ends = np.cumsum((0, *sizes))
    return tuple(tuple(range(a, b)) for a, b in pairwise(ends))


def stated_rows(canonical: Canonical, season: int) -> tuple[int, ...]:
    """Row of what the model states as a prediction, as a tuple; empty where it states none."""
    return places(canonical, season)[-1][: int(_states(canonical))]


def detects_seasons(canonical: Canonical, season: int) -> bool:
    """True where seasons of the data are detected as rounds come."""
    return len(seasons_tried(canonical, season)) > 1 and predicted_of(canonical).size > 0


def _states(canonical: Canonical) -> bool:
    """True where the model predicts some of its data."""
    return any(n in predicted_of(canonical).streams for n, _ in canonical.predictions)


class Predictions:
    """State and rows of all predictions for the problem of a round; empty where nothing is predicted."""

    def __init__(self, p: Problem) -> None:
        self.p, self.t = p, p.tracer
        self.season = p.whole("season")
        self.size = 0 if positions(p.spec.canonical) else predicted_of(p.spec.canonical).size
        self.count = sum(map(len, places(p.spec.canonical, self.season)))
        self.profiles = Profiles(p)
        _, self.seasonal, _, self.shifted, self.regressed, given = places(p.spec.canonical, self.season)
        own, detected = int(_states(p.spec.canonical)), detects_seasons(p.spec.canonical, self.season)
        self.detected = DetectedSeasons(p, self.size) if detected else None
        self.stated, self.forecasts = given[:own], given[own : len(given) - detected]
        self.regression = ContextRegression(p, self.size) if self.regressed else None
        compared = (self.seasonal[SPREAD_OF] if self.seasonal else 0, *self.regressed, *given)
        self.spread = ErrorQuantiles(p, kinked_entries(p.spec.canonical), compared) if self.shifted else None
        self.shrunk = self._shrunk()
        self.shrinkage = Shrinkage(p, FORETOLD, (self.count, self.size)) if self.shrunk.any() else None

    def init(self) -> State:
        """State before the first round."""
        if not self.size:
            return {}
        zeros = self.t.zeros
        own = {"predicted": zeros((self.count, self.size))}
        signs = {} if self.shrinkage is None else {SIGNS: zeros((2, self.size))}
        average = {} if self.p.turn is None else {AVERAGE: zeros((len(FORGETTING), self.size))}
        profiles = self.profiles if self.season > 1 else None
        parts = (profiles, self.detected, self.spread, self.regression, self.shrinkage)
        return joined(own, average, signs, *(part.init() for part in parts if part is not None))

    def before(self, state: State) -> Value | None:
        """Predictions that were made of the round that came, (rows, entries); in the first round its own data stand for them."""
        if not self.size:
            return None
        made = array(state, "predicted")
        return self.t.name("was", self.t.where(self.p.begun, made, self.t.broadcast(data_of(self.p), made.shape)))

    def counted(self, state: State, made: Value | None) -> Value | None:
        """Predictions (rows, entries) as experts take them: shrunk by what they have foretold."""
        if self.shrinkage is None or made is None:
            return made
        t = self.t
        self.p.note("predictions count as far as they have foretold what came")
        shrunk = t.constant(self.shrunk, "shrunk", "learned predictions of data in which the loss is affine")
        both = t.and_(array(state, SIGNS)[0] > 0.5, array(state, SIGNS)[1] > 0.5)
        factors = t.where(t.and_(shrunk, both), self.shrinkage.factors(state), 1.0)
        return t.name("counted", factors * made)

    def update(self, state: State, was: Value | None) -> State:
        """State after the round, with predictions of the next one."""
        if was is None:
            return {}
        t, now = self.t, data_of(self.p)
        self.p.note("averages of the data; in round 1 its own data stand for what was predicted")
        rates = t.maximum(t.constant(np.array(FORGETTING), "rates"), 1.0 / self.p.played)
        own = self._averages(state, was, now)
        average = t.name("average", own + t.reshape(rates, (len(FORGETTING), 1)) * (now - own))
        rows, after = [average], dict[str, Structured]()
        if self.p.turn is not None:
            after[AVERAGE] = average
        if self.season > 1:
            seasonal, kept = self.profiles.update(state, own[OVERALL], average[OVERALL], now)
            rows.append(seasonal)
            after |= kept
        if (table := quantiles(self.p.spec.canonical)) is not None:
            worse = t.constant(np.nan_to_num(table), "worse", "quantiles of the stated distributions")
            rows.append(
                t.where(t.constant(~np.isnan(table), "stated"), worse, t.broadcast(average[RECENT], table.shape))
            )
        if self.regression is not None:
            after |= self.regression.update(state, was[LAST] - was[OVERALL], now - own[OVERALL], own[OVERALL])
        later = [t.reshape(average[OVERALL], (1, self.size))] * len(self._waiting)
        if self.shrinkage is not None:
            signs = t.stack(t.to_float(now < 0.0), t.to_float(now > 0.0))
            after[SIGNS] = t.name("signs", t.maximum(array(state, SIGNS), signs))
            after |= self.shrinkage.update(state, t.where(self.p.begun, was, 0.0), now)
        if self.detected is not None:
            following, kept = self.detected.update(state, own[RECENT], average[RECENT], now)
            later.append(t.reshape(following, (1, self.size)))
            after |= kept
        if self.spread is not None:
            after |= self.spread.update(state, was, now)
            filler = t.broadcast(average[OVERALL], (len(LEVELS), self.size))
            rows.append(filler)
        rows += later
        made = rows[0] if len(rows) == 1 else t.concat(*rows)
        return {**after, "predicted": made if self._waiting else self._spread(after, made)}

    def _averages(self, state: State, was: Value, now: Value) -> Value:
        """Averages of the data before this round; in the first one its own data."""
        if self.p.turn is None:
            return was[: len(FORGETTING)]
        kept = array(state, AVERAGE)
        return self.t.where(self.p.played > 1.5, kept, self.t.broadcast(now, kept.shape))

    def _shrunk(self) -> Floats:
        """True for the predictions that are shrunk, (rows, entries): those that are learned, and no quantiles."""
        if not self.size:
            return np.zeros((self.count, 0), dtype=bool)
        _, _, quantile, shifted, *_ = places(self.p.spec.canonical, self.season)
        given = np.isin(np.arange(self.count), (*quantile, *shifted, *self.stated, *self.forecasts))
        return ~given.reshape(-1, 1) & shrunk_entries(self.p.spec.canonical)

    def samples(self, state: State) -> dict[str, Value]:
        """Values of streams with which kinks move at the quantiles of their errors."""
        made, kinked = array(state, "predicted"), kinked_streams(self.p.spec.canonical)
        parts = parts_of(self.p, made[self.shifted[0] : self.shifted[-1] + 1])
        late, own = expected_names(self.p.spec.canonical.streams), predicted_of(self.p.spec.canonical).streams
        return {
            n: v[self.t.constant(np.array(APART), "apart")] if n in late else v
            for n, v in zip(own, parts, strict=True)
            if n in kinked
        }

    def prepared(self, state: State) -> State:
        """State once what is known before the round is: with the regression on it, and with the model's own predictions."""
        if not self.size or not self._waiting:
            return {}
        made = array(state, "predicted")
        kept: State = {}
        for place in self.regressed:
            assert self.regression is not None
            row, kept = self.regression.predicted(state, made[OVERALL], made[LAST])
            made = self.t.put(made, row, place)
        canonical = self.p.spec.canonical
        for place in self.stated:
            self.p.note("predictions that the model states")
            own = {n: stated_value(self.p, e) for n, e in canonical.predictions if n in predicted_of(canonical).streams}
            made = self.t.put(made, self._with(own, made[RECENT]), place)
        for place in self.forecasts:
            self.p.note("contexts in the place of what they may forecast")
            own = {n: context_now(self.p, c) for n, c in forecasts(canonical).items()}
            made = self.t.put(made, self._with(own, made[RECENT]), place)
        return {**kept, "predicted": self._spread(state, made)}

    @property
    def _waiting(self) -> tuple[int, ...]:
        """Rows of predictions that are made once what is known before the round is."""
        return (*self.regressed, *self.stated, *self.forecasts)

    def _spread(self, state: Mapping[str, Structured], made: Value) -> Value:
        """Predictions with those at quantiles of the errors of the best one."""
        if self.spread is None:
            return made
        first, end = self.shifted[0], self.shifted[-1] + 1
        parts = [made[:first], self.spread.at_levels(state, made)] + [made[end:]] * (end < self.count)
        return self.t.concat(*parts)

    def _with(self, own: dict[str, Value], others: Value) -> Value:
        """Values of the streams that have one, and `others` for the rest; within the ranges of the streams."""
        at, parts = 0, list[Value]()
        for name, size in predicted_of(self.p.spec.canonical).streams.items():
            parts.append(own.get(name, others[at : at + size]))
            at += size
        return within_ranges(self.p, parts[0] if len(parts) == 1 else self.t.concat(*parts))
