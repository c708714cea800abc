"""Followers of a journal: what a running learner played, read from copies of its files without touching them."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from oco.backends.factors import decisions_of
from oco.backends.feedback import Feedback
from oco.backends.journal import FILE, Journal
from oco.backends.learner import Learner
from oco.backends.python.state_file import unpack
from oco.dsl.diagnostics import OcoError, fail
from oco.plan import restored_learner

MOST = 500
"""Last rounds that are shown."""
TRIES = 5  # times that a file is read which is written meanwhile
SHOWN = 6
"""Entries of a decision that are shown."""


class Follower:
    """Rounds of a journal that another process writes; `read` looks for new ones.

    Files are copied before they are opened: a journal belongs to its learner, and SQLite would take it away.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rounds: deque[dict[str, Any]] = deque(maxlen=MOST)
        self.problem = ""
        self._seen: tuple[Any, ...] = ()
        self._learner: Learner | None = None

    def read(self) -> dict[str, Any]:
        """Rounds and certificate for the page, as JSON values; `problem` says why nothing newer could be read."""
        try:
            stamp = self._stamp()
            if stamp != self._seen:
                self._follow()
                self._seen = stamp
            self.problem = ""
        except OcoError as error:
            self.problem = f"{error.message}. {error.hint}"
        return self._shown()

    def _stamp(self) -> tuple[Any, ...]:
        """Sizes and times of the files. Raises OCO854 where there is no journal."""
        path = self.folder / FILE
        if not path.exists():
            raise fail(
                "OCO854",
                f"there is no journal in {self.folder}",
                hint="name the folder of `oco.open` or `oco run --journal`",
            )
        parts = [p.stat() for p in (path, path.with_name(f"{FILE}-wal")) if p.exists()]
        return tuple((p.st_size, p.st_mtime_ns) for p in parts)

    def _follow(self) -> None:
        """Read the new rounds from a copy; one that was made while the files changed is made anew."""
        for last in range(TRIES - 1, -1, -1):
            with tempfile.TemporaryDirectory(prefix="oco-watch-") as room:
                before = self._stamp()
                for name in (f"{FILE}-wal", FILE):
                    if (self.folder / name).exists():
                        shutil.copy(self.folder / name, room)
                if before == self._stamp() or not last:
                    try:
                        return self._take(Path(room))
                    except OcoError:
                        if not last:
                            raise
            time.sleep(0.05)
        return None

    def _take(self, copy: Path) -> None:
        """Take the rounds that a copy has and this has not seen."""
        journal = Journal(copy)
        try:
            after = self.rounds[-1]["round"] if self.rounds else 0
            new = list(journal.read("revealed", "WHERE round > ? ORDER BY round DESC LIMIT ?", after, MOST))[::-1]
            learner = self._learner
            if learner is None or (new and new[0][0] > learner.round):
                learner = restored_learner(journal.state(first=False), "numpy")
            decided = dict(journal.read("decided", "WHERE round > ? ORDER BY round DESC LIMIT ?", after, MOST))
            for round, content in new:
                values = {f.name: unpack(content["streams"][f.name]) for f in learner.compiled.program.feedback}
                self._add(learner, round, values, decided[round])
                if round == learner.round:
                    learner.update(learner.feedback(values))
            self._learner = learner
        finally:
            journal.close()

    def _add(self, learner: Learner, round: int, values: Mapping[str, Any], decided: list[Any]) -> None:
        """Measure a round, and keep what is shown of it."""
        program = learner.compiled.program
        decisions = tuple(map(unpack, decided[: len(program.decision)]))
        feedback = Feedback(round, values, decisions, learner.compiled)
        named = decisions_of(program, decisions)
        shown = {name: [float(v) for v in np.ravel(np.asarray(x))[:SHOWN]] for name, x in named.items()}
        violation = [float(v) for v in feedback.violation]
        self.rounds.append({"round": round, "loss": float(feedback.loss), "violation": violation, "decision": shown})

    def _shown(self) -> dict[str, Any]:
        learner = self._learner
        if learner is None:
            return {"version": 1, "folder": str(self.folder), "problem": self.problem, "rounds": []}
        contract, program = learner.contract, learner.compiled.program
        return {
            "version": 1,
            "folder": str(self.folder),
            "problem": self.problem,
            "model": program.name,
            "algorithm": contract.algorithm,
            "horizon": contract.horizon,
            "guarantee": list(learner.guarantee if contract.alert else contract.guarantee),
            "constraints": [*program.labels, *contract.equalities],
            "names": {
                name: axes[0].names[:SHOWN] for name, axes in contract.axes.items() if len(axes) == 1 and axes[0]
            },
            "rounds": list(self.rounds),
            "warnings": learner.warnings[-5:],
            "certificate": _certificate(learner),
        }


def _certificate(learner: Learner) -> dict[str, Any] | None:
    """Bound of the regret so far; None where the learner keeps none."""
    try:
        proof = learner.certificate()
    except OcoError:
        return None
    bound = float(proof.bound)
    return {"rounds": learner.round - 1, "regret": bound if np.isfinite(bound) else None, "loss": float(proof.loss)}
