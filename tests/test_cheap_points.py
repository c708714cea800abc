"""Points and multipliers that are found without a solver, against linear programs and margins that are 0 exactly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import oco
from oco.compiler.prover.audit.falsify import AuditOutcome
from oco.compiler.prover.audit.verify import verify
from oco.compiler.prover.check import check
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.feasibility import slater
from oco.compiler.prover.types import Status
from oco.dsl.load import parse

HEAD = "model m\nhorizon T = 100\n"


def facts_of(text: str) -> Facts:
    return check(parse(HEAD + text))


def never(*_: object) -> None:
    raise AssertionError("a solver was asked")


@pytest.mark.parametrize("seed", range(4))
def test_a_linear_minimiser_has_the_margin_of_a_linear_program(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slater, "_solved", never)
    rng = np.random.default_rng(seed)
    upper, lower = rng.uniform(0.5, 1, 6), rng.uniform(0, 0.3, 6)
    m = oco.Model("m", horizon=100)
    x = m.decision("x", 6, domain=oco.simplex())
    risk = m.stream("risk", 6, bounds=(lower, upper))
    m.minimize(oco.sum(x))
    m.subject_to(risk @ x <= 0.9, name="risk", each_round=True)
    m.subject_to(x[0] <= 3, name="loose", each_round=True)
    # For x >= 0 the worst risk is the greatest: max m with upper @ x + m <= 0.9 over the simplex.
    best = linprog(
        [*np.zeros(6), -1.0],
        [[*upper, 1.0], [1.0, *np.zeros(5), 1.0]],
        [0.9, 3.0],
        [[*np.ones(6), 0.0]],
        [1.0],
        bounds=[(0, None)] * 6 + [(None, None)],
    )
    assert oco.check(m)["slater.margin"].value == pytest.approx(-best.fun, rel=1e-9)


def test_rows_that_disagree_are_left_to_the_solver() -> None:
    """The minimiser of neither row serves both: max m with x0 + m <= 0.8, x1 + m <= 0.7 over x0 + x1 = 1."""
    facts = facts_of(
        "decision x[2] in simplex()\nstream s in [0, 1]\nminimize s * x[0]\nsubject to\n"
        "    a: x[0] <= 0.8 each round\n    b: x[1] <= 0.7 each round\n"
    )
    assert facts["slater.margin"].value == pytest.approx(0.25, rel=1e-6)


def test_one_corner_serves_many_named_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row falls in an entry of its own and in x[0]; the corner takes all of them up."""
    monkeypatch.setattr(slater, "_solved", never)
    m = oco.Model("m", horizon=100)
    x = m.decision("x", 50, domain=oco.box(0, 2))
    need = m.stream("need", 50, bounds=(0, 1))
    m.minimize(oco.sum(x))
    for i in range(50):
        m.subject_to(need[i] <= x[i] + (x[0] if i else 0.0), name=f"need{i}", each_round=True)
    assert oco.check(m)["slater.margin"].value == 1.0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("domain", ["simplex(2)", "capped_simplex(0.7, 2)", "budget(0, [1, 2, 1, 1, 1], 2)"])
def test_the_supremum_of_a_linear_function_over_a_tied_set_is_that_of_a_linear_program(seed: int, domain: str) -> None:
    rng = np.random.default_rng(seed)
    low = np.round(rng.uniform(-2, 1, 5), 2)
    high = low + np.round(rng.uniform(0, 1, 5), 2)
    cap = {"s": [2] * 5, "c": [0.7] * 5, "b": [1, 2, 1, 1, 1]}[domain[0]]
    facts = facts_of(
        f"decision x[5] in {domain}\nstream c[5] in [{low.tolist()}, {high.tolist()}]\nminimize c @ x + square(x[0])\n"
    )
    plain = facts_of(f"decision x[5] in {domain}\nstream c[5] in [{low.tolist()}, {high.tolist()}]\nminimize c @ x\n")
    best = linprog(-high, A_eq=[np.ones(5)], b_eq=[2.0], bounds=list(zip([0] * 5, cap)))
    assert plain["loss.upper"].value == pytest.approx(-best.fun, rel=1e-9, abs=1e-9)
    assert facts["loss.upper"].value >= -best.fun - 1e-9


# ---- Margins that are 0


@pytest.mark.parametrize(
    "stream",
    ["stream d in [0, 1] iid mean = 0.47", "stream d ~ bernoulli(0.47)", "stream d ~ pareto(3, mean = 0.47)"],
)
def test_a_mean_that_is_stated_is_that_number(stream: str) -> None:
    """x[0] = 0.47 has the stated mean exactly: feasible in the mean, with nothing to spare."""
    facts = facts_of(
        f"{stream}\ndecision x[3] in box(0, 0.47)\nminimize sum(x)\nsubject to\n    c: x[0] >= d on average\n"
    )
    assert facts["feasible.mean"].status is Status.PROVED
    assert facts["slater.margin"].status is Status.REFUTED
    missed = facts_of(
        f"{stream}\ndecision x[3] in box(0, 0.4699999)\nminimize sum(x)\nsubject to\n    c: x[0] >= d on average\n"
    )
    assert missed["feasible.mean"].status is Status.REFUTED


def test_a_mean_that_is_cut_is_not_the_stated_one() -> None:
    """exponential(1) cut to [0, 1] has the mean 1 - 1 / (e - 1) = 0.418."""
    facts = facts_of(
        "stream d ~ exponential(1) in [0, 1]\ndecision x in box(0, 1)\nminimize x\nsubject to\n    c: x >= d on average\n"
    )
    assert facts["slater.margin"].value == pytest.approx(1 - (1 - 1 / (np.e - 1)), rel=1e-6)


@pytest.mark.parametrize("rows", [1, 300])
@pytest.mark.parametrize("row", ["square(s) * x <= 0.7", "s * r * x <= 0.7"])
def test_a_decision_that_serves_every_round_serves_the_mean(rows: int, row: str) -> None:
    """The mean of a product is not that of its factors, and is not needed."""
    facts = facts_of(
        f"stream s[{rows}] in [0, 1] iid mean = 0.5\nstream r[{rows}] in [0, 1] iid mean = 0.5\n"
        f"decision x[{rows}] in box(0, 1)\nminimize sum(r * x)\nsubject to\n    c: {row} on average\n"
    )
    assert facts["slater.margin"].value == pytest.approx(0.7)
    assert facts["feasible.mean"].status is Status.PROVED
    assert facts["multipliers.bounded"].status is Status.PROVED
    assert not [c for c in verify(facts) if c.outcome is AuditOutcome.FAILED]
