"""Delay of the feedback: a number of rounds, and what a model cannot have beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oco.compiler.problem.folding import Folding
from oco.compiler.problem.parts import Inequality
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl.diagnostics import fail
from oco.dsl.expressions import Constant, Expr, Name, walk
from oco.dsl.limits import LONGEST_DELAY
from oco.dsl.model import Model
from oco.dsl.previous import decision_of
from oco.dsl.statistics import statistic_of


def delay_of(model: Model, folding: Folding, inequalities: Sequence[Inequality], streams: Sequence[StreamRange]) -> int:
    """Rounds after which the feedback of a round is there at the latest; 0 where it comes at once.

    Raises OCO540 for what is no number of rounds, and for what a round leaves to the next: each of the learners that take turns sees its
    own rounds alone.
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
    for s in streams:
        if s.following is not None:
            raise _beside(
                f"the state `{s.name}`", "what follows it is not known when the next round is decided", s.stream.span
            )
    for stated in model.predictions:
        for node in walk(stated.value):
            if isinstance(node, Name) and statistic_of(node.name) is not None:
                why = "the rounds before are those of other learners"
                raise _beside(f"`{node.name}`", why, node.span, "predict from contexts, or leave the prediction out")
    for c in inequalities:
        if c.learned is not None:
            what = "margin" if c.budget is None else "budget"
            raise _beside(f"`{c.origin}` {c.when}", f"its {what} moves by each round's feedback", c.span)
    for node in (n for e in _written(model) for n in walk(folding.fold(e))):
        if isinstance(node, Name) and decision_of(node.name):
            raise _beside(f"`{node.name}`", "the learner of the round before is another one", node.span)
    return int(value)


def _written(model: Model) -> Iterator[Expr]:
    """Loss, predictions and sides of the constraints as they are written."""
    if model.objective is not None:
        yield model.objective
    yield from (stated.value for stated in model.predictions)
    for c in model.constraints:
        yield from (c.left, c.right)


def _beside(
    what: str, why: str, span: object, hint: str = "leave it out, or write `feedback` without `delayed`"
) -> Exception:
    return fail("OCO540", f"{what} cannot stand beside delayed feedback: {why}", span, hint)  # type: ignore[arg-type]
