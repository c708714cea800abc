"""Models with names for entries in C: rounds by name and by place never leave it, with the numbers and errors of Python's way."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from test_c99 import needs_compiler

import oco
from oco.backends.c99.build import stepper
from oco.backends.learner import Learner
from oco.backends.named import NamedArray
from oco.plan import Plan

pytestmark = [needs_compiler, pytest.mark.skipif(stepper() is None, reason="no headers of Python")]

MODEL = """
model named
horizon T = 100
index zone = [NYC, WEST, "MHK VL"]
index hour = [early, late]
decision x[zone] in box(0, 1)
decision y in box(0, 1)
stream price[zone, hour] in [-1, 1]
stream load[2, zone] in 0..9
stream wind[zone] in [0, 1]
minimize sum(x * sum(price, axis = 1)) + y + sum(load @ x) - wind @ x
"""
ZONES = ("NYC", "WEST", "MHK VL")


@pytest.fixture(scope="module")
def plan() -> Plan:
    return oco.compile(oco.parse(MODEL), algorithm="ogd", settings="paper")


@pytest.fixture(scope="module")
def one_decision() -> Plan:
    return oco.compile(oco.parse(MODEL.replace("+ y ", "").replace("decision y in box(0, 1)\n", "")), algorithm="ogd")


def rows(count: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    return [
        {"price": rng.uniform(-1, 1, (3, 2)), "load": rng.integers(0, 10, (2, 3)), "wind": rng.uniform(0, 1, 3)}
        for _ in range(count)
    ]


def by_name(row: dict[str, Any], order: tuple[str, ...]) -> dict[str, Any]:
    """The same round as dicts of names in another order, where the axes have names."""
    place = ZONES.index
    price = {z: dict(zip(("late", "early"), row["price"][place(z)][::-1].tolist())) for z in order}
    return row | {"price": price, "wind": {z: row["wind"][place(z)] for z in order}}


def in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("feedback", "decisions"):
        monkeypatch.setattr(Learner, name, lambda *given: pytest.fail("it went through Python"))


def test_rounds_by_name_and_by_place_stay_in_c(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    given, theirs, expected = rows(12), plan.learner(backend="numpy"), []
    for row in given:
        expected.append((theirs.decide(), theirs.observe(**row).loss))
    ours = plan.learner(backend="c")
    in_c(monkeypatch)
    forms = [dict, lambda row: by_name(row, ZONES), lambda row: by_name(row, ZONES[::-1])]
    forms.append(lambda row: row | {"price": {z: tuple(row["price"][k]) for k, z in enumerate(ZONES)}})
    for t, (decided, loss) in enumerate(expected):
        found = ours.decide()
        assert isinstance(found["x"], NamedArray) and type(found["y"]) is type(decided["y"])
        assert found["x"]["MHK VL"] == found["x"][2] and found["x"].axes == decided["x"].axes
        np.testing.assert_allclose(found["x"].array, decided["x"].array, rtol=1e-13, atol=1e-15)
        assert ours.observe(**forms[t % len(forms)](given[t])).loss == pytest.approx(loss, rel=1e-13)


def test_an_only_decision_has_names(one_decision: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    first = one_decision.learner(backend="numpy").decide()
    learner = one_decision.learner(backend="c")
    in_c(monkeypatch)
    found = learner.decide()
    assert type(found) is NamedArray and found["WEST"] == found[1] == first["WEST"]
    found[:] = 0.0  # a caller's own: what is decided stays
    assert learner.decide()["WEST"] == first["WEST"]
    assert type(found + 1) is type(found[:2]) is np.ndarray and copy.copy(found.array).shape == (3,)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"wind": {"NYC": 0.5, "WEST": 0.5}}, "OCO861"),
        ({"wind": {"NYC": 0.5, "WEST": 0.5, "EAST": 0.5}}, "OCO861"),
        ({"wind": {"NYC": 0.5, "WEST": 0.5, "MHK VL": 2.0}}, "OCO845"),
        ({"wind": {"NYC": 0.5, "WEST": 0.5, "MHK VL": "a"}}, "OCO841"),
        ({"wind": {0: 0.5, 1: 0.5, 2: 0.5}}, "OCO861"),
        ({"price": [{"early": 0.5, "late": 0.5}] * 3}, "OCO841"),
        ({"price": {z: [0.5, 0.5, 0.5] for z in ZONES}}, "OCO842"),
        ({"load": {z: [1, 2] for z in ZONES}}, "OCO861"),
        ({"load": [dict.fromkeys(ZONES, 1)] * 2}, "OCO841"),
    ],
)
def test_wrong_rounds_get_the_errors_of_numpy(plan: Plan, wrong: dict[str, Any], code: str) -> None:
    messages = []
    for backend in ("numpy", "c"):
        learner = plan.learner(backend=backend)
        before = learner.decide()
        with pytest.raises(oco.OcoError, match=code) as caught:
            learner.observe(**rows(1)[0] | wrong)
        messages.append(str(caught.value))
        np.testing.assert_array_equal(learner.decide()["x"], before["x"])
    assert messages[0] == messages[1]
