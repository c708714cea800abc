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

import numpy as np

from oco.compiler.algorithms.detected_seasons import least_missed, seasons_tried
from oco.compiler.ir.value import Value
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined
from oco.compiler.problem.margin_predictions import SEASONS
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
    "by_phase": "{0} of a unit more in store, its growth, holding, drift, jump from emptying to filling, flows: at phases of the season",
    "overall": "the same on average of all rounds",
    "level": "{0} of a unit more in store, by the last rounds without their season",
    "above": "what the last {0} of a unit was above what was expected",
    "errors": "sums of squares of this and of products with it a round before; the same of what phases, and of what the level is above",
    "usual": "usual size of the errors",
}
"""State that is kept, with what it is of costs called so."""


class LearnedCosts:
    """Numbers of m stores, so many `rows` of them, kept under names that begin with `name`, by the phases of a season of so many rounds."""

    def __init__(self, p: Problem, name: str, m: int, rows: int, season: int) -> None:
        self.p, self.t, self.size, self.rows = p, p.tracer, m, rows
        self.season = season
        self.names = {part: f"{name}_{part}" for part in KEPT}

    def init(self) -> State:
        """State before the first round."""
        m, zeros = self.size, self.t.zeros
        sizes = ((self.season, self.rows, m), (self.rows, m), (m,), (m,), (6, m), (m,))
        return {n: zeros(s) for n, s in zip(self.names.values(), sizes, strict=True)}

    def kept(self, state: State, part: str) -> Value:
        """Part of the state, of those in `KEPT`."""
        return array(state, self.names[part])

    def update(self, state: State, now: Value) -> State:
        """State after a round with these costs, (rows, m)."""
        p, t = self.p, self.t
        assert p.round is not None
        phase = (p.round - 1) % self.season
        expected = self.expected(state, p.round - 1, p.played - 1.0)
        usual, begun = self.kept(state, "usual"), p.played > 1.5
        error = t.name("error", t.where(begun, now[0] - expected[0], 0.0))
        most = t.where(p.played > float(max(self.season, DAY)) + 0.5, FARTHEST * usual, UNBOUNDED)
        above = t.name("above", t.minimum(t.maximum(error, -most), most))
        cost = t.where(begun, expected[0] + above, now[0])
        now = t.name("costs", t.concat(t.reshape(cost, (1, self.size)), now[1:]))
        overall, of_phase = self.kept(state, "overall"), self.kept(state, "by_phase")[phase]
        level = t.where(begun, self.kept(state, "level"), cost)
        season, theta, _ = self._seasonal(state, phase, p.played)
        before, beside, higher = self.kept(state, "above"), cost - level, level - overall[0]
        higher = t.where(begun, higher, 0.0)
        parts = [(before, above), (season, beside), (higher, cost - overall[0] - theta * season)]
        products = t.stack(*(a * b for x, y in parts for a, b in ((x, x), (x, y))))
        visits = 1.0 + t.floor((p.played - 0.5) / float(self.season))
        rate = t.maximum(1.0 / visits, FORGETS)
        forgets = FORGETS if self.season == 1 else t.where(p.played > float(self.season) + 0.5, FORGETS, 0.0)
        at_phase = t.concat(t.reshape(beside, (1, self.size)), now[1:])
        after = (
            t.put(self.kept(state, "by_phase"), of_phase + rate * (at_phase - of_phase), phase),
            t.name("overall", overall + (now - overall) / p.played),
            t.name("level", level + t.maximum(1.0 / p.played, forgets) * (beside - season)),
            above,
            t.name("errors", self.kept(state, "errors") + products),
            t.name("usual", usual + t.maximum(SIZE_RATE, 1.0 / p.played) * (abs(error) - usual)),
        )
        return dict(zip(self.names.values(), after, strict=True))

    def expected(self, state: State, before: Value, rounds: Value) -> Value:
        """Costs as expected of the round with so many `before` it, after so many rounds, (rows, m): those of all rounds where its phase has
        not come.
        """
        t, overall, errors = self.t, self.kept(state, "overall"), self.kept(state, "errors")
        phase = before % self.season
        season, theta, came = self._seasonal(state, phase, rounds + 1.0)
        higher = self._regressed(state, errors[4], errors[5]) * (self.kept(state, "level") - overall[0])
        cost = t.reshape(overall[0] + higher + theta * season, (1, self.size))
        others = overall[1:] + t.where(came, self.kept(state, "by_phase")[phase][1:] - overall[1:], 0.0)
        return t.concat(cost, others)

    def to_come(self, state: State, begun: Value, rounds: Value) -> Callable[[Value], Value]:
        """Costs (rows, m) of the h-th round after the next one, by h, once so many rounds have `begun` and `rounds` of them are over."""
        t, errors = self.t, self.kept(state, "errors")
        fades = t.name("fades", t.log(t.maximum(self._regressed(state, errors[0], errors[1]), TINY)))
        above = self.kept(state, "above")

        def of(h: Value) -> Value:
            row = self.expected(state, begun + h, rounds)
            cost = row[0] + t.exp(t.to_float(h + self.p.ahead) * fades) * above
            return t.concat(t.reshape(cost, (1, self.size)), row[1:])

        return of

    def lasting(self, state: State) -> Value:
        """Sum of what is left in the rounds to come of 1 above what was expected, (m,)."""
        errors = self.kept(state, "errors")
        return 1.0 / (1.0 - self.t.minimum(self._regressed(state, errors[0], errors[1]), 1.0 - 1.0 / DAY))

    def _seasonal(self, state: State, phase: Value, played: Value) -> tuple[Value, Value, Value]:
        """Cost at a phase above the level, (m,), 0 in its first round; the part theta of it that is expected, (m,); and whether the phase
        has come before the round `played`.
        """
        t, errors = self.t, self.kept(state, "errors")
        came = t.to_float(phase) < played - 1.5
        if self.season == 1:
            return t.zeros((self.size,)), t.zeros((self.size,)), came
        season = t.where(came, self.kept(state, "by_phase")[phase][0], 0.0)
        return season, self._regressed(state, errors[2], errors[3]), came

    def _regressed(self, state: State, squares: Value, products: Value) -> Value:
        """Regression coefficient, cut to [0, 1]; 0 on what is but rounding beside the usual errors."""
        t, usual = self.t, self.kept(state, "usual")
        least = t.maximum(ROUNDING * usual * usual, TINY)
        return t.minimum(t.maximum(products / t.maximum(squares, least), 0.0), 1.0)


class LearnedRounds:
    """Costs of m stores, `rows` of them, of which `DRIFT` is the drift: as learned, and what drifts were above what that expects.

    Where several seasons are tried, costs and drifts of a store are each expected by the season with the least usual error so far. What
    drifts were above is of the season that is expected, or of `each` one that is tried: then they are compared with it, so that a season
    stays the best where the level of all phases jumps.
    """

    def __init__(self, p: Problem, name: str, m: int, rows: int, each: bool = False) -> None:
        self.p, self.t = p, p.tracer
        self.seasons = seasons_tried(p.spec.canonical, p.whole("season"))
        self.tried = [LearnedCosts(p, season_name(name, k, self.seasons), m, rows, k) for k in self.seasons]
        above = self.seasons if each else self.seasons[:1]
        self.above = [LearnedCosts(p, f"{season_name(name, k, self.seasons)}_{ABOVE}", m, 1, 1) for k in above]
        self.drift, self.each = self.above[0], len(self.above) > 1
        self.off, self.size, self.rows = f"{name}_{OFF}", m, rows

    def init(self) -> State:
        """State before the first round."""
        off: State = {self.off: self.t.zeros((len(self.tried), self.size))} if len(self.tried) > 1 else {}
        return joined(*(costs.init() for costs in (*self.tried, *self.above)), off)

    def update(self, state: State, now: Value) -> State:
        """State after a round with these costs, (rows, m)."""
        p, t = self.p, self.t
        assert p.round is not None
        expected = [own.expected(state, p.round - 1, p.played - 1.0) for own in self.tried]
        after = self._above_after(state, now, expected)
        if len(self.tried) > 1:
            if self.each:
                expected = [own(t.lift(0)) for own in self._each_to_come(state, p.round - 1, p.played - 1.0)]
            error = abs(now[DRIFT] - t.stack(*(e[DRIFT] for e in expected)))
            off, begun = array(state, self.off), p.played > 1.5
            off = off + t.maximum(SIZE_RATE, 1.0 / p.played) * (t.where(begun, error, 0.0) - off)
            after = {**after, self.off: t.name("off", off)}
        for own in self.tried:
            after = {**after, **own.update(state, now)}
        return after

    def _above_after(self, state: State, now: Value, expected: Sequence[Value]) -> State:
        """State of what drifts were above what is expected, after a round with these costs."""
        t, rows = self.t, expected if self.each else [self._picked(state, expected)]
        after: State = {}
        for k, own, row in zip(self.seasons, self.above, rows, strict=False):
            # In the first season it would be the season that is above the average.
            known = float(k if k > 1 or len(self.seasons) == 1 else 2 * DAY)
            drift, best = now[DRIFT : DRIFT + 1], row[DRIFT : DRIFT + 1]
            after = {**after, **own.update(state, t.where(self.p.played > known + 0.5, drift - best, 0.0))}
        return after

    def _picked(self, state: State, rows: Sequence[Value]) -> Value:
        """Costs (rows, m) of those as expected by each season: of the one with the least usual errors of costs, and of drifts."""
        if len(rows) == 1:
            return rows[0]
        costs = least_missed(self.t.stack(*(own.kept(state, "usual") for own in self.tried)), rows)
        is_drift = self.t.constant((np.arange(self.rows) == DRIFT).reshape(-1, 1), "is_drift")
        return self.t.where(is_drift, least_missed(array(state, self.off), rows), costs)

    def kept(self, state: State, part: str) -> Value:
        """Part of the state of the costs, of those in `KEPT`, without a season where several are tried."""
        return self.tried[0].kept(state, part)

    def expected_drift(self, state: State) -> Value:
        """Drift of this round as expected before it, (m,)."""
        assert self.p.round is not None
        return self.to_come(state, self.p.round - 1, self.p.played - 1.0)(self.t.lift(0))[DRIFT]

    def lasting(self, state: State) -> Value:
        """Sum of what an error of the drift leaves in the rounds to come, in such errors, (m,)."""
        return self.drift.lasting(state)

    def to_come(self, state: State, begun: Value, rounds: Value) -> Callable[[Value], Value]:
        """Costs (rows, m) of the h-th round after the next one, by h, once so many rounds have `begun` and `rounds` of them are over."""
        if self.each:
            own = self._each_to_come(state, begun, rounds)
            return lambda h: self._picked(state, [of(h) for of in own])
        *tried, above = (own.to_come(state, begun, rounds) for own in (*self.tried, self.drift))
        return lambda h: self._with_above(self._picked(state, [own(h) for own in tried]), above(h))

    def _each_to_come(self, state: State, begun: Value, rounds: Value) -> list[Callable[[Value], Value]]:
        """Costs of rounds to come as `to_come` has them, by each season that is tried."""

        def by(tried: LearnedCosts, above: LearnedCosts) -> Callable[[Value], Value]:
            costs, drift = (own.to_come(state, begun, rounds) for own in (tried, above))
            return lambda h: self._with_above(costs(h), drift(h))

        return [by(*pair) for pair in zip(self.tried, self.above, strict=True)]

    def _with_above(self, row: Value, above: Value) -> Value:
        after = DRIFT + 1
        rest = [row[after:]] if self.rows > after else []
        return self.t.concat(row[:DRIFT], row[DRIFT:after] + above, *rest)


def season_name(name: str, season: int, tried: Sequence[int] = SEASONS) -> str:
    """Beginning of the names of what is learned by one of the seasons that are tried."""
    return f"{name}_{season}" if season > 1 and len(tried) > 1 else name
