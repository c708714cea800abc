"""Rounds after the horizon: the next epochs of the doubling form, on every backend, in fleets, through states and journals."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from test_c99 import needs_compiler
from thorough import turns

import oco
from oco.backends.past_horizon import ANYTIME, ENDED

T = 6
BACKENDS = ["numpy", pytest.param("c", marks=needs_compiler)]
MODEL = """
model past
horizon T {horizon}
decision x[3] in box(0, 1)
stream c[3] in [-1, 1]
minimize c @ x + sum_squares(x)
subject to
    side: sum(x) <= 2 each round
"""
ROUNDS = 40


@cache
def plan_for(horizon: str, algorithm: str = "coldq") -> Any:
    return oco.compile(oco.parse(MODEL.format(horizon=horizon)), algorithm, settings="paper")


def data(rounds: int = ROUNDS) -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).uniform(-1, 1, (rounds, 3))


def played(learner: Any, rows: Any) -> np.ndarray[Any, Any]:
    decided = []
    for row in rows:
        decided.append(learner.decide())
        learner.observe(c=row)
    return np.array(decided)


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_epoch_is_the_run_of_a_plan_for_its_length(backend: str) -> None:
    """Rounds 1 to T are those of the plan; then 2 T rounds of a plan for 2 T from the decision reached; then 4 T."""
    rows = data()
    ours = played(plan_for(f"= {T}").learner(backend=backend), rows)
    np.testing.assert_array_equal(ours[:T], played(plan_for(f"= {T}").learner(backend=backend), rows[:T]))
    first, length, start = 0, T, None
    while first < ROUNDS:
        own = plan_for(f"= {T}").with_constants({}, length)
        learner = own.learner(backend=backend, start=start)
        stop = min(first + length, ROUNDS)
        np.testing.assert_allclose(ours[first:stop], played(learner, rows[first:stop]), rtol=0, atol=1e-9)
        learner._last = None  # what it would decide behind its horizon, with its own settings
        first, length, start = first + length, 2 * length, learner.compiled.decide(*learner._state)[0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_message_states_what_holds_afterwards(backend: str) -> None:
    plan = plan_for(f"= {T}")
    learner = plan.learner(backend=backend)
    played(learner, data(T))
    assert not learner.warnings and learner.contract.horizon == T
    learner.decide()
    (message,) = learner.warnings
    assert f"the horizon of {T} rounds is over: the method is begun anew, for {2 * T}, then {4 * T}" in message
    assert "restarted with T = 6, 12, 24, ..." in message
    assert learner.contract.horizon is None and learner.contract.guarantee[0].endswith("for every T:")


def test_the_guarantee_is_the_sum_of_the_epochs_and_holds() -> None:
    plan = plan_for(f"= {T}")
    following = plan.continued()
    alone = [plan.with_constants({}, T * 2**k).promised().guarantee for k in range(3)]
    trivial = [b.regret_bound.trivial * T * 2**k for k, b in enumerate(alone)]
    total = sum(min(b.regret(), w) for b, w in zip(alone, trivial))
    assert following.guarantee.regret(7 * T) == pytest.approx(total, rel=1e-9)
    learner, rows, lost, slopes = plan.learner(), np.sign(data(60)), 0.0, np.zeros(3)
    for n, row in enumerate(rows, 1):
        learner.decide()
        lost, slopes = lost + learner.observe(c=row).loss, slopes + row
        if n > T:
            least = np.minimum(0, np.where(-slopes > 2 * n, slopes + n, -(np.minimum(slopes, 0) ** 2) / (4 * n))).sum()
            assert lost - least <= following.guarantee.regret(n)


def test_a_method_that_needs_no_horizon_goes_on() -> None:
    """Its decisions are those of a plan for a longer horizon with the same formulas, and nothing has ended."""
    text = MODEL.split("subject to")[0]
    rows, plans = data(), [oco.compile(oco.parse(text.format(horizon=h)), "ogd", "paper") for h in ("= 6", "= 400")]
    learners = [plan.learner(backend="numpy") for plan in plans]
    np.testing.assert_array_equal(*(played(learner, rows) for learner in learners))
    assert learners[0].warnings == [f"the horizon of {T} rounds is over: {ANYTIME}"] and plans[0].continued() is None


def test_a_method_that_cannot_be_begun_anew_says_that_its_guarantee_ended() -> None:
    text = (
        MODEL.split("subject to")[0].replace("box(0, 1)", "ball(1)")
        + "subject to\n    s: c[0] * x[0] <= 1 on average\n"
    )
    plan = oco.compile(oco.parse(text.format(horizon=f"= {T}")), "meta-frank-wolfe")
    learner = plan.learner(backend="numpy")
    played(learner, data(T + 2))
    assert any(ENDED in message for message in learner.warnings)


@pytest.mark.parametrize("backend", BACKENDS)
def test_fleets_go_on_as_their_learners_do(backend: str) -> None:
    plan, size = plan_for(f"= {T}"), 5
    rows = np.random.default_rng(4).uniform(-1, 1, (30, size, 3))
    fleet, ours = plan.fleet(size, backend=backend), []
    for row in rows:
        ours.append(fleet.decide())
        fleet.observe(c=row)
    for k in range(size):
        own = played(plan.learner(backend=backend), rows[:, k])
        np.testing.assert_allclose(np.array(ours)[:, k], own, rtol=0, atol=1e-12)
    assert fleet.round == 31 and (fleet.values["T"] == 4 * T).all()


@pytest.mark.parametrize(("saved", "backend"), turns([T - 1, T, T + 1, 3 * T + 2], BACKENDS))
def test_saved_states_go_on_bit_for_bit(backend: str, saved: int) -> None:
    rows, learner = data(), plan_for(f"= {T}").learner(backend=backend)
    played(learner, rows[:saved])
    again = oco.restore(learner.state())
    np.testing.assert_array_equal(played(again, rows[saved:]), played(learner, rows[saved:]))
    assert again.state() == learner.state()


@pytest.mark.parametrize("stop", [T, T + 3])
def test_journals_go_on_after_the_horizon(stop: int, tmp_path: Any) -> None:
    plan, rows = plan_for(f"= {T}"), data(20)
    with oco.open(plan, tmp_path, snapshot_every=4) as learner:
        first = played(learner, rows[:stop])
    with oco.open(plan, tmp_path, snapshot_every=4) as learner:
        rest = played(learner, rows[stop:])
    np.testing.assert_array_equal(np.concatenate([first, rest]), played(plan.learner(), rows))


@pytest.mark.parametrize("backend", BACKENDS)
def test_runs_longer_than_the_horizon_decide_as_learners_do(backend: str) -> None:
    plan, rows = plan_for(f"= {T}"), data()
    trace = plan.run({"c": rows}, backend=backend)
    np.testing.assert_array_equal(trace.decisions, played(plan.learner(backend=backend), rows))
    assert any("begun anew" in note for note in trace.warnings)
