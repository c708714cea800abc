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
    "taken before others are brought": """\
decision order in box(0, 50)
stream taken in [0, 50]
stream brought in [0, 50]
state stock = stock + order - taken + brought in [0, 100] start 20
minimize order + 8 * pos(taken - stock - order) + 2 * pos(stock + order - taken + brought - 100)
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
    "zones": """\
decision heat[3] in box(0, 20)
context outside in [-30, 40]
stream price in [0, 9]
param A[3, 3] = [[0.8, 0.1, 0.05], [0.1, 0.8, 0.05], [0.05, 0.05, 0.85]]
state temp[3] = A @ temp + 0.05 * outside + 0.5 * heat in [-30, 60] start 20
minimize price*sum(heat) + 1.5 * sum(pos(20 - temp))
""",
    "quota": """\
decision calls in box(0, 50)
stream price in [0, 9]
param same_day[24] = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
state used = same_day[t % 24] * used + calls in [0, 500] start 0
maximize price * calls
""",
    "wall": """\
decision heat in box(0, 20)
stream outside in [-30, 40]
stream price in [0, 9]
state room = room + 0.1 * (outside - room) + 0.2 * (wall - room) + 0.5 * heat in [-30, 60] start 20
state wall = wall + 0.06 * (room - wall) in [-30, 60] start 20
minimize price*heat + 1.5 * pos(20 - room)
""",
}
NAMES = {"river": ["lake", "pond"], "battery": ["soc"], "meter": ["soc"], "tower": ["level"], "queue": ["backlog"]}
NAMES |= {"quota": ["used"], "room": ["temp"], "staff": ["people"], "zones": ["temp"], "wall": ["room", "wall"]}


@pytest.mark.parametrize("form", FORMS)
def test_states_of_the_reference_are_stores(form: str) -> None:
    own = stores(canonical(oco.parse(HEAD + FORMS[form])).learned)
    assert [s.name for s in own] == NAMES.get(form, ["stock"])
    assert [s.pipeline is not None for s in own] == [form == "lead"] * len(own)
    assert not {"OCO615", "OCO617"} & {d.code for d in oco.check(oco.parse(HEAD + FORMS[form])).warnings}


NONE = {
    "`0.01 * stock * order` is not linear": "state stock = stock + order - 0.01 * stock * order - sales in [0, 90] start 9",
    "`maximum(order, sales)` is not linear": "state stock = stock + maximum(order, sales) - 2 * sales in [0, 90] start 9",
    "`(0.5 - t % 2) * order` has a factor of which no": "state stock = stock + (0.5 - t % 2) * order - sales in [0, 90] start 9",
    "`(sales - 9) * order` has a factor of which no": "state stock = stock + (sales - 9) * order - sales in [0, 90] start 9",
    "`free * stock` has a factor that changes": "state stock = free * stock + order - sales in [0, 90] start 9",
    "the less the next round has": "state stock = 90 - 0.5 * stock - sales + order in [0, 90] start 9",
    "no fixed price of what is missing below 5": "state stock = stock + order - sales in [5, 90] start 9",
    "`room` asks for another level": "state stock = stock + order in [0, 90] start 9",
}


@pytest.mark.parametrize("reason", NONE)
def test_states_that_are_no_stores_are_warned_of_with_the_reason(reason: str) -> None:
    head = f"{HEAD}decision order in box(0, 50)\nstream sales in [0, 50]\ncontext free in [0, 90]\n{NONE[reason]}\n"
    text = f"{head}minimize order + pos(20 - stock - order)\nsubject to\n    room: order <= free each round\n"
    if "below 5" in reason:  # a price of what is missing below 0 does not keep the end at 5
        text = text.replace("20 - stock", "sales - stock")
    if reason.startswith("`room`"):
        text = text.replace("room: order", "room: stock + order")
    (warned,) = (d for d in oco.check(oco.parse(text)).warnings if d.code == "OCO617")
    assert reason in warned.message and "as if it left nothing in `stock`" in warned.message
    assert warned.span is not None and warned.span.text == "stock"
    unread = text.replace("stock - order)", "order)").replace("room: stock + order", "room: order")
    assert "OCO617" not in {d.code for d in oco.check(oco.parse(unread)).warnings}


def test_products_of_a_level_and_a_decision_are_no_costs_of_units() -> None:
    queue = FORMS["queue"].replace("0.4 * backlog", "backlog * serve")
    assert stores(canonical(oco.parse(HEAD + FORMS["queue"])).learned)
    assert not stores(canonical(oco.parse(HEAD + queue)).learned)
