"""Learners in C: the same as in NumPy round by round and in one call; wrong data, horizons, saving."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driving import example
from survival import DRAWING
from test_c99 import has_compiler, queue
from test_learner import program as small_program
from thorough import thorough

import oco
from oco.backends.c99 import fleet as native_fleet
from oco.backends.c99.build import stepper
from oco.backends.c99.learner import NativeLearner
from oco.backends.contract import Contract, Range
from oco.backends.learner import Learner
from oco.backends.play import can_play, play
from oco.backends.registry import backend, make_fleet, make_learner, restored
from oco.backends.saved import read_saved
from oco.compiler.domains import domain
from oco.dsl.diagnostics import OcoError

pytestmark = pytest.mark.skipif(not has_compiler(), reason="no C compiler")
T = 40


def contract(**changes):
    given = {
        "text": "model queue",
        "algorithm": "queue",
        "horizon": T,
        "start": {"x": np.full(3, 0.25)},
        "domains": {"x": domain("box", (3,), 0.0, 1.0)},
        "ranges": {"price": Range(0.0, np.array([3.0, 3.0, 4.0])), "jobs": Range(0.0, 5.0)},
    }
    return Contract(**(given | changes))


def learner(name="c", **options):
    made = backend(name).compile(queue(), contract())
    return make_learner(made, contract(), **options)


def rounds(count, seed=0):
    rng = np.random.default_rng(seed)
    return {"price": rng.uniform(0, 3, (count, 3)), "jobs": rng.uniform(0, 2, count)}


def rows(data):
    return [{n: a[k] for n, a in data.items()} for k in range(len(data["jobs"]))]


def same(a, b, tolerance=1e-12):
    return all(np.allclose(a[n], b[n], rtol=tolerance, atol=tolerance) for n in a)


def test_the_quick_way_is_taken():
    assert stepper() is None or "Stepper" in repr(learner().observe)


def test_rounds_agree_with_numpy():
    ours, theirs = learner("c"), learner("numpy")
    assert isinstance(ours, NativeLearner) and type(theirs) is Learner
    for row in rows(rounds(60)):
        assert ours.round == theirs.round and np.allclose(ours.decide(), theirs.decide(), rtol=1e-12)
        a, b = ours.observe(**row), theirs.observe(**row)
        assert a.round == b.round and np.isclose(a.loss, b.loss, rtol=1e-12)
        assert (
            np.allclose(a.constraints, b.constraints)
            and np.allclose(a.violation, b.violation)
            and a.equalities.shape == (0,)
        )
        assert same(ours.values, theirs.values) and np.allclose(ours.value("Q"), theirs.value("Q"))
    assert ours.warnings == theirs.warnings and len(ours.warnings) == 1


def test_any_form_of_plain_data_gives_the_same():
    price, jobs = np.array([1.0, 2.0, 0.5]), 2.0
    forms = [
        {"price": price, "jobs": jobs},
        {"jobs": jobs, "price": price},
        {"price": [1, 2, 0.5], "jobs": 2},
        {"price": price, "jobs": 2},
        {"price": price.astype(np.float32), "jobs": np.float64(2)},
        {"price": np.array([1.0, 9.0, 2.0, 9.0, 0.5])[::2], "jobs": np.array(2.0)},
        {"price": price.astype(">f8"), "jobs": np.int32(2)},
        {"pri" + "ce": price, "jobs": jobs},
    ]
    states = []
    for form in forms:
        a = learner()
        a.decide()
        a.observe(**form)
        states.append({n: v.tobytes() for n, v in a.values.items()})
    assert all(s == states[0] for s in states)


BAD = [
    ("OCO840", {"price": [1, 2, 3]}),
    ("OCO840", {"price": [1, 2, 3], "jobs": 1, "more": 1}),
    ("OCO840", {"price": [1, 2, 3], "job": 1}),
    ("OCO841", {"price": "cheap", "jobs": 1}),
    ("OCO842", {"price": np.ones(2), "jobs": 1.0}),
    ("OCO842", {"price": np.ones(3), "jobs": np.ones(1)}),
    ("OCO843", {"price": np.array([1.0, np.nan, 1.0]), "jobs": 1.0}),
    ("OCO843", {"price": np.ones(3), "jobs": float("inf")}),
    ("OCO845", {"price": np.array([1.0, 3.1, 1.0]), "jobs": 1.0}),
    ("OCO845", {"price": np.ones(3), "jobs": -1e-9}),
    ("OCO841", {"price": np.ones(3), "jobs": 10**30}),
]


@pytest.mark.parametrize("code, given", BAD, ids=str)
def test_wrong_data_is_an_error_and_changes_nothing(code, given):
    a = learner()
    a.decide()
    a.observe(price=np.ones(3), jobs=1.0)
    before = {n: v.tobytes() for n, v in a.values.items()}
    with pytest.raises(OcoError) as caught:
        a.observe(**given)
    assert caught.value.code == code and {n: v.tobytes() for n, v in a.values.items()} == before
    a.decide()
    a.observe(price=np.ones(3), jobs=1.0)
    assert a.round == 3


def test_decisions_and_data_are_copies():
    a, b = learner(), learner()
    price = np.array([1.0, 2.0, 0.5])
    a.decide()[:] = 9.0
    worth = a.observe(price=price, jobs=1.0)
    first = worth.loss
    price[:] = 7.0
    b.decide()
    assert worth.loss == first == b.observe(price=[1.0, 2.0, 0.5], jobs=1.0).loss and same(a.values, b.values, 0)


def test_clipping_goes_the_slow_way():
    ours, theirs = learner("c", on_out_of_bounds="clip"), learner("numpy", on_out_of_bounds="clip")
    for a in (ours, theirs):
        a.decide()
        a.observe(price=np.array([1.0, 9.0, 1.0]), jobs=1.0)
    assert same(ours.values, theirs.values) and ours.warnings == theirs.warnings and len(ours.warnings) == 1


def test_playing_is_observing():
    data = rounds(1000)
    one, many, slow = learner(), learner(), learner("numpy")
    assert can_play(many) and not can_play(slow)
    decisions, losses = [], []
    for row in rows(data):
        decisions.append(one.decide())
        losses.append(one.observe(**row).loss)
    parts = list(play(many, lambda a, b: {n: v[a:b] for n, v in data.items()}, 1000, ["Q"]))
    assert np.array_equal(np.concatenate([p.decisions["x"] for p in parts]), decisions)
    assert np.array_equal(np.concatenate([p.loss for p in parts]), losses)
    assert np.concatenate([p.after["Q"] for p in parts])[-1] == many.value("Q") == one.value("Q")
    assert [p.first for p in parts] == list(np.cumsum([1, *(p.rounds for p in parts)])[:-1])
    # Blocks are looked at after a run as a whole (`oco.run`), single rounds on the way.
    assert {*many.warnings} <= {*one.warnings} and same(many.values, one.values, 0)


@pytest.mark.parametrize("place", [0, 1, 255, 256, 299])
def test_a_wrong_round_stops_the_play_at_a_whole_round(place):
    data = rounds(300)
    data["jobs"][place] = 7.0
    a, b = learner(), learner()
    with pytest.raises(OcoError, match="jobs is 7"):
        for _ in play(a, lambda i, j: {n: v[i:j] for n, v in data.items()}, 300):
            pass
    assert a.round == place + 1
    for row in rows(data)[:place]:
        b.decide()
        b.observe(**row)
    assert same(a.values, b.values, 0)
    clipped = learner(on_out_of_bounds="clip")
    assert sum(p.rounds for p in play(clipped, lambda i, j: {n: v[i:j] for n, v in data.items()}, 300)) == 300


def test_saving_and_restoring_changes_no_bit(tmp_path):
    data = rows(rounds(60))
    whole, part = learner(), learner()
    for row in data:
        whole.decide()
        whole.observe(**row)
    for row in data[:30]:
        part.decide()
        part.observe(**row)
    part.save(tmp_path / "state")
    again = restored(read_saved(tmp_path / "state"), part.compiled, part.contract)
    assert isinstance(again, NativeLearner) and again.round == 31
    for row in data[30:]:
        again.decide()
        again.observe(**row)
    assert same(again.values, whole.values, 0) and again.warnings == whole.warnings


def test_whole_numbers_and_places():
    ranges = {"price": Range(-1.0, 3.0), "jobs": Range(0.0), "place": Range(0, 1)}
    given = contract(start={"x": np.array([0.5, 0.25])}, domains={}, ranges=ranges)
    ours, theirs = (make_learner(backend(n).compile(small_program(), given), given) for n in ("c", "numpy"))
    for k in range(20):
        for a in (ours, theirs):
            a.decide()
            a.observe(price=np.array([0.1 * k - 0.5, 1.0]), jobs=1.0, place=k % 2)
    assert same(ours.values, theirs.values)
    for wrong, code in ((2, "OCO845"), (0.5, "OCO844"), (2**70, "OCO841")):
        with pytest.raises(OcoError) as caught:
            ours.observe(price=np.zeros(2), jobs=1.0, place=wrong)
        assert caught.value.code in (code, "OCO845")


@pytest.mark.parametrize(
    "name", ["tracking", "online_qp", *map(thorough, ("portfolio", "datacenter", "job_scheduling"))]
)
def test_examples_run_alike(name):
    plan = example(name)
    rng = np.random.default_rng(0)
    data = {s.name: rng.uniform(s.lower, s.upper, (60, *s.shape)) for s in plan.canonical.streams}
    ours, theirs = plan.run(data, backend="c"), plan.run(data, backend="numpy")
    scale = max(float(np.abs(theirs.decisions).max()), 1e-300)
    assert np.allclose(ours.decisions, theirs.decisions, rtol=1e-9, atol=1e-9 * scale)
    assert np.allclose(ours.loss, theirs.loss, rtol=1e-9) and np.allclose(
        ours.duals, theirs.duals, rtol=1e-9, atol=1e-9
    )
    assert np.allclose(ours.constraints, theirs.constraints, rtol=1e-9, atol=1e-9)


def fleet(name, size, **options):
    return make_fleet(backend(name).compile(queue(), contract()), contract(), size, **options)


@pytest.mark.parametrize("workers", [1, 3])
def test_fleets_are_learners_of_their_own(workers, monkeypatch):
    monkeypatch.setattr(native_fleet, "LEAST_WORK", 1)
    size, count = 7, 20
    rng = np.random.default_rng(0)
    start = rng.uniform(0, 1, (size, 3))
    price, jobs = rng.uniform(0, 3, (count, size, 3)), rng.uniform(0, 2, (count, size))
    ours, theirs = fleet("c", size, start=start, workers=workers), fleet("numpy", size, start=start)
    alone = [learner(start=s) for s in start]
    for k in range(count):
        decided = ours.decide()
        assert decided.shape == (size, 3) and np.allclose(decided, theirs.decide(), rtol=1e-12)
        assert np.array_equal(decided, [a.decide() for a in alone])
        a, b = ours.observe(price=price[k], jobs=jobs[k]), theirs.observe(price=price[k], jobs=jobs[k])
        single = [one.observe(price=price[k, i], jobs=jobs[k, i]) for i, one in enumerate(alone)]
        assert a.round == b.round == k + 1 and np.array_equal(a.loss, [s.loss for s in single])
        assert (
            np.allclose(a.loss, b.loss)
            and np.allclose(a.constraints, b.constraints)
            and np.allclose(a.violation, b.violation)
        )
        assert a.equalities.shape == (size, 0)
    assert same(ours.values, theirs.values) and np.array_equal(ours.values["Q"], [one.values["Q"] for one in alone])


@pytest.mark.parametrize("name", ["c", "numpy"])
def test_wrong_data_of_one_learner_changes_none(name):
    a = fleet(name, 4)
    a.decide()
    a.observe(price=np.ones((4, 3)), jobs=np.ones(4))
    a.decide()
    before = {n: v.tobytes() for n, v in a.values.items()}
    wrong = np.ones((4, 3))
    wrong[2, 1] = 99.0
    for code, given in [
        ("OCO845", {"price": wrong, "jobs": np.ones(4)}),
        ("OCO843", {"price": np.ones((4, 3)), "jobs": np.array([1, 1, np.nan, 1])}),
        ("OCO842", {"price": np.ones((3, 3)), "jobs": np.ones(4)}),
        ("OCO840", {"price": np.ones((4, 3))}),
    ]:
        with pytest.raises(OcoError) as caught:
            a.observe(**given)
        assert caught.value.code == code and {n: v.tobytes() for n, v in a.values.items()} == before
    with pytest.raises(OcoError, match="learner 2: price\\[1\\] is 99"):
        a.observe(price=wrong, jobs=np.ones(4))
    for size, options in ((0, {}), (3, {"start": np.ones((2, 3))}), (3, {"seeds": [1]})):
        with pytest.raises(OcoError) as caught:
            fleet(name, size, **options)
        assert caught.value.code == "OCO852"


def test_a_decision_is_computed_once_a_round_where_each_call_goes_through_python(monkeypatch):
    """Of an algorithm that draws: `decide` and the worth of the round take the same, and the next round and another state another."""
    plan = oco.compile(oco.parse(DRAWING), algorithm="bfw-tvc")
    learner, native = plan.learner(backend="c", seed=3, timeout=1.0), plan.compiled("c").native
    calls, decide_at = [], native.decide_at
    monkeypatch.setattr(native, "decide_at", lambda *given: calls.append(1) or decide_at(*given))
    reference, kept = plan.learner(backend="numpy", seed=3), list[Any]()
    for t in range(1, 6):
        np.testing.assert_allclose(learner.decide(), reference.decide(), rtol=1e-12, atol=1e-15)
        for a in (learner, reference):
            a.decide()
            a.observe(loss=0.1 * t, constraints=np.array([0.2]))
        kept.append((learner.state(), learner.decide()))
        assert len(calls) == t + 1
    for state, decision in kept:
        np.testing.assert_array_equal(oco.restore(state, backend="c").decide(), decision)


def test_setting_a_state_leaves_the_room_to_work_alone():
    """A struct has room for large intermediate values behind the state; it is no part of what a round copies."""
    text = "model large\nhorizon T = 10\ndecision x[40, 50] in nuclear_ball(1)\nstream c[40, 50] in [-1, 1]\nminimize sum(c * x)\n"
    learner = oco.compile(oco.parse(text), algorithm="ogd").learner(backend="c")
    words = learner.compiled.native.state_words
    assert words < len(learner._memory)
    learner._memory[words:] = 7.0
    learner._state = tuple(v + 1 for v in learner._state)
    assert (learner._memory[words:] == 7.0).all() and learner.round == 2 and learner.decide()[0, 0] == 1.0
