"""States: what a round leaves to the next, in known constraints and in the loss, in both backends and in all that is kept."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from thorough import turns

import oco
from oco.compiler.problem.canonical import canonical
from oco.dsl.diagnostics import OcoError
from oco.evaluation.report.states import cut_states

T = 120
BATTERY = """\
model battery

horizon T = 120

decision charge in box(-50, 50)

stream price in [0, 100]
state stored = 0.98 * stored + charge in [0, 400] start 200

minimize price * charge + 0.01 * charge ** 2
"""
SHOP = """\
model shop

horizon T = 120

index good = [bread, milk]

decision order[good] in box(0, 30)

stream sales[good] in [0, 20]
stream price[good] in [1, 5]
context room in [40, 100]
state stock[good] = stock + order - sales in [0, 60] start [20, 10]

minimize price @ order + 0.1 * sum(stock + order) + 8 * sum(pos(sales - stock - order))

subject to
    shelf: sum(stock + order) <= room  each round
"""
BACKENDS = ("numpy", "c")


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text))


def data_of(text: str, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    if text is BATTERY:
        return {"price": np.clip(50 + 40 * np.sin(np.arange(T) / 4) + rng.normal(0, 3, T), 0, 100)}
    sizes = {"sales": rng.uniform(0, 20, (T, 2)), "price": rng.uniform(1, 5, (T, 2))}
    return {**sizes, "room": rng.uniform(50, 100, T)}


def test_text_and_builder_say_the_same() -> None:
    models = [oco.parse(text) for text in (BATTERY, SHOP)]
    assert [m.to_oco() for m in models] == [BATTERY, SHOP]
    m = oco.Model("battery", horizon=120)
    charge, price = m.decision("charge", domain=oco.box(-50, 50)), m.stream("price", bounds=(0, 100))
    m.state("stored", following=lambda s: 0.98 * s + charge, bounds=(0, 400), start=200)
    m.minimize(price * charge + 0.01 * charge**2)
    assert m.build() == models[0]
    assert r"\mathrm{stored}_{t+1} = 0.98\, \mathrm{stored}_{t} + \mathrm{charge}" in models[0]._repr_latex_()
    assert "<b>state</b>" in models[1]._repr_html_()
    bound = oco.parse(BATTERY.replace("start 200", "start first").replace("decision", "param first\n\ndecision"))
    assert oco.compile(bound, params={"first": 150}).learner().value("kept_stored") == 150


def test_what_follows_a_state_may_be_an_expression_without_it() -> None:
    m = oco.Model("orders", horizon=10)
    order = m.decision("order", domain=oco.box(0, 5))
    coming = m.state("coming", following=order, bounds=(0, 5), start=1)
    m.state("stock", following=lambda s: 0.5 * s + coming, bounds=(0, 10), start=0)
    m.minimize(order)
    assert (
        "state coming = order in [0, 5] start 1\nstate stock = 0.5 * stock + coming in [0, 10] start 0\n" in m.to_oco()
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("start 200", "start 500", "outside its range"),
        ("start 200", "start [1, 2]", "shape"),
        ("0.98 * stored + charge", "0.98 * stored + [1, 2] * charge", "shape"),
        ("charge ** 2\n", "charge ** 2\n\nfeedback gradient\n", "constraints known before the decision keep"),
        (
            "charge in [0, 400] start 200",
            "charge - price in [0, 400] start 200\nfeedback bandit",
            "needs the streams of the round",
        ),
    ],
)
def test_states_that_cannot_be(old: str, new: str, words: str) -> None:
    with pytest.raises(OcoError) as caught:
        canonical(oco.parse(BATTERY.replace(old, new)))
    assert caught.value.code == "OCO529" and words in caught.value.message


def test_abbreviations_may_be_of_states_that_stand_below() -> None:
    """And the states may be made of them; of themselves none may be."""
    text = """\
model m
horizon T = 9
decision x in box(0, 5)
stream sales in [0, 5]
{above}state stock = {left} - sales in [0, 50] start 4
{below}minimize x + 3 * pos(sales - left) + 0.1 * twice
"""
    lines = "let left = stock + x\nlet twice = 2 * left\n"
    above = text.format(above=lines, below="", left="left")
    below = text.format(above="", below=lines, left="stock + x")
    assert oco.parse(above).to_oco() == oco.parse(below).to_oco()
    with pytest.raises(oco.OcoError, match="OCO206"):
        oco.parse(above.replace("let left = stock", "let left = left + stock"))


def test_an_end_of_a_range_that_nothing_reaches_is_no_constraint_that_never_binds() -> None:
    spent = BATTERY.replace("0.98 * stored + charge", "stored - (50 + charge) / 100").replace("0, 400", "0, 200")
    assert "OCO604" not in [d.code for d in oco.compile(oco.parse(spent)).warnings]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_range_is_kept_where_what_follows_is_known(backend: str) -> None:
    trace = plan_of(f"{BATTERY}\nusing ogd\n").run(data_of(BATTERY, 1), backend=backend)
    stored, charge = trace.data.array("stored"), trace.decisions
    np.testing.assert_allclose(stored[1:], 0.98 * stored[:-1] + charge[:-1], atol=1e-7)
    assert stored[0] == 200 and stored.min() >= 0 and stored.max() <= 400
    assert trace.labels == ("stored.least", "stored.most") and trace.constraints.max() <= 1e-7
    assert (
        np.ptp(stored) > 100 and np.count_nonzero(np.abs(trace.constraints).min(axis=1) < 1e-6) > 3
    )  # the range binds


@pytest.mark.parametrize("backend", BACKENDS)
def test_streams_may_take_away_and_the_value_stays_within_the_range(backend: str) -> None:
    data = data_of(SHOP, 2)
    trace = plan_of(SHOP).run(data, backend=backend)
    stock, order = trace.data.array("stock"), trace.decisions
    np.testing.assert_array_equal(stock[0], [20, 10])
    np.testing.assert_allclose(stock[1:], np.clip(stock[:-1] + order[:-1] - data["sales"][:-1], 0, 60), atol=1e-9)
    assert ((stock + order).sum(axis=1) - data["room"]).max() <= 1e-7
    lost = np.maximum(data["sales"] - stock - order, 0).sum(axis=1)
    loss = (data["price"] * order).sum(axis=1) + 0.1 * (stock + order).sum(axis=1) + 8 * lost
    np.testing.assert_allclose(trace.loss, loss, rtol=1e-9)


@pytest.mark.parametrize("text", [BATTERY, SHOP], ids=["battery", "shop"])
def test_c_decides_as_numpy_does_and_the_guarantee_says_what_it_leaves_out(text: str) -> None:
    plan, data = plan_of(f"{text}\nusing ogd\n" if text is BATTERY else text), data_of(text, 3)
    traces = [plan.run(data, backend=b) for b in BACKENDS]
    np.testing.assert_allclose(traces[0].decisions, traces[1].decisions, atol=1e-9)
    assert "later rounds in" in "\n".join(plan.contract.guarantee)
    guaranteed = float(traces[0].promise.curves["regret"][-1])
    assert traces[0].regret("static")[-1] <= guaranteed
    # the comparator obeys the known constraints of each round, with the states that came
    fixed, data = traces[0].comparator("static"), traces[0].data
    x = next(iter(fixed.decision.values()))
    if text is BATTERY:
        after = 0.98 * data.array("stored") + x
        assert after.min() >= -1e-6 and after.max() <= 400 + 1e-6
    else:
        assert ((data.array("stock") + x).sum(axis=1) - data.array("room")).max() <= 1e-6


@pytest.mark.parametrize("backend", BACKENDS)
def test_journals_and_saved_states_carry_it(backend: str, tmp_path: Path) -> None:
    plan, data = plan_of(SHOP), data_of(SHOP, 4)
    one, journaled = plan.learner(backend=backend), oco.open(plan, tmp_path, backend=backend)
    for t in range(12):
        context, rest = {"room": data["room"][t]}, {n: data[n][t] for n in ("sales", "price")}
        np.testing.assert_array_equal(one.decide(**context), journaled.decide(**context))
        one.observe(**rest)
        journaled.observe(**rest)
        if t == 6:
            journaled.close()
            journaled = oco.open(plan, tmp_path, backend=backend)
            one = oco.restore(one.state())
    np.testing.assert_array_equal(one.value("kept_stock"), journaled.value("kept_stock"))


@pytest.mark.parametrize(("text", "backend"), turns([BATTERY, SHOP], BACKENDS))
def test_iterators_are_played_as_arrays_are(text: str, backend: str) -> None:
    plan, data, rounds = plan_of(text), data_of(text, 5), 40
    trace = plan.run({n: v[:rounds] for n, v in data.items()}, backend=backend)
    fed = plan.run(({n: v[t] for n, v in data.items()} for t in range(rounds)), backend=backend)
    np.testing.assert_array_equal(fed.decisions, trace.decisions)
    np.testing.assert_array_equal(fed.loss, trace.loss)
    for name in (s.name for s in plan.canonical.carried):
        np.testing.assert_array_equal(fed.data.array(name), trace.data.array(name))


def test_traces_files_iterators_fleets_and_modules_carry_it(tmp_path: Path) -> None:
    plan, data = plan_of(SHOP), data_of(SHOP, 5)
    trace = plan.run(data)
    assert np.array_equal(plan.replay(trace).decisions, trace.decisions)
    trace.save(tmp_path / "shop.nc")
    again = oco.load_trace(tmp_path / "shop.nc")
    assert again.regret("static")[-1] == pytest.approx(trace.regret("static")[-1])
    assert trace.to_dataset()["decision.order"].dims == ("kept", "good")
    fed = plan.run({n: v[t] for n, v in data.items()} for t in range(T))
    assert np.array_equal(fed.decisions, trace.decisions)
    assert np.array_equal(fed.data.array("stock"), trace.data.array("stock"))
    (path,) = [p for p in plan.write(tmp_path / "shop.py") if p.suffix == ".py"]
    spec = importlib.util.spec_from_file_location("shop", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    emitted, fleet = module.Learner(), plan.fleet(2)
    for t in range(10):
        x = trace.decisions[t]
        np.testing.assert_array_equal(emitted.decide(room=data["room"][t]), x)
        np.testing.assert_allclose(fleet.decide(room=np.full(2, data["room"][t])), [x, x], atol=1e-9)
        rest = {n: data[n][t] for n in ("sales", "price")}
        emitted.observe(**rest)
        fleet.observe(**{n: np.stack([v, v]) for n, v in rest.items()})


TOWER = """\
model tower
horizon T = 40
decision pump in box(0, 60)
stream draw in [0, 55]
state level = level + pump - draw in [40, 400] start 100
minimize pump
"""


def test_state_that_nothing_judges_is_warned_of() -> None:
    warned = [d for d in oco.check(oco.parse(TOWER)).warnings if d.code == "OCO603"]
    assert ["level" in d.message for d in warned] == [True]
    assert "`level_kept: level + pump - draw >= 40 each round`" in (warned[0].hint or "")
    kept = "minimize pump\nsubject to\n    kept: level + pump - draw >= 40 each round"
    for line in ("minimize pump + pos(40 - level - pump + draw)", kept):
        assert not oco.check(oco.parse(TOWER.replace("minimize pump", line))).warnings
    assert not oco.check(oco.parse(BATTERY)).warnings


def test_rounds_in_which_a_range_cuts_are_counted() -> None:
    draw = np.full(40, 20.0)
    trace = oco.compile(oco.parse(TOWER), "ogd", "paper", backend="numpy").run({"draw": draw})
    level, empty = 100.0, 0
    for pump, drawn in zip(trace.decisions[:-1], draw):
        level = min(max(level + pump - drawn, 40.0), 400.0)
        empty += level == 40.0
    assert 0 < empty < 39 and cut_states(trace) == [f"level: at the least of its range, 40, after {empty} of 40 rounds"]
    assert cut_states(plan_of(BATTERY).run(data_of(BATTERY, 0))) == []


def test_state_that_decisions_reach_late_is_warned_of() -> None:
    late = "state coming = pump in [0, 60] start 0\nstate level = level + coming - draw in [40, 400] start 100"
    text = TOWER.replace("state level = level + pump - draw in [40, 400] start 100", late)
    warned = oco.check(oco.parse(text.replace("minimize pump", "minimize pump - level"))).warnings
    assert [d.code for d in warned] == ["OCO615"] and "`level` through `coming`" in warned[0].message
