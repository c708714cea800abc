"""Hutchinson & Alizadeh 2025, "Constrained online convex optimization with Polyak feasibility steps".

Several constraints are one: g = max_k g_k. The paper's domain is a ball; the rule and its proof hold on any domain with a projection.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import BOUNDED_DOMAIN, BOUNDED_GRADIENT, CONVEX_LOSS, GRADIENTS_SEEN
from oco.compiler.algorithms.common import (
    FIXED_CONSTRAINTS,
    PROJECTION,
    ROUNDS,
    SLATER,
    SOME_INEQUALITY,
    slopes,
    unknown,
)
from oco.compiler.algorithms.wang_yan_liu2025 import INEQUALITIES_ONLY
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, point
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
    scheduled,
)
from oco.dsl.limits import LONGEST
from oco.dsl.magnitudes import SMALLEST
from oco.dsl.statements import Feedback, Measure


class PolyakFeasibility:
    """A gradient step, then the projection on the halfspace where the linearisation of g at x_t is at most -rho, then on the domain."""

    def init(self, p: Problem, start: Point) -> State:
        return {"x": start}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x = p.tracer, point(state, "x")
        g, slope = p.worst_constraint(x)
        s = slope.named(t, "s")
        move = (p.setting("eta") * p.gradient(x)).named(t, "move")
        p.note("[g(x_t) + <s, y - x_t> + rho]_+ / |s|^2 at y = x_t - eta grad f")
        violation, square = t.maximum(g - s.dot(move) + p.setting("rho"), 0.0), s.squared_norm()
        length = t.name("length", t.where(square > 0.0, violation / t.maximum(square, SMALLEST), 0.0))
        return {"x": p.domain.project(x - move - length * s)}


# The halfspace and the domain hold every point of the domain with g <= -rho, so the steps are gradient descent against those; from the
# best of them to x* it is at most rho Delta / m, with m the Slater margin.
# d_t, the distance to {g <= -rho}, is at most (g(x_t) + rho) / sigma with sigma = (m - rho) / Delta. Hence the projection on the halfspace
# takes x_t within r d_t, r^2 = 1 - sigma^2 / G_g^2, and the gradient step adds at most eta G: d_t <= r^(t-1) d_1 + eta G / (1 - r).
# Since g(x_t) <= G_g d_t - rho, with eta <= (1 - r) rho / (G_g G) a start with g(x_1) <= -rho is never followed by a violation.
REGRET = "Delta**2 / (2*eta) + eta * G**2 * T / 2 + G * rho * Delta / m * T"
VIOLATION = "N * (start + T * beyond)"


def _settings(s: Situation) -> Mapping[str, Default]:
    step = unknown(s, "lipschitz.l2")
    if not step:
        G, G_g, margin = needed(s, "loss.lipschitz.l2"), float(slopes(s).max()), s.number("slater.margin") or 0.0
        share = f"(max({margin!r} - rho, 0) / ({G_g!r} * domain.diameter.l2))"
        step = f"(1 - sqrt(1 - min({share}, 1)**2)) * rho / {G_g * G!r}"
    why = "(1 - sqrt(1 - sigma^2 / G_g^2)) rho / (G_g G), sigma = (Slater margin - rho) / diameter"
    return {
        "rho": Default("1 / sqrt(T)", "1/sqrt(T), the authors' script"),
        "eta": Default(step, why),
    }


def _margin_suffices(s: Situation) -> Objection | None:
    margin = s.number("slater.margin")
    if margin is None:
        return Objection("its step needs the Slater margin as a number", "`assume slater.margin >= ...`")
    if s.horizon is None or margin > 1 / math.sqrt(s.horizon):
        return None
    needs = 1 / margin / margin if margin > 0 else math.inf
    longer = f"write `horizon T = {math.floor(needs) + 1}` or " if needs < LONGEST else ""
    return Objection(
        f"the Slater margin {margin:.4g} does not exceed rho = 1/sqrt(T)", f"{longer}loosen the constraints"
    )


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    G, G_g, diameter = needed(s, "loss.lipschitz.l2"), float(slopes(s).max()), needed(s, "domain.diameter.l2")
    margin, worst = needed(s, "slater.margin"), s.worst_at_centre

    def contraction(horizon: int) -> tuple[float, float, float, float]:
        """eta, rho, sigma and 1 - r."""
        eta, rho = number(settings, "eta", horizon), number(settings, "rho", horizon)
        sigma = max(margin - rho, 0.0) / max(diameter, SMALLEST)
        share = min(sigma / max(G_g, SMALLEST), 1.0) ** 2
        return eta, rho, sigma, share / (1 + math.sqrt(1 - share))

    def beyond(horizon: int) -> float:
        eta, rho, _, gap = contraction(horizon)
        return max(G_g * eta * G / gap - rho * (1 + 1e-9), 0.0) if gap > 0 else math.inf

    def start(horizon: int) -> float:
        _, rho, sigma, gap = contraction(horizon)
        if worst <= -rho:
            return 0.0
        return G_g * min((worst + rho) / sigma, diameter) / gap if gap > 0 else math.inf

    quantities = (
        Quantity("Delta", r"\Delta", "diameter of the domain", diameter),
        Quantity("G", "G", "bound of the gradient of the loss", G),
        Quantity("m", "m", "Slater margin", margin),
        Quantity("N", "N", "number of constraints", float(s.constraints)),
        Quantity("eta", r"\eta", "step", scheduled(settings, "eta")),
        Quantity("rho", r"\rho", "tightening", scheduled(settings, "rho")),
        Quantity("start", r"G_g d_1 / (1 - r)", "violation until the start is left", lambda n, T: start(T)),
        Quantity("beyond", r"[G_g \eta G / (1 - r) - \rho]_+", "violation a round after", lambda n, T: beyond(T)),
        ROUNDS,
    )
    regret = Bound("static regret", "sqrt(T)", REGRET, quantities, s.loss_range)
    violation = Bound("hard violation", "1", VIOLATION, quantities, s.violation_range)
    return Guarantee("Hutchinson & Alizadeh 2025", s.horizon, regret, violation, from_centre=True)


def _settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    result, T = constant_settings(s, settings), s.horizon or 1
    rho = number(settings, "rho", T)
    result += [] if number(settings, "eta", T) > 0 else ["eta must be positive"]
    return result if 0 <= rho < needed(s, "slater.margin") else [*result, "rho must lie below the Slater margin"]


PFS = Algorithm(
    name="pfs",
    plays="x",
    title="gradient descent with Polyak feasibility steps",
    cite="Hutchinson & Alizadeh 2025",
    rule=PolyakFeasibility,
    baseline=True,
    reads=Feedback.GRADIENT,
    requirements=(SOME_INEQUALITY, INEQUALITIES_ONLY, GRADIENTS_SEEN, PROJECTION),
    theorems=(
        Theorem(
            name="regret and no violation",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.HARD,
            hypotheses=(
                FIXED_CONSTRAINTS,
                CONVEX_LOSS,
                inequalities_convex("g is convex in the decision."),
                horizon_known("The number of rounds T is known."),
                BOUNDED_DOMAIN,
                BOUNDED_GRADIENT,
                inequalities_have("bound", "g is bounded.", "the size"),
                inequalities_have("lipschitz.l2", "g is G_g-Lipschitz.", "the gradient"),
                SLATER,
                Hypothesis("The Slater margin exceeds rho.", _margin_suffices, ("slater.margin",)),
            ),
            settings=_settings,
            free=(Free("rho"), Free("eta")),
            positive=("eta",),
            guarantee=_guarantee,
            rates={"static regret": "sqrt(T)", "hard violation": "1"},
            checks=_settings_hold,
        ),
    ),
    cost="one projection",
    symbols={"x": "the decision of this round"},
)
