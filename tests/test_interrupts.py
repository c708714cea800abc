"""Interruptions of a learner at every moment at which Python may hear one: it stays at a whole round, and goes on."""

from __future__ import annotations

import dis
import random
import sys
from contextlib import contextmanager
from functools import cache
from itertools import product

import numpy as np
import pytest
from survival import DRAWING, TRACKING, plan_of, seen_by
from thorough import corners

import oco
from oco.backends.c99 import fleet as native_fleet
from oco.backends.saved import read_saved
from oco.dsl.diagnostics import OcoError

CALLS = ("CALL", "CALL_FUNCTION", "CALL_FUNCTION_EX", "CALL_METHOD", "CALL_KW")


@cache
def moments(code):
    """Offsets of instructions before which signals are heard: after calls, at the start of functions, at jumps backwards."""
    found, last = set(), None
    for one in dis.get_instructions(code):
        if one.opname == "RESUME" or "JUMP_BACKWARD" in one.opname or (last is not None and last.opname in CALLS):
            found.add(one.offset)
        last = one if one.opname not in ("CACHE", "PRECALL") else last
    return frozenset(found)


@contextmanager
def interrupted(at):
    """KeyboardInterrupt at the moment of this number in code of `oco.backends`; yields a list that gets how many passed."""
    seen = [0]

    def trace(frame, event, _):
        if "backends" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in moments(frame.f_code):
            seen[0] += 1
            if seen[0] == at:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield seen
    finally:
        sys.settrace(before)


BY_TURNS = [
    (False, TRACKING, "numpy"),
    (False, DRAWING, "c"),
    (True, TRACKING, "c"),
    (True, DRAWING, "numpy"),
]


@pytest.mark.parametrize(
    ("journal", "text", "backend"), corners(product((False, True), (TRACKING, DRAWING), ("numpy", "c")), BY_TURNS)
)
def test_an_interrupted_round_is_taken_whole_or_not_at_all(backend, text, journal, tmp_path):
    plan = plan_of(text)
    never = plan.learner(backend=backend, seed=3)
    learner = oco.open(plan, tmp_path, backend=backend, seed=3) if journal else plan.learner(backend=backend, seed=3)
    heard, at, rng = 0, 1, random.Random(f"{backend} {journal}")
    while True:
        now, given = never.round, seen_by(plan, never)
        assert learner.round == now
        before = learner.state()
        try:
            with interrupted(at) as seen:
                learner.decide()
                learner.observe(round=now, **given)
            done = True
        except KeyboardInterrupt:
            heard, done = heard + 1, False
        never.decide()
        never.observe(**given)
        assert learner.round in (now, now + 1)
        if learner.round == now:
            assert learner.state()["values"] == before["values"]
            learner.decide()
            learner.observe(round=now, **given)
        assert learner.state() == never.state()
        if done:
            assert seen[0] < at
            break
        at += rng.randrange(1, 5)
    assert heard > 5
    if journal:
        learner.close()
        with oco.open(plan, tmp_path, backend=backend) as again:
            assert again.state() == never.state()


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("text", [TRACKING, DRAWING], ids=["tracking", "drawing"])
def test_an_interrupted_fleet_stays_at_a_whole_round(backend, text, monkeypatch):
    """All learners in one round, whose random numbers are those of fleets that nobody interrupts."""
    monkeypatch.setattr(native_fleet, "LEAST_WORK", 1)
    plan, rng = plan_of(text), random.Random(backend)
    fleet, never = (plan.fleet(11, backend=backend, workers=2) for _ in range(2))
    heard, at, done = 0, 1, False
    while not done:
        now = never.round
        given = {f.name: np.full((11, *f.type.shape), 0.5 / now) for f in plan.program.feedback}
        try:
            with interrupted(at) as seen:
                decided = fleet.decide()
                fleet.observe(**given)
            done = seen[0] < at
            assert np.array_equal(decided, never.decide())
        except KeyboardInterrupt:
            heard += 1
        assert fleet.round in (now, now + 1)
        if fleet.round == now:
            assert same(fleet, never)
            fleet.decide()
            fleet.observe(**given)
        never.decide()
        never.observe(**given)
        assert same(fleet, never)
        at += rng.randrange(1, 9 + at // 4)
    assert heard > 5


def same(a, b):
    kept = b.values
    return all(np.array_equal(value, kept[name]) for name, value in a.values.items())


def test_an_interrupted_save_leaves_the_old_file_or_the_new_one(tmp_path):
    plan, path = plan_of(TRACKING), tmp_path / "state"
    learner, at, heard, rng = plan.learner(backend="numpy"), 1, 0, random.Random(0)
    while True:
        learner.save(path)
        old = path.read_bytes()
        learner.decide()
        learner.observe(**seen_by(plan, learner))
        try:
            with interrupted(at) as seen:
                learner.save(path)
            done = seen[0] < at
        except KeyboardInterrupt:
            heard, done = heard + 1, False
        saved = read_saved(path)
        assert path.read_bytes() == old or saved == learner.state()  # `read_saved` takes no file that is torn
        if done:
            break
        at += rng.randrange(1, 5)
    assert oco.restore(path).state() == learner.state()
    assert heard > 10
    assert len(list(tmp_path.iterdir())) <= 2, "at most the one file that was open when the first interruption came"


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_names_that_no_file_has_are_errors(name):
    learner = plan_of(TRACKING).learner()
    for call, code in ((learner.save, "OCO903"), (oco.restore, "OCO850")):
        with pytest.raises(OcoError) as caught:
            call(name)
        assert caught.value.code == code
