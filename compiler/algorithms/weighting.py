"""Weights on experts: AdaHedge on all that they paid and on what is not forgotten, and AdaHedge on these two weightings.

Where the loss is known to be exp-concave, exp(-theta f) concave over a simplex, the second weighting forgets nothing and has a rate of
theta at most, and gaps are of what the means paid (`de_rooij2014`).

Where the loss is curved through data, experts at second-order steps have the weight at first (`first_weights`): what the others decide in
the first rounds hangs on the size of the domain, and would cost the mean more than all later rounds. Where the model predicts data from
distributions that it states, experts that follow it have half of it.

Under delays what is played is weighed as it was when the round was decided, and those weights and rates are kept until it is over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from oco.compiler.algorithms.de_rooij2014 import mixability_gap, rate, weights
from oco.compiler.algorithms.experts import TRUSTED, UNLIKELY, first_weights
from oco.compiler.algorithms.loss_steps import CURVATURE, is_curved
from oco.compiler.ir.build import Named
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined
from oco.compiler.lowering.trace_spec import TraceSpec
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


def _log_sizes(count: int, first: Floats | None, curved: bool) -> tuple[float, float]:
    """Logarithm of one over the least weight of so many experts before the first round, ln K where they are alike, and S, which stands for
    it in rates: less, so that first weights last, where experts are trusted (their geometric mean)."""
    least = math.log(count) if first is None else -math.log(first.min())
    trusts = first is not None and first.min() > UNLIKELY and not curved
    return least, math.sqrt(-least * math.log(TRUSTED)) if trusts else least


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
        first = first_weights(p.spec.canonical, p.whole("season"), curved)
        self.unlikely = 0 if first is None else int((first <= UNLIKELY).sum())
        given = None if first is None else t.constant(first, "first", "weights before the first round")
        if RATES in state:
            own = array(state, RATES)
            self.rates, self.rate_of = [own[i] for i in range(count)], own[count]
        else:
            _, size = _log_sizes(self.L.shape[1], first, curved)
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
        likely = losses[self.unlikely :] if self.unlikely else losses
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
    first = first_weights(s.canonical, s.season, curved)
    words = f"logarithm of the {count} experts"
    if first is not None:
        words = "weight of a gradient expert at first, minus its logarithm"
    return Quantity("K", r"\ln K", words, _log_sizes(count, first, curved)[0])


def price_of_weights(
    s: Situation, settings: Mapping[str, Setting], count: int, sharp: bool
) -> tuple[tuple[Quantity, ...], str]:
    """Most that weights on so many experts cost, with the symbols that it has beside M, K and T; sharp: what they pay is exp-concave."""
    curved = CURVATURE in settings
    least, size = _log_sizes(count, first_weights(s.canonical, s.season, curved), curved)
    symbols, among = list[Quantity](), "sqrt((4 + K) * {T})"
    if size < least:
        symbols.append(
            Quantity("S", "S", "stands for K in the rates of the weights, since some experts are trusted", size)
        )
        among = "(1 + K / S) / 2 * sqrt((4 + S) * {T})"
    if late := s.canonical.delay:
        words = f"(2 d + 1) / (d + 1), for weights as they were d = {late} rounds before"
        symbols.append(Quantity("r", "r", words, 2 - 1 / (late + 1)))
    price = f"M * ({among} + sqrt((4 + log(2)) * {{T}}))".format(T="r * T" if late else "T")
    if late or not sharp:
        return tuple(symbols), price
    theta = Quantity("theta", r"\theta", "exp(-theta f) is concave", number(settings, CURVATURE, s.horizon or 1))
    return (*symbols, theta), f"min({price}, (K + 2 * log(2)) / theta + 2 * M)"


def gap_to_best(spec: TraceSpec, t: Tracer, state: Named) -> Value:
    """Penalised loss less that of the best expert, at most, in the units of the rule, from the fields of a state.

    The weighting that forgets nothing pays Delta + ln K / eta at most beside the best expert (`de_rooij2014`), and the weights of the
    weightings as much, of two, beside that one.
    """
    among, between = state["gap"][KEPT.index(1.0)], state["gap_of"]
    least = ALIKE * t.sqrt(state["spread"])
    curved = CURVATURE in spec.settings
    first = first_weights(spec.canonical, round(number(spec.settings, "season", 1)), curved)
    log_size, size = _log_sizes(state["L"].shape[1], first, curved)
    chosen = t.maximum(among, least)
    chosen = chosen if size == log_size else log_size / size * chosen
    return among + chosen + between + t.maximum(between, least)
