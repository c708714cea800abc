"""Processes that are killed while they work, and models for them."""

from __future__ import annotations

import ctypes
import multiprocessing
import random
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import oco
from oco.plan import Plan

TRACKING = """\
model tracked
horizon T = 100000
decision x[4] in box(-1, 1)
stream goal[4] in [-1, 1]
stream limit in [0, 3]
minimize sum_squares(x - goal)
subject to
    cap: sum(x) - limit <= 0    each round
using coldq with alpha = sqrt(t), eta = 0.001, gamma = 10, epsilon = 0.5
"""
DRAWING = """\
model drawn
horizon T = 1000
decision x[3] in ball(1)
stream c[3] in [-1, 1]
minimize c @ x
subject to
    half: x[0] - 0.5 <= 0    each round
feedback bandit
"""


@cache
def plan_of(text: str) -> Plan:
    return oco.compile(oco.parse(text))


def kill_at_random(target: Callable[..., None], arguments: tuple[Any, ...], rng: random.Random, longest: float) -> int:
    """Run `target(*arguments, done)` in a process of its own and end it with SIGKILL at some moment of its work.

    `done` is a number in shared memory, for the rounds that the process believes safe; what stands in it last is returned.
    The process is killed somewhere in its first three rounds, by how long these take on the machine; up to `longest` seconds after it
    has begun the first.
    """
    context = multiprocessing.get_context("fork")
    done = context.Value(ctypes.c_int64, -1, lock=False)
    process = context.Process(target=target, args=(*arguments, done), daemon=True)
    process.start()
    while done.value < 0 and process.is_alive():
        time.sleep(0.0002)
    assert process.is_alive(), "the process ended by itself"
    begun, rounds, began = done.value, rng.randrange(3), time.monotonic()
    while done.value < begun + rounds and process.is_alive():
        time.sleep(0.0002)
    each = (time.monotonic() - began) / rounds if rounds else longest
    time.sleep(rng.uniform(0, each))
    process.kill()
    process.join()
    assert process.exitcode == -9
    return int(done.value)


def data_of(plan: Plan, round: int) -> dict[str, Any]:
    """Values that a round reveals: the same in every process."""
    rng = np.random.default_rng([7, round])
    return {s.name: rng.uniform(s.lower, s.upper, s.shape) for s in plan.canonical.streams}


def seen_by(plan: Plan, learner: Any) -> dict[str, Any]:
    """Arguments of `observe` in this round: the data, or the values that bandit feedback shows."""
    from oco.evaluation.revealed import Revealed

    values = data_of(plan, learner.round)
    if plan.canonical.feedback.value == "full":
        return values
    *_, seen = Revealed(plan.canonical)(learner.decide(), values, learner.round)
    return dict(seen)


def play_round(plan: Plan, learner: Any, **options: Any) -> np.ndarray[Any, Any]:
    """One round; the decision."""
    decision = learner.decide()
    learner.observe(**seen_by(plan, learner), **options)
    return decision
