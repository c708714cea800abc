"""What rounds leave to the next (previous decisions, states, statistics) in JAX: whole runs, fleets, slopes and modules beside NumPy's."""

from __future__ import annotations

import runpy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_filled_in import CASES, LEARNED, RAMP, T, data_of, plan_of
from thorough import corners

import oco
from oco.backends import play
from oco.backends.fleet import Fleet
from oco.dsl.diagnostics import OcoError

jax = pytest.importorskip("jax")
EXAMPLES = Path(__file__).parent.parent / "examples"
DRAWN = {
    "ramp": (RAMP.replace("in [-1, 5]", "~ uniform(-1, 5)"), "ogd", 0.0),
    "learned": (LEARNED.replace("DOMAIN", "box(-1, 1)").replace("in [-1, 1]\n", "~ uniform(-1, 1)\n"), "coldq", 2.0),
}
"""Models whose streams have laws, an algorithm with free constants, and a price of violation."""


def close(ours: Any, theirs: Any, atol: float = 1e-12) -> None:
    """Assert that arrays are within `atol` of the largest entry, or of one."""
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol * max(1.0, float(np.abs(theirs).max(initial=0.0))))


def part_of(data: dict[str, Any], start: int, stop: int) -> dict[str, Any]:
    """Streams of some rounds."""
    return {name: values[start:stop] for name, values in data.items()}


def held_beside_numpy(plan: oco.Plan, data: Any) -> None:
    """Assert that a whole run in one call has NumPy's decisions, measures and what each round was left."""
    assert plan.program.previous and play.can_play(plan.learner(backend="jax"))
    ours, theirs = plan.run(data, backend="jax"), plan.run(data, backend="numpy")
    for name, decided in theirs.record.decisions.items():
        close(ours.record.decisions[name], decided)
    close(ours.loss, theirs.loss)
    close(ours.constraints, theirs.constraints)
    for s in plan.canonical.carried:
        close(ours.data.array(s.name), theirs.data.array(s.name))


@pytest.mark.parametrize("name", corners(CASES, ["store", "predicted"]))
def test_whole_runs_are_those_of_numpy(name: str) -> None:
    plan = plan_of(CASES[name])
    held_beside_numpy(plan, data_of(plan, 3))


@pytest.mark.parametrize("name", corners(["charging", "staffing"], ["charging"]))
def test_examples_are_those_of_numpy(name: str) -> None:
    plan = oco.compile(oco.load(EXAMPLES / f"{name}.oco"))
    held_beside_numpy(plan, data_of(plan, 3, (300,)))


def test_a_run_goes_on_where_another_call_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(CASES["ramp"])
    data, whole = data_of(plan, 4), plan.run(data_of(plan, 4), backend="jax")
    monkeypatch.setattr(play, "FIRST_CHUNK", 7)
    monkeypatch.setattr(play, "SECONDS", 0.0)
    learner = plan.learner(backend="jax")
    parts = list(play.play(learner, partial(part_of, data), T, left=["prev_p"]))
    assert len(parts) > 3
    np.testing.assert_array_equal(np.concatenate([p.loss for p in parts]), whole.loss)
    left = np.concatenate([p.left["prev_p"] for p in parts])
    np.testing.assert_array_equal(left[1:], whole.record.decisions["p"][:-1])


def test_a_wrong_round_in_the_middle_is_refused_as_alone() -> None:
    plan = plan_of(CASES["store"])
    data = data_of(plan, 4)
    data["sales"][31, 1] = 20.5
    learner = plan.learner(backend="jax")
    with pytest.raises(OcoError, match="outside the model's bounds") as caught:
        list(play.play(learner, partial(part_of, data), T))
    assert caught.value.code == "OCO845" and learner.round == 32


def test_fleets_are_their_learners() -> None:
    plan, size = plan_of(CASES["learned"]), 37
    fleet, alone = plan.fleet(size, backend="jax"), Fleet(plan.compiled("numpy"), plan.contract, size)
    assert type(fleet).__name__ == "MappedFleet"
    data = data_of(plan, 7, (6, size))
    for t in range(6):
        close(fleet.decide(), alone.decide())
        row = {key: values[t] for key, values in data.items()}
        found, meant = fleet.observe(**row), alone.observe(**row)
        close(found.loss, meant.loss)
        close(found.constraints, meant.constraints)
    for field in plan.learner().values:
        close(fleet.value(field), alone.value(field))
    fleet.decide()
    wrong = {key: values.copy() for key, values in row.items()}
    wrong["b"][30] = 7.0
    with pytest.raises(OcoError, match=r"learner 30: b is 7\.0"):
        fleet.observe(**wrong)


@pytest.mark.parametrize("name", DRAWN)
def test_slopes_go_through_what_rounds_leave(name: str) -> None:
    text, algorithm, price = DRAWN[name]
    plan = oco.compile(oco.parse(text), algorithm, "paper")
    loss, trace = plan.loss_of_settings(seed=3, price=price), plan.run(seed=3, backend="numpy")
    value, slopes = loss.value_and_slopes(loss.settings)
    assert value == pytest.approx(trace.loss.sum() + price * trace.last_violation("hard").sum(), rel=1e-12)
    for key, x in loss.settings.items():
        up, down = (loss.value_and_slopes({key: x * (1 + h)})[0] for h in (1e-5, -1e-5))
        assert slopes[key] == pytest.approx((up - down) / (2e-5 * x), rel=1e-5, abs=1e-5)
    assert any(slopes.values())


def test_the_written_module_plays_such_rounds(tmp_path: Path) -> None:
    plan = plan_of(CASES["ramp"])
    (path,) = plan.write(tmp_path / "learner.py", backend="jax")
    data = data_of(plan, 5)
    trace, before = plan.run(data, backend="numpy"), jax.config.jax_enable_x64
    try:
        module = runpy.run_path(str(path))
        state = module["traced_init"](*map(np.asarray, module["START"].values()))
        _, (decided, loss, *_) = module["play"](state, tuple(data[f.name] for f in plan.program.revealed))
    finally:
        jax.config.update("jax_enable_x64", before)
    close(decided[0], trace.record.decisions["p"])
    close(loss, trace.loss)
