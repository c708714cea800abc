"""Weibel, Gaillard, Koolen & Taylor (AISTATS 2026): the online Frank-Wolfe method of Hazan & Kale 2012 (Hazan 2016, chapter 7) with
optimized constants.

    v_t = argmin over X of <eta sum_{s<=t} grad f_s(x_s) + x_t - x_1, v>,    x_{t+1} = x_t + sigma (v_t - x_t),
    eta = D / (2 G) (3 / T)^(3/4),    sigma = min(1, sqrt(3 / T))

As a method of its own, `ofw`, and as the oracle `ocg` of other methods.

Theorem. For all eta > 0 and sigma in (0, 1], after n rounds

    sum_t f_t(x_t) - f_t(u) <= D^2 / (2 eta) + n G m,    m = (eta G + sqrt(eta^2 G^2 + 2 sigma^3 D^2)) / (2 sigma),

which is 4 / 3^(3/4) G D T^(3/4) = 1.755 G D T^(3/4) with the constants above, for n = T >= 3 (for T <= 2 that is more than G D T).

Proof. With F_t(x) = eta sum_{s<=t} <g_s, x> + |x - x_1|^2 / 2, y_t its minimizer over X, h_t = F_t(x_t) - F_t(y_t), e_t = F_t(x_{t+1}) -
F_t(y_t) and d_t = |x_t - y_t|: F_t is 1-strongly convex, so h_t >= d_t^2 / 2, and <grad F_t(x_t), x_t - v_t> is at least
<grad F_t(x_t), x_t - y_t> >= h_t + d_t^2 / 2; it is 1-smooth, so e_t <= (1 - sigma) h_t - sigma d_t^2 / 2 + sigma^2 D^2 / 2, at most
h_t - sigma d_t^2 + sigma^2 D^2 / 2. As y_{t-1} minimizes F_{t-1}, h_t - e_{t-1} = eta <g_t, x_t> + F_{t-1}(y_{t-1}) - F_t(y_t) is at most
eta <g_t, x_t - y_t> <= eta G d_t. Summed from e_0 = 0 to e_n >= 0, sigma sum d_t^2 <= eta G sum d_t + n sigma^2 D^2 / 2, so that by Cauchy
and Schwarz the mean of d_t is at most m. And h_t - e_{t-1} is eta <g_t, x_t> less the growth of min F_t, so that
eta sum <g_t, x_t - u> <= D^2 / 2 + eta G sum d_t.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import (
    BOUNDED_DOMAIN,
    BOUNDED_GRADIENT,
    CONVEX_LOSS,
    GRADIENTS_SEEN,
    NO_CONSTRAINTS,
)
from oco.compiler.algorithms.common import ROUNDS, domain_offers
from oco.compiler.algorithms.oracles import Oracle
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, point
from oco.compiler.theory.schedule import Rounds, Schedule
from oco.compiler.theory.settings import Default, Setting, number
from oco.compiler.theory.theorems import (
    Bound,
    Free,
    Guarantee,
    Quantity,
    Situation,
    Theorem,
    constant_settings,
    horizon_known,
    needed,
    scheduled,
)
from oco.dsl.statements import Measure


class OnlineFrankWolfe:
    """One Frank-Wolfe step on F_t from x_t."""

    def init(self, p: Problem, start: Point) -> State:
        return {"x": start, "x_1": start, "G": p.no_gradient(start)}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        x, x_1 = point(state, "x"), point(state, "x_1")
        G = (point(state, "G") + p.gradient(x)).named(p.tracer, "G")
        v = p.domain.lmo(p.setting("eta") * G + (x - x_1)).named(p.tracer, "v")
        return {"x": x + p.setting("sigma") * (v - x), "x_1": x_1, "G": G}


class OnlineConditionalGradient:
    """ocg: the same in a block, with x_q its first decision and K its rounds."""

    def begin(self, p: Problem, x: Point) -> State:
        return {"x_q": x, "S": p.no_gradient(x)}

    def step(
        self, p: Problem, state: State, k: Value, gradient: Callable[[Point], Point], weight: Value
    ) -> tuple[Point, State]:
        t, x, x_q = p.tracer, point(state, "x"), point(state, "x_q")
        S = (point(state, "S") + gradient(x)).named(t, "S")
        p.note("h_t is D (1 + sum_n lambda^n)-Lipschitz: eta = R / (2 D (1 + sum_n lambda^n)) (3/K)^(3/4)")
        slopes, part = p.setting("D") * weight, 3.0 / p.count_of("K")
        eta = t.name("eta", p.setting("R") * part**0.75 / (2.0 * slopes))
        v = p.domain.lmo(eta * S + (x - x_q)).named(t, "v")
        sigma = t.name("sigma", t.minimum(1.0, t.sqrt(part)))
        return x + sigma * (v - x), {"x_q": x_q, "S": S}


def _settings(s: Situation) -> Mapping[str, Default]:
    return {
        "eta": Default(
            "domain.diameter.l2 / (2 * loss.lipschitz.l2) * (3 / T)**(3/4)", "D / (2 G) (3/T)^(3/4), Weibel et al. 2026"
        ),
        "sigma": Default("min(1, sqrt(3 / T))", "sqrt(3/T), Weibel et al. 2026"),
    }


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    quantities = (
        Quantity("D", "D", "diameter of the domain", needed(s, "domain.diameter.l2")),
        Quantity("G", "G", "bound of the gradient", needed(s, "loss.lipschitz.l2")),
        Quantity("eta", r"\eta", "weight of the gradients", scheduled(settings, "eta")),
        Quantity("sigma", r"\sigma", "part of the way to the linear minimizer", scheduled(settings, "sigma")),
        ROUNDS,
    )
    formula = "D**2 / (2*eta) + T * G * (eta*G + sqrt(eta**2 * G**2 + 2 * sigma**3 * D**2)) / (2*sigma)"
    bound = Bound("static regret", "T**(3/4)", formula, quantities, s.loss_range)
    return Guarantee("Weibel, Gaillard, Koolen & Taylor 2026", s.horizon, bound)


def _step_length(s: Situation, settings: Mapping[str, Setting]) -> Callable[[Rounds, int], Schedule]:
    """sigma D: x_{t+1} is on the way from x_t to a vertex."""
    sigma, diameter = scheduled(settings, "sigma"), needed(s, "domain.diameter.l2")
    return lambda rounds, horizon: diameter * sigma(rounds, horizon)


def _checks(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    result = constant_settings(s, settings)
    return result if number(settings, "sigma", s.horizon or 1) <= 1 else [*result, "sigma must be at most 1"]


OFW = Algorithm(
    name="ofw",
    frank_wolfe=lambda spec: True,
    title="online Frank-Wolfe",
    cite="Hazan & Kale 2012; Weibel, Gaillard, Koolen & Taylor 2026",
    rule=OnlineFrankWolfe,
    requirements=(domain_offers("lmo", "Linear functions can be minimized over the domain."),),
    theorems=(
        Theorem(
            name="optimized constants",
            measures=frozenset({Measure.STATIC}),
            hypotheses=(
                NO_CONSTRAINTS,
                GRADIENTS_SEEN,
                CONVEX_LOSS,
                BOUNDED_DOMAIN,
                BOUNDED_GRADIENT,
                horizon_known("The number of rounds T is known."),
            ),
            settings=_settings,
            free=(Free("eta"),),
            positive=("eta", "sigma"),
            guarantee=_guarantee,
            step_length=_step_length,
            rates={"static regret": "T**(3/4)"},
            checks=_checks,
        ),
    ),
    cost="one linear minimisation",
    symbols={
        "x": "the decision of this round",
        "x_1": "the first decision",
        "G": "sum of the gradients",
    },
)

OCG = Oracle(
    name="ocg",
    rule=OnlineConditionalGradient(),
    cite="Weibel, Gaillard, Koolen & Taylor 2026",
    alpha=Fraction(3, 4),
    settings=lambda s: {
        "C_1": Default("4 / 3**(3/4) * R", "regret 4 / 3^(3/4) R D K^(3/4) (Weibel et al. 2026)"),
        "C_2": Default(0, "no smoothness is asked for"),
    },
    regret=lambda s, v: 4 / 3**0.75 * v["R"] * v["D"] * v["K"] ** 0.75,
    why="regret 1.755 R D K^(3/4) with one linear minimisation a round",
    cost="one linear minimisation",
    frank_wolfe=True,
    symbols=(("x_q", "the first decision of this block"), ("S", "sum of the gradients over this block")),
)
