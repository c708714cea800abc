"""Expressions over many rounds at once: the same values as round by round, for every atom, its derivative and every index."""

from __future__ import annotations

import numpy as np
import pytest
from atom_cases import CASES, Case, each_case
from ir_programs import CASES as OPERATIONS
from ir_programs import Case as Operation

from oco.compiler.ir.ops import OPS
from oco.compiler.problem.calculus import vector_jacobian
from oco.dsl.build import index
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, Kind, Name, Slice, constant
from oco.evaluation.batch import BatchOps, RoundArray, evaluate_rounds, values_of

ROUNDS = 4
every = each_case(CASES)


def check(expr: Expr, env: dict[str, np.ndarray], fixed: frozenset[str] = frozenset()) -> None:
    """`env` has the rounds first; the names in `fixed` keep the value of the first round."""
    batch = {n: v[0] if n in fixed else RoundArray(v) for n, v in env.items()}
    found = values_of(evaluate_rounds(expr, batch, ROUNDS, np.arange(ROUNDS) + 1), ROUNDS)
    for t in range(ROUNDS):
        at = {n: v[0] if n in fixed else v[t] for n, v in env.items()}
        np.testing.assert_allclose(found[t], evaluate(expr, at, t + 1), rtol=1e-12, atol=1e-12)


def draws(case: Case) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    parts = [case.draw(rng) for _ in range(ROUNDS)]
    return {name: np.stack([p[name] for p in parts]) for name in parts[0]}


@pytest.mark.parametrize("case", [c for c in OPERATIONS if c.op != "entries"], ids=lambda c: c.op)
def test_every_operation_has_a_meaning_over_rounds(case: Operation) -> None:
    """The meaning of each round, also where no method does it for all rounds at once, or an argument has no rounds."""
    ops, row = BatchOps(ROUNDS), OPS[case.op]
    rows = [np.stack([(1 + 0.3 * k) * a if a.dtype.kind == "f" else a for k in range(ROUNDS)]) for a in case.args]
    for same in range(max(1, len(rows))):  # an argument that is the same in every round
        given = [RoundArray(v) if k != same or len(rows) == 1 else v[0] for k, v in enumerate(rows)]
        wanted = [row.meaning(*(values_of(a, ROUNDS)[k] for a in given), **case.attrs) for k in range(ROUNDS)]
        for found in (getattr(ops, case.op)(*given, **case.attrs), ops._round_by_round(row, given, case.attrs)):
            parts = found if isinstance(found, tuple) else (found,)
            for k in range(ROUNDS):
                each = wanted[k] if isinstance(found, tuple) else (wanted[k],)
                for part, value in zip(parts, each, strict=True):
                    np.testing.assert_allclose(values_of(part, ROUNDS)[k], value, rtol=1e-13)


def test_what_is_no_operation_has_no_meaning_over_rounds() -> None:
    assert not hasattr(BatchOps(ROUNDS), "hearsay")


@every
def test_all_arguments_differ_by_the_round(case: Case) -> None:
    check(case.call(), draws(case))


@every
def test_some_arguments_are_the_same_in_every_round(case: Case) -> None:
    for name in case.boxes:
        check(case.call(), draws(case), frozenset({name}))


@every
def test_derivatives(case: Case) -> None:
    expr = case.call()
    names = tuple(case.boxes)
    weights = np.random.default_rng(1).normal(size=evaluate(expr, {n: v[0] for n, v in draws(case).items()}).shape)
    for part in vector_jacobian(expr, constant(weights), names).values():
        check(part, draws(case))


X = Name("X", Kind.DECISION, shape=(4, 5))
ROWS = Name("i", Kind.STREAM, shape=(3,), integer=True)
ROW = Name("k", Kind.STREAM, integer=True)
WHOLE = Slice()
INDICES = {
    "row": (constant(2),),
    "entry": (constant(2), constant(3)),
    "rows": (constant(np.array([3, 0, 3])),),
    "column": (WHOLE, constant(1)),
    "part": (Slice(constant(1), constant(3)), WHOLE),
    "stream rows": (ROWS,),
    "stream pairs": (ROWS, ROWS),
    "stream entry": (ROW, constant(1)),
    "stream columns": (WHOLE, ROWS),
    "stream row of columns": (ROW, Slice(constant(1), constant(4))),
}


@pytest.mark.parametrize("items", INDICES.values(), ids=INDICES.keys())
def test_indices(items: tuple[Expr, ...]) -> None:
    rng = np.random.default_rng(2)
    env = {"X": rng.normal(size=(ROUNDS, 4, 5)), "i": rng.integers(0, 4, (ROUNDS, 3)), "k": rng.integers(0, 4, ROUNDS)}
    expr = index(X, items)
    check(expr, env)
    check(expr, env, frozenset({"X"}))
    weights = constant(rng.normal(size=tuple(int(str(d)) for d in expr.shape)))
    check(vector_jacobian(expr, weights, ("X",))["X"], env)


def test_the_number_of_the_round() -> None:
    t = Name("t", Kind.ROUND)
    found = evaluate_rounds(t, {}, 3, np.array([4, 5, 6]))
    assert values_of(found, 3).tolist() == [4.0, 5.0, 6.0]
