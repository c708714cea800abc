"""Wang, Wan & Zhang 2025, Algorithms 3 and 4: only the values of the loss and of the constraints at the decision are seen.

Decisions are perturbed, x_t = y_t + delta u_t with a random direction u_t, and y_t changes after each block of K rounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from oco.compiler.algorithms.base import Algorithm
from oco.compiler.algorithms.classic import STRONGLY_CONVEX
from oco.compiler.algorithms.perturbation import (
    INTERIOR,
    draws,
    estimate,
    inner_centre,
    inner_radius,
    into_shrunk,
    perturbed,
    shrunk,
)
from oco.compiler.algorithms.wang_wan_zhang2025 import (
    BASIC,
    SOMETHING_TO_LEARN,
    constants,
    doublings,
    exact_step,
    largest_slope,
    settings_bound,
    surrogate_weights,
    violation_size,
)
from oco.compiler.algorithms.wang_wan_zhang2025_bandit_bounds import (
    ConvexProof,
    convex_guarantee,
    strong_guarantee,
)
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Structured, if_over
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, point
from oco.compiler.theory.settings import Default, Setting, number
from oco.compiler.theory.theorems import (
    Free,
    Situation,
    Theorem,
    Violation,
    fact_is_known,
    needed,
)
from oco.dsl.statements import Feedback, Measure

MOST_STEPS = 1_000_000  # of a block, where a given epsilon is too small for floating point


class BanditFrankWolfe:
    """Algorithm 3. y_b is the decision of the first block with this guess, S the sum in (23), V that of this block's estimates.

    S and V are in units of guess 2^k, with k as of this round; k_b is k as of the last block. Erratum 16: the guess is doubled when it
    is too small for some round of the block; rounds after the last full block are played without an update.
    """

    def init(self, p: Problem, start: Point) -> State:
        y, zero, none = into_shrunk(p, start), 0.0 * start, p.tracer.lift(0.0)
        return {"y": y, "y_b": y, "S": zero, "V": zero, "Q": none, "k": none, "k_b": none}

    def decide(self, p: Problem, state: State) -> Point:
        return perturbed(p, point(state, "y"))

    def update(self, p: Problem, state: State) -> State:
        t, y, before = p.tracer, point(state, "y"), array(state, "k")
        x, g_plus, Q = played(p, state)
        k = doublings(p, Q, before)
        p.note("(6), (21): the surrogate loss, in units of guess 2^k, and its one-point gradient")
        of_loss, of_constraint = surrogate_weights(p, Q, k)
        value = of_loss * p.loss(x) + of_constraint * g_plus
        V = (t.exp((before - k) * math.log(2.0)) * point(state, "V") + estimate(p, value)).named(t, "V")

        def next_block() -> tuple[Structured, ...]:
            anew = t.name("anew", k > array(state, "k_b"))
            y_b = y.map(lambda a, b: t.where(anew, a, b), point(state, "y_b"))
            S = point(state, "S").map(lambda a: t.where(anew, t.zeros(a.shape), a)) + V
            return self.refined(p, y, y_b, S), y_b, S, 0.0 * V, k

        def same_block() -> tuple[Structured, ...]:
            return y, state["y_b"], state["S"], V, state["k_b"]

        result = if_over(t, block_is_full(p), next_block, same_block)
        return dict(zip(("y", "y_b", "S", "V", "k_b"), result)) | {"Q": Q, "k": k}

    def refined(self, p: Problem, y: Point, y_b: Point, S: Point) -> Point:
        """Lines 13 to 18: Frank-Wolfe on F = eta <S, y> + |y - y_b|^2 until its gap is at most epsilon."""
        t, epsilon = p.tracer, p.setting("epsilon")
        p.note("(22): eta = c D / (d M G_k T^(3/4))")
        scale = p.spec.canonical.size * p.horizon**0.75
        pull = (p.setting("c") * p.setting("D") / (p.setting("M") * scale) * S).named(t, "pull")

        def step(steps: Value, gap: Value, *blocks: Value) -> tuple[Value, ...]:
            z = Point(blocks)
            moved, gap = frank_wolfe_step(p, z, pull + 2.0 * (z - y_b), t.lift(1.0))
            return steps + 1, gap, *moved.blocks

        def goes_on(steps: Value, gap: Value, *blocks: Value) -> Value:
            return t.and_(gap > epsilon, steps < MOST_STEPS)

        return Point(tuple(t.while_(goes_on, step, (0, math.inf, *y.blocks))[2:]))


class StronglyConvexBanditFrankWolfe:
    """Algorithm 4. S is the sum of the blocks' estimates in (27), Y that of their decisions, V the sum of this block's estimates."""

    def init(self, p: Problem, start: Point) -> State:
        y, zero = into_shrunk(p, start), 0.0 * start
        return {"y": y, "S": zero, "Y": zero, "V": zero, "Q": p.tracer.lift(0.0)}

    def decide(self, p: Problem, state: State) -> Point:
        return perturbed(p, point(state, "y"))

    def update(self, p: Problem, state: State) -> State:
        t, y, beta = p.tracer, point(state, "y"), p.setting("beta")
        x, g_plus, Q = played(p, state)
        p.note("(6), (21): the surrogate loss with Phi'(x) = 2 x, and its one-point gradient")
        value = p.setting("gamma") * beta * p.loss(x) + 2.0 * beta * Q * beta * g_plus
        V = (point(state, "V") + estimate(p, value)).named(t, "V")

        def next_block() -> tuple[Structured, ...]:
            S, Y = point(state, "S") + V, point(state, "Y") + y
            return self.refined(p, y, S, Y), S, Y, 0.0 * V

        def same_block() -> tuple[Structured, ...]:
            return y, state["S"], state["Y"], V

        result = if_over(t, block_is_full(p), next_block, same_block)
        return dict(zip(("y", "S", "Y", "V"), result)) | {"Q": Q}

    def refined(self, p: Problem, y: Point, S: Point, Y: Point) -> Point:
        """Lines 9 to 14: L Frank-Wolfe steps on F = <S, y> + gamma beta alpha_f / 2 K sum_tau |y - y_tau|^2 over the blocks.

        Erratum 15: (27) has t |y|^2 instead and its minimizer tends to half the one that is sought: center = "origin".
        """
        t, m = p.tracer, p.played / block_length(p)
        if p.word("center") == "origin":
            Y = m * (inner_centre(p) or 0.0 * y)
        modulus = t.name("modulus", p.setting("gamma") * p.setting("beta") * p.setting("alpha_f") * block_length(p))

        def step(i: Value, *blocks: Value) -> tuple[Value, ...]:
            z = Point(blocks)
            return frank_wolfe_step(p, z, S + modulus * (m * z - Y), modulus * m / 2.0)[0].blocks

        return Point(t.for_(p.count("L"), step, y.blocks))


# Parts of both rules.


def played(p: Problem, state: State) -> tuple[Point, Value, Value]:
    """The decision of this round, g_t^+ there, and the violation so far (4)."""
    t, x = p.tracer, perturbed(p, point(state, "y"))
    g_plus = t.name("g_plus", t.maximum(t.max(p.constraints(x)), 0.0))
    return x, g_plus, t.name("Q", array(state, "Q") + g_plus)


def block_length(p: Problem) -> Value | float:
    """K, at least one round."""
    return p.count_of("K")


def block_is_full(p: Problem) -> Value:
    """True if this round is the last of its block."""
    return p.tracer.eq(p.tracer.mod(p.played, block_length(p)), 0.0)


def frank_wolfe_step(p: Problem, y: Point, slope: Point, curvature: Value) -> tuple[Point, Value]:
    """(24) to (26): the next point and the gap <slope, y - v> before the step; F bends as curvature |y|^2."""
    d = shrunk(p, p.domain.lmo(slope)) - y
    return y + exact_step(p, slope, d, curvature) * d, p.tracer.name("gap", -slope.dot(d))


# Hypotheses.

_BASIC = (
    *BASIC,
    fact_is_known(
        "loss.bound",
        "Assumption 3: |f_t(x)| <= M.",
        "the size of the loss",
    ),
)


# Settings.


def _convex_settings(s: Situation) -> Mapping[str, Default]:
    size = needed(s, "loss.bound") or violation_size(s) or 1.0
    return constants(s) | {
        "M": Default(size, "bound of the loss (Assumption 3)"),
        "r": Default(inner_radius(s), "radius of a ball within the domain (Assumption 1)"),
        "c": Default(
            "min(sqrt(d*M*D / (D/r + 3 + 2*D/(d*M))), r * T**(1/4) / 2)",
            "the constant that Theorem 3 leaves free: least C_2, and delta at most r/2",
        ),
        "delta": Default("c / T**(1/4)", "c T^(-1/4) (Theorem 3)"),
        "K": Default("floor(sqrt(T) + 1/2)", "sqrt(T), rounded (Theorem 3)"),
        "epsilon": Default("4 * D**2 / sqrt(T)", "4 D^2/sqrt(T) (Theorem 3)"),
        "beta": Default("1 / (16 * G * (c*D/r + 3*c + 1 + 2*c*D/(d*M) + d*M*D/c))", "1/C_2 (Theorem 3)"),
        "gamma": Default(1, "1 (Theorem 3)"),
        "guess": Default(1, "1 (Algorithm 3, line 1)"),
        "rate": Default("1 / (2 * T**(3/4))", "of Phi(x) = exp(x / (2 T^(3/4))) - 1 (Theorem 3)"),
    }


def _strong_settings(s: Situation) -> Mapping[str, Default]:
    # Erratum 14: Theorem 4 prints beta = 1 / (G D T^(2/3)) and two different gamma; its proof uses beta = 1 and this gamma.
    G, D = repr(largest_slope(s)), "domain.diameter.l2"
    # Its proof has M for a bound of the surrogate loss, which grows with the queue: what StrongProof.load needs may be more.
    sizes = s.inequality_bounds("bound")
    F = 0.0 if sizes is None else float(sizes.max())
    needs = f"12*beta*(1 + log(T/K)) * (({s.size}*{F!r}/delta)**2 + K*{G}**2)"
    C_3 = f"(8 + 3*delta*T**(1/3) + delta*T**(1/3)*{D}/r + 12*{D})"
    rounded = Default("floor(T**(2/3) + 1/2)", "T^(2/3), rounded (Theorem 4)")
    return {
        "alpha_f": Default("loss.strong_convexity.l2", "modulus of strong convexity"),
        "r": Default(inner_radius(s), "radius of a ball within the domain (Assumption 1)"),
        "delta": Default("r / T**(1/3)", "c T^(-1/3) with c = r (Theorem 4)"),
        **dict.fromkeys(("K", "L"), rounded),
        "beta": Default(1, "1 (proof of Theorem 4)"),
        "gamma": Default(
            f"max(16 * (8*log(T)/3 + {C_3}) * {G}**2 * T**(2/3), {needs}) / alpha_f",
            "16 (8 log T^(1/3) + C_3) G^2 T^(2/3) / alpha_f (proof of Theorem 4), or more where the queue needs it",
        ),
        "center": Default("iterates", "about the iterates, as the proof needs (erratum 15)"),
    }


def _perturbation_holds(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    r, delta = (number(settings, n, s.horizon or 1) for n in ("r", "delta"))
    largest, small = inner_radius(s) * (1 + 1e-12), [] if delta < r else ["delta must be less than r"]
    large = [] if r <= largest else [f"r must be the radius of a ball within the domain: at most {largest:.6g}"]
    return large + small + settings_bound(s, settings)


def _strong_settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    alpha_f, modulus = number(settings, "alpha_f", s.horizon or 1), needed(s, "loss.strong_convexity.l2")
    large = [] if alpha_f <= modulus * (1 + 1e-9) else ["alpha_f must not exceed the modulus of strong convexity"]
    return _perturbation_holds(s, settings) + large


def _convex_settings_hold(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    fits = ConvexProof(s, settings, s.horizon or 1).load < 1
    return _perturbation_holds(s, settings) + ([] if fits else ["beta * rate is too large for the proof of Theorem 3"])


_SYMBOLS = {
    "y": "the decision before its perturbation",
    "V": "sum of the one-point gradients of this block",
    "Q": "violation of the worst constraint, summed over the rounds",
}

BFW_TVC = Algorithm(
    name="bfw-tvc",
    title="bandit Frank-Wolfe with time-varying constraints",
    cite="Wang, Wan & Zhang 2025, Algorithm 3",
    rule=BanditFrankWolfe,
    requirements=(INTERIOR,),
    reads=Feedback.BANDIT,
    draws=draws,
    theorems=(
        Theorem(
            name="Theorem 3",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.HARD,
            expected=True,
            hypotheses=_BASIC,
            settings=_convex_settings,
            free=(Free("c"), Free("K", 1e-3, 1e3, "count"), Free("beta"), Free("rate")),
            best={"guess": Default("2 * beta * G * gamma", "2 beta G gamma: with less the bound grows")},
            positive=("G", "D", "M", "r", "c", "delta", "K", "epsilon", "beta", "gamma", "guess", "rate"),
            guarantee=convex_guarantee,
            rates={"static regret": "T**(3/4)", "hard violation": "T**(3/4) * log(T)"},
            checks=_convex_settings_hold,
        ),
    ),
    cost="one linear minimisation, in the mean over a block",
    cost_rank=3,
    symbols={
        **_SYMBOLS,
        "y_b": "the decision of the first block with this guess, before its perturbation",
        "S": "sum of the one-point gradients of the blocks with this guess, in units of the guess",
        "k": "how often the guess was doubled, as of this round",
        "k_b": "how often the guess was doubled, as of the last block",
    },
)

SCBFW_TVC = Algorithm(
    name="scbfw-tvc",
    title="strongly convex bandit Frank-Wolfe with time-varying constraints",
    cite="Wang, Wan & Zhang 2025, Algorithm 4",
    rule=StronglyConvexBanditFrankWolfe,
    requirements=(INTERIOR,),
    reads=Feedback.BANDIT,
    draws=draws,
    theorems=(
        Theorem(
            name="Theorem 4",
            measures=frozenset({Measure.STATIC}),
            violation=Violation.HARD,
            expected=True,
            hypotheses=(*_BASIC, SOMETHING_TO_LEARN, STRONGLY_CONVEX),
            settings=_strong_settings,
            free=(Free("delta", 0.01, 0.99), Free("K", 0.001, 1, "count"), Free("gamma", 1e-09, 1)),
            positive=("alpha_f", "r", "delta", "K", "L", "beta", "gamma"),
            guarantee=strong_guarantee,
            rates={"static regret": "T**(2/3) * log(T)", "hard violation": "T**(5/6) * log(T)"},
            checks=_strong_settings_hold,
        ),
    ),
    cost="one linear minimisation, in the mean over a block",
    cost_rank=3,
    symbols={
        **_SYMBOLS,
        "S": "sum of the one-point gradients of the blocks",
        "Y": "sum of the blocks' decisions before their perturbation",
    },
)
