"""Tuning of settings by the slopes of a run's cost: a descent from the default, judged on the rounds after those that it saw."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter

from oco.compiler.theory.free_constants import Free
from oco.compiler.theory.theorems import Situation
from oco.dsl.diagnostics import OcoError
from oco.evaluation.cost import Trade
from oco.evaluation.data import Data
from oco.evaluation.tuning import (
    SEARCH_TIME,
    Numbers,
    SearchSpace,
    TriedConstants,
    Tuning,
    held_out,
    split_of,
    tried_order,
)

EVALUATIONS = 30
"""Most runs of a descent; a few steps of two or three constants come to rest in half of them."""
FIRST, LEAST = 1.0, 0.01
"""Length of the first step and of the last, in log: factors of e and of 1.01."""
GAINED = 0.1
"""Share of what the slopes promise that a step must gain: without it steps would go on where the cost is flat."""
Slopes = Callable[[Numbers], tuple[float, Mapping[str, float]]]
"""Cost of a run in the trade's units, a round, and its derivative in each constant."""


def descend(
    name: str,
    space: SearchSpace,
    slopes: Callable[[Trade, Data], Slopes],
    data: Data,
    s: Situation,
    weight: float = 1.0,
    seed: int = 0,
    seconds: float = math.inf,
) -> Tuning:
    """Descend from the default constants of a space along the slopes of the steady cost, in log, within their ranges and where the theorem
    holds; the rounds held out then decide between the last step and the default.

    slopes   makes the cost of a trade over the second half of some rounds, with its slopes
    seconds  time that it may take, the first evaluation aside

    Raises OcoError where the data is too short to be split, and what `slopes` raises.
    """
    until = perf_counter() + SEARCH_TIME * seconds
    split, trade = split_of(data), Trade.of(s, weight)
    past = data.first(split)
    cost = slopes(trade, past)
    default = TriedConstants(space.own, space.starts[space.own], cost(space.starts[space.own])[0], split, space=name)
    tried = [default, *_steps(name, space, cost, default, split, until)]
    best = min(tried, key=tried_order)
    judged = [best] if best is default else [best, default]
    held = [held_out(t, space, data, split, partial(Trade.of, s, weight), seed, len(judged)) for t in judged]
    others = sorted((t for t in tried if t not in judged), key=tried_order)
    return Tuning((*held, *others), space.own, split, data.rounds, seed)


def _steps(
    name: str, space: SearchSpace, cost: Slopes, default: TriedConstants, rounds: int, until: float
) -> list[TriedConstants]:
    """Trials of a descent: each step along the slopes, twice as long after one that gains its share, and half as long after another."""
    free = [f for f in space.free if f.kind != "count"]
    now, length, tried = default.numbers, FIRST, list[TriedConstants]()
    value, slope = cost(now)
    while len(tried) < EVALUATIONS and length >= LEAST and perf_counter() < until:
        fall = _fall(free, now, slope)
        size = math.hypot(*fall.values())
        if not size or not math.isfinite(size):
            break
        numbers = _moved(free, now, {n: length * d / size for n, d in fall.items()})
        following = _cost_at(cost, numbers) if space.allowed(numbers) else None
        if following is not None:
            tried.append(TriedConstants(f"step {len(tried) + 1}", numbers, following[0], rounds, space=name))
        if following is None or not value - following[0] >= GAINED * length * size:
            length /= 2
            continue
        now, (value, slope), length = numbers, following, 2 * length
    return tried


def _cost_at(cost: Slopes, numbers: Numbers) -> tuple[float, Mapping[str, float]] | None:
    """Cost and slopes at some constants; None where a setting has no value or the run is not finite."""
    try:
        value, slope = cost(numbers)
    except OcoError:
        return None
    return (value, slope) if math.isfinite(value) else None


def _fall(free: list[Free], now: Numbers, slope: Mapping[str, float]) -> dict[str, float]:
    """Slopes down in the logarithm of each constant: -x times the derivative in x."""
    return {f.name: -now[f.name] * slope[f.name] for f in free if now.get(f.name, 0.0) > 0 and f.name in slope}


def _moved(free: list[Free], now: Numbers, by: Mapping[str, float]) -> dict[str, float]:
    """Constants moved by distances in log, within their ranges, in four digits."""
    ranges = {f.name: (f.low, f.high) for f in free}
    moved = {n: min(max(now[n] * math.exp(d), ranges[n][0]), ranges[n][1]) for n, d in by.items()}
    return {**now, **{n: float(f"{x:.4g}") for n, x in moved.items()}}
