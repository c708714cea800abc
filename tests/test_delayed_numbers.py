"""Number of the round under delayed feedback: it is that of all rounds, for learners that learn alone and for those that learn together."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from test_c99 import STRICT, needs_compiler
from test_c_bindings import binding
from test_delayed_everywhere import play
from test_delayed_in_c import Arrays
from thorough import thorough

import oco

T, DELAY = 24, 2
OGD = f"""\
model late
horizon T = {T}
decision x[2] in box(-1, 1)
stream a[2] in [-1, 1]
minimize sum_squares(x - a) * (1 + t / T) + 0.1 * t * x[0]
subject to
    cap: sum(x) <= 1 - t / T  each round
using ogd
feedback full delayed {DELAY}
"""
HEDGED = f"""\
model late
horizon T = {T}
decision x[2] in box(-1, 1)
stream a[2] in [-1, 1]
minimize norm1(x - a) * (1 + t / T) + 0.1 * t * x[0]
subject to
    cap: sum(x) <= a[0] + t / T  each round, penalty 3
using hedged
feedback full delayed {DELAY}
"""
CASES = {"alone": OGD, "together": HEDGED}


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text))


def with_context(text: str) -> str:
    """The model with a context of the user's in the place of the round."""
    return text.replace("stream a", f"context n in [1, {T}]\nstream a").replace(" t ", " n ")


def rounds(seed: int) -> list[dict[str, Any]]:
    return [{"a": row} for row in np.random.default_rng(seed).uniform(-1, 1, (T, 2))]


def numbered(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "n": float(t)} for t, row in enumerate(data, 1)]


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_it_is_what_a_context_would_be_in_any_order_and_with_rounds_left_out(backend: str) -> None:
    data = rounds(1)
    own = play(plan_of(OGD).learner(backend=backend), data, (), DELAY, 5)
    other = play(plan_of(with_context(OGD)).learner(backend=backend), numbered(data), ("n",), DELAY, 5)
    np.testing.assert_allclose(own, other, atol=1e-9)


@pytest.mark.parametrize("text", [OGD, thorough(HEDGED)], ids=CASES)
def test_backends_and_whole_runs_agree_and_losses_are_those_of_the_round(text: str) -> None:
    a = np.array([row["a"] for row in rounds(2)])
    traces = {b: plan_of(text).run({"a": a}, backend=b) for b in ("numpy", "c")}
    x, t = traces["numpy"].decisions, np.arange(1, T + 1)
    np.testing.assert_allclose(traces["c"].decisions, x, atol=1e-9)
    cost = ((x - a) ** 2 if text is OGD else abs(x - a)).sum(axis=1) * (1 + t / T) + 0.1 * t * x[:, 0]
    for trace in traces.values():
        np.testing.assert_allclose(trace.loss, cost, atol=1e-9)


def test_a_learner_of_some_rounds_is_told_of_its_own_ones() -> None:
    """Projected gradient steps on the losses of every third round, with the numbers that these have."""
    text = OGD.replace("subject to\n    cap: sum(x) <= 1 - t / T  each round\n", "").replace(
        "ogd", "ogd with eta = 0.1"
    )
    data = rounds(3)
    x, seen = np.zeros((T, 2)), plan_of(text).run({"a": np.array([row["a"] for row in data])}, backend="numpy")
    for t in range(1, T + 1 - DELAY - 1):
        gradient = 2 * (x[t - 1] - data[t - 1]["a"]) * (1 + t / T) + np.array([0.1 * t, 0.0])
        x[t + DELAY] = np.clip(x[t - 1] - 0.1 * gradient, -1, 1)
    np.testing.assert_allclose(seen.decisions, x, atol=1e-12)


@pytest.mark.parametrize("text", [OGD, thorough(HEDGED)], ids=CASES)
def test_modules_fleets_states_and_journals_go_on(text: str, tmp_path: Path) -> None:
    data, plan = rounds(4), plan_of(text)
    own = play(plan.learner(backend="numpy"), data, (), DELAY, 7)
    module = ModuleType("late")
    sys.modules["late"] = module
    exec(compile(plan.source("numpy"), "late.py", "exec"), module.__dict__)
    assert np.array_equal(play(module.Learner(), data, (), DELAY, 7), own)
    pairs = [{"a": np.stack([-row["a"], row["a"]])} for row in data]
    for backend in ("numpy", "c"):
        together = play(plan.fleet(2, backend=backend), pairs, (), DELAY, 7)
        np.testing.assert_allclose([x[1] for x in together], own, atol=1e-9)
    rng, saved, journaled = (
        np.random.default_rng(7),
        plan.learner(backend="numpy"),
        oco.open(plan, tmp_path, backend="numpy"),
    )
    for t in range(1, T + 1):
        for one in (saved, journaled):
            assert np.array_equal(one.decide(), own[t - 1])
        if t % 5 == 3:
            saved = oco.restore(json.loads(json.dumps(saved.state())))
            journaled.close()
            journaled = oco.open(plan, tmp_path, backend="numpy")
        for k in rng.permutation(saved.pending):
            if k == t - DELAY or rng.random() < 0.3:
                for one in (saved, journaled):
                    one.skip(round=int(k)) if k % 5 == 0 else one.observe(round=int(k), **data[k - 1])
    journaled.close()


def test_feedback_and_large_fleets_measure_the_round_that_they_are_of() -> None:
    plan, a = plan_of(OGD[: OGD.index("subject to")] + OGD[OGD.index("using") :]), np.full((40, 2), 0.25)
    fleets = [plan.fleet(40, backend=b) for b in ("numpy", "c")]
    learner = plan.learner(backend="c")
    for t in range(1, 8):
        x = [fleet.decide() for fleet in fleets]
        own = learner.decide()
        np.testing.assert_allclose(x[0], np.tile(own, (40, 1)), atol=1e-9)
        loss = ((own - 0.25) ** 2).sum() * (1 + t / T) + 0.1 * t * own[0]
        for one, given in ((learner, a[0]), *((fleet, a) for fleet in fleets)):
            feedback = one.observe(a=given)
            assert feedback.round == t
            np.testing.assert_allclose(feedback.loss, loss, atol=1e-9)


def test_the_guarantee_is_that_of_a_context_with_the_same_range() -> None:
    plan, other = plan_of(OGD), plan_of(with_context(OGD))
    assert plan.guarantee.regret() == pytest.approx(other.guarantee.regret())
    trace = plan.run({"a": np.array([row["a"] for row in rounds(5)])}, backend="numpy")
    prefix, curve = trace.regret("static", prefix=True), plan.guarantee.regret_curve(T)
    there = ~np.isnan(prefix)
    assert there.any() and (prefix[there] <= curve[there] + 1e-9).all()


@needs_compiler
@pytest.mark.parametrize("text", [OGD, thorough(HEDGED)], ids=CASES)
def test_written_c_takes_turns_and_plays_whole_horizons(text: str, tmp_path: Path) -> None:
    data = rounds(6)
    plan_of(text).write(tmp_path, backend="c")
    shutil.copy(tmp_path / "late.py", tmp_path / "desk.py")  # the name that `binding` reads
    command = ["cc", *STRICT, "-O0", "-shared", "-fPIC", "late.c", "-o", "liblate.so", "-lm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    own = play(plan_of(text).learner(backend="numpy"), data, (), DELAY, 7)
    ring = Arrays(binding(tmp_path).Learner(), data)
    np.testing.assert_allclose(play(ring, data, (), DELAY, 7), own, atol=1e-9)
