"""Plan of the flows of rounds to come, where stores move each other: tanks of which one runs into the next, goods that ripen, rooms that
exchange heat. One more unit in a store then is worth what it brings into others many rounds later, so that no store has a value alone.

With levels s_h, flows x_h of d decisions and z_h = A_h s_h + B x_h + drift_h + e_h, cut to the range for s_{h+1}, the plan descends

    J(x_0, ..., x_H) = E sum_h [c_h x_h + kappa_h x_h^2 / 2 + (j_h / 2) |x_h| + m_h s_h + g(z_h)] - V_end s_{H+1},

with the costs and drifts of `costs_to_come`; g has what the loss says of levels, and the price of what is beyond an end of the range. Its
slopes are those of the adjoint system: v_h, the value of a unit before round h, is

    v_h = A_h' w_h - m_h,      w_h = v_{h+1} - g'(z_h) inside of the range, and beyond it the price of what is missing, or too much,
    dJ/dx_h = c_h + kappa_h x_h + (j_h / 2) sign(x_h) - B' E w_h

(Bryson & Ho, Applied Optimal Control, 1975, chapter 2). Steps are projected, in the size of the slopes so far, and shorten; the plan of the
last round, one round on, is where they begin, as in model predictive control. E is over quantiles of the errors of the drift, which add up
(their sum has a usual size of sqrt(h) of theirs) until flows can answer: for the rounds after which half of what a flow brings into a store
is there, its lag. Later errors are met by later plans.

The value of what this round leaves is -J of the later rounds with their flows as planned. As these could still be changed, it is no more
than what is left is worth, and nearest where the plan leads, about which its kinks stand. Nothing is promised.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from oco.compiler.algorithms.costs_to_come import SCARCE, UNSURE, CostsToCome, ToCome
from oco.compiler.algorithms.known_slopes import EDGE, KnownSlopes
from oco.compiler.algorithms.learned_costs import DRIFT
from oco.compiler.ir.value import Value
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.round_table import RoundTable
from oco.compiler.lowering.rule import State, array
from oco.compiler.problem.store_forms import NO_ENTRY, StoreOfState
from oco.compiler.problem.stores import filled_by_flows, systems
from oco.dsl.magnitudes import TINY

Floats = np.ndarray[Any, Any]
STEPS = 20
"""Steps of a round: the plan of the round before is near."""
FIRST, SHORTER = 0.03, 0.93
"""Length of the first step where slopes are as large as usual, as a share of the range of a flow, and that of each next one in that of
the one before. First steps a third as long cost tanks in series 9% more, those three times as long three heated rooms 7%."""
SIZE_RATE = 0.01
"""Rate at which the usual squares of slopes follow those of a step."""
ERRORS = np.array([NormalDist(sigma=np.sqrt(np.pi / 2)).inv_cdf(q) for q in (np.arange(7) + 0.5) / 7])
"""Quantiles, in the middles of equal shares, of normal errors with the mean absolute value 1."""
PLAN, SQUARES = "plan", "plan_squares"
SYMBOLS = {
    PLAN: "flows that are planned for this round and those to come",
    SQUARES: "usual squares of the slopes of what the plan costs",
}
"""State that is kept, by name."""


class PlannedFlows:
    """Plan for m store entries and d entries of the decisions, H rounds ahead."""

    def __init__(
        self, p: Problem, stores: Sequence[StoreOfState], known: KnownSlopes, ahead: int, costs: CostsToCome
    ) -> None:
        self.p, self.t, self.stores, self.known, self.ahead = p, p.tracer, stores, known, ahead
        self.has_kinks, self.limited = costs.kinks, costs.limited
        self.entries, self.rate, self.least, self.most = (
            np.concatenate([getattr(s, n) for s in stores]) for n in ("entries", "rate", "least", "most")
        )
        self.filled, self.size = filled_by_flows(stores), sum(s.size for s in stores)
        self.decided = np.unique(self.entries[self.entries != NO_ENTRY])
        self.systems = systems(stores)
        self.system = self.systems.mean(axis=0)
        self.flows = np.zeros((self.size, self.decided.size))
        moving = self.entries != NO_ENTRY
        self.flows[self.filled[moving], np.searchsorted(self.decided, self.entries[moving])] = self.rate[moving]

    def init(self) -> State:
        """State before the first round, with a plan in the middle of all ranges."""
        least, most = self.ends()
        middle = self.t.constant(0.5 * (least + most), "middle", "middle of the ranges of flows")
        d = self.decided.size
        return {PLAN: self.t.broadcast(middle, (self.ahead + 1, d)), SQUARES: self.t.zeros((d,))}

    def ends(self) -> tuple[Floats, Floats]:
        """Least and greatest values of the entries that move stores, (d,) each."""
        first = self.first_flows()
        a, b = self.least[first] / self.rate[first], self.most[first] / self.rate[first]
        return np.minimum(a, b), np.maximum(a, b)

    def first_flows(self) -> Floats:
        """The first flow of each entry that moves stores, (d,)."""
        return np.array([np.flatnonzero(self.entries == e)[0] for e in self.decided])

    def grows(self) -> Floats:
        """Size of the sum of the errors that flows have not answered after each of the rounds, in that of one error, (H + 1, m)."""
        return np.asarray(np.sqrt(np.minimum(np.arange(1.0, self.ahead + 2.0).reshape(-1, 1), self.lags())))

    def lasting(self) -> Floats:
        """Units in entries that decisions move that one in each entry brings in H rounds, (m, m): that one itself where they move it."""
        moved = (self.flows != 0).any(axis=1)
        own, total, left = np.where(moved, 0.0, self.system.T), np.zeros_like(self.system), np.eye(self.size)
        for _ in range(self.ahead):
            total, left = total + left @ np.where(moved, self.system.T, 0.0), left @ own
        return np.asarray(np.where(moved[:, None], np.eye(self.size), total))

    def ends_by_round(self, name: str) -> RoundTable:
        """Ends of the ranges by the round, (m, 1)."""
        tables = [getattr(s.ends, f"{name}s") for s in self.stores]
        return RoundTable(self.t, tables, name, shape=(self.size, 1))

    def end(self, name: str) -> Value:
        """Prices of the ends of the ranges, and what keeps them, (m, 1)."""
        numbers = np.concatenate([getattr(s.ends, name) for s in self.stores])
        return self.t.constant(numbers.reshape(-1, 1), name)

    def column(self, v: Value) -> Value:
        """Vector as a column."""
        return self.t.reshape(v, (v.size, 1))

    def lags(self) -> Floats:
        """Rounds after which half of what a flow brings into each store at most is there, (m,); 1 where none brings anything."""
        response = np.zeros((self.ahead, self.size, self.decided.size))
        reached = self.flows
        for h in range(self.ahead):
            response[h], reached = abs(reached), self.system @ reached
        half = np.argmax(response >= 0.5 * response.max(axis=0), axis=0) + 1
        return np.where(response.max(axis=0) > 0, half, self.ahead).min(axis=1) if half.size else np.ones(self.size)

    def prepared(self, state: State, costs: ToCome, levels: Value) -> tuple[State, PlannedRounds]:
        """State with the plan from this round on, from the levels of the stores, (m,); and the rounds that it is for."""
        t, p = self.t, self.p
        p.note("the plan of this round and those to come, from that of the round before")
        rounds = PlannedRounds(self, state, costs)
        was, passed = array(state, PLAN), min(p.ahead, self.ahead)
        later = t.concat(was[passed:], t.broadcast(was[self.ahead :], (passed, self.decided.size)))
        plan = t.where(p.played > 1.5, later, was)
        start = t.reshape(levels, (self.size, 1))
        least, most = (t.constant(e, "end", "end of the range of a flow") for e in self.ends())

        def step(j: Value, plan: Value, squares: Value) -> tuple[Value, ...]:
            slopes = rounds.slopes(plan, start)
            mean = t.sum(slopes * slopes, axis=0) / float(self.ahead + 1)
            squares = t.where(squares > 0.0, squares + SIZE_RATE * (mean - squares), mean)
            length = FIRST * t.exp(t.to_float(j) * float(np.log(SHORTER))) * (most - least)
            moved = plan - length * slopes / t.sqrt(t.maximum(squares, TINY))
            return rounds.within(t.minimum(t.maximum(moved, least), most)), squares

        plan, squares = t.for_(STEPS, step, [plan, array(state, SQUARES)])
        return {PLAN: t.name("plan", plan), SQUARES: squares}, rounds

    def reached(self, state: State, rounds: PlannedRounds, kept: Value) -> Value:
        """Levels that this round leaves as planned, (m,), where it leaves `kept`, (m,), without flows."""
        lower, upper = (self.t.reshape(e, (self.size,)) for e in rounds.range(self.t.lift(0)))
        left = kept + self.t.constant(self.flows, "brings") @ array(state, PLAN)[0]
        return self.t.minimum(self.t.maximum(left, lower), upper)

    def values(self, state: State, rounds: PlannedRounds, levels: Value, planned: Value) -> Value:
        """Value of a unit more in each entry at each of a few levels that this round leaves, (m, K), others as planned, (m,)."""
        t, (m, K) = self.t, levels.shape
        own = t.constant(np.eye(m).reshape(m, m, 1), "own")
        start = t.reshape(planned, (m, 1, 1)) + own * t.reshape(levels - self.column(planned), (1, m, K))
        value = rounds.values(array(state, PLAN), t.reshape(start, (m, m * K)))
        return t.sum(own * t.reshape(value, (m, m, K)), axis=0)


class PlannedRounds:
    """Costs and drifts of a round and H to come, and what plans of flows, (H + 1, d), cost in them."""

    def __init__(self, plan: PlannedFlows, state: State, costs: ToCome) -> None:
        self.plan, self.t, t = plan, plan.t, plan.t
        (table,) = t.map_(lambda h: (costs.of(h),), t.iota(plan.ahead + 1))
        first, by_flow = plan.first_flows(), np.zeros((plan.rate.size, plan.decided.size))
        by_flow[first, np.arange(first.size)] = plan.rate[first]
        of_store = np.zeros((plan.rate.size, plan.size))
        of_store[np.searchsorted(plan.filled, np.arange(plan.size)), np.arange(plan.size)] = 1.0
        cost, size, own = (t.constant(m, n) for m, n in ((by_flow, "rate"), (abs(by_flow), "size"), (of_store, "own")))
        self.cost, self.growth = table[:, 0] @ cost, table[:, 1] @ t.constant(by_flow**2, "square")
        self.jump = table[:, 4] @ size if plan.has_kinks else None
        self.held, self.drift = table[:, 2] @ own, table[:, DRIFT] @ own
        self._limits = None if plan.limited is None else self._ranges(table, plan.limited)
        self.state = state
        last = t.reshape(costs.mean, (1, plan.rate.size)) @ own
        self.last = t.reshape(t.constant(plan.lasting(), "lasting") @ t.reshape(last, (plan.size,)), (plan.size, 1))
        usual = t.zeros((plan.rate.size,)) if costs.unsure is None else array(state, UNSURE)
        usual = t.reshape(t.reshape(usual, (1, usual.size)) @ own, (plan.size, 1))
        grows = t.constant(plan.grows(), "grows", "size of sums of errors until flows answer")
        self.sizes = t.name("sizes", grows * t.reshape(usual, (1, plan.size)))
        most = t.max(abs(table[:, 0])) + t.sum(t.max(abs(self.held), axis=1))
        self._system, self._adjoint = (
            RoundTable(t, [plan.systems], "system"),
            RoundTable(t, [plan.systems.swapaxes(1, 2)], "adjoint"),
        )
        self._lower, self._upper = plan.ends_by_round("lower"), plan.ends_by_round("upper")
        self.shares = t.constant(plan.flows.T, "shares")
        self.limit = SCARCE * (most + plan.end("paid") + plan.end("charged"))

    def _ranges(self, table: Value, limited: slice) -> tuple[Value, Value]:
        """Least and greatest values of the entries that move stores, (H + 1, d) each, from costs (H + 1, rows, F)."""
        t, plan = self.t, self.plan
        first, least, most = plan.first_flows(), table[:, limited.start], table[:, limited.stop - 1]
        of_entry = (np.arange(plan.rate.size).reshape(-1, 1) == first) / plan.rate.reshape(-1, 1)
        rising, falling = (t.constant(np.maximum(s * of_entry, 0.0), "per_rate") for s in (1.0, -1.0))
        return least @ rising - most @ falling, most @ rising - least @ falling

    def within(self, flows: Value) -> Value:
        """Plan (H + 1, d) cut to the ranges that the rounds have."""
        if self._limits is None:
            return flows
        return self.t.minimum(self.t.maximum(flows, self._limits[0]), self._limits[1])

    def number(self, h: Value) -> Value:
        """Number of the round after h others."""
        assert self.plan.p.round is not None
        return self.plan.p.round + h

    def system(self, h: Value) -> Value:
        """A_h, (m, m)."""
        return self._system.of(self.number(h))

    def range(self, h: Value) -> tuple[Value, Value]:
        """Ends of what the round h leaves, (m, 1) each."""
        return self._lower.of(self.number(h)), self._upper.of(self.number(h))

    def slopes(self, flows: Value, start: Value) -> Value:
        """Slopes of J at these flows of all rounds, (H + 1, d), from levels `start`, (m, 1)."""
        t, plan, (n, d) = self.t, self.plan, flows.shape
        reached = self._reached(flows, start, 0)

        def before(j: Value, value: Value, slopes: Value) -> tuple[Value, ...]:
            h = n - 1 - j
            unit = self._beyond(value, reached[h], self.sizes[h], h)
            slope = self._marginal(h, flows[h]) - t.reshape(self.shares @ unit, (d,))
            return self._adjoint.of(self.number(h)) @ unit - plan.column(self.held[h]), t.put(slopes, slope, h)

        return t.for_(n, before, [self.last, t.zeros(flows.shape)])[1]

    def values(self, flows: Value, start: Value) -> Value:
        """Value of a unit in each entry before the rounds after this one, (m, P), from levels `start`, (m, P), at flows (H + 1, d)."""
        t, plan, n = self.t, self.plan, self.plan.ahead
        reached = self._reached(flows, start, 1)

        def before(j: Value, value: Value) -> tuple[Value, ...]:
            h = n - 1 - j
            unit = self._beyond(value, reached[h], self.sizes[h], h + 1)
            return (self._adjoint.of(self.number(h + 1)) @ unit - plan.column(self.held[h + 1]),)

        return t.for_(n, before, [t.broadcast(self.last, start.shape)])[0]

    def _reached(self, flows: Value, start: Value, skipped: int) -> Value:
        """Levels z that rounds lead to as expected, before the cut, (n, m, P), where the first ones are `skipped`."""
        t, plan, n = self.t, self.plan, self.plan.ahead + 1 - skipped
        moved = flows @ self.shares + self.drift

        def following(h: Value, level: Value, reached: Value) -> tuple[Value, ...]:
            lower, upper = self.range(h + skipped)
            z = self.system(h + skipped) @ level + plan.column(moved[h + skipped])
            cut = t.minimum(t.maximum(self._with_errors(z, self.sizes[h]), lower), upper)
            return self._mean(cut), t.put(reached, z, h)

        return t.for_(n, following, [start, t.zeros((n, *start.shape))])[1]

    def _with_errors(self, z: Value, sizes: Value) -> Value:
        """Levels z, (m, P), with each of the errors of these sizes, (m,): (m, P errors)."""
        t, (m, P), K = self.t, z.shape, ERRORS.size
        errors = self.plan.column(sizes) * t.constant(ERRORS.reshape(1, K), "errors", "in usual errors")
        return t.reshape(t.reshape(z, (m, P, 1)) + t.reshape(errors, (m, 1, K)), (m, P * K))

    def _mean(self, v: Value) -> Value:
        """Mean over the errors of values (m, P errors), (m, P)."""
        (m, whole), K = v.shape, ERRORS.size
        return self.t.sum(self.t.reshape(v, (m, whole // K, K)), axis=2) / float(K)

    def _marginal(self, h: Value, flow: Value) -> Value:
        """Cost of one more of each flow (d,) in a round, by the flow alone."""
        slope = self.cost[h] + self.growth[h] * flow
        return slope if self.jump is None else slope + 0.5 * self.jump[h] * self.t.sign(flow)

    def _beyond(self, value: Value, z: Value, sizes: Value, h: Value) -> Value:
        """Value of a unit more in z, (m, P), which round h leaves and which is cut to the range for the next one, where one has this
        `value`, (m, P): the mean over errors of these sizes, (m,).
        """
        t, plan, (m, P), K = self.t, self.plan, z.shape, ERRORS.size
        z = self._with_errors(z, sizes)
        given, paid, wasted, charged, free = map(plan.end, ("given", "paid", "wasted", "charged", "free"))
        lower, upper = self.range(h)
        edge = EDGE * (upper - lower)
        inside = t.reshape(t.broadcast(t.reshape(value, (m, P, 1)), (m, P, K)), (m, P * K))
        if plan.known:
            inside = inside - plan.known.at(z, self.state, self.number(h))
        above = t.where(wasted > 0.0, -charged, -self.limit)
        below = t.where(given > 0.0, paid, self.limit)
        below = t.where(free > 0.0, t.maximum(inside, 0.0), below)
        return self._mean(t.where(z > upper + edge, above, t.where(z < lower - edge, below, inside)))
