"""Calls from learners and runs to the program around them, and what they log: each round once, in order, with the numbers of the trace."""

from __future__ import annotations

import io
import logging
from functools import cache
from typing import Any

import numpy as np
import pytest
from test_c99 import needs_compiler

import oco

TEXT = """
model meter
horizon T = 40
decision x[2] in box(-1, 1)
stream a[2] in [-1, 1]
minimize sum_squares(x - a)
subject to
    cap: sum(x) <= 1  each round
"""
LATER = TEXT.replace("minimize", "feedback full delayed 2\nminimize")
BANDIT = TEXT.replace("minimize", "feedback bandit\nminimize").replace(
    "subject to\n    cap: sum(x) <= 1  each round\n", ""
)
ROUNDS = 40
DATA = {"a": np.random.default_rng(3).uniform(-1, 1, (ROUNDS, 2))}


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text), settings="paper")


@needs_compiler
@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("text", [TEXT, LATER, BANDIT], ids=["full", "later", "bandit"])
def test_a_run_tells_of_each_round_what_its_trace_keeps(text: str, backend: str) -> None:
    seen: list[Any] = []
    trace = plan_of(text).run(DATA, backend=backend, keep="last", on_round=seen.append)
    assert [feedback.round for feedback in seen] == [*range(1, ROUNDS + 1)]
    np.testing.assert_array_equal([feedback.loss for feedback in seen], trace.loss)
    np.testing.assert_array_equal([feedback.constraints for feedback in seen], trace.constraints)
    decisions = plan_of(text).run(DATA, backend=backend).decisions
    np.testing.assert_array_equal([feedback.decisions[0] for feedback in seen], decisions)
    assert len(trace.decisions) == 1


@needs_compiler
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_the_exploration_of_bandits_makes_the_same_decisions_again(backend: str) -> None:
    """Draws that were logged, given to another learner, lead it to the decisions that were logged."""
    seen: list[Any] = []
    plan = plan_of(BANDIT)
    plan.run(DATA, backend=backend, seed=7, on_round=seen.append)
    names = [f.name for f in plan.program.draws]
    draws = {name: np.array([feedback.draws[name] for feedback in seen]) for name in names}
    again = plan.run(DATA, backend=backend, seed=8, draws=draws)
    assert names and len(np.unique(draws[names[0]], axis=0)) == ROUNDS
    np.testing.assert_array_equal([feedback.decisions[0] for feedback in seen], again.decisions)
    assert not plan_of(TEXT).learner(backend=backend).feedback({"a": DATA["a"][0]}).draws


@needs_compiler
@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("text", [TEXT, LATER], ids=["full", "later"])
def test_a_learner_tells_of_rounds_until_it_is_told_otherwise(text: str, backend: str) -> None:
    seen: list[Any] = []
    learner, silent = plan_of(text).learner(backend=backend), plan_of(text).learner(backend=backend)
    learner.notify(on_round=seen.append)
    for t in range(6):
        if t == 4:
            learner.notify()
        np.testing.assert_array_equal(learner.decide(), silent.decide())
        learner.observe(a=DATA["a"][t])
        silent.observe(a=DATA["a"][t])
    assert [feedback.round for feedback in seen] == [1, 2, 3, 4]
    np.testing.assert_array_equal([feedback.values["a"] for feedback in seen], DATA["a"][:4])
    assert learner.state() == silent.state()


@pytest.mark.parametrize("text", [TEXT, LATER], ids=["full", "later"])
def test_an_error_of_the_program_leaves_the_round_observed(text: str) -> None:
    def stop(feedback: Any) -> None:
        raise KeyboardInterrupt

    learner = plan_of(text).learner(backend="numpy")
    learner.notify(on_round=stop)
    learner.decide()
    with pytest.raises(KeyboardInterrupt):
        learner.observe(a=DATA["a"][0])
    assert learner.round == 2
    learner.notify()
    learner.decide()
    learner.observe(a=DATA["a"][1])


@pytest.mark.parametrize("text", [TEXT, LATER], ids=["full", "later"])
def test_each_warning_is_told_once_and_logged(text: str, caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []
    learner = plan_of(text).learner(backend="numpy", on_out_of_bounds="clip")
    learner.notify(on_warning=told.append)
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="oco"):
        for _ in range(2):
            learner.decide()
            learner.observe(a=[2.0, 0.0])
    assert told == list(learner.warnings) and "in round 1" in told[0]
    assert [record.getMessage() for record in caplog.records][: len(told)] == [
        f"meter: {text}" for text in learner.warnings
    ]
    assert {record.name for record in caplog.records} == {"oco.backends.learner"}


def test_models_plans_and_runs_are_logged_by_their_modules(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="oco"):
        model = oco.parse(TEXT, name="meter.oco")
        oco.check(model)
        plan = oco.compile(model, settings="paper")
        plan.run(DATA)
    texts = [f"{record.name}: {record.getMessage()}" for record in caplog.records if record.levelno == logging.INFO]
    assert texts[0] == "oco.dsl.load: meter.oco: model meter is read"
    assert texts[1].startswith("oco.pipeline: meter: ") and "facts" in texts[1]
    assert f"oco.pipeline: meter: {plan.algorithm} for 40 rounds" in texts
    assert any(text.startswith(f"oco.evaluation.run: meter: {plan.algorithm} runs in ") for text in texts)


def test_nothing_is_written_without_a_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr("sys.stderr", written)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    learner = plan_of(TEXT).learner(backend="numpy", on_out_of_bounds="clip")
    learner.decide()
    learner.observe(a=[2.0, 0.0])
    assert learner.warnings and not written.getvalue()
