"""Constraints in a share of the rounds, with the margin that is learned for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oco.compiler.problem.folding import Folding
from oco.compiler.problem.margin_bounds import margin_of
from oco.compiler.problem.parts import DecisionBlock, Inequality
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl.diagnostics import fail
from oco.dsl.expressions import Expr
from oco.dsl.statements import Feedback, Timing


def in_share(
    c: Inequality,
    percent: float,
    folding: Folding,
    blocks: Sequence[DecisionBlock],
    streams: Sequence[StreamRange],
    stated: Mapping[str, Expr],
    turns: int,
) -> Inequality:
    """Constraint in a share of the rounds, with its margin; one that is known before the decision holds in each round.

    stated  predictions of streams that the model states
    turns   learners that take turns where feedback is late
    """
    if folding.model.feedback is not Feedback.FULL:
        message = f"`{c.label}` holds in a share of the rounds, for which its margin is learned from full feedback"
        raise fail("OCO528", message, c.span, "write `each round`, or leave out the `feedback` line")
    margin = margin_of(c.label, c.expr, 1 - percent / 100, folding, blocks, streams, c.span, stated, turns)
    return replace(c, timing=Timing.EACH_ROUND, margin=margin)


def kept_for_learning(inequalities: Sequence[Inequality], statistics: Sequence[StreamRange]) -> tuple[StreamRange, ...]:
    """Values that rounds leave to the next for margins and budgets, with the statistics of stated predictions where a margin uses these."""
    used = statistics if any(c.margin is not None and c.margin.states for c in inequalities) else ()
    return (*(r for c in inequalities if c.learned is not None for r in c.learned.ranges), *used)
