"""Lee, Ho-Nguyen & Lee 2023, "Projection-free online convex optimization with stochastic constraints": Algorithm 1.

T rounds in Q blocks of K. Within block q a projection-free oracle plays on h_t = f_t + sum_n lambda_q^n g_t^n; after the block each
constraint's multiplier moves by its sum over the block. Erratum 10: an oracle begins anew at each block, from the decision reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from oco.compiler.algorithms.base import Algorithm, State, array, point
from oco.compiler.algorithms.classic import BOUNDED_DOMAIN, BOUNDED_GRADIENT, CONVEX_LOSS, GRADIENTS_SEEN
from oco.compiler.algorithms.common import SOME_INEQUALITY, domain_offers, sizes
from oco.compiler.algorithms.wang_wan_zhang2025 import largest_slope, setting_quantities
from oco.compiler.algorithms.wang_yan_liu2025 import INEQUALITIES_ONLY
from oco.compiler.algorithms.wei2020 import IID_CONSTRAINTS, MEAN_CONSTRAINTS
from oco.compiler.ir.value import Value
from oco.compiler.points import Point, Structured
from oco.compiler.problem import Problem
from oco.compiler.settings import Default, Setting, number
from oco.compiler.theorems import (
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
    fact_is_true,
    horizon_known,
    inequalities_convex,
    inequalities_know,
    needed,
)
from oco.dsl.diagnostics import fail
from oco.dsl.model import Measure
from oco.dsl.settings import WORD_SETTINGS


class Oracle(Protocol):
    """A projection-free method of a block: what it keeps, and its step in the k-th round, given the gradient of h_t at x_t."""

    def begin(self, p: Problem, x: Point) -> State: ...

    def step(self, p: Problem, state: State, k: Value, slope: Point) -> tuple[Point, State]: ...


class OnlineConditionalGradient:
    """ocg: Hazan 2016, chapter 7, with F(x) = eta <S, x> + |x - x_q|^2, S the sum of the block's gradients and x_q its first decision.

    Erratum 10: the book sums to t - 1, so that every block would begin with a jump to an arbitrary vertex; here the sum goes to t.
    """

    def begin(self, p: Problem, x: Point) -> State:
        return {"x_q": x, "S": x.map(lambda a: p.tracer.zeros(a.shape))}

    def step(self, p: Problem, state: State, k: Value, slope: Point) -> tuple[Point, State]:
        t, x, x_q = p.tracer, point(state, "x"), point(state, "x_q")
        S = (point(state, "S") + slope).named(t, "S")
        p.note("h_t is D (1 + sum_n lambda^n)-Lipschitz: eta = R / (2 D (1 + sum_n lambda^n) K^(3/4))")
        slopes = p.setting("D") * (1.0 + t.sum(array(state, "lam")))
        eta = t.name("eta", p.setting("R") / (2.0 * float(p.whole("K")) ** 0.75 * slopes))
        v = p.domain.lmo(eta * S + 2.0 * (x - x_q)).named(t, "v")
        sigma = t.name("sigma", t.minimum(1.0, 2.0 / t.sqrt(k)))
        return x + sigma * (v - x), {"x_q": x_q, "S": S}


ORACLES: Mapping[str, Oracle] = {"ocg": OnlineConditionalGradient()}


class PrimalDual:
    """Algorithm 1. lam holds lambda_q, G the sums of the constraints over the block; the oracle keeps more."""

    def init(self, p: Problem, start: Point) -> State:
        none = p.tracer.zeros((p.constraint_count,))
        return {"x": start, "lam": none, "G": none, **ORACLES[p.word("oracle")].begin(p, start)}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x, lam, oracle = p.tracer, point(state, "x"), array(state, "lam"), ORACLES[p.word("oracle")]
        K = float(p.whole("K"))
        p.note("the round k of this block")
        k = t.name("k", t.mod(p.played - 1.0, K) + 1.0)
        slope = p.gradient(x) + p.constraint_combination(x, lam)
        following, kept = oracle.step(p, state, k, slope.named(t, "slope"))
        p.note("after the block: lambda = [(1 - theta mu) lambda + mu sum_t g_t(x_t)]_+")
        ends = t.name("ends", k >= K)
        G = t.name("G", array(state, "G") + p.constraints(x))
        theta, mu = p.setting("theta"), p.setting("mu")
        moved = t.maximum((1.0 - theta * mu) * lam + mu * G, 0.0)
        anew = oracle.begin(p, following)
        found = {name: _where(ends, anew[name], kept[name]) for name in kept}
        return {"x": following, "lam": t.where(ends, moved, lam), "G": t.where(ends, 0.0, G), **found}


def _where(c: Value, a: Structured, b: Structured) -> Structured:
    """The state variable of one case or the other."""
    if isinstance(a, Point) and isinstance(b, Point):
        return a.map(lambda u, v: c.tracer.where(c, u, v), b)
    assert isinstance(a, Value) and isinstance(b, Value)
    return c.tracer.where(c, a, b)


# Hypotheses.


def _something_to_learn(s: Situation) -> Objection | None:
    slopes = s.inequality_bounds("lipschitz.l2")
    if slopes is None or s.number("loss.lipschitz.l2") is None or s.number("domain.diameter.l2") is None:
        return None
    if largest_slope(s) > 0 and needed(s, "domain.diameter.l2") > 0:
        return None
    return Objection(
        "no decision is better than another: the domain is a point, or loss and constraints do not depend on it"
    )


HYPOTHESES = (
    MEAN_CONSTRAINTS,
    IID_CONSTRAINTS,
    GRADIENTS_SEEN,
    CONVEX_LOSS,
    BOUNDED_GRADIENT,
    inequalities_convex("g(x, omega) is convex in the decision."),
    inequalities_know("lipschitz.l2", "f_t and g_t are D-Lipschitz.", "the gradient"),
    inequalities_know("bound", "g_t is bounded: |g_t(x)| <= G.", "the size"),
    BOUNDED_DOMAIN,
    Hypothesis("D > 0 and R > 0.", _something_to_learn, ("loss.lipschitz.l2", "domain.diameter.l2")),
    horizon_known("The number of rounds T is known."),
    fact_is_true(
        "feasible.mean",
        "Some decision satisfies the constraints in expectation.",
        "some decision satisfies the constraints in the mean",
        "no decision satisfies the constraints in the mean",
        "loosen the constraints",
    ),
)


# Settings.


@dataclass(frozen=True)
class Regret:
    """An (alpha, C_0, C_1, C_2)-oracle: regret (C_0 + C_1 D + C_2 L) K^alpha in a block, the exponents of T in (3), and Table 1's rates.

    K, Q and theta: exponents of T at beta = 0. `largest` is that of beta.
    """

    C_1: str
    C_2: str
    why: str
    alpha: float
    K: str
    Q: str
    theta: str
    largest: float


REGRETS: Mapping[str, Regret] = {
    "ocg": Regret("8 * R", "0", "regret 8 R D K^(3/4) (Hazan 2016, chapter 7)", 0.75, "2/3", "1/3", "1/2", 1 / 6),
}


def _settings(s: Situation) -> Mapping[str, Default]:
    return {
        "oracle": Default("ocg", "one linear minimisation a round, and no smoothness asked for"),
        "R": Default("domain.diameter.l2", "diameter of the domain"),
        "D": Default(largest_slope(s), "Lipschitz constant of losses and constraints"),
        "beta": Default(0, "0: the least sum of the rates (Theorem 1)"),
    }


def _oracle_settings(s: Situation, words: Mapping[str, str]) -> Mapping[str, Default]:
    """(3), whose exponents are those of the oracle."""
    name = words["oracle"]
    if name not in REGRETS:
        raise fail("OCO721", f"the oracle {name} is not there", hint=f"there is {', '.join(REGRETS)}")
    a = REGRETS[name]
    return {
        "L": Default(0, "the oracle asks for no smoothness"),
        "C_1": Default(a.C_1, a.why),
        "C_2": Default(a.C_2, a.why),
        "Q": Default(f"ceiling(T**({a.Q}))", f"T^({a.Q}) blocks (3)"),
        "K": Default(f"ceiling(T**({a.K}))", f"T^({a.K}) rounds a block (3)"),
        "theta": Default(
            f"3 * (C_1 * D + C_2 * L) * T**({a.theta} - beta)", f"3 (C_1 D + C_2 L) T^({a.theta} - beta) (3)"
        ),
        "mu": Default("1 / (theta * (Q + 1))", "1/(theta (Q + 1)) (3)"),
    }


def _settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    T = s.horizon or 1
    numbers = {n: v for n, v in settings.items() if n not in WORD_SETTINGS}
    found = constant_settings(s, numbers)
    if found:
        return found
    value = {n: number(settings, n, T) for n in numbers}
    regret = REGRETS[str(settings["oracle"].formula)]
    room = 1 - 1e-12
    rules = {
        "K must be a whole number of at least one round": value["K"] >= 1 and value["K"] == round(value["K"]),
        "theta and mu must be positive": value["theta"] > 0 and value["mu"] > 0,
        "2 theta mu must be less than 1": 2 * value["theta"] * value["mu"] < 1,
        f"beta must lie between 0 and {regret.largest:.4g}": 0 <= value["beta"] <= regret.largest + 1e-12,
        f"R must bound the diameter: it is {needed(s, 'domain.diameter.l2'):.6g}": value["R"]
        >= needed(s, "domain.diameter.l2") * room,
        f"D must bound the gradients: it is at least {largest_slope(s):.6g}": value["D"] >= largest_slope(s) * room,
        "C_1 D must bound the oracle's regret: C_1 is at least 8 R": value["C_1"] >= 8 * value["R"] * room,
    }
    return [words for words, holds in rules.items() if not holds]


# Guarantees.

# The proof of Theorem 1 for any K, theta, mu, for blocks that T cuts off, and for N multipliers: with A = C_1 D K^alpha, in expectation
#
#   Regret + sum_n lambda_n V_n <= (1/mu + Q theta) |lambda|^2 / 2 + G^2 K^2 Q mu
#                                  + Q A + sum_q sum_n (A lambda_q^n + (theta^2 mu - theta/2) (lambda_q^n)^2)
#
# for all lambda >= 0, with G^2 = sum_n sup |g_n|^2; the terms of lambda_q are at most A^2 / (2 theta (1 - 2 theta mu)). lambda = 0
# gives the regret; lambda_n = c where V_n > 0, with Regret >= -F T and the best c, the violation.
REGRET = "blocks * (G**2 * K**2 * mu + A + N * A**2 / (2 * theta * (1 - 2*theta*mu)))"
VIOLATION = f"sqrt(2 * N * (1/mu + blocks*theta) * (F*n + {REGRET}))"


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """Theorem 1 in numbers, before its settings are put in."""
    regret, bounds = REGRETS[str(settings["oracle"].formula)], sizes(s)

    def blocks(rounds: int, horizon: int) -> np.ndarray:
        return np.ceil(np.arange(1.0, rounds + 1) / max(number(settings, "K", horizon), 1.0))

    def block_regret(rounds: int, horizon: int) -> np.ndarray:
        C_1, D, K = (number(settings, n, horizon) for n in ("C_1", "D", "K"))
        return np.asarray(C_1 * D * K**regret.alpha)

    quantities = (
        Quantity("N", "N", "number of constraints", float(s.constraints)),
        Quantity("G", "G", "bound of the constraints together", float(np.linalg.norm(bounds))),
        Quantity("F", "F", "what one round's losses can differ", needed_range(s)),
        Quantity("A", "A", "regret of the oracle in a block, C_1 D K^alpha", block_regret),
        Quantity("blocks", "Q_n", "blocks begun", blocks),
        Quantity("n", "n", "rounds", lambda rounds, T: np.arange(1.0, rounds + 1)),
        *setting_quantities(settings, {"K": "K", "theta": r"\theta", "mu": r"\mu"}),
    )
    of_regret, of_violation = _rates(settings, regret)
    said = "in expectation"
    return Guarantee(
        "Lee, Ho-Nguyen & Lee 2023, Theorem 1",
        s.horizon,
        Bound("static regret", of_regret, REGRET, quantities, s.loss_range, said),
        Bound("soft violation", of_violation, VIOLATION, quantities, float(bounds.sum()), said),
    )


def needed_range(s: Situation) -> float:
    """F: the most that one round's losses can differ, known where the gradient and the diameter are."""
    assert s.loss_range is not None
    return s.loss_range


def _rates(settings: Mapping[str, Setting], a: Regret) -> tuple[str, str]:
    """T^((2 - alpha)/(3 - 2 alpha) + beta) and T^((5 - 3 alpha)/(6 - 4 alpha) - beta/2) as text."""
    import sympy

    alpha, beta = sympy.Rational(a.alpha).limit_denominator(12), settings["beta"].formula
    regret = (2 - alpha) / (3 - 2 * alpha) + beta
    violation = (5 - 3 * alpha) / (6 - 4 * alpha) - beta / 2
    return f"T**({regret})", f"T**({violation})"


PROJECTION_FREE = Algorithm(
    name="projection-free",
    title="online primal-dual projection-free method",
    cite="Lee, Ho-Nguyen & Lee 2023, Algorithm 1",
    rule=PrimalDual,
    requirements=(
        SOME_INEQUALITY,
        INEQUALITIES_ONLY,
        domain_offers("lmo", "Linear functions can be minimized over the domain."),
    ),
    theorems=(
        Theorem(
            name="Theorem 1",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.SOFT,
            expected=True,
            hypotheses=HYPOTHESES,
            settings=_settings,
            free=(Free("K", 0.0001, 10000, "count"), Free("theta"), Free("mu")),
            settings_of_words=_oracle_settings,
            guarantee=_guarantee,
            rates={"static regret": "T**(5/6)", "soft violation": "T**(11/12)"},
            checks=_settings_hold,
        ),
    ),
    cost="one linear minimisation",
    symbols={
        "x": "the decision of this round",
        "lam": "the multiplier of each constraint in this block",
        "G": "sum of the constraints over this block",
        "x_q": "the first decision of this block",
        "S": "sum of the gradients over this block",
    },
)
