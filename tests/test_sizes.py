"""Work for models of many rows, by counts: what grows with the number of rows grows no faster than it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oco
from oco.backends.python.walker import Walker
from oco.compiler.algorithms import penalized
from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.feasibility import slater
from oco.compiler.prover.ranges.occurs_once import occurs_once
from oco.compiler.proximal.entry_bounds import bounding_rows


def family(n: int) -> oco.Model:
    """Named constraints in a loop, each on an entry of its own."""
    m = oco.Model("family", horizon=1000)
    x = m.decision("x", n, domain=oco.box(0, 10))
    need = m.stream("need", n, bounds=(0, 1))
    m.minimize(oco.sum(x))
    for i in range(n):
        m.subject_to(need[i] - x[i] <= 0, name=f"need{i}", each_round=True)
    return m


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[int]:
    """Calls of a function from now on, as the length of a list."""
    calls: list[int] = []
    real = getattr(owner, name)

    def count(*args: Any, **options: Any) -> Any:
        calls.append(1)
        return real(*args, **options)

    monkeypatch.setattr(owner, name, count)
    return calls


def test_learners_of_named_constraints_are_written_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = [oco.compile(family(n), algorithm="coldq") for n in (12, 48)]
    work = []
    for plan in plans:
        with monkeypatch.context() as patch:
            calls = counted(patch, Walker, "text")
            assert plan.source("numpy")
            work.append(len(calls))
    assert work[1] <= 4.5 * work[0], "four times as many rows"


@pytest.mark.parametrize("algorithm", ["coldq", "nested"])
def test_programs_of_named_constraints_do_not_grow(algorithm: str) -> None:
    """Alike rows are one vector: four times as many take as many operations."""
    lines = [len(str(oco.compile(family(n), algorithm=algorithm).program).splitlines()) for n in (12, 48)]
    assert lines[0] == lines[1]


def test_named_constraints_of_entries_have_no_multipliers() -> None:
    """A loop over entries is as good as one vector constraint: each row is a bound."""
    plan = oco.compile(family(40), algorithm="coldq")
    found = bounding_rows(plan.canonical)
    assert found is not None and len(found.labels) == 40
    assert found.entries.tolist() == list(range(40)) == found.rows.tolist()
    assert "solve" not in str(plan.program)


def test_sums_over_rows_are_formed_once_in_a_search_over_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search asks for the guarantee hundreds of times; the norm over all rows is worked out once a problem."""
    norms = counted(monkeypatch, np.linalg, "norm")
    asked = counted(monkeypatch, penalized, "constraint_variation")
    m = family(30)
    facts = oco.check(m)
    assert facts["feasible.common"].value
    norms.clear()
    plan = oco.compile(m, algorithm="coldq", settings="optimal")
    assert plan.guarantee is not None
    assert len(asked) > 50 > len(norms)


def test_rows_with_much_to_spare_are_proved_however_many_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A corner of the box satisfies 5,000 rows: proved without a solver where its steps are not left."""
    monkeypatch.setattr(slater, "least_violation", lambda scenario, exprs: None)
    m = oco.Model("rows", horizon=100)
    a = m.param("a", value=np.random.default_rng(0).uniform(0.1, 1, (5000, 5)))
    x = m.decision("x", 5, domain=oco.box(0, 1))
    limit = m.stream("limit", 5000, bounds=(0, 10))
    m.minimize(oco.sum(x))
    m.subject_to(a @ x <= limit, name="rows", each_round=True)
    fact = oco.check(m)["feasible.common"]
    assert fact.value and fact.status == "proved"


def test_constraints_of_parts_conflict_however_many_they_are() -> None:
    """Arrivals of up to 0.5 in each of 4 phases exceed a cycle of length 1: so at one crossing, and at 300."""
    n = 300
    m = oco.Model("signals", horizon=1000)
    green = m.decision("green", (n, 4), domain=oco.box(0, 1))
    arrivals = m.stream("arrivals", (n, 4), bounds=(0, 0.5))
    m.minimize(oco.sum(oco.square(green - arrivals)))
    m.subject_to(oco.sum(green, axis=1) <= 1, name="cycle", each_round=True)
    m.subject_to(arrivals - green <= 0, name="drain", each_round=True)
    fact = oco.check(m)["feasible.common"]
    assert fact.status == "condition" and fact.why is not None
    assert "the greatest margin of any decision is -0.2" in fact.why.claim or "at least 0.2" in fact.why.claim
    assert len(fact.why.claim) < 300


@pytest.mark.parametrize(
    ("row", "most", "exact"),
    [
        ("x[0] + 0.5 * x[1] - b[2]", 1.0, True),
        ("x[0] - x[1] * 2 - b[2]", 2.5, True),
        ("x[0] - 2 * x[0] - b[2]", 0.5, True),
        ("x[0] + norm2(x[1:3]) - x[0] - b[2]", 2**0.5 - 0.5, False),
    ],
)
def test_different_entries_of_a_box_are_numbers_of_their_own(row: str, most: float, exact: bool) -> None:
    """Suprema over x in [-1, 1]^3 and b in [0.5, 2], by hand; the same entry twice is one number."""
    head = "model m\nhorizon T = 9\ndecision x[3] in box(-1, 1)\nstream b[3] in [0.5, 2]\nminimize sum_squares(x)\n"
    model = oco.parse(f"{head}subject to\n    r: {row} <= 0 each round\n")
    assert oco.check(model)["constraints.r.upper"].value == pytest.approx(most)
    problem = canonical(model)
    assert occurs_once(ProofContext(problem), problem.inequalities[0].expr) is (exact and "2 * x[0]" not in row)
