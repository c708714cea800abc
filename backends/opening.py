"""Learners of journals: opened, replayed and continued."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

from oco.backends.delayed import DelayedLearner
from oco.backends.journal import Journal
from oco.backends.learner import Learner

FIRST_TURN = "turn-1"
"""Folder of the first learner's journal within that of learners in turn."""


def open_journal(
    made: Callable[[str | None], Learner],
    folder: str | os.PathLike[str],
    every: int = 100,
    keep: int | None = None,
    rewind: bool = False,
    turns: int = 1,
) -> Learner:
    """Learner of the journal in `folder`, in the state after the last recorded round.

    made    gives a fresh learner, on the backend of this name where none was requested
    rewind  returns it in its first round: rounds that are recorded are compared with their records, later ones are
            appended
    turns   learners that take turns under delayed feedback: each has a journal of its own, in a folder within

    Raises OCO851 and OCO854 to OCO858.
    """
    if turns > 1:
        whole = made(None)
        assert isinstance(whole, DelayedLearner)
        program = whole.compiled.program
        every = (
            1 if program.numbers or program.handed or program.corrected else every
        )  # alone, none could play its rounds again
        places = [Path(os.fsdecode(folder)) / f"turn-{i + 1}" for i in range(turns)]
        kept = [open_journal(_turn(made, i), place, every, keep, rewind) for i, place in enumerate(places)]
        deciding = [i for i, one in enumerate(kept) if one.journal is not None and one.journal.decided >= one.round]
        return cast("Learner", DelayedLearner.deciding(kept, whole.contract, () if rewind else deciding))
    journal = Journal(folder, every, keep)
    try:
        learner = fresh = made(journal.backend)
        if not journal.begun:
            journal.begin(fresh)
        else:
            journal.check_owner(fresh)
            journal.seek()
            learner = type(fresh).from_state(journal.state(first=rewind), fresh.compiled, fresh.contract)
            if not rewind:
                journal.replay(learner)
                learner.skipped = journal.skipped
        journal.tell_size(learner)
        with learner._owned():
            learner.journal = journal
        return learner
    except BaseException:
        journal.close()
        raise


def _turn(made: Callable[[str | None], Learner], turn: int) -> Callable[[str | None], Learner]:
    """Maker of one of the learners that take turns."""
    return lambda name: cast(DelayedLearner, made(name)).learners[turn]
