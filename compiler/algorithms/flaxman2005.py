"""Flaxman, Kalai & McMahan 2005, "Online convex optimization in the bandit setting": gradient descent with one-point gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import (
    BOUNDED_DOMAIN,
    BOUNDED_GRADIENT,
    CONVEX_LOSS,
    NO_CONSTRAINTS,
)
from oco.compiler.algorithms.common import PROJECTION, ROUNDS, loss_ends
from oco.compiler.algorithms.perturbation import (
    INTERIOR,
    dimension,
    draws,
    estimate,
    inner_radius,
    into_shrunk,
    perturbed,
)
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, point
from oco.compiler.theory.moves import path_length
from oco.compiler.theory.settings import Default, Setting, number
from oco.compiler.theory.theorems import (
    Bound,
    Floats,
    Free,
    Guarantee,
    Hypothesis,
    Quantity,
    Situation,
    Theorem,
    constant_settings,
    fact_is_known,
    horizon_known,
    needed,
    scheduled,
)
from oco.dsl.magnitudes import SMALLEST
from oco.dsl.statements import Feedback, Measure

Bias = Callable[[Situation, float, float], float]
Choose = Callable[[Situation], Mapping[str, Default]]

NOTE = "in expectation, for data that does not answer the perturbations"


class BanditGradientDescent:
    """x_t = y_t + delta u_t, and y_{t+1} = P(y_t - eta (d / delta) (f_t(x_t) - baseline) u_t) over the domain shrunk by 1 - delta / r.

    The baseline leaves the estimates unbiased, as u_t has mean zero, and makes them smaller: the paper's is 0.
    """

    def init(self, p: Problem, start: Point) -> State:
        return {"y": into_shrunk(p, start)}

    def decide(self, p: Problem, state: State) -> Point:
        return perturbed(p, point(state, "y"))

    def update(self, p: Problem, state: State) -> State:
        y, x = point(state, "y"), self.decide(p, state)
        gradient = estimate(p, p.loss(x) - p.setting("baseline"))
        return {"y": into_shrunk(p, y - p.setting("eta") * gradient)}


def _range(s: Situation) -> float:
    low, high = loss_ends(s)
    return max(high - low, 0.0) if s.loss_range is None else s.loss_range


def _bias(s: Situation, delta: float, r: float) -> float:
    """Regret of a round that perturbing and shrinking cost where gradients are bounded: delta (2 G + min(G D, W) / r)."""
    G, D = needed(s, "loss.lipschitz.l2"), needed(s, "domain.diameter.l2")
    return delta * (2 * G + min(G * D, _range(s)) / r)


def _bias_of_bounded(s: Situation, delta: float, r: float) -> float:
    """Bias of a round by convexity alone: 2 W r / r_in + delta W / r, with r_in the inner radius of the domain.

    In the domain shrunk by 1 - delta / r a loss changes by at most W r |x - y| / (delta r_in) (Observation 3.2).
    """
    return _range(s) * (2 * r / inner_radius(s) + delta / r)


def _common_settings(s: Situation, r: float | str, delta: str, why: str) -> Mapping[str, Default]:
    ratio = needed(s, "domain.diameter.l2") / max(_noise(s), SMALLEST) or 1.0  # of a point any step is the best
    return {
        "baseline": Default(_baseline(s), "middle of the losses' range: the least bound of |f_t(x) - baseline|"),
        "r": Default(r, "radius of a ball within the domain"),
        "delta": Default(delta, why),
        "eta": Default(f"{ratio!r} * delta / sqrt(T)", "D delta / (d C sqrt(T)), Theorem 3.3"),
    }


def _baseline(s: Situation) -> float:
    low, high = loss_ends(s)
    return low + (high - low) / 2


def _size(s: Situation, baseline: float) -> float:
    """C: bound of |f_t(x) - baseline|."""
    low, high = loss_ends(s)
    return max(high - baseline, baseline - low)


def _noise(s: Situation) -> float:
    """d C of the default baseline."""
    return dimension(s.domains) * _size(s, _baseline(s))


def _settings(s: Situation) -> Mapping[str, Default]:
    r, D = inner_radius(s), needed(s, "domain.diameter.l2")
    slope = _bias(s, 1.0, r)
    widest = math.sqrt(D * _noise(s) / slope) if min(slope, D * _noise(s)) > 0 else math.inf
    why = "T^(-1/4) times the constant of the least bound, at most r/2"
    return _common_settings(s, r, _at_most(widest, "T**(1/4)", r / 2), why)


def _settings_of_bounded(s: Situation) -> Mapping[str, Default]:
    r, W, D = inner_radius(s), _range(s), needed(s, "domain.diameter.l2")
    widest = (D * _noise(s) * math.sqrt(r / 2) / W) ** (2 / 3) if min(W, D * _noise(s)) > 0 else math.inf
    why = "T^(-1/3) times the constant of the least bound, at most an eighth of the inner radius"
    root = math.sqrt(widest * r / 2) if math.isfinite(widest) else math.inf
    return _common_settings(s, _at_most(root, "T**(1/6)", r / 4), _at_most(widest, "T**(1/3)", r / 8), why)


def _at_most(constant: float, power: str, most: float) -> str:
    """Formula of the less of constant / power and a number."""
    return f"min({constant!r} / {power}, {most!r})" if math.isfinite(constant) else repr(most)


def _settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    r, delta = (number(settings, n, s.horizon or 1) for n in ("r", "delta"))
    largest = inner_radius(s) * (1 + 1e-12)
    small = [] if delta < r else ["delta must be less than r"]
    large = [] if r <= largest else [f"r must be the radius of a ball within the domain: at most {largest:.6g}"]
    return small + large + constant_settings(s, settings)


def _guarantee(s: Situation, settings: Mapping[str, Setting], theorem: str, power: str, bias: Bias) -> Guarantee:
    """D^2 / (2 eta) + D P / eta + eta T (d C / delta)^2 / 2 + T B, with P the comparators' path and B the bias of a round.

    With F_t the mean of f_t over a ball of radius delta, E g_t is the gradient of F_t at y_t and E |g_t|^2 <= (d C / delta)^2, so the
    first three terms bound E sum F_t(y_t) - F_t(v_t) for v_t in the shrunk domain (Zinkevich's Theorem 2). By convexity f_t <= F_t.
    B adds up f_t(x_t) - f_t(y_t), F_t(v_t) - f_t(v_t), and f_t(v_t) - f_t(u_t) for the image v_t of u_t in the shrunk domain: at most
    G delta, G delta, and the less of G D delta / r and W delta / r. The shrunk domain and its paths are no larger than the domain's.
    """

    def of_baseline(rounds: object, horizon: int) -> Floats:
        return np.asarray(_size(s, number(settings, "baseline", horizon)))

    def of_round(rounds: object, horizon: int) -> Floats:
        return np.asarray(bias(s, *(number(settings, n, horizon) for n in ("delta", "r"))))

    def path(rounds: object, horizon: int) -> Floats:
        return np.asarray(path_length(s, horizon))

    quantities = (
        Quantity("D", "D", "diameter of the domain", needed(s, "domain.diameter.l2")),
        Quantity("d", "d", "dimension of the domain", float(dimension(s.domains))),
        Quantity("C", "C", "bound of |f_t(x) - baseline|", of_baseline),
        Quantity("B", "B", "cost of perturbing and shrinking, a round", of_round),
        Quantity("eta", r"\eta", "step", scheduled(settings, "eta")),
        Quantity("delta", r"\delta", "size of the perturbations", scheduled(settings, "delta")),
        Quantity("path", r"\sum_{t>1} \|u_t - u_{t-1}\|", "path of the comparators", path),
        ROUNDS,
    )
    dynamic = s.canonical.measure is Measure.DYNAMIC
    moved = " + D * path / eta" if dynamic else ""
    formula = f"D**2 / (2 * eta){moved} + eta * T * (d * C / delta)**2 / 2 + T * B"
    rate = f"T**({power} + V_x)" if dynamic else f"T**({power})"
    bound = Bound(f"{s.canonical.measure} regret", rate, formula, quantities, s.loss_range, NOTE)
    return Guarantee(f"Flaxman, Kalai & McMahan 2005, {theorem}", s.horizon, bound)


_HYPOTHESES = (
    NO_CONSTRAINTS,
    CONVEX_LOSS,
    BOUNDED_DOMAIN,
    fact_is_known("loss.bound", "The losses are bounded: |f_t(x)| <= C.", "the size of the loss"),
    horizon_known("The number of rounds T is known."),
)


def _theorem(name: str, power: str, hypotheses: tuple[Hypothesis, ...], settings: Choose, bias: Bias) -> Theorem:
    return Theorem(
        name=name,
        measures=frozenset({Measure.STATIC, Measure.DYNAMIC}),
        expected=True,
        hypotheses=hypotheses,
        settings=settings,
        free=(Free("eta"), Free("delta", 0.01, 100)),
        positive=("eta", "delta", "r"),
        guarantee=lambda s, given: _guarantee(s, given, name, power, bias),
        rates={"static regret": f"T**({power})", "dynamic regret": f"T**({power} + V_x)"},
        checks=_settings_hold,
    )


BGD = Algorithm(
    name="bgd",
    title="bandit gradient descent",
    cite="Flaxman, Kalai & McMahan 2005",
    rule=BanditGradientDescent,
    requirements=(INTERIOR, PROJECTION),
    reads=Feedback.BANDIT,
    draws=draws,
    theorems=(
        _theorem("Theorem 3.3", "3/4", (*_HYPOTHESES, BOUNDED_GRADIENT), _settings, _bias),
        _theorem("Theorem 3.1", "5/6", _HYPOTHESES, _settings_of_bounded, _bias_of_bounded),
    ),
    cost="one projection",
    departures=("From each loss `baseline` is taken off before it is made an estimate; the paper takes off nothing.",),
    symbols={"y": "the decision before its perturbation"},
)
