"""Wang, Wan & Zhang 2025, "Revisiting projection-free online learning with time-varying constraints": Algorithms 1 and 2.

Constraints that an adversary changes each round, hard violation, one linear minimisation a round. Several constraints are one:
g_t = max_n g_t^n.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import (
    BOUNDED_DOMAIN,
    BOUNDED_GRADIENT,
    CONVEX_LOSS,
    GRADIENTS_SEEN,
    STRONGLY_CONVEX,
)
from oco.compiler.algorithms.common import FEASIBLE_COMPARATOR, nothing_to_learn
from oco.compiler.algorithms.wang_yan_liu2025 import INEQUALITIES_ONLY, comparator_remarks
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, select
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, point
from oco.compiler.theory.settings import Default, Setting, number
from oco.compiler.theory.theorems import (
    Bound,
    Free,
    Guarantee,
    Hypothesis,
    Objection,
    Quantity,
    Situation,
    Theorem,
    Violation,
    constant_settings,
    horizon_known,
    inequalities_convex,
    inequalities_have,
    needed,
    needed_bounds,
    scheduled,
)
from oco.dsl.settings import WORD_SETTINGS
from oco.dsl.statements import Feedback, Measure


class ConstrainedFrankWolfe:
    """Algorithm 1. S is the sum in (10) in units of the guess G_k = guess 2^k, so that exponentials of the queue stay in log space."""

    def init(self, p: Problem, start: Point) -> State:
        t = p.tracer
        none = p.no_gradient(start)
        return {"x": start, "x_s": start, "S": none, "Q": t.lift(0.0), "k": t.lift(0.0), "s": t.lift(1.0)}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x = p.tracer, point(state, "x")
        g, slope = p.worst_constraint(x)
        p.note("(4): the violation so far")
        Q = t.name("Q", array(state, "Q") + t.maximum(g, 0.0))
        k = doublings(p, Q, array(state, "k"))
        p.note("(6): the gradient of the surrogate loss, in units of G_k")
        of_loss, of_constraint = surrogate_weights(p, Q, k)
        slope = of_loss * p.gradient(x) + t.where(g > 0.0, of_constraint, 0.0) * slope
        p.note("a doubled guess begins anew in this round s")
        anew = t.name("anew", k > array(state, "k"))
        s = t.name("s", t.where(anew, p.t, array(state, "s")))
        x_s = select(t, anew, x, point(state, "x_s"))
        S = (select(t, anew, p.no_gradient(x), point(state, "S")) + slope).named(t, "S")
        p.note("(9) to (11): F(x) = eta <sum of gradients, x> + |x - x_s|^2 with eta = D / (2 G_k T^(3/4))")
        eta = p.setting("D") / (2.0 * p.horizon**0.75)
        v = p.domain.lmo(eta * S + 2.0 * (x - x_s)).named(t, "v")
        p.note("(12), (13); erratum 12: the printed step exceeds 1 in three rounds and would leave the domain")
        sigma = t.name("sigma", t.minimum(2.0 / t.sqrt(p.t - s + 1.0), 1.0))
        return {"x": x + sigma * (v - x), "x_s": x_s, "S": S, "Q": Q, "k": k, "s": s}


def doublings(p: Problem, Q: Value, k: Value) -> Value:
    """Lines 5 to 7 at once: the least k, not less than before, with guess 2^k >= beta G (gamma + Phi'(beta Q))."""
    t, beta, gamma, rate, guess = p.tracer, *(p.setting(n) for n in ("beta", "gamma", "rate", "guess"))
    p.note(
        "lines 5 to 7: the guess G_k = guess 2^k of the gradients' bound (8), Phi'(x) = rate exp(rate x), in log space"
    )
    growth = rate * beta * Q
    log_bound = growth + t.log(beta * p.setting("G") * (gamma * t.exp(-growth) + rate))
    return t.name("k", t.maximum(k, -t.floor((t.log(guess) - log_bound) / math.log(2.0))))


def surrogate_weights(p: Problem, Q: Value, k: Value) -> tuple[Value, Value]:
    """Weights of the loss and the worst constraint in the surrogate loss (6), gamma beta and Phi'(beta Q) beta, in units of guess 2^k."""
    t, beta, rate = p.tracer, p.setting("beta"), p.setting("rate")
    log_G = t.name("log_G", t.log(p.setting("guess")) + k * math.log(2.0))
    return beta * p.setting("gamma") * t.exp(-log_G), beta * rate * t.exp(rate * beta * Q - log_G)


class StronglyConvexFrankWolfe:
    """Algorithm 2. S and X are the sums of the gradients and of the decisions in (14)."""

    def init(self, p: Problem, start: Point) -> State:
        return {"x": start, "S": p.no_gradient(start), "X": 0.0 * start, "Q": p.tracer.lift(0.0)}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x, beta, gamma = p.tracer, point(state, "x"), p.setting("beta"), p.setting("gamma")
        g, slope = p.worst_constraint(x)
        p.note("(4), (6): the violation so far and the gradient of the surrogate loss, Phi'(x) = 2 x + 1")
        Q = t.name("Q", array(state, "Q") + t.maximum(g, 0.0))
        of_constraint = (2.0 * beta * Q + 1.0) * beta
        slope = gamma * beta * p.gradient(x) + t.where(g > 0.0, of_constraint, 0.0) * slope
        S, X = (point(state, "S") + slope).named(t, "S"), (point(state, "X") + x).named(t, "X")
        p.note("(14), (15): F(x) = <S, x> + C_1 sum_tau |x - x_tau|^2")
        C_1 = t.name("C_1", gamma * beta * p.setting("alpha_f") / 2.0)
        rounds = p.played
        slope_F = (S + 2.0 * C_1 * (rounds * x - X)).named(t, "slope_F")
        d = (p.domain.lmo(slope_F) - x).named(t, "d")
        p.note("(16), (17): the exact step; erratum 12: (17) prints the step of (12)")
        sigma = exact_step(p, slope_F, d, C_1 * rounds)
        return {"x": x + sigma * d, "S": S, "X": X, "Q": Q}


def exact_step(p: Problem, slope: Point, d: Point, curvature: Value) -> Value:
    """argmin over [0, 1] of sigma <slope, d> + curvature sigma^2 |d|^2."""
    t = p.tracer
    smoothness = 2.0 * curvature * d.squared_norm()
    full = -slope.dot(d) / t.where(smoothness > 0.0, smoothness, 1.0)
    return t.name("sigma", t.minimum(t.maximum(full, 0.0), 1.0))


# Hypotheses.


def _some_constraint(s: Situation) -> Objection | None:
    if s.constraints or s.equalities:
        return None
    return Objection(f"{nothing_to_learn(s)}: without them it is online Frank-Wolfe", "write `using ofw`")


def _something_to_learn(s: Situation) -> Objection | None:
    slopes = s.inequality_bounds("lipschitz.l2")
    if slopes is None or s.number("loss.lipschitz.l2") is None or s.number("domain.diameter.l2") is None:
        return None
    if largest_slope(s) > 0 and needed(s, "domain.diameter.l2") > 0:
        return None
    return Objection(
        "no decision is better than another: the domain is a point, or loss and constraints do not depend on it",
        "let the loss or a constraint depend on the decision",
    )


LIPSCHITZ_CONSTRAINTS = inequalities_have("lipschitz.l2", "Assumption 2: f_t and g_t are G-Lipschitz.", "the gradient")

SOMETHING_TO_LEARN = Hypothesis("G > 0 and D > 0.", _something_to_learn, ("loss.lipschitz.l2", "domain.diameter.l2"))

HORIZON = horizon_known("The number of rounds T is known.")

BASIC = (
    Hypothesis("There are constraints g_t(x) <= 0.", _some_constraint),
    INEQUALITIES_ONLY,
    BOUNDED_DOMAIN,
    CONVEX_LOSS,
    BOUNDED_GRADIENT,
    inequalities_convex("Each g_t^n is convex in the decision."),
    LIPSCHITZ_CONSTRAINTS,
    FEASIBLE_COMPARATOR,
    HORIZON,
)


# Settings.


def largest_slope(s: Situation) -> float:
    """G: a Lipschitz constant of the loss and of every constraint."""
    return float(max([needed(s, "loss.lipschitz.l2"), *needed_bounds(s, "lipschitz.l2")]))


def constants(s: Situation) -> dict[str, Default]:
    """G and D; 1, which bounds them too, where all decisions are alike."""
    point = needed(s, "domain.diameter.l2") == 0
    return {
        "G": Default(largest_slope(s) or 1, "Lipschitz constant of losses and constraints (Assumption 2)"),
        "D": Default(1 if point else "domain.diameter.l2", "diameter of the domain (Assumption 1)"),
    }


def _convex_settings(s: Situation) -> Mapping[str, Default]:
    return constants(s) | {
        "beta": Default("1 / (64 * G * D)", "1/(64 G D) (Theorem 1)"),
        "gamma": Default(1, "1 (Theorem 1)"),
        "guess": Default(1, "1 (Algorithm 1, line 1)"),
        "rate": Default("1 / (2 * T**(3/4))", "of Phi(x) = exp(x / (2 T^(3/4))) - 1 (Theorem 1)"),
    }


def _strong_settings(s: Situation) -> Mapping[str, Default]:
    # Erratum 14: Theorem 2 prints beta = 1 / (G D T^(2/3)), for which its proof shows nothing; (40) is what the proof uses.
    G = repr(largest_slope(s))
    return {
        "alpha_f": Default("loss.strong_convexity.l2", "modulus of strong convexity"),
        "gamma": Default(f"{G} / ({G} + alpha_f * domain.diameter.l2)", "G/(G + alpha_f D) (Theorem 2)"),
        "beta": Default(f"gamma * alpha_f / (500 * {G}**2 * T**(2/3))", "gamma alpha_f/(500 G^2 T^(2/3)) ((40))"),
    }


def settings_bound(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    """Check what the proofs require of any settings: constant numbers, and G and D at least as large as the facts say."""
    T = s.horizon or 1
    result = constant_settings(s, {n: v for n, v in settings.items() if n not in WORD_SETTINGS})
    least = {"G": (largest_slope(s), "the gradients"), "D": (needed(s, "domain.diameter.l2"), "the diameter")}
    for name, (least_value, what) in least.items():
        if name in settings and number(settings, name, T) < least_value * (1 - 1e-12):
            result.append(f"{name} must bound {what}: it is at least {least_value:.6g}")
    return result


def _convex_settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    T = s.horizon or 1
    beta, G, D, rate = (number(settings, n, T) for n in ("beta", "G", "D", "rate"))
    small = 64 * beta * G * D * rate * T**0.75 < 1
    return settings_bound(s, settings) + ([] if small else ["64 G D beta rate T^(3/4) must be less than 1"])


def _strong_settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    T, G, D = s.horizon or 1, largest_slope(s), needed(s, "domain.diameter.l2")
    beta, gamma, alpha_f = (number(settings, n, T) for n in ("beta", "gamma", "alpha_f"))
    room = 1 + 1e-9
    rules = {
        "alpha_f must not exceed the modulus of strong convexity": alpha_f / needed(s, "loss.strong_convexity.l2"),
        "gamma must be at most G / (G + alpha_f D)": gamma * (G + alpha_f * D) / G,
        "448 beta G^2 T^(2/3) must be at most gamma alpha_f": 448 * beta * G**2 * T ** (2 / 3) / (gamma * alpha_f),
        "2 beta G D must be at most 1": 2 * beta * G * D,
    }
    return settings_bound(s, settings) + [words for words, ratio in rules.items() if not ratio <= room]


# Guarantees.


def setting_quantities(settings: Mapping[str, Setting], letters: Mapping[str, str]) -> tuple[Quantity, ...]:
    """Settings as symbols of a formula, with the letters that print."""
    return tuple(Quantity(n, latex, f"the setting {n}", scheduled(settings, n)) for n, latex in letters.items())


def round_quantities(s: Situation) -> tuple[Quantity, ...]:
    """Symbols N of the constraints, T of the horizon and n of the rounds played."""
    return (
        Quantity("N", "N", "number of constraints", float(s.constraints)),
        Quantity("T", "T", "horizon", lambda rounds, T: float(max(rounds.n, T))),
        Quantity("n", "n", "rounds", lambda rounds, T: rounds.last),
    )


def violation_size(s: Situation) -> float | None:
    """The sum of sup |g_n|: the size of the constraints together."""
    sizes = s.inequality_bounds("bound")
    return None if sizes is None else float(sizes.sum())


# A guess G_k costs at most 16 D G_k T^(3/4) (chapter 7 of Hazan 2016 makes 8 of it), and the guesses, which double, add up to less than
# twice the last one. The proof of Theorem 1 takes G_K <= 2 beta G (gamma + Phi'(beta Q_T)) from the last doubling, and forgets that there
# may be none: with its settings the guess of 1 is never doubled. Then G_K is that guess, hence the term with max(guess - 2 beta G gamma,
# 0). Each constraint's violation is at most Q_T, their sum N Q_T.
CONVEX_REGRET = "64*G*D*T**(3/4) + (1 + 32*D*max(guess - 2*beta*G*gamma, 0)*T**(3/4)) / (gamma*beta)"
CONVEX_VIOLATION = (
    "N/(rate*beta) * log((1 + (64*beta*gamma*G*D + 32*D*max(guess - 2*beta*G*gamma, 0))*T**(3/4)"
    " + gamma*beta*G*D*n) / (1 - 64*beta*G*D*rate*T**(3/4)))"
)


def _convex_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """Theorem 1, before its settings are put in."""
    letters = {"G": "G", "D": "D", "beta": r"\beta", "gamma": r"\gamma", "rate": r"\lambda", "guess": r"\tilde G_1"}
    quantities = (*setting_quantities(settings, letters), *round_quantities(s))
    regret = Bound("static regret", "T**(3/4)", CONVEX_REGRET, quantities, s.loss_range)
    violation = Bound("hard violation", "T**(3/4) * log(T)", CONVEX_VIOLATION, quantities, s.violation_range)
    theorem = "Wang, Wan & Zhang 2025, Theorem 1"
    return Guarantee(theorem, s.horizon, regret, violation, remarks=comparator_remarks(s))


# Lemma 6 (Wan & Zhang 2021), as 6 sqrt(2) T^(2/3) + 2 log T <= 14 T^(2/3), bounds the regret for the surrogate losses by
# 14 (L + lambda D)^2 / lambda T^(2/3) + L D, lambda = gamma beta alpha_f, L = beta G (gamma + 2 beta Q_T + 1); followed round by round,
# it is less than a tenth of that. With L + lambda D <= 2 beta G (beta Q_T + 1) comes (41), where 112 could
# stand for 224.
# (41) up to its first equality; the second one has other powers of G, gamma and alpha_f than (40) gives.
STRONG_REGRET = "224*G**2/(gamma**2*alpha_f) * n**(2/3) + G*D*(gamma + 1)/gamma"
STRONG_VIOLATION = "N * sqrt((2 + gamma)/beta**2 + 2*gamma*G*D*n/beta)"


def _strong_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """Theorem 2, before its settings are put in."""
    quantities = (
        Quantity("G", "G", "Lipschitz constant of losses and constraints", largest_slope(s)),
        Quantity("D", "D", "diameter of the domain", needed(s, "domain.diameter.l2")),
        *setting_quantities(settings, {"beta": r"\beta", "gamma": r"\gamma", "alpha_f": r"\alpha_f"}),
        *round_quantities(s),
    )
    regret = Bound("static regret", "T**(2/3)", STRONG_REGRET, quantities, s.loss_range)
    violation = Bound("hard violation", "T**(5/6)", STRONG_VIOLATION, quantities, s.violation_range)
    theorem = "Wang, Wan & Zhang 2025, Theorem 2"
    return Guarantee(theorem, s.horizon, regret, violation, remarks=comparator_remarks(s))


OFW_TVC = Algorithm(
    name="ofw-tvc",
    title="online Frank-Wolfe with time-varying constraints",
    cite="Wang, Wan & Zhang 2025, Algorithm 1",
    rule=ConstrainedFrankWolfe,
    reads=Feedback.GRADIENT,
    theorems=(
        Theorem(
            name="Theorem 1",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.HARD,
            hypotheses=(*BASIC, GRADIENTS_SEEN),
            settings=_convex_settings,
            free=(Free("beta"), Free("rate")),
            best={
                "guess": Default(
                    "beta * G * gamma", "beta G gamma: a guess of up to twice that costs the bound nothing"
                )
            },
            positive=("G", "D", "beta", "gamma", "guess", "rate"),
            guarantee=_convex_guarantee,
            rates={"static regret": "T**(3/4)", "hard violation": "T**(3/4) * log(T)"},
            checks=_convex_settings_hold,
        ),
    ),
    cost="one linear minimisation",
    frank_wolfe=lambda spec: True,
    symbols={
        "x": "the decision of this round",
        "x_s": "the decision of round s",
        "S": "sum of the surrogate losses' gradients since round s, in units of the guess of their bound",
        "Q": "violation of the worst constraint, summed over the rounds",
        "k": "how often the guess was doubled",
        "s": "first round with this guess",
    },
)

SCOFW_TVC = Algorithm(
    name="scofw-tvc",
    title="strongly convex online Frank-Wolfe with time-varying constraints",
    cite="Wang, Wan & Zhang 2025, Algorithm 2",
    rule=StronglyConvexFrankWolfe,
    reads=Feedback.GRADIENT,
    theorems=(
        Theorem(
            name="Theorem 2",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.HARD,
            hypotheses=(*BASIC, SOMETHING_TO_LEARN, STRONGLY_CONVEX, GRADIENTS_SEEN),
            settings=_strong_settings,
            free=(Free("gamma", 1e-06, 1), Free("beta", 1e-06, 2)),
            positive=("alpha_f", "gamma", "beta"),
            guarantee=_strong_guarantee,
            rates={"static regret": "T**(2/3)", "hard violation": "T**(5/6)"},
            checks=_strong_settings_hold,
        ),
    ),
    cost="one linear minimisation",
    frank_wolfe=lambda spec: True,
    symbols={
        "x": "the decision of this round",
        "S": "sum of the surrogate losses' gradients",
        "X": "sum of the decisions",
        "Q": "violation of the worst constraint, summed over the rounds",
    },
)
