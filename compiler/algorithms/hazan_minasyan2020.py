"""Hazan & Minasyan 2020, "Faster projection-free online learning": follow the perturbed leader, by samples.

With S the sum of the gradients so far and v uniform in the ball of radius delta, the leader is the mean of argmin <S + v, x> over
samples of v. `ospf` plays one decision for k rounds and takes k samples after them, one linear minimisation a round; `sftrl` takes k
samples in every round and asks for no smoothness.

Regret in K rounds, for gradients g_t at the sampled leaders y_t with mean m_t. m_t is the gradient at -S of the smoothed support
function Phi(s) = E max_x <s + v, x>, so that (the potential argument)

    sum_t <g_t, m_t - x> <= [Phi(0) - <0, x>] + sum_t D_Phi(-S_t, -S_{t-1}) <= delta R / 2 + c R sum_t |g_t|^2 / (2 delta):

v is symmetric, and two balls of radius delta that are a apart differ in a share of at most c a / delta of their volume, with
c = Gamma(d/2 + 1) / (sqrt(pi) Gamma((d+1)/2)), while leaders are at most R apart. (Smoothing by sqrt(d) or d in the place of c gives the
printed orders.) Sampling adds E<g_t, y_t - m_t>: at most L E|y_t - m_t|^2 <= L R^2 / (2 k) for L-smooth functions, and at most
D R / sqrt(2 k) for others. The first decision is the one that was reached, not a leader: at most D R for each of its rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from oco.compiler.algorithms.oracles import Oracle
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, if_over
from oco.compiler.lowering.round_problem import Draw, Problem, TraceSpec
from oco.compiler.lowering.rule import State, point
from oco.compiler.theory.settings import Default, count
from oco.compiler.theory.theorems import Free, Situation


class BlockedLeader:
    """ospf: the leader of k samples after every k rounds of the block."""

    def begin(self, p: Problem, x: Point) -> State:
        return {"S": 0.0 * x}

    def step(
        self, p: Problem, state: State, k: Value, gradient: Callable[[Point], Point], weight: Value
    ) -> tuple[Point, State]:
        t, x = p.tracer, point(state, "x")
        S = (point(state, "S") + gradient(x)).named(t, "S")
        p.note("after every k rounds the decision moves to the leader, perturbed k times")
        moves = t.name("moves", t.eq(t.mod(k, float(p.whole("k"))), 0.0))
        (following,) = if_over(t, moves, lambda: [perturbed_leader(p, S, weight)], lambda: [x])
        assert isinstance(following, Point)
        return following, {"S": S}


class SampledLeader:
    """sftrl: the leader of k samples in every round."""

    def begin(self, p: Problem, x: Point) -> State:
        return {"S": 0.0 * x}

    def step(
        self, p: Problem, state: State, k: Value, gradient: Callable[[Point], Point], weight: Value
    ) -> tuple[Point, State]:
        S = (point(state, "S") + gradient(point(state, "x"))).named(p.tracer, "S")
        return perturbed_leader(p, S, weight), {"S": S}


def perturbed_leader(p: Problem, S: Point, weight: Value) -> Point:
    """The mean of argmin <S + v_i, x> over k points v_i drawn uniformly from the ball of radius delta weight."""
    t, d, k = p.tracer, float(p.spec.canonical.size), p.whole("k")
    u = p.drawn_rows("u")
    p.note("v_i = delta weight p_i^(1/d) u_i / |u_i| is uniform in the ball, for normal u_i and p_i uniform on [0, 1]")
    lengths = t.sqrt(u.squared_norms())
    radii = p.setting("delta") * weight * p.draw("p") ** (1.0 / d)
    v = u.times(radii / t.where(lengths > 0.0, lengths, 1.0)).named(t, "perturbations")

    def add(i: Value, *total: Value) -> tuple[Value, ...]:
        return (Point(total) + p.domain.lmo(S + v.row(i))).blocks

    total = t.for_(k, add, tuple(t.zeros(b.shape) for b in S.blocks))
    return Point(total) / float(k)


def draws(spec: TraceSpec) -> tuple[Draw, ...]:
    """Random numbers of a round for k points uniform in a ball: normal directions (k, n) and uniform shares of its volume (k,)."""
    k = count(spec.settings, "k", spec.horizon or 1)
    return (
        Draw("u", "normal", "the directions of the perturbations, whatever their lengths", rows=k),
        Draw("p", "uniform", "the radii of the perturbations, as shares of the ball's volume", shape=(k,)),
    )


def overlap(d: int) -> float:
    """c: balls of radius 1 in R^d that are a apart differ in a share of at most c a of their volume."""
    return math.exp(math.lgamma(d / 2 + 1) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)


def _blocked_settings(s: Situation) -> Mapping[str, Default]:
    c = repr(overlap(s.size))
    return {
        "k": Default("ceiling(K**(1/3))", "K^(1/3) rounds with one decision"),
        "delta": Default(f"D * sqrt({c} * k * K)", f"D sqrt(c k K), c = {overlap(s.size):.4g} in {s.size} dimensions"),
        "C_1": Default(f"R * ({math.sqrt(2 * overlap(s.size))!r} + 2)", "of D in the regret: R (sqrt(2 c) + 2)"),
        "C_2": Default("R**2 / 2", "of L in the regret: R^2 / 2"),
    }


def _blocked_regret(s: Situation, v: Mapping[str, float]) -> float:
    R, D, K, k, delta = (v[n] for n in ("R", "D", "K", "k", "delta"))
    leader = delta * R / 2 + overlap(s.size) * R * D**2 * k * K / (2 * delta)
    return leader + K * v["L"] * R**2 / (2 * k) + min(k, K) * D * R


def _sampled_settings(s: Situation) -> Mapping[str, Default]:
    c = repr(overlap(s.size))
    return {
        "k": Default("ceiling(K)", "K samples a round"),
        "delta": Default(f"D * sqrt({c} * K)", f"D sqrt(c K), c = {overlap(s.size):.4g} in {s.size} dimensions"),
        "C_1": Default(
            f"R * ({math.sqrt(overlap(s.size)) + math.sqrt(1 / 2)!r} + 1)",
            "of D in the regret: R (sqrt(c) + sqrt(1/2) + 1)",
        ),
        "C_2": Default(0, "no smoothness is asked for"),
    }


def _sampled_regret(s: Situation, v: Mapping[str, float]) -> float:
    R, D, K, k, delta = (v[n] for n in ("R", "D", "K", "k", "delta"))
    leader = delta * R / 2 + overlap(s.size) * R * D**2 * K / (2 * delta)
    return leader + K * D * R / math.sqrt(2 * k) + D * R


_SUM = (("S", "sum of the gradients over this block"),)

OSPF = Oracle(
    name="ospf",
    rule=BlockedLeader(),
    cite="Hazan & Minasyan 2020, OSPF",
    alpha=Fraction(2, 3),
    settings=_blocked_settings,
    regret=_blocked_regret,
    why="for smooth functions, regret O(K^(2/3)) with one linear minimisation a round",
    cost="one linear minimisation",
    smooth=True,
    free=(Free("delta"),),
    symbols=_SUM,
    draws=draws,
    grows=True,
)

SFTRL = Oracle(
    name="sftrl",
    rule=SampledLeader(),
    cite="Hazan & Minasyan 2020, sampled follow the perturbed leader",
    alpha=Fraction(1, 2),
    settings=_sampled_settings,
    regret=_sampled_regret,
    why="regret O(K^(1/2)) with K linear minimisations a round",
    cost="as many linear minimisations as a block has rounds",
    free=(Free("delta"),),
    symbols=_SUM,
    draws=draws,
    grows=True,
    on_request=True,
)
