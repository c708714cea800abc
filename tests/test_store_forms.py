"""Forms of stores that the language's reference lists."""

from __future__ import annotations

import pytest

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.stores import stores

HEAD = "model m\nhorizon T = 100\n"
FORMS = {
    "battery": """\
decision charge in box(0, 50)
decision discharge in box(0, 50)
stream price in [0, 100]
state soc = soc + 0.95 * charge - discharge / 0.95 in [0, 400] start 20
minimize price*(charge-discharge)
""",
    "meter": """\
decision charge in box(0, 50)
decision discharge in box(0, 50)
decision buy in box(0, 300)
context load in [0, 100]
stream price in [0, 100]
state soc = soc + 0.95 * charge - discharge / 0.95 in [0, 400] start 20
minimize price*buy
subject to
    balance: buy + discharge - charge >= load  each round
""",
    "inventory": """\
decision order in box(0, 50)
stream sales in [0, 50]
state stock = stock + order - sales in [0, 500] start 20
minimize order + 8 * pos(sales - stock - order)
""",
    "stations": """\
decision order in box(-50, 50)
stream sales in [-50, 50]
state stock = stock + order - sales in [0, 100] start 20
minimize abs(order) + 8 * pos(sales - stock - order) + 2 * pos(stock + order - sales - 100)
""",
    "lead": """\
decision order in box(0, 50)
stream sales in [0, 50]
state coming = order in [0, 200] start 20
state stock = stock + coming - sales in [0, 500] start 20
minimize order + 8 * pos(sales - stock - coming)
""",
    "tower": """\
decision pump in box(0, 50)
stream draw in [0, 50]
stream price in [0, 9]
state level = level + pump - draw in [0, 500] start 20
minimize price*pump
subject to
    least: level + pump - draw >= 40  in 95% of rounds
""",
    "queue": """\
decision serve in box(0, 50)
stream arrivals in [0, 50]
stream price in [0, 9]
state backlog = backlog - serve + arrivals in [0, 900] start 20
minimize price*serve + 0.4 * backlog
""",
    "room": """\
decision heat in box(0, 20)
context outside in [-20, 40]
stream price in [0, 9]
state temp = 0.9*temp+0.1*outside+0.15*heat in [-20, 50] start 20
minimize price*heat + 1.5 * pos(20 - temp)
""",
    "staff": """\
decision hire in box(0, 30)
decision fire in box(0, 30)
stream need in [0, 400]
state people = 0.98*people+hire-fire in [0, 500] start 20
minimize people+4*hire+6*fire+5 * pos(need - people - hire + fire)
""",
    "river": """\
decision upper in box(0, 60)
decision lower in box(5, 80)
stream price in [0, 100]
stream rain in [0, 60]
state lake = lake + rain - upper in [0, 900] start 20
state pond = pond + rain + upper - lower in [0, 400] start 20
maximize price*(upper+lower) - 100*pos(upper-lake-rain) - 100*pos(lower-pond-rain-upper)
""",
}
NAMES = {"river": ["lake", "pond"], "battery": ["soc"], "meter": ["soc"], "tower": ["level"], "queue": ["backlog"]}
NAMES |= {"room": ["temp"], "staff": ["people"]}


@pytest.mark.parametrize("form", FORMS)
def test_states_of_the_reference_are_stores(form: str) -> None:
    own = stores(canonical(oco.parse(HEAD + FORMS[form])).learned)
    assert [s.name for s in own] == NAMES.get(form, ["stock"])
    assert [s.pipeline is not None for s in own] == [form == "lead"] * len(own)


def test_products_of_a_level_and_a_decision_are_no_costs_of_units() -> None:
    queue = FORMS["queue"].replace("0.4 * backlog", "backlog * serve")
    assert stores(canonical(oco.parse(HEAD + FORMS["queue"])).learned)
    assert not stores(canonical(oco.parse(HEAD + queue)).learned)
