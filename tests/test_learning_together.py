"""Delayed feedback of rules that weigh experts: learners in turn that learn together, in every backend, in any order of the feedback."""

from __future__ import annotations

import ctypes
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
from thorough import thorough

import oco

BACKENDS = ("numpy", "c")
TEXT = """\
model stock
horizon T = 60
decision x[2] in box(0, 9)
stream demand[2] in [0, 9]
stream room in [4, 16]
minimize sum(x) - 3 * sum(minimum(x, demand))
subject to
    fits: sum(x) <= room  each round, penalty 4
using hedged with season = 4
feedback full delayed 3
"""
KNOWN = TEXT.replace("stream room", "context room")


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text))


def rows(seed: int, count: int = 20, size: int | None = None) -> list[dict[str, Any]]:
    """Rounds with a season of four and noise."""
    rng, n = np.random.default_rng(seed), () if size is None else (size,)
    level = np.array([[2.0, 7.0], [6.0, 3.0], [4.0, 4.0], [8.0, 1.0]])
    return [
        {"demand": np.clip(level[t % 4] + rng.normal(0, 0.5, (*n, 2)), 0, 9), "room": rng.uniform(9, 12, n)}
        for t in range(count)
    ]


def table(data: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.array([row[name] for row in data]) for name in data[0]}


@pytest.mark.parametrize("text", [thorough(TEXT), KNOWN], ids=["streams", "context"])
def test_backends_and_whole_runs_agree(text: str) -> None:
    data = rows(1, 12)
    x = {b: plan_of(text).run(table(data), backend=b).decisions for b in BACKENDS}
    np.testing.assert_allclose(x["c"], x["numpy"], atol=1e-9)


@pytest.mark.parametrize("text", [TEXT, KNOWN], ids=["streams", "context"])
def test_a_decision_knows_the_rounds_whose_feedback_came(text: str) -> None:
    """Round 14 counts from round 18 on, for its learner's own decision and for all others'."""
    data, other = rows(2, 24), rows(2, 24)
    other[13]["demand"] = 9 - other[13]["demand"]
    first, second = (plan_of(text).run(table(d), backend="c").decisions for d in (data, other))
    same = (first == second).all(axis=1)
    assert same[:17].all() and not same[17:].any()


def test_all_learn_what_one_observed() -> None:
    """Averages, weights and margins in common are those of as many rounds as came, in the order in which they came."""
    data, learner = rows(3, 12), plan_of(TEXT).learner(backend="numpy")
    seen: list[Any] = []
    for t in range(1, len(data) + 1):
        learner.decide()
        for k in [k for k in learner.pending if k == t - 3 or (t % 3 == 0 and k % 2)]:
            learner.observe(round=k, **data[k - 1])
            seen.append(np.array([*data[k - 1]["demand"], data[k - 1]["room"]]))
            values = learner.values
            assert values["observed"] == len(seen)
            np.testing.assert_allclose(values["average"][1], np.mean(seen, axis=0), atol=1e-12)
    assert learner.values["visits_profile"].sum() == len(seen)
    spans = [int(one.values["number"]) for one in learner.learners]
    assert len(set(spans)) == 4 and {*learner.pending} < {*spans} and max(spans) < learner.round + 4


def delayed_weights(losses: Any, delay: int) -> tuple[float, float]:
    """Loss of AdaHedge's weights as they were `delay` rounds before, and Delta, by the formulas of `de_rooij2014`."""
    T, K = losses.shape
    totals, gap = np.vstack([np.zeros(K), losses.cumsum(axis=0)]), np.zeros(T + 1)

    def weights(L: Any, eta: float) -> Any:
        w = np.exp(-eta * (L - L.min()))
        return w / w.sum()

    paid = 0.0
    for t in range(T):
        known = max(t - delay, 0)
        eta = np.log(K) / max(gap[known], 1e-12)
        w, last = weights(totals[known], eta), weights(totals[t], eta)
        least = losses[t][last > 0].min()
        mixed = least - np.log(last @ np.exp(-eta * np.maximum(losses[t] - least, 0))) / eta
        gap[t + 1] = gap[t] + max(w @ losses[t] - mixed, 0.0)
        paid += w @ losses[t]
    return paid, gap[T]


@pytest.mark.parametrize("delay", [0, 1, 3, 10])
def test_weights_as_they_were_pay_no_more_than_the_theorem_says(delay: int) -> None:
    """Random losses, losses against the weights of d rounds ago, and blocks as long as the delay."""
    rng, T = np.random.default_rng(8), 400
    turning = np.repeat(rng.integers(0, 2, T), delay + 1)[:T]
    sides = [turning, 1 - turning, rng.random(T)]
    cases = [
        rng.random((T, 5)),
        np.stack(sides, axis=1),
        np.eye(3)[np.arange(T) // (delay + 1) % 3] * rng.random((T, 1)) * 9,
    ]
    for losses in cases:
        paid, gap = delayed_weights(losses, delay)
        s = np.ptp(losses, axis=1)
        before = np.array([s[max(t - delay, 0) : t].sum() for t in range(T)])
        bound = np.sqrt((4 + np.log(losses.shape[1])) * (s**2 + 2 * s * before).sum())
        assert paid - losses.sum(axis=0).min() <= 2 * gap + 1e-9 and 2 * gap <= bound + 1e-9


def test_the_guarantee_holds_and_grows_with_the_root_of_the_delay() -> None:
    plain = TEXT.replace(" with season = 4", "").replace("T = 60", "T = 4000")
    bounds = [plan_of(plain.replace("delayed 3", f"delayed {d}")).guarantee.regret() for d in (0, 3, 15)]
    assert 2 < bounds[1] / bounds[0] < np.sqrt(7) and 4 < bounds[2] / bounds[0] < np.sqrt(31)
    plan = plan_of(TEXT)
    curve, (learner, kept) = plan.guarantee.regret_curve(60), (plan.learner(backend="numpy"), [])
    for _ in range(24):  # little is asked of what was made much of
        x = learner.decide()
        kept.append({"demand": np.where(x > 4, 0.0, 9.0), "room": 4.0})
        if len(learner.pending) > 3:
            learner.observe(**kept[learner.pending[0] - 1])
    for data in (kept, rows(9, 24)):
        prefix = plan.run(table(data), backend="numpy").regret("static", prefix=True)
        there = ~np.isnan(prefix)
        assert (prefix[there] <= curve[: len(prefix)][there] + 1e-9).all()


@pytest.mark.thorough  # with states and previous decisions `tests/test_handing_on.py` holds the same
@pytest.mark.parametrize("text", [TEXT, KNOWN], ids=["streams", "context"])
def test_modules_fleets_and_states_go_on_in_any_order(text: str, tmp_path: Path) -> None:
    known = ("room",) if text is KNOWN else ()
    data, plan = rows(4, 12), plan_of(text)
    own = play(plan.learner(backend="numpy"), data, known, 3, 5)
    module = ModuleType("stock")
    sys.modules["stock"] = module
    exec(compile(plan.source("numpy"), "stock.py", "exec"), module.__dict__)
    assert np.array_equal(play(module.Learner(), data, known, 3, 5), own)
    np.testing.assert_allclose(play(plan.learner(backend="c"), data, known, 3, 5), own, atol=1e-9)
    pairs = [{name: np.stack([v, v]) for name, v in row.items()} for row in data]
    for backend in BACKENDS:
        together = play(plan.fleet(2, backend=backend), pairs, known, 3, 5)
        np.testing.assert_allclose([x[1] for x in together], own, atol=1e-9)
    _continued(plan, data, known, own, tmp_path)


def _continued(plan: Any, data: list[dict[str, Any]], known: tuple[str, ...], own: list[Any], folder: Path) -> None:
    """Rounds of `play` with a learner that is saved, and one with a journal that is opened, again and again."""
    rng = np.random.default_rng(5)
    saved, journaled = plan.learner(backend="numpy"), oco.open(plan, folder, backend="numpy")
    for t, row in enumerate(data, 1):
        context = {name: row[name] for name in known}
        for one in (saved, journaled):
            assert np.array_equal(one.decide(**context), own[t - 1])
        if t % 6 == 3:
            saved = oco.restore(json.loads(json.dumps(saved.state())))
            journaled.close()
            journaled = oco.open(plan, folder, backend="numpy")
        for k in rng.permutation(saved.pending):
            if k == t - 3 or rng.random() < 0.3:
                given = {name: value for name, value in data[k - 1].items() if name not in known}
                for one in (saved, journaled):
                    one.skip(round=int(k)) if k % 5 == 0 else one.observe(round=int(k), **given)
    journaled.close()


@needs_compiler
@pytest.mark.parametrize("text", [thorough(TEXT), KNOWN], ids=["streams", "context"])
def test_written_c_takes_turns_and_plays_whole_horizons(text: str, tmp_path: Path) -> None:
    known, data = ("room",) if text is KNOWN else (), rows(6, 12)
    plan_of(text).write(tmp_path, backend="c")
    shutil.copy(tmp_path / "stock.py", tmp_path / "desk.py")  # the name that `binding` reads
    command = ["cc", *STRICT, "-O0", "-shared", "-fPIC", "stock.c", "-o", "libstock.so", "-lm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    module = binding(tmp_path)
    own = play(plan_of(text).learner(backend="numpy"), data, known, 3, 7)
    ring, again = Arrays(module.Learner(), data), module.Learner()
    np.testing.assert_allclose(play(ring, data, known, 3, 7), own, atol=1e-9)
    again.load(ring.learner.save())
    x, loss = np.empty((12, 2)), np.empty(12)
    whole = module.Learner()

    class Record(ctypes.Structure):
        _fields_ = [("decisions", ctypes.c_void_p), ("loss", ctypes.c_void_p), ("rest", ctypes.c_void_p * 80)]

    record, columns = Record(x.ctypes.data, loss.ctypes.data), table(data)
    given = [ctypes.c_void_p(columns[f.name].ctypes.data) for f in plan_of(text).program.feedback]
    assert whole._function("run")(whole._memory, ctypes.c_int64(12), *given, ctypes.byref(record)) == 12
    np.testing.assert_allclose(x, plan_of(text).run(columns, backend="numpy").decisions, atol=1e-9)


class Arrays:
    """Binding whose decisions are arrays, and whose inputs have the contexts of their rounds."""

    def __init__(self, learner: Any, data: list[dict[str, Any]]) -> None:
        self.learner, self.data, self.skip = learner, data, learner.skip

    @property
    def pending(self) -> tuple[int, ...]:
        return tuple(self.learner.pending)

    def decide(self, **context: Any) -> Any:
        return np.array(self.learner.decide(**context)["x"])

    def observe(self, round: int, **_: Any) -> None:
        self.learner.observe(round=round, **self.data[round - 1])
