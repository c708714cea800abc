"""Curvature on two corpora: convex expressions are proved, others refuted by witnesses, and CVXPY accepts nothing that we do not."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from facts_oracle import Oracle
from thorough import corners, thorough

from oco.compiler.problem.canonical import Canonical, canonical
from oco.compiler.problem.cvxpy_form import to_cvxpy
from oco.compiler.prover.check import check
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.function import ScalarFunction
from oco.compiler.prover.types import Status
from oco.dsl.diagnostics import InternalError, OcoError
from oco.dsl.evaluate import evaluate
from oco.dsl.load import parse

FOLDER = Path(__file__).parent / "curvature"
NAMES = (FOLDER / "names.oco").read_text()


def lines(name: str) -> list[str]:
    text = (FOLDER / f"{name}.txt").read_text()
    return [line for line in text.splitlines() if line and not line.startswith("#")]


CONVEX, NONCONVEX = lines("convex"), lines("nonconvex")
BRIEF = {*CONVEX[::3], *NONCONVEX[::3]}
"""Every second line: neighbours are of one kind."""


@lru_cache(maxsize=300)
def judged(expression: str) -> tuple[Canonical, Fact]:
    problem = canonical(parse(NAMES.replace("EXPRESSION", expression)))
    setting = ProofContext(problem)
    setting.ranges.must_be_defined(problem.objective)
    return problem, ScalarFunction(setting, problem.objective, "loss", "the loss").convexity


def test_the_corpora_are_large() -> None:
    assert len(CONVEX) >= 100 and len(NONCONVEX) >= 100
    assert len({*CONVEX, *NONCONVEX}) == len(CONVEX) + len(NONCONVEX)


@pytest.mark.parametrize("expression", corners(CONVEX, BRIEF))
def test_convex_is_proved_and_never_bulges(expression: str) -> None:
    problem, fact = judged(expression)
    assert fact.status is Status.PROVED and fact.value is True
    oracle = Oracle(problem.model)
    first, second = oracle.draws(80), oracle.draws(80)
    for k in range(80):
        x, y = ({n: v[k] for n, v in d.items()} for d in (first, second))
        y |= {n: v for n, v in x.items() if n not in oracle.blocks}
        middle = {n: (x[n] + y[n]) / 2 if n in oracle.blocks else x[n] for n in x}
        ends, mid = [float(evaluate(problem.objective, p)) for p in (x, y)], float(evaluate(problem.objective, middle))
        assert mid <= sum(ends) / 2 + 1e-12 * max(1.0, *map(abs, ends))


@pytest.mark.parametrize("expression", corners(NONCONVEX, BRIEF))
def test_nonconvex_is_refuted_by_a_witness_that_holds(expression: str) -> None:
    problem, fact = judged(expression)
    assert fact.status is not Status.PROVED
    assert fact.status is Status.REFUTED and fact.witness is not None
    values = fact.witness.values
    streams = {s.name: values[s.name] for s in problem.streams if s.name in values}
    x, y = ({b.name: values[f"{b.name} ({which})"] for b in problem.blocks} for which in ("first", "second"))
    assert all(b.domain.contains(p[b.name]) for b in problem.blocks for p in (x, y))
    for s in problem.streams:
        if s.name in streams:
            assert np.all(s.lower <= streams[s.name]) and np.all(streams[s.name] <= s.upper)
    middle = {n: (x[n] + y[n]) / 2 for n in x}
    at = [float(evaluate(problem.objective, {**streams, **p})) for p in (x, y, middle)]
    violation = at[2] - (at[0] + at[1]) / 2
    assert violation > 1e-6 * max(map(abs, at))
    assert violation == pytest.approx(fact.witness.violation, rel=1e-6)


@pytest.mark.parametrize("expression", corners([*CONVEX, *NONCONVEX], BRIEF))
def test_what_cvxpy_accepts_is_accepted(expression: str) -> None:
    import cvxpy as cp

    problem, fact = judged(expression)
    if fact.status is Status.PROVED:
        return
    oracle = Oracle(problem.model, seed=3)
    variables = {b.name: cp.Variable(b.shape) for b in problem.blocks}
    for _ in range(12):
        env = {n: v for n, v in oracle.draw().items() if n not in oracle.blocks}
        try:
            twin = to_cvxpy(problem.objective, variables, env)
        except InternalError:
            return
        # Powers of CVXPY are +inf for negative bases: where it cuts the domain it means another function.
        if not twin.is_convex() or twin.domain:
            return
    pytest.fail("CVXPY accepts it for every value of the streams that was drawn")


def test_the_error_names_the_part_and_its_curvature() -> None:
    with pytest.raises(OcoError) as caught:
        check(parse(NAMES.replace("EXPRESSION", "c @ x + 2 * sqrt(y)")))
    assert caught.value.code == "OCO501"
    assert caught.value.span is not None and caught.value.span.text == "sqrt(y)"
    assert "concave" in caught.value.message


def test_each_constraint_that_is_wrong_gets_an_error_of_its_own() -> None:
    model = NAMES.replace("EXPRESSION", "c @ x") + (
        "subject to\n    one: log(y) <= 1\n    two: sum_squares(x) >= 1\n    three: square(y) == 2\n    four: c @ x <= y\n"
    )
    with pytest.raises(OcoError) as caught:
        check(parse(model))
    found = [(e.code, e.span.text if e.span else "") for e in caught.value.errors]
    assert found[:2] == [("OCO502", "log(y)"), ("OCO502", "sum_squares(x)")]
    assert [code for code, _ in found] == ["OCO502", "OCO502", "OCO503"]


def test_what_is_not_decided_is_a_warning() -> None:
    facts = check(parse(NAMES.replace("EXPRESSION", "exp(sqrt(y))")))
    assert facts["loss.convex"].status is Status.UNKNOWN
    assert [w.code for w in facts.warnings if w.code == "OCO602"] == ["OCO602"]


@pytest.mark.parametrize(
    "body",
    (
        "decision x in box(-2, -1)\nminimize x * log(x / (-1))",  # x log(x / y) is concave for x, y < 0
        thorough("decision x in box(-2, -1)\nstream s in [-3, -1]\nminimize x * log(x / s)"),
    ),
)
def test_forms_that_spell_an_atom_outside_of_its_range_are_judged_by_themselves(body: str) -> None:
    with pytest.raises(OcoError) as error:
        check(parse(f"model m\nhorizon T = 10\n{body}\n"))
    assert error.value.code == "OCO501"


@pytest.mark.parametrize("loss", ("-abs(x)", "-pos(x)", "-maximum(0, x)"))
def test_a_kink_on_the_boundary_is_a_kink(loss: str) -> None:
    """For x >= 0 these equal -x, but the gradient at 0 that a learner computes is no subgradient of it: convexity is not claimed."""
    facts = check(parse(f"model m\nhorizon T = 10\ndecision x in box(0, 1)\nminimize {loss}\n"))
    assert facts["loss.convex"].status is Status.UNKNOWN and [w.code for w in facts.warnings] == ["OCO602"]


@pytest.mark.parametrize("loss", ("-maximum(x, 0)", "-minimum(x, y)", "minimum(x, d) - 2 * x"))
def test_a_tie_on_the_boundary_goes_to_the_first_argument(loss: str) -> None:
    """Ties that the domain allows on its boundary alone take the gradient of the first argument, which is the function's own."""
    head = "model m\nhorizon T = 10\ndecision x in box(0, 1)\ndecision y in box(1, 2)\nstream d in [1, 3]\n"
    facts = check(parse(f"{head}minimize {loss}\n"))
    assert facts["loss.convex"].value is True and facts["loss.smoothness.l2"].value == 0
    assert facts["loss.lipschitz.l2"].value == 1 and not facts["loss.lipschitz.l2"].loose


@pytest.mark.parametrize(
    "form", ("(x.T @ (A.T @ A)) @ x", "x.T @ A.T @ A @ x", "x @ (A.T @ (A @ x))", "(x @ A.T) @ (A @ x)")
)
@pytest.mark.parametrize("matrix", ("param A[2, 3] = [[1, 2, 0.3], [0.1, 0.7, 1]]", "stream A[2, 3] in [-1, 1]"))
def test_quadratic_forms_of_gram_matrices_are_convex(form: str, matrix: str) -> None:
    text = f"model m\nhorizon T = 10\n{matrix}\ndecision x[3] in box(-1, 1)\nminimize "
    assert check(parse(f"{text}{form}\n"))["loss.convex"].value is True


def test_smooth_terms_are_judged_together_wherever_terms_with_kinks_stand() -> None:
    head = "model m\nhorizon T = 5\ndecision x[2] in box(-1, 1)\nminimize "
    terms = ["abs(x[0])", "x[0] * x[1]", "square(x[0])", "norm2(x)", "square(x[1])"]
    for k in (0, 2):
        assert check(parse(head + " + ".join(terms[k:] + terms[:k])))["loss.convex"].value is True
    with pytest.raises(
        OcoError
    ):  # without square(x[1]) the smooth terms have an eigenvalue below 0, and |x|_2 does not mend it
        check(parse(head + "abs(x[0]) + 3 * x[0] * x[1] + square(x[0]) + abs(x[1] - 3)"))


def test_a_long_sum_names_the_term_that_is_wrong() -> None:
    terms = [f"square(x[{k % 2}] - {k})" for k in range(150)]
    terms[77] = "-exp(x[1])"
    text = f"model m\nhorizon T = 5\ndecision x[2] in box(-1, 1)\nminimize sqrt(2 + x[0]) * 1e6 + {' + '.join(terms)}\n"
    with pytest.raises(OcoError) as caught:
        check(parse(text))
    assert "sqrt(2 + x[0])" in str(caught.value)
