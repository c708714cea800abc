"""Delayed feedback: learners in turn, open rounds in any order, rounds left out, and the guarantee of Joulani et al. 2013."""

from __future__ import annotations

import pickle
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oco
from oco.compiler.problem.canonical import canonical
from oco.dsl.bind import bind
from oco.evaluation.baselines.rules import RuleChoice, beside
from oco.evaluation.cost import Trade

T, DELAY = 41, 3
TEXT = """\
model late

horizon T = 41

decision x[2] in box(-1, 1)

stream a[2] in [-1, 1]

minimize sum_squares(x - a)

feedback full delayed 3
"""
SERVED = """\
model served
horizon T = 40
decision x[2] in box(0, 8)
context load in [1, 9]
stream price[2] in [0, 5]
stream need in [0, 10]
minimize price @ x
subject to
    known: sum(x) >= load - 1  each round
    serve: sum(x) >= need  each round
using ogd
feedback full delayed 2
"""
LINEAR = TEXT.replace("sum_squares(x - a)", "a @ x")
BACKENDS = ("numpy", "c")


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text))


def rounds(seed: int) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, (T, 2))


def interleaved(text: str, a: Any) -> Any:
    """Decisions of learners that know no delay, each on every fourth round."""
    own = text.replace("feedback full delayed 3\n", "").replace("T = 41", f"T = {-(-T // (DELAY + 1))}")
    x = np.zeros((T, 2))
    for turn in range(DELAY + 1):
        learner = plan_of(own).learner(backend="numpy")
        for t in range(turn, T, DELAY + 1):
            x[t] = learner.decide()
            learner.observe(a=a[t])
    return x


def test_text_and_builder_say_the_same() -> None:
    model = oco.parse(TEXT)
    assert model.to_oco() == TEXT and canonical(model).delay == 3
    m = oco.Model("late", horizon=41)
    x, a = m.decision("x", 2, domain=oco.box(-1, 1)), m.stream("a", 2, bounds=(-1, 1))
    m.minimize(oco.sum_squares(x - a))
    m.feedback("full", delayed=3)
    assert m.build() == model
    named = oco.parse(TEXT.replace("delayed 3", "delayed 2 * d").replace("horizon", "param d\n\nhorizon", 1))
    assert "feedback full delayed 2 * d" in named.to_oco()
    assert canonical(bind(named, {"d": 2})).delay == 4
    assert canonical(oco.parse(TEXT.replace("delayed 3", "delayed 0"))).delay == 0
    assert "<b>feedback</b>" in model._repr_html_()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("delayed 3", "delayed 2.5", "number of rounds"),
        ("delayed 3", "delayed (0 - 1)", "number of rounds"),
        ("minimize", "stream k in 0..1\nstate s = [0, 1][k] in [0, 9] start 1\n\nminimize", "`k` picks entries"),
    ],
)
def test_what_cannot_stand_beside_it(old: str, new: str, words: str) -> None:
    with pytest.raises(oco.OcoError) as caught:
        canonical(oco.parse(TEXT.replace(old, new)))
    assert caught.value.code == "OCO540" and words in caught.value.message
    assert caught.value.diagnostics[0].span is not None


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("text", [TEXT, LINEAR], ids=["squares", "linear"])
def test_a_run_is_that_of_learners_in_turn(text: str, backend: str) -> None:
    a = rounds(1)
    trace = plan_of(text).run({"a": a}, backend=backend)
    np.testing.assert_allclose(trace.decisions, interleaved(text, a), atol=1e-12)
    assert np.array_equal(plan_of(text).replay(trace).decisions, trace.decisions)


@pytest.mark.parametrize("backend", BACKENDS)
def test_feedback_comes_in_any_order(backend: str) -> None:
    a, rng = rounds(2), np.random.default_rng(3)
    x, learner = interleaved(TEXT, a), plan_of(TEXT).learner(backend=backend)
    for t in range(1, T + 1):
        assert learner.round == t
        np.testing.assert_allclose(learner.decide(), x[t - 1], atol=1e-12)
        np.testing.assert_allclose(learner.decide(round=t), x[t - 1], atol=1e-12)
        due = [k for k in learner.pending if k == t - DELAY]
        for k in [*due, *(k for k in rng.permutation(learner.pending) if k not in due and rng.random() < 0.3)]:
            feedback = learner.observe(round=int(k), a=a[k - 1])
            assert feedback.round == k
            assert feedback.loss == pytest.approx(np.sum((x[k - 1] - a[k - 1]) ** 2), abs=1e-12)


def test_late_early_and_repeated_feedback_is_refused() -> None:
    learner = plan_of(TEXT).learner()
    with pytest.raises(oco.OcoError, match="no round is open"):
        learner.observe(a=[0, 0])
    for _ in range(DELAY + 1):
        learner.decide()
    assert learner.pending == (1, 2, 3, 4)
    for call, words in (
        (lambda: learner.decide(), "round 5 needs the feedback of round 1"),
        (lambda: learner.observe(round=5, a=[0, 0]), "round 5 is not decided yet"),
        (lambda: learner.observe(round="x", a=[0, 0]), "integer from 1"),
        (lambda: learner.decide(round=9), "not decided yet"),
    ):
        with pytest.raises(oco.OcoError, match=words) as caught:
            call()
        assert caught.value.code == "OCO869" and caught.value.hint
    assert learner.observe(a=[0, 0]).round == 1
    with pytest.raises(oco.OcoError, match="round 1 is over"):
        learner.observe(round=1, a=[0, 0])
    with pytest.raises(oco.OcoError):
        learner.observe(round=2, a=[7, 0])
    assert learner.pending == (2, 3, 4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_round_that_is_left_out_changes_nothing(backend: str) -> None:
    a, learner = rounds(4), plan_of(TEXT).learner(backend=backend)
    seen: dict[int, list[Any]] = {turn: [] for turn in range(DELAY + 1)}
    for t in range(1, T + 1):
        if t > DELAY + 1:
            k = t - DELAY - 1
            if k % 5 == 0:
                learner.skip(round=k)
            else:
                learner.observe(round=k, a=a[k - 1])
                seen[(k - 1) % (DELAY + 1)].append(a[k - 1])
        own = plan_of(TEXT.replace("feedback full delayed 3\n", "").replace("T = 41", "T = 11")).learner(
            backend="numpy"
        )
        for value in seen[(t - 1) % (DELAY + 1)]:
            own.decide()
            own.observe(a=value)
        np.testing.assert_allclose(learner.decide(), own.decide(), atol=1e-12)


def test_without_a_delay_a_round_is_left_out_too() -> None:
    plan, a = plan_of(TEXT.replace("feedback full delayed 3\n", "")), rounds(5)
    learner, other = plan.learner(), plan.learner()
    for t in range(6):
        np.testing.assert_array_equal(learner.decide(), other.decide())
        if t == 3:
            learner.skip()
            continue
        learner.observe(a=a[t])
        other.observe(a=a[t])
    assert learner.round == other.round == 6


@pytest.mark.parametrize("backend", BACKENDS)
def test_contexts_known_constraints_and_what_is_left_out(backend: str) -> None:
    plan, rng = plan_of(SERVED), np.random.default_rng(6)
    loads = 4 + 3 * np.sin(np.arange(20) / 3)
    learner = plan.learner(backend=backend)
    for t in range(20):
        x = learner.decide(load=loads[t])
        assert x.sum() >= loads[t] - 1 - 1e-7
        if t >= 2:
            if t % 4 == 0:
                learner.skip()
            else:
                learner.observe(price=rng.uniform(0, 5, 2), need=rng.uniform(0, 10))
    learner.decide(load=4)
    with pytest.raises(oco.OcoError) as caught:
        learner.decide(load=4)
    assert caught.value.code == "OCO869"


@pytest.mark.parametrize("backend", BACKENDS)
def test_saved_states_and_journals_carry_the_open_rounds(backend: str, tmp_path: Path) -> None:
    plan, a = plan_of(TEXT), rounds(7)
    learner = plan.learner(backend=backend)
    journaled = oco.open(plan, tmp_path / "journal", backend=backend)
    for t in range(1, 30):
        x = learner.decide()
        np.testing.assert_array_equal(journaled.decide(), x)
        if t in (9, 10, 20):
            journaled.close()
            journaled = oco.open(plan, tmp_path / "journal", backend=backend)
            np.testing.assert_array_equal(journaled.decide(round=t), x)
            learner.save(tmp_path / "state.json")
            learner = oco.restore(tmp_path / "state.json") if t == 9 else copy(learner) if t == 10 else learner
            learner = pickle.loads(pickle.dumps(learner)) if t == 20 else learner
        assert journaled.pending == learner.pending and journaled.round == learner.round == t + 1
        for k in [k for k in learner.pending if k <= t - DELAY or k % 3 == 0]:
            for one in (learner, journaled):
                one.skip(round=k) if k % 7 == 0 else one.observe(round=k, a=a[k - 1])
    journaled.close()


def test_a_journaled_run_continues(tmp_path: Path) -> None:
    a = rounds(8)
    first = plan_of(TEXT).run({"a": a[:20]}, journal=tmp_path)
    whole = plan_of(TEXT).run({"a": a}, journal=tmp_path)
    np.testing.assert_array_equal(first.decisions, whole.decisions[:20])
    np.testing.assert_allclose(whole.decisions, interleaved(TEXT, a), atol=1e-12)


@pytest.mark.parametrize("text", [TEXT, LINEAR], ids=["squares", "linear"])
def test_the_guarantee_holds_against_those_who_know_the_delay(text: str) -> None:
    plan = plan_of(text)
    assert "4 learners in turn" in plan.guarantee.theorem and plan.guarantee.horizon == T
    curve = plan.guarantee.regret_curve(T)
    learner, kept = plan.learner(), []
    for _ in range(T):  # the sign of each decision against it, and what was decided in the turn before once more
        x = learner.decide()
        kept.append(np.where(x >= 0, 1.0, -1.0) if text == LINEAR else -np.sign(x + 1e-9))
        if len(learner.pending) > DELAY:
            learner.observe(a=kept[learner.pending[0] - 1])
    blocks = np.repeat(np.random.default_rng(9).choice([-1.0, 1.0], (T // 4 + 1, 2)), 4, axis=0)[:T]
    for a in (np.array(kept), blocks, rounds(10)):
        trace = plan.run({"a": a})
        prefix = trace.regret("static", prefix=True)
        there = ~np.isnan(prefix)
        assert (prefix[there] <= curve[there] + 1e-9).all()


def test_the_guarantee_is_the_sum_of_those_of_the_learners() -> None:
    one = plan_of(TEXT.replace("feedback full delayed 3\n", "").replace("T = 41", "T = 11"))
    own = one.guarantee.regret_bound
    wanted = own.number(11, 11) + 3 * own.number(10, 11)
    assert plan_of(TEXT).guarantee.regret() == pytest.approx(wanted, rel=1e-9)
    texts = [LINEAR.replace("41", "4000").replace("delayed 3", f"delayed {d}") for d in (0, 3, 15)]
    sizes = [oco.compile(oco.parse(text), "ogd").guarantee.regret() for text in texts]
    np.testing.assert_allclose([sizes[1] / sizes[0], sizes[2] / sizes[0]], [2, 4], rtol=0.1)  # sqrt(d + 1)


def test_rules_of_practice_know_no_round_before_its_feedback_came() -> None:
    a = rounds(11)
    other = a.copy()
    other[20] = -other[20]
    plan = plan_of(TEXT)
    played = [[], []]
    for results, data in zip(played, (a, other)):
        trace = plan.run({"a": data})
        results += beside(RuleChoice.SOME, trace.problem, trace.data, Trade.at_price(trace.problem, 1.0)).played
    by_name = {rule.name: rule.decisions["x"] for rule in played[1]}
    for rule in played[0]:
        same = (rule.decisions["x"] == by_name[rule.name]).all(axis=1)
        assert same[: 20 + DELAY + 1].all() and not same.all()


def test_certificates_are_of_rounds_without_turns() -> None:
    with pytest.raises(oco.OcoError) as caught:
        plan_of(TEXT).certified()
    assert caught.value.code == "OCO735"


def test_the_second_point_of_an_open_round_is_that_of_its_decision() -> None:
    """Of two open rounds each has its own, and runs play both in their order."""
    model = oco.parse(TEXT.replace("feedback full delayed 3", "feedback two_point delayed 1"))
    learner = oco.compile(model).learner(seed=2)
    points = [(learner.decide(), learner.second_point()) for _ in range(2)]
    assert learner.pending == (1, 2)
    for round, (x, second) in enumerate(points, 1):
        assert np.array_equal(learner.second_point(round=round), second) and not np.array_equal(x, second)
        learner.observe(loss=float(x @ x), second_loss=float(second @ second), round=round)
    trace = oco.compile(model).run({"a": np.zeros((41, 2))}, seed=2)
    assert np.array_equal(trace.decisions[:2], [x for x, _ in points])
