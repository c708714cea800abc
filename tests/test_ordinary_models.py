"""Promises on models that people write: open means, assumptions, vacuous bounds, ways out without circles, and sizes."""

from __future__ import annotations

import re
from time import process_time

import pytest

import oco
from oco.compiler.prover.types import Status
from oco.compiler.selection.plan import compile_plan, explain_choice
from oco.dsl.diagnostics import OcoError
from oco.dsl.model import Model

STOCK = """
model stock
horizon T = 400
decision order[2] in box(0, 10)
stream demand[2] {demand}
minimize sum(order)
subject to
    service: order >= demand {timing}
{rest}
"""
BLIND = "model blind\nhorizon T = 500\ndecision x[3] in box(-1, 1)\nstream c[3] in [-1, 1]\nminimize c @ x\nfeedback bandit\n"
SPARE = """
model spare
horizon T = 500
decision x[3] in box(0, 1)
stream c[3] in [-1, 1]{law}
minimize c @ x
subject to
    cap: 100 * sum(x) + 50 * c[0] <= 550 {timing}
{rest}
"""
KEYS = ("feasible.common", "feasible.each_round", "feasible.mean", "slater.point", "multipliers.bounded")


def stock(demand: str = "in [0, 15]", timing: str = "each round", rest: str = "") -> Model:
    return oco.parse(STOCK.format(demand=demand, timing=timing, rest=rest))


@pytest.mark.parametrize("demand", ["in [0, 15] iid", "in [0, 9] iid", "in [0, 1000] iid"])
def test_draws_without_a_mean_leave_it_open_and_never_refute(demand: str) -> None:
    """Only where every value of the streams can be served is the mean proved; else it is unknown."""
    fact = oco.check(stock(demand, "on average"))["feasible.mean"]
    assert (fact.status is Status.PROVED) == (demand == "in [0, 9] iid")
    assert fact.status is not Status.REFUTED and compile_plan(stock(demand, "on average")).guarantee


@pytest.mark.parametrize("key", [*KEYS, "loss.convex"])
def test_facts_without_a_bound_are_assumed_in_the_text_and_in_the_builder(key: str) -> None:
    text = stock(rest=f"assume {key}")
    m = oco.Model("stock", horizon=400)
    order = m.decision("order", 2, domain=oco.box(0, 10))
    demand = m.stream("demand", 2, bounds=(0, 15))
    m.minimize(oco.sum(order))
    m.subject_to(order >= demand, name="service", each_round=True)
    m.assume(key)
    for model in (text, m.build()):
        fact = oco.check(model)[key]
        assert fact.value is True and fact.status in (Status.DECLARED, Status.PROVED)
    assert f"assume {key}" in m.to_oco() and oco.parse(m.to_oco()).assumptions[0].key == key


def test_an_unknown_margin_is_a_symbol_of_the_guarantee() -> None:
    plan = oco.compile(stock("in [0, 15] iid", "on average"), "dpp", "paper")
    assert plan.guarantee is not None and any("a margin s > 0" in p for p in plan.guarantee.provisos)


@pytest.mark.parametrize("T", [10, 10**6])
def test_soft_violation_is_measured_by_the_largest_value_of_the_constraint(T: int) -> None:
    """Values in [-150, 1]: a round can add 1 and no more; a bound above T is vacuous and called so."""
    head = f"model m\nhorizon T = {T}\ndecision x in box(0, 1)\nstream c in [0, 1] iid\nminimize -c * x\n"
    choice = explain_choice(oco.parse(f"{head}subject to\n    k: 151 * c * x - 150 <= 0 on average\n"))
    soft = [b for v in choice.verdicts if v.guarantee for b in v.guarantee.bounds if b.measure == "soft violation"]
    assert soft and all(b.worst == pytest.approx(1) for b in soft)
    for b in soft:
        number = b.number(T)
        assert number is None or b.vacuous(T) == (number >= T * b.worst)
    assert any(b.vacuous(T) for b in soft) or T > 10


def test_bandit_feedback_leads_to_no_circle() -> None:
    """Each algorithm that cannot run names a line; with it the model compiles, or is refused for another reason."""
    assert oco.compile(oco.parse(BLIND), settings="paper").algorithm == "bgd"
    for name in ("ogd", "ofw"):
        with pytest.raises(OcoError) as caught:
            oco.compile(oco.parse(f"{BLIND}using {name}\n"), settings="paper")
        line = re.search(r"`(feedback \w+)`", caught.value.hint)
        assert caught.value.code == "OCO705" and line is not None
        text = BLIND.replace("feedback bandit", line[1])
        assert oco.compile(oco.parse(f"{text}using {name}\n"), settings="paper").algorithm == name


@pytest.mark.parametrize("timing", ["each round", "on average"])
@pytest.mark.parametrize("law", ["", " iid"])
def test_rows_with_much_to_spare_are_not_told_to_be_loosened(timing: str, law: str) -> None:
    """At the centre 350 are to spare, in every round; no verdict asks for looser constraints."""
    for rest in ("", "feedback gradient", "feedback bandit", "measure dynamic regret"):
        choice = explain_choice(oco.parse(SPARE.format(timing=timing, law=law, rest=rest)))
        assert choice.winner is not None and choice.situation.number("slater.margin") == pytest.approx(500)
        assert not [v.name for v in choice.verdicts if "loosen" in v.fix or "assume slater" in v.fix]


def loop(n: int) -> Model:
    """Constraints by name, as a loop in the builder makes them."""
    m = oco.Model("loop", horizon=1000)
    x = m.decision("x", n, domain=oco.box(0, 1))
    c = m.stream("c", n, bounds=(0, 1))
    m.minimize(c @ x)
    for i in range(n):
        m.subject_to(c[i] - x[i] <= 0.5, name=f"row{i}", each_round=True)
    return m.build()


def rows(n: int) -> Model:
    head = f"model rows\nhorizon T = 1000\ndecision x[{n}] in box(0, 1)\nstream c[{n}] in [0, 1]\nminimize c @ x\n"
    return oco.parse(f"{head}subject to\n    row: c - x <= 0.5 each round\n")


@pytest.mark.parametrize("model", [loop(300), rows(5000)], ids=["300 by name", "5000 rows"])
def test_families_of_rows_are_ordinary(model: Model) -> None:
    """Checked within 2 s of the processor, with the margin that the corner of ones has."""
    began = process_time()
    assert oco.check(model)["slater.margin"].value == pytest.approx(0.5)
    assert process_time() - began < 2


def test_a_family_of_rows_gets_a_plan() -> None:
    began = process_time()
    assert compile_plan(rows(5000)).guarantee is not None
    assert process_time() - began < 10
