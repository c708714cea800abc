"""Prices of what binds on average, by gradient ascent on the dual with AdaGrad's steps.

    lambda <- [lambda + D/2 e_t / (h_t sqrt(min(t, L)))] cut to [0, cap],   L = T - t + 1,
    e_t = g_t(x_t) + (sum_{i <= t} g_i(x_i) + 4 h_t) / L,   h_t^2 = sum_{i <= t} g_i(x_i)^2 / t

at the decisions x that were played: what a round uses beyond the constraint, and what is used too much so far spread over the rounds that
are left, with four rounds of the usual size h in reserve; L and the second part of e only where T is known. Steps are small beside D: a
price that the nights move to 0 forgets what they leave. In the second half they grow as fewer rounds are left to make up for others.

A unit of such a constraint costs lambda in a round, whether it is broken or not: rounds make up for each other, also where the constraint
is the same in all of them, for the loss is not. The price of an equality h = 0 has either sign, within [-cap, cap], and nothing is kept
in reserve: what one round is above it another is below. Where h <= 0 and -h <= 0 stand for it, the first has that price and the second
none. D, the guess of the size of a multiplier, is the slope of the loss for the slope
of the constraint, sqrt(sum_t |grad f_t(x_t)|^2 / sum_t |grad g_t(x_t)|^2), as they came: what a unit saves. It is at most the cap, which
is the stated penalty, which no multiplier exceeds, or the largest multiplier.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined
from oco.compiler.lowering.significance import significant_entries
from oco.compiler.problem.canonical import Canonical
from oco.compiler.theory.objective import stated_prices
from oco.dsl.expressions import changes
from oco.dsl.magnitudes import TINY
from oco.dsl.statements import Timing

PRICE, SQUARES, USED = "lambda", "squares", "used"
LOSS_SLOPES, LIMIT_SLOPES = "F_lambda", "G_lambda"
STEP = 0.5
RESERVE = 4.0
"""Rounds of the usual size h that are kept in reserve: the last rounds are not to use too much."""
WORDS = "constraints that bind on average"
Array = np.ndarray[Any, Any]


def averaged(canonical: Canonical) -> Array:
    """True for each entry of the inequalities that binds on average, (N,)."""
    own = [c.timing is Timing.ON_AVERAGE for c in canonical.inequalities for _ in range(c.size)]
    return np.array(own, dtype=bool)


def is_drawn_on_average(canonical: Canonical) -> bool:
    """True where some constraint on average changes from round to round, and all data are drawn from stated distributions."""
    own = [c.expr for c in canonical.inequalities if c.timing is Timing.ON_AVERAGE]
    varies = any(map(changes, (*own, *(c.expr for c in canonical.equalities))))
    return varies and all(s.distribution is not None for s in canonical.revealed)


class DualPrices:
    """Prices in the round of a problem: one for each inequality, of which those that bind on average are used, and each equality.

    free    entries whose price has either sign, (N + M,): equalities, and first halves of those that are two inequalities
    priced  entries that have a price, (N + M,)
    """

    def __init__(self, p: Problem) -> None:
        self.p, self.t = p, p.tracer
        self.on_average = averaged(p.spec.canonical)
        self.N, self.M = p.constraint_count, p.equality_count
        half = np.array([c.half for c in p.spec.canonical.inequalities for _ in range(c.size)], dtype="U5")
        equalities = np.ones(self.M, dtype=bool)
        self.free = np.concatenate([self.on_average & (half == "above"), equalities])
        self.priced = np.concatenate([self.on_average & (half != "below"), equalities])

    @property
    def some(self) -> bool:
        """True where something binds on average."""
        return bool(self.on_average.any()) or self.M > 0

    def init(self) -> State:
        """State before the first round: nothing has a price."""
        if not self.some:
            return {}
        zeros = {n: self.t.zeros((self.N + self.M,)) for n in (PRICE, SQUARES, USED, LIMIT_SLOPES)}
        return joined(zeros, {LOSS_SLOPES: self.t.lift(0.0)})

    def update(self, state: State, x: Point, prices: Value) -> State:
        """State after the decision x of a round. prices (N,): of violations of the inequalities (`penalties`)."""
        if not self.some:
            return {}
        p, t, g, caps = self.p, self.t, significant_entries(self.t, self._values(x)), self._caps(prices)
        used, squares = t.name("used", array(state, USED) + g), t.name("squares", array(state, SQUARES) + g * g)
        size, error, rounds = t.name("size", t.sqrt(t.maximum(squares, TINY) / p.played)), g, p.played
        if p.spec.horizon is not None:
            left = t.maximum(float(p.spec.horizon) - p.played, 0.0) + 1.0
            reserve = self._each(0.0, RESERVE, "reserve")
            error, rounds = t.name("error", g + (used + reserve * size) / left), t.minimum(rounds, left)
        F = t.name("F", array(state, LOSS_SLOPES) + p.gradient(x).squared_norm())
        G = t.name("G", array(state, LIMIT_SLOPES) + self._squared_slopes(x))
        guess = t.minimum(t.sqrt(F / t.maximum(G, TINY)), caps)
        moved = array(state, PRICE) + STEP * guess * error / (size * t.sqrt(rounds))
        least = self._each(-1.0, 0.0, "least") * caps if self.free.any() else 0.0
        price = t.minimum(t.maximum(moved, least), caps)
        if not self.priced.all():
            price = t.where(t.constant(self.priced, "priced", WORDS), price, 0.0)
        return {PRICE: t.name("lambda", price), SQUARES: squares, USED: used, LOSS_SLOPES: F, LIMIT_SLOPES: G}

    def penalised(self, state: State, x: Point, g: Value | None, prices: Value) -> Value:
        """P_t(x) of the values g = g_t(x), None for N = 0: the loss, violations at their prices, what binds on average at its own."""
        total = self.p.loss(x)
        if g is not None:
            soft = self._of_inequalities(state) * g if self.on_average.any() else g
            total = total + self.t.sum(self._mixed(soft, prices * self.t.maximum(g, 0.0)))
        return total + self.t.sum(array(state, PRICE)[self.N :] * self.p.equalities(x)) if self.M else total

    def slope(self, state: State, x: Point, g: Value | None, prices: Value) -> Point:
        """Subgradient of P_t at x."""
        slope = self.p.gradient(x)
        if g is not None:
            # a step that ends at g = 0 is on a side of it by rounding
            hard = prices * self.t.to_float(significant_entries(self.t, g) > 0.0)
            soft = self._of_inequalities(state) if self.on_average.any() else hard
            slope = slope + self.p.constraint_combination(x, self._mixed(soft, hard))
        return slope + self._of_equalities(state, x) if self.M else slope

    def charged(self, state: State, x: Point) -> Point:
        """Gradient at x of what binds on average, at its prices."""
        if not self.on_average.any():
            return self._of_equalities(state, x)
        slope = self.p.constraint_combination(x, self._of_inequalities(state))
        return slope + self._of_equalities(state, x) if self.M else slope

    def caps_beside(self, caps: Value) -> Value:
        """Largest multipliers (N,) of the constraints that a step meets: none of those that have a price."""
        return self._mixed(self.t.lift(0.0), caps)

    def _mixed(self, soft: Value, hard: Value) -> Value:
        """Entries (N,): `soft` of inequalities that bind on average, `hard` of the others."""
        if not self.on_average.any():
            return hard
        return self.t.where(self.t.constant(self.on_average, "on_average", WORDS), soft, hard)

    def _of_inequalities(self, state: State) -> Value:
        own = array(state, PRICE)
        return own[: self.N] if self.M else own

    def _of_equalities(self, state: State, x: Point) -> Point:
        return self.p.equality_combination(x, array(state, PRICE)[self.N :])

    def _values(self, x: Point) -> Value:
        """g_t(x) and h_t(x), (N + M,)."""
        return self._joined(self.p.constraints, self.p.equalities, x)

    def _squared_slopes(self, x: Point) -> Value:
        """|grad g_t|^2 and |grad h_t|^2 of each entry, (N + M,)."""
        p = self.p
        return self._joined(
            lambda x: p.constraint_gradients(x).squared_norms(), lambda x: p.equality_gradients(x).squared_norms(), x
        )

    def _joined(self, own: Callable[[Point], Value], free: Callable[[Point], Value], x: Point) -> Value:
        parts = [f(x) for f, size in ((own, self.N), (free, self.M)) if size]
        return parts[0] if len(parts) == 1 else self.t.concat(*parts)

    def _each(self, free: float, other: float, name: str) -> Value | float:
        """A number for prices of either sign and one for the others, (N + M,)."""
        return self.t.constant(np.where(self.free, free, other), name) if self.free.any() else other

    def _caps(self, prices: Value) -> Value:
        """Largest prices, (N + M,): stated penalties, and the largest multiplier where none is stated."""
        t, spec, most = self.t, self.p.spec, self.p.setting("Q")

        def capped(stated: Array, prices: Value) -> Value:
            return t.where(t.constant(stated > 0, "has_penalty"), prices, most)

        parts = [capped(stated_prices(spec.canonical.inequalities), prices)] if self.N else []
        if self.M:
            stated = stated_prices(spec.canonical.equalities)
            stated = stated if spec.scales is None else stated * spec.scales.equalities / spec.scales.loss
            own = stated[list(spec.kept_equalities)]
            parts.append(capped(own, t.constant(own, "penalty", "penalties of equalities")))
        return parts[0] if len(parts) == 1 else t.concat(*parts)
