"""Hazan 2016, "Introduction to online convex optimization", chapter 7: the online Frank-Wolfe method (Hazan & Kale 2012).

As a method of its own, `ofw`, and as the oracle `ocg` of other methods.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

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
    Floats,
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
    """F_t(x) = eta sum_{tau<=t} <grad f_tau(x_tau), x> + |x - x_1|^2, and one Frank-Wolfe step on F_t from x_t.

    Erratum 10: the book sums to t - 1, so that its first step goes to an arbitrary vertex; here the sum goes to t.
    """

    def init(self, p: Problem, start: Point) -> State:
        return {"x": start, "x_1": start, "G": p.no_gradient(start)}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, "x")

    def update(self, p: Problem, state: State) -> State:
        x, x_1 = point(state, "x"), point(state, "x_1")
        G = (point(state, "G") + p.gradient(x)).named(p.tracer, "G")
        v = p.domain.lmo(p.setting("eta") * G + 2.0 * (x - x_1)).named(p.tracer, "v")
        sigma = p.tracer.name("sigma", p.tracer.minimum(1.0, 2.0 / p.tracer.sqrt(p.t)))
        return {"x": x + sigma * (v - x), "x_1": x_1, "G": G}


class OnlineConditionalGradient:
    """ocg: the same in a block, with x_q its first decision and K its rounds."""

    def begin(self, p: Problem, x: Point) -> State:
        return {"x_q": x, "S": p.no_gradient(x)}

    def step(
        self, p: Problem, state: State, k: Value, gradient: Callable[[Point], Point], weight: Value
    ) -> tuple[Point, State]:
        t, x, x_q = p.tracer, point(state, "x"), point(state, "x_q")
        S = (point(state, "S") + gradient(x)).named(t, "S")
        p.note("h_t is D (1 + sum_n lambda^n)-Lipschitz: eta = R / (2 D (1 + sum_n lambda^n) K^(3/4))")
        slopes = p.setting("D") * weight
        eta = t.name("eta", p.setting("R") / (2.0 * p.count_of("K") ** 0.75 * slopes))
        v = p.domain.lmo(eta * S + 2.0 * (x - x_q)).named(t, "v")
        sigma = t.name("sigma", t.minimum(1.0, 2.0 / t.sqrt(k)))
        return x + sigma * (v - x), {"x_q": x_q, "S": S}


def _settings(s: Situation) -> Mapping[str, Default]:
    formula = "domain.diameter.l2 / (2 * loss.lipschitz.l2 * T**(3/4))"
    return {"eta": Default(formula, "D / (2 G T^(3/4)), Hazan 2016, chapter 7")}


PARTS = 16
"""Stretches are cut into so many parts, as these bounds grow with their length."""


def distances(rounds: Rounds, diameter: float, pull: float) -> Floats:
    """Bounds of sum_t sqrt(h_t), h_t = F_{t-1}(x_t) - min F_{t-1}, where a round adds a linear function of slope `pull` to F.

    F_t is 2-strongly convex, so its minimizers are pull / 2 apart and h grows by pull sqrt(h) + pull^2 / 2 when the function changes;
    the step makes it (1 - sigma) h + sigma^2 D^2 by 2-smoothness. Below, h <= 1.6^2 D^2 / sqrt(t) with the book's eta.
    """
    h, total, done, result = 0.0, 0.0, 1, []
    for end in rounds.last.astype(int).tolist():
        for to in _cuts(done, end):
            h, added = _further(h, done, to - done, diameter, pull)
            total, done = total + added, to
        result.append(total)
    return np.array(result)


def _cuts(done: int, end: int) -> Iterator[int]:
    """The last rounds of the parts of the stretch from `done` to `end`."""
    step = max(1, -((done - end) // PARTS))
    yield from range(done + step, end, step)
    if end > done:
        yield end


def _further(h: float, t: int, count: int, diameter: float, pull: float) -> tuple[float, float]:
    """h_{t+count} and the sum of sqrt(h) over the rounds t + 1 to t + count, or a little more.

    One round takes h to (1 - sigma) (h + pull sqrt(h) + pull^2 / 2) + sigma^2 D^2, convex in sigma: the larger of its values at both ends
    is a step that is increasing and concave in h. Below its fixed point h stays there; above, the distance shrinks at least as the
    slope there says.
    """
    ends = [min(1.0, 2.0 / math.sqrt(u)) for u in (t, t + count - 1)]
    if count == 1:
        after = (1 - ends[0]) * (h + pull * math.sqrt(h) + pull**2 / 2) + (ends[0] * diameter) ** 2
        return after, math.sqrt(after)
    roots = []
    for sigma in ends:
        linear, constant = (1 - sigma) * pull, (1 - sigma) * pull**2 / 2 + (sigma * diameter) ** 2
        roots.append((linear + math.sqrt(linear**2 + 4 * sigma * constant)) / (2 * sigma))
    root = max(roots)
    above = h - root**2
    if above <= 0 or root == 0:
        return max(h, root**2), count * math.sqrt(max(h, root**2))
    slope = max((1 - sigma) * (1 + pull / (2 * root)) for sigma in ends)
    left = above * slope**count
    return root**2 + left, count * root + (above - left) * slope / (1 - slope) / (2 * root)


def _guarantee(s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """D^2 / eta + eta G^2 T / 2 for the minimizers of F_{t-1} (follow the regularized leader), G sum_t sqrt(h_t) for the way to them.

    With the book's eta this is below its 8 G D T^(3/4).
    """
    diameter, slope = needed(s, "domain.diameter.l2"), needed(s, "loss.lipschitz.l2")

    def distance(rounds: Rounds, horizon: int) -> Floats:
        pull = number(settings, "eta", horizon) * slope
        return distances(rounds, diameter, pull)

    quantities = (
        Quantity("D", "D", "diameter of the domain", diameter),
        Quantity("G", "G", "bound of the gradient", slope),
        Quantity("eta", r"\eta", "weight of the gradients", scheduled(settings, "eta")),
        ROUNDS,
        Quantity("distance", r"\sum_t \sqrt{h_t}", "distance to the minimizers of F", distance),
    )
    formula = "D**2 / eta + eta * G**2 * T / 2 + G * distance"
    bound = Bound("static regret", "T**(3/4)", formula, quantities, s.loss_range)
    return Guarantee("Hazan 2016, chapter 7", s.horizon, bound)


def _step_length(s: Situation, settings: Mapping[str, Setting]) -> Callable[[Rounds, int], Schedule]:
    """sigma_t D with sigma_t = min(1, 2 / sqrt(t)): x_{t+1} is on the way from x_t to a vertex."""
    diameter = needed(s, "domain.diameter.l2")

    def length(rounds: Rounds, horizon: int) -> Schedule:
        t: Any = rounds.t
        step: Schedule = np.minimum(1.0, 2.0 / np.sqrt(t)) * diameter
        return step

    return length


OFW = Algorithm(
    name="ofw",
    frank_wolfe=lambda task: True,
    title="online Frank-Wolfe",
    cite="Hazan & Kale 2012; Hazan 2016, chapter 7",
    rule=OnlineFrankWolfe,
    requirements=(domain_offers("lmo", "Linear functions can be minimized over the domain."),),
    theorems=(
        Theorem(
            name="chapter 7",
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
            positive=("eta",),
            guarantee=_guarantee,
            step_length=_step_length,
            rates={"static regret": "T**(3/4)"},
            checks=constant_settings,
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
    cite="Hazan 2016, chapter 7",
    alpha=Fraction(3, 4),
    settings=lambda s: {
        "C_1": Default("8 * R", "regret 8 R D K^(3/4) (Hazan 2016, chapter 7)"),
        "C_2": Default(0, "no smoothness is asked for"),
    },
    regret=lambda s, v: 8 * v["R"] * v["D"] * v["K"] ** 0.75,
    why="regret 8 R D K^(3/4) with one linear minimisation a round",
    cost="one linear minimisation",
    frank_wolfe=True,
    symbols=(("x_q", "the first decision of this block"), ("S", "sum of the gradients over this block")),
)
