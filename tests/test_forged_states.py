"""States that somebody made up: `oco.restore` answers with an OcoError or a learner that works, whatever stands where."""

from __future__ import annotations

import copy
import random
from collections import Counter
from pathlib import Path

import pytest
from test_states import places
from thorough import thorough

import oco
from oco.dsl.diagnostics import OcoError
from oco.plan import Plan

SMALL = """model small
horizon T = 100
decision x[2] in box(0, 1)
stream s[2] in [0, 1]
minimize s @ x
using ogd with eta = 0.5 / sqrt(t)
"""
KINDS = [
    *(None, True, False, 0, -1, 7, 2.5, -0.0, 1e308, float("nan"), float("inf"), 2**63, 10**400),
    *("", "x", "0x1p9999", "nan", "1/0", "\0", "\ud800", "t**t**t", "T", "optimal", "tuned", "1_0", b"bytes"),
    *([], [1], ["a", "b"], [[[]]], (), {}, {"a": 1}, {1: 2}, {"eta": None}, {"eta": []}, {"eta": "1/0"}),
    *({"eta": "T**T**T"}, {"eta": "0x1p9999"}, {"zz": "1"}, {"eta": "\0"}, {"eta": "sqrt(-t)"}, object()),
]
"""Values of every kind that JSON and Python have, and texts that are almost settings."""


def changed(value, way, new):
    """The JSON values with another at one place."""
    if not way:
        return new
    value = copy.copy(value)
    value[way[0]] = changed(value[way[0]], way[1:], new)
    return value


@pytest.fixture(scope="module")
def good():
    learner = oco.compile(oco.parse(SMALL)).learner()
    learner.decide()
    learner.observe(s=[0.5, 1.0])
    return learner.state()


def outcome(state) -> str:
    """The code of the error, or `whole`: then the learner plays on."""
    try:
        learner = oco.restore(state, "numpy")
        learner.decide()
        learner.observe(s=[0.5, 1.0])
    except OcoError as error:
        assert error.code != "OCO999", error
        return error.code
    return "whole"


def test_every_part_of_a_recipe_may_be_of_any_kind(good):
    """Also those that a recipe leaves out where they have their usual value."""
    good = {**good, "recipe": {**good["recipe"], "effort": 1.0, "season": 1, "certify": ""}}
    seen = Counter()
    for way in places(good["recipe"], ("recipe",)):
        for new in KINDS:
            seen[outcome(changed(good, way, new))] += 1
        parent = good
        for key in way[:-1]:
            parent = parent[key]
        less = {k: v for k, v in parent.items() if k != way[-1]}
        seen[outcome(changed(good, way[:-1], less))] += 1
    assert seen["OCO850"] > 200 and len(seen) > 5, seen


@pytest.mark.parametrize("kinds", [2, thorough(6)])
def test_every_part_of_a_state_may_be_of_any_kind(good, kinds):
    rng, seen = random.Random(0), Counter()
    everywhere = [way for way in places(good) if way and way[0] != "recipe"]
    for way in everywhere:
        for new in rng.sample(KINDS, kinds):
            seen[outcome(changed(good, way, new))] += 1
    assert seen["OCO850"] > 10 * kinds, seen


@pytest.mark.parametrize("source", [None, 3, 2.5, b"state", [], object(), "", "\0", "nowhere", "/", Path("nowhere")])
def test_what_is_no_state_is_an_error(source):
    with pytest.raises(OcoError) as caught:
        oco.restore(source)
    assert caught.value.code in ("OCO526", "OCO850")


@pytest.mark.parametrize("recipe", [None, 3, "x", [], {"model": SMALL}])
def test_a_trace_with_such_a_recipe_is_not_run_again(recipe):
    with pytest.raises(OcoError) as caught:
        Plan.from_recipe(recipe)
    assert caught.value.code == "OCO850"
