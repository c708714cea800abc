"""Program of a plan that another plan of the same problem has made already."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from oco.compiler.selection.plan import Plan

P = TypeVar("P", bound=Plan)


def with_program_of(plan: P, other: Plan) -> P:
    """The plan with the program that `other` has made of the same problem; without, where another one would be traced."""
    result = replace(plan)
    if _rule(plan) == _rule(other):
        vars(result).update({name: made for name, made in vars(other).items() if name in ("traced", "program")})
    return result


def _rule(plan: Plan) -> tuple[Any, ...]:
    """Values that a program is traced of, beside the problem."""
    own = (plan.horizon, plan.open, plan.certify, plan.pending, plan.after, plan.alert)
    return plan.algorithm, dict(plan.settings), plan.choice.restarts, *own
