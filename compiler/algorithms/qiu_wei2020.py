"""Qiu & Wei 2020, "Beyond O(sqrt(T)) regret for constrained online optimization: gradual variations and mirror prox": both algorithms.

Fixed constraints that are known before the first round, smooth losses whose gradients change little, a Slater point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import BOUNDED_DOMAIN, BOUNDED_GRADIENT, CONVEX_LOSS, GRADIENTS_SEEN
from oco.compiler.algorithms.common import (
    FIXED_CONSTRAINTS,
    MIRROR_STEP,
    SLATER,
    margin_note,
    nothing_to_learn,
    slater_margin,
)
from oco.compiler.algorithms.qiu_wei2020_bounds import ProofSymbols
from oco.compiler.algorithms.wei2020 import MEAN_CONSTRAINTS
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, point
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import Default, Setting, number
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
    UnknownFact,
    Violation,
    constant_settings,
    fact_is_known,
    horizon_known,
    inequalities_convex,
    inequalities_have,
    needed,
)
from oco.dsl.expressions import changes
from oco.dsl.statements import Measure


class MirrorProx:
    """Algorithms 1 and 2 (the latter on the simplex). Erratum 1: f_0 = 0; x_0 and xt_1 are the start."""

    def init(self, p: Problem, start: Point) -> State:
        zero = p.tracer.zeros((p.constraint_count,))
        Q, alpha, c = self.duals(p, start, zero, p.tracer.lift(0.0))
        p.note("line 4 with the gradient of f_0 = 0")
        return {"x": self.step(p, start, c, alpha), "xt": start, "Q": Q, "alpha": alpha, "c": c}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        x, xt, Q, alpha, c = (
            point(state, "x"),
            point(state, "xt"),
            array(state, "Q"),
            array(state, "alpha"),
            point(state, "c"),
        )
        slope = p.gradient(x)
        p.note("line 7: the intermediate iterate, with this round's multipliers")
        xt = self.step(p, xt, slope + c, alpha)
        Q, alpha, c = self.duals(p, x, Q, alpha)
        p.note("line 4: the decision of the next round")
        return {"x": self.step(p, xt, slope + c, alpha), "xt": xt, "Q": Q, "alpha": alpha, "c": c}

    def duals(self, p: Problem, x: Point, Q: Value, alpha: Value) -> tuple[Value, Value, Point]:
        """Line 3 at x, then alpha_t of the theorem, and c_t = sum_k [Q_k + gamma g_k(x)] gamma grad g_k(x)."""
        t = p.tracer
        gamma, eta, L_f, L_g = (p.setting(n) for n in ("gamma", "eta", "L_f", "L_g"))
        G, H, rho = (p.setting(n) for n in ("G", "H", "rho"))
        g = t.name("g", p.constraints(x))
        p.note("line 3")
        Q = t.name("Q", t.maximum(-gamma * g, Q + gamma * g))
        p.note("(6)")
        xi = t.name("xi", gamma * L_g * t.sum(Q) + gamma**2 * (L_g * G + H**2))
        if entropic(p.domain.domains):
            p.note("Theorem 6.1")
            least = (3.0 * (eta * L_f**2 + gamma**2 * L_g * G) + 2.0 / eta + 3.0 * xi) / rho
        else:
            p.note("Theorem 4.1")
            least = 2.0 / rho * (gamma**2 * L_g * G + eta * L_f**2 + 1.0 / eta + xi)
        c = p.constraint_combination(x, gamma * (Q + gamma * g))
        return Q, t.name("alpha", t.maximum(least, alpha)), c

    def step(self, p: Problem, base: Point, direction: Point, alpha: Value) -> Point:
        """argmin <direction, .> + alpha D(., base); on the simplex D is taken at the mixed point."""
        if not entropic(p.domain.domains):
            return p.domain.project(base - direction / alpha)
        nu, centre = p.setting("nu"), p.domain.domains[0].centre()
        mixed = (1.0 - nu) * base + Point((nu * p.tracer.full(float(centre.flat[0]), centre.shape),))
        return p.domain.bregman_step(mixed, direction / alpha)


def entropic(domains: tuple[object, ...]) -> bool:
    """True if Algorithm 2 applies: the decision lies in one simplex."""
    return len(domains) == 1 and getattr(domains[0], "kind", "") == "simplex"


# Hypotheses.


def _inequalities(s: Situation) -> Objection | None:
    if s.equalities:
        return Objection(
            f"`{s.canonical.equalities[0].label}` is an equality, which has no Slater point",
            "drop the equality",
            drops=True,
        )
    return None if s.constraints else Objection(nothing_to_learn(s), "add a constraint, or write `using ogd`")


def _euclidean(s: Situation) -> Objection | None:
    return (
        Objection("on a simplex Theorem 6.1 speaks", "decide in a set that is no simplex")
        if entropic(s.domains)
        else None
    )


def _simplex(s: Situation) -> Objection | None:
    if entropic(s.domains) and s.size > 1 and s.domains[0].radius == 1:
        return None
    return Objection(
        "its decisions lie in the probability simplex, those of the model do not", "write `decision x[n] in simplex`"
    )


def _something_varies(s: Situation) -> Objection | None:
    """Erratum 3: V_* = L_f = 0 divides by zero in eta."""
    if (s.number("loss.smoothness.l2") or 0.0) > 0 or _variation(s) > 0:
        return None
    return Objection(
        "the loss is linear and never changes, and the settings divide by max(V_*, L_f^2) = 0",
        "minimize something that a stream or a square changes",
    )


_COMMON = (
    Hypothesis("There are K constraints g_k(x) <= 0.", _inequalities),
    MEAN_CONSTRAINTS,
    FIXED_CONSTRAINTS,
    GRADIENTS_SEEN,
    CONVEX_LOSS,
    horizon_known("The number of rounds T is known."),
    BOUNDED_DOMAIN,
    BOUNDED_GRADIENT,
    fact_is_known(
        "loss.smoothness.l2",
        "Assumption 2.1(b): the gradient of f^t is L_f-Lipschitz.",
        "how fast the gradient of the loss changes",
    ),
    inequalities_convex("Each g_k is convex."),
    inequalities_have("bound", "Assumption 2.1(c): sum_k |g_k(x)| <= G.", "the size"),
    inequalities_have(
        "smoothness.l2", "Assumption 2.1(d): the gradient of g_k is L_g-Lipschitz.", "how fast the gradient changes"
    ),
    SLATER,
    Hypothesis("The losses are not one fixed linear function.", _something_varies),
)


# Settings.


def _variation(s: Situation) -> float:
    """V_*(T) without its first term (erratum 1): from the facts, else the worst case 4 F^2 (T - 1); none for a fixed loss."""
    if not changes(s.canonical.objective):
        return 0.0
    slope = s.number("loss.lipschitz.l1" if entropic(s.domains) else "loss.lipschitz.l2")
    worst = math.inf if slope is None or s.horizon is None else 4 * slope * slope * max(s.horizon - 1, 0)
    known = s.number("variation.gradient")
    return worst if known is None else min(known, worst)


def _settings(s: Situation) -> Mapping[str, Default]:
    slope = "lipschitz.l1" if entropic(s.domains) else "lipschitz.l2"
    variation: float | str = _variation(s)
    if variation == math.inf:
        if (most := s.number(f"loss.{slope}")) is None or s.horizon is not None:
            raise UnknownFact("variation.gradient")
        variation = f"{4 * most**2!r} * (T - 1)"
    sizes, slopes, smoothnesses = (s.inequality_bounds(w) for w in ("bound", slope, "smoothness.l2"))
    results = {
        "V": Default(variation, "V_*(T): gradient variation, known or the worst case of the facts"),
        "L_f": Default("loss.smoothness.l2", "Lipschitz constant of the gradient of the loss"),
        "L_g": Default(_most(smoothnesses), "Lipschitz constant of the constraints' gradients"),
        "G": Default(_total(sizes), "bound of sum_k |g_k|"),
        "H": Default(_total(slopes), "sum of the constraints' Lipschitz constants"),
        "rho": Default(1.0, "modulus of the mirror map"),
        "eta": Default("1 / sqrt(max(V, L_f**2))", "max(V_*, L_f^2)^(-1/2) (Theorem 4.1)"),
        "gamma": Default("max(V, L_f**2)**(1/4)", "max(V_*, L_f^2)^(1/4) (Theorem 4.1)"),
    }
    return results | ({"nu": Default("1 / T", "1/T (Theorem 6.1)")} if entropic(s.domains) else {})


def _settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    """Assumption 2.1 of the constants that are given; larger ones, and a smaller modulus, only make steps shorter."""
    if results := constant_settings(s, settings):
        return results
    value = {n: number(settings, n, s.horizon or 1) for n in settings}
    slope = "lipschitz.l1" if entropic(s.domains) else "lipschitz.l2"
    sizes, slopes, smoothnesses = (s.inequality_bounds(w) for w in ("bound", slope, "smoothness.l2"))
    least = {
        "L_f": ("how fast the gradient of the loss changes", needed(s, "loss.smoothness.l2")),
        "L_g": ("how fast the gradients of the constraints change", _most(smoothnesses)),
        "G": ("the sum of |g_k|", _total(sizes)),
        "H": ("the sum of the constraints' Lipschitz constants", _total(slopes)),
    }
    results = [
        f"{name} must bound {what}: it is at least {bound:.6g}"
        for name, (what, bound) in least.items()
        if value[name] < bound * (1 - 1e-12)
    ]
    rules = {
        "rho must be at most the modulus 1 of the mirror map": value["rho"] <= 1,
        "nu must be at most 1": value.get("nu", 1.0) <= 1,
    }
    return results + [words for words, holds in rules.items() if not holds]


def _most(values: Floats | None) -> float:
    return 0.0 if values is None or not values.size else float(values.max())


def _total(values: Floats | None) -> float:
    return 0.0 if values is None else float(values.sum())


# Guarantees.


def _constants(s: Situation, settings: Mapping[str, Setting], horizon: int) -> ProofSymbols:
    on_simplex = entropic(s.domains)
    value = {name: number(settings, name, horizon) for name in settings}
    slope = needed(s, "loss.lipschitz.l1" if on_simplex else "loss.lipschitz.l2")
    squared_diameter = needed(s, "domain.diameter.l1" if on_simplex else "domain.diameter.l2") ** 2
    nu, d = value.get("nu", 0.0), s.size
    if (margin := slater_margin(s)) is None:
        raise UnknownFact("slater.margin")
    return ProofSymbols(
        eta=value["eta"],
        gamma=value["gamma"],
        L_f=value["L_f"],
        L_g=value["L_g"],
        G=value["G"],
        H=value["H"],
        F=slope,
        K=s.constraints,
        # Erratum 1: with f_0 = 0 the first round adds |grad f_1|^2 <= F^2.
        V=min(_variation(s), 4 * slope**2 * max(horizon - 1, 0)) + slope**2,
        sigma=margin,
        squared_diameter=squared_diameter,
        divergence=math.log(d / nu) if on_simplex else squared_diameter / 2,
        mixing=nu * (math.log(d) + 2 * nu) if on_simplex else 0.0,
        factor=3.0 if on_simplex else 2.0,
        rho=value["rho"],
    )


def _guarantee(s: Situation, settings: Mapping[str, Setting], theorem: str, logs: str) -> Guarantee:
    """Bounds of regret and violation; rates where no Slater margin is known."""
    numbers, note = slater_margin(s) is not None, margin_note(s).removeprefix(", ")

    def regret(rounds: Rounds, horizon: int) -> float:
        return _constants(s, settings, horizon).regret(max(rounds.n, horizon))

    def violation(rounds: Rounds, horizon: int) -> float:
        return _constants(s, settings, horizon).violation(max(rounds.n, horizon))

    B, v = (
        Quantity(
            "B",
            r"\frac{\eta}{2} V_* + \dots + \alpha_{T+1} R^2",
            "Lemma 5.4 with the bound of alpha of Lemma 5.3",
            regret,
        ),
        Quantity(
            "v", r"\sqrt{K} \|Q(T+1)\|_2 / \gamma", "Lemma 5.5 with the bound of the queue of Lemma 5.3", violation
        ),
    )
    return Guarantee(
        theorem,
        s.horizon,
        Bound("static regret", f"sqrt(V_star){logs}", "B" if numbers else "", (B,), s.loss_range, note),
        Bound("soft violation", "log(T)" if logs else "1", "v" if numbers else "", (v,), s.violation_range, note),
    )


def _euclidean_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    return _guarantee(s, settings, "Qiu & Wei 2020, Theorems 4.1 and 4.2", "")


def _simplex_guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    return _guarantee(s, settings, "Qiu & Wei 2020, Theorems 6.1 and 6.2", " * log(T * d)**2")


MIRROR_PROX = Algorithm(
    name="mirror-prox",
    title="online primal-dual mirror prox",
    cite="Qiu & Wei 2020, Algorithms 1 and 2",
    rule=MirrorProx,
    requirements=(MIRROR_STEP,),
    theorems=(
        Theorem(
            name="Theorems 4.1 and 4.2",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.SOFT,
            hypotheses=(
                *_COMMON,
                Hypothesis("The mirror map is that of the Euclidean norm.", _euclidean),
                inequalities_have("lipschitz.l2", "Assumption 2.1(c): g_k is H_k-Lipschitz.", "the gradient"),
            ),
            settings=_settings,
            free=(Free("eta"), Free("gamma")),
            positive=("eta", "gamma", "rho"),
            guarantee=_euclidean_guarantee,
            rates={"static regret": "sqrt(V_star)", "soft violation": "1"},
            checks=_settings_hold,
        ),
        # Theorems 6.1 and 6.2 say Algorithm 1 and mean Algorithm 2 (erratum 2).
        Theorem(
            name="Theorems 6.1 and 6.2",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.SOFT,
            hypotheses=(
                *_COMMON,
                Hypothesis("Decisions lie in the probability simplex.", _simplex),
                inequalities_have("lipschitz.l1", "Assumption 2.1(c): g_k is H_k-Lipschitz in l1.", "the gradient"),
            ),
            settings=_settings,
            free=(Free("eta"), Free("gamma")),
            norm="l1",
            restart=Restart.FROM_CENTRE,
            positive=("eta", "gamma", "rho", "nu"),
            guarantee=_simplex_guarantee,
            rates={"static regret": "sqrt(V_star) * log(T * d)**2", "soft violation": "log(T)"},
            checks=_settings_hold,
        ),
    ),
    cost="two mirror steps",
    symbols={
        "x": "the decision of this round",
        "xt": "the intermediate iterate",
        "Q": "multipliers of the constraints",
        "alpha": "weight of the divergence",
        "c": "the constraints' part of the direction",
    },
)
