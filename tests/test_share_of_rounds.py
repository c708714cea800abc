"""Constraints that may be broken in a share of the rounds: learned margins, and their bound on every sequence."""

from __future__ import annotations

import importlib.util
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from thorough import corners

import oco
from oco.backends.saved import learner_state
from oco.cli import main
from oco.compiler.problem.canonical import canonical
from oco.dsl.diagnostics import OcoError
from oco.dsl.text.formatter import format_text
from oco.evaluation.report.verdict import kept_constraints
from oco.evaluation.summary import summarize

T = 200
TEXT = """\
model reserve

horizon T = 200

decision p[2] in box(0, 40)

context need[2] in [0, 9]
stream price[2] in [-9, 9]
stream calls[2] in [0, 12]
stream eff[2] in [0.8, 1.2]

minimize price @ p

subject to
    total: sum(p) >= sum(need)          each round
    reserve: eff * p >= need + calls - 3  in 90% of rounds
"""
TEXT = format_text(TEXT)
BACKENDS = ("numpy", "c")
KINDS = ("worst", "barely", "lulls", "when the margin is least", "drawn")
SHARE, M = 0.1, 0.2 * 40 + 6.0
"""Share that may be broken, and the margin that is always enough: 0.2 p + calls - 6 at the greatest p."""
AT_PREDICTED = 0.4 * 40 + 6.0
"""Margin that is always enough at what is predicted of `eff`, between 0.8 and 1.2."""


@cache
def plan_of(text: str = TEXT) -> Any:
    return oco.compile(oco.parse(text))


def test_text_and_builder_say_the_same() -> None:
    model = oco.parse(TEXT)
    assert oco.parse(model.to_oco()) == model and "in 90% of rounds" in model.to_oco()
    m = oco.Model("reserve", horizon=200)
    p = m.decision("p", 2, domain=oco.box(0, 40))
    need = m.context("need", 2, bounds=(0, 9))
    price, calls = m.stream("price", 2, bounds=(-9, 9)), m.stream("calls", 2, bounds=(0, 12))
    eff = m.stream("eff", 2, bounds=(0.8, 1.2))
    m.minimize(price @ p)
    m.subject_to(oco.sum(p) >= oco.sum(need), "total", each_round=True)
    m.subject_to(eff * p >= need + calls - 3, "reserve", percent=90)
    assert m.build() == model
    assert r"in 90\% of rounds" in model._repr_latex_()
    assert "<b>in 90% of rounds</b>" in model._repr_html_()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("in 90% of rounds", "in 100% of rounds", "less than 100%"),
        ("in 90% of rounds", "in 20% of rounds", "at least 50%"),
        ("in 90% of rounds", "in 90% of rounds, penalty 3", "penalty"),
        ("reserve: eff * p >=", "reserve: eff * p ==", "equality"),
        ("calls[2] in [0, 12]", "calls[2] iid", "no bounds"),
        ("of rounds\n", "of rounds\n\nfeedback bandit\n", "full feedback"),
    ],
)
def test_where_no_margin_can_be_learned(old: str, new: str, words: str) -> None:
    with pytest.raises(OcoError) as caught:
        canonical(oco.parse(TEXT.replace(old, new)))
    assert caught.value.code == "OCO528" and words in caught.value.message
    if words == "no bounds":
        assert "`stream calls[2] in [lo, hi]`" in caught.value.diagnostics[0].hint


def test_the_margin_that_is_always_enough_is_exact() -> None:
    margin = next(c.margin for c in canonical(oco.parse(TEXT)).inequalities if c.margin is not None)
    np.testing.assert_allclose(margin.most, M, rtol=1e-7)
    assert margin.allowed(T) == pytest.approx(SHARE * T + 1 - SHARE)
    words = "\n".join(plan_of().contract.guarantee)
    assert "at most 0.1 of the rounds and one more" in words and "room for its streams at their worst" in words
    assert "static regret" in words


@pytest.mark.parametrize("backend", corners(BACKENDS, ["c"]))
def test_a_share_is_learned_where_no_decision_serves_every_value_that_streams_may_have(backend: str) -> None:
    """Calls may be 250 where all agents take 150: the margin goes as far as they do, nothing is promised, and the share comes out."""
    text = """
model helpdesk
horizon T = 600
decision agents in box(0, 30)
stream calls in [0, 250]
stream pace  in [5, 12]
minimize agents
subject to
    phone: calls - pace * agents <= 0    in 90% of rounds
"""
    margin = next(c.margin for c in canonical(oco.parse(text)).inequalities if c.margin is not None)
    np.testing.assert_allclose(margin.most, 8.5 * 30 - 125, rtol=1e-6)
    assert not margin.enough
    plan, rng = oco.compile(oco.parse(text)), np.random.default_rng(0)
    assert "of its share nothing is promised" in "\n".join(plan.contract.guarantee)
    hours = np.arange(600) % 24
    data = {"calls": 40 + 30 * (hours > 8) + rng.uniform(0, 20, 600), "pace": rng.uniform(7, 9, 600)}
    run = plan.run(data, backend=backend)
    assert (run.constraints > 0).sum() <= margin.allowed(600)
    assert run.decisions.mean() < 0.6 * 30


def lent(t: int) -> float:
    """Rounds that may be broken on credit in the first t of T: paid back by round T, at most the share of a round in each."""
    left = max(T - t, 0)
    return float(min(np.sqrt(SHARE * left / 2), SHARE * left))


def test_loans_are_paid_back() -> None:
    margin = next(c.margin for c in canonical(oco.parse(TEXT)).inequalities if c.margin is not None)
    loans = np.array([margin.allowed(t) - margin.share * t - 1 + margin.share for t in range(T + 3)])
    np.testing.assert_allclose(loans, [lent(t) for t in range(T + 3)], atol=1e-12)
    assert (abs(loans[T:]) < 1e-12).all() and (np.diff(loans) >= -SHARE - 1e-12).all()


def adversary(kind: str, rng: np.random.Generator, x: Any, need: Any, margin: Any, t: int) -> dict[str, Any]:
    worst = {"eff": np.full(2, 0.8), "calls": np.full(2, 12.0)}
    if kind == "worst":
        return worst
    if kind == "barely":
        return {"eff": np.full(2, 0.8), "calls": np.clip(0.8 * x - need + 3 + 1e-7, 0, 12)}
    if kind == "lulls":
        return worst if t % 97 > 60 else {"eff": np.full(2, 1.2), "calls": np.zeros(2)}
    if kind == "when the margin is least":
        return worst if (margin < 0.2 * M).any() else {"eff": np.full(2, 1.2), "calls": np.zeros(2)}
    return {"eff": rng.uniform(0.8, 1.2, 2), "calls": rng.uniform(0, 12, 2)}


@pytest.mark.parametrize(("backend", "kind"), corners(product(BACKENDS, KINDS), [("c", k) for k in KINDS]))
def test_the_share_never_exceeds_its_bound_whatever_comes(kind: str, backend: str) -> None:
    learner, rng = plan_of().learner(backend=backend), np.random.default_rng(11)
    broken = np.zeros(2)
    for t in range(T):
        need = rng.uniform(0, 9, 2)
        x = learner.decide(need=need)
        margin = np.asarray(learner.value("kept_margin_reserve"))
        revealed = adversary(kind, rng, np.asarray(x), need, margin, t)
        feedback = learner.observe(price=rng.uniform(4, 9, 2), **revealed)
        assert feedback.constraints[0] <= 1e-8  # the other known constraint is met in every round
        g = need + revealed["calls"] - 3 - revealed["eff"] * x
        np.testing.assert_allclose(feedback.constraints[1:], g, atol=1e-9)
        broken += feedback.constraints[1:] > 0
        assert (broken <= SHARE * (t + 1) + 1 - SHARE + lent(t + 1)).all()
        credit = SHARE * (t + 1) - broken
        np.testing.assert_allclose(learner.value("kept_credit_reserve"), credit, atol=1e-9)
        margin = np.asarray(learner.value("kept_margin_reserve"))
        assert (abs(margin) <= AT_PREDICTED * (1 + 1e-7)).all()
        np.testing.assert_allclose(margin[credit + lent(t + 2) < 1e-10], M, rtol=1e-7)
    assert (broken <= SHARE * T + 1 - SHARE).all()
    if kind in ("worst", "barely"):
        assert broken.min() > 0.5 * SHARE * T  # the share that is allowed is used


def data_of(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "need": rng.uniform(0, 9, (T, 2)),
        "price": rng.uniform(-2, 9, (T, 2)),
        "calls": np.clip(rng.exponential(2, (T, 2)), 0, 12),
        "eff": rng.uniform(0.9, 1.1, (T, 2)),
    }


@cache
def trace_of(backend: str) -> Any:
    return plan_of().run(data_of(2), backend=backend)


def test_c_decides_as_numpy_does_and_reports_count_broken_rounds() -> None:
    traces = [trace_of(b) for b in BACKENDS]
    np.testing.assert_allclose(traces[0].decisions, traces[1].decisions, atol=1e-9)
    trace = traces[0]
    lines = {v.label: v for v in summarize(trace, ("static",)).violation}
    for k, label in enumerate(("reserve[0]", "reserve[1]")):
        rounds = int((trace.constraints[:, 1 + k] > 0).sum())
        assert 0 < rounds <= SHARE * T + 1 - SHARE
        assert lines[label].rounds <= rounds and lines[label].allowed == pytest.approx(SHARE * T + 1 - SHARE)
        assert lines[label].timing == "in 90% of rounds"
    assert trace.violation("hard", total="papers")[-1] <= 1e-6 < trace.violation("hard")[-1].max()
    fixed, need = trace.comparator("static").decision["p"], trace.data.array("need")
    assert (0.8 * fixed >= need.max(axis=0) + 12 - 3 - 1e-5).all()  # in every round it is enough whatever comes
    assert trace.loss.sum() < (trace.data.array("price") @ fixed).sum()


def test_a_share_that_was_kept_is_not_reported_as_broken() -> None:
    """Each entry has its own rounds: those in which any was broken may be more than the share allows."""
    trace = trace_of("c")
    broken = (trace.constraints[:, 1:3] > 1e-9).sum(axis=0)
    (record,) = [c for c in kept_constraints(trace) if c.label == "reserve"]
    assert not record.broken and f"broken in {broken.max()} of {T:,} rounds" in record.words
    assert f"at the entry that was most, {int(SHARE * T + 1 - SHARE)} allowed" in record.words


def test_a_run_without_rules_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Rules take a solver's step a round here: those that had no time leave a line with the way out."""
    monkeypatch.setattr("oco.evaluation.baselines.rules.CHEAP_SECONDS", 1e-9)
    (tmp_path / "m.oco").write_text(TEXT)
    words = [
        "--data",
        "drawn",
        "--rounds",
        "20",
        "--comparators",
        "none",
        "--backend",
        "numpy",
        "--algorithms",
        "hedged",
    ]
    assert main(["run", str(tmp_path / "m.oco"), *words]) == 0
    assert (
        "no rule to compare with: solving 40 problems is more than the work for one rule; --baselines all"
        in " ".join(capsys.readouterr().err.split())
    )


@pytest.mark.parametrize("backend", corners(BACKENDS, ["c"]))
def test_saved_states_carry_the_margin(backend: str) -> None:
    plan, data = plan_of(), data_of(3)
    learner = plan.learner(backend=backend)
    for t in range(20):
        learner.decide(need=data["need"][t])
        learner.observe(**{n: data[n][t] for n in ("price", "calls", "eff")})
    again = oco.restore(learner_state(learner))
    np.testing.assert_array_equal(again.value("kept_margin_reserve"), learner.value("kept_margin_reserve"))
    np.testing.assert_array_equal(again.decide(need=data["need"][20]), learner.decide(need=data["need"][20]))


def test_emitted_modules_learn_the_margin(tmp_path: Path) -> None:
    plan, data = plan_of(), data_of(4)
    (path,) = [p for p in plan.write(tmp_path / "reserve.py") if p.suffix == ".py"]
    spec = importlib.util.spec_from_file_location("reserve", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    one, other = module.Learner(), plan.learner(backend="numpy")
    for t in range(40):
        np.testing.assert_array_equal(one.decide(need=data["need"][t]), other.decide(need=data["need"][t]))
        rest = {n: data[n][t] for n in ("price", "calls", "eff")}
        one.observe(**rest)
        other.observe(**rest)
