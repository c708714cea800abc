"""Conditions of guarantees on data: what a run says held or failed, against the data themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from driving import plan_for
from scipy.optimize import linprog

from oco.compiler.theory.conditions import ConditionAnswer
from oco.evaluation.load import load_trace
from oco.evaluation.summary import summarize

TEXT = """
model inventory
horizon T = 200
decision order[2] in box(0, 10)
stream demand[2] in [0, 15]
stream price[2] in [1, 3]
minimize price @ order
subject to
    service: order >= demand each round
    room: sum(order) <= 14 each round
"""


def rounds(seed: int, most: float) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"demand": rng.uniform(0, most, (200, 2)), "price": rng.uniform(1, 3, (200, 2))}


@pytest.mark.parametrize("seed", range(3))
def test_a_condition_that_the_data_satisfy_is_held_and_the_guarantee_holds(seed: int) -> None:
    """Orders of 7 meet any demand up to 7, and fit into the room."""
    plan = plan_for(TEXT)
    trace = plan.run(rounds(seed, 7.0))
    (line,) = summarize(trace).conditions
    assert line.outcome == ConditionAnswer.HELD and line.since is None and line.text == "held"
    assert plan.guarantee is not None
    bound = plan.guarantee.regret()
    assert bound is not None and trace.regret("static")[-1] <= bound
    assert trace.violation("hard").sum(axis=1)[-1] <= (plan.guarantee.violation() or 0.0)


def test_a_round_that_no_decision_satisfies_fails_the_condition_from_there() -> None:
    data = rounds(0, 7.0)
    data["demand"][[41, 90]] = [9.0, 8.0]
    (line,) = summarize(plan_for(TEXT).run(data)).conditions
    assert line.outcome == ConditionAnswer.FAILED and line.since == 42
    assert line.text == "failed from round 42: no decision satisfies rounds 42, 91"


def test_rounds_that_no_single_decision_satisfies_fail_the_condition_from_the_last_of_them() -> None:
    """Demands of (9, 1) and (1, 9) each fit into the room of 14, and one order for both does not."""
    data = rounds(0, 4.0)
    data["demand"][[9, 149]] = [[9.0, 1.0], [1.0, 9.0]]
    (line,) = summarize(plan_for(TEXT).run(data)).conditions
    assert line.outcome == ConditionAnswer.FAILED and line.since == 150
    dynamic = plan_for(TEXT + "measure dynamic regret\n").run(data)
    (line,) = summarize(dynamic).conditions
    assert line.outcome == ConditionAnswer.HELD


def test_without_the_comparator_a_condition_cannot_be_told() -> None:
    trace = plan_for(TEXT).run(rounds(0, 7.0))
    (line,) = summarize(trace, ()).conditions
    assert line.outcome == ConditionAnswer.UNDECIDED and "static comparator" in line.why


def test_draws_of_unknown_mean_are_not_judged_by_one_run() -> None:
    text = TEXT.replace("demand[2] in", "demand[2] iid in").replace("each round", "on average")
    text = text.replace("price[2] in", "price[2] iid in") + "using mirror-descent\n"
    (line, *_) = summarize(plan_for(text).run(rounds(0, 7.0))).conditions
    assert line.outcome == ConditionAnswer.UNDECIDED


def test_a_saved_trace_keeps_its_conditions(tmp_path: Path) -> None:
    trace = plan_for(TEXT).run(rounds(0, 7.0))
    trace.save(tmp_path / "trace.nc")
    assert load_trace(tmp_path / "trace.nc").promise.conditions == trace.promise.conditions != ()


AVERAGE = """
model pacing
horizon T = 120
decision x[3] in box(0, 1)
stream price[3] in [0, 2]
stream need[2, 3] in [-1, 1]
stream level[2] in [-1, 1]
minimize price @ x
subject to
    served: need @ x >= level on average
using recoo
"""


@pytest.mark.parametrize("seed", range(6))
def test_rows_on_average_have_a_common_decision_where_a_linear_program_has_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    need = rng.uniform(-0.3, 1, (120, 2, 3))
    level = np.minimum(need @ rng.uniform(0, 1, 3), 1) + (0.02 if seed % 2 else 0.0)
    rows, bounds = -need.reshape(-1, 3), -np.clip(level, -1, 1).ravel()
    data = {"need": need, "level": np.clip(level, -1, 1), "price": rng.uniform(0, 2, (120, 3))}
    trace = plan_for(AVERAGE).run(data)
    (line,) = (c for c in summarize(trace).conditions if "every round" in c.words)
    exact = linprog(np.zeros(3), rows, bounds, bounds=[(0, 1)] * 3)
    assert line.outcome == (ConditionAnswer.HELD if exact.status == 0 else ConditionAnswer.FAILED)
