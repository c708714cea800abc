"""Conditions that a learner watches: what it says after each round, against linear programs over the rounds that came."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from test_conditions import TEXT as ORDER

import oco
from oco.compiler.theory.conditions import ConditionAnswer

GAINS = """
model gains
horizon T = 200
decision x[3] in box(0, 1)
stream need[2, 3] in [LEAST, 1]
stream level[2] in [0, 2]
stream price[3] in [0, 2]
minimize price @ x
subject to
    served: need @ x >= level each round
"""
BACKENDS = ["numpy", "c"]


@cache
def plan_of(text: str) -> oco.Plan:
    return oco.compile(oco.parse(text))


def learner_of(text: str, backend: str = "numpy") -> Any:
    return plan_of(text).learner(backend=backend)


def line(learner: Any) -> Any:
    (result,) = learner.conditions
    return result


def play(learner: Any, **streams: Any) -> None:
    learner.decide()
    learner.observe(**streams)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_condition_is_held_until_rounds_conflict(backend: str) -> None:
    """Demands of (9, 1) and (1, 9) each fit into the room of 14, and no order serves both."""
    learner, price = learner_of(ORDER, backend), np.ones(2)
    assert line(learner).text == "cannot be told: no round is over"
    for demand in ([3.0, 4.0], [9.0, 1.0], [2.0, 2.0]):
        play(learner, demand=np.array(demand), price=price)
        assert line(learner).text == "held"
    play(learner, demand=np.array([1.0, 9.0]), price=price)
    assert line(learner).outcome is ConditionAnswer.FAILED and line(learner).since == 4
    for _ in range(3):
        play(learner, demand=np.array([5.0, 5.0]), price=price)
    assert line(learner).text == "failed from round 4: no decision satisfies all of the first 4 rounds"


@pytest.mark.parametrize("backend", BACKENDS)
def test_it_is_saved_and_kept_in_journals(backend: str, tmp_path: Path) -> None:
    plan = plan_of(ORDER)
    learner, price = plan.learner(backend=backend), np.ones(2)
    for demand in ([9.0, 1.0], [1.0, 9.0]):
        play(learner, demand=np.array(demand), price=price)
    assert line(oco.restore(learner.state(), backend)).text == line(learner).text != "held"
    with oco.open(plan, tmp_path / "journal", backend=backend) as first:
        for demand in ([9.0, 1.0], [1.0, 9.0]):
            play(first, demand=np.array(demand), price=price)
    with oco.open(plan, tmp_path / "journal", backend=backend) as again:
        assert again.round == 3 and line(again).since == 2


def common(need: np.ndarray, level: np.ndarray) -> bool:
    """Whether some x in the box has need_t @ x >= level_t in all rounds."""
    return linprog(np.zeros(3), -need.reshape(-1, 3), -level.ravel(), bounds=[(0, 1)] * 3).status == 0


@pytest.mark.parametrize("seed", range(3))
def test_answers_agree_with_linear_programs(seed: int) -> None:
    """Entries of `need` may be negative: the constraint is watched at the centre, and what is said is true of the rounds."""
    rng, said = np.random.default_rng(seed), set()
    for least in (0.0, -1.0):
        learner = learner_of(GAINS.replace("LEAST", str(least)))
        need, level = rng.uniform(max(least, -0.2), 1, (6, 2, 3)), rng.uniform(0, 1.1 if seed % 2 else 0.3, (6, 2))
        for t in range(6):
            play(learner, need=need[t], level=level[t], price=np.ones(3))
            answer, exact = line(learner).outcome, common(need[: t + 1], level[: t + 1])
            assert answer is ConditionAnswer.UNDECIDED or (answer is ConditionAnswer.HELD) is exact
            said.add(answer)
    assert ConditionAnswer.HELD in said


@pytest.mark.parametrize("seed", range(2))
def test_additive_constraints_are_always_told(seed: int) -> None:
    """From the first round without a common order on; asked late, a learner names a round up to which the rounds conflict."""
    rng, learner = np.random.default_rng(seed), learner_of(ORDER)
    demand = rng.uniform(0, 9 if seed % 2 else 7.5, (12, 2))
    common = np.maximum.accumulate(demand).sum(axis=1) <= 14
    for t in range(12):
        play(learner, demand=demand[t], price=np.ones(2))
        answer = line(learner)
        assert answer.outcome is (ConditionAnswer.HELD if common[t] else ConditionAnswer.FAILED)
        assert answer.since is None or (not common[answer.since - 1] and answer.since <= t + 1)


def test_of_single_rounds_a_learner_says_what_the_worst_shows() -> None:
    learner = learner_of(ORDER + "measure dynamic regret\n")
    play(learner, demand=np.array([9.0, 1.0]), price=np.ones(2))
    assert line(learner).text == "held"
    play(learner, demand=np.array([1.0, 9.0]), price=np.ones(2))
    assert line(learner).outcome is ConditionAnswer.UNDECIDED
    play(learner, demand=np.array([9.2, 9.5]), price=np.ones(2))
    assert line(learner).text == "failed from round 3: no decision satisfies round 3"


def test_means_are_not_judged() -> None:
    text = ORDER.replace("demand[2] in", "demand[2] iid in").replace("each round", "on average")
    learner = learner_of(text.replace("price[2] in", "price[2] iid in") + "using mirror-descent\n")
    play(learner, demand=np.array([9.0, 9.0]), price=np.ones(2))
    assert all(c.outcome is ConditionAnswer.UNDECIDED and "means" in c.why for c in learner.conditions)


def test_plans_without_conditions_keep_nothing() -> None:
    plan = oco.compile(oco.parse(ORDER.replace("[0, 15]", "[0, 7]")))
    assert plan.learner().conditions == () and not [f.name for f in plan.program.state if "hardest" in f.name]


def test_the_last_word_of_a_run_is_that_of_its_trace() -> None:
    rng = np.random.default_rng(0)
    data = {"demand": rng.uniform(0, 7, (200, 2)), "price": rng.uniform(1, 3, (200, 2))}
    data["demand"][41] = [9.0, 8.0]
    plan = plan_of(ORDER)
    learner = plan.learner()
    for t in range(200):
        play(learner, **{name: values[t] for name, values in data.items()})
    from oco.evaluation.summary import summarize

    (measured,) = summarize(plan.run(data)).conditions
    assert (line(learner).outcome, line(learner).since) == (measured.outcome, measured.since) == ("failed", 42)
