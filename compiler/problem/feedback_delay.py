"""Delay of the feedback: a number of rounds, and what a model cannot have beside it.

What a round leaves to the next is known with its decision where it is made of decisions, contexts and what rounds before left: previous
decisions, and states that no stream moves (`proximal.handing_on`). What was spent of a budget counts at its worst until it is known, and
margins of shares of rounds are those of each learner in turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from oco.compiler.problem.folding import Folding
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl.diagnostics import fail
from oco.dsl.expressions import Constant, Kind, Name, names, walk
from oco.dsl.limits import LONGEST_DELAY
from oco.dsl.model import Model
from oco.dsl.statistics import statistic_of

OWN_ROUNDS = "statistics are of all rounds before, and each of the learners in turn sees its own alone"
OR_AT_ONCE = "or write `feedback` without `delayed`"


def delay_of(model: Model, folding: Folding, streams: Sequence[StreamRange]) -> int:
    """Rounds after which the feedback of a round is there at the latest; 0 where it comes at once.

    Raises OCO540 for what is no number of rounds, and for what a round leaves to the next that is known with its feedback alone.
    """
    if model.delay is None:
        return 0
    folded = folding.fold(model.delay)
    value = folded.value.array if isinstance(folded, Constant) else None
    if value is None or value.shape or value.dtype.kind != "i" or not 0 <= int(value) <= LONGEST_DELAY:
        message = f"a delay is a number of rounds from 0 to {LONGEST_DELAY:,}, known before the first round"
        raise fail("OCO540", message, model.delay.span, "write `feedback full delayed 3`")
    if not int(value):
        return 0
    revealed = {s.name for s in streams if not s.stream.known and s.following is None}
    for s in streams:
        if s.following is not None:
            late = [n for n in names(s.following, Kind.STREAM) if n in revealed]
            if late:
                why = f"`{late[0]}` moves it, and is not known when the next round is decided"
                hint = f"give what is known of it then, its value or an estimate, as `context {s.name}`, {OR_AT_ONCE}"
                raise _beside(f"the state `{s.name}`", why, s.stream.span, hint)
    for stated in model.predictions:
        for node in walk(stated.value):
            if isinstance(node, Name) and (used := statistic_of(node.name)) is not None and used.kind != "ahead":
                why = OWN_ROUNDS
                raise _beside(f"`{node.name}`", why, node.span, f"predict from contexts, {OR_AT_ONCE}")
    return int(value)


def _beside(what: str, why: str, span: object, hint: str) -> Exception:
    return fail("OCO540", f"{what} cannot stand beside delayed feedback: {why}", span, hint)  # type: ignore[arg-type]
