"""Conditions of guarantees: hypotheses about the sequence of rounds never stop a compile."""

from __future__ import annotations

import pytest
from test_choice import capped, explained

from oco.compiler.selection.explain import explain_text
from oco.compiler.selection.plan import compile_plan
from oco.compiler.selection.verdicts import Applicability
from oco.dsl.diagnostics import OcoError
from oco.dsl.load import parse

SERVICE = """
model inventory
horizon T = 400
decision order[2] in box(0, 10)
stream demand[2] {demand}
minimize sum(order)
subject to
    service: order >= demand {timing}
{rest}
"""


def service(demand: str = "in [0, 15]", timing: str = "each round", rest: str = "") -> str:
    return SERVICE.format(demand=demand, timing=timing, rest=rest)


def conditions(text: str) -> list[str]:
    guarantee = compile_plan(parse(text)).guarantee
    assert guarantee is not None
    return [c.key for c in guarantee.conditions]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (service(), ["feasible.common"]),
        (service("in [0, 9]"), []),
        (service(rest="measure dynamic regret"), ["feasible.each_round"]),
        (service("iid in [0, 15]", "on average"), ["feasible.mean"]),
        (service("~ uniform(0, 15)", "on average"), []),
    ],
    ids=("demand beyond capacity", "demand within capacity", "dynamic", "draws of unknown mean", "stated mean"),
)
def test_hypotheses_about_the_sequence_are_conditions_of_the_guarantee(text: str, expected: list[str]) -> None:
    assert conditions(text) == expected


def test_conditions_are_sentences_with_the_names_of_the_constraints() -> None:
    plan = compile_plan(parse(service()))
    assert plan.guarantee is not None
    (sentence,) = plan.guarantee.provisos
    assert sentence == "the guarantee is for sequences for which one decision satisfies `service` in every round"
    assert sentence in " ".join(explain_text(plan.choice).split())


def test_a_theorem_without_conditions_ranks_first() -> None:
    """Demand within capacity leaves no condition: every theorem that has none stands before those that have one."""
    choice = explained(service("~ uniform(0, 15)", "on average"))
    usable = [v for v in choice.verdicts if v.applicability is not Applicability.REFUSED and v.guarantee is not None]
    counts = [len(v.guarantee.conditions) for v in usable if v.guarantee is not None]
    assert 0 in counts and max(counts) > 0 and counts[0] == 0


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("feasible.common", service(rest="assume feasible.common")),
        ("feasible.each_round", service(rest="measure dynamic regret\nassume feasible.each_round")),
        ("feasible.mean", service("iid in [0, 15]", "on average", "assume feasible.mean")),
    ],
)
def test_what_is_assumed_is_no_condition(key: str, text: str) -> None:
    assert key not in conditions(text)
    assert key in conditions(text.replace(f"assume {key}", ""))


def test_what_no_value_of_the_streams_allows_is_refused() -> None:
    with pytest.raises(OcoError) as caught:
        compile_plan(parse(service("in [12, 15]")))
    assert caught.value.code == "OCO708" and "service[0] cannot hold" in caught.value.message


def test_a_model_that_nothing_satisfies_says_which_constraint_and_by_how_much() -> None:
    with pytest.raises(OcoError) as caught:
        compile_plan(parse(capped("on average").replace("<= 0.5", "<= -0.5")))
    assert "cap cannot hold in the mean" in caught.value.message
    assert "relax cap by" in caught.value.diagnostics[0].hint
