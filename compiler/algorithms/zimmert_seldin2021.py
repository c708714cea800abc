"""Zimmert & Seldin 2021, "Tsallis-INF: an optimal algorithm for stochastic and adversarial bandits", JMLR 22.

One of K arms is drawn in each round, and its loss is seen:

    x_t = argmin over the simplex of <L_t, u> - (2 / eta_t) sum_i sqrt(u_i),        x_t,i = (eta_t (L_t,i - mu_t))^-2,
    L_{t+1} = L_t + b_t + (l_t - b_t,i) e_i / x_t,i        for the arm i that was drawn, with its loss l_t,

with losses scaled to [0, 1], eta_t = min(1, c / sqrt(t)), and b_t,i = 1/2 for arms with x_t,i >= eta_t^2, else 0: the estimates of
reduced variance, whose mean is the loss of each arm. A rate that falls with the rounds needs no horizon.

Theorem. sum_t E l_t - min_i sum_t E l_t,i <= 2 max(1, sqrt(T) / c) (sqrt(K) - 1) + c sqrt(K T) / 2 + (3/2) c^2 K (1 + ln T).

Proof. With y_t = L_{t+1} - L_t - 1/2 and q = eta sqrt(x_i) y_i > -1, the regret of follow the regularised leader is at most that of the
regulariser, 2 (sqrt(K) - 1) / eta_T, and sum_t sum_i s_i with s_i = max over v >= 0 of y_i (x_i - v) - (sqrt(v) - sqrt(x_i))^2 /
(eta sqrt(x_i)) = sqrt(x_i) q^2 / (eta (1 + q)). Where x_i >= eta^2, y_i is 0 but for the arm that is drawn, |y_i| <= 1 / (2 x_i) for that,
hence q >= -1/2 and 1 / (1 + q) <= 1 + 2 |q|: the mean of s_i is at most eta sqrt(x_i) / 4 + eta^2 / 4. Where x_i < eta^2, y_i >= -1/2 and
q >= -1/2: s_i is at most eta x_i^(3/2) / 2 <= eta^2 / 2 for y_i < 0, and its mean at most eta sqrt(x_i) <= eta^2 for y_i > 0. So the mean
of sum_i s_i is at most eta_t sqrt(K) / 4 + (3/2) K eta_t^2, and sum_t eta_t <= 2 c sqrt(T), sum_t eta_t^2 <= c^2 (1 + ln T).
"""

from __future__ import annotations

from collections.abc import Mapping

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import NO_CONSTRAINTS
from oco.compiler.algorithms.common import ROUNDS, loss_ends
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rounding import rounded
from oco.compiler.lowering.rule import State, array
from oco.compiler.problem.whole_decisions import has_arms
from oco.compiler.theory.settings import Default, Setting, number
from oco.compiler.theory.theorems import (
    Bound,
    Guarantee,
    Hypothesis,
    Objection,
    Quantity,
    Situation,
    Theorem,
    constant_settings,
    fact_is_known,
)
from oco.dsl.magnitudes import TINY
from oco.dsl.statements import Feedback, Measure

NOTE = "in expectation, for data that do not answer the draws"
STEPS, NEAR = 60, 1e-12
"""Newton steps for mu at most, and how near to 1 the sum of the probabilities has to come."""


class TsallisInf:
    """L has the estimated losses of the arms, of which the least is taken off."""

    def init(self, p: Problem, start: Point) -> State:
        return {"L": p.tracer.zeros((p.spec.canonical.size,))}

    def decide(self, p: Problem, state: State) -> Point:
        p.note("probabilities of the arms: x_i = (eta (L_i - mu))^-2, by Newton's method for mu")
        t, L = p.tracer, array(state, "L")
        eta = self._rate(p)

        def of(mu: Value) -> Value:
            return t.name("root", 1.0 / (eta * (L - mu)))

        def over(mu: Value, count: Value) -> Value:
            root = of(mu)
            return t.and_(t.sum(root * root) - 1.0 > NEAR, count < STEPS)

        def closer(mu: Value, count: Value) -> tuple[Value, ...]:
            root = of(mu)
            square = root * root
            return mu - (t.sum(square) - 1.0) / (2.0 * eta * t.sum(square * root)), count + 1

        mu = t.while_(over, closer, (t.min(L) - 1.0 / eta, 0))[0]
        root = of(mu)
        x = root * root
        return Point((t.reshape(x / t.sum(x), p.spec.domains[0].shape),))

    def update(self, p: Problem, state: State) -> State:
        t, x = p.tracer, self.decide(p, state)
        (drawn,) = rounded(p, p.units.outward(x)).blocks
        p.note("estimates of the losses, of reduced variance")
        L, eta, shape = array(state, "L"), self._rate(p), (p.spec.canonical.size,)
        probability, arm = t.reshape(x.blocks[0], shape), t.reshape(drawn, shape)
        loss = (p.loss(p.units.inward(Point((drawn,)))) - p.setting("least")) / p.setting("range")
        middle = t.name("b", t.where(probability >= eta * eta, 0.5, 0.0))
        L = L + middle + arm * (loss - middle) / t.maximum(probability, TINY)
        return {"L": L - t.min(L)}

    def _rate(self, p: Problem) -> Value:
        return p.tracer.name("eta", p.tracer.minimum(1.0, p.setting("c") / p.tracer.sqrt(p.t)))


def _settings(s: Situation) -> Mapping[str, Default]:
    least, most = loss_ends(s)
    return {
        "c": Default("4", "twice Theorem 1's, by measurement"),
        "least": Default(least, "least loss"),
        "range": Default(max(most - least, TINY), "range of the losses"),
    }


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    quantities = (
        Quantity("W", "W", "range of the losses", number(settings, "range", s.horizon or 1)),
        Quantity("K", "K", "number of arms", float(s.canonical.size)),
        Quantity("c", "c", "factor of the rate", number(settings, "c", s.horizon or 1)),
        ROUNDS,
    )
    penalty = "2 * max(1, sqrt(T) / c) * (sqrt(K) - 1)"
    formula = f"W * ({penalty} + c * sqrt(K * T) / 2 + 3 * c**2 * K * (1 + log(T)) / 2)"
    bound = Bound("static regret", "sqrt(d * T)", formula, quantities, s.loss_range, NOTE)
    return Guarantee("Zimmert & Seldin 2021, Theorem 1, with the constants of this module", s.horizon, bound)


def _has_arms(s: Situation) -> Objection | None:
    if has_arms(s.canonical.blocks):
        return None
    return Objection("it draws one of several arms", "write `decision x[n] in simplex rounded`")


ARMS = Hypothesis("An entry of one decision in a simplex is drawn: an arm.", _has_arms)

TSALLIS_INF = Algorithm(
    name="tsallis-inf",
    title="bandits with arms",
    cite="Zimmert & Seldin 2021",
    rule=TsallisInf,
    reads=Feedback.BANDIT,
    reads_draws=True,
    requirements=(ARMS,),
    theorems=(
        Theorem(
            name="Theorem 1",
            measures=frozenset({Measure.STATIC}),
            expected=True,
            hypotheses=(
                NO_CONSTRAINTS,
                fact_is_known("loss.bound", "The losses are bounded.", "the size of the loss"),
            ),
            settings=_settings,
            positive=("c", "range"),
            guarantee=_guarantee,
            rates={"static regret": "sqrt(d * T)"},
            checks=constant_settings,
        ),
    ),
    cost="a few passes over the arms",
    departures=("Rates are eta_t = min(1, c / sqrt(t)) with c = 4; the paper has c = 2 and no limit.",),
    symbols={"L": "the estimated losses of the arms, less the least of them"},
)
