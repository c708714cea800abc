"""Wang, Wan & Zhang 2025, "Revisiting projection-free online learning with time-varying constraints": Algorithms 1 and 2.

Constraints that an adversary changes each round, hard violation, one linear minimisation a round. Several constraints are one:
g_t = max_n g_t^n.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oco.compiler.algorithms.base import Algorithm, State, array, point
from oco.compiler.algorithms.classic import BOUNDED_DOMAIN, BOUNDED_GRADIENT, CONVEX_LOSS, GRADIENTS_SEEN
from oco.compiler.algorithms.wang_yan_liu2025 import FEASIBLE_COMPARATOR, INEQUALITIES_ONLY, comparator_conditions
from oco.compiler.ir.value import Value
from oco.compiler.points import Point
from oco.compiler.problem import Problem
from oco.compiler.settings import Default, Setting, number
from oco.compiler.theorems import (
    Bound,
    Guarantee,
    Hypothesis,
    Objection,
    Quantity,
    Situation,
    Theorem,
    Violation,
    horizon_known,
    inequalities_convex,
    inequalities_know,
    needed,
    scheduled,
)
from oco.dsl.model import Measure


def worst_violation(p: Problem, g: Value) -> tuple[Value, Value]:
    """g^+ = [max_n g_n]_+ and the weights of the rows in its subgradient: the first largest, none where no constraint is broken."""
    t = p.tracer
    if p.constraint_count == 1:
        return t.name("g_plus", t.maximum(g[0], 0.0)), t.to_float(g > 0.0)
    worst = t.max(g)
    first = t.eq(t.iota(p.constraint_count), t.argmax(g))
    return t.name("g_plus", t.maximum(worst, 0.0)), t.to_float(t.and_(first, worst > 0.0))


class OnlineFrankWolfe:
    """Algorithm 1. S is the sum in (10) divided by the guess G_k = guess 2^k, so that exponentials of the queue stay in log space."""

    def init(self, p: Problem, start: Point) -> State:
        t = p.tracer
        return {"x": start, "x_s": start, "S": 0.0 * start, "Q": t.lift(0.0), "k": t.lift(0.0), "s": t.lift(1.0)}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x, x_s, S = p.tracer, point(state, "x"), point(state, "x_s"), point(state, "S")
        beta, gamma, G, D = (p.setting(n) for n in ("beta", "gamma", "G", "D"))
        rate, guess = p.setting("rate"), p.setting("guess")
        p.note("(4): the violation so far")
        g_plus, weights = worst_violation(p, p.constraints(x))
        Q = t.name("Q", array(state, "Q") + g_plus)
        p.note(
            "lines 5 to 7: the least doubling with G_k >= beta G (gamma + Phi'(beta Q)), where Phi'(x) = rate exp(rate x)"
        )
        growth = rate * beta * Q
        wanted = t.log(beta * G) + growth + t.log(gamma * t.exp(-growth) + rate)
        k = t.name("k", t.maximum(array(state, "k"), -t.floor((t.log(guess) - wanted) / np.log(2.0))))
        log_G = t.name("log_G", t.log(guess) + k * np.log(2.0))
        p.note("(6): the gradient of the surrogate loss, in units of G_k")
        slope = beta * gamma * t.exp(-log_G) * p.gradient(x)
        slope = slope + p.constraint_combination(x, beta * rate * t.exp(growth - log_G) * weights)
        anew = k > array(state, "k")
        s = t.name("s", t.where(anew, p.t, array(state, "s")))
        x_s = x.map(lambda a, b: t.where(anew, a, b), x_s)
        S = (S.map(lambda a: t.where(anew, t.zeros(a.shape), a)) + slope).named(t, "S")
        p.note("(9) to (11): grad F(x) = eta sum of gradients + 2 (x - x_s), eta = D / (2 G_k T^(3/4))")
        eta = D / (2.0 * float(p.task.horizon or 1) ** 0.75)
        v = p.domain.lmo(eta * S + 2.0 * (x - x_s)).named(t, "v")
        p.note("(12); erratum 12: it exceeds 1 in three rounds and would leave the domain")
        sigma = t.name("sigma", t.minimum(2.0 / t.sqrt(p.t - s + 1.0), 1.0))
        return {"x": x + sigma * (v - x), "x_s": x_s, "S": S, "Q": Q, "k": k, "s": s}


# Hypotheses.


def _some_constraint(s: Situation) -> Objection | None:
    return (
        None if s.constraints else Objection("the model has no constraints: without them it is online Frank-Wolfe, ofw")
    )


LIPSCHITZ_CONSTRAINTS = inequalities_know("lipschitz.l2", "Assumption 2: f_t and g_t are G-Lipschitz.", "the gradient")

BASIC = (
    Hypothesis("There are constraints g_t(x) <= 0.", _some_constraint),
    INEQUALITIES_ONLY,
    horizon_known("The number of rounds T is known."),
    BOUNDED_DOMAIN,
    CONVEX_LOSS,
    BOUNDED_GRADIENT,
    inequalities_convex("Each g_t^n is convex in the decision."),
    LIPSCHITZ_CONSTRAINTS,
    FEASIBLE_COMPARATOR,
)


# Settings and guarantees.


def largest_slope(s: Situation) -> float:
    """G: a Lipschitz constant of the loss and of every constraint."""
    slopes = s.inequality_bounds("lipschitz.l2")
    assert slopes is not None
    return float(max(needed(s, "loss.lipschitz.l2"), *slopes))


def _convex_settings(s: Situation) -> Mapping[str, Default]:
    return {
        "G": Default(largest_slope(s), "Lipschitz constant of losses and constraints (Assumption 2)"),
        "D": Default("domain.diameter.l2", "diameter of the domain (Assumption 1)"),
        "beta": Default("1 / (64 * G * D)", "1/(64 G D) (Theorem 1)"),
        "gamma": Default(1, "1 (Theorem 1)"),
        "guess": Default(1, "1 (Algorithm 1, line 1)"),
        "rate": Default("1 / (2 * T**(3/4))", "1/(2 T^(3/4)) (Theorem 1)"),
    }


CONVEX_REGRET = "64*G*D*T**(3/4) + (1 + 32*D*max(guess - 2*beta*G*gamma, 0)*T**(3/4)) / (gamma*beta)"
CONVEX_VIOLATION = (
    "N/(rate*beta) * log((1 + 64*beta*gamma*G*D*T**(3/4) + 32*D*max(guess - 2*beta*G*gamma, 0)*T**(3/4)"
    " + gamma*beta*G*D*n) / (1 - 64*beta*G*D*rate*T**(3/4)))"
)


def _convex_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """Theorem 1 before its settings are put in.

    Its proof has G_K <= 2 beta G (gamma + Phi'(beta Q_T)) from the last doubling; where the first guess was never doubled G_K is that
    guess, which leaves the term with max(guess - 2 beta G gamma, 0).
    """
    letters = {"gamma": r"\gamma", "beta": r"\beta", "rate": r"\lambda", "guess": r"\tilde G_1", "G": "G", "D": "D"}
    quantities = (
        *(Quantity(n, latex, f"the setting {n}", scheduled(settings, n)) for n, latex in letters.items()),
        Quantity("N", "N", "number of constraints", float(s.constraints)),
        Quantity("T", "T", "horizon", lambda rounds, T: np.asarray(float(max(rounds, T)))),
        Quantity("n", "n", "rounds", lambda rounds, T: np.arange(1.0, rounds + 1)),
    )
    regret = Bound("static regret", "T**(3/4)", CONVEX_REGRET, quantities, s.loss_range)
    violation = Bound("hard violation", "T**(3/4) * log(T)", CONVEX_VIOLATION, quantities, _size(s))
    return Guarantee(
        "Wang, Wan & Zhang 2025, Theorem 1", s.horizon, regret, violation, conditions=comparator_conditions(s)
    )


def _size(s: Situation) -> float | None:
    """What all constraints together can be broken by in one round."""
    sizes = s.inequality_bounds("bound")
    return None if sizes is None else float(sizes.sum())


def _convex_settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    T = s.horizon or 1
    value = {n: number(settings, n, T) for n in settings}
    found = [f"{n} must be positive" for n, v in value.items() if not v > 0]
    found += [] if value["G"] >= largest_slope(s) * (1 - 1e-12) else ["G must bound the gradients"]
    found += [] if value["D"] >= needed(s, "domain.diameter.l2") * (1 - 1e-12) else ["D must bound the diameter"]
    weight = 64 * value["beta"] * value["G"] * value["D"] * value["rate"] * T**0.75
    return found + ([] if weight < 1 else ["beta * rate must be less than 1 / (64 G D T^(3/4))"])


OFW_TVC = Algorithm(
    name="ofw-tvc",
    title="online Frank-Wolfe with time-varying constraints",
    cite="Wang, Wan & Zhang 2025, Algorithm 1",
    rule=OnlineFrankWolfe,
    theorems=(
        Theorem(
            name="Theorem 1",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.HARD,
            hypotheses=(*BASIC, GRADIENTS_SEEN),
            settings=_convex_settings,
            guarantee=_convex_guarantee,
            rates={"static regret": "T**(3/4)", "hard violation": "T**(3/4) * log(T)"},
            checks=_convex_settings_hold,
        ),
    ),
    cost="one linear minimisation",
    symbols={
        "x": "the decision of this round",
        "x_s": "the decision of round s",
        "S": "sum of the surrogate losses' gradients since round s, divided by the guess of their bound",
        "Q": "violation of the worst constraint, summed over the rounds",
        "k": "how often the guess was doubled",
        "s": "first round with this guess",
    },
)
