"""Decisions that are drawn among the extreme points of their set: where the guarantee holds of their expectation."""

from __future__ import annotations

from collections.abc import Sequence

from oco.compiler.problem.parts import DecisionBlock, Equality, Inequality
from oco.compiler.problem.structure import is_affine
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.expressions import Expr
from oco.dsl.source import Span
from oco.dsl.statements import Feedback

WHOLE = "leave out `rounded`; `{0, 1}` is `box(0, 1) rounded`"
REMARK = "{} drawn: the guarantee is of the expectation of the loss, for data that do not know the draw of their round"


def check_rounded(
    blocks: Sequence[DecisionBlock], objective: Expr, constraints: Sequence[Inequality | Equality], feedback: Feedback
) -> None:
    """Check that a draw with the mean x costs what x does on average. Raises OCO539 with the reason where it does not."""
    for b in (b for b in blocks if b.rounded):
        if b.domain.fractional:
            raise _refused(
                b, b.domain.fractional, "decide in box(0, 1), simplex, capped_simplex(1, k), flow or birkhoff", b.span
            )
        if not is_affine(objective, (b.name,)):
            why = f"the loss is not linear in `{b.name}`, so that a draw costs more on average than the decision that is its mean"
            raise _refused(b, why, f"state a linear loss, or {WHOLE}", objective.span)
        if constraints:
            c = constraints[0]
            label = c.origin if isinstance(c, Inequality) else c.label
            why = f"a draw may break `{label}` where the decision that is its mean does not"
            raise _refused(
                b,
                why,
                f"write the constraint into the domain, as `capped_simplex(1, k) rounded` does where k are chosen, or {WHOLE}",
                c.span,
            )
        if feedback is Feedback.BANDIT:
            raise _refused(b, "bandit feedback reveals the loss of the draw alone", "write `feedback gradient`", b.span)


def _refused(b: DecisionBlock, why: str, hint: str, span: Span | None) -> OcoError:
    return fail("OCO539", f"`{b.name}` cannot be rounded to 0 and 1: {why}", span, hint)
