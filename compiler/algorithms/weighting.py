"""Weights on experts: AdaHedge on all that they paid and on what is not forgotten, and AdaHedge on these two weightings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oco.compiler.algorithms.de_rooij2014 import mixability_gap, weights
from oco.compiler.ir.value import Value
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array

KEPT = (1.0, 0.99)
"""Share of the losses so far that is kept each round by each of the weightings of the experts, which are weighed in turn."""
ALIKE, OFFSET = 1e-5, 1e-3
"""Least Delta as a share of F = sqrt(sum_t s_t^2), s_t the range of the round's losses and `OFFSET` of their size: experts or weightings
that lost alike up to rounding share the weight, in the place of a choice by the last digit.
"""


def nothing_paid(p: Problem, count: int) -> State:
    """State before the first round, of so many experts."""
    t = p.tracer
    return {
        "L": t.zeros((len(KEPT), count)),
        "gap": t.zeros((len(KEPT),)),
        "L_of": t.zeros((len(KEPT),)),
        "gap_of": t.lift(0.0),
        "spread": t.lift(0.0),
    }


class Weighting:
    """Weights of the experts by their losses, with `KEPT` of them each round, and weights of these weightings by theirs."""

    def __init__(self, p: Problem, state: State) -> None:
        self.p, self.L, self.gap = p, array(state, "L"), array(state, "gap")
        self.L_of, self.gap_of = array(state, "L_of"), array(state, "gap_of")
        self.spread, t = array(state, "spread"), p.tracer
        least = t.name("least", ALIKE * t.sqrt(self.spread))
        self.held, self.held_of = t.maximum(self.gap, least), t.maximum(self.gap_of, least)
        self.of_experts = [weights(p, self.L[i], self.held[i]) for i in range(len(KEPT))]
        self.of_weightings = weights(p, self.L_of, self.held_of)

    @property
    def combined(self) -> Value:
        """Weights of the experts, shape (K,)."""
        return self.of_weightings @ self.p.tracer.stack(*self.of_experts)

    def after(self, losses: Value) -> State:
        """State after the losses (K,) of a round."""
        p, t = self.p, self.p.tracer
        kept = t.constant(np.array(KEPT), "kept", "share of the losses that stays")
        gaps = [mixability_gap(p, losses, w, self.held[i]) for i, w in enumerate(self.of_experts)]
        paid = t.stack(*(w @ losses for w in self.of_experts))
        most, least = t.max(losses), t.min(losses)
        sizes = most - least + OFFSET * t.maximum(most, -least)
        return {
            "L": t.reshape(kept, (len(KEPT), 1)) * self.L + losses,
            "gap": kept * self.gap + t.stack(*gaps),
            "L_of": self.L_of + paid,
            "gap_of": self.gap_of + mixability_gap(p, paid, self.of_weightings, self.held_of),
            "spread": self.spread + sizes * sizes,
        }


def gap_to_best(state: Mapping[str, Any]) -> float:
    """Penalised loss less that of the best expert, at most, in the units of the rule, from the values of a state.

    The weighting that forgets nothing pays Delta + ln K / eta at most beside the best expert (`de_rooij2014`), and the weights of the
    weightings as much, of two, beside that one.
    """
    among, between = float(np.asarray(state["gap"])[KEPT.index(1.0)]), float(state["gap_of"])
    least = ALIKE * float(np.sqrt(state["spread"]))
    return among + max(among, least) + between + max(between, least)
