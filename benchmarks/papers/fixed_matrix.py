"""The best fixed matrix in hindsight for observed entries in a nuclear ball, under a dense linear constraint <P_t, X> <= 0 a round.

The losses add up to squares of single entries, so that what no constraint can beat is known: each entry at the mean of its ratings. The
constraints are many fewer than the entries that nobody rated, and those alone are moved until every constraint holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from oco.evaluation.data import Data

Array = np.ndarray[Any, Any]
SLACK = 0.98  # of the radius, for the part that observations ask for
SWEEPS = 12
STEPS = 200
OVERSHOOT = 0.1  # of the typical size of <P, X>: what one constraint gives up for those after it


@dataclass(frozen=True, eq=False)
class Fixed:
    """The least loss of a fixed decision lies in [lower, upper]; `losses` are those of a feasible one that attains `upper`, a round each.

    Without a feasible one in time `losses` is None, and `said` tells why.
    """

    lower: float
    losses: Array | None
    said: str

    @property
    def upper(self) -> float | None:
        return None if self.losses is None else float(self.losses.sum())


def best_fixed(data: Data, shape: tuple[int, int], radius: float, seconds: float) -> Fixed:
    """The interval for the first rounds of `data`, with streams user, item, rating and P, within so many seconds."""
    deadline = perf_counter() + seconds
    user, item, rating = (data.array(n) for n in ("user", "item", "rating"))
    count, total = np.zeros(shape), np.zeros(shape)
    np.add.at(count, (user, item), 1.0)
    np.add.at(total, (user, item), rating)
    mean = total / np.maximum(count, 1.0)
    spread = float(((rating - mean[user, item]) ** 2).sum() / 2)
    X, gap = within_ball(count, mean, SLACK * radius, deadline)
    lower = max(spread, spread + float((count * (X - mean) ** 2).sum() / 2) - gap)
    X = X if gap > 0 else mean.copy()
    if not satisfied(X, data, count > 0, deadline):
        return Fixed(lower, None, "no matrix was found in time that satisfies the constraint of every round")
    norm = float(np.linalg.svd(X, compute_uv=False).sum())
    if norm > radius:  # a shorter matrix satisfies the same constraints
        X, norm = X * (radius / norm), radius
    losses = (X[user, item] - rating) ** 2 / 2
    return Fixed(
        lower, losses, f"nuclear norm {norm:.5g} of {radius:g}, every constraint of the {data.rounds} rounds holds"
    )


def within_ball(count: Array, mean: Array, radius: float, deadline: float) -> tuple[Array, float]:
    """A minimiser of sum count (X - mean)^2 / 2 over the nuclear ball by accelerated projected gradients, and its Frank-Wolfe gap.

    The gap <grad, X> + radius |grad|_2 bounds how far its value is from the least one (Jaggi 2013); 0 where the mean lies in the ball.
    """
    X = projected(mean, radius)
    if np.array_equal(X, mean):
        return X, 0.0
    Y, momentum, step = X, 1.0, 1 / count.max()
    for _ in range(STEPS):
        following = projected(Y - step * count * (Y - mean), radius)
        last, momentum = momentum, (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        Y, X = following + (last - 1) / momentum * (following - X), following
        if perf_counter() > deadline:
            break
    slope = count * (X - mean)
    return X, float((slope * X).sum() + radius / SLACK * np.linalg.norm(slope, 2))


def projected(X: Array, radius: float) -> Array:
    """The nearest matrix of at most that nuclear norm; X itself where it is one."""
    u, s, vt = np.linalg.svd(X, full_matrices=False)
    if s.sum() <= radius:
        return X
    excess = (np.cumsum(s) - radius) / np.arange(1, len(s) + 1)
    return np.asarray((u * np.maximum(s - excess[s > excess][-1], 0.0)) @ vt)


def satisfied(X: Array, data: Data, rated: Array, deadline: float) -> bool:
    """Move the entries that nobody rated until <P_t, X> <= 0 in every round, one constraint after the other (Kaczmarz); whether it did."""
    for _ in range(SWEEPS):
        moved = False
        for t in range(data.rounds):
            P = data.read(t, t + 1)["P"][0]
            value, free = float(np.vdot(P, X)), np.where(rated, 0.0, P)
            size = float(np.vdot(free, free))
            margin = OVERSHOOT * float(np.linalg.norm(X)) * np.sqrt(size / X.size)
            if value > -margin / 2:
                X -= (value + margin) / size * free
                moved |= value > 0
            if perf_counter() > deadline:
                return False
        if not moved:
            return True
    return False
