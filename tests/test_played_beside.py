"""Runs whose comparators, rules and certificate are worked out while the rounds are played in another thread."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_c99 import has_compiler
from thorough import thorough

import oco
from oco.cli import main
from oco.dsl import spill
from oco.dsl.diagnostics import OcoError, fail
from oco.evaluation import run as runs
from oco.evaluation.baselines.held import held_lines
from oco.evaluation.comparators import ComparatorBudget
from oco.evaluation.comparators.base import unsolved
from oco.evaluation.concurrently import PlayedSoFar
from oco.evaluation.data import load_data
from oco.evaluation.hindsight import Hindsight

MODEL = """
model beside
horizon T = 3000
decision x[3] in box(0, 1)
stream c[3] in [-1, 1]
stream b in [0.5, 2]
minimize sum_squares(x - c)
subject to
    limit: sum(x) <= b each round
"""
EXAMPLES = Path(__file__).parents[1] / "examples"
PLAY = runs._play

pytestmark = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")


def rounds_of(count: int) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return {"c": rng.uniform(-1, 1, (count, 3)), "b": rng.uniform(0.5, 2, count)}


@pytest.fixture
def plan() -> Any:
    return oco.compile(oco.parse(MODEL), algorithm="coldq", settings="paper")


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Event for which the rounds wait on a machine of two cores; there is a pause after each call that plays some."""
    event, play = threading.Event(), runs._play

    def waiting(learner: Any, data: Any, recorder: Any, calls: Any) -> None:
        assert threading.current_thread() is not threading.main_thread() and event.wait(60)
        report = calls.progress
        play(learner, data, recorder, calls._replace(progress=lambda *seen: (time.sleep(0.02), report(*seen))))

    monkeypatch.setattr(runs, "cores", lambda: 2)
    monkeypatch.setattr(runs, "_play", waiting)
    return event


@pytest.mark.parametrize("name", ["tracking", thorough("job_scheduling"), thorough("online_qp"), thorough("portfolio")])
def test_one_core_and_two_give_the_same(
    name: str, begun: threading.Event, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rounds wait until the rules were played, so that all steps begin before they end."""
    words = ["run", str(EXAMPLES / f"{name}.oco"), "--rounds", "120", "--backend", "c", "--json"]
    with monkeypatch.context() as alone:
        alone.setattr(runs, "cores", lambda: 1)
        alone.setattr(runs, "_play", PLAY)
        assert main(words) == 0
    steps = Hindsight.steps.fget

    def counted(own: Hindsight) -> Any:
        *before, rules, hold, certify = steps(own)  # type: ignore[misc]
        return (*before, lambda played: (rules(played), begun.set()), hold, certify)

    monkeypatch.setattr(Hindsight, "steps", property(counted))
    first = capsys.readouterr().out
    assert main(words) == 0 and begun.is_set()
    (one,), (two,) = (json.loads(text)["runs"] for text in (first, capsys.readouterr().out))
    for key in ("seconds", "rounds_per_second"):
        assert one.pop(key) > 0 and two.pop(key) > 0
    assert one == two


@pytest.mark.parametrize("large", [0, 1 << 30])
def test_decisions_are_followed_as_they_come(
    large: int, plan: Any, begun: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows in files and in memory are those of the trace."""
    seen = list[Any]()
    monkeypatch.setattr(spill, "LARGE", large)

    def follow(played: PlayedSoFar) -> None:
        begun.set()
        rows = played.decisions["x"]
        seen.extend(rows[k : k + 700] for k in range(0, len(rows), 700))

    trace = runs.run(plan, rounds_of(3000), backend="c", meanwhile=(follow,))
    assert np.array_equal(np.concatenate(seen), trace.decisions) and len(trace.decisions) == 3000


def test_what_is_held_in_all_rounds_is_that_of_the_trace(plan: Any, begun: threading.Event) -> None:
    data = load_data(plan.canonical, rounds_of(3000))
    own = Hindsight(plan.canonical, data, ComparatorBudget(), lambda problem, data: None)
    trace = runs.run(plan, data, backend="c", meanwhile=(lambda _: begun.set(), own._hold))
    first, nothing = held_lines(trace)
    assert own.held == (first, nothing) and first is not None and nothing is not None
    assert first.loss == pytest.approx(((trace.decisions[0] - data.given["c"]) ** 2).sum())


def test_the_certificate_is_that_of_the_trace(plan: Any, begun: threading.Event) -> None:
    data = load_data(plan.canonical, rounds_of(3000))
    own = Hindsight(plan.canonical, data, ComparatorBudget(), lambda problem, data: None)
    trace = runs.run(plan, data, backend="c", meanwhile=(lambda _: begun.set(), own._certify))
    own.tell(trace)
    early, trace.own_certificate = trace.own_certificate, None
    assert early is not None and early.bound == trace.certificate().bound


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_the_rounds_end_with_the_step_that_fails(error: type[BaseException], plan: Any, begun: threading.Event) -> None:
    """Ctrl-C is heard in the caller's thread, and the other one is over when the run is."""
    before, recorders = threading.active_count(), list[Any]()

    def failing(played: PlayedSoFar) -> None:
        begun.set()
        played.wait_for(1)
        recorders.append(played.recorder)
        raise error

    with pytest.raises(error):
        runs.run(plan, rounds_of(30_000), backend="c", meanwhile=(failing,))
    assert threading.active_count() == before and 0 < recorders[0].count < 30_000


def test_an_error_of_the_rounds_arrives_with_its_code(plan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for rounds that do not come ends, and steps after it are not taken."""
    taken = list[str]()
    monkeypatch.setattr(runs, "cores", lambda: 2)

    def refused(*_: Any) -> None:
        raise fail("OCO848", "round 17: `c[0]` is not finite")

    monkeypatch.setattr(runs, "_play", refused)
    steps = (lambda played: played.wait_for(17), lambda _: taken.append("later"))
    before = threading.active_count()
    with pytest.raises(OcoError, match="round 17") as caught:
        runs.run(plan, rounds_of(30), backend="c", meanwhile=steps)
    assert caught.value.code == "OCO848" and not taken and threading.active_count() == before


def test_comparators_that_stopped_early_are_computed_again_where_the_run_took_long(plan: Any) -> None:
    data = load_data(plan.canonical, rounds_of(60))
    trace = plan.run(data)
    for allowed, needed, again in ((5.0, 0.0, False), (9.0, 0.0, True), (9.0, 17.0, True), (9.0, 19.0, False)):
        own = Hindsight(plan.canonical, data, ComparatorBudget(5.0), lambda problem, data: None)
        own._comparators["dynamic"] = replace(unsolved("dynamic", "late", 0.0, 0.0), needed=needed)
        trace.budget = ComparatorBudget(allowed)
        own.tell(trace)
        assert ("dynamic" in trace.known_comparators) is not again
        trace._comparators.clear()
