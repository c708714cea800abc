"""Weights on experts: AdaHedge on all that they paid and on what is not forgotten, and AdaHedge on these two weightings.

Where the loss is known to be exp-concave, exp(-theta f) concave over a simplex, the second weighting forgets nothing and has a rate of
theta at most, and gaps are of what the means paid (`de_rooij2014`).

Where the loss is curved through data, experts at second-order steps have the weight at first (`favoured`): what the others decide in the
first rounds hangs on the size of the domain, and would cost the mean more than all later rounds.

Under delays what is played is weighed as it was when the round was decided, and those weights and rates are kept until it is over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from oco.compiler.algorithms.de_rooij2014 import mixability_gap, rate, weights
from oco.compiler.algorithms.loss_steps import CURVATURE, favoured, is_curved
from oco.compiler.ir.build import Named
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined
from oco.compiler.theory.settings import Setting, number
from oco.compiler.theory.theorems import Quantity, Situation

Floats = np.ndarray[Any, Any]
PLAYED, RATES = "w", "eta"
"""State under delays: weights with which a round was decided, as `Weighting.means`, and the rates of the weightings and of their own."""

KEPT = (1.0, 0.99)
"""Share of the losses so far that is kept each round by each of the weightings of the experts, which are weighed in turn."""
ALIKE, OFFSET = 1e-4, 1e-2
"""Least Delta as a share of F = sqrt(sum_t s_t^2), s_t the range of the round's losses and `OFFSET` of their size: experts or weightings
that lost alike up to rounding share the weight, in the place of a choice by the last digit.
"""


UNLIKELY = 1e-8
"""Weight before the first round of an expert that is not favoured: it moves the mean little even in a domain 10^6 times too wide."""


def _log_size(count: int, favoured: int) -> float:
    """Logarithm of one over the least weight of so many experts before the first round, of which the last are `favoured`; ln K for none."""
    return -math.log(UNLIKELY) if favoured else math.log(count)


def _first_weights(count: int, favoured: int) -> Floats:
    """Weights of so many experts before the first round, of which the last are `favoured`."""
    own = (1.0 - UNLIKELY * (count - favoured)) / favoured
    return np.concatenate([np.full(count - favoured, UNLIKELY), np.full(favoured, own)])


def nothing_paid(p: Problem, count: int) -> State:
    """State before the first round, of so many experts."""
    t = p.tracer
    first: State = {
        "L": t.zeros((len(KEPT), count)),
        "gap": t.zeros((len(KEPT),)),
        "L_of": t.zeros((len(KEPT),)),
        "gap_of": t.lift(0.0),
        "spread": t.lift(0.0),
    }
    return joined(first, _to_play(p, first))


def _to_play(p: Problem, state: State) -> State:
    """State with the weights of the next decision, where feedback comes after others."""
    if p.turn is None:
        return {}
    own = Weighting(p, {name: value for name, value in state.items() if name not in (PLAYED, RATES)})
    return {PLAYED: own.means, RATES: p.tracer.stack(*own.rates, own.rate_of)}


class Weighting:
    """Weights of the experts by their losses, with `KEPT` of them each round, and weights of these weightings by what their means paid."""

    def __init__(self, p: Problem, state: State) -> None:
        self.p, self.L, self.gap = p, array(state, "L"), array(state, "gap")
        self.L_of, self.gap_of = array(state, "L_of"), array(state, "gap_of")
        self.spread, t = array(state, "spread"), p.tracer
        curved = is_curved(p)
        self.kept = (1.0, 1.0) if curved else KEPT
        most = (math.inf, p.setting(CURVATURE) if curved else math.inf)
        least, count = t.name("least", ALIKE * t.sqrt(self.spread)), len(self.kept)
        experts, self.favoured = self.L.shape[1], favoured(p.spec.canonical, curved)
        first = _first_weights(experts, self.favoured) if self.favoured else None
        given = None if first is None else t.constant(first, "first", "weights before the first round")
        if RATES in state:
            own = array(state, RATES)
            self.rates, self.rate_of = [own[i] for i in range(count)], own[count]
        else:
            size = _log_size(experts, self.favoured)
            self.rates = [rate(p, size, t.maximum(self.gap[i], least), most[i]) for i in range(count)]
            self.rate_of = rate(p, math.log(count), t.maximum(self.gap_of, least))
        self.played = array(state, PLAYED) if PLAYED in state else None
        self.of_experts = [weights(p, self.L[i], self.rates[i], given) for i in range(count)]
        self.of_weightings = weights(p, self.L_of, self.rate_of)

    @property
    def combined(self) -> Value:
        """Weights of the experts in the decision, shape (K,)."""
        if self.played is not None:
            return self.played[len(self.kept)]
        return self.of_weightings @ self.p.tracer.stack(*self.of_experts)

    @property
    def means(self) -> Value:
        """Weights of the experts in the mean of each weighting, and in what is played: (weightings + 1, K)."""
        if self.played is not None:
            return self.played
        return self.p.tracer.stack(*self.of_experts, self.combined)

    def after(self, losses: Value, paid: Value | None) -> State:
        """State after a round in which the experts had the losses (K,).

        paid  what their `means` paid, (weightings + 1,); None for the weighted losses, which are no less
        """
        p, t, count = self.p, self.p.tracer, len(self.kept)
        kept = t.constant(np.array(self.kept), "kept", "share of the losses that stays")
        if paid is None and self.played is not None:
            paid = self.played @ losses
        elif paid is None:
            among = t.stack(*(w @ losses for w in self.of_experts))
            paid = t.concat(among, t.reshape(self.of_weightings @ among, (1,)))
        experts = zip(self.of_experts, self.rates, strict=True)
        gaps = [mixability_gap(p, losses, w, eta, paid[i]) for i, (w, eta) in enumerate(experts)]
        own = paid[:count]
        likely = losses[-self.favoured :] if self.favoured else losses
        most, least = t.max(likely), t.min(likely)
        sizes = most - least + OFFSET * t.maximum(most, -least)
        after: State = {
            "L": t.reshape(kept, (count, 1)) * self.L + losses,
            "gap": kept * self.gap + t.stack(*gaps),
            "L_of": self.L_of + own,
            "gap_of": self.gap_of + mixability_gap(p, own, self.of_weightings, self.rate_of, paid[count]),
            "spread": self.spread + sizes * sizes,
        }
        return {**after, **_to_play(p, after)}


def size_of_experts(s: Situation, count: int, curved: bool) -> Quantity:
    """ln K of so many experts in the guarantee; curved: the loss is known to be exp-concave."""
    likely = favoured(s.canonical, curved)
    unlike = "weight of a gradient expert at first, minus its logarithm"
    return Quantity("K", r"\ln K", unlike if likely else f"logarithm of the {count} experts", _log_size(count, likely))


def price_of_weights(s: Situation, settings: Mapping[str, Setting], curved: bool) -> tuple[tuple[Quantity, ...], str]:
    """Most that weights on the experts cost, with the symbols that it has beside M, K and T; curved: the losses are exp-concave."""
    if late := s.canonical.delay:
        words = f"(2 d + 1) / (d + 1), for weights as they were d = {late} rounds before"
        ratio = Quantity("r", "r", words, 2 - 1 / (late + 1))
        return (ratio,), "M * (sqrt((4 + K) * r * T) + sqrt((4 + log(2)) * r * T))"
    price = "M * (sqrt((4 + K) * T) + sqrt((4 + log(2)) * T))"
    if not curved:
        return (), price
    theta = Quantity("theta", r"\theta", "exp(-theta f) is concave", number(settings, CURVATURE, s.horizon or 1))
    return (theta,), f"min({price}, (K + 2 * log(2)) / theta + 2 * M)"


def gap_to_best(t: Tracer, state: Named) -> Value:
    """Penalised loss less that of the best expert, at most, in the units of the rule, from the fields of a state.

    The weighting that forgets nothing pays Delta + ln K / eta at most beside the best expert (`de_rooij2014`), and the weights of the
    weightings as much, of two, beside that one.
    """
    among, between = state["gap"][KEPT.index(1.0)], state["gap_of"]
    least = ALIKE * t.sqrt(state["spread"])
    return among + t.maximum(among, least) + between + t.maximum(between, least)
