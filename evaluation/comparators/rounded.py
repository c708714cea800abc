"""Static comparators of functions with more kinks than can have variables: an interval that closes as the kinks are rounded off less."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from oco.compiler.canonical import Canonical
from oco.evaluation.comparators.base import Budget, Comparator, Prefixes, Status
from oco.evaluation.comparators.fixed import Setting, Solved, prefixes, solve_all, static
from oco.evaluation.comparators.functions import Rounds
from oco.evaluation.comparators.lift import ranges_of
from oco.evaluation.comparators.region import region
from oco.evaluation.comparators.smoothing import smoothed

Array = np.ndarray[Any, Any]

SHARES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)  # radii of the rounding, of the range of what bends
STEPS = (10.0, 3.0)  # times a radius: on the way to it, as Newton's method goes astray where it shrinks much at once
COARSE = 1e-3  # the gap at which programs on the way are left
CLOSE = 1e-6  # the gap at which an interval counts as a value, of the value
KNOWN = (Status.CERTIFIED, Status.INTERVAL)


@dataclass(frozen=True, eq=False)
class _Pair:
    """The programs of one radius: one bounds from below; what satisfies the other satisfies the model."""

    below: Setting
    above: Setting
    same: bool


def _pair(rounds: Rounds, ends: Array, share: float) -> _Pair | None:
    found = smoothed(rounds.problem, ranges_of(rounds), share)
    if found is None:
        return None

    def setting(problem: Canonical) -> Setting:
        return Setting(replace(rounds, problem=problem), region(problem), rounds, ends)

    kinks = any(a.expr is not b.expr for a, b in zip(found[0].inequalities, rounds.problem.inequalities))
    return _Pair(setting(found[0]), setting(found[1]), not kinks)


def rounded_static(rounds: Rounds, budget: Budget) -> Comparator:
    """The best decision for all rounds up to an interval, which is made smaller until it is closed or the time is over."""
    began, ends = perf_counter(), np.array([rounds.count])
    best, way = Comparator("static", Status.NOT_COMPUTED, why="the programs with rounded kinks were not solved"), None
    for share in SHARES:
        left = Budget(budget.seconds - (perf_counter() - began), budget.memory)
        pair = _pair(rounds, ends, share) if left.seconds > 0 else None
        if pair is None:
            break
        way = _on_the_way(rounds, ends, share, way, began + budget.seconds)
        lower = static(pair.below, left, way)
        if lower.status is Status.LEAST_VIOLATING:
            best = lower  # what cannot hold rounded off from below cannot hold; a smaller radius finds less violation
            continue
        if best.status is Status.LEAST_VIOLATING:
            break
        upper = lower if pair.same else static(pair.above, left, way)
        bound = max(best.bound, lower.bound if lower.status in (*KNOWN, Status.NOT_COMPUTED) else -np.inf)
        better = upper.status in KNOWN and not upper.value >= best.value
        best = replace(upper if better else best, bound=bound)
        if best.value - bound <= CLOSE * abs(best.value):
            break
    impossible = best.status is Status.LEAST_VIOLATING
    status = best.status if impossible else _status(best.value, best.bound)
    return replace(best, status=status, method="interior point, kinks rounded off", seconds=perf_counter() - began)


def _on_the_way(rounds: Rounds, ends: Array, share: float, way: Solved | None, until: float) -> Solved | None:
    """Solutions of the programs from below with radii on the way to `share`, each from that before it; None where they are astray."""
    for step in STEPS:
        pair = _pair(rounds, ends, step * share)
        way = None if pair is None else solve_all(pair.below, until, way, COARSE)
        if way is None or not way.met.all() or way.late.any():
            return None
    return way


def _status(value: float, bound: float) -> Status:
    if not np.isfinite(value):
        return Status.NOT_COMPUTED
    return Status.CERTIFIED if value - bound <= CLOSE * abs(value) else Status.INTERVAL


def rounded_prefixes(rounds: Rounds, ends: Array, budget: Budget) -> Prefixes:
    """The same for several prefixes side by side, as long as intervals become smaller."""
    began = perf_counter()
    best, way = unknown(ends, "the programs with rounded kinks were not solved"), None
    for share in SHARES:
        left = Budget(budget.seconds - (perf_counter() - began), budget.memory)
        pair = _pair(rounds, ends, share) if left.seconds > 0 else None
        if pair is None:
            break
        way = _on_the_way(rounds, ends, share, way, began + budget.seconds)
        lower = prefixes(pair.below, left, way)
        upper = lower if pair.same else prefixes(pair.above, left, way)
        impossible = np.array([s is Status.LEAST_VIOLATING for s in lower.status])
        proved = impossible | np.array([s is Status.LEAST_VIOLATING for s in best.status])
        met = np.array([s in KNOWN for s in upper.status])
        better = met & ~proved & ~(upper.value >= best.value)
        value = np.where(impossible, lower.value, np.where(better, upper.value, best.value))
        bound = np.where(impossible, lower.bound, np.where(proved, best.bound, np.maximum(best.bound, lower.bound)))
        chosen = {n: _chosen(better, d, best.decision.get(n)) for n, d in upper.decision.items()}
        decision = {n: _chosen(impossible, lower.decision[n], d) for n, d in chosen.items()}
        status = tuple(Status.LEAST_VIOLATING if i else _status(v, b) for i, v, b in zip(proved, value, bound))
        best = Prefixes(ends, value, bound, status, decision, "interior point, kinks rounded off")
        if Status.INTERVAL not in status and Status.NOT_COMPUTED not in status:
            break
    return replace(best, seconds=perf_counter() - began)


def _chosen(better: Array, new: Array, old: Array | None) -> Array:
    return new if old is None else np.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def unknown(ends: Array, why: str) -> Prefixes:
    """Nothing is known of any prefix."""
    none = np.full(len(ends), np.nan)
    return Prefixes(ends, none, np.full(len(ends), -np.inf), (Status.NOT_COMPUTED,) * len(ends), why=why)
