"""AdaHedge (de Rooij et al. 2014) over rules that people write, weighed by the loss with its violations at their prices.

    P_t(x) = f_t(x) + sum_n price_n [g_t^n(x)]_+

Price: what the model states after `penalty`, else the setting, else `weight` times what a unit of violation saves at the slopes that come
(`penalties`). Decision: sum_k w_k x^k, where P_t, convex, is at most the weighted one. Experts, each with AdaGrad's sum S of own slopes:

* gradients on the penalised loss with steps of many sizes, and prices that are cut or raised by a factor r:
  x <- P_X(x - c D / sqrt(2 S) (grad f_t + r sum_n price_n [g_n > 0] grad g_n));
* the next round solved again on predictions s of its data (`predictions`: averages, seasons, regression on contexts; of noise about 0
  none), within reach of the last decision, with a margin m_n on each constraint: x <- argmin over X of f(u; s) + |u - x|^2 sqrt(2 S) /
  (2 c D) + Q sum_n [g_n(u; s) + m_n]_+, with <grad f(x; s), u> in the place of f(u; s) where f or a constraint is not separable, or the
  domain no box, nor one that an affine row cuts, as simplices and budgets are. Reaches c are of all sizes where no margin is learned:
  without constraints, or where f is curved and all of them hold on average; up to AdaGrad's where a curved f is taken by its slope alone.
  The margins follow a quantile q of the errors e = g_t(x) - g(x; s) of what was predicted: m += rate max|e| (1[e > m] - (1 - q))
  (Gibbs & Candes 2021). On what is told of the round, experts go to the minimizer of a linear f at once;
* where kinks of the loss move with the data, as that of unsold stock with demand, the same with the mean of f(u; s_k) over quantiles s_k of
  equal shares around a prediction, and what is known of the round as it is (a sample average: Kleywegt, Shapiro & Homem-de-Mello 2002):
  with kinks c [d - u]_+ + p u the quantile 1 - p / c of the demand, whatever the price p of the round is.

Where the loss is curved through data, as in regression, and nothing else is learned, experts decide at second-order steps with the loss's
own curvature (`curvature_steps`), and begin with the weight: the others, with 1e-8 each, count once they have been better.

Where data pick entries of arrays they have no average: the experts are gradients then, of more steps and prices.

Weights: AdaHedge's (`de_rooij2014`) of all losses P_t(x^k) so far, and of losses of which a hundredth is forgotten each round, for early
rounds are no judges of later ones; AdaHedge weighs the two by what they paid. Where constraints of a round are known before its decision,
as fixed ones always are, each expert decides within them: x^k <- P_{X_t}(x^k), and so does their mean, X_t being convex.

Where distributions of the constraints' data are stated, rounds drawn from them are played before the first one (`rehearsal`): the
experts begin where these led with the margins that they learned, and where all data are stated with S too.

A constraint or equality on average has a price of its own in the place of a penalty (`dual_prices`), P_t(x) = f_t(x) + lambda_t g_t(x)
+ nu_t h_t(x) + ...; as the price follows what was decided, nothing is promised then.

Theorem. The gradient expert with c = r = 1 is gradient descent on P_t with AdaGrad's steps, and with comparators u_t of path length V,
sum P_t(x_t) - P_t(u_t) <= (D_s + (D^2 + 2 D V)/D_s)/2 sqrt(2 S) for steps D_s / sqrt(2 S): the inequality of gradient descent summed,
|x_t+1 - u_t|^2 being at least |x_t+1 - u_t+1|^2 - 2 D |u_t+1 - u_t|. With S <= G^2 T, G a bound of the slope of P_t, M the range of P_t,
and the price of the weights, 2 Delta_T <= M sqrt((4 + ln K) T) among K experts (for ln K that of one over the least weight at first) and
M sqrt((4 + ln 2) T) between the two weightings (where experts are trusted, the first root is (1 + ln K / S) / 2 sqrt((4 + S) T), see
`weighting`),

    sum P_t(x_t) - P_t(u_t) <= R = (D_s + (D^2 + 2 D V)/D_s)/2 G sqrt(2 T) + M (sqrt((4 + ln K) T) + sqrt((4 + ln 2) T)).

Where exp(-theta f_t) is known to be concave over a simplex, experts decide next to points that move by the loss alone (`loss_steps`),
and without constraints their weights cost no more than (ln K + 2 ln 2) / theta + 2 M in the place of the last term: ln K / theta of the
weighting with a rate of theta at most, beside the best expert, and 2 Delta_T <= 2 (ln 2 / theta + M) between the two weightings. Where
nothing predicts the data these are all experts but the gradients.

Rates count a Delta as e F at least, e = 1e-4 and F^2 = sum_t s_t^2, s_t the range of the losses of experts that begin with weight and a
hundredth of their size, so that rounding does not choose between those that lost alike. The price is then Delta + max(Delta, e F), within
the same bound: 2 e F is less than sqrt((4 + ln 2) sum s_t^2) wherever losses are no more than 10^6 times as large as their range.

Where the loss is about the decision before, P_t(x, y), experts are judged by P_t(x^k_t, x^k_{t-1}), and the theorem is of P_t(x, x): with c
the most that a move costs, what the weighted decision pays, what experts are judged by and what gradient descent pays are c apart each.

Where rounds leave something in stores, as in a battery, P_t is less the value of what is left for the rounds to come (`stored_value`), in
the steps of the experts and in what they are judged by; as that is an estimate, nothing is promised then.

Where feedback comes d rounds late, round t is that of one of d + 1 learners in turn that learn together (`learning_together`): each moves
its own experts, with sums S of its own rounds, which are gradient descents in turn (Joulani, Gyorgy & Szepesvari 2013, Algorithm 1);
weights, margins, averages and seasons are of all rounds. The first term is the sum of those of the learners, at most sqrt(d + 1) times as
large, and weights as they were d rounds before cost M (sqrt((4 + ln K) R_T) + sqrt((4 + ln 2) R_T)) with R_T = sum_t (1 + 2 min(t - 1, d))
(`de_rooij2014`). The guarantee is written as a sum over learners, of n_i rounds each, with sqrt(r n_i), r = (2 d + 1) / (d + 1), for
sqrt(R_T). That is no less: for T <= d + 1, R_T = T^2 and sum_i sqrt(n_i) = T; beyond, R_T = (2 d + 1) T - d (d + 1), and as n_i is n or
n + 1 with n >= 1, (sum_i sqrt(n_i))^2 >= (d + 1) T - (d + 1)^2 (sqrt(n + 1) - sqrt(n))^2 / 4 (Lagrange's identity), whose last term, times
r, is below d (d + 1).

With B rounds rehearsed S_0 <= G^2 B, and T + B stands for T in the first term. For u_t that satisfy each round's constraints P_t(u_t) =
f_t(u_t). So the regret is at most R, less what is paid for violations; and with F the range of the loss, the violations are at most
(R + F T) / min_n price_n together. A projection onto X_t moves no expert away from u_t in X_t.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import (
    BOUNDED_DOMAIN,
    BOUNDED_GRADIENT,
    CONVEX_LOSS,
    GRADIENTS_SEEN,
    NO_CONSTRAINTS,
)
from oco.compiler.algorithms.common import (
    EXACT_STEP,
    FEASIBLE_COMPARATOR,
    FUNCTIONS_SEEN,
    ROUNDS,
    SOME_INEQUALITY,
)
from oco.compiler.algorithms.context_regression import SYMBOLS as REGRESSED
from oco.compiler.algorithms.curvature_steps import SYMBOLS as CURVED
from oco.compiler.algorithms.dual_prices import averaged
from oco.compiler.algorithms.error_quantiles import SYMBOLS as SPREAD
from oco.compiler.algorithms.experts import expert_count, is_informed
from oco.compiler.algorithms.hedged_rule import LARGE, LAST, Hedged
from oco.compiler.algorithms.loss_steps import CURVATURE, over_simplex
from oco.compiler.algorithms.penalties import FARTHEST
from oco.compiler.algorithms.predictions import SYMBOLS as FORETOLD
from oco.compiler.algorithms.profiles import season_measured
from oco.compiler.algorithms.rehearsal import is_whole, rehearsed
from oco.compiler.algorithms.rounds_ahead import AHEAD, rounds_ahead, stores_valued
from oco.compiler.algorithms.value_left import SYMBOLS as VALUED
from oco.compiler.algorithms.weighting import PLAYED, RATES, gap_to_best, price_of_weights, size_of_experts
from oco.compiler.lowering.predicted_round import positions
from oco.compiler.theory.moves import path_length
from oco.compiler.theory.objective import stated_prices
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import Default, Setting, count, number
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
    UnknownFact,
    Violation,
    constant_settings,
    inequalities_convex,
    inequalities_have,
    needed,
    needed_bounds,
)
from oco.dsl.statements import Feedback, Measure

SLOPES = 100.0
"""Loss that a unit of violation costs at the tradeoff 1, in what it saves: broken rounds are about one in as many."""
TOGETHER = (
    *("L", "gap", "L_of", "gap_of", "spread", "margin", "error", "F", "G", "lambda", "squares", "used", "F_lambda"),
    *("G_lambda", "average", "visits", "profile", "hours", "week", "level", "shift", "usual", "off", "z", "C_zz"),
    *("C_sz", "moments", "off_level", "off_foretold", "foretold", "signs", "cost", "rest", "unsure", "phases"),
    "missed",
)
"""State that learners in turn have in common under delays. Decisions, their slopes, points and predictions are of each alone."""

# Hypotheses.


def _full_feedback(s: Situation) -> Objection | None:
    message = f"{s.canonical.feedback} feedback does not give the loss as a function, and it needs it for the decisions of its experts"
    return None if s.canonical.feedback is Feedback.FULL else Objection(message, "write `feedback full`")


def _is_curved(s: Situation) -> bool:
    """True where the loss is known to be exp-concave and the domain a simplex."""
    return over_simplex(s.canonical, bool(s.number("loss.exp_concavity")))


FULL_FEEDBACK = Hypothesis("The loss is revealed as a function.", _full_feedback)
_LOSS = (BOUNDED_DOMAIN, CONVEX_LOSS, BOUNDED_GRADIENT)
_BASIC = (
    SOME_INEQUALITY,
    *_LOSS,
    inequalities_convex("Each g_t^n is convex in the decision."),
    inequalities_have("bound", "The constraints are bounded.", "the size"),
    inequalities_have("lipschitz.l2", "The gradients of the constraints are bounded.", "the gradient"),
    FEASIBLE_COMPARATOR,
)


# Settings and the guarantee.


def _least(sizes: Floats) -> float:
    """Least size of a constraint; one that is always 0 counts as 1."""
    return float(np.where((sizes > 0) & np.isfinite(sizes), sizes, 1.0).min())


def _settings(s: Situation) -> Mapping[str, Default]:
    """Settings; without constraints there are no prices."""
    own = {"D": Default("domain.diameter.l2", "diameter of the domain"), "season": season_measured(s, together=True)}
    own |= rounds_ahead(s)
    if _is_curved(s):
        own[CURVATURE] = Default(
            "loss.exp_concavity", "exp(-theta f) is concave: the largest rate of weights without a price"
        )
    if not s.constraints + s.equalities:
        return own
    if (sizes := s.constraint_scales) is None:
        raise UnknownFact("constraints.*.bound")
    slopes = f"loss.lipschitz.l2 * domain.diameter.l2 / {_least(sizes)!r}"
    cap = {"Q": Default(f"{LARGE!r} * {slopes}", "largest multiplier as predicted")}
    if not s.constraints:
        return {**cap, **own}
    stated, least = stated_prices(s.canonical.inequalities), _least(needed_bounds(s, "bound"))
    if stated.any():
        words = "penalty that the model states" if (stated == stated[0]).all() else "largest that the model states"
        penalty = Default(float(stated.max()), words)
    else:
        why = "the tradeoff in ranges of the loss, over the size of a constraint"
        penalty = Default(s.weight * (s.loss_range or 1.0) / least, why)
    weight = Default(
        SLOPES * s.weight,
        f"the tradeoff, {SLOPES:g} times the loss that a unit of violation saves, by the slopes that come",
    )
    more = {} if stated.all() else {"weight": weight}
    return {"penalty": penalty, **more, **cap, **own}


def _checks(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    """Errors in the settings: a theta above that of the loss is not what the theorem is about."""
    errors, most = constant_settings(s, settings), s.number("loss.exp_concavity") or 0.0
    if not errors and CURVATURE in settings and number(settings, CURVATURE, s.horizon or 1) > most * (1 + 1e-12):
        errors.append("theta must be at most loss.exp_concavity")
    return errors


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    diameter, upper = needed(s, "domain.diameter.l2"), s.inequality_bounds("upper")
    sizes = needed_bounds(s, "bound")
    most = sizes if upper is None else np.minimum(sizes, np.maximum(upper, 0.0))
    stated = stated_prices(s.canonical.inequalities)
    given = stated.size > 0 and settings["penalty"].given
    moves = _most_of_a_move(s)
    curved = _is_curved(s)
    experts = expert_count(s.canonical, count(settings, "season", s.horizon or 1), curved)

    def prices(horizon: int, least: bool = False) -> Floats:
        own = np.full(stated.shape, number(settings, "penalty", horizon) if stated.size else 0.0)
        if given:
            return own
        return np.where(stated > 0, stated, own / FARTHEST if least else own * FARTHEST)

    def reach(rounds: Rounds, horizon: int) -> Floats:
        guess, path = number(settings, "D", horizon), path_length(s, horizon)
        return np.asarray((guess + diameter * (diameter + 2 * path) / guess) / 2 if diameter else 0.0)

    def slope(rounds: Rounds, horizon: int) -> Floats:
        return np.asarray(needed(s, "loss.lipschitz.l2") + prices(horizon) @ needed_bounds(s, "lipschitz.l2"))

    def spread(rounds: Rounds, horizon: int) -> Floats:
        return np.asarray(needed_range(s) + prices(horizon) @ most + moves)

    own: tuple[Quantity, ...] = (
        Quantity(
            "reach", r"(D_s + (D^2 + 2 D V)/D_s)/2", "D where the setting D_s is D and comparators are fixed", reach
        ),
        Quantity("G", "G", "bound of the slope of the loss with its violations at their prices", slope),
        Quantity("M", "M", "range of the loss with its violations at their prices", spread),
        size_of_experts(s, experts, curved),
        ROUNDS,
    )
    before = _rounds_rehearsed(s)
    own += (Quantity("B", "B", "rounds rehearsed before the first one", float(before)),) if before else ()
    slopes = "reach * G * sqrt(2 * (T + B))" if before else "reach * G * sqrt(2 * T)"
    more, price = price_of_weights(s, settings, experts, curved and not stated.size and not moves)
    own += more
    regret = f"{slopes} + {price}"
    if moves:
        own += (Quantity("c", "c", "most that a move costs", moves),)
        regret = f"{regret} + 2 * c * T"
    broken = (
        Quantity("F", "F", "range of the loss", needed_range(s)),
        Quantity("price", r"\min_n p_n", "least price", lambda rounds, T: np.asarray(prices(T, least=True).min())),
    )
    measure = s.canonical.measure
    rate = "sqrt(T)" if measure is Measure.STATIC else "T**(1/2 + V_x)"
    note = "regret with violations at their prices: what they cost is in it"
    title = "AdaHedge (de Rooij et al. 2014) over gradient descent"
    if not stated.size:
        return Guarantee(title, s.horizon, Bound(f"{measure} regret", rate, regret, own, s.loss_range))
    first = Bound(f"{measure} regret", rate, regret, own, s.loss_range, note=note)
    second = Bound("hard violation", "T", f"({regret} + F * T) / price", (*own, *broken), s.violation_range)
    return Guarantee(title, s.horizon, first, second)


def _rounds_rehearsed(s: Situation) -> int:
    """Number of the rehearsed rounds whose slopes count."""
    whole = is_whole(s.canonical) and not positions(s.canonical)
    return len(next(iter(rehearsed(s.canonical).values()), ())) if whole else 0


def _withholds(s: Situation, settings: Mapping[str, Setting]) -> str:
    """Reason why nothing is promised although the hypotheses hold; "" where something is."""
    c = s.canonical
    loose = [*(c.constraint_names[n] for n in np.flatnonzero(averaged(c))), *c.equality_names]
    priced = f"the price of `{loose[0]}`, which binds on average, follows what was decided" if loose else ""
    return priced or stores_valued(s, settings)


def _most_of_a_move(s: Situation) -> float:
    """Bound of what a move costs; 0 where none does, or none is known (the guarantee is no number then)."""
    slope, diameter = s.number("loss.moves.lipschitz.l2"), s.number("domain.diameter.l2")
    return 0.0 if slope is None or diameter is None else slope * diameter


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
    gap=gap_to_best,
    mixes=True,
    reads=Feedback.FULL,
    requirements=(FUNCTIONS_SEEN, GRADIENTS_SEEN, FULL_FEEDBACK, EXACT_STEP),
    theorems=(
        Theorem(
            name="regret on the penalised loss",
            moves=True,
            measures=frozenset({Measure.STATIC, Measure.DYNAMIC}),
            violation=Violation.HARD,
            hypotheses=_BASIC,
            settings=_settings,
            free=(Free("D", 1 / 16, 1),),
            positive=("D", "penalty", "weight", "Q", "season", "theta", AHEAD),
            guarantee=_guarantee,
            withholds=_withholds,
            rates={"static regret": "sqrt(T)", "dynamic regret": "T**(1/2 + V_x)", "hard violation": "T"},
            checks=_checks,
        ),
        Theorem(
            name="regret without constraints",
            moves=True,
            measures=frozenset({Measure.STATIC, Measure.DYNAMIC}),
            hypotheses=(NO_CONSTRAINTS, *_LOSS),
            settings=_settings,
            withholds=stores_valued,
            free=(Free("D", 1 / 16, 1),),
            positive=("D", "penalty", "weight", "Q", "season", "theta", AHEAD),
            guarantee=_guarantee,
            rates={"static regret": "sqrt(T)", "dynamic regret": "T**(1/2 + V_x)"},
            checks=_checks,
        ),
    ),
    prepares=is_informed,
    keeps_fixed=True,
    hands={LAST: "x"},
    shared=TOGETHER,
    predicts=True,
    values_left=True,
    balances=True,
    cost="a projection onto the domain under predicted constraints for each of some 20 to 50 experts",
    cost_rank=5,
    symbols={
        "x": "the decision of each expert",
        "L": "losses of the experts with violations at their prices: all of them, and those that are not forgotten",
        PLAYED: "weights of the experts with which the round was decided: of each weighting, and of the decision",
        RATES: "rates of these weights, and of the weights of the weightings",
        "gap": "what mixing has cost so far",
        "L_of": "what each of these weightings of the experts has paid",
        "gap_of": "what mixing them has cost so far",
        "spread": "F^2, sum of the squared ranges of the experts' losses",
        "x_last": "the decision of each expert in the round before",
        "S": "sums of the squared slopes of each expert",
        "F": "sum of the squared slopes of the loss, which prices follow",
        "G": "sums of the squared slopes of the constraints",
        "lambda": "prices of the constraints on average, those of equalities last, of either sign",
        "squares": "sums of their squares at the decisions",
        "used": "sums of the constraints at the decisions",
        "F_lambda": "sum of the squared slopes of the loss at the decisions, for the size of these prices",
        "G_lambda": "sums of the squared slopes of the constraints there",
        "y": "points that move by the loss alone: the start, online Newton steps, exponentiated gradient steps",
        "A": "sum of the outer products of their gradients",
        "b": "sum of the gradients of the Newton steps, weighted",
        "margin": "margins of the constraints as predicted",
        "error": "largest error of the constraints as predicted",
        "predicted": "predictions of the data, a row for each of the ways",
        "average": "averages of the data so far",
        "visits": "how often each phase of the season came",
        "profile": "averages of the rounds of each phase of the season",
        "hours": "averages of the rounds of each phase of the day, where the season is a week",
        "week": "sums of what each day of the week was above the average of all days, and of the scales",
        "level": "what the last rounds were above the weekly predictions",
        **CURVED,
        **FORETOLD,
        **REGRESSED,
        **SPREAD,
        **VALUED,
    },
)
