"""Convex programs of the checker. Solvers find points and multipliers; what is claimed of these is proved without the solver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oco.compiler.canonical import Block
from oco.dsl.meter import charge

Floats = np.ndarray[Any, Any]
TIME_LIMIT = 1.0  # seconds a program; what it does not decide is unknown
MOST_ENTRIES = 20_000
MOST_SPECTRAL_ENTRIES = 400
PROGRAM, PART, NUMBER = 60_000, 200, 3
"""Microseconds that a program takes, and more for each part and each number of its variables."""
MOST_DENSE_NUMBERS = 200_000
"""Sets that are a cone under a full matrix."""


def decision_variables(blocks: tuple[Block, ...]) -> tuple[dict[str, Any], list[Any]]:
    """A CVXPY variable for each decision, and the constraints of its domain."""
    import cvxpy as cp

    variables = {b.name: cp.Variable(b.shape, name=b.name) for b in blocks}
    constraints = [c for b in blocks for c in b.domain.constraints(cp, variables[b.name])]
    return variables, constraints


def within_reach(blocks: tuple[Block, ...]) -> bool:
    """Whether a program over these domains is solved in about a second."""
    spectral = [b.domain.size for b in blocks if b.domain.spectral]
    dense = [b.domain.size**2 for b in blocks if b.domain.dense]
    few = sum(spectral) <= MOST_SPECTRAL_ENTRIES and sum(dense) <= MOST_DENSE_NUMBERS
    return few and sum(b.domain.size for b in blocks) <= MOST_ENTRIES


def solve(
    objective: Any, constraints: list[Any], seconds: float = TIME_LIMIT, tolerance: float | None = None
) -> float | None:
    """Solve; the optimal value, None where the solver gives no answer or takes no such numbers. `inf` where the program is infeasible.

    `tolerance` of gap and feasibility replaces the solver's own (1e-8); what is nearly solved to it counts.
    """
    import warnings

    import cvxpy as cp

    problem = cp.Problem(objective, constraints)
    charge(PROGRAM + PART * _parts(problem) + NUMBER * sum(v.size for v in problem.variables()))
    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas") if tolerance is not None else ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver=cp.CLARABEL, time_limit=seconds, **dict.fromkeys(names, tolerance))
        except (cp.error.SolverError, ValueError):  # ValueError: products of coefficients that are beyond doubles
            return None
    if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        return float("inf") if isinstance(objective, cp.Minimize) else float("-inf")
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        return None
    return float(problem.value)


def _parts(problem: Any) -> int:
    """How many parts CVXPY takes through its reductions."""
    count, stack = 0, [problem.objective, *problem.constraints]
    while stack:
        count += 1
        stack += stack.pop().args
    return count


def values(variables: Mapping[str, Any]) -> dict[str, Floats]:
    """The solution found."""
    return {name: np.asarray(v.value, dtype=np.float64) for name, v in variables.items()}


def into_domain(blocks: tuple[Block, ...], x: Mapping[str, Floats]) -> dict[str, Floats]:
    """The nearest decision within the domain: solvers end a little outside."""
    found: dict[str, Floats] = {}
    for b in blocks:
        inside = np.clip(x[b.name], b.domain.lower, b.domain.upper)
        if not b.domain.is_box and "project" not in b.domain.refusals:
            inside = b.domain.project_array(inside)
        found[b.name] = inside
    return found
