"""Many rounds of a learner at once: one call of the compiled program where it can run them, else round by round."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from oco.backends.learner import Learner

Array = np.ndarray[Any, Any]
FIRST_CHUNK = 256
SECONDS = 0.05
"""Seconds that one call may take: interrupts and progress wait no longer."""
ROOM = 1 << 22
"""Approximate bytes that one call reads and writes."""


@dataclass(frozen=True, eq=False)
class PlayedRounds:
    """Played rounds: decisions by name with loss and constraints, the round first; `after` has fields of the state,
    after each.

    Decisions are present where those of some of the rounds are wanted.
    """

    first: int
    rounds: int
    decisions: Mapping[str, Array]
    loss: Array
    constraints: Array
    equalities: Array
    after: Mapping[str, Array]


def can_play(learner: Learner) -> bool:
    """True where the learner's program runs many rounds in one call."""
    program = learner.compiled.program
    alone = learner.journal is not None or bool(program.draws) or bool(program.factored)
    return learner.compiled.run is not None and program.measure is not None and not alone


Read = Callable[[int, int], Mapping[str, Array]]
Wants = Callable[[int, int], bool]


def play(
    learner: Learner, read: Read, rounds: int, after: Collection[str] = (), wants: Wants = lambda start, stop: True
) -> Iterator[PlayedRounds]:
    """Play rounds and give them in parts, each at a whole round.

    read(start, stop) gives streams as arrays with the round first; wants(start, stop) is True where a decision of these
    rounds is wanted, since copies of large ones take longer than finding them. A round that the program refuses goes
    through `observe`, which raises the error, or repairs the round if it may.
    """
    fields = (*learner.compiled.program.feedback, *learner.compiled.program.decision)
    done, most = 0, 1 + ROOM // sum(8 * int(np.prod(f.type.shape)) for f in fields)
    chunk = min(FIRST_CHUNK, most)
    while done < rounds:
        stop = min(done + chunk, rounds)
        streams = read(done, stop)
        began = perf_counter()
        played = _block(learner, streams, stop - done, after, wants(done, stop))
        seconds = perf_counter() - began
        if played.rounds:
            yield played
        done += played.rounds
        if done < stop:
            yield _single(learner, {n: a[played.rounds] for n, a in streams.items()}, after)
            done += 1
        chunk = int(np.clip(chunk * SECONDS / max(seconds, 1e-6), chunk / 8, min(chunk * 8, most))) or 1


def _block(
    learner: Learner, streams: Mapping[str, Array], rounds: int, after: Collection[str], decided: bool
) -> PlayedRounds:
    program = learner.compiled.program
    worth = ["loss", "constraints", "equalities", *(f"after_{name}" for name in after)]
    first = learner.round
    inputs = [streams[f.name] for f in program.feedback]
    recorded = learner.advance(inputs, rounds, ["decisions", *worth] if decided else worth)
    decisions: dict[str, Array] = {}
    if decided:
        split = np.cumsum([int(np.prod(f.type.shape)) for f in program.decision])[:-1]
        parts = np.split(recorded.kept["decisions"], split, axis=1)
        decisions = {f.name: part.reshape(recorded.rounds, *f.type.shape) for f, part in zip(program.decision, parts)}
    kept = recorded.kept
    fields = {name: kept[f"after_{name}"] for name in after}
    return PlayedRounds(
        first, recorded.rounds, decisions, kept["loss"], kept["constraints"], kept["equalities"], fields
    )


def _single(learner: Learner, streams: Mapping[str, Any], after: Collection[str]) -> PlayedRounds:
    known = {name: streams[name] for name in learner.contexts.names}
    first, decided = learner.round, learner.decide(**known)
    feedback = learner.observe(**streams)
    names = [f.name for f in learner.compiled.program.decision]
    decisions = decided if isinstance(decided, dict) else {names[0]: decided}
    fields = {name: np.asarray(learner.value(name))[None] for name in after}
    return PlayedRounds(
        first,
        1,
        {n: d[None] for n, d in decisions.items()},
        np.array([feedback.loss]),
        feedback.constraints[None],
        feedback.equalities[None],
        fields,
    )
