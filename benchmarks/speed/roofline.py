"""Least time of a round on this machine: its operations at the peak rate of products and sums, or its bytes at that of memory.

Operations are those of the program as `round_work` counts them, an exponential or a root as one; bytes are those of the round's data and
decision, and of the state, read and written.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from run import address, library

from oco.backends.round_work import work_of
from oco.plan import Plan

TURNS, CHAINS = 200_000, 96
TRIAD = 1 << 23
"""Entries of an array of the triad: 64 MB, beyond most caches."""


@dataclass(frozen=True)
class Peak:
    """Operations and bytes a second."""

    operations: float
    bytes: float


@cache
def peak() -> Peak:
    """Peak of this machine, the best of several measurements in process time."""
    made = library("peak.c", "-ffast-math")
    sums, (a, b, c) = np.empty(CHAINS), np.ones((3, TRIAD))
    factor = ctypes.c_double(0.5)
    computing = _least(lambda: made.multiply_and_add(ctypes.c_int64(TURNS), factor, address(sums)))
    moving = _least(lambda: made.triad(ctypes.c_int64(TRIAD), factor, *map(address, (a, b, c))))
    return Peak(2 * CHAINS * TURNS / computing, 24 * TRIAD / moving)


def _least(work: Callable[[], object]) -> float:
    seconds = math.inf
    for _ in range(7):
        began = time.process_time()
        work()
        seconds = min(seconds, time.process_time() - began)
    return seconds


def least_seconds(plan: Plan) -> tuple[float, str]:
    """Least seconds of a round, and what sets them: "operations" or "bytes"."""
    program = plan.program
    numbers = sum(math.prod(f.type.shape) for f in (*program.feedback, *program.draws, *program.decision))
    states = sum(math.prod(f.type.shape) for f in program.state)
    computing = work_of(program).entries / peak().operations
    moving = 8 * (numbers + 2 * states) / peak().bytes
    return max((computing, "operations"), (moving, "bytes"))
