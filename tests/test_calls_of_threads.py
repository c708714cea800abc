"""Learners, modules and fleets that several threads call at once."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import threading
from functools import partial

import numpy as np
import pytest
from survival import plan_of
from test_bad_calls import BACKENDS, GOOD, MODEL, exact

from oco.dsl.diagnostics import OcoError


def together(work, threads=6):
    """Run it in several threads at once, which take turns as often as Python lets them."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        running = [threading.Thread(target=work) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_get_an_error_rather_than_a_wrong_state(backend):
    """However the threads fall, the state is that of as many rounds as were answered, one after another."""
    plan = plan_of(MODEL)
    learner, answered, errors = plan.learner(backend=backend), [], []
    mixed = [GOOD, GOOD | {"price": [0.5, -0.5, 1]}]  # the second goes through Python in both backends

    def work():
        rng = random.Random(threading.get_ident())
        for _ in range(150):
            try:
                learner.decide()
                answered.append(learner.observe(**mixed[rng.randrange(2)]).round)
            except OcoError as error:
                errors.append(error.code)

    together(work)
    assert set(errors) <= {"OCO853", "OCO863"} and sorted(answered) == list(range(1, learner.round))
    twin = plan.learner(backend=backend)
    for _ in answered:
        twin.decide()
        twin.observe(**GOOD)
    learner.decide(), twin.decide()
    assert exact(twin) == exact(learner)


def test_threads_share_an_emitted_learner_in_turns(tmp_path):
    plan_of(MODEL).write(tmp_path / "emitted_for_threads.py", backend="numpy")
    spec = importlib.util.spec_from_file_location("emitted_for_threads", tmp_path / "emitted_for_threads.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    learner, twin, answered, errors = module.Learner(), module.Learner(), [], []

    def work():
        for _ in range(100):
            try:
                learner.decide()
                answered.append(learner.observe(**GOOD).round)
            except RuntimeError as error:
                errors.append(str(error))

    together(work)
    words = "another thread is using this learner", "is observed before it was decided"
    assert all(any(w in said for w in words) for said in errors)
    assert sorted(answered) == list(range(1, learner.round))
    for _ in answered:
        twin.decide()
        twin.observe(**GOOD)
    learner.decide(), twin.decide()
    assert twin.state() == learner.state()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_look_at_a_round_that_was_taken_waits_for_its_turn(backend):
    """The round counts, so that an error would hide its answer from the caller."""
    learner, looked = plan_of(MODEL).learner(backend=backend), []
    decided = (np.asarray(learner.decide()),)
    feedback = learner.observe(**GOOD)
    values = tuple(np.asarray(GOOD[f.name]) for f in learner.compiled.program.feedback)

    def look():
        learner.watch_round(feedback, decided, values)
        looked.append(feedback.round)

    with learner._owned():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join(0.05)
        assert thread.is_alive() and not looked
    thread.join()
    assert looked == [1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_share_a_fleet_in_turns(backend):
    """As with a learner: rounds that were answered are those that the fleet played."""
    plan, size = plan_of(MODEL), 200 if backend == "c" else 5
    fleet, answered, errors = plan.fleet(size, backend=backend), [], []
    data = {n: np.stack([np.asarray(v)] * size) for n, v in GOOD.items()}

    def work():
        for _ in range(60):
            try:
                fleet.decide()
                answered.append(fleet.observe(**data).round)
            except OcoError as error:
                errors.append(error.code)

    together(work)
    assert set(errors) <= {"OCO853", "OCO863"} and sorted(answered) == list(range(1, fleet.round))
    twin = plan.fleet(size, backend=backend)
    for _ in answered:
        twin.decide()
        twin.observe(**data)
    assert all(np.array_equal(v, twin.values[n]) for n, v in fleet.values.items())


def test_a_second_thread_is_told(monkeypatch):
    learner, began, leave, said = plan_of(MODEL).learner(backend="numpy"), threading.Event(), threading.Event(), []
    update = learner.compiled.update

    def slow(*args):
        began.set()
        assert leave.wait(10)
        return update(*args)

    learner.decide()
    object.__setattr__(learner.compiled, "update", slow)
    thread = threading.Thread(target=lambda: learner.observe(**GOOD))
    thread.start()
    assert began.wait(10)
    for call in (
        learner.decide,
        learner.state,
        lambda: learner.observe(**GOOD),
        lambda: learner.values,
        lambda: learner.save("x"),
    ):
        with pytest.raises(OcoError) as caught:
            call()
        said.append(caught.value.code)
    leave.set()
    thread.join()
    object.__setattr__(learner.compiled, "update", update)
    assert said == ["OCO853"] * 5 and learner.round == 2 and learner.decide() is not None
    assert not os.path.exists("x")


@pytest.mark.parametrize("backend", BACKENDS)
def test_calls_take_turns_where_they_may_wait(backend):
    """With a timeout no call of many threads is refused, and every round that was answered is played once."""
    plan = plan_of(MODEL)
    learner, answered, both = plan.learner(backend=backend, timeout=30), [], threading.Lock()
    mixed = [GOOD, GOOD | {"price": [0.5, -0.5, 1]}]

    def work():
        rng = random.Random(threading.get_ident())
        for _ in range(60):
            with both:
                learner.decide()
                answered.append(learner.observe(**mixed[rng.randrange(2)]).round)
            learner.decide()

    together(work)
    assert sorted(answered) == list(range(1, 361)) and learner.round == 361


@pytest.mark.parametrize(
    "made", [lambda p, t: p.learner(backend="numpy", timeout=t), lambda p, t: p.fleet(2, backend="numpy", timeout=t)]
)
def test_a_call_waits_as_long_as_it_may(made):
    for timeout, error in ((0.0, "in round 1"), (0.05, "was not done after 0.05 s"), (None, "")):
        shared, began, leave = made(plan_of(MODEL), timeout), threading.Event(), threading.Event()

        def hold(shared=shared, began=began, leave=leave):
            with shared._owned():
                began.set()
                assert leave.wait(10)

        thread = threading.Thread(target=hold)
        thread.start()
        assert began.wait(10)
        if timeout is None:
            threading.Timer(0.05, leave.set).start()
            assert shared.decide() is not None
        else:
            with pytest.raises(OcoError, match="another thread is using this") as caught:
                shared.decide()
            assert (
                caught.value.code == "OCO853" and error in caught.value.message and "timeout = 5" in caught.value.hint
            )
        leave.set()
        thread.join()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["learner", "fleet"])
@pytest.mark.parametrize("timeout", [0, 5])
def test_a_round_is_decided_before_it_is_observed(backend, kind, timeout):
    plan = plan_of(MODEL)
    made = plan.learner if kind == "learner" else partial(plan.fleet, 2)
    shared = made(backend=backend, timeout=timeout)
    data = GOOD if kind == "learner" else {n: np.stack([np.asarray(v)] * 2) for n, v in GOOD.items()}
    for _ in range(2):
        with pytest.raises(OcoError, match=f"round {shared.round} is observed before it was decided") as caught:
            shared.observe(**data)
        assert caught.value.code == "OCO863"
        np.testing.assert_equal(shared.decide(), shared.decide())
        shared.observe(**data)


@pytest.mark.parametrize("timeout", [-1, float("nan"), "long", 1e300])
def test_timeouts_are_seconds(timeout):
    with pytest.raises(OcoError) as caught:
        plan_of(MODEL).learner(backend="numpy", timeout=timeout)
    assert caught.value.code == "OCO526"


# Output.
