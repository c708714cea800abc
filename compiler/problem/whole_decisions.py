"""Decisions that are drawn among the extreme points of their set: where the guarantee holds of their expectation."""

from __future__ import annotations

from collections.abc import Sequence

from oco.compiler.problem.parts import DecisionBlock, Equality, Inequality
from oco.compiler.problem.structure import is_affine
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.expressions import Expr, changes
from oco.dsl.source import Span
from oco.dsl.statements import Feedback, Timing

WHOLE = "leave out `rounded`; `{0, 1}` is `box(0, 1) rounded`"
REMARK = "{} drawn: the guarantee is of the expectation of loss and constraints, for data that do not know the draw of their round"


def check_rounded(
    blocks: Sequence[DecisionBlock], objective: Expr, constraints: Sequence[Inequality | Equality], feedback: Feedback
) -> None:
    """Check that a draw with the mean x costs what x does on average, and breaks as much. Raises OCO539 with the reason where not."""
    for b in (b for b in blocks if b.rounded):
        if b.domain.fractional:
            raise _refused(
                b, b.domain.fractional, "decide in box(0, 1), simplex, capped_simplex(1, k), flow or birkhoff", b.span
            )
        if not is_affine(objective, (b.name,)):
            why = f"the loss is not linear in `{b.name}`, so that a draw costs more on average than the decision that is its mean"
            raise _refused(b, why, f"state a linear loss, or {WHOLE}", objective.span)
        for c in constraints:
            _check_constraint(b, c, feedback)
        if feedback.gives_values_alone and not (feedback is Feedback.BANDIT and has_arms(blocks)):
            why = f"{feedback} feedback reveals the loss of the draw alone"
            raise _refused(
                b, why, "write `feedback gradient`, or choose one of several arms by `simplex rounded`", b.span
            )


def has_arms(blocks: Sequence[DecisionBlock]) -> bool:
    """True where one entry of a single decision is drawn: an arm of a bandit."""
    return len(blocks) == 1 and blocks[0].rounded and blocks[0].domain.is_simplex


def _check_constraint(b: DecisionBlock, c: Inequality | Equality, feedback: Feedback) -> None:
    """Check that what a constraint sums up over the rounds has the mean that the decisions' means give it."""
    label = c.origin if isinstance(c, Inequality) else c.label
    if isinstance(c, Inequality) and c.timing is not Timing.ON_AVERAGE:
        why = f"a draw may break `{label}` where the decision that is its mean does not"
        if c.span is not None and not changes(c.expr):
            instead = f"write `with {c.span.text}` behind the set of `{b.name}`, and leave `{label}` out"
        elif c.budget is not None:
            hint = f"{WHOLE}. Where costs are known before the decision, `pacing` takes whole decisions by itself, until a budget ends"
            raise _refused(b, why, hint, c.span)
        else:
            instead = "write `on average` behind it"
        raise _refused(b, why, f"{instead}, or {WHOLE}", c.span)
    if not is_affine(c.expr, (b.name,)):
        why = f"`{label}` is not linear in `{b.name}`, so that its mean over draws is not that of the decision that is their mean"
        raise _refused(b, why, f"state a linear constraint, or {WHOLE}", c.span)
    if feedback is not Feedback.FULL:
        why = f"the feedback reveals the value of `{label}` at the draw alone"
        raise _refused(b, why, f"write `feedback full`, or {WHOLE}", c.span)


def _refused(b: DecisionBlock, why: str, hint: str, span: Span | None) -> OcoError:
    return fail("OCO539", f"`{b.name}` cannot be rounded to 0 and 1: {why}", span, hint)
