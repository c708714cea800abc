"""Models with comparators that other solvers find too, their data, and CVXPY's answers."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from oco.compiler.problem.canonical import Canonical, canonical
from oco.compiler.problem.cvxpy_form import to_cvxpy
from oco.dsl.load import parse
from oco.dsl.statements import Timing
from oco.evaluation.comparators import Comparator, ComparatorStatus
from oco.evaluation.data import Data, load_data


def problem(body: str, rounds: int) -> Canonical:
    return canonical(parse(f"model m\nhorizon T = {rounds}\n{body}"))


def reference(p: Canonical, data: Data, rounds: list[int], averages: bool) -> float:
    """The least sum of losses over `rounds` (from 0) by CVXPY: constraints on average hold in the mean if `averages`, else in each."""
    variables = {b.name: cp.Variable(b.shape) for b in p.blocks}
    loss: Any = 0
    constraints = [c for b in p.blocks for c in b.domain.constraints(cp, variables[b.name])]
    sums: dict[str, Any] = {}
    for t in rounds:
        env = {s.name: data.array(s.name)[t] for s in p.streams}
        loss = loss + to_cvxpy(p.objective, variables, env, t + 1)
        for c in p.inequalities:
            g = to_cvxpy(c.expr, variables, env, t + 1)
            if averages and c.timing is Timing.ON_AVERAGE:
                sums[c.label] = sums.get(c.label, 0) + g
            else:
                constraints.append(g <= 0)
        for c in p.equalities:
            h = to_cvxpy(c.expr, variables, env, t + 1)
            sums["=" + c.label] = sums.get("=" + c.label, 0) + h
            if not averages:
                constraints.append(h == 0)
    if averages:
        constraints += [s == 0 if label.startswith("=") else s <= 0 for label, s in sums.items()]
    found = cp.Problem(cp.Minimize(loss), constraints)
    found.solve(solver="CLARABEL")
    assert found.status == "optimal"
    return float(found.value)


def check_certificate(found: Comparator) -> None:
    assert found.status is ComparatorStatus.CERTIFIED, found.words
    scale = max(1.0, float(np.abs(found.losses).sum()))
    assert abs(found.gap) <= 1e-5 * scale
    assert found.value == pytest.approx(float(found.losses.sum()))


MODELS = {
    "quadratic under random limits": (
        "decision x[4] in box(0, 5)\nstream H[2, 4] in [-1, 1]\nstream y[2] in [-9, 9]\nstream A[2, 4] in [0, 1]\nstream b[2] in [0.5, 1]\n"
        "minimize 0.5 * sum_squares(H @ x - y)\nsubject to\n    limits: A @ x <= b    each round\n"
    ),
    "the same on average": (
        "decision x[4] in box(0, 5)\nstream H[2, 4] in [-1, 1]\nstream y[2] in [-9, 9]\nstream A[2, 4] in [0, 1]\nstream b[2] in [0.5, 1]\n"
        "minimize 0.5 * sum_squares(H @ x - y)\nsubject to\n    limits: A @ x <= b    on average\n"
    ),
    "linear with a concave service": (
        "decision x[6] in box(0, 10)\nstream c[6] in [-1, 3]\nstream jobs in [2, 4]\nminimize c @ x\n"
        "subject to\n    service: jobs - sum(log(1 + 4 * x)) <= 0    each round\n"
    ),
    "logarithm on the simplex": (
        "decision w[5] in simplex\nstream r[5] in [0.5, 2]\nstream e[5] in [0, 1]\nminimize -log(r @ w)\n"
        "subject to\n    sector: e @ w <= 0.6    on average\n"
    ),
    "ball with a linear limit": (
        "decision p[3] in ball(1)\nstream a[3] in [-2, 2]\nstream c[3] in [-1, 1]\nminimize sum_squares(p - a)\n"
        "subject to\n    cap: c @ p <= 0.25    each round\n"
    ),
    "equalities on average": (
        "decision x[4] in box(0, 3)\nstream c[4] in [-1, 3]\nstream u[4] in [0.5, 1]\nminimize c @ x + 0.1 * sum_squares(x)\n"
        "subject to\n    share: u[0] * x[0] + u[1] * x[1] - u[2] * x[2] == 0    on average\n    least: sum(u * x) >= 2    on average\n"
    ),
    "two decisions": (
        "decision x[2] in box(-1, 2)\ndecision w[3] in simplex(2)\nstream a[2] in [-2, 2]\nstream c[3] in [0, 1]\n"
        "minimize sum_squares(x - a) + c @ w + exp(x[0])\nsubject to\n    link: x[0] + w[0] <= 1    each round\n"
    ),
    "the number of the round": (
        "decision x[2] in box(-1, 1)\nstream a[2] in [-2, 2]\nminimize sum_squares(x - a / t)\n"
        "subject to\n    rising: x[0] + x[1] <= t / 10    each round\n"
    ),
    "logistic": "decision x[3] in box(-2, 2)\nstream a[3] in [-1, 1]\nminimize logistic(a @ x) + 0.01 * sum_squares(x)\n",
    "a known law on average": (
        "decision x[3] in box(0, 4)\nstream a[3] in [-1, 1]\nstream need ~ constant(2)\nminimize sum_squares(x - a)\n"
        "subject to\n    cover: need - sum(log(1 + x)) <= 0    on average\n    least: need <= sum(x)    on average\n"
    ),
    "quadratic limits": (
        "decision x[3] in box(-2, 2)\nstream a[3] in [-1, 1]\nstream r in [0.5, 1]\nminimize a @ x\n"
        "subject to\n    power: sum_squares(x) <= r    each round\n"
    ),
}


def drawn(p: Canonical, rounds: int) -> Data:
    rng = np.random.default_rng(0)
    arrays = {
        s.name: (np.rint if s.integer else np.positive)(
            rng.uniform(np.broadcast_to(s.lower, s.shape), np.broadcast_to(s.upper, s.shape), (rounds, *s.shape))
        )
        for s in p.streams
    }
    return load_data(p, arrays)
