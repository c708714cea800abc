"""Stores carried to another plan: each learner goes on in a new store, and the one before stays as it is."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from oco.backends.learner import Learner
from oco.backends.registry import usable
from oco.contract import Recipe
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.records import dataclass
from oco.migrating import beginning, carried, covered
from oco.pipeline import instrumented
from oco.plan import Plan
from oco.serving.sources import about_store
from oco.serving.states import KeyedStates
from oco.serving.store import Round, Store

AT_ONCE = 1000
"""Learners of a transaction."""
SUM = "over all rounds the regret is at most the sum of what both plans promise for their own"


@dataclass(frozen=True)
class CarriedStore:
    """Numbers of learners that went on in a new store.

    whole  with a state that is one of the new plan: their rounds go on
    begun  whose rounds count from 1
    kept   sentence on what is kept of them and of their guarantee
    """

    whole: int
    begun: int
    kept: str


def carry_store(source: Path, target: Path, plan: Plan) -> CarriedStore:
    """Write a store of a plan with the learners of another store, which no process may have open; all of them, or nothing is written.

    Backend, seed, treatment of data out of bounds, certificates and alarms are those of the source. Records of rounds go along where the
    rounds go on. Raises OCO550 and OCO862 with the key of a learner that cannot be carried, OCO850, OCO854, OCO855, OCO858.
    """
    known = about_store(source)
    recipe = json.loads(known.get("recipe", "null"))
    watched = Recipe.read(recipe)
    new = instrumented(plan, watched.certify or None, watched.alert or None)
    kept = usable(known["backend"]), int(known["seed"]), known["on_out_of_bounds"]
    counts: Counter[tuple[bool, str]] = Counter()
    with ExitStack() as opened:
        before = opened.enter_context(Store(source, KeyedStates(Plan.from_recipe(recipe), *kept)))
        folder = opened.enter_context(tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-"))
        with Store(Path(folder) / target.name, KeyedStates(new, *kept)) as after:
            learners = _carried(before, new, after.states.backend, counts)
            while batch := list(islice(learners, AT_ONCE)):
                after.adopt(batch)
        _put(Path(folder) / target.name, target)
    whole = sum(number for (goes_on, _), number in counts.items() if goes_on)
    parts = [f"learners carried: {counts.total():,}", *(f"{number:,} {words}" for (_, words), number in counts.items())]
    return CarriedStore(whole, counts.total() - whole, "; ".join(parts))


def _carried(
    before: Store, plan: Plan, backend: str, counts: Counter[tuple[bool, str]]
) -> Iterator[tuple[str, Learner, Sequence[Round]]]:
    """Learners of a store as those of a plan, each counted by whether its state goes on, and what is kept of the guarantee."""
    for key, learner, rounds in before.contents():
        try:
            moved, whole = carried(learner, plan, backend)
        except OcoError as error:
            raise fail(error.code, f"{key!r}: {error.message}", hint=error.hint) from None
        if whole:
            words = f"with state and rounds: {covered(learner, plan)}"
        else:
            words = f"begun at {beginning(learner, plan)}, with rounds from 1: {SUM}"
        counts[whole, words] += 1
        yield key, moved, rounds if whole else ()


def _put(written: Path, target: Path) -> None:
    """Put a closed store in its place. The log of one that stood there must not be taken for its own. Raises OCO858."""
    try:
        Path(f"{target}-wal").unlink(missing_ok=True)
        os.replace(written, target)
    except OSError as error:
        raise fail("OCO858", f"{target} cannot be written: {error}", hint="name another -o") from None
