"""Constraints in total: `spend: c @ x <= B in total` is never exceeded, whatever comes."""

from __future__ import annotations

import importlib.util
from itertools import product
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from driving import plan_for
from thorough import corners

import oco
from oco.backends.saved import learner_state
from oco.compiler.problem.canonical import canonical
from oco.dsl.diagnostics import OcoError
from oco.dsl.text.formatter import format_text
from oco.evaluation.summary import summarize

T, B = 120, 30.0
TEXT = format_text("""\
model pace

horizon T = 120

decision x[3] in box(0, 1)

context cost[3] in [0, 1]
stream price[3] in [-1, 1]
stream wear in [0.5, 2]

minimize price @ x

subject to
    spend: wear * cost @ x <= 30  in total
""")
LATER = TEXT.replace("context cost", "stream cost")
CURVED = TEXT.replace("wear * cost @ x", "sum(wear * cost * x ** 2) + 0.1 * sum_squares(x)")
BACKENDS = ("numpy", "c")


def test_text_and_builder_say_the_same() -> None:
    model = oco.parse(TEXT)
    assert oco.parse(model.to_oco()) == model and "<= 30  in total" in model.to_oco()
    m = oco.Model("pace", horizon=120)
    x = m.decision("x", 3, domain=oco.box(0, 1))
    cost, price = m.context("cost", 3, bounds=(0, 1)), m.stream("price", 3, bounds=(-1, 1))
    wear = m.stream("wear", bounds=(0.5, 2))
    m.minimize(price @ x)
    m.subject_to(wear * cost @ x <= 30, "spend", in_total=True)
    assert m.build() == model
    assert "in total" in model._repr_latex_() and "<b>in total</b>" in model._repr_html_()
    with pytest.raises(OcoError, match="in_total"):
        m.subject_to(x <= 1, "both", in_total=True, each_round=True)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("cost @ x <= 30", "cost @ x == 30", "equality"),
        ("in total", "in total, penalty 3", "penalty"),
        ("cost[3] in [0, 1]", "cost[3] in [-1, 1]", "at least 0"),
        ("wear * cost @ x <= 30", "30 <= wear * cost @ x", "one fixed total"),
        ("cost @ x <= 30", "cost @ x <= 30 * price[0]", "one fixed total"),
        ("cost @ x <= 30", "cost @ x <= -1", "negative"),
        ("wear in [0.5, 2]", "wear iid", "at least 0"),
        ("wear * cost @ x", "square(wear - 1) * cost @ x", "no value at which"),
        ("box(0, 1)", "box(0.1, 1)", "no decision is seen to cost nothing"),
        ("horizon T = 120", "horizon T unknown", "number is unknown"),
        ("in total\n", "in total\n\nfeedback bandit\n", "full feedback"),
        ("in total\n", "in total\n    least: sum(x) >= cost[0]  each round\n", "may break `least`"),
        ("in total\n", "in total\n    ramp: sum(x) - sum(prev(x)) >= -0.1  each round\n", "may break `ramp`"),
        ("in total\n", "in total\n    often: sum(x) >= wear  in 90% of rounds\n", "may break `often`"),
    ],
)
def test_where_nothing_makes_sure_of_it(old: str, new: str, words: str) -> None:
    with pytest.raises(OcoError) as caught:
        canonical(oco.parse(TEXT.replace(old, new)))
    assert caught.value.code == "OCO750" and words in caught.value.message


def revealed(kind: str, rng: np.random.Generator, t: int) -> dict[str, Any]:
    """Round that wants to spend, of this kind."""
    cost = np.ones(3) if kind == "all" or (kind == "late" and t > T / 2) else rng.uniform(0, 1, 3)
    cost = np.zeros(3) if kind == "late" and t <= T / 2 else cost
    return {"cost": cost, "wear": 2.0 if kind != "drawn" else rng.uniform(0.5, 2), "price": -np.ones(3)}


SPENDING = {"context": TEXT, "stream": LATER, "curved": CURVED}
WISHES = ("all", "late", "drawn")


@pytest.mark.parametrize(
    ("name", "kind", "backend"),
    corners(
        product(SPENDING, WISHES, BACKENDS),
        [("context", "late", "c"), ("stream", "all", "numpy"), ("curved", "drawn", "c")],
    ),
)
def test_it_is_never_exceeded_and_spending_keeps_to_the_plan(name: str, kind: str, backend: str) -> None:
    text = SPENDING[name]
    learner, rng, spent = plan_for(text).learner(backend=backend), np.random.default_rng(5), 0.0
    for t in range(1, T + 11):  # also after the last round
        r = revealed(kind, rng, t)
        known = {"cost": r["cost"]} if "context" in text else {}
        x = np.asarray(learner.decide(**known))
        learner.observe(**{n: v for n, v in r.items() if n not in known})
        own = r["wear"] * r["cost"] @ (x if text is not CURVED else x**2) + (0.1 * x @ x if text is CURVED else 0)
        spent += own
        assert spent <= B * min(t, T) / T
        np.testing.assert_allclose(learner.value("kept_spent_spend"), spent, atol=1e-9)
    if kind == "all" or (kind == "late" and text is TEXT):
        assert spent > 0.99 * B  # and it is used


def data_of(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    price = rng.uniform(-1, 0.3, (T, 3))
    return {"cost": rng.uniform(0, 1, (T, 3)), "wear": rng.uniform(0.5, 2, T), "price": price}


def test_runs_report_what_was_spent_and_comparators_keep_the_total() -> None:
    plan, data = plan_for(TEXT), data_of(1)
    traces = [plan.run(data, backend=b) for b in BACKENDS]
    np.testing.assert_allclose(traces[0].decisions, traces[1].decisions, atol=1e-9)
    trace, costs = traces[0], data["wear"][:, None] * data["cost"]
    spent = float((costs * np.asarray(trace.decisions)).sum())
    line = summarize(trace, ("static",)).violation[0]
    assert line.timing == "in total" and line.total == B and line.rounds == 0
    assert line.spent == pytest.approx(spent, abs=1e-9)
    assert trace.violation("hard", total="papers")[-1] == 0
    u = cp.Variable(3)
    best = cp.Problem(cp.Minimize(data["price"].sum(axis=0) @ u), [u >= 0, u <= 1, costs.sum(axis=0) @ u <= B]).solve()
    assert trace.comparator("static").value == pytest.approx(best, rel=1e-6)
    moving = trace.comparator("dynamic")
    assert (costs * moving.decision["x"]).sum() <= B * (1 + 1e-6)
    assert "is spent, on every sequence" in "\n".join(plan.contract.guarantee)


def test_regret_against_decisions_within_the_plan_is_as_guaranteed() -> None:
    plan = oco.compile(oco.parse(TEXT.replace("stream wear in [0.5, 2]", "").replace("wear * ", "")))
    for seed in range(5):
        data = {n: v for n, v in data_of(seed).items() if n != "wear"}
        trace, u = plan.run(data, backend="c"), cp.Variable(3)
        within = [u >= 0, u <= 1, data["cost"] @ u <= B / T]
        best = cp.Problem(cp.Minimize(data["price"].sum(axis=0) @ u), within).solve()
        assert trace.loss.sum() - best <= plan.guarantee.regret_curve(T)[-1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_saved_states_carry_what_was_spent(backend: str) -> None:
    plan, data = plan_for(TEXT), data_of(3)
    learner = plan.learner(backend=backend)
    for t in range(20):
        learner.decide(cost=data["cost"][t])
        learner.observe(price=data["price"][t], wear=data["wear"][t])
    again = oco.restore(learner_state(learner))
    assert again.value("kept_spent_spend") > 0
    np.testing.assert_array_equal(again.decide(cost=data["cost"][20]), learner.decide(cost=data["cost"][20]))


def test_emitted_modules_count_what_is_spent(tmp_path: Path) -> None:
    plan, data = plan_for(TEXT), data_of(4)
    (path,) = [p for p in plan.write(tmp_path / "pace.py") if p.suffix == ".py"]
    spec = importlib.util.spec_from_file_location("pace", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    one, other = module.Learner(), plan.learner(backend="numpy")
    for t in range(30):
        np.testing.assert_array_equal(one.decide(cost=data["cost"][t]), other.decide(cost=data["cost"][t]))
        rest = {n: data[n][t] for n in ("price", "wear")}
        one.observe(**rest)
        other.observe(**rest)


def test_a_state_spends_by_another_plan_and_never_more() -> None:
    """What is left for each unit of a known need, of which 2 a round are expected: more is earned than by an even plan."""
    text = """\
model plan
horizon T = 60
decision x[2] in box(0, 1) with sum(x) <= 1
context need in [0, 8]
context fee[2] in [1, 6]
stream worth[2] in [0, 9]
{state}maximize need * worth @ x
subject to
    spend: need * fee @ x <= {plan}
"""
    state = "state left = left - need * fee @ x in [0, 180] start 180\n"
    ends = [(state, "left * need / (2 * (T - t + 1))  each round"), ("", "180  in total")]
    rng = np.random.default_rng(7)
    need = np.where(np.arange(60) < 45, 0.8, 5.6) * rng.uniform(0.8, 1.2, 60)
    data = {"need": need, "fee": np.tile([2.0, 5.0], (60, 1)), "worth": rng.uniform(0.9, 1.1, (60, 2)) * [4.0, 6.0]}
    earned = []
    for own, plan in ends:
        trace = oco.compile(oco.parse(text.format(state=own, plan=plan)), "hedged").run(data, backend="numpy")
        spent = (need[:, None] * data["fee"] * np.asarray(trace.decisions)).sum()
        assert spent <= 180 * (1 + 1e-7)
        earned.append(-trace.loss.sum())
    assert earned[0] > 1.1 * earned[1]
