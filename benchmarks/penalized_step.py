"""Time of a coldq step against Clarabel: `python -m benchmarks.penalized_step [CASE ...]`.

Both solve argmin <c, x> + alpha |x - y|^2 + sum_n Q_n [g_n(x)]_+ over a box, each round with other numbers. Clarabel is called through
CVXPY from one problem with parameters, compiled before the first round (DPP) and warm: what a person would write; and alone, from the data
that CVXPY gives it, with and without its setup. Data are such that rows are broken on both sides of their kinks. Printed are medians over
the rounds and the quotients.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import clarabel
import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import dims_to_solver_cones

import oco

Floats = np.ndarray[Any, Any]
Row = Callable[[Any, Mapping[str, Any]], Any]
ENTRIES, ROUNDS, ALPHA = 400, 60, 2.0


@dataclass(frozen=True)
class Case:
    """Rows over a box: as the model has them, as CVXPY has them, and how many entries a decision has."""

    rows: tuple[Row, ...]
    cvxpy_forms: tuple[Row, ...]
    entries: int = ENTRIES
    matrix: bool = False


def both(row: Row) -> tuple[Row, ...]:
    """One row that reads the same in both."""
    return (row,)


CASES: dict[str, Case] = {
    "bounds": Case(both(lambda x, s: x - s["high"]), both(lambda x, s: x - s["high"])),
    "two bounds": Case(
        (lambda x, s: x - s["high"], lambda x, s: s["low"] - x), (lambda x, s: x - s["high"], lambda x, s: s["low"] - x)
    ),
    "squares": Case(both(lambda x, s: oco.square(x) - s["high"]), both(lambda x, s: cp.square(x) - s["high"])),
    "logarithms": Case(both(lambda x, s: s["low"] - oco.log1p(x)), both(lambda x, s: s["low"] - cp.log1p(x))),
    "bounds and a sum": Case(
        (lambda x, s: x - s["high"], lambda x, s: oco.sum(x) - s["total"]),
        (lambda x, s: x - s["high"], lambda x, s: cp.sum(x) - s["total"]),
    ),
    "dense": Case(
        both(lambda x, s: s["A"] @ x - s["high"]), both(lambda x, s: s["A"] @ x - s["high"]), entries=200, matrix=True
    ),
    "dense and a sum": Case(
        (lambda x, s: s["A"] @ x - s["high"], lambda x, s: oco.sum(x) - s["total"]),
        (lambda x, s: s["A"] @ x - s["high"], lambda x, s: cp.sum(x) - s["total"]),
        entries=200,
        matrix=True,
    ),
}
"""400 rows of each kind; "two bounds" 800, with a sum 401, dense ones over 200 entries."""


def data(case: Case, rng: np.random.Generator) -> dict[str, Floats]:
    """Values of the streams, the round first."""
    rows = ENTRIES
    high = rng.uniform(0.05, 0.6, (ROUNDS, rows)) * (0.2 * case.entries if case.matrix else 1)
    drawn = {"cost": rng.uniform(-1, 1, (ROUNDS, case.entries)), "high": high}
    return drawn | {
        "low": rng.uniform(0, 0.3, (ROUNDS, rows)),
        "total": rng.uniform(0.1, 0.4, ROUNDS) * case.entries,
    }


def model(case: Case, A: Floats) -> oco.Model:
    """The problem in the builder."""
    m = oco.Model("penalized", horizon=ROUNDS)
    x = m.decision("x", case.entries, domain=oco.box(0, 1))
    cost = m.stream("cost", case.entries, bounds=(-1, 1))
    most = 0.12 * case.entries if case.matrix else 0.6
    seen: dict[str, Any] = {"high": m.stream("high", ENTRIES, bounds=(0, most))}
    seen["low"] = m.stream("low", ENTRIES, bounds=(0, 0.3))
    seen["total"] = m.stream("total", bounds=(0, case.entries))
    if case.matrix:
        seen["A"] = m.param("A", value=A)
    m.minimize(cost @ x + oco.sum(oco.square(x)))
    for k, row in enumerate(case.rows):
        m.subject_to(row(x, seen) <= 0, name=f"rows{k}", each_round=True)
    return m


def learner_seconds(case: Case, A: Floats, drawn: Mapping[str, Floats], target: str) -> tuple[float, Floats]:
    """Median seconds of an `observe`, and the penalties Q of the last round."""
    plan = oco.compile(model(case, A), algorithm="coldq", settings={"alpha": ALPHA, "epsilon": 1.0, "gamma": 1.0})
    learner = plan.learner(backend=target)
    seconds = []
    for t in range(ROUNDS):
        learner.decide()
        began = perf_counter()
        learner.observe(**{n: v[t] for n, v in drawn.items()})
        seconds.append(perf_counter() - began)
    return float(np.median(seconds)), learner.values["Q"]


def clarabel_seconds(case: Case, A: Floats, drawn: Mapping[str, Floats], Q: Floats) -> Floats:
    """Median seconds of a warm solve through CVXPY, of setup and solve alone, and of solve alone."""
    x = cp.Variable(case.entries)
    seen: dict[str, Any] = {"high": cp.Parameter(ENTRIES), "low": cp.Parameter(ENTRIES), "total": cp.Parameter()}
    given = dict(seen)
    seen["A"] = A
    price, weight = cp.Parameter(case.entries), cp.Parameter(len(Q), nonneg=True)
    broken, rows = cp.Variable(len(Q), nonneg=True), [row(x, seen) for row in case.cvxpy_forms]
    stacked = rows[0] if len(rows) == 1 else cp.hstack(rows)
    objective = price @ x + ALPHA * cp.sum_squares(x) + weight @ broken
    problem = cp.Problem(cp.Minimize(objective), [x >= 0, x <= 1, stacked <= broken])
    assert problem.is_dpp()
    weight.value, y = Q, np.full(case.entries, 0.5)
    seconds = []
    for t in range(ROUNDS):
        for n, p in given.items():
            p.value = drawn[n][t]
        price.value = drawn["cost"][t] + 2 * y - 2 * ALPHA * y
        began = perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem.solve(solver=cp.CLARABEL, warm_start=True)
        through_cvxpy = perf_counter() - began
        seconds.append((through_cvxpy, *alone(problem)))
        y = np.clip(x.value, 0, 1)
    return np.median(seconds[1:], axis=0)


def alone(problem: cp.Problem) -> tuple[float, float]:
    """Seconds of Clarabel without CVXPY: of its setup and solve, and of its solve."""
    given = problem.get_problem_data(cp.CLARABEL)[0]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    P, cones = sp.triu(given["P"]).tocsc(), dims_to_solver_cones(given["dims"])
    began = perf_counter()
    solver = clarabel.DefaultSolver(P, given["c"], given["A"], given["b"], cones, settings)
    ready = perf_counter()
    solver.solve()
    ended = perf_counter()
    return ended - began, ended - ready


def main() -> None:
    """Measure the cases named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.penalized_step", description=__doc__)
    parser.add_argument("names", nargs="*", default=[], metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--backend", default="numpy", help="target of the learner")
    o = parser.parse_args()
    for name in o.names or CASES:
        case, rng = CASES[name], np.random.default_rng(0)
        A, drawn = rng.uniform(0, 1, (ENTRIES, case.entries)), data(case, rng)
        own, Q = learner_seconds(case, A, drawn, o.backend)
        others = clarabel_seconds(case, A, drawn, Q)
        cells = (f"{1e3 * s:9.3f} ms {own / s:7.3f}" for s in others)
        print(
            f"{name:<18}{1e3 * own:9.3f} ms; Clarabel through CVXPY, alone, without setup:{';'.join(cells)}", flush=True
        )


if __name__ == "__main__":
    main()
