"""Hundreds of kinds of bad call: each is an error that says what is wrong, and the state is bit for bit as before."""

from __future__ import annotations

import ctypes
import os
import random
import re
import shutil
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from survival import plan_of
from test_c99 import STRICT

import oco
from oco.backends.c99.build import compiler
from oco.backends.c99.module import emit
from oco.contract import promises
from oco.dsl.codes import CODES
from oco.dsl.diagnostics import OcoError
from oco.plan import Plan

MODEL = """\
model calls
horizon T = 1000
decision x[3] in box(-1, 1)
stream price[3] in [-1, 2]
stream need in [0, 5]
stream place in 0..2
stream table[2, 2] in [0, 1]
minimize price @ x + x[place] * need + sum(table @ x[0:2])
using ogd
"""
GOOD = {"price": [0.5, -0.5, 1.0], "need": 2.0, "place": 1, "table": [[0.0, 1.0], [0.5, 0.25]]}
BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler"))]


class Strange:
    def __array__(self, dtype=None, copy=None):
        raise TypeError("not today")


NOT_NUMBERS = [
    None,
    "cheap",
    b"1",
    1j,
    object(),
    {"a": 1},
    {1, 2},
    [None],
    ["1"],
    [1j],
    Ellipsis,
    type,
    Strange(),
    "",
    "nan",
]
NOT_NUMBERS += [
    np.datetime64("2020-01-01"),
    np.array(["a", "b", "c"]),
    np.array([None, 1, 2]),
    [[1, 2], [3]],
    lambda: 1,
    2**70,
]
NOT_NUMBERS += [
    Decimal(1),
    Fraction(1, 2),
    np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]),
    [1, [2, 3]],
    np.timedelta64(1),
]
NOT_FINITE = [np.nan, np.inf, -np.inf, np.float32("nan"), -np.nan]
SHAPES = [(0,), (1,), (2,), (3,), (4,), (1, 3), (3, 1), (2, 2), (2, 3), (3, 3), (1, 1, 1), (2, 2, 1), (0, 3)]
OUT = {
    "price": [-1.0000000001, 2.0000001, 1e9, -1e300, 1.7e308],
    "need": [-5e-324, -1, 5.000001, 6, 10**9],
    "place": [-1, 3, 2**31, 2**62, -(2**63)],
    "table": [-0.001, 1.5, 1e18],
}
SIZES = {"price": (3,), "need": (), "place": (), "table": (2, 2)}


def with_entry(name, index, value):
    """The good value with one entry exchanged."""
    made = np.array(GOOD[name], dtype=float)
    made[np.unravel_index(index, made.shape)] = value
    return made


def bad_calls():
    """(what is given, what the message must say); several hundred."""
    for name in GOOD:
        yield {n: v for n, v in GOOD.items() if n != name}, name
        for other in (name.upper(), name + " ", "_" + name, name + "_1", name[:-1]):
            yield {other if n == name else n: v for n, v in GOOD.items()}, name
        yield {**GOOD, f"{name}2": 1.0}, f"{name}2"
    yield {}, "price"
    for extra in (
        "x",
        "loss",
        "gradient",
        "constraints",
        "t",
        "T",
        "self",
        "données",
        "given",
        "__class__",
        "feedback",
    ):
        yield {**GOOD, extra: 1.0}, extra
    for name, shape in SIZES.items():
        for value in NOT_NUMBERS:
            yield {**GOOD, name: value}, name
        for wrong in SHAPES:
            if wrong != shape:
                yield {**GOOD, name: np.zeros(wrong, dtype=int)}, name
                yield {**GOOD, name: np.full(wrong, np.nan).tolist()}, name
                yield {**GOOD, name: np.full(wrong, 0.5, dtype=">f4")}, name
        count = int(np.prod(shape))
        for index in range(count):
            for value in (*NOT_FINITE, *OUT[name]):
                place = f"{name}{[int(i) for i in np.unravel_index(index, shape)]}" if shape else name
                yield {**GOOD, name: with_entry(name, index, value)}, place
        for kind in (np.float32, np.float16, np.longdouble, ">f8"):
            value = with_entry(name, 0, 0).astype(kind)
            value.flat[-1] = np.nan
            yield {**GOOD, name: value}, name
        for value in NOT_NUMBERS[:14] if shape else ():
            made = np.array(GOOD[name], dtype=object)
            made.flat[1] = value
            yield {**GOOD, name: made}, name
            yield {**GOOD, name: made.tolist()}, name
        for other in SIZES.keys() - {name}:
            yield {**GOOD, name: GOOD[name], other: np.full(SIZES[other], np.nan)}, other
            yield {**GOOD, name: np.zeros((9,)), other: np.full(SIZES[other], -99)}, name
            yield {n: v for n, v in GOOD.items() if n not in (name, other)}, name
        for value in OUT[name]:
            yield {**GOOD, name: np.full(shape, value).tolist()}, name
            yield {**GOOD, name: with_entry(name, int(np.prod(shape)) - 1, value).astype(np.longdouble)}, name
        yield {**GOOD, name: np.full(shape, 10**6)}, name
        yield {**GOOD, name: np.full(shape, 2**63, dtype=np.uint64)}, name
        yield {**GOOD, name: np.asfortranarray(np.full((*shape, 2), 9.0))[..., 0]}, name
    for value in (0.5, 1e-9, 1.9999999, np.float32(0.1), -0.5, 1e300, 2.0**63, np.nan):
        yield {**GOOD, "place": value}, f"place is {value}" if np.isfinite(value) and abs(value) < 1e9 else "place"


CALLS = list(bad_calls())


def test_there_are_five_hundred():
    assert len(CALLS) >= 500


def exact(learner):
    """Everything that it keeps, as text."""
    return repr(learner.state())


@pytest.mark.parametrize("backend", BACKENDS)
def test_bad_calls_say_what_is_wrong_and_change_nothing(backend, capfd):
    learner, plan = plan_of(MODEL).learner(backend=backend), plan_of(MODEL)
    learner.decide()
    learner.observe(**GOOD)
    before = exact(learner)
    for given, words in CALLS:
        with pytest.raises(OcoError) as caught:
            learner.observe(**given)
        assert caught.value.code in CODES and words in caught.value.message, (given, caught.value.message)
        assert exact(learner) == before, given
    learner.decide()
    learner.observe(**GOOD)
    twin = plan.learner(backend=backend)
    for _ in range(2):
        twin.decide()
        twin.observe(**GOOD)
    assert exact(learner) == exact(twin)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("backend", BACKENDS)
def test_good_calls_in_every_form_are_the_same_call(backend):
    expected = None
    forms = [
        np.array,
        list,
        tuple,
        np.asfortranarray,
        lambda v: np.array(v, dtype=">f8"),
        lambda v: np.array(v, np.float32),
    ]
    for form in forms:
        learner = plan_of(MODEL).learner(backend=backend)
        learner.decide()
        learner.observe(**{n: form(v) if n in ("price", "table") else v for n, v in GOOD.items()})
        expected = expected or exact(learner)
        assert exact(learner) == expected
    for place in (1, 1.0, True, np.int8(1), np.uint64(1), np.array(1), np.float32(1)):
        learner = plan_of(MODEL).learner(backend=backend)
        learner.decide()
        learner.observe(**{**GOOD, "place": place})
        assert exact(learner) == expected


@pytest.mark.parametrize("backend", BACKENDS)
def test_clip_and_accept_refuse_what_they_cannot_mend(backend):
    for choice in ("clip", "accept"):
        learner = plan_of(MODEL).learner(backend=backend, on_out_of_bounds=choice)
        for given, _ in CALLS:
            learner.decide()
            before = exact(learner)
            try:
                learner.observe(**given)
            except OcoError as error:
                kept = "it chooses an entry that is not there" in error.message
                assert (error.code != "OCO845" or (kept and choice == "accept")) and exact(learner) == before
            else:
                assert len(learner.warnings) == 1 and "outside the model's bounds" in learner.warnings[0]
                assert all(np.isfinite(v).all() for v in learner.values.values())
                learner = plan_of(MODEL).learner(backend=backend, on_out_of_bounds=choice)


def test_the_emitted_module_refuses_the_same_calls(tmp_path):
    plan_of(MODEL).write(tmp_path / "emitted.py", backend="numpy")
    code = f"""
import sys
sys.path[:0] = [{str(tmp_path)!r}, {os.path.dirname(__file__)!r}]
import emitted
from test_bad_calls import CALLS, GOOD
learner = emitted.Learner()
learner.decide()
learner.observe(**GOOD)
before = repr(learner.state())
for given, words in CALLS:
    try:
        learner.observe(**given)
    except emitted.StreamError as error:
        assert words in str(error), (given, str(error))
    else:
        raise AssertionError(given)
    assert repr(learner.state()) == before, given
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stdout


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_c_alone_refuses_every_entry_and_changes_nothing(tmp_path):
    """Through `NAME_observe` itself: whatever is not finite or out of bounds, at every place."""
    plan = plan_of(MODEL)
    source = emit(plan.program, plan.contract)
    (tmp_path / f"{source.name}.h").write_text(source.header)
    (tmp_path / "code.c").write_text(source.code)
    command = [*compiler(), *STRICT, "-O1", "-shared", "-fPIC", "code.c", "-o", "code.so", "-lm"]
    assert subprocess.run(command, cwd=tmp_path).returncode == 0
    library = ctypes.CDLL(str(tmp_path / "code.so"))
    observe = getattr(library, f"{source.name}_observe")
    observe.restype = ctypes.c_int64
    size = int(re.search(rf"{source.name}_state_size = (\d+)", source.header)[1])
    learner = (ctypes.c_double * (4 * size))()
    getattr(library, f"{source.name}_init")(learner, None)
    order = [f.name for f in plan.program.feedback]

    def call(values):
        args, kept = [], []
        for name in order:
            value = np.array(values[name], dtype=np.int64 if name == "place" else np.float64, order="C")
            kept.append(value)
            scalar = (ctypes.c_int64 if name == "place" else ctypes.c_double)(value.item()) if value.ndim == 0 else None
            args.append(scalar if scalar is not None else ctypes.c_void_p(value.ctypes.data))
        return observe(learner, *args)

    decisions = [np.empty(f.type.shape or 1) for f in plan.program.decision]
    pointers = [ctypes.c_void_p(d.ctypes.data) for d in decisions]
    undecided = int(re.search(r"_undecided_round = (-\d+)", source.header)[1])
    assert call(GOOD) == undecided
    getattr(library, f"{source.name}_decide")(learner, *pointers)
    assert call(GOOD) == 0 and call(GOOD) == undecided
    getattr(library, f"{source.name}_decide")(learner, *pointers)
    before, tried, offset = bytes(learner), 0, 1
    for name in order:
        for index in range(int(np.prod(SIZES[name]))):
            strange = [v for v in OUT[name] if name == "place" or np.isfinite(v)]
            for value in [*strange, *(NOT_FINITE if name != "place" else [])]:
                made = np.array(GOOD[name], dtype=np.int64 if name == "place" else np.float64)
                made[np.unravel_index(index, made.shape)] = value
                assert call(GOOD | {name: made}) == offset + index and bytes(learner) == before
                tried += 1
        offset += int(np.prod(SIZES[name]))
    assert call(GOOD) == 0 and bytes(learner) != before and tried > 60


BANDIT = MODEL.replace("using ogd", "feedback gradient\nusing ogd").replace("x[place] * need", "need * x[0]")


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_are_checked_as_streams_are(backend):
    plan = plan_of(BANDIT)
    learner = plan.learner(backend=backend)
    names = [f.name for f in plan.program.feedback]
    good = {f.name: np.zeros(f.type.shape) for f in plan.program.feedback}
    learner.decide()
    learner.observe(**good)
    before = exact(learner)
    for name in names:
        for value in (np.nan, np.inf, "x", None, np.zeros(7)):
            wrong = np.full(good[name].shape, value) if isinstance(value, float) else value
            with pytest.raises(OcoError):
                learner.observe(**good | {name: wrong})
            assert exact(learner) == before


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_fleet_refuses_the_same_calls(backend):
    """In the row of any learner: the error names it, and no learner moves."""
    fleet, rng = plan_of(MODEL).fleet(11, backend=backend), random.Random(0)
    good = {n: np.stack([np.asarray(v, dtype=np.int64 if n == "place" else float)] * 11) for n, v in GOOD.items()}
    fleet.decide()
    fleet.observe(**good)
    fleet.decide()
    before, tried = {n: v.tobytes() for n, v in fleet.values.items()}, 0
    for name, entries in OUT.items():
        for value in (*entries, *(() if name == "place" else NOT_FINITE)):
            wrong, k = good[name].copy(), rng.randrange(11)
            wrong.reshape(11, -1)[k, rng.randrange(wrong[k].size)] = value
            with pytest.raises(OcoError, match=rf"learner {k}\b.*{name}") as caught:
                fleet.observe(**good | {name: wrong})
            assert caught.value.code in CODES
            assert {n: v.tobytes() for n, v in fleet.values.items()} == before
            tried += 1
    for wrong in ({**good, "price": good["price"][:10]}, {**good, "x": 1.0}, {}, {**good, "need": "x"}):
        with pytest.raises(OcoError):
            fleet.observe(**wrong)
        assert {n: v.tobytes() for n, v in fleet.values.items()} == before
    assert tried > 25


def test_nothing_prints(tmp_path, capfd):
    """Over the whole of the interface, solvers and compilers included: not a byte on stdout or stderr."""
    (tmp_path / "m.oco").write_text(MODEL)
    model = oco.load(tmp_path / "m.oco")
    facts = oco.check(model)
    assert len(facts)
    plan: Plan = oco.compile(model)
    assert plan.explain() and plan.to_json() and promises(plan.guarantee)
    for backend in ["numpy", "c"] if shutil.which("cc") else ["numpy"]:
        plan.write(tmp_path / f"{backend}_out", backend=backend)
        learner = plan.learner(backend=backend)
        for _ in range(5):
            learner.decide()
            learner.observe(**GOOD)
        learner.save(tmp_path / "state")
        oco.restore(tmp_path / "state")
        fleet = plan.fleet(2, backend=backend)
        fleet.decide()
        data = {n: np.stack([GOOD[n]] * 20) for n in GOOD}
        trace = plan.run(data, backend=backend)
        assert trace.regret("static").shape == (20,) and trace.regret("dynamic").shape == (20,)
    with oco.open(plan, tmp_path / "journal") as learner:
        learner.decide()
        learner.observe(**GOOD)
    for wrong in ("model", MODEL.replace("minimize", "maximise"), MODEL.replace("box(-1, 1)", "box(1, -1)")):
        with pytest.raises(OcoError):
            oco.check(oco.parse(wrong))
    assert capfd.readouterr() == ("", "")
