"""The learner: what it takes, what it refuses, and how it goes on after a restart."""

from __future__ import annotations

import json
import random
import re

import numpy as np
import pytest
from ir_programs import FLOAT

from oco.backends.contract import Contract, Range
from oco.backends.learner import Learner
from oco.backends.python.backend import NumpyBackend
from oco.backends.registry import backend
from oco.backends.saved import read_saved
from oco.compiler.domains import domain
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.program import DType, Field, Type
from oco.compiler.ir.trace import Tracer
from oco.dsl.codes import CODES
from oco.dsl.diagnostics import OcoError

VECTOR, NUMBER, WHOLE = Type(FLOAT, (2,)), Type(FLOAT), Type(DType.INT)
T = 50


def program(draws=()):
    """x <- min(max(x - price / t + noise, 0), 1), with Q counting jobs - x_place."""
    t = Tracer("small")

    def update(state, seen, drawn):
        noise = drawn["noise"] if draws else 0.0
        x = t.minimum(t.maximum(state["x"] - seen["price"] / state["round"] + noise, 0.0), 1.0)
        return {"x": x, "Q": state["Q"] + seen["jobs"] - state["x"][seen["place"]]}

    return trace_program(
        t,
        decision=[Field("x", VECTOR)],
        feedback=[Field("price", VECTOR), Field("jobs", NUMBER), Field("place", WHOLE)],
        draws=draws,
        init=lambda start: {"x": start["x"], "Q": 0.0},
        decide=lambda state, drawn: {"x": state["x"]},
        update=update,
        measure=lambda now, x, seen: (
            t.sum(seen["price"] * x["x"]) * t.to_float(now),
            t.reshape(seen["jobs"] - t.sum(x["x"]), (1,)),
            t.reshape(x["x"][0] - x["x"][1], (1,)),
        ),
        labels=["service"],
    )


def contract(**changes):
    given = {
        "text": "model small",
        "algorithm": "walk",
        "horizon": T,
        "start": {"x": np.array([0.5, 0.25])},
        "domains": {"x": domain("box", (2,), 0.0, 1.0)},
        "ranges": {"price": Range(np.array([-1.0, -2.0]), 3.0), "jobs": Range(0.0), "place": Range(0, 1)},
        "recipe": {"model": "model small"},
    }
    return Contract(**(given | changes))


def learner(**options):
    return Learner(NumpyBackend().compile(program()), contract(), **options)


def data(count, seed=0):
    rng = np.random.default_rng(seed)
    return [
        {"price": rng.uniform(-1, 3, 2), "jobs": rng.uniform(0, 2), "place": int(rng.integers(0, 2))}
        for _ in range(count)
    ]


GOOD = {"price": [1.0, 2.0], "jobs": 1.5, "place": 1}


def bits(a):
    return {name: value.tobytes() for name, value in a.values.items()}


def test_rounds_follow_the_rule():
    a = learner()
    x, queue = np.array([0.5, 0.25]), 0.0
    for k, d in enumerate(data(20), start=1):
        assert a.round == k and np.array_equal(a.decide(), x) and np.array_equal(a.decide(), x)
        feedback = a.observe(**d)
        assert feedback.round == k
        assert np.isclose(feedback.loss, k * float(d["price"] @ x), rtol=1e-15)
        assert np.allclose(feedback.constraints, d["jobs"] - x.sum()) and np.allclose(feedback.equalities, x[0] - x[1])
        assert np.allclose(feedback.violation, [max(d["jobs"] - x.sum(), 0), abs(x[0] - x[1])])
        queue = queue + d["jobs"] - x[d["place"]]
        x = np.minimum(np.maximum(x - d["price"] / k, 0), 1)
    assert float(a.values["Q"]) == queue == float(a.value("Q"))


def test_nobody_else_can_change_what_it_holds():
    a, b = learner(), learner()
    price = np.array([1.0, 2.0])
    a.decide()[:] = 7.0
    a.values["x"][:] = 7.0
    feedback = a.observe(price=price, jobs=1.0, place=0)
    price[:] = 9.0
    b.decide()
    assert feedback.loss == b.observe(price=[1.0, 2.0], jobs=1.0, place=0).loss
    assert bits(a) == bits(b)


BAD = {
    "OCO840": [{"price": [1, 2], "jobs": 1}, {**GOOD, "cost": 1}, {"price": [1, 2], "jobs": 1, "palce": 0}, {}],
    "OCO841": [{**GOOD, "price": "cheap"}, {**GOOD, "price": None}, {**GOOD, "jobs": 1j}, {**GOOD, "price": {"z": 1}}],
    "OCO842": [
        {**GOOD, "price": [1.0]},
        {**GOOD, "price": 1.0},
        {**GOOD, "jobs": [1.0]},
        {**GOOD, "price": [[1.0, 2.0]]},
    ],
    "OCO843": [{**GOOD, "jobs": np.nan}, {**GOOD, "jobs": np.inf}, {**GOOD, "price": [0.0, -np.inf]}],
    "OCO844": [{**GOOD, "place": 0.5}, {**GOOD, "place": np.nan}],
    "OCO845": [
        {**GOOD, "price": [1.0, 3.0000000001]},
        {**GOOD, "jobs": -1e-300},
        {**GOOD, "place": 2},
        {**GOOD, "place": -1},
    ],
}


@pytest.mark.parametrize("code, given", [(c, g) for c, gs in BAD.items() for g in gs], ids=str)
def test_wrong_data_is_named_and_changes_nothing(code, given):
    a = learner()
    a.decide()
    a.observe(**GOOD)
    before, random_state = bits(a), a.state()["random"]
    with pytest.raises(OcoError) as caught:
        a.observe(**given)
    assert caught.value.code == code and code in CODES
    assert "Traceback" not in str(caught.value) and "oco." not in caught.value.message
    assert bits(a) == before and a.state()["random"] == random_state and a.warnings == []
    a.decide()
    a.observe(**GOOD)


def test_messages_name_the_stream_the_entry_and_the_rule():
    a = learner()
    for given, words in [
        ({**GOOD, "price": [1.0, -5.0]}, "price[1] is -5.0, outside the model's bounds [-2, 3]"),
        ({**GOOD, "price": [np.nan, 1.0]}, "price[0] is nan, which is not a finite number"),
        ({**GOOD, "jobs": [1.0, 2.0]}, "jobs has the shape (2,), not ()"),
        ({"price": [1.0, 2.0], "place": 0}, "nothing is given for jobs"),
    ]:
        with pytest.raises(OcoError, match=re.escape(words)):
            a.observe(**given)


def test_data_out_of_bounds_can_be_clipped_or_accepted():
    clipped, exact = learner(on_out_of_bounds="clip"), learner()
    clipped.decide()
    clipped.observe(price=[9.0, -7.0], jobs=1.0, place=0)
    exact.decide()
    exact.observe(price=[3.0, -2.0], jobs=1.0, place=0)
    assert bits(clipped) == bits(exact)
    assert len(clipped.warnings) == 1 and "price[0] is 9.0" in clipped.warnings[0]
    free, wide = learner(on_out_of_bounds="accept"), Learner(NumpyBackend().compile(program()), contract(ranges={}))
    free.decide()
    free.observe(price=[9.0, -7.0], jobs=1.0, place=0)
    wide.decide()
    wide.observe(price=[9.0, -7.0], jobs=1.0, place=0)
    assert bits(free) == bits(wide) and len(free.warnings) == 1
    for a in (clipped, free):
        with pytest.raises(OcoError, match="finite"):
            a.observe(price=[9.0, np.inf], jobs=1.0, place=0)
    with pytest.raises(OcoError) as caught:
        learner(on_out_of_bounds="ignore")
    assert caught.value.code == "OCO848"


def test_it_warns_once_after_its_horizon_and_goes_on():
    a = learner()
    for d in data(T):
        a.decide()
        a.observe(**d)
    assert a.warnings == [] and a.round == T + 1
    for d in data(5, seed=1):
        a.decide()
        a.observe(**d)
    assert a.round == T + 6 and len(a.warnings) == 1 and str(T) in a.warnings[0]


@pytest.mark.parametrize("start", [[0.5], [[0.5, 0.5]], [np.nan, 0.0], [0.5, 1.5], {"y": [0.0, 0.0]}])
def test_starts_that_do_not_fit(start):
    with pytest.raises(OcoError) as caught:
        learner(start=start)
    assert caught.value.code == "OCO846"


@pytest.mark.parametrize("start", [[0.0, 1.0], {"x": [0.0, 1.0]}])
def test_starts(start):
    assert np.array_equal(learner(start=start).decide(), [0.0, 1.0])


def test_feedback_is_taken_once():
    a = learner()
    feedback = a.feedback(GOOD)
    a.update(feedback)
    before = bits(a)
    with pytest.raises(OcoError) as caught:
        a.update(feedback)
    assert caught.value.code == "OCO847" and bits(a) == before


def drawing(**options):
    noise = [Field("noise", VECTOR)]
    return Learner(NumpyBackend().compile(program(noise)), contract(distributions={"noise": "normal"}), **options)


def run(a, rounds):
    for d in rounds:
        a.decide()
        a.observe(**d)
    return bits(a)


def test_draws_come_from_the_seed_or_from_arrays():
    rounds = data(10)
    assert run(drawing(seed=1), rounds) == run(drawing(seed=1), rounds) != run(drawing(seed=2), rounds)
    rng = np.random.default_rng(1)
    noise = np.array([rng.normal(size=2) for _ in range(10)])
    assert run(drawing(draws={"noise": noise}), rounds) == run(drawing(seed=1), rounds)
    lost = np.where(np.arange(10)[:, None] < 3, noise, np.nan)
    for wrong in (noise[:3], lost):
        short = drawing(draws={"noise": wrong})
        run(short, rounds[:3])
        before = bits(short)
        with pytest.raises(OcoError) as caught:
            short.observe(**rounds[3])
        assert caught.value.code == "OCO849" and bits(short) == before


@pytest.mark.parametrize("make", [learner, drawing])
def test_saving_and_restoring_changes_no_bit(tmp_path, make):
    rounds, path = data(60), tmp_path / "state"
    whole, part = make(), make()
    expected = run(whole, rounds)
    run(part, rounds[:20])
    part.save(path)
    restored = Learner.from_state(read_saved(path), part.compiled, part.contract)
    assert restored.round == 21 and bits(restored) == bits(part)
    assert run(restored, rounds[20:]) == expected and restored.warnings == whole.warnings
    assert read_saved(path)["recipe"] == {"model": "model small"}
    assert [p.name for p in tmp_path.iterdir()] == ["state"]


def test_a_saved_state_is_json_after_its_first_line(tmp_path):
    a = learner()
    a.save(tmp_path / "state")
    head, body = (tmp_path / "state").read_bytes().split(b"\n", 1)
    assert head.startswith(b"oco-state 1 ") and json.loads(body)["model"] == "small"


def test_damaged_states_never_give_a_learner(tmp_path):
    path, rng = tmp_path / "state", random.Random(0)
    a = learner()
    a.decide()
    a.observe(**GOOD)
    a.save(path)
    whole = path.read_bytes()
    for _ in range(500):
        damaged = bytearray(whole)
        kind = rng.randrange(4)
        place = rng.randrange(len(damaged))
        if kind == 0:
            damaged[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del damaged[place:]
        elif kind == 2:
            damaged.insert(place, rng.randrange(256))
        else:
            del damaged[place]
        if bytes(damaged) == whole:
            continue
        path.write_bytes(damaged)
        with pytest.raises(OcoError) as caught:
            read_saved(path)
        assert caught.value.code == "OCO850"
    with pytest.raises(OcoError):
        read_saved(tmp_path / "nothing")


def test_a_state_of_another_program_is_refused(tmp_path):
    learner().save(tmp_path / "state")
    other = drawing()
    with pytest.raises(OcoError) as caught:
        Learner.from_state(read_saved(tmp_path / "state"), other.compiled, other.contract)
    assert caught.value.code == "OCO851"


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "state"
    a = learner()
    a.save(path)
    before = path.read_bytes()
    a.decide()
    a.observe(**GOOD)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OcoError, match="no space left on device"):
        a.save(path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["state"]


def two_decisions():
    t = Tracer("pair")
    fields = [Field("loss", NUMBER), Field("gradient_x", VECTOR), Field("gradient_y", NUMBER)]
    return trace_program(
        t,
        decision=[Field("x", VECTOR), Field("y", NUMBER)],
        feedback=fields,
        init=lambda start: {"x": start["x"], "y": start["y"]},
        decide=lambda state, drawn: {"x": state["x"], "y": state["y"]},
        update=lambda state, seen, drawn: {"x": state["x"] - seen["gradient_x"], "y": state["y"] - seen["gradient_y"]},
    )


def test_gradients_of_several_decisions_come_in_dicts():
    start = {"x": np.zeros(2), "y": np.array(0.0)}
    a = Learner(NumpyBackend().compile(two_decisions()), contract(start=start, ranges={}, domains={}))
    assert set(a.decide()) == {"x", "y"}
    feedback = a.observe(loss=2.0, gradient={"x": [1.0, 2.0], "y": 3.0})
    assert feedback.loss == 2.0 and np.array_equal(a.decide()["x"], [-1.0, -2.0]) and float(a.decide()["y"]) == -3.0
    a.observe(loss=2.0, gradient_x=[1.0, 2.0], gradient_y=3.0)
    assert float(a.decide()["y"]) == -6.0
    with pytest.raises(OcoError) as caught:
        a.observe(loss=2.0, gradient={"x": [1.0, 2.0]})
    assert caught.value.code == "OCO840"


def test_a_backend_that_is_not_there():
    with pytest.raises(OcoError) as caught:
        backend("fortran")
    assert caught.value.code == "OCO732" and caught.value.hint


def test_the_default_backend_is_there():
    assert backend(None).name == backend("numpy").name == "numpy"
