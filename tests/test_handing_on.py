"""Previous decisions and states beside delayed feedback: what a round leaves is known to the next, in every backend, in any order."""

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
from thorough import thorough, turns

import oco

T, DELAY, BACKENDS = 40, 3, ("numpy", "c")
RULE = """\
model depot
horizon T = 40
param hour[4] = [0, 1, 0, -1]
decision p[2] in box(-1, 1)
context sun in [0, 1]
stream price[2] in [-2, 4]
state stored = 0.9 * stored + sum(p) + 0.2 * sun + 0.1 * hour[t % 4] in [0, 3] start 1
minimize price @ p + 0.5 * sum_squares(p - prev(p))
subject to
    ramp: p - prev(p) <= 1.2  each round
    full: stored + sum(p) <= 2.5  each round
using ogd
feedback full delayed 3
"""
TOGETHER = """\
model pump
horizon T = 40
decision p[2] in box(0, 2)
stream price[2] in [-2, 4]
state level = level - sum(p) + 2 in [0, 9] start 4
minimize price @ p + 0.3 * norm1(p - prev(p)) + 0.01 * level * p[0]
using hedged with season = 4
feedback full delayed 3
"""
BUDGET = """\
model crews
horizon T = 40
decision p[2] in box(0, 1)
context fee[2] in [0, 1]
stream wear in [0.5, 2]
stream price[2] in [-2, 4]
maximize price @ p
subject to
    spend: wear * fee @ p <= 15  in total
using ogd
feedback full delayed 3
"""
SHARE = """\
model staff
horizon T = 40
decision p[2] in box(0, 10)
stream price[2] in [-2, 4]
stream calls in [4, 12]
minimize price @ p + sum_squares(p)
subject to
    enough: sum(p) >= calls + 0.1 * (t % 4)  in 70% of rounds
using ogd
feedback full delayed 3
"""
CONTEXTS = {RULE: ("sun",), TOGETHER: (), BUDGET: ("fee",), SHARE: ()}


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text))


def rounds(text: str, seed: int, count: int = T, size: int | None = None) -> list[dict[str, Any]]:
    rng, n = np.random.default_rng(seed), () if size is None else (size,)
    level = np.array([-1.0, 2.0, 0.5, 3.0])
    result = [{"price": np.clip(level[t % 4] + rng.normal(0, 1, (*n, 2)), -2, 4)} for t in range(count)]
    draws = {"sun": (0, 1, n), "fee": (0, 1, (*n, 2)), "wear": (0.5, 2, n), "calls": (4, 12, n)}
    return [row | {name: rng.uniform(*draws[name]) for name in draws if f" {name}" in text} for row in result]


def table(data: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.array([row[name] for row in data]) for name in data[0]}


def levels(text: str, data: list[dict[str, Any]], x: Any) -> Any:
    """State before each round, (T,), by hand."""
    s, hour = [1.0 if text is RULE else 4.0], [0, 1, 0, -1]
    for t, row in enumerate(data[:-1], 1):
        own = x[t - 1].sum()
        if text is RULE:
            s.append(np.clip(0.9 * s[-1] + own + 0.2 * row["sun"] + 0.1 * hour[t % 4], 0, 3))
        else:
            s.append(np.clip(s[-1] - own + 2, 0, 9))
    return np.array(s)


def before(text: str, x: Any) -> Any:
    """Decision before each round, (T, 2)."""
    return np.vstack([plan_of(text).contract.start["p"], x[:-1]])


@pytest.mark.parametrize(
    ("text", "backend"),
    turns([RULE, TOGETHER], BACKENDS),
    ids=("alone-numpy", "alone-c", "together-numpy", "together-c"),
)
def test_rounds_pay_for_moves_and_states_of_the_round_before(text: str, backend: str) -> None:
    data = rounds(text, 1)
    trace = plan_of(text).run(table(data), backend=backend)
    x, price = trace.decisions, table(data)["price"]
    s, moved = levels(text, data, x), x - before(text, x)
    loss = (price * x).sum(axis=1)
    if text is RULE:
        loss += 0.5 * (moved**2).sum(axis=1)
        assert moved.max() <= 1.2 + 1e-9 and (s + x.sum(axis=1) <= 2.5 + 1e-9).all() and s.min() > -1e-9
    else:
        loss += 0.3 * abs(moved).sum(axis=1) + 0.01 * s * x[:, 0]
    np.testing.assert_allclose(trace.loss, loss, atol=1e-9)
    name = "stored" if text is RULE else "level"
    np.testing.assert_allclose(trace.data.array(name), s, atol=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
def test_turns_decide_as_learners_that_are_told_what_the_round_before_left(backend: str) -> None:
    """Four learners that know no delay, with the decision and the state before as contexts."""
    still = RULE.replace(" + 0.5 * sum_squares(p - prev(p))", "")
    head, constraints = still.split("state stored")[0], still.split("subject to\n")[1]
    left = "0.9 * stored + sum(p) + 0.2 * sun + 0.1 * now"
    text = (
        head.replace("T = 40", "T = 10").replace("param hour[4] = [0, 1, 0, -1]\n", "")
        + "context stored in [0, 3]\ncontext now in [-1, 1]\ncontext last[2] in [-1, 1]\nminimize price @ p\nsubject to\n"
        + f"    least: {left} >= 0  each round\n    most: {left} <= 3  each round\n"
        + constraints.replace("prev(p)", "last").replace("feedback full delayed 3\n", "")
    )
    data, learners = rounds(RULE, 2), [plan_of(text).learner(backend=backend) for _ in range(DELAY + 1)]
    x = plan_of(still).run(table(data), backend=backend).decisions
    s, last = levels(RULE, data, x), before(still, x)
    for t, row in enumerate(data, 1):
        one = learners[(t - 1) % (DELAY + 1)]
        known = {"stored": s[t - 1], "last": last[t - 1], "now": [0, 1, 0, -1][t % 4], "sun": row["sun"]}
        np.testing.assert_allclose(one.decide(**known), x[t - 1], atol=1e-7)
        one.observe(price=row["price"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_budget_counts_the_worst_until_the_truth_comes(backend: str) -> None:
    """In any order of the feedback, and with rounds whose feedback never comes; an even plan is never exceeded."""
    data, rng, learner = rounds(BUDGET, 3), np.random.default_rng(3), plan_of(BUDGET).learner(backend=backend)
    paid, x = np.zeros(T), np.zeros((T, 2))
    for t, row in enumerate(data, 1):
        x[t - 1] = learner.decide(fee=row["fee"])
        counted = learner.learners[(t - 1) % (DELAY + 1)].value("kept_spent_spend")
        np.testing.assert_allclose(counted, paid.sum(), atol=1e-9)
        paid[t - 1] = 2 * row["fee"] @ x[t - 1]
        assert paid.sum() <= 15 * t / T + 1e-9
        for k in map(int, rng.permutation(learner.pending)):
            if k == t - DELAY or rng.random() < 0.3:
                if k % 7 == 0:
                    learner.skip(round=k)
                else:
                    learner.observe(round=k, wear=data[k - 1]["wear"], price=data[k - 1]["price"])
                    paid[k - 1] = data[k - 1]["wear"] * data[k - 1]["fee"] @ x[k - 1]
    assert paid.sum() > 10


@pytest.mark.parametrize("rule", ["ogd", thorough("hedged")])
def test_shares_of_rounds_are_kept_by_each_learner_in_turn(rule: str) -> None:
    """Whatever comes: calls at random, then as many as break every decision that has not the greatest margin."""
    T = 160
    plan = plan_of(SHARE.replace("using ogd", f"using {rule}").replace("T = 40", f"T = {T}"))
    margin = next(c.margin for c in plan.canonical.inequalities if c.margin is not None)
    assert margin.allowed(T) == pytest.approx(0.3 * T + (DELAY + 1) * 0.7)
    for hostile in (False, True):
        learner, broken, calls, data = plan.learner(backend="c"), 0, [0.0] * T, rounds(SHARE, 5, T)
        for t, row in enumerate(data, 1):
            x = learner.decide().sum()
            calls[t - 1] = (12.0 if x < 12 else 4.0) if hostile else row["calls"]
            broken += calls[t - 1] + 0.1 * (t % 4) > x + 1e-9
            if len(learner.pending) > DELAY:
                k = learner.pending[0]
                learner.observe(round=k, calls=calls[k - 1], price=data[k - 1]["price"])
        assert 0 < broken <= margin.allowed(T)


def test_margins_in_turn_are_those_of_learners_that_know_no_delay() -> None:
    data = rounds(SHARE, 6)
    x = plan_of(SHARE).run(table(data), backend="numpy").decisions
    told = SHARE.replace("feedback full delayed 3\n", "").replace("T = 40", "T = 10")
    told = told.replace("0.1 * (t % 4)", "0.1 * now").replace("stream calls", "context now in 0..3\nstream calls")
    learners = [plan_of(told).learner(backend="numpy") for _ in range(DELAY + 1)]
    for t, row in enumerate(data, 1):
        one = learners[(t - 1) % (DELAY + 1)]
        np.testing.assert_allclose(one.decide(now=t % 4), x[t - 1], atol=1e-7)
        one.observe(price=row["price"], calls=row["calls"])


@pytest.mark.parametrize("text", [thorough(RULE), TOGETHER, BUDGET], ids=["alone", "together", "budget"])
def test_modules_fleets_and_states_go_on_in_any_order(text: str, tmp_path: Path) -> None:
    known, data, plan = CONTEXTS[text], rounds(text, 4, 11), plan_of(text)
    own = play(plan.learner(backend="numpy"), data, known, DELAY, 5)
    module = ModuleType("left")
    sys.modules["left"] = module
    exec(compile(plan.source("numpy"), "left.py", "exec"), module.__dict__)
    assert np.array_equal(play(module.Learner(), data, known, DELAY, 5), own)
    np.testing.assert_allclose(play(plan.learner(backend="c"), data, known, DELAY, 5), own, atol=1e-9)
    pairs = [{name: np.stack([v, v]) for name, v in row.items()} for row in data]
    for backend in BACKENDS:
        together = play(plan.fleet(2, backend=backend), pairs, known, DELAY, 5)
        np.testing.assert_allclose([x[1] for x in together], own, atol=1e-9)
    for backend in ("numpy",) if text is RULE else ("c",):
        _continued(plan, data, known, backend, tmp_path / backend)


def _continued(plan: Any, data: list[dict[str, Any]], known: tuple[str, ...], backend: str, folder: Path) -> None:
    """Rounds of a learner, and of those that are saved, opened and restored between any two of its steps."""
    rng, folder_ = np.random.default_rng(5), folder / "journal"
    one, saved, fleet = (f(backend=backend) for f in (plan.learner, plan.learner, lambda **o: plan.fleet(2, **o)))
    module: Any = sys.modules["left"]
    written, journaled = module.Learner(), oco.open(plan, folder_, backend=backend)
    for t, row in enumerate(data, 1):
        context = {name: row[name] for name in known}
        x = one.decide(**context)
        for other in (saved, journaled):
            assert np.array_equal(other.decide(**context), x)
        pairs = {name: np.stack([v, v]) for name, v in context.items()}
        assert np.array_equal(fleet.decide(**pairs)[0], x)
        np.testing.assert_allclose(written.decide(**context), x, atol=1e-9)
        for k in rng.permutation(one.pending):
            if k == t - DELAY or rng.random() < 0.3:
                given = {name: value for name, value in data[k - 1].items() if name not in known}
                for other in (one, saved, journaled, written):
                    other.skip(round=int(k)) if k % 5 == 0 else other.observe(round=int(k), **given)
                both = {name: np.stack([v, v]) for name, v in data[k - 1].items()}
                fleet.skip(round=int(k)) if k % 5 == 0 else fleet.observe(round=int(k), **both)
            if rng.random() < 0.15:
                saved = oco.restore(json.loads(json.dumps(saved.state())))
                written = module.Learner.from_state(json.loads(json.dumps(written.state())))
                journaled.close()
                journaled = oco.open(plan, folder_, backend=backend)
                fleet.save(folder / "fleet")
                fleet = oco.restore_fleet(folder / "fleet")
                for k in fleet.pending if known else ():  # contexts are given again
                    fleet.decide(round=k, **{name: np.stack([data[k - 1][name]] * 2) for name in known})
    journaled.close()


@needs_compiler
@pytest.mark.parametrize("text", [RULE, thorough(TOGETHER), BUDGET], ids=["alone", "together", "budget"])
def test_written_c_hands_on_too(text: str, tmp_path: Path) -> None:
    known, data, plan = CONTEXTS[text], rounds(text, 6, 14), plan_of(text)
    plan.write(tmp_path, backend="c")
    name = plan.program.name
    shutil.copy(tmp_path / f"{name}.py", tmp_path / "desk.py")  # the name that `binding` reads
    command = ["cc", *STRICT, "-O0", "-shared", "-fPIC", f"{name}.c", "-o", f"lib{name}.so", "-lm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    own = np.array(play(plan.learner(backend="numpy"), data, known, DELAY, 7))
    state = "stored" if text is RULE else "level"
    carried = {"prev_p": before(text, own), state: levels(text, data, own)} if text is not BUDGET else {}
    carried |= {"spent_spend": np.zeros(len(data))} if text is BUDGET else {}  # counted by the learner itself
    rows = [row | {n: v[t] for n, v in carried.items()} for t, row in enumerate(data)]
    ring = Saved(binding(tmp_path), rows)
    np.testing.assert_allclose(play(ring, data, known, DELAY, 7), own, atol=1e-9)


class Saved:
    """Binding whose learner is saved and loaded before each call, and whose inputs have what was known of their rounds."""

    def __init__(self, module: Any, data: list[dict[str, Any]]) -> None:
        self.module, self.learner, self.data = module, module.Learner(), data

    @property
    def pending(self) -> tuple[int, ...]:
        return tuple(self.learner.pending)

    def decide(self, **context: Any) -> Any:
        again = self.module.Learner()
        again.load(self.learner.save())
        self.learner = again
        return np.array(self.learner.decide(**context)["p"])

    def observe(self, round: int, **_: Any) -> None:
        self.learner.observe(round=round, **self.data[round - 1])

    def skip(self, round: int) -> None:
        self.learner.skip(round=round)


def test_the_guarantee_counts_moves_between_learners() -> None:
    """Prices that drive two learners in turn to opposite ends: each round pays for a move across the domain."""
    text = "model swing\nhorizon T = 200\ndecision p[2] in box(0, 2)\nstream price[2] in [-1, 1]\n"
    text += "minimize price @ p + 0.3 * norm1(p - prev(p))\nusing ogd\nfeedback full delayed 1\n"
    plan = plan_of(text)
    price = np.repeat(np.where(np.arange(200) % 2, 0.2, -0.2)[:, None], 2, axis=1)
    trace = plan.run({"price": price}, backend="c")
    paid = 0.3 * abs(trace.decisions - before(text, trace.decisions)).sum()
    assert paid > 0.8 * 0.3 * 4 * 199
    assert plan.guarantee.regret() >= max(paid, trace.regret("static")[-1]) > 0
    prefix = trace.regret("static", prefix=True)
    there = ~np.isnan(prefix)
    assert (prefix[there] <= plan.guarantee.regret_curve(200)[there] + 1e-9).all()
