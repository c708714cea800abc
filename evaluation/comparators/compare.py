"""The way to a comparator: which solver fits the problem, and what to say where none does."""

from __future__ import annotations

from typing import Literal

from oco.compiler.canonical import Canonical
from oco.dsl.expressions import Expr
from oco.evaluation.comparators.base import Budget, Comparator, Status
from oco.evaluation.comparators.fixed import static
from oco.evaluation.comparators.region import region
from oco.evaluation.comparators.rounds import dynamic
from oco.evaluation.comparators.structure import smooth
from oco.evaluation.data import Data


def compare(
    problem: Canonical, data: Data, kind: Literal["static", "dynamic"], budget: Budget | None = None
) -> Comparator:
    """The comparator of a run over `data`, within a budget; never without a certificate or a word that there is none."""
    budget = budget or Budget()
    if data.nbytes > budget.memory:
        needed, allowed = data.nbytes / 2**30, budget.memory / 2**30
        why = f"the data of all rounds takes {needed:.3g} GiB, more than the budget of {allowed:.3g} GiB"
        return Comparator(kind, Status.NOT_COMPUTED, why=why)
    names = tuple(b.name for b in problem.blocks)
    functions: tuple[Expr, ...] = (problem.objective, *(c.expr for c in problem.inequalities))
    if not all(smooth(f, names) for f in functions):
        return Comparator(kind, Status.NOT_COMPUTED, why="a function with kinks is beyond the solvers that are here")
    found = region(problem)
    return static(problem, data, found, budget) if kind == "static" else dynamic(problem, data, found, budget)
