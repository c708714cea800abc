"""Convex programs of the checker. Solvers find points and multipliers; what is claimed of these is proved without the solver."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oco.compiler.domains.base import MAX_DENSE_ORDER, MAX_DENSE_ROWS
from oco.compiler.problem.canonical import DecisionBlock
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.feasibility.linear import LeastMaximum, least_maximum
from oco.compiler.prover.feasibility.scenario import Scenario, indexed_by_data
from oco.compiler.prover.search_budget import Allowance
from oco.dsl.dims import known
from oco.dsl.expressions import Expr
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
PROGRAM, NUMBER, PAIR, DENSE_ENTRY = 10_000, 5, 2, 5
"""Steps that a program takes, and more for each number of its variables, for each pair of entries of a matrix whose eigenvalues are
bounded, and for each entry of a full matrix."""
MOST_SPECTRAL_ENTRIES = 400
"""Entries of matrices whose eigenvalues are bounded up to which a second-order solver is a method for them."""
SOLVER_ERROR = 1e-7
"""Error of a value that `solve` finds with its own tolerance, ten times that: absolute where all numbers are below 1, else relative."""


def magnitude(setting: ProofContext) -> float:
    """Largest known magnitude of an inequality, 1 where none is known."""
    sizes = [float(setting.ranges(c.expr).magnitude.max()) for c in setting.canonical.inequalities]
    return max((s for s in sizes if np.isfinite(s)), default=1.0)


def decision_variables(blocks: tuple[DecisionBlock, ...]) -> tuple[dict[str, Any], list[Any]]:
    """A CVXPY variable for each decision, and the constraints of its domain."""
    import cvxpy as cp

    variables = {b.name: cp.Variable(b.shape, name=b.name) for b in blocks}
    constraints = [c for b in blocks for c in b.domain.constraints(cp, variables[b.name])]
    return variables, constraints


def affords_program(blocks: tuple[DecisionBlock, ...], search: Allowance) -> bool:
    """True if a program over these domains can be solved; takes the steps that it needs beside its constraints."""
    spectral = [b.domain.size for b in blocks if b.domain.spectral]
    dense = sum(b.domain.size**2 for b in blocks if b.domain.dense)
    numbers = sum(b.domain.size for b in blocks)
    steps = PROGRAM + NUMBER * numbers + PAIR * sum(n**2 for n in spectral) + DENSE_ENTRY * dense
    return sum(spectral) <= MOST_SPECTRAL_ENTRIES and search.take(steps)


def solve(
    objective: Any, constraints: list[Any], seconds: float | None = None, tolerance: float | None = None
) -> float | None:
    """Solve; the optimal value, None where the solver gives no answer or takes no such numbers. `inf` where the program is infeasible.

    seconds    after which a comparator gives up; None where the answer must not hang on the clock
    tolerance  of gap and feasibility instead of the solver's own (1e-8); what is nearly solved to it counts
    """
    import cvxpy as cp

    problem = cp.Problem(objective, constraints)
    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas") if tolerance is not None else ()
    limits = {} if seconds is None else {"time_limit": seconds}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver=cp.CLARABEL, **limits, **dict.fromkeys(names, tolerance))
        except (cp.error.SolverError, ValueError):  # ValueError: products of coefficients that are beyond doubles
            return None
    if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        return float("inf") if isinstance(objective, cp.Minimize) else float("-inf")
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        return None
    return float(problem.value)


@dataclass(frozen=True, eq=False)
class LeastViolation:
    """Least value over the domain of the greatest entry, multipliers of all entries in C order, and the decision."""

    value: float
    weights: Floats
    x: dict[str, Floats]


def least_violation(scenario: Scenario, exprs: Sequence[Expr]) -> LeastViolation | None:
    """Minimum over the domain of the greatest entry of the expressions in the scenario; None where it has no such program, no steps
    are left, or no solver answers.
    """
    blocks = scenario.setting.canonical.blocks
    if not exprs or not affords_program(blocks, scenario.search):
        return None
    parts: list[Expr] = []
    for expr in exprs:
        spelled_out = scenario.spelled_out(expr)
        if spelled_out is None:
            return None
        parts += spelled_out
    return _linear_program(scenario, parts) or _one_row(scenario, parts) or _convex_program(scenario, parts)


def _linear_program(scenario: Scenario, parts: list[Expr]) -> LeastViolation | None:
    """Over a box, of affine expressions: without the time that CVXPY takes to start."""
    blocks = scenario.setting.canonical.blocks
    if not all(b.domain.is_box for b in blocks) or sum(b.domain.size for b in blocks) > MAX_DENSE_ORDER:
        return None
    rows = scenario.rows(parts)
    if rows is None or len(rows[1]) > MAX_DENSE_ROWS:
        return None
    lower, upper = (np.concatenate([np.ravel(getattr(b.domain, end)) for b in blocks]) for end in ("lower", "upper"))
    result: LeastMaximum | None = least_maximum(*rows, lower, upper)
    if result is None:
        return None
    ends = np.cumsum([b.domain.size for b in blocks])
    x = {b.name: result.x[end - b.domain.size : end].reshape(b.shape) for b, end in zip(blocks, ends)}
    return LeastViolation(result.value, result.weights, x)


def _one_row(scenario: Scenario, parts: list[Expr]) -> LeastViolation | None:
    """Linear minimiser of one affine entry, over domains that have it in closed form: without a solver."""
    blocks = scenario.setting.canonical.blocks
    easy = all(b.domain.lmo_start is None and b.domain.is_cheap("lmo") for b in blocks)
    if not easy or len(parts) > 1 or math.prod(known(parts[0].shape)) > 1:
        return None
    rows = scenario.rows(parts)
    if rows is None or not np.isfinite(rows[0]).all():
        return None
    ends = np.cumsum([b.domain.size for b in blocks])
    slopes = [rows[0][0, end - b.domain.size : end].reshape(b.shape) for b, end in zip(blocks, ends)]
    x = {b.name: b.domain.lmo_array(slope) for b, slope in zip(blocks, slopes)}
    least = float(rows[1][0]) + sum(float(np.vdot(s, v)) for s, v in zip(slopes, x.values()))
    return LeastViolation(least, np.ones(1), x) if np.isfinite(least) else None


def _convex_program(scenario: Scenario, parts: list[Expr]) -> LeastViolation | None:
    """With CVXPY, for whatever is convex. It is not loaded, which takes a second, for what has no form in it."""
    if any(map(indexed_by_data, parts)):
        return None
    import cvxpy as cp

    blocks = scenario.setting.canonical.blocks
    variables, domain = decision_variables(blocks)
    cvxpy_forms = scenario.cvxpy_forms(parts, variables)
    if cvxpy_forms is None:
        return None
    violation = cp.Variable()
    constraints = [g <= violation for g in cvxpy_forms]
    least = solve(cp.Minimize(violation), [*domain, *constraints])
    if least is None or not np.isfinite(least):
        return None
    weights = np.maximum(np.concatenate([np.ravel(c.dual_value) for c in constraints]), 0.0)
    return LeastViolation(least, weights, into_domain(blocks, values(variables)))


def values(variables: Mapping[str, Any]) -> dict[str, Floats]:
    """The solution found."""
    return {name: np.asarray(v.value, dtype=np.float64) for name, v in variables.items()}


def into_domain(blocks: tuple[DecisionBlock, ...], x: Mapping[str, Floats]) -> dict[str, Floats]:
    """The nearest decision within the domain: solvers end a little outside."""
    results: dict[str, Floats] = {}
    for b in blocks:
        inside = np.clip(x[b.name], b.domain.lower, b.domain.upper)
        if not b.domain.is_box and b.domain.is_cheap("project"):
            inside = b.domain.project_array(inside)
        results[b.name] = inside
    return results
