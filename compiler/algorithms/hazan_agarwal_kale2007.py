"""Hazan, Agarwal & Kale 2007 (Machine Learning 69): online Newton step for exp-concave losses, with scales that are observed.

    A_t = A_{t-1} + gamma_t g_t g_t',   gamma_t = min(gamma, 0.8 / (D max_{s <= t} |g_s|)),   S_t = sum_{s <= t} |g_s|^2,
    x_{t+1} = argmin over X of <g_t, x> + (eps_t |x - x_t|^2 + |x - x_t|_{A_t}^2) / 2,   eps_t = min(n / (gamma_t D_s^2), sqrt(S_t) / D_s)

g_t: the part of grad f_t(x_t) parallel to the affine hull of X, whose dimension is n; D: diameter of X, D_s the setting. The paper has
gamma_t = min(gamma, 1 / (8 G D)) with a declared G and eps = 1 / (gamma D)^2; its regret is 5 (1 / theta + G D) n log T.

Theorem. Let f_t be theta-exp-concave, exp(-theta f_t) concave, and gamma <= theta / 2. For every u in X

    sum_t f_t(x_t) - f_t(u) <= n / (2 gamma_T) (D^2 / D_s^2 + 2 + ln(gamma_1 / gamma_T + gamma_1^2 D_s^2 S_T / n^2)).

Proof. As 2 gamma_t <= theta, exp(-2 gamma_t f_t) is concave, so f_t(u) >= f_t(x_t) - ln(1 - z) / (2 gamma_t), z = 2 gamma_t <g_t, u - x_t>.
z >= -2 gamma_t D |g_t| >= -1.6, and -ln(1 - z) >= z + z^2 / 4 there, so f_t(x_t) - f_t(u) <= <g_t, x_t - u> - gamma_t <g_t, x_t - u>^2 / 2.
With B_t = eps_t I + A_t and |v|_B^2 = <v, B v> the step gives <g_t, x_t - u> <= <g_t, B_t^-1 g_t> / 2 + (|x_t - u|^2 - |x_{t+1} - u|^2) / 2
in the norm of B_t. As B_t - B_{t-1} = (eps_t - eps_{t-1}) I + gamma_t g_t g_t', the distances add up to at most
eps_T D^2 / 2 + sum gamma_t <g_t, x_t - u>^2 / 2, whose second part cancels, and eps_T <= n / (gamma_T D_s^2). In rounds with
eps_t = sqrt(S_t) / D_s the first term is at most D_s |g_t|^2 / (2 sqrt(S_t)), together D_s sqrt(S_t) <= n / gamma_T of the last of them.
In the others it is at most (ln det B_t - ln det(B_t - gamma_t g_t g_t')) / (2 gamma_T). These telescope from the first of them, where
eps_t >= n / (gamma_1 D_s^2), to det B_T <= (eps_T + gamma_1 S_T / n)^n.

While gradients are small beside the curvature, eps_t is AdaGrad's, and so are the steps.

Where the loss is curved through data (`curvature_steps`) and revealed, and the domain is no simplex, the size of the domain says little
about steps: eps_t is then lambda_t = max_{s <= t} <g_s, hess f_s(x_s) g_s> / |g_s|^2 at least, with which no step along g_t alone goes
beyond the minimum of a quadratic f_t. In the proof the distances add lambda_T D^2 / 2, and det B_T <= (eps_T + gamma_1 S_T / n)^n has
gamma_1 D_s^2 lambda_T / n beside the others in the logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import (
    BOUNDED_DOMAIN,
    BOUNDED_GRADIENT,
    CONVEX_LOSS,
    GRADIENTS_SEEN,
    NO_CONSTRAINTS,
)
from oco.compiler.algorithms.common import PROJECTION, ROUNDS
from oco.compiler.algorithms.curvature_steps import curved_through_data
from oco.compiler.domains.base import MAX_DENSE_ORDER
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined, point
from oco.compiler.lowering.significance import significant
from oco.compiler.problem.canonical import Canonical
from oco.compiler.proximal.norm_step import NormStep
from oco.compiler.proximal.solvable import ask_for_it
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
    constant_settings,
    needed,
)
from oco.dsl.magnitudes import TINY
from oco.dsl.statements import Feedback, Measure

CURVATURE = "C"
STEEPEST = 0.8
"""gamma D |g| at most: -ln(1 - z) >= z + z^2 / 4 for z >= -1.6."""


class OnlineNewton:
    """`x` is the decision, `A` the weighted sum of g g', `S` the sum of |g|^2, `M` the largest |g|."""

    def init(self, p: Problem, start: Point) -> State:
        t, d = p.tracer, p.spec.canonical.size
        curved = {CURVATURE: t.lift(0.0)} if _by_curvature(p.spec.canonical) else {}
        return joined({"x": start, "A": t.zeros((d, d)), "S": t.lift(0.0), "M": t.lift(0.0)}, curved)

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        t, x, D = p.tracer, point(state, "x"), p.setting("D")
        g = significant(t, _within_hull(p, p.gradient(x))).named(t, "g")
        square = g.squared_norm()
        S = t.name("S", array(state, "S") + square)
        M = t.name("M", t.maximum(array(state, "M"), t.sqrt(square)))
        diameter = math.sqrt(sum(d.diameter("l2") ** 2 for d in p.spec.domains))
        gamma = t.name("gamma", t.minimum(p.setting("gamma"), STEEPEST / t.maximum(diameter * M, TINY)))
        n = float(max(1, sum(d.dimension for d in p.spec.domains)))
        eps = t.name("eps", t.maximum(t.minimum(n / (gamma * D * D), t.sqrt(S) / D), TINY))
        flat, curved = g.flat(), dict[str, Value]()
        if CURVATURE in state:
            along = t.sum(flat * (p.loss_hessian(x) @ flat)) / t.maximum(square, TINY)
            curved[CURVATURE] = t.name("steepest", t.maximum(array(state, CURVATURE), along))
            eps = t.name("eps", t.maximum(eps, curved[CURVATURE]))
        A = t.name("A", array(state, "A") + gamma * t.outer(flat, flat))
        p.note("the step in the norm of eps I + A")
        return {"x": NormStep(p, x, g, 0.5 * eps, A).solved(), "A": A, "S": S, "M": M, **curved}


def _by_curvature(canonical: Canonical) -> bool:
    """True where steps are limited by the loss's curvature along its gradients, which rounds have to reveal."""
    full = canonical.feedback is Feedback.FULL
    return full and curved_through_data(canonical) and not any(b.domain.is_simplex for b in canonical.blocks)


def _within_hull(p: Problem, g: Point) -> Point:
    """Part of the gradient that is parallel to the affine hull of the domain."""
    t, parts = p.tracer, list[Value]()
    for d, b in zip(p.spec.domains, g.blocks, strict=True):
        rows, _ = d.affine_hull()
        if not len(rows):
            parts.append(b)
            continue
        normal = t.constant(np.linalg.qr(rows.T)[0].T, "normal", f"orthonormal rows that are constant over {d}")
        parts.append(b - d.shaped(t, (normal @ d.flat(t, b)) @ normal))
    return Point(tuple(parts))


# The theorem.


def _exp_concave(s: Situation) -> Objection | None:
    if (s.number("loss.exp_concavity") or 0.0) > 0:
        return None
    fix = "losses such as `-log(r @ x)`, squares and `logistic` of one affine function are, or `assume loss.exp_concavity >= ...`"
    return Objection("the loss is not known to be exp-concave", fix)


def _small(s: Situation) -> Objection | None:
    if s.canonical.size <= MAX_DENSE_ORDER:
        return None
    message = f"it solves systems of the size of the decision, {s.canonical.size} entries"
    return Objection(message, ask_for_it(f"decide on at most {MAX_DENSE_ORDER} entries"), slow=True)


EXP_CONCAVE = Hypothesis("exp(-theta f_t) is concave.", _exp_concave, ("loss.exp_concavity",))
SMALL = Hypothesis("Systems of the size of the decision can be solved.", _small)


def _settings(s: Situation) -> Mapping[str, Default]:
    return {
        "gamma": Default("loss.exp_concavity / 2", "theta / 2, Hazan, Agarwal & Kale 2007, Lemma 3"),
        "D": Default("domain.diameter.l2", "diameter of the domain"),
    }


def _checks(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    """Errors in the settings: gamma above theta / 2 is not what the theorem is about."""
    errors = constant_settings(s, settings)
    if not errors and number(settings, "gamma", s.horizon or 1) > needed(s, "loss.exp_concavity") / 2 * (1 + 1e-12):
        errors.append("gamma must be at most half of loss.exp_concavity")
    return errors


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    diameter, slope = needed(s, "domain.diameter.l2"), needed(s, "loss.lipschitz.l2")
    gamma, guess = number(settings, "gamma", s.horizon or 1), number(settings, "D", s.horizon or 1)
    least = min(gamma, STEEPEST / (diameter * slope)) if diameter * slope > 0 else gamma
    n = float(max(1, sum(d.dimension for d in s.domains)))
    quantities: tuple[Quantity, ...] = (
        Quantity("n", "n", "dimension of the domain", n),
        Quantity("least", r"\gamma_T", "min(theta / 2, 0.8 / (G D))", least),
        Quantity("gamma", r"\gamma_1", "theta / 2", gamma),
        Quantity("G", "G", "bound of the gradient", slope),
        Quantity("D", "D", "diameter of the domain", diameter),
        Quantity("guess", "D_s", "diameter as the settings have it", guess),
        ROUNDS,
    )
    inside, more = "gamma / least + gamma**2 * guess**2 * G**2 * T / n**2", ""
    if _by_curvature(s.canonical):
        quantities += (Quantity("L", "L", "bound of the second derivatives", needed(s, "loss.smoothness.l2")),)
        inside, more = f"{inside} + gamma * guess**2 * L / n", " + L * D**2 / 2"
    formula = f"n / (2 * least) * (D**2 / guess**2 + 2 + log({inside})){more}"
    bound = Bound("static regret", "d * log(T)", formula, quantities, s.loss_range)
    return Guarantee("Hazan, Agarwal & Kale 2007, with the steps of this module", s.horizon, bound)


ONS = Algorithm(
    name="ons",
    title="online Newton step",
    cite="Hazan, Agarwal & Kale 2007",
    rule=OnlineNewton,
    adapts=True,
    requirements=(PROJECTION, SMALL),
    theorems=(
        Theorem(
            name="Theorem 2",
            measures=frozenset({Measure.STATIC}),
            hypotheses=(NO_CONSTRAINTS, GRADIENTS_SEEN, CONVEX_LOSS, EXP_CONCAVE, BOUNDED_DOMAIN, BOUNDED_GRADIENT),
            settings=_settings,
            free=(Free("D", 1 / 16, 4),),
            positive=("gamma", "D"),
            guarantee=_guarantee,
            rates={"static regret": "d * log(T)"},
            checks=_checks,
        ),
    ),
    cost="one step in the norm of a matrix: some systems of the size of the decision",
    cost_rank=2,
    departures=(
        "scales of the gradients that came in the place of declared ones, and AdaGrad's regularisation while that is less",
    ),
    symbols={
        "x": "the decision of this round",
        "A": "the weighted sum of the gradients' outer products",
        "S": "sum of the squared gradients",
        "M": "the largest gradient",
        CURVATURE: "the largest second derivative along a gradient",
    },
)
