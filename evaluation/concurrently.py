"""Rounds in a thread of their own beside work in the caller's: compiled calls leave the interpreter to others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import field
from threading import Condition, Event
from typing import Any

import numpy as np

from oco.dsl.records import dataclass
from oco.evaluation.recorder import Recorder

Array = np.ndarray[Any, Any]


class Stopped(Exception):
    """Raised in a thread that was told to stop."""


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, eq=False)
class PlayedSoFar:
    """Rounds that a thread plays, for another one that follows it. `more` is called after some rounds, and `ended` after the last."""

    recorder: Recorder
    _changed: Condition = field(default_factory=Condition, init=False)
    _over: Event = field(default_factory=Event, init=False)

    def more(self) -> None:
        """Say that there are more rounds."""
        with self._changed:
            self._changed.notify_all()

    def ended(self) -> None:
        """Say that there will be no more."""
        self._over.set()
        self.more()

    def wait_for(self, rounds: int) -> None:
        """Wait until so many are recorded. Raises Stopped where the thread ended before."""
        with self._changed:
            self._changed.wait_for(lambda: self.recorder.count >= rounds or self._over.is_set())
        if self.recorder.count < rounds:
            raise Stopped

    @property
    def decisions(self) -> Mapping[str, FollowedRows]:
        """Decisions by name, the round first, but for those in factors; none where not those of all rounds are kept, or files are not read
        while they are written.
        """
        rounds = self.recorder.expected
        if not rounds or self.recorder.every != 1 or not hasattr(os, "pread"):
            return {}
        fields = {f.name for f in self.recorder.learner.compiled.program.decision}
        return {name: FollowedRows(self, name, rounds) for name in self.recorder.names if name in fields}


@dataclass(frozen=True, eq=False)
class FollowedRows:
    """Decisions of one name: a part of them is there once its rounds are."""

    source: PlayedSoFar
    name: str
    rounds: int

    def __len__(self) -> int:
        return self.rounds

    def __getitem__(self, part: slice) -> Array:
        start, stop, _ = part.indices(self.rounds)
        self.source.wait_for(stop)
        return self.source.recorder.decided(self.name, start, stop)


Step = Callable[[PlayedSoFar], object]


def side_by_side(play: Callable[[Event], None], steps: Iterable[Step], played: PlayedSoFar) -> None:
    """Run `play` in a thread while this one, which alone hears Ctrl-C, takes the steps in order that begin before the rounds end.

    play  gets an event, and ends soon once that is set: so it is where a step fails or is interrupted. Its thread has ended when this
          returns or raises; what it raises comes after the step that is being done then.
    """
    stop = Event()

    def to_the_end() -> None:
        try:
            play(stop)
        finally:
            played.ended()

    with ThreadPoolExecutor(1, "oco-rounds") as pool:
        rounds = pool.submit(to_the_end)
        try:
            with suppress(Stopped):  # what follows the rounds ends with them
                for step in steps:
                    if rounds.done():
                        break
                    step(played)
            rounds.result()
        finally:
            stop.set()
