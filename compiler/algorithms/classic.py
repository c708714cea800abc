"""Online learning without constraints: gradient descent (Zinkevich 2003) and exponentiated gradient (Kivinen & Warmuth 1997)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.common import PROJECTION
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, point
from oco.compiler.theory.moves import path_length
from oco.compiler.theory.schedule import Rounds, Schedule
from oco.compiler.theory.settings import Default, Setting
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
    fact_is_known,
    fact_is_true,
    horizon_known,
    needed,
    scheduled,
)
from oco.dsl.statements import Measure


class OnlineGradientDescent:
    """x_{t+1} = P_X(x_t - eta_t grad f_t(x_t))."""

    def init(self, p: Problem, start: Point) -> State:
        return {"x": start}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        x = point(state, "x")
        return {"x": p.domain.project(x - p.setting("eta") * p.gradient(x))}


class ExponentiatedGradient:
    """x_{t+1} proportional to x_t exp(-eta grad f_t(x_t))."""

    def init(self, p: Problem, start: Point) -> State:
        return {"x": start}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        x = point(state, "x")
        return {"x": p.domain.bregman_step(x, p.setting("eta") * p.gradient(x))}


# Hypotheses.

CONVEX_LOSS = fact_is_true(
    "loss.convex",
    "The losses are convex.",
    "the loss is convex",
    "the loss is not convex",
    "state a convex loss, or `assume loss.convex` if it is",
)
BOUNDED_GRADIENT = fact_is_known(
    "loss.lipschitz.l2",
    "Gradients of the losses are bounded: |grad f_t(x)| <= G.",
    "the gradient of the loss",
)
BOUNDED_DOMAIN = fact_is_known(
    "domain.diameter.l2",
    "The domain is bounded, with diameter D.",
    "the diameter of the domain",
)


def _no_constraints(s: Situation) -> Objection | None:
    if s.constraints or s.equalities:
        return Objection("it ignores constraints, and the model has some", "drop the constraints", drops=True)
    return None


def _not_bandit(s: Situation) -> Objection | None:
    if s.canonical.feedback.gives_values_alone:
        return Objection(
            f"{s.canonical.feedback} feedback gives only values, and it needs the gradient of the loss",
            "write `feedback gradient`",
        )
    return None


def _strongly_convex(s: Situation) -> Objection | None:
    if (s.number("loss.strong_convexity.l2") or 0.0) > 0:
        return None
    fix = "add a multiple of `sum_squares` of the decision to the loss, or `assume loss.strong_convexity.l2 >= ...`"
    return Objection("the loss is not known to be strongly convex", fix)


def _one_simplex(s: Situation) -> Objection | None:
    if len(s.domains) == 1 and s.domains[0].is_simplex:
        return None
    return Objection("its decisions lie in a simplex, those of the model do not", "write `decision x[n] in simplex`")


NO_CONSTRAINTS = Hypothesis("There are no constraints beside the domain.", _no_constraints)
GRADIENTS_SEEN = Hypothesis("The gradient of each round's loss is revealed.", _not_bandit)
STRONGLY_CONVEX = Hypothesis("The losses are mu-strongly convex.", _strongly_convex, ("loss.strong_convexity.l2",))
ONE_SIMPLEX = Hypothesis("Decisions lie in a simplex.", _one_simplex)


# Guarantees.


def path_weight(alpha: Schedule, step: float, path: float) -> Floats:
    """max of sum_{t=2}^{tau} alpha_{t-1} d_t over 0 <= d_t <= step with sum d_t <= path, for the last round tau of each stretch.

    The path is walked in the last rounds, where `alpha` does not decrease; else the largest so far stands for each.
    """
    tau = alpha.rounds.last
    if step <= 0 or path <= 0:
        return np.zeros(len(tau))
    alpha = alpha.envelope()
    total = alpha.sums()
    before = total - alpha.last
    if path >= step * (tau[-1] - 1):
        return step * before
    full = np.minimum(path // step, tau - 1)
    first = tau - 1 - full
    stretch = np.searchsorted(tau, np.maximum(first, 1))
    walked = np.where(first > 0, before - total[stretch] + alpha.part(first, stretch), before)
    partial = np.where(first > 0, np.minimum(path - step * full, step) * alpha.at(first, stretch), 0.0)
    return np.asarray(step * walked + partial)


def gradient_steps(s: Situation) -> Mapping[str, Default]:
    """Steps of gradient descent for convex losses."""
    return {
        "eta": Default("domain.diameter.l2 / (loss.lipschitz.l2 * sqrt(t))", "D / (G sqrt(t)), Hazan 2016, Theorem 3.1")
    }


def strong_steps(s: Situation) -> Mapping[str, Default]:
    """Steps of gradient descent for strongly convex losses."""
    return {"eta": Default("1 / (loss.strong_convexity.l2 * t)", "1 / (mu t), Hazan 2016, Theorem 3.3")}


def gradient_regret(s: Situation, settings: Mapping[str, Setting], mu: float, rate: str) -> Bound:
    """D^2/2 sum_t [1/eta_t - 1/eta_{t-1} - mu]_+ + G^2/2 sum_t eta_t + D sum_{t>1} |u_t - u_{t-1}| / eta_{t-1}.

    Both proofs before a step size is put in (1/eta_0 = 0), with Zinkevich's Theorem 2 for a comparator u_t that moves. With the
    book's steps the first two terms are at most 3/2 G D sqrt(T) and G^2 (1 + log T) / (2 mu).
    """
    eta = scheduled(settings, "eta")
    diameter, slope = needed(s, "domain.diameter.l2"), needed(s, "loss.lipschitz.l2")

    def growth(rounds: Rounds, horizon: int) -> Floats:
        return eta(rounds, horizon).inverse.growth(mu)

    def moved(rounds: Rounds, horizon: int) -> Floats:
        return path_weight(eta(rounds, horizon).inverse, diameter, path_length(s, horizon))

    quantities = (
        Quantity("D", "D", "diameter of the domain", diameter),
        Quantity("G", "G", "bound of the gradient", slope),
        Quantity("growth", r"\sum_t [1/\eta_t - 1/\eta_{t-1} - \mu]_+", "growth of the inverse steps", growth),
        Quantity("steps", r"\sum_t \eta_t", "sum of the steps", lambda n, T: eta(n, T).sums()),
        Quantity("moved", r"\sum_{t>1} \|u_t - u_{t-1}\| / \eta_{t-1}", "weighted path of the comparators", moved),
    )
    dynamic = s.canonical.measure is Measure.DYNAMIC
    formula = "D**2/2 * growth + G**2/2 * steps" + (" + D * moved" if dynamic else "")
    return Bound(f"{s.canonical.measure} regret", rate, formula, quantities, s.loss_range)


def _convex_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    dynamic = s.canonical.measure is Measure.DYNAMIC
    theorem = "Zinkevich 2003, Theorem 2" if dynamic else "Hazan 2016, Theorem 3.1"
    bound = gradient_regret(s, settings, 0.0, "T**(1/2 + V_x)" if dynamic else "sqrt(T)")
    return Guarantee(theorem, s.horizon, bound)


def _strong_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    bound = gradient_regret(s, settings, needed(s, "loss.strong_convexity.l2"), "log(T)")
    return Guarantee("Hazan 2016, Theorem 3.3", s.horizon, bound)


def _exponential_settings(s: Situation) -> Mapping[str, Default]:
    return {"eta": Default("sqrt(2 * log(d) / T) / loss.lipschitz.l1", "sqrt(2 log d / T) / G, Hazan 2016, chapter 5")}


def _exponential_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """D(x*, x_1) / eta + eta s G^2 T / 2 with D the divergence of the entropy, 1/s-strongly convex in l1 on the simplex of sum s."""
    domain = s.domains[0]
    quantities = (
        Quantity("B", r"\max_x D(x, x_1)", "divergence from the first decision", domain.bregman_radius),
        Quantity("G", r"G_\infty", "bound of the gradient's entries", needed(s, "loss.lipschitz.l1")),
        Quantity("scale", "s", "sum of the entries of a decision", domain.radius),
        Quantity("eta", r"\eta", "step", scheduled(settings, "eta")),
        Quantity("rounds", "T", "rounds", lambda n, T: n.last),
    )
    bound = Bound(
        "static regret", "sqrt(T * log(d))", "B / eta + eta * scale * G**2 * rounds / 2", quantities, s.loss_range
    )
    return Guarantee("Hazan 2016, chapter 5", s.horizon, bound, from_centre=True)


def _gradient_step(s: Situation, settings: Mapping[str, Setting]) -> Callable[[Rounds, int], Schedule]:
    """eta_t G: x_t is in X, so its projection moves no farther than the step itself."""
    eta, slope = scheduled(settings, "eta"), needed(s, "loss.lipschitz.l2")
    return lambda rounds, horizon: slope * eta(rounds, horizon)


def _mirror_step(s: Situation, settings: Mapping[str, Setting]) -> Callable[[Rounds, int], Schedule]:
    """eta s G in l1: |x - x'|_1^2 / s <= D(x, x') + D(x', x) <= eta <grad f, x - x'> for the step from x to x'."""
    eta, slope, scale = scheduled(settings, "eta"), needed(s, "loss.lipschitz.l1"), s.domains[0].radius
    return lambda rounds, horizon: (slope * scale) * eta(rounds, horizon)


_BASIC = (NO_CONSTRAINTS, GRADIENTS_SEEN, CONVEX_LOSS, BOUNDED_DOMAIN, BOUNDED_GRADIENT)

OGD = Algorithm(
    name="ogd",
    plays="x",
    title="online gradient descent",
    cite="Zinkevich 2003; Hazan 2016, chapter 3",
    rule=OnlineGradientDescent,
    requirements=(PROJECTION,),
    theorems=(
        Theorem(
            name="Theorem 3.3",
            moves=True,
            measures=frozenset({Measure.STATIC}),
            hypotheses=(*_BASIC, STRONGLY_CONVEX),
            settings=strong_steps,
            free=(Free("eta", 0.001, 1000),),
            positive=("eta",),
            guarantee=_strong_guarantee,
            step_length=_gradient_step,
            rates={"static regret": "log(T)"},
        ),
        Theorem(
            name="Theorem 3.1",
            moves=True,
            measures=frozenset({Measure.STATIC, Measure.DYNAMIC}),
            hypotheses=_BASIC,
            settings=gradient_steps,
            free=(Free("eta", powers=(-1, 1)),),
            positive=("eta",),
            guarantee=_convex_guarantee,
            step_length=_gradient_step,
            rates={"static regret": "sqrt(T)", "dynamic regret": "T**(1/2 + V_x)"},
        ),
    ),
    cost="one projection",
    symbols={"x": "the decision of this round"},
)

OEG = Algorithm(
    name="oeg",
    title="exponentiated gradient",
    cite="Kivinen & Warmuth 1997; Hazan 2016, chapter 5",
    rule=ExponentiatedGradient,
    theorems=(
        Theorem(
            name="chapter 5",
            measures=frozenset({Measure.STATIC}),
            hypotheses=(
                NO_CONSTRAINTS,
                ONE_SIMPLEX,
                GRADIENTS_SEEN,
                CONVEX_LOSS,
                fact_is_known(
                    "loss.lipschitz.l1",
                    "The entries of the gradients are bounded: |grad f_t(x)|_inf <= G.",
                    "the entries of the gradient of the loss",
                ),
                horizon_known("The number of rounds T is known."),
            ),
            settings=_exponential_settings,
            free=(Free("eta", powers=(-1, 1)),),
            norm="l1",
            restart=Restart.FROM_CENTRE,
            positive=("eta",),
            guarantee=_exponential_guarantee,
            step_length=_mirror_step,
            rates={"static regret": "sqrt(T * log(d))"},
            checks=constant_settings,
        ),
    ),
    cost="one mirror step",
    symbols={"x": "the decision of this round"},
)
