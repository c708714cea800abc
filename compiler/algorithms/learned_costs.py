"""Costs of what fills stores, as learned from the rounds so far: by the level of the last rounds and at the phases of the season.

A round has four numbers for each store: the cost c of a unit more in it, the growth of this cost, what holding a unit costs, and the
drift; and a fifth where the loss has kinks: how much more filling costs than emptying brings. Averages of them, at the phases of the
season, predict those of rounds to come: of c the mean of all rounds, with lambda times what the level of the last rounds is above it, theta
times what the phase is above the level, and phi^h times what the last one was above all
this; lambda, theta and phi are the regressions, cut to [0, 1], of what came on what was expected, so that noise is no season. No c counts
as more than two usual errors off: one spike decides nothing.

What the drift was above its average at the phase is predicted as c is, but without a season: wet weeks go on for a while. An error of it
lasts as well, and is 1 / (1 - phi) of itself in the rounds to come together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oco.compiler.algorithms.detected_seasons import least_missed, seasons_tried
from oco.compiler.ir.value import Value
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined
from oco.dsl.magnitudes import TINY

DAY = 24
"""Rounds after which errors have a usual size, at least."""
FORGETS = 0.05
"""Least rate at which averages at the phases of the season forget, and that of the level."""
FARTHEST = 2.0
"""Usual errors that a cost counts as off what was expected, at most, after the first season."""
SIZE_RATE = 0.02
"""Least rate at which the usual size of these errors forgets."""
ROUNDING = 1e-4
"""Least sum of squares that a regression is on, in squares of the usual error."""
UNBOUNDED = 1e300
DRIFT = 3
"""Row of the drift."""
ABOVE, OFF = "drift", "off"
KEPT = {
    "by_phase": "{0} of a unit more in store, its growth, holding, drift, jump from emptying to filling, flows: at phases of each season",
    "overall": "the same on average of all rounds",
    "level": "{0} of a unit more in store, by the last rounds without their season",
    "above": "what the last {0} of a unit was above what was expected",
    "errors": "sums of squares of this and of products with it a round before; the same of what phases, and of what the level is above",
    "usual": "usual size of the errors",
}
"""State that is kept, with what it is of costs called so."""


class LearnedCosts:
    """Numbers of m stores, so many `rows` of them, under names that begin with `name`, by the phases of each of S seasons side by side.

    Phases of all seasons stand one after another, first those of the first one; what has no phases has the season first, the sums of
    `errors` their kind.
    """

    def __init__(self, p: Problem, name: str, m: int, rows: int, seasons: Sequence[int]) -> None:
        """The seasons are in rounds; in one of a single round, costs have none."""
        self.p, self.t, self.size, self.rows = p, p.tracer, m, rows
        self.lengths, self.count = np.array(seasons), len(seasons)
        self.names = {part: f"{name}_{part}" for part in KEPT}

    def init(self) -> State:
        """State before the first round."""
        each, zeros = (self.count, self.size), self.t.zeros
        costs = (self.rows, self.size)
        sizes = ((int(self.lengths.sum()), *costs), (self.count, *costs), each, each, (6, *each), each)
        return {n: zeros(s) for n, s in zip(self.names.values(), sizes, strict=True)}

    def kept(self, state: State, part: str) -> Value:
        """Part of the state, of those in `KEPT`."""
        return array(state, self.names[part])

    def update(self, state: State, now: Value) -> State:
        """State after a round with these costs, (rows, m), or (S, rows, m) for each season."""
        p, t, kept = self.p, self.t, self.kept
        assert p.round is not None
        now = t.broadcast(now, (self.count, self.rows, self.size))
        expected = self.expected(state, p.round - 1, p.played - 1.0)[:, 0]
        usual, begun = kept(state, "usual"), p.played > 1.5
        error = t.name("error", t.where(begun, now[:, 0] - expected, 0.0))
        learned = p.played > self._of_seasons(np.maximum(self.lengths, DAY) + 0.5, 1)
        most = t.where(learned, FARTHEST * usual, UNBOUNDED)
        above = t.name("above", t.minimum(t.maximum(error, -most), most))
        cost = t.where(begun, expected + above, now[:, 0])
        now = t.name("costs", self._with_cost(cost, now))
        overall, phases = kept(state, "overall"), self._phases(p.round - 1)
        level = t.where(begun, kept(state, "level"), cost)
        places = self._places(phases)
        of_phase = kept(state, "by_phase")[places]
        season, theta, _ = self._seasonal(state, of_phase, phases, p.played)
        before, beside = kept(state, "above"), cost - level
        higher = t.where(begun, level - overall[:, 0], 0.0)
        parts = [(before, above), (season, beside), (higher, cost - overall[:, 0] - theta * season)]
        products = t.stack(*(a * b for x, y in parts for a, b in ((x, x), (x, y))))
        visits = 1.0 + t.floor((p.played - 0.5) / self._of_seasons(self.lengths.astype(float), 2))
        rate = t.maximum(1.0 / visits, FORGETS)
        came = p.played > self._of_seasons(np.where(self.lengths > 1, self.lengths, 0) + 0.5, 1)
        forgets = t.where(came, FORGETS, 0.0)
        after = (
            t.put(kept(state, "by_phase"), of_phase + rate * (self._with_cost(beside, now) - of_phase), places),
            t.name("overall", overall + (now - overall) / p.played),
            t.name("level", level + t.maximum(1.0 / p.played, forgets) * (beside - season)),
            above,
            t.name("errors", kept(state, "errors") + products),
            t.name("usual", usual + t.maximum(SIZE_RATE, 1.0 / p.played) * (abs(error) - usual)),
        )
        return dict(zip(self.names.values(), after, strict=True))

    def expected(self, state: State, before: Value, rounds: Value) -> Value:
        """Costs as expected of the round with so many `before` it, after so many rounds, (S, rows, m): those of all rounds where its
        phase has not come.
        """
        t, overall, errors = self.t, self.kept(state, "overall"), self.kept(state, "errors")
        phases = self._phases(before)
        of_phase = self.kept(state, "by_phase")[self._places(phases)]
        season, theta, came = self._seasonal(state, of_phase, phases, rounds + 1.0)
        higher = self._regressed(state, errors[4], errors[5]) * (self.kept(state, "level") - overall[:, 0])
        cost = overall[:, 0] + higher + theta * season
        came = t.reshape(came, (self.count, 1, 1))
        return self._with_cost(cost, overall + t.where(came, of_phase - overall, 0.0))

    def to_come(self, state: State, begun: Value, rounds: Value) -> Callable[[Value], Value]:
        """Costs (S, rows, m) of the h-th round after the next one, by h, once so many rounds have `begun` and `rounds` of them are over."""
        t, errors = self.t, self.kept(state, "errors")
        fades = t.name("fades", t.log(t.maximum(self._regressed(state, errors[0], errors[1]), TINY)))
        above = self.kept(state, "above")

        def of(h: Value) -> Value:
            row = self.expected(state, begun + h, rounds)
            return self._with_cost(row[:, 0] + t.exp(t.to_float(h + self.p.ahead) * fades) * above, row)

        return of

    def lasting(self, state: State) -> Value:
        """Sum of what is left in the rounds to come of 1 above what was expected, (S, m)."""
        errors = self.kept(state, "errors")
        return 1.0 / (1.0 - self.t.minimum(self._regressed(state, errors[0], errors[1]), 1.0 - 1.0 / DAY))

    def _phases(self, before: Value) -> Value:
        """Phase in each season of the round with so many before it, (S,)."""
        return before % self._of_seasons(self.lengths, 0)

    def _places(self, phases: Value) -> Value:
        """Places of a phase in each season among the phases of all, (S,)."""
        return phases + self._of_seasons(np.cumsum(self.lengths) - self.lengths, 0)

    def _seasonal(self, state: State, of_phase: Value, phases: Value, played: Value) -> tuple[Value, Value, Value]:
        """Cost at the phases above the level, (S, m), 0 in its first round and without a season; the part theta of it that is expected,
        (S, m); and whether the phases have come before the round `played`, (S, 1).
        """
        t, errors = self.t, self.kept(state, "errors")
        came = t.reshape(t.to_float(phases) < played - 1.5, (self.count, 1))
        if self.lengths.max() == 1:
            return t.zeros((self.count, self.size)), t.zeros((self.count, self.size)), came
        seasonal = t.and_(came, self._of_seasons(self.lengths > 1, 1))
        return t.where(seasonal, of_phase[:, 0], 0.0), self._regressed(state, errors[2], errors[3]), came

    def _regressed(self, state: State, squares: Value, products: Value) -> Value:
        """Regression coefficient, cut to [0, 1]; 0 on what is but rounding beside the usual errors."""
        t, usual = self.t, self.kept(state, "usual")
        least = t.maximum(ROUNDING * usual * usual, TINY)
        return t.minimum(t.maximum(products / t.maximum(squares, least), 0.0), 1.0)

    def _with_cost(self, cost: Value, rows: Value) -> Value:
        """Rows (S, rows, m) with these costs, (S, m), as the first one."""
        return self.t.concat(self.t.reshape(cost, (self.count, 1, self.size)), rows[:, 1:], axis=1)

    def _of_seasons(self, values: np.ndarray[Any, Any], more: int) -> Value:
        """Numbers of the seasons, (S, 1, ...), with so many axes `more`."""
        return self.t.constant(values.reshape(-1, *[1] * more), "seasons", "by the seasons that are tried")


class LearnedRounds:
    """Costs of m stores, `rows` of them, of which `DRIFT` is the drift: as learned, and what drifts were above what that expects.

    Where several seasons are tried, costs and drifts of a store are each expected by the season with the least usual error so far. What
    drifts were above is of the season that is expected, or of `each` one that is tried: then they are compared with it, so that a season
    stays the best where the level of all phases jumps.
    """

    def __init__(self, p: Problem, name: str, m: int, rows: int, each: bool = False) -> None:
        self.p, self.t = p, p.tracer
        self.seasons = seasons_tried(p.spec.canonical, p.whole("season"))
        self.tried = LearnedCosts(p, name, m, rows, self.seasons)
        self.each = each and len(self.seasons) > 1
        above = len(self.seasons) if self.each else 1
        self.drift = LearnedCosts(p, f"{name}_{ABOVE}", m, 1, (1,) * above)
        self.off, self.size, self.rows = f"{name}_{OFF}", m, rows

    def init(self) -> State:
        """State before the first round."""
        count = len(self.seasons)
        off: State = {self.off: self.t.zeros((count, self.size))} if count > 1 else {}
        return joined(self.tried.init(), self.drift.init(), off)

    def update(self, state: State, now: Value) -> State:
        """State after a round with these costs, (rows, m)."""
        p, t = self.p, self.t
        assert p.round is not None
        expected = self.tried.expected(state, p.round - 1, p.played - 1.0)
        after = self._above_after(state, now, expected)
        if len(self.seasons) > 1:
            if self.each:
                expected = self._each_to_come(state, p.round - 1, p.played - 1.0)(t.lift(0))
            error = abs(now[DRIFT] - expected[:, DRIFT])
            off, begun = array(state, self.off), p.played > 1.5
            off = off + t.maximum(SIZE_RATE, 1.0 / p.played) * (t.where(begun, error, 0.0) - off)
            after = {**after, self.off: t.name("off", off)}
        return {**after, **self.tried.update(state, now)}

    def _above_after(self, state: State, now: Value, expected: Value) -> State:
        """State of what drifts were above what is expected, after a round with these costs."""
        t, lone = self.t, len(self.seasons) == 1
        rows = expected if self.each else t.reshape(self._picked(state, expected), (1, self.rows, self.size))
        # In the first season it would be the season that is above the average.
        known = np.array([k if k > 1 or lone else 2 * DAY for k in self.seasons[: self.drift.count]]) + 0.5
        drift, best = now[DRIFT : DRIFT + 1], rows[:, DRIFT : DRIFT + 1]
        counts = self.p.played > t.constant(known.reshape(-1, 1, 1), "known", "rounds until a season is known")
        return self.drift.update(state, t.where(counts, drift - best, 0.0))

    def _picked(self, state: State, rows: Value) -> Value:
        """Costs (rows, m) of those as expected by each season: of the one with the least usual errors of costs, and of drifts."""
        choices = [rows[k] for k in range(len(self.seasons))]
        if len(choices) == 1:
            return choices[0]
        costs = least_missed(self.tried.kept(state, "usual"), choices)
        is_drift = self.t.constant((np.arange(self.rows) == DRIFT).reshape(-1, 1), "is_drift")
        return self.t.where(is_drift, least_missed(array(state, self.off), choices), costs)

    def kept(self, state: State, part: str) -> Value:
        """Part of the state of the costs, of those in `KEPT` that have a season first, without a season where several are tried."""
        return self.tried.kept(state, part)[0]

    def expected_drift(self, state: State) -> Value:
        """Drift of this round as expected before it, (m,)."""
        assert self.p.round is not None
        return self.to_come(state, self.p.round - 1, self.p.played - 1.0)(self.t.lift(0))[DRIFT]

    def lasting(self, state: State) -> Value:
        """Sum of what an error of the drift leaves in the rounds to come, in such errors, (m,)."""
        return self.drift.lasting(state)[0]

    def to_come(self, state: State, begun: Value, rounds: Value) -> Callable[[Value], Value]:
        """Costs (rows, m) of the h-th round after the next one, by h, once so many rounds have `begun` and `rounds` of them are over."""
        if self.each:
            own = self._each_to_come(state, begun, rounds)
            return lambda h: self._picked(state, own(h))
        tried, above = (own.to_come(state, begun, rounds) for own in (self.tried, self.drift))
        return lambda h: self._with_above(self._picked(state, tried(h)), above(h)[0], axis=0)

    def _each_to_come(self, state: State, begun: Value, rounds: Value) -> Callable[[Value], Value]:
        """Costs (S, rows, m) of rounds to come as `to_come` has them, by each season that is tried."""
        costs, drift = (own.to_come(state, begun, rounds) for own in (self.tried, self.drift))
        return lambda h: self._with_above(costs(h), drift(h), axis=1)

    def _with_above(self, rows: Value, above: Value, axis: int) -> Value:
        """Costs with what the drift is above; their rows are along that axis."""

        def part(first: int, last: int) -> Value:
            return rows[(*[slice(None)] * axis, slice(first, last))]

        rest = [part(DRIFT + 1, self.rows)] if self.rows > DRIFT + 1 else []
        return self.t.concat(part(0, DRIFT), part(DRIFT, DRIFT + 1) + above, *rest, axis=axis)
