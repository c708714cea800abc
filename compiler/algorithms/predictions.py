"""Predictions of a round's data from the rounds before it, and from what is known before the decision; a row for each of the ways:

* averages that forget: s <- s + max(rate, 1/t) (s_t - s), rate 0 for the mean of all rounds, 1 for the last one;
* with a season of k rounds the average of rounds k apart, one for each of the k phases, and a level, the average that forgets of what
  the rounds were above it, cut to the streams' ranges. Until a phase has come the mean of all rounds stands for it;
* where the loss has kinks that move with a stream, as that of unsold stock with demand, quantiles: an average, or the seasonal one, and a
  shift for each of some levels q, s <- s + rate (1[e > s] - (1 - q)) of its errors e (Gibbs & Candes 2021);
* where a stream of stated distribution enters constraints alone, in one direction, its quantile, and the last average of the others;
* the model's own predictions, of the streams that it predicts, and the last average of the others;
* contexts in the place of streams of their shape and range, as forecasts are, and the last average of the others;
* with contexts z the linear regression mean + C_sz (C_zz + diag(C_zz)/t)^-1 (z - mean z) on all rounds so far, cut to the streams' ranges.

A profile takes k numbers for each entry of the data, whatever the number of rounds.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from oco.compiler.algorithms.memory import as_function_of
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Structured
from oco.compiler.lowering.predicted_round import data_of, picking, positions, predicted_of, stated_value
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array
from oco.compiler.problem.calculus import gradient, vector_jacobian
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.monotone import direction
from oco.compiler.problem.stream_ranges import may_forecast
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.compiler.theory.settings import Default
from oco.compiler.theory.theorems import Situation
from oco.dsl.expressions import Call, Constant, Expr, Kind, Name, names, walk

Floats = np.ndarray[Any, Any]
FORGETTING = (0.08, 0.0, 0.5)
"""Rates at which averages of the data forget; 0: the mean of all rounds."""
OVERALL = FORGETTING.index(0.0)
PROFILES = ((0.0, 0.0), (0.0, 0.1), (0.0, 0.3))
"""Rates at which the profile and the level of each seasonal prediction forget; 0 for a level that stays 0."""
SPREAD_OF = 0
"""Seasonal prediction whose errors have quantiles, the one without a level: their shifts follow it."""
LEVELS = (0.3, 0.6, 0.75, 0.9)
"""Quantiles of data with which kinks of the loss move: what is best in a round is one of them, and not the mean."""
SHIFT_RATE = 0.02
"""Least rate of these shifts, in three usual sizes of the errors, whose average forgets at the same rate."""
STATED = (0.98, 0.999)
"""Quantiles of stated distributions, on the worse side."""
MOST_CONTEXTS = 30
"""Entries of contexts that a regression takes: it solves a system of their number each round."""
MOST_NUMBERS = 10**6
"""Numbers of a profile, beyond which a season is not remembered."""
SHRINK = 1e-9
LARGEST = 1e300  # ends of ranges stay finite in the state


def contexts(canonical: Canonical) -> tuple[str, ...]:
    """Contexts of a regression: those that pick no entries; none where they are too many, or nothing is predicted."""
    own = [s for s in canonical.streams if s.name in canonical.context and s.name not in picking(canonical)]
    size = sum(math.prod(s.shape) for s in own)
    return tuple(s.name for s in own) if size <= MOST_CONTEXTS and predicted_of(canonical).size else ()


@lru_cache(maxsize=16)
def forecasts(canonical: Canonical) -> dict[str, str]:
    """Context that may be a forecast of each stream, by their shapes and ranges, where there is one and the model predicts nothing else."""
    known = [s for s in canonical.streams if s.name in canonical.context and s.name not in picking(canonical)]
    streams, stated = {s.name: s for s in canonical.streams}, {n for n, _ in canonical.predictions}
    pairs = {
        n: [c.name for c in known if may_forecast(c, streams[n])]
        for n in predicted_of(canonical).streams
        if n not in stated
    }
    return {n: one for n, fitting in pairs.items() for one in fitting if len(fitting) == 1}


def longest_season(canonical: Canonical) -> int:
    """Rounds of the longest season whose profile is kept."""
    return MOST_NUMBERS // max(1, len(PROFILES) * predicted_of(canonical).size)


def season_measured(s: Situation) -> Default:
    """Rounds of a season, as the setting `season`; 1 for none."""
    season = s.season // math.gcd(s.season, s.canonical.delay + 1)
    if 1 < season <= longest_season(s.canonical):
        return Default(float(season), "rounds after which the data repeat themselves, measured on data")
    return Default(1.0, "no season is known: `season = 24` states one of 24 rounds")


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
def kinked_entries(canonical: Canonical) -> Floats:
    """True for the entries of the data with which the loss's kinks move, so that its slope jumps."""
    problem = (canonical.unscaled or canonical).played
    slopes = gradient(problem.objective, tuple(b.name for b in problem.blocks)).values()
    own, positions = predicted_of(canonical).streams, picking(canonical)
    kinked = [n not in positions and any(_jumps(g, n) for g in slopes) for n in own]
    return np.repeat(np.array(kinked, dtype=bool), list(own.values()))


def _jumps(slope: Expr, stream: str) -> bool:
    """True where a slope jumps with a stream: what jumps has no derivative towards it."""
    parts = walk(as_function_of(slope, (stream,)))
    return any(isinstance(n, Call) and stream in names(n, Kind.DECISION) and _is_flat(n, stream) for n in parts)


def _is_flat(expr: Expr, stream: str) -> bool:
    """True where the derivative towards the stream is 0 everywhere."""
    weights = Name("_weights", Kind.STREAM, shape=expr.shape)
    towards = vector_jacobian(expr, weights, (stream,))[stream]
    return isinstance(towards, Constant) and not np.any(towards.value.array)


def places(canonical: Canonical, season: int) -> tuple[tuple[int, ...], ...]:
    """Rows of the averages, of the seasons, of the stated quantiles, of the quantiles of errors, of the regression, and of the model's own
    predictions and of forecasts.
    """
    sizes = (
        len(FORGETTING),
        len(PROFILES) if season > 1 else 0,
        0 if quantiles((canonical.unscaled or canonical).played) is None else len(STATED),
        len(LEVELS) if kinked_entries(canonical).any() else 0,
        1 if contexts(canonical) else 0,
        int(_states(canonical)) + (1 if forecasts(canonical) else 0),
    )
    ends = np.cumsum((0, *sizes))
    return tuple(tuple(range(a, b)) for a, b in pairwise(ends))


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
        self.known = contexts(p.spec.canonical)
        _, seasonal, _, self.shifted, self.regression, given = places(p.spec.canonical, self.season)
        self.base = seasonal[SPREAD_OF] if seasonal else 0
        own = int(_states(p.spec.canonical))
        self.stated, self.forecasts = given[:own], given[own:]

    def init(self) -> State:
        """State before the first round."""
        if not self.size:
            return {}
        zeros, profiles = self.t.zeros, len(PROFILES)
        state = {"predicted": zeros((self.count, self.size))}
        if self.season > 1:
            state["profile"] = zeros((self.season, profiles * self.size))
            state["level"] = zeros((profiles, self.size))
        if self.shifted:
            state |= {"shift": zeros((len(LEVELS), self.size)), "usual": zeros((self.size,))}
        if self.known:
            width = self._width
            state |= {"z": zeros((width,)), "C_zz": zeros((width, width)), "C_sz": zeros((self.size, width))}
        return state

    def before(self, state: State) -> Value | None:
        """Predictions that were made of the round that came, (rows, entries); in round 1 its own data stand for them."""
        if not self.size:
            return None
        made = array(state, "predicted")
        return self.t.name(
            "was", self.t.where(self.p.played > 1.5, made, self.t.broadcast(data_of(self.p), made.shape))
        )

    def update(self, state: State, was: Value | None) -> State:
        """State after the round, with predictions of the next one."""
        if was is None:
            return {}
        t, now = self.t, data_of(self.p)
        self.p.note("averages of the data; in round 1 its own data stand for what was predicted")
        rates = t.maximum(t.constant(np.array(FORGETTING), "rates"), 1.0 / self.p.played)
        own = was[: len(FORGETTING)]
        average = t.name("average", own + t.reshape(rates, (len(FORGETTING), 1)) * (now - own))
        rows, after = [average], dict[str, Structured]()
        if self.season > 1:
            seasonal, kept = self._seasonal(state, was[OVERALL], average[OVERALL], now)
            rows.append(seasonal)
            after |= kept
        if (table := quantiles(self.p.spec.canonical)) is not None:
            worse = t.constant(np.nan_to_num(table), "worse", "quantiles of the stated distributions")
            rows.append(t.where(t.constant(~np.isnan(table), "stated"), worse, t.broadcast(average[-1], table.shape)))
        if self.shifted:
            following = average[0] if self.season == 1 else seasonal[SPREAD_OF]
            shifted, kept = self._shifted(state, now - was[self.base], following)
            rows.append(shifted)
            after |= kept
        if self.known:
            after |= self._regression(state, now - was[OVERALL])
        waiting = len(self.regression) + len(self.stated) + len(self.forecasts)
        rows += [t.reshape(average[OVERALL], (1, self.size))] * waiting
        return {"predicted": rows[0] if len(rows) == 1 else t.concat(*rows), **after}

    def prepared(self, state: State) -> State:
        """State once what is known before the round is: with the regression on it, and with the model's own predictions."""
        if not self.size or not (self.regression or self.stated or self.forecasts):
            return {}
        made = array(state, "predicted")
        for place in self.regression:
            made = self.t.put(made, self._regressed(state, made[OVERALL]), place)
        canonical = self.p.spec.canonical
        for place in self.stated:
            self.p.note("predictions that the model states")
            own = {n: stated_value(self.p, e) for n, e in canonical.predictions if n in predicted_of(canonical).streams}
            made = self.t.put(made, self._with(own, made[len(FORGETTING) - 1]), place)
        for place in self.forecasts:
            self.p.note("contexts in the place of what they may forecast")
            own = {n: self._flat(c) for n, c in forecasts(canonical).items()}
            made = self.t.put(made, self._with(own, made[len(FORGETTING) - 1]), place)
        return {"predicted": made}

    def _regressed(self, state: State, mean: Value) -> Value:
        t, width = self.t, self._width
        z, C = array(state, "z"), array(state, "C_zz")
        self.p.note("regression of the data on the contexts")
        spread = t.sum(C * t.eye(width), axis=1)
        ridge = t.where(spread > 0.0, spread * (SHRINK + 1.0 / self.p.played), 1.0)
        weights = t.solve(C + t.diag(ridge), self._context() - z)
        return self._within_ranges(mean + array(state, "C_sz") @ weights)

    def _with(self, own: dict[str, Value], others: Value) -> Value:
        """Values of the streams that have one, and `others` for the rest; within the ranges of the streams."""
        at, parts = 0, list[Value]()
        for name, size in predicted_of(self.p.spec.canonical).streams.items():
            parts.append(own.get(name, others[at : at + size]))
            at += size
        return self._within_ranges(parts[0] if len(parts) == 1 else self.t.concat(*parts))

    def _within_ranges(self, row: Value) -> Value:
        t, (lower, upper) = self.t, self._ranges()
        return t.minimum(t.maximum(row, t.constant(lower, "least")), t.constant(upper, "greatest"))

    def _seasonal(self, state: State, mean: Value, after: Value, now: Value) -> tuple[Value, State]:
        """Predictions (profiles, entries) of the next round, and the state that they come from; `mean` of all rounds before and after."""
        t, k, count, played = self.t, self.season, len(PROFILES), self.p.played
        assert self.p.round is not None
        shape, levels = (count, self.size), array(state, "level")
        forgets, follows = (
            t.constant(np.array(r).reshape(-1, 1), n) for r, n in zip(zip(*PROFILES), ("forgets", "follows"))
        )
        self.p.note(f"profiles of a season of {k} rounds, and levels above them")
        phase, table = (self.p.round - 1) % k, array(state, "profile")
        seen = played > k + 0.5
        base = t.where(seen, t.reshape(table[phase], shape), t.broadcast(mean, shape))
        level = t.where(seen, levels + follows * (now - base - levels), levels)
        visits = 1.0 + t.floor((played - 0.5) / float(k))
        profile = base + t.maximum(forgets, 1.0 / visits) * (now - base)
        table = t.name("profile", t.put(table, t.reshape(profile, (count * self.size,)), phase))
        following = t.where(played > k - 0.5, t.reshape(table[self.p.round % k], shape), t.broadcast(after, shape))
        seasonal = self._within_ranges(following + level)
        return t.name("seasonal", seasonal), {"profile": table, "level": t.name("level", level)}

    def _shifted(self, state: State, error: Value, base: Value) -> tuple[Value, State]:
        """Predictions (levels, entries) of the next round at quantiles of the errors of another, and the state that they come from."""
        t, played = self.t, self.p.played
        self.p.note("quantiles of the errors of data with which kinks of the loss move")
        shift, usual = array(state, "shift"), array(state, "usual")
        usual = t.name("usual", usual + t.maximum(SHIFT_RATE, 1.0 / played) * (abs(error) - usual))
        rises = t.to_float(error > shift) - t.constant(1.0 - np.array(LEVELS).reshape(-1, 1), "above", "shares above")
        shift = t.name("shift", shift + t.maximum(SHIFT_RATE, 1.0 / t.sqrt(played)) * 3.0 * usual * rises)
        added = t.where(t.constant(kinked_entries(self.p.spec.canonical), "kinked"), shift, 0.0)
        return self._within_ranges(base + added), {"shift": shift, "usual": usual}

    def _regression(self, state: State, change: Value) -> State:
        """Means and covariances of the contexts with one another and with the data, whose change from its mean is given."""
        t, rate = self.t, 1.0 / self.p.played
        z, C, cross = (array(state, name) for name in ("z", "C_zz", "C_sz"))
        move = self._context() - z
        self.p.note("covariances of the contexts and of the data with them")
        kept = 1.0 - rate
        return {
            "z": z + rate * move,
            "C_zz": kept * (C + rate * t.outer(move, move)),
            "C_sz": kept * (cross + rate * t.outer(change, move)),
        }

    def _context(self) -> Value:
        parts = [self._flat(n) for n in self.known]
        return parts[0] if len(parts) == 1 else self.t.concat(*parts)

    def _flat(self, name: str) -> Value:
        """Value of a stream that is known, one vector."""
        shape = next(s.shape for s in self.p.spec.canonical.streams if s.name == name)
        return self.t.reshape(self.t.to_float(self.p.seen[name]), (math.prod(shape),))

    @property
    def _width(self) -> int:
        return sum(math.prod(s.shape) for s in self.p.spec.canonical.streams if s.name in self.known)

    def _ranges(self) -> tuple[Floats, Floats]:
        """Least and greatest value of each entry of the data."""
        ranges = {s.name: s for s in self.p.spec.canonical.streams}
        own = [ranges[n] for n in predicted_of(self.p.spec.canonical).streams]
        lower, upper = (
            np.concatenate([np.broadcast_to(np.asarray(e, dtype=np.float64), s.shape).ravel() for s, e in pairs])
            for pairs in ([(s, s.lower) for s in own], [(s, s.upper) for s in own])
        )
        return np.maximum(lower, -LARGEST), np.minimum(upper, LARGEST)
