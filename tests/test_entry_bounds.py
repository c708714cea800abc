"""Penalized steps under rows that bound single entries, which keep no multiplier: against CVXPY, and what is left of the program."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from driving import Run, plan_of
from thorough import corners

from oco.backends.registry import backend
from oco.compiler.problem.canonical import canonical
from oco.compiler.proximal.entry_bounds import bounding_rows
from oco.dsl.load import parse

Array = np.ndarray[Any, Any]
HEAD = """
model m
horizon T = 60
decision x[6] in box(-2, [3, 3, 3, 3, 5, 8])
decision z in box(0, 4)
stream c[6] in [-3, 3]
stream b[6] in [-1, 3]
stream a[6] in [-2, 2]
stream r in [-4, 6]
minimize c @ x - 2 * z
subject to
"""
# Rows, and the inequalities that are bounds: each row of them on an entry of its own.
CASES: dict[str, tuple[str, tuple[int, ...]]] = {
    "upper": ("cap: x <= b each round", (0,)),
    "lower": ("least: 2 * x >= b each round", (0,)),
    "slopes of both signs": ("cap: a * x <= 1 each round", (0,)),
    "in another order": ("cap: x[[5, 3, 1]] <= b[0:3] each round", (0,)),
    "one by one": ("u: x[0] <= b[1] each round\n  w: b[2] <= 3 * x[4] each round\n  v: z <= r each round", (0, 1, 2)),
    "both ends": ("cap: x <= b each round\n  least: x >= b - 2 each round", (0, 1)),
    "ends that cross": (
        "cap: x <= b - 1 each round\n  least: 2 * x >= b each round\n  z: a * x <= r each round",
        (0, 1, 2),
    ),
    "one entry twice": ("cap: x[[1, 1]] <= b[0:2] each round", (0,)),
    "one entry five times": ("cap: x[[1, 1, 1, 1, 1]] <= b[0:5] each round", (0,)),
    "one entry too often": ("cap: x[[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]] + b[0] <= 3 each round", ()),
    "ends and a sum": (
        "u: x <= b each round\n  w: 3 * x[0:4] >= b[0:4] - 2 each round\n  k: sum(x) + z >= r each round",
        (0, 1),
    ),
    "with a sum": ("cap: x <= b each round\n  total: sum(x) + z >= r each round", (0,)),
    "with a matrix": (
        "total: a @ x - z <= r each round\n  cap: x[0:3] <= b[1:4] each round\n  k: x[5] + z >= r each round",
        (1,),
    ),
}


def values(name: str, x: Any, z: Any, s: dict[str, Any]) -> list[Any]:
    """Rows g(x, z) of a case, in the order of its text."""
    a, b, r = s["a"], s["b"], s["r"]
    match name:
        case "upper":
            return [x - b]
        case "lower":
            return [b - 2 * x]
        case "slopes of both signs":
            return [cp.multiply(a, x) - 1]
        case "in another order":
            return [x[5] - b[0], x[3] - b[1], x[1] - b[2]]
        case "one by one":
            return [x[0] - b[1], b[2] - 3 * x[4], z - r]
        case "both ends":
            return [x - b, b - 2 - x]
        case "ends that cross":
            return [x - b + 1, b - 2 * x, cp.multiply(a, x) - r]
        case "one entry twice":
            return [x[1] - b[0], x[1] - b[1]]
        case "one entry five times":
            return [x[1] - b[k] for k in range(5)]
        case "one entry too often":
            return [x[0] + b[0] - 3] * 17
        case "ends and a sum":
            return [x - b, b[0:4] - 2 - 3 * x[0:4], r - cp.sum(x) - z]
        case "with a sum":
            return [x - b, r - cp.sum(x) - z]
    return [a @ x - z - r, x[0:3] - b[1:4], r - x[5] - z]


def drawn(rng: np.random.Generator) -> dict[str, Any]:
    """A round; slopes of zero among the others."""
    a = np.where(rng.random(6) < 0.2, 0.0, rng.uniform(-2, 2, 6))
    return {"c": rng.uniform(-3, 3, 6), "b": rng.uniform(-1, 3, 6), "a": a, "r": rng.uniform(-4, 6)}


def used(text: str, data: dict[str, Any]) -> dict[str, Any]:
    names = {s.name for s in canonical(parse(text)).streams}
    return {n: v for n, v in data.items() if n in names}


CURVED: dict[str, str] = {
    "squares": "cap: square(x) + a * x <= 2 * b + 1 each round\n  v: exp(z) <= 8 each round",
    "logarithms": "least: 4 * b <= 12 * log1p(0.4 * x + 1) each round",
    "one entry": "cap: logistic(a[0] * x[2]) <= 0.7 each round",
    "in another order": "cap: square(x[[5, 3, 1]] - 1) <= b[0:3] + 1 each round\n  v: square(z) <= r each round",
}


def curved(name: str, x: Any, z: Any, s: dict[str, Any]) -> list[Any]:
    """Rows of a case without kinks, in the order of its text."""
    a, b, r = s["a"], s["b"], s["r"]
    match name:
        case "squares":
            return [cp.square(x) + cp.multiply(a, x) - 2 * b - 1, cp.exp(z) - 8]
        case "logarithms":
            return [4 * b - 12 * cp.log1p(0.4 * x + 1)]
        case "one entry":
            return [cp.logistic(a[0] * x[2]) - 0.7]
    return [cp.square(x[k] - 1) - b[j] - 1 for j, k in enumerate((5, 3, 1))] + [cp.square(z) - r]


@pytest.mark.parametrize("name", CASES)
def test_rows_that_bound_an_entry_are_found(name: str) -> None:
    found = bounding_rows(canonical(parse(HEAD + "  " + CASES[name][0] + "\n")))
    assert (() if found is None else found.labels) == CASES[name][1]


STEPS = [*CASES, *(f"curved {name}" for name in CURVED)]
ALIKE = ("lower", "in another order", "one entry twice", "ends that cross", "curved in another order")
"""Cases with the steps of others: of upper ends, of some entries, of two ends."""


@pytest.mark.parametrize("name", corners(STEPS, [name for name in STEPS if name not in ALIKE]))
def test_steps_equal_those_of_a_solver(name: str) -> None:
    """The next decision is the minimizer of the penalized step, as CVXPY finds it."""
    short = name.removeprefix("curved ")
    written, rows_of = (CASES[name][0], values) if short == name else (CURVED[short], curved)
    text = HEAD + "  " + written + "\n"
    plan = plan_of(text, "coldq", {"alpha": "sqrt(t) / 4", "gamma": 2})
    run, rng, at_kinks = Run(plan), np.random.default_rng(7), 0
    low, high = np.full(6, -2.0), np.array([3, 3, 3, 3, 5, 8.0])
    for t in range(1, 5):
        (y, q), data, alpha = run.decisions, drawn(rng), np.sqrt(t) / 4
        run.play(used(text, data))
        Q = np.ravel(run.value("Q"))
        x, z = cp.Variable(6), cp.Variable()
        rows = cp.hstack([cp.hstack([g]) for g in rows_of(short, x, z, data)])
        objective = data["c"] @ x - 2 * z + alpha * (cp.sum_squares(x - y) + cp.square(z - q)) + Q @ cp.pos(rows)
        problem = cp.Problem(cp.Minimize(objective), [x >= low, x <= high, z >= 0, z <= 4])
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        assert np.abs(run.decisions[0] - x.value).max() <= 2e-5
        assert abs(float(run.decisions[1]) - float(z.value)) <= 2e-5
        at_kinks += int((np.abs(rows.value) < 1e-5).sum())
    assert at_kinks >= 2, "rows bind between no penalty and all of it"


def test_problems_without_units_have_rows_of_their_own_units() -> None:
    """Rows divided by their sizes, decisions by the radius: the same step in the user's units, from a solver."""
    text = HEAD + "  " + CASES["with a sum"][0] + "\n"
    plan = plan_of(text, "coldq", {"units": "free", "alpha": "sqrt(t) / 4", "gamma": 2})
    run, rng = Run(plan), np.random.default_rng(3)
    assert plan.choice.winner is not None and plan.choice.winner.scales is not None
    scales = plan.choice.winner.scales
    for t in range(1, 6):
        (y, q), data = run.decisions, drawn(rng)
        run.play(used(text, data))
        Q = np.ravel(run.value("Q"))
        x, z = cp.Variable(6), cp.Variable()
        rows = cp.hstack([cp.hstack([g]) for g in values("with a sum", x, z, data)])
        loss = (data["c"] @ x - 2 * z) / scales.loss
        moved = np.sqrt(t) / 4 * (cp.sum_squares(x - y) + cp.square(z - q)) / scales.radius**2
        price = (Q / scales.inequalities) @ cp.pos(rows)
        inside = [x >= -2, x <= np.array([3, 3, 3, 3, 5, 8.0]), z >= 0, z <= 4]
        problem = cp.Problem(cp.Minimize(loss + moved + price), inside)
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        assert np.abs(run.decisions[0] - x.value).max() <= 2e-4


ENTRIES = """
model m
horizon T = 60
decision x[400] in box(0, 10)
stream c[400] in [-1, 0]
stream b[400] in [1, 10]
minimize c @ x
subject to
    cap: x <= b each round
"""


def test_many_entrywise_rows_take_no_system() -> None:
    """Of 400 rows none has a multiplier: nothing is solved, nothing has 400 x 400 entries, and nothing is searched."""
    program = plan_of(ENTRIES, "coldq").program
    text = str(program)
    assert "solve" not in text and "while" not in text and "400, 400" not in text.replace("400,400", "400, 400")


def test_curved_rows_of_single_entries_take_no_system() -> None:
    program = plan_of(HEAD + "  " + CURVED["squares"] + "\n", "coldq").program
    assert "solve" not in str(program)


@pytest.mark.parametrize("written", [CASES["with a sum"][0], CASES["ends and a sum"][0], CURVED["squares"]])
def test_c_takes_the_same_steps(written: str) -> None:
    text = HEAD + "  " + written + "\n"
    plan = plan_of(text, "coldq", {"alpha": "sqrt(t) / 4", "gamma": 2})
    if backend("c").unavailable_reason():
        pytest.skip("no C compiler")
    run, other, rng = Run(plan), Run(plan), np.random.default_rng(5)
    other.compiled = backend("c").compile(plan.program)
    for _ in range(6):
        data = used(text, drawn(rng))
        run.play(data)
        other.play(data)
        for own, native in zip(run.decisions, other.decisions):
            assert np.allclose(own, native, rtol=0, atol=1e-9)
