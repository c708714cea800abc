"""Facts of constraints with very many entries, which are those of their worst entry, are those of a few entries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cvxpy as cp
import pytest

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.feasibility.scenario import robust
from oco.compiler.prover.vector import MOST_ENTRIES

MODEL = """model m
horizon T = 1000
decision x[{n}] in box(0, 1)
stream c[{n}] in [-1, 1]
stream A[{n}, {n}] in [0, 1]
stream b[{n}] in [1, 2]
minimize c @ x
subject to
    use: {body} on average
"""
KEYS = ("convex", "smoothness.l2", "lipschitz.l1")
ENTRYWISE = ["square(x) <= b", "exp(2 * x) <= 7 + b", "x <= b", "abs(x - b) <= b", "square(x - b) + x <= 9"]
STRUCTURES = {
    "A @ x <= 5": "affine",
    "x <= b": "affine",
    "exp(2 * x) <= 9": "separable",
    "square(A @ x) <= 5": "general",
}


@pytest.mark.parametrize("body", ENTRYWISE)
def test_many_entries_have_the_facts_of_few(body: str) -> None:
    few, many = (oco.check(oco.parse(MODEL.format(n=n, body=body))) for n in (3, MOST_ENTRIES + 1))
    for key in KEYS:
        ours, theirs = (facts[f"constraints.use.{key}"] for facts in (many, few))
        assert ours.status == theirs.status, key
        if ours.value is not None:
            assert ours.value == pytest.approx(theirs.value, rel=1e-9), key


@pytest.mark.parametrize(("body", "kind"), STRUCTURES.items())
def test_many_entries_have_a_structure(body: str, kind: str) -> None:
    facts = oco.check(oco.parse(MODEL.format(n=MOST_ENTRIES + 1, body=body)))
    assert facts["constraints.use.structure"].value == kind


ROWS = """model m
horizon T = 1000
decision x[4] in box(-1, 1)
stream A[40, 4] in [-1, 1]
stream b[40] in [2.5, 3]
minimize sum(x)
subject to
    caps: A @ x <= b on average
    least: sum(x) >= 2 on average
"""


def test_a_margin_over_matrices_whose_entries_have_either_sign() -> None:
    """In the worst case |x|_1 - 2.5 in each row against 2 - sum(x): both are -0.25 where all of |x|_1 = 2.25 is above zero."""
    assert oco.check(oco.parse(ROWS))["slater.margin"].value == pytest.approx(0.25, abs=1e-6)


def test_a_margin_over_entries_of_which_some_are_known() -> None:
    """In the worst case 2 |x| + x^2 - 1.5 against 0.5 - x: equal where x^2 + 3 x = 2."""
    text = """model m
horizon T = 10
decision x in box(-1, 1)
stream s[3] in [[-1, -1, 0], [1, 1, 0]]
minimize x
subject to
    most: sum(s) * x + x * x <= 1.5 each round
    least: x >= 0.5 each round
"""
    assert oco.check(oco.parse(text))["slater.margin"].value == pytest.approx((17**0.5 - 3) / 2 - 0.5, abs=1e-6)


def test_a_solver_is_given_the_row_of_a_matrix_alone() -> None:
    problem = canonical(oco.parse(ROWS))
    scenario = robust(ProofContext(problem))
    (block,), caps = problem.blocks, problem.inequalities[0].expr
    forms = scenario.in_cvxpy(caps, {block.name: cp.Variable(block.shape)})
    assert forms is not None and len(forms) == 40
    assert [node.size for node in nodes_of(forms[0]) if isinstance(node, cp.abs)] == [4]


def nodes_of(expr: Any) -> Iterator[Any]:
    """Expression of CVXPY and all below it."""
    yield expr
    for below in expr.args:
        yield from nodes_of(below)
