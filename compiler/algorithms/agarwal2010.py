"""Agarwal, Dekel & Xiao 2010, "Optimal algorithms for online convex optimization with multi-point bandit feedback": two points a round."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import (
    BOUNDED_DOMAIN,
    BOUNDED_GRADIENT,
    CONVEX_LOSS,
    NO_CONSTRAINTS,
    path_length,
)
from oco.compiler.algorithms.common import PROJECTION, ROUNDS
from oco.compiler.algorithms.perturbation import (
    INTERIOR,
    dimension,
    direction,
    draws,
    estimate,
    inner_radius,
    into_shrunk,
    perturbed,
)
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, point
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
    constant_settings,
    horizon_known,
    needed,
    scheduled,
)
from oco.dsl.statements import Feedback, Measure

NOTE = "in expectation, for data that does not answer the perturbations"


class TwoPointGradientDescent:
    """x_t = y_t + delta u_t, and y_{t+1} = P(y_t - eta (d / 2 delta) (f_t(x_t) - f_t(y_t - delta u_t)) u_t) over the domain shrunk by
    1 - delta / r. The second point is the decision of the opposite draw.
    """

    def init(self, p: Problem, start: Point) -> State:
        return {"y": into_shrunk(p, start)}

    def decide(self, p: Problem, state: State) -> Point:
        return perturbed(p, point(state, "y"))

    def update(self, p: Problem, state: State) -> State:
        y, x = point(state, "y"), self.decide(p, state)
        gradient = estimate(p, 0.5 * (p.loss(x) - p.second_loss(y - p.setting("delta") * direction(p))))
        return {"y": into_shrunk(p, y - p.setting("eta") * gradient)}


def _two_points(s: Situation) -> Objection | None:
    if s.canonical.feedback is Feedback.TWO_POINT:
        return None
    if s.canonical.feedback is Feedback.FULL:
        message = "the feedback gives gradients, and it takes differences of values alone"
        return Objection(message, "write `feedback two_point`", unasked=True)
    message = f"`feedback {s.canonical.feedback}` does not give the loss at a second point"
    return Objection(message, "write `feedback two_point`")


TWO_POINTS = Hypothesis("Each round reveals the loss at two points.", _two_points)


def _settings(s: Situation) -> Mapping[str, Default]:
    r, ratio = inner_radius(s), needed(s, "domain.diameter.l2") / (_noise(s) or 1.0)
    return {
        "r": Default(r, "radius of a ball within the domain"),
        "delta": Default(f"min(log(T + 1) / T, 1/2) * {r!r}", "log(T)/T (Theorem 1), in units of r"),
        "eta": Default(f"{ratio!r} / sqrt(T)", "1/sqrt(T) (Theorem 1), times D / (d G)"),
    }


def _noise(s: Situation) -> float:
    """d G: the largest length of an estimate, (d / 2 delta) |f(x) - f(x')| with |x - x'| = 2 delta."""
    return dimension(s.domains) * needed(s, "loss.lipschitz.l2")


def _settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    r, delta = (number(settings, n, s.horizon or 1) for n in ("r", "delta"))
    largest = inner_radius(s) * (1 + 1e-12)
    small = [] if delta < r else ["delta must be less than r"]
    large = [] if r <= largest else [f"r must be the radius of a ball within the domain: at most {largest:.6g}"]
    return small + large + constant_settings(s, settings)


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """D^2 / (2 eta) + D P / eta + eta T (d G)^2 / 2 + T B, with P the comparators' path and B = delta (2 G + min(G D, W) / r).

    With F_t the mean of f_t over a ball of radius delta, the estimate has the gradient of F_t at y_t for its mean, and is no longer than
    d G (Lemma 2 of the paper has it for two points): the first three terms bound E sum F_t(y_t) - F_t(v_t) for v_t in the shrunk domain.
    B adds up f_t(x_t) - f_t(y_t), F_t(v_t) - f_t(v_t), and f_t(v_t) - f_t(u_t) for the image v_t of u_t, as in `flaxman2005`. The paper
    counts the mean of the losses at the two points; here x_t alone is played.
    """
    G, D = needed(s, "loss.lipschitz.l2"), needed(s, "domain.diameter.l2")
    width = G * D if s.loss_range is None else min(G * D, s.loss_range)

    def of_round(rounds: object, horizon: int) -> Floats:
        delta, r = (number(settings, n, horizon) for n in ("delta", "r"))
        return np.asarray(delta * (2 * G + width / r))

    def path(rounds: object, horizon: int) -> Floats:
        return np.asarray(path_length(s, horizon))

    quantities = (
        Quantity("D", "D", "diameter of the domain", D),
        Quantity("d", "d", "dimension of the domain", float(dimension(s.domains))),
        Quantity("G", "G", "bound of the gradient of the loss", G),
        Quantity("B", "B", "cost of perturbing and shrinking, a round", of_round),
        Quantity("eta", r"\eta", "step", scheduled(settings, "eta")),
        Quantity("path", r"\sum_{t>1} \|u_t - u_{t-1}\|", "path of the comparators", path),
        ROUNDS,
    )
    dynamic = s.canonical.measure is Measure.DYNAMIC
    moved = " + D * path / eta" if dynamic else ""
    formula = f"D**2 / (2 * eta){moved} + eta * T * (d * G)**2 / 2 + T * B"
    rate = "T**(1/2 + V_x)" if dynamic else "sqrt(T)"
    bound = Bound(f"{s.canonical.measure} regret", rate, formula, quantities, s.loss_range, NOTE)
    return Guarantee("Agarwal, Dekel & Xiao 2010, Theorem 1", s.horizon, bound)


TWO_POINT = Algorithm(
    name="two-point",
    title="gradient descent with two-point gradients",
    cite="Agarwal, Dekel & Xiao 2010, Algorithm 1",
    rule=TwoPointGradientDescent,
    requirements=(TWO_POINTS, INTERIOR, PROJECTION),
    reads=Feedback.TWO_POINT,
    draws=draws,
    theorems=(
        Theorem(
            name="Theorem 1",
            measures=frozenset({Measure.STATIC, Measure.DYNAMIC}),
            expected=True,
            hypotheses=(
                NO_CONSTRAINTS,
                CONVEX_LOSS,
                BOUNDED_DOMAIN,
                BOUNDED_GRADIENT,
                horizon_known("The number of rounds T is known."),
            ),
            settings=_settings,
            free=(Free("eta"),),
            positive=("eta", "delta", "r"),
            guarantee=_guarantee,
            rates={"static regret": "sqrt(T)", "dynamic regret": "T**(1/2 + V_x)"},
            checks=_settings_hold,
        ),
    ),
    cost="one projection",
    departures=(
        "x_t alone is played, and the other point is asked about; the paper plays both and counts the mean of their losses.",
        "delta is log(T + 1)/T times r, so that it is less than r for every T.",
    ),
    symbols={"y": "the decision before its perturbation"},
)
