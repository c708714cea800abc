"""Program of a plan that another plan of the same problem has made already."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from oco.compiler.selection.plan import Plan

P = TypeVar("P", bound=Plan)


def with_program_of(plan: P, other: Plan) -> P:
    """Plan with the program that `other` has made of the same problem; as it is where another one would be traced."""
    made = {name: value for name, value in vars(other).items() if name in ("traced", "program")}
    if not made or _rule(plan) != _rule(other):
        return plan
    result = replace(plan)
    vars(result).update(made)
    return result


def _rule(plan: Plan) -> tuple[Any, ...]:
    """Values that a program is traced of, beside the problem."""
    v = plan.choice.winner
    chosen = () if v is None else (v.name, v.theorem, dict(v.settings), v.scales)
    return *chosen, plan.horizon, plan.open, plan.certify, plan.pending, plan.after, plan.alert
