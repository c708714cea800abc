"""Trial rounds: streams whose distribution the model does not state, drawn uniformly from the values that it allows."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical, StreamRange
from oco.dsl.diagnostics import fail

Array = np.ndarray[Any, Any]


def trial_rounds(problem: Canonical, rounds: int, seed: int) -> dict[str, Array]:
    """Arrays (rounds, *shape) for the streams without a distribution, each entry independent and uniform over its range.

    The result depends on the seed, the name and the number of rounds alone. Raises OCO825 for a stream without finite bounds.
    """
    return {s.name: _uniform(s, rounds, seed) for s in problem.streams if s.distribution is None}


def _uniform(stream: StreamRange, rounds: int, seed: int) -> Array:
    rng = np.random.default_rng([seed, zlib.crc32(stream.name.encode())])
    size = (rounds, *stream.shape)
    if stream.stream.values:
        return np.asarray(rng.choice(np.asarray(stream.stream.values), size))
    low, high = (np.broadcast_to(end, stream.shape) for end in (stream.lower, stream.upper))
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        hint = f"give it bounds, `stream {stream.name} in [0, 1]`, or give data"
        raise fail("OCO825", f"`{stream.name}` has no finite range to be drawn from", stream.stream.span, hint)
    if stream.integer:
        return rng.integers(low.astype(np.int64), high.astype(np.int64), size, endpoint=True)
    return rng.uniform(low, high, size)
