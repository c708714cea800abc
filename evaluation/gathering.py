"""Rounds of an iterator, several at a time, so that a compiled program plays them in one call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np

from oco.backends.arguments import CODES
from oco.backends.learner import Learner
from oco.backends.play import can_play
from oco.compiler.ir.program import Type
from oco.compiler.ir.verifier import KINDS
from oco.compiler.problem.canonical import Canonical
from oco.dsl.diagnostics import OcoError, fail
from oco.evaluation.data import Data

Array = np.ndarray[Any, Any]
Values = Mapping[str, Array]
ROUNDS = 1024
"""Rounds that are waited for at most: from some hundred on a round takes no longer than one of many more."""
ROOM = 1 << 19
"""Bytes of the rounds that are waited for, which are little beside the process."""
SECONDS = 0.2
"""Seconds that rounds are waited for: an iterator that takes its time is played as it comes."""


def can_gather(problem: Canonical, learner: Learner) -> bool:
    """True where rounds are played as they are given: nothing comes late, and nothing is left from one to the next."""
    given = {s.name for s in problem.revealed} == {f.name for f in learner.compiled.program.feedback}
    return given and not problem.delay and not problem.carried and can_play(learner)


def gathered(problem: Canonical, learner: Learner, feed: Iterable[Values]) -> Iterator[Data | list[Values]]:
    """Iterate over parts of the rounds: arrays, or a list where they make none, so that the learner says what is wrong with them."""
    types = {f.name: f.type for f in learner.compiled.program.feedback}
    entries = sum(int(np.prod(made.shape)) for made in types.values())
    most, rounds = max(1, min(ROUNDS, ROOM // (8 * max(1, entries)))), iter(feed)
    while part := _next(rounds, most):
        arrays = _arrays(part, types)
        yield part if arrays is None else Data(problem, len(part), MappingProxyType(arrays))


def _next(rounds: Iterator[Values], most: int) -> list[Values]:
    """Next rounds, one at least unless there is none: as many as come in a short time."""
    part, until = [], perf_counter() + SECONDS
    for values in rounds:
        part.append(values)
        if len(part) == most or perf_counter() > until:
            break
    return part


def _arrays(part: Sequence[Values], types: Mapping[str, Type]) -> dict[str, Array] | None:
    """Streams with the round first; None where a value is no array of its stream."""
    results: dict[str, Array] = {}
    for values in part:
        if values.keys() != types.keys():
            return None
    for name, made in types.items():
        own, kind = [values[name] for values in part], KINDS[made.dtype]
        if {(type(v), v.shape) for v in own} != {(np.ndarray, made.shape)}:
            return None
        rows = np.concatenate(own) if made.shape else np.array(own)
        if not np.can_cast(rows.dtype, kind, "safe"):
            return None
        results[name] = rows.reshape(len(part), *made.shape).astype(kind, copy=False)
    return results


def taken(feed: Iterator[dict[str, Array]], rounds: int | None) -> Iterator[dict[str, Array]]:
    """Iterate over so many rounds, or all of them."""
    for index, values in enumerate(feed):
        if rounds is not None and index >= rounds:
            return
        yield values


@contextmanager
def of_the_data(learner: Learner, round: int | None = None) -> Iterator[None]:
    """Context in which errors about data name the round, by default that of the learner."""
    try:
        yield
    except OcoError as error:
        if error.code not in CODES.values():
            raise
        now = learner.round if round is None else round
        raise fail(error.code, f"round {now} of the data: {error.message}", hint=error.hint) from None
