"""Many rounds of a learner at once: one call of the compiled program where it can run them, else round by round.

Under delayed feedback each of the learners in turn plays its own rounds at once, where none of them hears of the others'; those that learn
together play one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from oco.backends.delayed import DelayedLearner
from oco.backends.learner import Learner
from oco.dsl.records import dataclass

Array = np.ndarray[Any, Any]
FIRST_CHUNK = 256
SECONDS = 0.05
"""Seconds that one call may take: interrupts and progress wait no longer."""
ROOM = 1 << 22
"""Approximate bytes that one call reads and writes."""


@dataclass(frozen=True, eq=False)
class PlayedRounds:
    """Played rounds: decisions by name with loss and constraints, the round first; `after` has fields of the state,
    after each, `left` what rounds before left to each, by the names of the program's feedback.

    Decisions are present where those of some of the rounds are wanted.
    """

    first: int
    rounds: int
    decisions: Mapping[str, Array]
    loss: Array
    constraints: Array
    equalities: Array
    after: Mapping[str, Array]
    left: Mapping[str, Array]


def can_play(learner: Learner) -> bool:
    """True where the learner's program runs many rounds in one call."""
    if isinstance(learner, DelayedLearner):
        program = learner.compiled.program
        apart = program.prepare is None or not (program.shared or program.handed)
        return not learner.pending and apart and all(map(can_play, learner.learners))
    program = learner.compiled.program
    alone = learner.journal is not None or bool(program.factored)
    return learner.compiled.run is not None and program.measure is not None and not alone


@dataclass(frozen=True)
class Wanted:
    """Arrays of played rounds beside their measures: `after` names fields of the state, `left` feedback that rounds leave to the next;
    `decided`: decisions.
    """

    after: Collection[str] = ()
    left: Collection[str] = ()
    decided: bool = True


Read = Callable[[int, int], Mapping[str, Array]]
Wants = Callable[[int, int], bool]


def play(
    learner: Learner,
    read: Read,
    rounds: int,
    after: Collection[str] = (),
    wants: Wants = lambda start, stop: True,
    left: Collection[str] = (),
) -> Iterator[PlayedRounds]:
    """Play rounds and give them in parts, each at a whole round; `after` and `left` name arrays of `PlayedRounds`.

    read(start, stop) gives streams as arrays with the round first; wants(start, stop) is True where a decision of these
    rounds is wanted, since copies of large ones take longer than finding them. A round that the program refuses goes
    through `observe`, which raises the error, or repairs the round if it may.
    """
    program = learner.compiled.program
    fields = (*program.feedback, *program.decision, *program.draws)
    done, most = 0, 1 + ROOM // sum(8 * math.prod(f.type.shape) for f in fields)
    chunk = min(FIRST_CHUNK, most)
    while done < rounds:
        stop = min(done + chunk, rounds)
        streams, wanted = read(done, stop), Wanted(after, left, wants(done, stop))
        began = perf_counter()
        at_once = _block
        if isinstance(learner, DelayedLearner):
            at_once = _one_by_one if learner.learns_together else _in_turns
        played = at_once(learner, streams, stop - done, wanted)
        seconds = perf_counter() - began
        if played.rounds:
            yield played
        done += played.rounds
        if done < stop:
            yield _single(learner, {n: a[played.rounds] for n, a in streams.items()}, wanted)
            done += 1
        chunk = int(np.clip(chunk * SECONDS / max(seconds, 1e-6), chunk / 8, min(chunk * 8, most))) or 1


def _in_turns(learner: Any, streams: Mapping[str, Array], rounds: int, wanted: Wanted) -> PlayedRounds:
    """Rounds of learners in turn, all of them."""
    first, turns = learner.round, len(learner.learners)
    parts = []
    for i in range(min(turns, rounds)):
        one = learner.learners[(first - 1 + i) % turns]
        parts.append(_whole(one, {n: a[i::turns] for n, a in streams.items()}, -(-(rounds - i) // turns), wanted))
    learner.passed(rounds)

    def mixed(each: Sequence[Array]) -> Array:
        result = np.empty((rounds, *each[0].shape[1:]), each[0].dtype)
        for i, array in enumerate(each):
            result[i::turns] = array
        return result

    return _merged(parts, first, mixed)


def _one_by_one(learner: Any, streams: Mapping[str, Array], rounds: int, wanted: Wanted) -> PlayedRounds:
    """Rounds of learners that learn together: what a round decides was known before the rounds that are open then."""
    first, parts = learner.round, []
    for t in range(rounds):
        one = learner.learners[(first - 1 + t) % len(learner.learners)]
        one._learn_from(learner.newest)
        parts.append(_whole(one, {n: a[t : t + 1] for n, a in streams.items()}, 1, wanted))
        learner.passed(1)
    return _merged(parts, first, np.concatenate)


def _whole(learner: Learner, streams: Mapping[str, Array], rounds: int, wanted: Wanted) -> PlayedRounds:
    """Rounds of a single learner, those that its program refuses one by one."""
    first, done, parts = learner.round, 0, list[PlayedRounds]()
    while done < rounds:
        part = _block(learner, {n: a[done:] for n, a in streams.items()}, rounds - done, wanted)
        if not part.rounds:
            part = _single(learner, {n: a[done] for n, a in streams.items()}, wanted)
        parts.append(part if wanted.decided else replace(part, decisions={}))
        done += part.rounds
    return _merged(parts, first, np.concatenate)


def _merged(parts: Sequence[PlayedRounds], first: int, merge: Callable[[Sequence[Array]], Array]) -> PlayedRounds:
    """Parts as one, their arrays merged."""
    return PlayedRounds(
        first,
        sum(p.rounds for p in parts),
        {name: merge([p.decisions[name] for p in parts]) for name in parts[0].decisions},
        merge([p.loss for p in parts]),
        merge([p.constraints for p in parts]),
        merge([p.equalities for p in parts]),
        {name: merge([p.after[name] for p in parts]) for name in parts[0].after},
        {name: merge([p.left[name] for p in parts]) for name in parts[0].left},
    )


def _block(learner: Learner, streams: Mapping[str, Array], rounds: int, wanted: Wanted) -> PlayedRounds:
    program = learner.compiled.program
    own = {name: field for name, field in program.previous if name in wanted.left}
    measured = ["loss", "constraints", "equalities", *(f"after_{name}" for name in (*wanted.after, *own.values()))]
    first, begun = learner.round, {name: np.asarray(learner.value(field)) for name, field in own.items()}
    inputs = [streams[f.name] for f in program.revealed]
    recorded = learner.advance(inputs, rounds, ["decisions", *measured] if wanted.decided else measured)
    decisions: dict[str, Array] = {}
    if wanted.decided:
        split = np.cumsum([math.prod(f.type.shape) for f in program.decision])[:-1]
        parts = np.split(recorded.kept["decisions"], split, axis=1)
        decisions = {f.name: part.reshape(recorded.rounds, *f.type.shape) for f, part in zip(program.decision, parts)}
    kept = recorded.kept
    fields = {name: kept[f"after_{name}"] for name in wanted.after}
    left = {
        name: np.concatenate([begun[name][None], kept[f"after_{field}"]])[: recorded.rounds]
        for name, field in own.items()
    }
    return PlayedRounds(
        first, recorded.rounds, decisions, kept["loss"], kept["constraints"], kept["equalities"], fields, left
    )


def _single(learner: Learner, streams: Mapping[str, Any], wanted: Wanted) -> PlayedRounds:
    known = {name: streams[name] for name in learner.contexts.names}
    first, decided = learner.round, learner.decide(**known)
    own = dict(learner.compiled.program.previous)
    left = {name: np.asarray(learner.value(own[name]))[None].copy() for name in wanted.left}
    feedback = learner.observe(**streams)
    names = [f.name for f in learner.compiled.program.decision]
    decisions = decided if isinstance(decided, dict) else {names[0]: decided}
    fields = {name: np.asarray(learner.value(name))[None] for name in wanted.after}
    return PlayedRounds(
        first,
        1,
        {n: d[None] for n, d in decisions.items()},
        np.array([feedback.loss]),
        feedback.constraints[None],
        feedback.equalities[None],
        fields,
        left,
    )
