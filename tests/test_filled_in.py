"""What rounds leave to the next (states, previous decisions, statistics), filled in by C itself: whole horizons, bindings, fleets."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_c99 import STRICT, needs_compiler
from test_webassembly import in_node, needs_both
from thorough import corners

import oco
from oco.backends import play
from oco.backends.c99.build import compiler
from oco.backends.c99.fleet import NativeFleet
from oco.backends.c99.module import emit
from oco.backends.fleet import Fleet
from oco.backends.monitor import is_watched, watched_rounds
from oco.backends.python.fleet import BatchedFleet
from oco.backends.registry import backend
from oco.dsl.diagnostics import OcoError

T = 60
STORE = """\
model kept
horizon T = 60
decision order[2] in box(0, 30)
context room in [40, 100]
stream price[2] in [1, 5]
stream sales[2] in [0, 20]
state stock[2] = stock + order - sales in [0, 60] start [20, 10]
minimize price @ order + 0.1 * sum(stock + order) + 8 * sum(pos(sales - stock - order))
subject to
    shelf: sum(stock + order) <= room  each round
"""
RAMP = """\
model kept
horizon T = 60
decision p[2] in box(0, 8)
decision q in box(-2, 2)
stream price[2] in [-1, 5]
minimize price @ p + q ** 2
subject to
    up: p - prev(p) <= 0.5  each round
    tie: q - 0.5 * prev(q) >= -1  each round
using ogd
"""
PREDICTED = """\
model kept
horizon T = 60
decision x[2] in box(-1, 1)
stream a[2] in [-1, 1]
predict a = 0.4 * last(a) + 0.3 * season(a, 5) + 0.2 * mean(a, 4)
minimize sum_squares(x - a)
using optimistic
"""
LEARNED = """\
model kept
horizon T = 60
decision x[2] in DOMAIN
stream a[2] in [-1, 1]
stream b in [-1, 1]
state s = 0.5 * s + sum(x) + b in [-2, 2] start 0.25
state v[2] = 0.5 * v - a + x in [-1, 1] start [1, 0.5]
minimize sum_squares(x - a) + s * x[0] + v @ x
subject to
    kept: s * x[0] + b * x[1] <= 1 + b
"""
BOXED = LEARNED.replace("DOMAIN", "box(-1, 1)")
CASES = {"store": STORE, "ramp": RAMP, "predicted": PREDICTED, "learned": BOXED}


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text))


def data_of(plan: Any, seed: int, size: tuple[int, ...] = (T,)) -> dict[str, Any]:
    """Random data of a model's streams, uniform on their ranges, the round first."""
    rng = np.random.default_rng(seed)
    return {s.name: rng.uniform(s.lower, s.upper, (*size, *s.shape)) for s in plan.canonical.revealed}


def rows_of(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [{name: values[t] for name, values in data.items()} for t in range(T)]


@needs_compiler
@pytest.mark.parametrize("name", CASES)
def test_whole_horizons_are_round_by_round_to_the_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "FIRST_CHUNK", 7)
    monkeypatch.setattr(play, "SECONDS", 0.0)
    plan, told, decided, seen = plan_of(CASES[name]), [], [], []
    data, learner = data_of(plan, 3), plan.learner(backend="c")
    assert plan.program.previous and play.can_play(learner)
    for row in rows_of(data):
        decided.append(learner.decide(**{n: row[n] for n in plan.program.context}))
        seen.append(learner.observe(**{n: v for n, v in row.items() if n not in plan.program.context}))
    whole, numpy = plan.run(data, backend="c", on_round=told.append), plan.run(data, backend="numpy")
    last = plan.run(data, backend="c", keep="last")
    for field in plan.program.decision:
        single = np.stack([d[field.name] if isinstance(d, dict) else d for d in decided])
        np.testing.assert_array_equal(whole.record.decisions[field.name], single)
        np.testing.assert_allclose(numpy.record.decisions[field.name], single, atol=1e-8)
    for measure in ("loss", "constraints"):
        np.testing.assert_array_equal(getattr(whole, measure), [getattr(feedback, measure) for feedback in seen])
    for s in plan.canonical.carried:
        left = [feedback.values[s.name] for feedback in seen]
        for trace in (whole, last):
            np.testing.assert_array_equal(trace.data.array(s.name), left)
    assert len(told) == len(seen) == T
    for ours, theirs in zip(told, seen):
        assert set(ours.values) == set(theirs.values) and ours.loss == theirs.loss
        for key, value in theirs.values.items():
            np.testing.assert_array_equal(ours.values[key], value)


@needs_compiler
def test_a_wrong_round_in_the_middle_is_refused_as_alone() -> None:
    plan = plan_of(STORE)
    data = data_of(plan, 4)
    data["sales"][31, 1] = 20.5
    learner, read = plan.learner(backend="c"), lambda start, stop: {n: v[start:stop] for n, v in data.items()}
    with pytest.raises(OcoError, match="outside the model's bounds") as caught:
        list(play.play(learner, read, T, left=["stock"]))
    assert caught.value.code == "OCO845" and learner.round == 32
    clipped = plan.learner(backend="c", on_out_of_bounds="clip")
    played = list(play.play(clipped, read, T, left=["stock"]))
    assert len(played) == 3
    stock, order = (np.concatenate(part) for part in zip(*((p.left["stock"], p.decisions["order"]) for p in played)))
    sold = np.minimum(data["sales"], 20.0)
    np.testing.assert_array_equal(stock[0], [20, 10])
    np.testing.assert_allclose(stock[1:], np.clip(stock + order - sold, 0, 60)[:-1], atol=1e-12)


@needs_compiler
@pytest.mark.parametrize("name", ["ramp", "predicted"])
def test_gradients_of_whole_horizons_are_held_against_their_bounds(name: str) -> None:
    stated = {"ramp": "price @ p + q ** 2", "predicted": "sum_squares(x - a)"}[name]
    text = (
        CASES[name]
        .replace("T = 60", "T = 128")
        .replace(f"minimize {stated}", f"assume loss.lipschitz.l2 <= 0.01\nminimize {stated}")
    )
    plan = plan_of(text)
    data = {n: np.concatenate([v, v, v])[:128] for n, v in data_of(plan, 8).items()}
    whole = plan.run(data, backend="c")
    learner = plan.learner(backend="c")
    for t in range(128):
        learner.decide()
        learner.observe(**{n: v[t] for n, v in data.items()})
    about = [[w for w in run.warnings if w.startswith("the gradient of the loss reached")] for run in (whole, learner)]
    assert len(about[0]) == len(about[1]) == 1


def test_watched_rounds_are_those_that_are_watched() -> None:
    for first, stop in ((1, 70), (64, 65), (65, 128), (8190, 8194), (100, 40000), (16385, 24576)):
        assert watched_rounds(first, stop) == [t for t in range(first, stop) if is_watched(t)]


@needs_compiler
@pytest.mark.parametrize("name", CASES)
def test_callers_of_written_c_give_what_the_round_reveals(name: str, tmp_path: Path) -> None:
    plan = plan_of(CASES[name])
    source = emit(plan.program, plan.contract)
    assert not [
        own
        for own, _ in plan.program.previous
        if re.search(rf"\b{own}[,)]", "".join(source.interface.heads().values()))
    ]
    plan.write(tmp_path, backend="c")
    command = [*compiler(), *STRICT, "-O1", "-shared", "-fPIC", "kept.c", "-o", "libkept.so", "-lm"]
    ran(command, tmp_path)
    ran([*compiler(), *STRICT, "-O1", "kept.c", "kept_example.c", "-o", "example", "-lm"], tmp_path)
    assert len(ran([str(tmp_path / "example")], tmp_path).splitlines()) == 3
    spec = importlib.util.spec_from_file_location("kept_binding", tmp_path / "kept.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written, ours = module.Learner(), plan.learner(backend="c")
    for row in rows_of(data_of(plan, 5))[:20]:
        known = {n: row[n] for n in plan.program.context}
        decision, own = written.decide(**known), ours.decide(**known)
        names = [f.name for f in plan.program.decision]
        for key, value in (own if isinstance(own, dict) else {names[0]: own}).items():
            np.testing.assert_allclose(np.ravel(decision[key]), np.ravel(value), atol=1e-11)
        loss, g, _ = written.measure(decision, **row)
        written.observe(**row)
        feedback = ours.observe(**row)
        np.testing.assert_allclose([loss, *g], [feedback.loss, *feedback.constraints], atol=1e-9)


def ran(command: list[str], folder: Path) -> str:
    """Output of a command that succeeds."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_both
@pytest.mark.parametrize("name", corners(CASES, ["store", "ramp"]))
def test_javascript_runs_such_rounds(name: str, tmp_path: Path) -> None:
    plan = plan_of(CASES[name])
    data = data_of(plan, 6)
    rounds = [{key: np.asarray(value).tolist() for key, value in row.items()} for row in rows_of(data)]
    result = in_node(plan, tmp_path, rounds=rounds)
    trace = plan.run(data, backend="numpy")
    for t, made in enumerate(result["played"]):
        for key, values in trace.record.decisions.items():
            np.testing.assert_allclose(made["decision"][key], values[t], atol=1e-8)
        np.testing.assert_allclose(made["loss"], trace.loss[t], atol=1e-7)
        np.testing.assert_allclose(made["constraints"], trace.constraints[t], atol=1e-7)
    assert len(result["played"]) == T and result["again"] == result["played"][T // 2 :]


@pytest.mark.parametrize(
    ("name", "domain", "kind", "lanes"),
    [
        ("numpy", "box(-1, 1)", BatchedFleet, 37),
        ("c", "box(-1, 1)", NativeFleet, 8),
        ("c", "simplex(2)", NativeFleet, 1),
    ],
)
def test_fleets_are_their_learners(name: str, domain: str, kind: type[Any], lanes: int) -> None:
    if (reason := backend(name).unavailable_reason()) is not None:
        pytest.skip(reason)
    plan, size = plan_of(LEARNED.replace("DOMAIN", domain)), 37
    fleet, alone = plan.fleet(size, backend=name), Fleet(plan.compiled("numpy"), plan.contract, size)
    assert type(fleet) is kind and fleet._lanes == lanes and plan.program.previous
    data = data_of(plan, 7, (12, size))
    for t in range(12):
        np.testing.assert_allclose(fleet.decide(), alone.decide(), atol=1e-9)
        row = {key: values[t] for key, values in data.items()}
        found, meant = fleet.observe(**row), alone.observe(**row)
        np.testing.assert_allclose(found.loss, meant.loss, atol=1e-9)
        np.testing.assert_allclose(found.constraints, meant.constraints, atol=1e-9)
    for field in plan.learner().values:
        np.testing.assert_allclose(fleet.value(field), alone.value(field), atol=1e-8)
    fleet.decide()
    wrong = {key: values.copy() for key, values in row.items()}
    wrong["b"][30] = 7.0
    with pytest.raises(OcoError, match=r"learner 30: b is 7\.0"):
        fleet.observe(**wrong)
