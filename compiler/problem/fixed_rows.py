"""Fixed constraints: no stream enters them, so that decisions can keep to them from the first round, as to those that contexts give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from oco.compiler.problem.parts import DecisionBlock, Inequality
from oco.compiler.problem.sublevel import has_nearest_point
from oco.dsl.expressions import changes
from oco.dsl.model import Model
from oco.dsl.statements import Feedback, Timing


def is_exact(c: Inequality, model: Model) -> bool:
    """True for a constraint that each decision is to meet, whatever it costs, where rounds are revealed as functions."""
    return c.timing is Timing.EACH_ROUND and not c.penalties and model.feedback is Feedback.FULL


def can_be_kept(c: Inequality, model: Model, blocks: Sequence[DecisionBlock]) -> bool:
    """True for a constraint of fixed data alone whose nearest point is found in every round."""
    return is_exact(c, model) and not changes(c.expr) and has_nearest_point(c.expr, blocks)


def with_fixed(marked: list[Inequality], model: Model, blocks: Sequence[DecisionBlock]) -> list[Inequality]:
    """Constraints with those of fixed data alone known too, where others are: the step that meets these meets them as well."""
    if not any(c.known and c.learned is None for c in marked):
        return marked
    return [replace(c, known=True) if can_be_kept(c, model, blocks) else c for c in marked]
