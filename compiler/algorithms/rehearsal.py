"""Rounds drawn from stated distributions, which a learner plays before the first round, so that it does not begin in the middle.

Streams without a distribution stand in the middle of their ranges. What is drawn is drawn once, as a program is made: 32 rounds with a
fixed seed. A rehearsal needs a distribution of every stream of the constraints, for what a violation costs is known by these alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical, StreamRange
from oco.dsl.expressions import Kind, changes, names

Array = np.ndarray[Any, Any]
ROUNDS = 32
SEED = 0
MOST_NUMBERS = 10**5
"""Numbers of all rounds, beyond which none are rehearsed: they are constants of the program."""


@lru_cache(maxsize=16)
def rehearsed(canonical: Canonical) -> Mapping[str, Array]:
    """Rounds of each stream, (ROUNDS, *shape); empty where they cannot be drawn, or a round waits for what is known before it."""
    exprs = [c.expr for c in canonical.constraints]
    limits = {n for e in exprs for n in names(e, Kind.STREAM)}
    streams, own = canonical.streams, {s.name: s for s in canonical.streams}
    used = [s for s in streams if s.name in limits or s.name in names(canonical.objective, Kind.STREAM)]
    timed = any(names(e, Kind.ROUND) for e in (*exprs, canonical.objective))
    unstated = any(own[n].distribution is None for n in limits)
    known = any(changes(c.expr) for c in canonical.known)
    waits = bool(known or canonical.carried or canonical.predictions) or any(s.stream.known for s in streams)
    if not limits or timed or unstated or waits or not all(map(_is_bounded, used)):
        return {}
    rng, size = np.random.default_rng(SEED), sum(int(np.prod(s.shape)) for s in streams)
    return {s.name: _drawn(s, rng) for s in streams} if ROUNDS * size <= MOST_NUMBERS else {}


def is_whole(canonical: Canonical) -> bool:
    """True where the loss is known by stated distributions too, so that slopes and margins of a rehearsal are those of rounds to come."""
    streams = {s.name: s for s in canonical.streams}
    return all(streams[n].distribution is not None for n in names(canonical.objective, Kind.STREAM))


def _is_bounded(s: StreamRange) -> bool:
    return s.distribution is not None or bool(np.isfinite(s.lower).all() and np.isfinite(s.upper).all())


def _drawn(s: StreamRange, rng: np.random.Generator) -> Array:
    kind = np.int64 if s.integer else np.float64
    if s.distribution is not None:
        return np.asarray(s.distribution.sample(rng, ROUNDS)).astype(kind)
    middle = np.broadcast_to((np.asarray(s.lower, dtype=float) + np.asarray(s.upper, dtype=float)) / 2, s.shape)
    values = np.broadcast_to(np.where(np.isfinite(middle), middle, 0.0), (ROUNDS, *s.shape))
    return values.astype(kind)
