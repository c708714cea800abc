"""Models of the loss from the values that came, where values are all that is seen: response surfaces (Box & Wilson 1951).

Estimates of a gradient from one value (`flaxman2005`) have a variance of d^2 |f|^2 / delta^2, and each serves one step. Here all values
so far are regressed on the decisions that they came of, in units z = (x - x_1) / s, s half the width of an entry of a box:

    f_t(x_t) = level_t + <slope_t, z_t> + curvature_t |z_t|^2 + noise,      theta_t = theta_{t-1} + drift.

Models k = 1..K differ in how much they take theta to drift in a round, and in how steep it may be at first, in units of the noise
(`MODELS`). Each is a dynamic linear model whose mean theta and covariance sigma^2 P follow by Kalman's filter (West & Harrison 1997,
chapter 4), two of them without drift: ridge regression. With phi = (1, z, |z|^2), Q the variances of the drift,

    R = P + Q,   V = 1 + <phi, R phi>,   e = f_t(x_t) - <theta, phi>,   theta <- theta + R phi e / V,   P <- R - R phi phi' R / V,

and sigma^2 is the mean of e^2 / V, of at most `MEMORY` rounds. Models are weighed by how likely they made the values that came, the last
ones most (Harrison & Stevens 1976, with logarithms that are forgotten as in Raftery, Karny & Ettler 2010):

    l <- KEPT l - (ln(sigma^2 V) + e^2 / (sigma^2 V)) / 2,   w ~ exp(l).

Values judge models without being played for, as every model foresees the value of what was played.

Decision. y is the point of the domain that is nearest, in z, to -slope / h: the minimizer of <slope, z> + h |z|^2 / 2 there, with the
weighted means of the models and h = max(2 curvature, sigma min(1, sqrt(P_curvature))): until it is known the curvature is taken for one of
the noise's size. x = y + delta s u for a random u on the unit sphere. Exploring costs h delta^2 / 2 a round and after n rounds teaches
the slope up to a variance of d sigma^2 / (n delta^2) an entry, which costs d^2 sigma^2 / (2 h n delta^2). With
delta^2 = c sigma d / (h sqrt(n)) the sums over T rounds are c d sigma sqrt(T) and d sigma sqrt(T) / (2 c) to the first order, least
together for c = 1/sqrt(2), and all but flat down to c = 1/2, which risks less:

    delta = min(delta_0, sqrt(sigma d / (2 h' sqrt(n)))),   h' = h + 2 |slope of the model at y| / sqrt(d),

where the second part of h' is what exploring costs at the boundary, and n is the number of rounds that count: no more than those after
which the drift of the slopes is as large as what is known of them. While values do not differ, delta = delta_0.

Nothing is promised: losses of which this is not the form can mislead it, and so can data that answer the perturbations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import BOUNDED_DOMAIN, CONVEX_LOSS, NO_CONSTRAINTS
from oco.compiler.algorithms.common import PROJECTION, ROUNDS
from oco.compiler.algorithms.perturbation import INTERIOR, dimension, direction, draws
from oco.compiler.domains import Domain
from oco.compiler.domains.base import MAX_DENSE_ORDER
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, point
from oco.compiler.proximal.solvable import ask_for_it
from oco.compiler.theory.settings import Default, Setting, number
from oco.compiler.theory.theorems import (
    Bound,
    Floats,
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

MODELS = ((0.0, 0.0, 0.3), (0.0, 0.0, 2.0), (0.1, 0.01, 2.0), (0.3, 0.03, 2.0), (0.5, 0.1, 2.0))
"""Standard deviations, in units of the noise: of the drift of the level, of slope and curvature in a round, and of the slope at first."""
CURVATURE, LEVEL = 2.0, 100.0
"""Standard deviations of the curvature and of the level at first, in units of the noise."""
KEPT, MEMORY = 0.99, 200.0
"""Share of the logarithms of likelihoods that stays each round, and rounds of which the noise is the mean."""
LARGEST = 0.3
"""delta_0, in the units of z and as a share of the inner radius: values further apart say little of the slope between them."""
JUDGED = 3
"""Rounds after which models are judged, once there is a variance of the noise to judge them by."""


class ResponseSurface:
    """`y` is the decision before its perturbation, `origin` the first one; arrays of the models have K for their first axis."""

    def init(self, p: Problem, start: Point) -> State:
        t, K, m = p.tracer, len(MODELS), 2 + p.spec.canonical.size
        delta = t.lift(1.0) * p.setting("delta") * _room(p)
        first = np.stack([np.diag([LEVEL**2, *[steep**2] * (m - 2), CURVATURE**2]) for _, _, steep in MODELS])
        return {
            "y": _into_shrunk(p, start, delta),
            "origin": start,
            "delta": delta,
            "theta": t.zeros((K, m)),
            "P": t.constant(first, "P_1", "covariances before the first round, in units of the noise"),
            "variance": t.zeros((K,)),
            "l": t.zeros((K,)),
            "n": t.lift(0.0),
        }

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "y") + array(state, "delta") * _times(p, direction(p))

    def update(self, p: Problem, state: State) -> State:
        t, origin = p.tracer, point(state, "origin")
        n = t.name("n", array(state, "n") + 1.0)
        regressed = self.regressed(p, state, n)
        w = t.exp(regressed["l"] - t.max(regressed["l"]))
        w = t.name("w", w / t.sum(w))
        theta = t.name("weighted", w @ regressed["theta"])
        own_noise, m = t.sqrt(regressed["variance"]), theta.size
        noise = t.name("noise", w @ own_noise)
        unsure = t.minimum(t.sqrt(t.maximum(regressed["P"][:, m - 1, m - 1], 0.0)), 1.0)
        slope, least = origin.of_flat(theta[1 : m - 1]), t.maximum(w @ (own_noise * unsure), TINY)
        h = t.name("h", t.maximum(2.0 * theta[m - 1], least))
        p.note("what exploring costs: the curvature, and the slope where the boundary holds the decision")
        at_y = slope + h * _over(p, point(state, "y") - origin)
        d = float(max(1, dimension(p.spec.domains)))
        cost = h + 2.0 * t.sqrt(at_y.squared_norm()) / math.sqrt(d)
        drift = w @ t.constant(np.array([own for _, own, _ in MODELS]), "drift", "of the slopes in a round")
        counted = 1.0 / t.maximum(1.0 / n, drift)
        widest = p.setting("delta") * _room(p)
        best = t.sqrt(noise * d / (2.0 * cost * t.sqrt(counted)))
        delta = t.name("delta", t.where(noise > 0.0, t.minimum(best, widest), widest))
        p.note("the minimizer of the model in the domain that leaves room for the perturbation")
        y = _into_shrunk(p, origin - _times(p, slope / h), delta)
        return {**regressed, "y": y, "origin": origin, "delta": delta, "n": n}

    def regressed(self, p: Problem, state: State, n: Value) -> dict[str, Value]:
        """State of the models after the n-th value: means, covariances, variances of the noise, logarithms of likelihoods."""
        t, x = p.tracer, self.decide(p, state)
        z = _over(p, x - point(state, "origin")).flat()
        phi = t.name("phi", t.concat(t.ones((1,)), z, t.reshape(t.sum(z * z), (1,))))
        K, m = len(MODELS), phi.size
        value, before, variance = p.loss(x), array(state, "theta"), array(state, "variance")
        p.note("Kalman's filter of each model, the first value being the level")
        theta = t.where(n > 1.5, before, t.outer(value * t.ones((K,)), t.concat(t.ones((1,)), t.zeros((m - 1,)))))
        steps = np.stack([np.diag([level**2, *[own**2] * (m - 1)]) for level, own, _ in MODELS])
        R = array(state, "P") + t.constant(steps, "Q", "variances of the drift in a round, in units of the noise")
        R_phi = t.reshape(t.reshape(R, (K * m, m)) @ phi, (K, m))
        V = t.name("V", 1.0 + t.maximum(R_phi @ phi, 0.0))
        e = t.name("e", value - theta @ phi)
        half = R_phi / t.reshape(t.sqrt(V), (K, 1))
        P = R - t.reshape(half, (K, m, 1)) * t.reshape(half, (K, 1, m))
        square = e * e / V
        p.note("what models are judged by, and the variance of the noise")
        known = t.maximum(variance, TINY)
        likely = t.where(n > JUDGED + 0.5, -0.5 * (t.log(V * known) + square / known), 0.0)
        share = 1.0 / t.minimum(t.maximum(n - 1.0, 1.0), MEMORY)
        return {
            "theta": t.name("theta", theta + R_phi * t.reshape(e / V, (K, 1))),
            "P": t.name("P", P),
            "variance": t.name("variance", variance + share * (square - variance)),
            "l": t.name("l", KEPT * array(state, "l") + likely),
        }


# Units of the domain.


def _unit(d: Domain) -> Floats:
    """s: half the width of each entry of a box; over any other set its radius over the root of its dimension, the same for all entries."""
    if d.is_box:
        half = (d.upper - d.lower) / 2
        return np.where(half > 0, half, 1.0)
    spread = d.diameter("l2") / 2 / math.sqrt(max(1, d.dimension))
    return np.full(d.shape, spread if spread > 0 else 1.0)


def _taken(d: Domain) -> float:
    """Share of the inner radius that a perturbation of s takes."""
    if d.is_box or not d.dimension:
        return float(d.dimension > 0)
    return float(_unit(d).flat[0]) / d.inner_radius


def _room(p: Problem) -> float:
    """Largest perturbation that the inner radius of every set has room for, at most 1, in units of s."""
    return 1.0 / max(1.0, *(_taken(d) for d in p.spec.domains))


def _unit_of(p: Problem, d: Domain) -> Value:
    own = _unit(d)
    if bool((own == own.flat[0]).all()):
        return p.tracer.lift(float(own.flat[0]))
    return p.tracer.constant(np.ascontiguousarray(own), "unit", "half the width of each entry")


def _times(p: Problem, z: Point) -> Point:
    """s z."""
    return Point(tuple(_unit_of(p, d) * b for d, b in zip(p.spec.domains, z.blocks, strict=True)))


def _over(p: Problem, x: Point) -> Point:
    """x / s."""
    return Point(tuple(b / _unit_of(p, d) for d, b in zip(p.spec.domains, x.blocks, strict=True)))


def _into_shrunk(p: Problem, v: Point, delta: Value) -> Point:
    """Nearest point of the domain, shrunk towards its inner centre so that it has room for perturbations of s delta."""
    t, scaled = p.tracer, list[Value]()
    parts = list(zip(p.spec.domains, v.blocks, strict=True))
    scales = [1.0 - _taken(d) * delta for d in p.spec.domains]
    centres = [
        t.constant(np.array(d.inner_centre, order="C"), "centre", "centre of a ball within the domain")
        for d, _ in parts
    ]
    for (_, b), scale, centre in zip(parts, scales, centres, strict=True):
        scaled.append(centre + (b - centre) / scale)
    inside = p.domain.project(Point(tuple(scaled)))
    shrunk = zip(inside.blocks, scales, centres, strict=True)
    return Point(tuple(centre + scale * (b - centre) for b, scale, centre in shrunk)).named(t, "y")


# The theorem that there is not.


def _values_alone(s: Situation) -> Objection | None:
    feedback = s.canonical.feedback
    if feedback is Feedback.BANDIT:
        return None
    more = "the loss at a second point" if feedback is Feedback.TWO_POINT else "gradients"
    return Objection(f"the feedback gives {more}, and it takes values alone", "write `feedback bandit`", unasked=True)


def _small(s: Situation) -> Objection | None:
    if s.canonical.size <= MAX_DENSE_ORDER:
        return None
    message = f"its regressions have a coefficient for each of {s.canonical.size} entries"
    return Objection(message, ask_for_it(f"decide on at most {MAX_DENSE_ORDER} entries"), slow=True)


VALUES_ALONE = Hypothesis("Each round reveals the value of the loss, and no more.", _values_alone)
SMALL = Hypothesis("Regressions on the entries of the decision can be kept.", _small)


def _settings(s: Situation) -> Mapping[str, Default]:
    return {
        "delta": Default(LARGEST, "largest perturbation, in half-widths of the domain, at most what it has room for")
    }


def _checks(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    """Errors in the settings: perturbations by the whole inner radius leave the decision nothing."""
    small = number(settings, "delta", s.horizon or 1) < 1
    return constant_settings(s, settings) + ([] if small else ["delta must be less than 1"])


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """Regret of any decisions, W a round; it is withheld as it says nothing."""
    width = Quantity("W", "W", "range of the loss", s.loss_range or 0.0)
    bound = Bound(f"{s.canonical.measure} regret", "T", "W * T", (width, ROUNDS), s.loss_range)
    return Guarantee("any decisions", s.horizon, bound)


def _withholds(s: Situation, settings: Mapping[str, Setting]) -> str:
    return "it takes the loss for a quadratic with noise, whose coefficients drift, and losses may be anything else"


RESPONSE_SURFACE = Algorithm(
    name="response-surface",
    title="quadratic models of the values that came",
    cite="Box & Wilson 1951; West & Harrison 1997",
    rule=ResponseSurface,
    requirements=(INTERIOR, PROJECTION, SMALL, VALUES_ALONE),
    reads=Feedback.BANDIT,
    adapts=True,
    mixes=True,
    promises=False,
    draws=draws,
    theorems=(
        Theorem(
            name="no theorem",
            measures=frozenset({Measure.STATIC, Measure.DYNAMIC}),
            expected=True,
            hypotheses=(
                NO_CONSTRAINTS,
                CONVEX_LOSS,
                BOUNDED_DOMAIN,
                fact_is_known("loss.bound", "The losses are bounded.", "the size of the loss"),
            ),
            settings=_settings,
            positive=("delta",),
            guarantee=_guarantee,
            withholds=_withholds,
            rates={},
            checks=_checks,
        ),
    ),
    cost="one projection, and five regressions on the entries of the decision",
    cost_rank=2,
    symbols={
        "y": "the decision before its perturbation",
        "origin": "the first decision, from which models count",
        "delta": "size of the perturbation, in half-widths of the domain",
        "theta": "level, slope and curvature of the loss as each model has them",
        "P": "their covariances, in units of the noise",
        "variance": "variance of the noise of each model",
        "l": "logarithms of the likelihoods of the values that came",
        "n": "rounds seen",
    },
)
