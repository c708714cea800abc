"""Losses whose slope is infinite at the border of the domain: their learners keep a little away from it, and say so."""

from __future__ import annotations

import numpy as np
import pytest
from driving import plan_for
from thorough import thorough

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.theory.ways_out import borders_of_slopes

ENTROPY = """model entropy
horizon T = 400
decision x[3] in simplex
stream c[3] in [0, 1]
minimize c @ x + sum(rel_entr(x, [0.2, 0.3, 0.5]))
subject to
    s: c @ x <= 0.9  on average
using coldq
"""
SALES = """model sales
horizon T = 400
decision q[3] in box(0, 5)
stream d[3] in [0, 4]
stream c[3] in [0.1, 0.3]
minimize c @ q - sum(sqrt(minimum(q, d)))
"""
TWO = """model two
horizon T = 400
decision x in box(0, 1)
decision y in box(0, 1)
decision z in box(0, 1)
stream c in [0.5, 1]
minimize c * z - sqrt(x) - c * sqrt(1 - y)
"""


@pytest.mark.parametrize(
    "text, cut", [thorough(ENTROPY, "with x >= 0.003"), (SALES, "with q >= 0.03")], ids=["entropy", "sales"]
)
def test_decisions_keep_away_from_infinite_slopes(text: str, cut: str) -> None:
    plan = plan_for(text)
    assert plan.algorithm != "bgd"
    assert cut in plan.canonical.model.to_oco()
    assert any("because a gradient is infinite beyond" in remark for remark in plan.guarantee.remarks)


def test_the_guarantee_holds_where_the_smallest_of_two_is_zero() -> None:
    """Demand of zero, at which the root's slope is infinite, gives finite decisions and a regret within the bound."""
    rng = np.random.default_rng(3)
    data = {"d": rng.integers(0, 5, (400, 3)).astype(float), "c": rng.uniform(0.1, 0.3, (400, 3))}
    plan = plan_for(SALES)
    trace = plan.run(data)
    decisions = np.asarray(trace.decisions)
    assert np.isfinite(decisions).all() and decisions.min() >= 0.03
    loss = (data["c"] * decisions).sum() - np.sqrt(np.minimum(decisions, data["d"])).sum()
    grid = np.linspace(0.03, 5, 498)
    best = sum(
        (data["c"][:, [i]] * grid - np.sqrt(np.minimum(grid, data["d"][:, [i]]))).sum(axis=0).min() for i in range(3)
    )
    assert loss - best <= plan.guarantee.regret(400)


def test_cuts_are_no_more_than_are_needed() -> None:
    problem = canonical(oco.parse(TWO))
    assert [str(b) for b in borders_of_slopes(problem, (problem.objective,))] == ["x >= 0.005", "y <= 0.995"]


def test_a_named_algorithm_keeps_away_too() -> None:
    plan = plan_for(TWO + "using ogd\n")
    assert plan.algorithm == "ogd" and "with y <= 0.995" in plan.canonical.model.to_oco()


def test_bounded_slopes_need_no_cut() -> None:
    plan = oco.compile(oco.parse(SALES.replace("box(0, 5)", "box(1, 5)")))
    assert "with" not in plan.canonical.model.to_oco()


FLOW = """model flow
horizon T = 400
decision x[3] in simplex
stream c[3] in [0, 1]
minimize c @ x
subject to
    s: c @ x <= 0.9 on average
measure dynamic regret
feedback gradient
"""


def given_up(plan: oco.Plan) -> list[str]:
    """Promises that a plan gives up, without the reasons, which name the method that comes nearest."""
    return [r.split(", because")[0] for r in plan.guarantee.remarks if ", because" in r]


@pytest.mark.parametrize(
    "text", [thorough(ENTROPY), SALES, TWO + "using ogd\n", thorough(TWO + "measure dynamic regret\n"), FLOW]
)
def test_what_is_given_up_is_said_again_for_another_horizon_and_after_a_restore(text: str) -> None:
    """Plans of the model as written: for 300 rounds, of a saved state, and of a recipe."""
    plan = plan_for(text)
    assert plan.guarantee is not None and plan.guarantee.remarks
    for other in (plan.with_horizon(300), type(plan).from_recipe(plan.recipe)):
        assert other.guarantee is not None
        assert other.algorithm == plan.algorithm and given_up(other) == given_up(plan) != []
        for own, its in zip(plan.canonical.blocks, other.canonical.blocks, strict=True):
            np.testing.assert_array_equal([own.domain.lower, own.domain.upper], [its.domain.lower, its.domain.upper])
    learner = oco.restore(plan.learner(backend="numpy").state())
    assert all(any(remark in line for line in learner.contract.guarantee) for remark in given_up(plan))
