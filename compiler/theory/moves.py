"""Cost of a learner's moves in its guarantee: losses f_t(x_t, x_{t-1}) over `prev(x)`.

An algorithm sees f_t(x, x), as if decisions stood still, and its theorem bounds the regret of that loss; a fixed decision pays nothing for
moving. What a move costs beside is bounded by its length (`prover.move_costs`): c(d) = min(M d, M_0 d + L d^2 / 2), so that

    sum_t f_t(x_t, x_{t-1}) - f_t(u, u) <= R + sum_{t>1} c(|x_t - x_{t-1}|)

(Anava, Hazan & Mannor 2015, Theorem 3.1, with a memory of one round). A theorem gives the length of a step where its proof does; for any
other each move counts as long as the domain, and the guarantee says so. Comparators that move pay f_t(u_t, u_{t-1}) >= f_t(u_t, u_t) -
c(|u_t - u_{t-1}|), so that M times their path is added.

Under delays round t - 1 is another learner's than round t, and no step bounds how far apart their decisions are: each move counts as long
as the domain then, the one from the last round of the learner before included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.prover.move_costs import SMOOTHNESS, STANDING
from oco.compiler.theory.guarantees import Bound, Guarantee, Quantity, exponent_of
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import Setting
from oco.compiler.theory.theorems import Floats, Situation, Theorem, needed
from oco.dsl.statements import Measure

UNCOVERED = (
    "the theorem does not bound how far decisions move: what `prev` in the loss costs counts as if each round's "
    "decision lay at the other end of the domain"
)


def path_length(s: Situation, rounds: int) -> float:
    """Path of the comparators: none for a fixed one, else what the facts know, else the worst case."""
    if s.canonical.measure is Measure.STATIC:
        return 0.0
    worst = needed(s, "domain.diameter.l2") * max(rounds - 1, 0)
    known = s.number("path_length")
    return worst if known is None else min(known, worst)


def promise(theorem: Theorem, s: Situation, settings: Mapping[str, Setting]) -> Guarantee:
    """Guarantee of a theorem, with what the learner's moves cost where the loss is about the decision before."""
    guarantee = theorem.guarantee(s, settings)
    if s.canonical.moving is None:
        return guarantee
    slope, diameter = s.number(f"loss.moves.lipschitz.{theorem.norm}"), s.number(f"domain.diameter.{theorem.norm}")
    covered = _covered(theorem, s)
    remarks = guarantee.remarks if covered else (*guarantee.remarks, UNCOVERED)
    regret = guarantee.regret_bound
    if slope is None or diameter is None or not regret.formula:
        open_ = replace(regret, rate=_larger(regret.rate), formula="", quantities=(), trivial=None)
        return replace(guarantee, regret_bound=open_, remarks=remarks)
    return replace(guarantee, regret_bound=_with_moves(regret, theorem, s, settings, slope, diameter), remarks=remarks)


def _covered(theorem: Theorem, s: Situation) -> bool:
    """True where the theorem bounds how far apart decisions of successive rounds are."""
    return theorem.step_length is not None and not s.canonical.delay


def _with_moves(
    bound: Bound, theorem: Theorem, s: Situation, settings: Mapping[str, Setting], slope: float, diameter: float
) -> Bound:
    at_rest, smoothness = s.number(STANDING), s.number(SMOOTHNESS)
    length, first = theorem.step_length, 0 if s.canonical.delay else 1
    own = length(s, settings) if length is not None and _covered(theorem, s) else None

    def moved(rounds: Rounds, horizon: int) -> Floats:
        if own is None:
            return np.asarray(slope * diameter * (rounds.last - first))
        step: Any = own(rounds, horizon)
        longest: Any = rounds.constant(diameter)
        d = np.minimum(step, longest)
        cost = slope * d
        if at_rest is not None and smoothness is not None:
            cost = np.minimum(cost, at_rest * d + (0.5 * smoothness) * (d * d))
        return np.asarray(cost.sums() - cost.last)

    def followed(rounds: Rounds, horizon: int) -> Floats:
        return np.asarray(slope * path_length(s, rounds.n + 1 - first))

    quantities = [Quantity("moved", r"\sum_{t>1} c(\|x_t - x_{t-1}\|)", "cost of the learner's moves, at most", moved)]
    formula = f"{bound.formula} + moved"
    if s.canonical.measure is Measure.DYNAMIC:
        quantities.append(
            Quantity("followed", r"M \sum_{t>1} \|u_t - u_{t-1}\|", "what moving saves comparators", followed)
        )
        formula = f"{formula} + followed"
    trivial = None if bound.trivial is None else bound.trivial + slope * diameter
    note = "; ".join(n for n in (bound.note, "what moves cost is in it") if n)
    rate = bound.rate if own is not None else _larger(bound.rate)
    return replace(
        bound, formula=formula, quantities=(*bound.quantities, *quantities), trivial=trivial, note=note, rate=rate
    )


def _larger(rate: str) -> str:
    """Rate of a bound together with T."""
    return rate if exponent_of(rate) > 1 else "T"
