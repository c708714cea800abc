"""Previous decisions: `prev(x)` in known constraints, in the text, the builder and learners of every backend."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import oco
from oco.backends.registry import restored
from oco.compiler.problem.canonical import canonical

T = 40
TEXT = """\
model dispatch

horizon T = 40

decision p[3] in box(0, 8)
decision q in box(-2, 2)

context load in [3, 9]
stream price[3] in [-1, 5]

minimize price @ p + q

subject to
    balance: sum(p) + q >= load     each round
    up:      p - prev(p) <= 0.5     each round
    down:    prev(p) - p <= 0.8     each round
    tie:     q - 0.5 * prev(q) >= -1  each round
"""
RAMP = """\
model ramp
horizon T = 40
decision p[2] in ball(3)
stream price[2] in [-1, 5]
minimize price @ p
subject to
    up: sum(p) - sum(prev(p)) <= 0.2  each round
    down: sum(prev(p)) - sum(p) <= 0.1  each round
"""
BACKENDS = ("numpy", "c")


@cache
def plan_of(text: str) -> Any:
    """Plan of gradient descent, whose decisions are the nearest points, where no constraint is learned."""
    model = oco.parse(text)
    return oco.compile(model, None if canonical(model).learned.inequalities else "ogd")


def rounds(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"load": 4 + np.sin(np.arange(T) / 6), "price": rng.uniform(-1, 5, (T, 3))}


def test_text_and_builder_say_the_same() -> None:
    model = oco.parse(TEXT)
    assert oco.parse(model.to_oco()) == model
    m = oco.Model("dispatch", horizon=40)
    p, q = m.decision("p", 3, domain=oco.box(0, 8)), m.decision("q", domain=oco.box(-2, 2))
    load, price = m.context("load", bounds=(3, 9)), m.stream("price", 3, bounds=(-1, 5))
    m.minimize(price @ p + q)
    m.subject_to(oco.sum(p) + q >= load, name="balance", each_round=True)
    m.subject_to(p - oco.prev(p) <= 0.5, name="up", each_round=True)
    m.subject_to(oco.prev(p) - p <= 0.8, name="down", each_round=True)
    m.subject_to(q - 0.5 * oco.prev(q) >= -1, name="tie", each_round=True)
    assert m.to_oco() == model.to_oco()
    assert "p - p_{t-1} \\le 0.5" in model._repr_latex_()
    assert oco.parse(TEXT.replace("horizon T = 40", "param n = 3\nhorizon T = 40").replace("p[3]", "p[n]")).to_oco()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("prev(p) - p <= 0.8     each round", "prev(p) - p <= 0.8     on average", "OCO217"),
        ("prev(p) - p <= 0.8", "norm2(prev(p) - p) + norm2(p) <= 0.8", "OCO217"),
        ("prev(p) - p <= 0.8", "prev(p) - p <= 0.1 * price", "OCO217"),
        ("prev(p) - p", "prev(load) - p", "OCO217"),
        ("prev(p) - p", "prev(p, q) - p", "OCO217"),
        ("prev(p) - p", "prev - p", "OCO111"),
    ],
)
def test_where_previous_decisions_cannot_stand(old: str, new: str, code: str) -> None:
    with pytest.raises(oco.OcoError) as caught:
        canonical(oco.parse(TEXT.replace(old, new)))
    (found,) = caught.value.diagnostics
    assert found.code == code and found.span is not None and "prev" in found.span.text


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_decision_is_the_nearest_one_within_reach_of_the_last(backend: str) -> None:
    plan, data = plan_of(TEXT), rounds(1)
    learner, scales = plan.learner(backend=backend), plan._spec.scales
    last = {"p": np.full(3, 4.0), "q": np.zeros(())}
    p, q, near, load, before = cp.Variable(3), cp.Variable(), cp.Parameter(4), cp.Parameter(), cp.Parameter(4)
    rows = [p >= 0, p <= 8, q >= -2, q <= 2, cp.sum(p) + q >= load]
    rows += [p - before[:3] <= 0.5, before[:3] - p <= 0.8, q - 0.5 * before[3] >= -1]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(cp.hstack([p, q]) - near)), rows)
    for t in range(T):
        own = [np.asarray(learner.values[f"x_{n}"]) for n in ("p", "q")]
        y = [o + scales.radius * u for o, u in zip(scales.origins, own)]
        x = learner.decide(load=data["load"][t])
        feedback = learner.observe(price=data["price"][t])
        near.value, load.value, before.value = np.hstack(y), data["load"][t], np.hstack([last["p"], last["q"]])
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        assert feedback.violation.max() <= 1e-9
        moved = np.concatenate([x["p"] - last["p"] - 0.5, last["p"] - x["p"] - 0.8])
        np.testing.assert_allclose(feedback.constraints[1:7], moved, atol=1e-9)
        assert np.sum((x["p"] - y[0]) ** 2) + (x["q"] - y[1]) ** 2 <= problem.value + 1e-7
        last = x


def test_c_decides_as_numpy_does_and_a_run_as_a_learner() -> None:
    plan, data = plan_of(TEXT), rounds(2)
    traces = [plan.run(data, backend=b) for b in BACKENDS]
    for name in ("p", "q"):
        np.testing.assert_allclose(traces[0].decisions[name], traces[1].decisions[name], atol=1e-9)
    assert traces[0].constraints.max() <= 1e-9
    assert np.diff(traces[0].decisions["p"], axis=0).max() <= 0.5 + 1e-9
    fixed = traces[0].comparator("static").decision
    assert fixed["p"].sum() + fixed["q"] >= data["load"].max() - 1e-6
    assert traces[0].comparator("dynamic").value <= traces[0].comparator("static").value + 1e-6


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_contexts_states_and_journals_continue_bit_for_bit(backend: str, tmp_path: Path) -> None:
    plan, data = plan_of(RAMP), rounds(3)["price"][:, :2]
    learner, journaled = plan.learner(backend=backend), oco.open(plan, tmp_path, backend=backend)
    fleet = plan.fleet(2, backend=backend)
    last = np.zeros(2)
    for t in range(8):
        x = learner.decide()
        assert -0.1 - 1e-9 <= x.sum() - last.sum() <= 0.2 + 1e-9 and np.linalg.norm(x) <= 3 + 1e-9
        np.testing.assert_array_equal(x, journaled.decide())
        np.testing.assert_array_equal(fleet.decide(), [x, x])
        learner = restored(learner.state(), learner.compiled, learner.contract)
        np.testing.assert_array_equal(learner.decide(), x)
        if t == 5:
            journaled.close()
            journaled = oco.open(plan, tmp_path, backend=backend)
            np.testing.assert_array_equal(journaled.decide(), x)
            assert journaled.observe(round=3, price=data[2]).round == 3
        feedbacks = [learner.observe(price=data[t]), journaled.observe(price=data[t])]
        assert feedbacks[0].violation.max() <= 1e-9 and feedbacks[0].loss == feedbacks[1].loss
        fleet.observe(price=np.stack([data[t]] * 2))
        last = x
    journaled.close()


def test_the_emitted_module_knows_its_last_decision() -> None:
    plan, data = plan_of(TEXT), rounds(4)
    space: dict[str, Any] = {"__name__": "dispatch"}
    exec(compile(plan.source("numpy"), "dispatch.py", "exec"), space)
    own, learner = space["Learner"](), plan.learner(backend="numpy")
    for t in range(8):
        x, z = (a.decide(load=data["load"][t]) for a in (own, learner))
        np.testing.assert_array_equal(x["p"], z["p"])
        learner.decide()
        own.decide()
        seen = own.observe(price=data["price"][t]), learner.observe(price=data["price"][t])
        np.testing.assert_array_equal(seen[0].constraints, seen[1].constraints)


def test_nothing_is_promised_where_decisions_may_not_move_freely() -> None:
    plan = plan_of(RAMP)
    assert plan.guarantee is None
    assert [d.code for d in plan.warnings] == ["OCO704"]
    assert "`up`, `down`" in plan.warnings[0].message
