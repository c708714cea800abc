"""Static comparators of functions with too many kinks for new variables: an interval that closes as the smoothing
radius shrinks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.evaluation.comparators.base import Budget, Comparator, Prefixes, Status
from oco.evaluation.comparators.broken import Broken, broken_least
from oco.evaluation.comparators.fixed import (
    Setting,
    Solved,
    certified_comparator,
    least_violating,
    prefixes,
    prefixes_of,
    programs_of,
    solve_all,
    static,
)
from oco.evaluation.comparators.functions import Rounds
from oco.evaluation.comparators.lift import ranges_of
from oco.evaluation.comparators.region import region
from oco.evaluation.comparators.smoothing import smoothed

Array = np.ndarray[Any, Any]

SHARES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)  # radii of the rounding, of the range of what bends
STEPS = (10.0, 3.0)  # times a radius: on the way to it, as Newton's method goes astray where it shrinks much at once
COARSE = 1e-3  # the gap at which programs on the way are left
CLOSE = 1e-6  # the gap at which an interval counts as a value, of the value
LONG, SHORT = 0.3, 0.9  # shares of a radius to which it shrinks at once
METHOD = "interior point, kinks rounded off"
UNSOLVED = "the programs with rounded kinks were not solved"
KNOWN = (Status.CERTIFIED, Status.INTERVAL)


@dataclass(frozen=True, eq=False)
class _Pair:
    """Programs of one radius: one bounds from below; the feasible points of the other are feasible for the model."""

    below: Setting
    above: Setting
    same: bool


def _pair(rounds: Rounds, ends: Array, share: float) -> _Pair | None:
    result = smoothed(rounds.problem, ranges_of(rounds), share)
    if result is None:
        return None

    def setting(problem: Canonical) -> Setting:
        return Setting(replace(rounds, problem=problem), region(problem), rounds, ends)

    kinks = any(a.expr is not b.expr for a, b in zip(result[0].inequalities, rounds.problem.inequalities))
    return _Pair(setting(result[0]), setting(result[1]), not kinks)


def rounded_static(rounds: Rounds, budget: Budget) -> Comparator:
    """Best decision for all rounds up to an interval, which shrinks until it is closed or the time is over."""
    began, ends = perf_counter(), np.array([rounds.count])
    best, way = Comparator("static", Status.NOT_COMPUTED, why=UNSOLVED), None
    asked = False
    for share in SHARES:
        left = Budget(budget.seconds - (perf_counter() - began), budget.memory)
        pair = _pair(rounds, ends, share) if left.seconds > 0 else None
        if pair is None:
            break
        way = _on_the_way(rounds, ends, share, way, began + budget.seconds)
        solved = solve_all(pair.below, began + budget.seconds, way)
        if not (solved.met[0] or solved.late[0] or asked):
            asked, broken = True, _least_broken(rounds, ends, solved.chosen, began + budget.seconds)
            if broken:
                return replace(least_violating(*broken[0], began), method=METHOD)
        lower = certified_comparator(pair.below, solved, began)
        upper = lower if pair.same else static(pair.above, left, way)
        bound = max(best.bound, lower.bound if lower.status in (*KNOWN, Status.NOT_COMPUTED) else -np.inf)
        better = upper.status in KNOWN and not upper.value >= best.value
        best = replace(upper if better else best, bound=bound)
        if best.value - bound <= CLOSE * abs(best.value):
            break
    return replace(best, status=_status(best.value, best.bound), method=METHOD, seconds=perf_counter() - began)


def _on_the_way(rounds: Rounds, ends: Array, share: float, way: Solved | None, until: float) -> Solved | None:
    """Solutions of the lower programs for radii decreasing to `share`, each from the last; None where the solver fails."""
    for step in STEPS:
        pair = _pair(rounds, ends, step * share)
        way = None if pair is None else solve_all(pair.below, until, way, COARSE)
        if way is None or not way.met.all() or way.late.any():
            return None
    return way


def _least_broken(
    rounds: Rounds, ends: Array, chosen: list[list[Array]], until: float
) -> dict[int, tuple[Setting, Broken, int]]:
    """Infeasible prefixes, with the constraints of `chosen` rounds, and their least violation.

    Constraints that are infeasible with kinks smoothed from below are infeasible. The elastic programs are feasible for
    every radius: each is solved from that of a larger one, in smaller steps where the solver fails; the smallest radius
    reached decides.
    """
    kept: dict[int, tuple[Setting, Broken, int]] = {}
    broken: Broken | None = None
    going, share, step = np.ones(len(ends), dtype=bool), SHARES[0] * STEPS[0], LONG
    while going.any() and (share > SHARES[-1] or broken is None) and perf_counter() < until:
        smaller = share if broken is None else max(share * step, SHARES[-1])
        pair = _pair(rounds, ends, smaller)
        if pair is None:
            break
        tried = broken_least(programs_of(pair.below, chosen), until, broken)
        if broken is not None and step < SHORT and (going & ~tried.closed).any():
            step = step**0.5
            continue
        share, step, broken, going = smaller, max(LONG, step**2), tried, going & tried.closed
        kept |= {member: (pair.below, broken, member) for member in map(int, np.flatnonzero(going))}
    return {member: result for member, result in kept.items() if result[1].proved[member]}


def _beside(rounds: Rounds, ends: Array, members: Array, impossible: list[Comparator], budget: Budget) -> Prefixes:
    """Infeasible prefixes, and the others."""
    names = impossible[0].decision
    certified = Prefixes(
        ends[members],
        np.array([c.value for c in impossible]),
        np.array([c.bound for c in impossible]),
        tuple(c.status for c in impossible),
        {n: np.stack([c.decision[n] for c in impossible]) for n in names},
        METHOD,
        impossible[-1].seconds,
    )
    if members.all():
        return certified
    others = ends[~members]
    empty = {n: np.full((len(ends), *np.shape(names[n])), np.nan) for n in names}
    rest = rounded_prefixes(rounds.first(int(others[-1])), others, budget)
    return replace(unknown(ends, ""), decision=empty).with_members(members, certified).with_members(~members, rest)


def _status(value: float, bound: float) -> Status:
    if not np.isfinite(value):
        return Status.NOT_COMPUTED
    return Status.CERTIFIED if value - bound <= CLOSE * abs(value) else Status.INTERVAL


def rounded_prefixes(rounds: Rounds, ends: Array, budget: Budget) -> Prefixes:
    """Intervals for several prefixes side by side, as long as they shrink."""
    began = perf_counter()
    best, way = unknown(ends, UNSOLVED), None
    asked = np.zeros(len(ends), dtype=bool)
    for share in SHARES:
        left = Budget(budget.seconds - (perf_counter() - began), budget.memory)
        pair = _pair(rounds, ends, share) if left.seconds > 0 else None
        if pair is None:
            break
        way = _on_the_way(rounds, ends, share, way, began + budget.seconds)
        solved = solve_all(pair.below, began + budget.seconds, way)
        unmet = np.flatnonzero(~(solved.met | solved.late | asked))
        asked[unmet] = True
        chosen = [[each[b] for b in unmet] for each in solved.chosen]
        broken = _least_broken(rounds, ends[unmet], chosen, began + budget.seconds) if len(unmet) else {}
        if broken:
            impossible = np.isin(np.arange(len(ends)), unmet[list(broken)])
            return _beside(rounds, ends, impossible, [least_violating(*b, began) for b in broken.values()], left)
        lower = prefixes_of(pair.below, solved, began)
        upper = lower if pair.same else prefixes(pair.above, left, way)
        met = np.array([s in KNOWN for s in upper.status])
        better = met & ~(upper.value >= best.value)
        value, bound = np.where(better, upper.value, best.value), np.maximum(best.bound, lower.bound)
        decision = {n: _chosen(better, d, best.decision.get(n)) for n, d in upper.decision.items()}
        status = tuple(map(_status, value, bound))
        best = Prefixes(ends, value, bound, status, decision, METHOD)
        if Status.INTERVAL not in status and Status.NOT_COMPUTED not in status:
            break
    return replace(best, seconds=perf_counter() - began)


def _chosen(better: Array, new: Array, old: Array | None) -> Array:
    return new if old is None else np.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def unknown(ends: Array, why: str) -> Prefixes:
    """Prefixes of which nothing is known."""
    none = np.full(len(ends), np.nan)
    return Prefixes(ends, none, np.full(len(ends), -np.inf), (Status.NOT_COMPUTED,) * len(ends), why=why)
