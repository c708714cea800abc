"""Balseiro, Lu & Mirrokni 2023, "The best of many worlds: dual mirror descent for online allocation problems" (Operations Research 71,
Algorithm 1), with a spending plan and Euclidean steps: budgets whose prices rise while spending is ahead of an even part.

    w_t = argmin over X of f_t(x) + sum_k lambda_k c_k(x),  c_k = a_k / rho_k, rho_k = b_k / T;   x_t = x_0 + theta_t (w_t - x_0),
    theta_t the largest in [0, 1] with spent_k + theta_t a_k(w_t) <= b_k for all k;   lambda_k <- P_[0, P](lambda_k + eta (c_k(x_t) - 1))

f_t and a_t are linear, a_t is known before the decision, x_0 costs nothing: nothing is ever overspent. Where f_t is not known its
prediction g_t stands for it: of the rows of `predictions` the one with the least squared error of its slope, errors of which a hundredth is
forgotten each round; where nothing is predicted, as in round 1, and where the loss is flat, w_t = x_0. These are the paper's constant
steps, for those who give `eta` or `price`. Else steps are in units of what came, and `observed_prices` proves their bound:

    lambda_t = P_t mu_t,  P_t the most by which losses of a round up to t can differ;   S_t = S_{t-1} + (c(x_t) - 1)^2, S_0 = 1;
    mu <- [mu + c (c(x_t) - 1) / sqrt(S_t)]_+,  entry by entry.

Theorem. With F >= f_t(x) - f_t(u) in every round, P >= F, C_k >= c_k, S^2 = sum_k max(1, C_k - 1)^2 and lambda_1 = 0, for every sequence
u_t in X with c_k(u_t) <= 1,

    sum_t f_t(x_t) - f_t(u_t) <= P^2 / (2 eta) + eta S^2 T / 2 + P max_k C_k + D sum_t |grad f_t - grad g_t|,

D the diameter of X; the last sum is 0 where f_t is known.

Proof. f_t(x) - f_t(u) is at most g_t(x) - g_t(u) + D |grad f_t - grad g_t|, all being linear, so let f_t be known. Let tau be the first
round in which w_tau does not fit, T + 1 if there is none. Before it x_t = w_t, so f_t(x_t) - f_t(u_t) <= sum_k lambda_k (c_k(u_t) -
c_k(x_t)) <= sum_k lambda_k (1 - c_k(x_t)), and by projected gradient descent on the prices (Zinkevich 2003) for
every lambda* in [0, P]^K the sum of these is at most sum_{t < tau} <lambda*, 1 - c(x_t)> + |lambda*|^2 / (2 eta) + eta S^2 T / 2. With
tau = T + 1 take lambda* = 0. Else some budget has sum_{t < tau} c_k(x_t) > T - C_k: with lambda* = P e_k the first term is less than
P (tau - 1 - T + C_k), and the T - tau + 1 rounds from tau on add at most F <= P each.

Where contexts are drawn independently from one distribution, the same steps with q = max over prices of E[min_x f + <lambda, c>] - sum
lambda in the place of f_t(u_t) bound the expected regret against the best decisions in hindsight that keep the totals alone, by the same
number: lambda_t does not depend on round t, so that E[f_t(x_t)] <= q + E <lambda_t, 1 - c(x_t)>, and T q is at most their expected loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import BOUNDED_DOMAIN, BOUNDED_GRADIENT, NO_CONSTRAINTS
from oco.compiler.algorithms.common import ROUNDS, domain_offers
from oco.compiler.algorithms.observed_prices import OBSERVED_SYMBOLS, observed_guarantee, observed_settings
from oco.compiler.algorithms.paced_budgets import (
    all_rounds,
    budgets_of,
    error_terms,
    is_predicted,
    kept_of_budgets,
    largest_share,
    sizes,
)
from oco.compiler.algorithms.predictions import Predictions
from oco.compiler.algorithms.profiles import season_measured
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows, select
from oco.compiler.lowering.predicted_round import as_predicted, parts_of, picking
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined, point
from oco.compiler.problem.structure import is_affine
from oco.compiler.proximal.known_step import kept_after, kept_at_start
from oco.compiler.theory.settings import Default, Setting, number
from oco.compiler.theory.theorems import (
    Bound,
    Floats,
    Free,
    Guarantee,
    Hypothesis,
    Objection,
    Quantity,
    Restart,
    Situation,
    Theorem,
    constant_settings,
    horizon_known,
    needed,
    scheduled,
)
from oco.dsl.expressions import Expr, Kind, names
from oco.dsl.magnitudes import SMALLEST
from oco.dsl.statements import Measure

KEPT = 0.99
"""Share of the squared errors of predictions that is kept each round."""


class Pacing:
    """`price`, or `mu` in units of `P`, is what a budget's even part of a round is worth; `missed` are the errors of each prediction."""

    def init(self, p: Problem, start: Point) -> State:
        t, entries = p.tracer, (sum(prod(b.shape) for b in budgets_of(p.spec.canonical)),)
        if _has_constant_steps(p):
            begun: State = {"price": t.zeros(entries)}
        else:
            begun = {"mu": t.zeros(entries), "S": t.full(1.0, entries), "P": t.lift(0.0)}
        made = {}
        if is_predicted(p.spec.canonical):
            predictions = Predictions(p)
            made = joined({"missed": t.zeros((predictions.count,))}, predictions.init())
        return joined({"x": start}, begun, made, kept_at_start(p, start))

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def prepare(self, p: Problem, state: State) -> State:
        """State with the decision of this round, once its loss and its costs are known."""
        t, own = p.tracer, budgets_of(p.spec.canonical)
        kept, free = kept_of_budgets(p.spec.canonical), self._free(p)
        slope, state, begun = self._slope(p, state, free)
        reach = t.sqrt(slope.squared_norm()) * p.domain.diameter
        F = t.name("F", reach if begun is None else t.where(begun, reach, 0.0))
        state, price = self._priced(p, state, F)
        p.note("argmin of the loss and the priced costs: both are linear")
        slope = slope + p.slopes_of([b.worst for b in own], free).combine(price * (p.units.radius * _parts(p)))
        w = select(t, F > 0.0, p.domain.lmo(slope), free).named(t, "w")
        p.note("no more of it than what is left")
        left = t.maximum(t.constant(kept, "kept") - self._spent(p), 0.0)
        cost = p.values([b.worst for b in own], w)
        theta = t.name("theta", t.min(t.where(cost > left, left / t.maximum(cost, SMALLEST), 1.0)))
        return {**state, "x": free + theta * (w - free)}

    def update(self, p: Problem, state: State) -> State:
        t, x, own = p.tracer, point(state, "x"), budgets_of(p.spec.canonical)
        p.note("prices rise while more than an even part is spent")
        over = t.name("over", p.values([b.cost for b in own], x) * _parts(p) - 1.0)
        return {"x": x, **self._prices_after(p, state, over), **self._predicted_after(p, state), **kept_after(p, x)}

    def _priced(self, p: Problem, state: State, F: Value) -> tuple[State, Value]:
        """State with the most that losses have differed by, those of this round by F, and the prices."""
        if _has_constant_steps(p):
            return state, array(state, "price")
        P = p.tracer.name("P", p.tracer.maximum(array(state, "P"), F))
        return {**state, "P": P}, array(state, "mu") * P

    def _prices_after(self, p: Problem, state: State, over: Value) -> State:
        """Prices after a round that cost `over` more than even parts of the budgets, in these parts."""
        t = p.tracer
        if _has_constant_steps(p):
            price = array(state, "price") + p.setting("eta") * over
            return {"price": t.minimum(t.maximum(price, 0.0), p.setting("price"))}
        p.note("AdaGrad's step of each price: no bound of the losses and none of the costs")
        S = t.name("S", array(state, "S") + over * over)
        mu = t.maximum(array(state, "mu") + p.setting("c") * over / t.sqrt(S), 0.0)
        return {"mu": mu, "S": S, "P": array(state, "P")}

    def _slope(self, p: Problem, state: State, free: Point) -> tuple[Point, State, Value | None]:
        """Slope of the loss as it is known or predicted, the state with the predictions of the round, and False where there are none."""
        if not is_predicted(p.spec.canonical):
            return p.gradient(free), state, None
        t, predictions = p.tracer, Predictions(p)
        state, missed = {**state, **predictions.prepared(state)}, array(state, "missed")
        least = t.to_float(missed <= t.min(missed))
        slopes = _slopes(p, array(state, "predicted"), free)
        return slopes.combine(least / t.sum(least)).named(t, "slope"), state, p.played > 1.5

    def _predicted_after(self, p: Problem, state: State) -> State:
        """State of the predictions after the round, with the squared errors of their slopes."""
        if not is_predicted(p.spec.canonical):
            return {}
        t, predictions, free = p.tracer, Predictions(p), self._free(p)
        was = predictions.before(state)
        assert was is not None
        slope = p.gradient(free)
        errors = t.map_(lambda *row: ((Point(row) - slope).squared_norm(),), *_slopes(p, was, free).blocks)
        missed = t.name("missed", KEPT * array(state, "missed") + errors[0])
        return {"missed": missed, **predictions.update(state, was)}

    def _free(self, p: Problem) -> Point:
        free, blocks = budgets_of(p.spec.canonical)[0].free, p.spec.canonical.blocks
        values = (np.reshape(np.array(x), b.shape) for x, b in zip(free, blocks, strict=True))
        return p.units.inward(Point(tuple(p.tracer.constant(v, "free", "costs nothing in any round") for v in values)))

    def _spent(self, p: Problem) -> Value:
        t, own = p.tracer, budgets_of(p.spec.canonical)
        parts = [t.reshape(p.seen[b.name], (prod(b.shape),)) for b in own]
        return parts[0] if len(parts) == 1 else t.concat(*parts)


def _has_constant_steps(p: Problem) -> bool:
    """True if the step of the paper is there."""
    return "eta" in p.spec.settings


def _parts(p: Problem) -> Floats:
    """1 / rho_k: even parts of a budget in one unit of it, shape (K,)."""
    return all_rounds(p.spec.canonical) / np.maximum(kept_of_budgets(p.spec.canonical), SMALLEST)


def _slopes(p: Problem, predicted: Value, x: Point) -> Rows:
    """Slope at x of the loss as each row of the predictions (rows, entries) has it."""
    none = p.tracer.zeros((p.constraint_count,))
    return Rows(
        tuple(p.tracer.map_(lambda *row: as_predicted(p, row, none).gradient(x).blocks, *parts_of(p, predicted)))
    )


# Hypotheses.


def _budgets_alone(s: Situation) -> Objection | None:
    if not budgets_of(s.canonical):
        return Objection(
            "it paces budgets, and the model has no constraint `in total`", "write `in total` after a budget"
        )
    for c in s.canonical.known:
        if c.budget is None:
            fix = f"leave out `{c.origin}`, or write it into the domain"
            return Objection(f"`{c.origin}` is known before the decision too, and it keeps to budgets alone", fix)
    return None


def _known_before(s: Situation) -> Objection | None:
    later = {x.name for x in s.canonical.streams if not x.stream.known} - {b.name for b in budgets_of(s.canonical)}
    for what, expr in _costs(s):
        if used := sorted(later & set(names(expr, Kind.STREAM))):
            fix = f"make `{used[0]}` a `context`"
            return Objection(f"{what} depends on `{used[0]}`, which is not known before the decision", fix)
    if used := sorted(later & set(picking(s.canonical))):
        fix = f"make `{used[0]}` a `context`"
        return Objection(f"`{used[0]}` picks entries of the loss, and no prediction is a position", fix)
    if s.canonical.moving is not None:
        return Objection(
            "the loss is about the decision before, which later rounds pay for", "leave `prev` out of the loss"
        )
    return None


def _linear(s: Situation) -> Objection | None:
    decisions = tuple(b.name for b in s.canonical.blocks)
    for what, expr in _functions(s):
        if not is_affine(expr, decisions):
            fix = "write it as a sum of decisions with factors that are known before them"
            return Objection(f"{what} is not linear in the decisions, and it minimizes linear functions", fix)
    return None


def _functions(s: Situation) -> list[tuple[str, Expr]]:
    return [("the loss", s.canonical.objective), *_costs(s)]


def _costs(s: Situation) -> list[tuple[str, Expr]]:
    return [(f"the cost of `{c.origin}`", c.budget.cost) for c in s.canonical.known if c.budget is not None]


BUDGETS = Hypothesis("Nothing but budgets is known before the decision.", _budgets_alone)
KNOWN_BEFORE = Hypothesis("Costs of a round are known before its decision.", _known_before)
LINEAR = Hypothesis("Loss and costs are linear in the decisions.", _linear)


# Settings and guarantee.


def _settings(s: Situation) -> Mapping[str, Default]:
    return {
        "price": Default(
            "loss.lipschitz.l2 * domain.diameter.l2", "largest price: what a round's losses differ by at most"
        ),
        "eta": Default(f"price / ({float(np.linalg.norm(sizes(s.canonical)))!r} * sqrt(T))", "P / (S sqrt(T))"),
        **({"season": season_measured(s)} if is_predicted(s.canonical) else {}),
    }


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    errors, more = error_terms(s)
    quantities: tuple[Quantity, ...] = (
        Quantity("P", "P", "largest price", scheduled(settings, "price")),
        Quantity("eta", r"\eta", "step of the prices", scheduled(settings, "eta")),
        Quantity("S", "S", "size of max(1, C_k - 1) over the budgets", float(np.linalg.norm(sizes(s.canonical)))),
        largest_share(s.canonical),
        ROUNDS,
        *more,
    )
    formula = "P**2 / (2*eta) + eta * S**2 * T / 2 + P * C" + errors
    note = "of independent contexts in expectation also against decisions that keep the totals alone"
    bound = Bound(f"{s.canonical.measure} regret", "sqrt(T)", formula, quantities, s.loss_range, note=note)
    return Guarantee("Balseiro, Lu & Mirrokni 2023, with the constants of this module", s.horizon, bound)


def _checks(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    result = constant_settings(s, settings)
    least = needed(s, "loss.lipschitz.l2") * needed(s, "domain.diameter.l2")
    least = least if s.loss_range is None else min(least, s.loss_range)
    enough = number(settings, "price", s.horizon or 1) >= least * (1 - 1e-12)
    return result if enough else [*result, "price must be at least what a round's losses can differ by"]


def _spent_in_turn(s: Situation, settings: Mapping[str, Setting]) -> str:
    """Reason why nothing is promised where feedback is late; "" where it comes at once."""
    return (
        "learners in turn spend one budget, and the price of each follows its own rounds" if s.canonical.delay else ""
    )


_BASIC = (BOUNDED_DOMAIN, BOUNDED_GRADIENT, horizon_known("The number of rounds T is known."))
_MEASURES = frozenset({Measure.STATIC, Measure.DYNAMIC})
_RATES = {"static regret": "sqrt(T)", "dynamic regret": "sqrt(T)"}

PACING = Algorithm(
    name="pacing",
    title="budgets with prices that follow an even plan",
    cite="Balseiro, Lu & Mirrokni 2023",
    rule=Pacing,
    requirements=(
        BUDGETS,
        NO_CONSTRAINTS,
        KNOWN_BEFORE,
        LINEAR,
        domain_offers("lmo", "Linear functions can be minimized over the domain."),
    ),
    theorems=(
        Theorem(
            name="observed scales",
            moves=True,
            measures=_MEASURES,
            hypotheses=_BASIC,
            settings=observed_settings,
            positive=("c", "season"),
            restart=Restart.NEVER,
            guarantee=observed_guarantee,
            rates=_RATES,
            checks=constant_settings,
            withholds=_spent_in_turn,
        ),
        Theorem(
            name="spending plan",
            asked_by=("eta", "price"),
            moves=True,
            measures=_MEASURES,
            hypotheses=_BASIC,
            settings=_settings,
            free=(Free("eta", 0.001, 1000),),
            positive=("price", "eta", "season"),
            restart=Restart.NEVER,
            guarantee=_guarantee,
            rates=_RATES,
            checks=_checks,
            withholds=_spent_in_turn,
        ),
    ),
    prepares=lambda canonical: bool(budgets_of(canonical)),
    predicts=True,
    sees_round=True,
    cost="one linear minimisation",
    symbols={
        "x": "the decision of this round",
        "price": "price of an even part of each budget, in units of the loss",
        **OBSERVED_SYMBOLS,
        "missed": "squared errors of the slope as predicted in each way, most of which are kept",
    },
)
