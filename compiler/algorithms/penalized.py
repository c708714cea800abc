"""Violation bound from the optimality of a penalized step, for every method whose next decision is

    x_{t+1} = argmin over X of <grad f_t(x_t), x - x_t> + alpha_t |x - x_t|^2 + sum_n W_t^n [g_t^n(x)]_+,      W_t^n >= w_t > 0.

The objective is 2 alpha_t-strongly convex, so for every z_t in X with g_t(z_t) <= 0

    <grad f_t(x_t), x_{t+1} - z_t> + alpha_t |x_{t+1} - x_t|^2 + sum_n W_t^n [g_t^n(x_{t+1})]_+
        <= alpha_t (|z_t - x_t|^2 - |z_t - x_{t+1}|^2),

where the first term is at least -D R. Divided by w_t this bounds sum_t [g_t(x_{t+1})]_+; divided by alpha_t, the squared moves
sum_t |x_{t+1} - x_t|^2 and so, by Cauchy and Schwarz, the moves. From g_t(x_{t+1}) to g_{t+1}(x_{t+1}) it is the variation of the
constraints, to g_t(x_t) their slope times the move: the smaller one counts. The second way gives O(T^(3/4)) for alpha_t = sqrt(t)
whatever the constraints do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from oco.compiler.algorithms.common import common_comparator
from oco.compiler.theory.schedule import Rounds, Schedule
from oco.compiler.theory.theorems import Floats, Quantity, Situation, needed, needed_bounds

Scheduled = Callable[[Rounds, int], Schedule]

STEP_VIOLATION = "sum_g + D*R*penalties + weighted + drift"


def step_quantities(s: Situation, alpha: Scheduled, weight: Scheduled) -> tuple[Quantity, ...]:
    """The symbols of `STEP_VIOLATION` but for D and R; `weight` is w_t."""
    return (*penalty_quantities(s, weight), *move_quantities(s, alpha, weight))


def penalty_quantities(s: Situation, weight: Scheduled) -> tuple[Quantity, ...]:
    """Quantities in which alpha does not occur."""
    sizes = needed_bounds(s, "bound")
    return (
        Quantity("sum_g", r"\sum_n \sup |g^n|", "sizes of the constraints", float(sizes.sum())),
        Quantity(
            "penalties", r"\sum_t 1/w_t", "sum of the inverse penalties", lambda n, T: weight(n, T).inverse.sums()
        ),
    )


def _path(s: Situation, horizon: int) -> float:
    """Path length of a sequence that satisfies each round's constraints: one common point has none."""
    known, worst = s.number("path_length"), needed(s, "domain.diameter.l2") * max(horizon - 1, 0)
    return 0.0 if common_comparator(s) else worst if known is None else min(known, worst)


def move_quantities(s: Situation, alpha: Scheduled, weight: Scheduled) -> tuple[Quantity, ...]:
    """Quantities in which alpha occurs."""
    diameter = needed(s, "domain.diameter.l2")

    def weighted(rounds: Rounds, horizon: int) -> Floats:
        b: Schedule = alpha(rounds, horizon) / weight(rounds, horizon)
        grown, path = diameter**2 * b.growth(), _path(s, horizon)
        if path <= 0:
            return grown
        return np.asarray(grown + 2 * diameter * np.minimum(diameter * (b.sums() - b.last), path * b.peaks()))

    return (
        Quantity(
            "weighted",
            r"\sum_t \alpha_t (\|z_t - x_t\|^2 - \|z_t - x_{t+1}\|^2) / w_t",
            "telescoped distances to feasible points",
            weighted,
        ),
        drift(s, alpha),
    )


def drift(s: Situation, alpha: Scheduled) -> Quantity:
    """Sum of what the constraints rise by from one round to the next, or from x_{t+1} to x_t: the smaller one counts."""
    slope, diameter = needed(s, "loss.lipschitz.l2"), needed(s, "domain.diameter.l2")
    slopes = s.inequality_bounds("lipschitz.l2")
    steepness = None if slopes is None else float(slopes.sum())

    def value(rounds: Rounds, horizon: int) -> Floats:
        changed = np.sqrt(s.constraints) * constraint_variation(s, rounds, horizon)
        if steepness is None:
            return np.asarray(changed)
        squares = slope * diameter * alpha(rounds, horizon).inverse.sums()
        squares = squares + diameter * (diameter + 2 * _path(s, horizon))
        t = rounds.last
        with np.errstate(invalid="ignore"):  # a given alpha below zero has no bound, which the plan warns of
            moves = np.minimum(np.sqrt(t * squares), diameter * t)
        return np.asarray(np.minimum(changed, steepness * moves))

    return Quantity(
        "drift",
        r"\sum_t \min(\|g_{t+1} - g_t\|, \|g_t(x_{t+1}) - g_t(x_t)\|)",
        "variation of the constraints, or moves of the decision",
        value,
    )


@lru_cache(maxsize=4)
def _norm_of_bounds(s: Situation) -> float:
    """l2 norm of the bounds of all constraints: a search over settings asks thousands of times, of thousands of constraints."""
    return float(np.linalg.norm(needed_bounds(s, "bound")))


def constraint_variation(s: Situation, rounds: Rounds, horizon: int) -> Floats:
    """sum_t max_x |g_t - g_{t-1}| after each stretch: none where no stream enters, else the fact, at most the worst case."""
    steps = rounds.last - 1
    if not s.constraints_vary:
        return 0 * steps
    worst = 2 * _norm_of_bounds(s) * steps
    known = s.number("variation.constraint")
    if known is None or horizon != s.horizon:
        return worst
    return np.minimum(worst, known)
