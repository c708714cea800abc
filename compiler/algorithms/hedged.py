"""AdaHedge (de Rooij et al. 2014) over rules that people write, weighed by the loss with its violations at their prices.

    P_t(x) = f_t(x) + sum_n price_n [g_t^n(x)]_+

Price: what the model states after `penalty`, else the setting. Decision: sum_k w_k x^k with AdaHedge's weights of the losses P_t(x^k)
(`de_rooij2014`). P_t is convex, so its value is at most the weighted one. Experts, each with AdaGrad's sum S of its own slopes:

* gradients on the penalised loss with steps of many sizes, and prices that are cut or raised by a factor r:
  x <- P_X(x - c D / sqrt(2 S) (grad f_t + r sum_n price_n [g_n > 0] grad g_n));
* the next round solved again on averages s of the data (all rounds, forgetting, the last one), within reach of the last decision, with a
  margin m_n on each constraint: x <- argmin over X of <grad f(x; s), u> + |u - x|^2 sqrt(2 S) / (2 c D) + Q sum_n [g_n(u; s) + m_n]_+.
  The margins follow a quantile q of the errors e = g_t(x) - g(x; s) of what was predicted: m += rate max|e| (1[e > m] - (1 - q))
  (Gibbs & Candes 2021); for q = 1 it is the largest error so far.

Theorem. The gradient expert with c = r = 1 is gradient descent on P_t with AdaGrad's steps, and with comparators u_t of path length V,
sum P_t(x_t) - P_t(u_t) <= (D_s + (D^2 + 2 D V)/D_s)/2 sqrt(2 S) for steps D_s / sqrt(2 S): the inequality of gradient descent summed,
|x_t+1 - u_t|^2 being at least |x_t+1 - u_t+1|^2 - 2 D |u_t+1 - u_t|. With S <= G^2 T, G a bound of the slope of P_t, and the price of
the weights, 2 Delta_T <= M sqrt((4 + ln K) T) with M the range of P_t,

    sum P_t(x_t) - P_t(u_t) <= R = (D_s + (D^2 + 2 D V)/D_s)/2 G sqrt(2 T) + M sqrt((4 + ln K) T).

For u_t that satisfy each round's constraints P_t(u_t) = f_t(u_t). So the regret is at most R, less what is paid for violations; and with
F the range of the loss, the violations are at most (R + F T) / min_n price_n together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import BOUNDED_DOMAIN, BOUNDED_GRADIENT, CONVEX_LOSS, GRADIENTS_SEEN, path_length
from oco.compiler.algorithms.common import EXACT_STEP, FEASIBLE_COMPARATOR, FUNCTIONS_SEEN, ROUNDS, SOME_INEQUALITY
from oco.compiler.algorithms.de_rooij2014 import mixability_gap, weights
from oco.compiler.algorithms.wang_yan_liu2025 import INEQUALITIES_ONLY
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows, repeated
from oco.compiler.lowering.predicted_round import as_predicted, data_of, picking, predicted_of
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, rows
from oco.compiler.proximal.penalty import penalized_step
from oco.compiler.theory.objective import stated_prices
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import Default, Setting, number
from oco.compiler.theory.theorems import (
    Bound,
    Floats,
    Free,
    Guarantee,
    Hypothesis,
    Objection,
    Quantity,
    Situation,
    Theorem,
    Violation,
    constant_settings,
    inequalities_convex,
    inequalities_know,
    needed,
    needed_bounds,
)
from oco.dsl.expressions import changes
from oco.dsl.statements import Feedback, Measure, Timing

FORGETTING = (0.08, 0.0, 1.0)
"""Rates at which averages of the data forget; 0: the mean of all rounds, 1: the last round."""
GRADIENTS = ((0.1, 0.3), (0.1, 1.0), (0.1, 3.0), (1.0, 0.3), (1.0, 1.0))
"""Factors c of AdaGrad's step and r of the prices of the gradient experts; the theorem is of the one with 1 and 1."""
SOLVED = (*product((0, 1), (0.3, 3.0), (0.9, 0.98, 0.995, 1.0)), *product((2,), (1.0, 3.0), (0.9, 0.995)))
"""Experts that solve the next round: the average, its place in `FORGETTING`; the reach as a factor of AdaGrad's step; the quantile."""
EXPERTS = len(GRADIENTS) + len(SOLVED)
MARGIN_RATE = 0.05
LARGE = 1e4
"""Largest multiplier of a constraint as predicted, in units of the loss's slope times the diameter over the size of a constraint."""
TINY = 1e-290
Body = Callable[..., tuple[Value, ...]]


class Hedged:
    """`x` has the decision of each expert: the gradients, then the rounds solved again, whose averages, margins and errors follow."""

    def init(self, p: Problem, start: Point) -> State:
        t, N, data = p.tracer, p.constraint_count, predicted_of(p.task.canonical).size
        averages = {"average": t.zeros((len(FORGETTING), data))} if data else {}
        return {
            "x": repeated(t, start, EXPERTS),
            "L": t.zeros((EXPERTS,)),
            "gap": t.lift(0.0),
            "S": t.zeros((EXPERTS,)),
            "margin": t.zeros((len(SOLVED), N)),
            "error": t.zeros((len(SOLVED), N)),
            **averages,
        }

    def decide(self, p: Problem, state: State) -> Point:
        return rows(state, "x").combine(weights(p, array(state, "L"), array(state, "gap")))

    def update(self, p: Problem, state: State) -> State:
        t, x, L, gap = p.tracer, rows(state, "x"), array(state, "L"), array(state, "gap")
        w = weights(p, L, gap)
        prices = _prices(p)
        averages, before, after = _averages(p, state)
        losses, S = t.zeros((EXPERTS,)), array(state, "S")
        p.note("gradients on the penalised loss")
        losses, S, *blocks = t.for_(len(GRADIENTS), _gradient_expert(p, prices), (losses, S, *x.blocks))
        p.note("the next round solved on averages of the data, with margins")
        begin = (losses, S, array(state, "margin"), array(state, "error"), *blocks)
        solved = t.for_(len(SOLVED), _solving_expert(p, prices, before, after), begin)
        losses, S, margin, error, *blocks = solved
        return {
            "x": Rows(tuple(blocks)),
            "L": L + losses,
            "gap": gap + mixability_gap(p, losses, w, gap),
            "S": S,
            "margin": margin,
            "error": error,
            **averages,
        }


def _prices(p: Problem) -> Value:
    """Price of a unit of violation of each constraint, shape (N,), in units of the rule."""
    scales, stated = p.task.scales, stated_prices(p.task.canonical.inequalities)
    if scales is not None:
        stated = stated * scales.inequalities / scales.loss
    own = p.setting("penalty")
    if p.task.settings["penalty"].given or not stated.any():
        return p.tracer.full(1.0, stated.shape) * own
    price = p.tracer.constant(stated, "price", "penalties that the model states, of g / G in units of the loss")
    return price if stated.all() else p.tracer.where(price > 0.0, price, own)


def _averages(p: Problem, state: State) -> tuple[State, Value | None, Value | None]:
    """Averages of the data for the state, and what was and is predicted, a row for each rate."""
    if "average" not in state:
        return {}, None, None
    t, now = p.tracer, data_of(p)
    p.note("averages of the data; in round 1 its own data stand for what was predicted")
    was = t.name(
        "was", t.where(p.played > 1.5, array(state, "average"), t.broadcast(now, array(state, "average").shape))
    )
    rates = t.maximum(t.constant(np.array(FORGETTING), "rates"), 1.0 / p.played)
    average = t.name("average", was + t.reshape(rates, (len(FORGETTING), 1)) * (now - was))
    return {"average": average}, was, average


def _penalised(p: Problem, x: Point, g: Value, prices: Value) -> Value:
    """P_t(x) of the values g = g_t(x)."""
    return p.loss(x) + p.tracer.sum(prices * p.tracer.maximum(g, 0.0))


def _gradient_expert(p: Problem, prices: Value) -> Body:
    """Body of the loop over the gradient experts: losses, S, and the decisions block by block."""
    t, D = p.tracer, p.setting("D")
    sizes = t.constant(np.array([c for c, _ in GRADIENTS]), "steps", "factors of the steps")
    factors = t.constant(np.array([r for _, r in GRADIENTS]), "factors", "factors of the prices")

    def one(k: Value, losses: Value, S: Value, *blocks: Value) -> tuple[Value, ...]:
        x = Rows(blocks).row(k)
        g = t.name("g", p.constraints(x))
        slope = p.gradient(x) + p.constraint_combination(x, factors[k] * prices * t.to_float(g > 0.0))
        total = t.name("total", S[k] + slope.squared_norm())
        eta = t.name("eta", sizes[k] * D / t.sqrt(2.0 * t.maximum(total, TINY)))
        following = p.domain.project(x - eta * slope)
        losses = t.put(losses, _penalised(p, x, g, prices), k)
        return (losses, t.put(S, total, k), *Rows(blocks).replaced(k, following).blocks)

    return one


def _solving_expert(p: Problem, prices: Value, before: Value | None, after: Value | None) -> Body:
    """Body of the loop over the experts that solve the next round: losses, S, margins, errors, and the decisions block by block."""
    t, N, D, first = p.tracer, p.constraint_count, p.setting("D"), len(GRADIENTS)
    place = t.constant(np.array([i for i, _, _ in SOLVED]), "place", "the average that each expert takes")
    sizes = t.constant(np.array([c for _, c, _ in SOLVED]), "reach", "factors of the steps")
    quantiles = t.constant(np.array([q for _, _, q in SOLVED]), "quantile")
    caps = t.full(1.0, (N,)) * p.setting("Q")
    none = t.zeros((N,))

    def one(k: Value, losses: Value, S: Value, margins: Value, errors: Value, *blocks: Value) -> tuple[Value, ...]:
        j = k + first
        x = Rows(blocks).row(j)
        g = t.name("g", p.constraints(x))
        losses = t.put(losses, _penalised(p, x, g, prices), j)
        was = as_predicted(p, None if before is None else before[place[k]], none)
        margin, error = _margin(p, g - was.constraints(x), margins[k], errors[k], quantiles[k])
        own = as_predicted(p, None if after is None else after[place[k]], margin, following=True)
        slope = own.gradient(x)
        total = t.name("total", S[j] + slope.squared_norm())
        alpha = t.name("alpha", t.sqrt(2.0 * t.maximum(total, TINY)) / (2.0 * sizes[k] * D))
        following = penalized_step(own, x, slope, alpha, caps, own.constraints(x))
        kept = losses, t.put(S, total, j), t.put(margins, margin, k), t.put(errors, error, k)
        return (*kept, *Rows(blocks).replaced(j, following).blocks)

    return one


def _margin(p: Problem, e: Value, margin: Value, error: Value, quantile: Value) -> tuple[Value, Value]:
    """Margin and largest error after the error e of each constraint, (N,)."""
    t = p.tracer
    error = t.name("error", t.maximum(error, abs(e)))
    rises = t.to_float(e > margin) - (1.0 - quantile)
    quick = t.maximum(MARGIN_RATE, 1.0 / t.sqrt(p.played))
    followed = margin + quick * error * rises
    return t.name("margin", t.where(quantile > 0.9995, t.maximum(margin, e), followed)), error


# Hypotheses.


def _full_feedback(s: Situation) -> Objection | None:
    if s.canonical.feedback is Feedback.FULL:
        return None
    message = f"{s.canonical.feedback} feedback does not give the loss as a function, and it needs it for the decisions of its experts"
    return Objection(message, "write `feedback full`")


def _averaged(s: Situation) -> Objection | None:
    positions = picking(s.canonical)
    if not positions:
        return None
    message = f"`{positions[0]}` picks entries of arrays, and an average of positions is no position"
    return Objection(message, f"write the entries that `{positions[0]}` picks as a stream of their own")


def _each_round(s: Situation) -> Objection | None:
    for c in s.canonical.inequalities:
        if c.timing is Timing.ON_AVERAGE and changes(c.expr):
            message = f"`{c.origin}` binds on average, and it counts what each round breaks"
            return Objection(message, f"write `each round` after `{c.origin}`")
    return None


def _priced(s: Situation) -> Objection | None:
    if stated_prices(s.canonical.inequalities).all():
        return None
    open_ = next(c.origin for c in s.canonical.inequalities if not c.penalties)
    message = f"it weighs its experts by what violations cost, and `{open_}` states no penalty"
    fix = f"write `each round, penalty V` after `{open_}`, V in units of the loss, or `using hedged with penalty = V`"
    return Objection(message, fix, unasked=True)


FULL_FEEDBACK = Hypothesis("The loss is revealed as a function.", _full_feedback)
EACH_ROUND = Hypothesis("Constraints that data enters bind in each round.", _each_round)
AVERAGED = Hypothesis("Data can be averaged.", _averaged)
PRICED = Hypothesis("Violations have prices.", _priced)
_BASIC = (
    BOUNDED_DOMAIN,
    CONVEX_LOSS,
    BOUNDED_GRADIENT,
    EACH_ROUND,
    inequalities_convex("Each g_t^n is convex in the decision."),
    inequalities_know("bound", "The constraints are bounded.", "the size"),
    inequalities_know("lipschitz.l2", "The gradients of the constraints are bounded.", "the gradient"),
    FEASIBLE_COMPARATOR,
)


# Settings and the guarantee.


def _sizes(s: Situation) -> Floats:
    """Sizes of the constraints, (N,); 1 for one that is always 0."""
    sizes = needed_bounds(s, "bound")
    return np.where((sizes > 0) & np.isfinite(sizes), sizes, 1.0)


def _settings(s: Situation) -> Mapping[str, Default]:
    stated, least = stated_prices(s.canonical.inequalities), float(_sizes(s).min())
    if stated.any():
        words = "penalty that the model states" if (stated == stated[0]).all() else "largest that the model states"
        penalty = Default(float(stated.max()), words)
    else:
        why = "the tradeoff in ranges of the loss, over the size of a constraint"
        penalty = Default(s.weight * (s.loss_range or 1.0) / least, why)
    cap = Default(f"{LARGE!r} * loss.lipschitz.l2 * domain.diameter.l2 / {least!r}", "largest multiplier as predicted")
    return {"D": Default("domain.diameter.l2", "diameter of the domain"), "penalty": penalty, "Q": cap}


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    diameter, upper = needed(s, "domain.diameter.l2"), s.inequality_bounds("upper")
    sizes = needed_bounds(s, "bound")
    most = sizes if upper is None else np.minimum(sizes, np.maximum(upper, 0.0))
    stated, given = stated_prices(s.canonical.inequalities), settings["penalty"].given

    def prices(horizon: int) -> Floats:
        own = np.full(stated.shape, number(settings, "penalty", horizon))
        return own if given else np.where(stated > 0, stated, own)

    def reach(rounds: Rounds, horizon: int) -> Floats:
        guess, path = number(settings, "D", horizon), path_length(s, horizon)
        return np.asarray((guess + diameter * (diameter + 2 * path) / guess) / 2)

    def slope(rounds: Rounds, horizon: int) -> Floats:
        return np.asarray(needed(s, "loss.lipschitz.l2") + prices(horizon) @ needed_bounds(s, "lipschitz.l2"))

    def spread(rounds: Rounds, horizon: int) -> Floats:
        return np.asarray(needed_range(s) + prices(horizon) @ most)

    own = (
        Quantity(
            "reach", r"(D_s + (D^2 + 2 D V)/D_s)/2", "D where the setting D_s is D and comparators are fixed", reach
        ),
        Quantity("G", "G", "bound of the slope of the loss with its violations at their prices", slope),
        Quantity("M", "M", "range of the loss with its violations at their prices", spread),
        Quantity("K", r"\ln K", f"logarithm of the {EXPERTS} experts", math.log(EXPERTS)),
        ROUNDS,
    )
    regret = "reach * G * sqrt(2 * T) + M * sqrt((4 + K) * T)"
    broken = (
        Quantity("F", "F", "range of the loss", needed_range(s)),
        Quantity("price", r"\min_n p_n", "least price", lambda rounds, T: np.asarray(prices(T).min())),
    )
    measure = s.canonical.measure
    rate = "sqrt(T)" if measure is Measure.STATIC else "T**(1/2 + V_x)"
    note = "regret with violations at their prices: what they cost is in it"
    first = Bound(f"{measure} regret", rate, regret, own, s.loss_range, note=note)
    second = Bound("hard violation", "T", f"({regret} + F * T) / price", (*own, *broken), s.violation_range)
    return Guarantee("AdaHedge (de Rooij et al. 2014) over gradient descent", s.horizon, first, second)


def needed_range(s: Situation) -> float:
    """Range of the loss: the gradient and the diameter, which the hypotheses ask for, give one."""
    assert s.loss_range is not None
    return s.loss_range


HEDGED = Algorithm(
    name="hedged",
    title="weights on rules of practice",
    cite="de Rooij, van Erven, Grunwald & Koolen 2014, AdaHedge",
    rule=Hedged,
    adapts=True,
    gap="gap",
    mixes=True,
    reads=Feedback.FULL,
    requirements=(
        SOME_INEQUALITY,
        INEQUALITIES_ONLY,
        FUNCTIONS_SEEN,
        GRADIENTS_SEEN,
        FULL_FEEDBACK,
        AVERAGED,
        EXACT_STEP,
        PRICED,
    ),
    theorems=(
        Theorem(
            name="regret on the penalised loss",
            measures=frozenset({Measure.STATIC, Measure.DYNAMIC}),
            violation=Violation.HARD,
            hypotheses=_BASIC,
            settings=_settings,
            free=(Free("D", 1 / 16, 1),),
            positive=("D", "penalty", "Q"),
            guarantee=_guarantee,
            rates={"static regret": "sqrt(T)", "dynamic regret": "T**(1/2 + V_x)", "hard violation": "T"},
            checks=constant_settings,
        ),
    ),
    cost=f"{len(SOLVED)} projections onto the domain under predicted constraints",
    cost_rank=5,
    symbols={
        "x": "the decision of each expert",
        "L": "the losses of the experts so far, with violations at their prices",
        "gap": "what mixing has cost so far",
        "S": "sums of the squared slopes of each expert",
        "margin": "margins of the constraints as predicted",
        "error": "largest error of the constraints as predicted",
        "average": "averages of the data",
    },
)
