"""Conditions that hold on data: their margins against closed forms and CVXPY, and their rank between proved and open ones."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.data_conditions import DataConditions
from oco.compiler.selection.plan import compile_plan
from oco.compiler.selection.verdicts import Applicability, rank
from oco.compiler.theory.guarantees import Condition

TEXT = """
model staffing
horizon T = 200
decision order[2] in box(0, 10)
stream demand[2] in [0, 15]{law}
stream price[2] in [1, 3]{law}
minimize price @ order
subject to
    service: order >= demand {timing}
    room: sum(order) <= 19 {timing}
"""
Rounds = dict[str, np.ndarray[Any, Any]]


def rounds(seed: int, most: float) -> Rounds:
    rng = np.random.default_rng(seed)
    return {"demand": rng.uniform(0, most, (200, 2)), "price": rng.uniform(1, 3, (200, 2))}


def told(law: str, timing: str, data: Rounds) -> DataConditions:
    return DataConditions(canonical(oco.parse(TEXT.format(law=law, timing=timing))), data)


def margin(need: np.ndarray[Any, Any]) -> float:
    """Largest margin of one order: it meets every row of `need`, within the room."""
    order, s = cp.Variable(2), cp.Variable()
    constraints = [order >= 0, order <= 10, order - need.max(axis=0) >= s, 19 - cp.sum(order) >= s]
    return float(cp.Problem(cp.Maximize(s), constraints).solve(solver="CLARABEL"))


@pytest.mark.parametrize("seed", range(3))
def test_margins_are_those_of_the_data(seed: int) -> None:
    data = rounds(seed, 8.0)
    hard, soft = told("", "each round", data), told(" iid", "on average", data)
    assert hard.facts["feasible.common"].value is True and soft.facts["feasible.mean"].value is True
    s = soft.facts["slater.margin"].value
    assert s == pytest.approx(margin(data["demand"].mean(axis=0)[None]), rel=1e-6)
    assert f"s = {s:.6g}" in soft.words("slater.margin") and "200 rounds of data" in soft.words("slater.margin")


def test_what_fails_on_the_data_is_not_told() -> None:
    """Demands of 12 exceed the largest order of 10 in some rounds, and not in the mean."""
    data = rounds(0, 9.0)
    data["demand"][17] = 12.0
    assert told("", "each round", data).words("feasible.common") == ""
    assert told(" iid", "on average", data).words("feasible.mean")
    low = {"demand": np.full((200, 2), 11.0), "price": data["price"]}
    assert (
        told(" iid", "on average", low).words("feasible.mean")
        == told(" iid", "on average", low).words("slater.margin")
        == ""
    )


def test_a_plan_for_data_says_that_its_condition_holds_there() -> None:
    text = TEXT.format(law=" iid", timing="on average")
    plan = oco.compile(oco.parse(text + "using dpp\n"), data=rounds(0, 8.0))
    assert plan.guarantee is not None
    (slater,) = (c for c in plan.guarantee.conditions if c.key == "slater.margin")
    assert re.search(r"s = [0-9.]+: every inequality has", slater.measured) and slater.measured in " ".join(
        str(plan.explain()).split()
    )
    assert not any(c.measured for c in compile_plan(oco.parse(text)).guarantee.conditions)  # type: ignore[union-attr]


def test_a_condition_that_holds_on_data_ranks_between_none_and_an_open_one() -> None:
    choice = oco.compile(oco.parse(TEXT.format(law="", timing="each round"))).choice
    v = next(v for v in choice.verdicts if v.guarantee is not None and v.guarantee.conditions)
    assert v.guarantee is not None

    def with_conditions(*conditions: Condition) -> tuple[Any, ...]:
        assert v.guarantee is not None
        return rank(replace(v, guarantee=replace(v.guarantee, conditions=conditions, remarks=())))

    open_ = Condition("feasible.common", "it is so")
    measured = replace(open_, measured="it holds on 200 rounds of data")
    assert with_conditions() < with_conditions(measured) < with_conditions(measured, measured) < with_conditions(open_)


def test_verdicts_on_data_are_ordered_by_what_is_open() -> None:
    data = rounds(0, 8.0)
    choice = compile_plan(oco.parse(TEXT.format(law="", timing="on average")), seen=data).choice
    judged = [v for v in choice.verdicts if not v.algorithm.baseline]
    usable = [v.guarantee for v in judged if v.applicability is not Applicability.REFUSED]
    counts = [g.openness for g in usable if g is not None]
    assert counts == sorted(counts) and any(measured for _, measured in counts)


@pytest.mark.parametrize("algorithm", ["dpp", "mirror-descent"])
def test_the_margin_of_data_stands_in_the_bound_as_one_that_is_assumed_does(algorithm: str) -> None:
    """The number is that of the model with `assume slater.margin >= s`; without data there is none."""
    text, data = TEXT.format(law=" iid", timing="on average"), rounds(0, 8.0)
    using = f"using {algorithm}\n"
    s = told(" iid", "on average", data).margin
    assert s == pytest.approx(margin(data["demand"].mean(axis=0)[None]), rel=1e-6)

    def violation(more: str, data: Rounds | None) -> Any:
        guarantee = compile_plan(oco.parse(text + more + using), settings="optimal", seen=data).guarantee
        assert guarantee is not None and guarantee.violation_bound is not None
        return guarantee.violation_bound

    open_, measured, assumed = (
        violation("", None),
        violation("", data),
        violation(f"assume slater.margin >= {s!r}\n", data),
    )
    assert open_.number(200) is None and "margin s that the data have" in measured.note
    assert measured.number(200) == pytest.approx(assumed.number(200), rel=1e-9) and "data" not in assumed.note


def test_a_margin_that_the_data_refute_gives_no_number() -> None:
    text = TEXT.format(law=" iid", timing="on average") + "using dpp\n"
    low = {"demand": np.full((200, 2), 11.0), "price": np.ones((200, 2))}
    guarantee = compile_plan(oco.parse(text), seen=low).guarantee
    assert guarantee is not None and guarantee.violation_bound is not None
    assert told(" iid", "on average", low).margin is None and guarantee.violation_bound.number(200) is None
