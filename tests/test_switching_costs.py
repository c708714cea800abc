"""Switching costs: `prev(x)` in the loss, in learners of every backend, in guarantees, in comparators and in all that is kept."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from thorough import turns

import oco
from oco.backends.registry import restored
from oco.compiler.problem.canonical import canonical
from oco.compiler.theory.formula_values import value_at
from oco.evaluation.baselines.rules import RuleChoice, beside
from oco.evaluation.cost import Trade

T = 60
TEXT = """\
model crew

horizon T = 60

decision x[2] in box(-1, 1)

stream a[2] in [-1, 1]
stream fee in [0, 2]

minimize a @ x + 0.5 * norm1(x - prev(x)) + fee * sum_squares(x - prev(x))
"""
SIMPLEX = """\
model shares
horizon T = 60
decision x[3] in simplex
stream a[3] in [-1, 1]
minimize a @ x + 2 * norm1(x - prev(x))
"""
STRONG = TEXT.replace("a @ x", "sum_squares(x - a)")
SERVED = """\
model served
horizon T = 60
decision x[2] in box(0, 10)
stream price[2] in [0, 5]
stream need in [0, 15]
minimize price @ x + 2 * norm1(x - prev(x))
subject to
    serve: sum(x) >= need  each round, penalty 30
"""
BACKENDS = ("numpy", "c")


@cache
def plan_of(text: str, using: str = "") -> Any:
    return oco.compile(oco.parse(f"{text}\nusing {using}\n" if using else text))


def rounds(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"a": rng.uniform(-1, 1, (T, 2)), "fee": rng.uniform(0, 2, T)}


def served(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    need = np.clip(8 + 4 * np.sin(np.arange(T) / 4) + rng.normal(0, 1, T), 0, 15)
    return {"price": rng.uniform(0, 5, (T, 2)), "need": need}


def charged(x: Any, data: dict[str, Any]) -> Any:
    """Losses of `TEXT` for decisions x (T, 2), the first of which stands still."""
    moves = x - np.concatenate([x[:1], x[:-1]])
    kept = 0.5 * np.abs(moves).sum(axis=1) + data["fee"] * (moves**2).sum(axis=1)
    return (data["a"] * x).sum(axis=1) + kept


def test_text_and_builder_say_the_same() -> None:
    model = oco.parse(TEXT)
    assert model.to_oco() == TEXT
    m = oco.Model("crew", horizon=60)
    x, a, fee = (
        m.decision("x", 2, domain=oco.box(-1, 1)),
        m.stream("a", 2, bounds=(-1, 1)),
        m.stream("fee", bounds=(0, 2)),
    )
    moved = x - oco.prev(x)
    m.minimize(a @ x + 0.5 * oco.norm1(moved) + fee * oco.sum_squares(moved))
    assert m.to_oco() == TEXT
    assert r"x_{t} - x_{t-1}" in model._repr_latex_() or r"x - x_{t-1}" in model._repr_latex_()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("box(-1, 1)\n", "box(-1, 1)\nfeedback gradient\n", "feedback gradient"),
        ("box(-1, 1)\n", "box(-1, 1)\nfeedback bandit\n", "feedback bandit"),
        ("+ fee", "+ norm1(prev(fee)) + fee", "takes the name of a decision"),
        ("prev(x))\n", "prev(x))\nsubject to\n    cap: sum(x - prev(x)) <= 1  on average\n", "on average"),
    ],
)
def test_where_it_cannot_stand(old: str, new: str, words: str) -> None:
    head, tail = TEXT.rsplit(old, 1)
    with pytest.raises(oco.OcoError) as caught:
        canonical(oco.parse(head + new + tail))
    assert caught.value.code == "OCO217" and words in caught.value.message


def test_facts_of_what_moving_costs() -> None:
    facts = oco.check(oco.parse(TEXT))
    assert facts["loss.structure"].value == "linear"  # of the loss that stands still
    assert facts.value("loss.moves.standing.l2") == pytest.approx(0.5 * np.sqrt(2))
    assert facts.value("loss.moves.smoothness.l2") == pytest.approx(2 * 2)
    assert facts.value("loss.moves.lipschitz.l2") == pytest.approx(np.sqrt(2) * (0.5 + 2 * 2 * 2))
    assert facts.warnings == ()  # a stream of the moves alone is used
    assert not [key for key in oco.check(oco.parse(TEXT.split(" + 0.5")[0])) if "moves" in key]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_step_is_that_of_the_loss_at_rest_and_moves_are_paid(backend: str) -> None:
    plan, data = plan_of(TEXT, "ogd with eta = 0.3"), rounds(1)
    trace = plan.run(data, backend=backend)
    x = np.zeros((T, 2))
    for t in range(T - 1):
        x[t + 1] = np.clip(x[t] - 0.3 * data["a"][t], -1, 1)
    np.testing.assert_allclose(trace.decisions, x, atol=1e-12)
    np.testing.assert_allclose(trace.loss, charged(x, data), atol=1e-12)
    assert trace.warnings == ()


@pytest.mark.parametrize("backend", BACKENDS)
def test_states_journals_fleets_and_modules_carry_the_decision_before(backend: str, tmp_path: Path) -> None:
    plan, data = plan_of(TEXT), rounds(3)
    learner, journaled, fleet = plan.learner(backend=backend), oco.open(plan, tmp_path, backend=backend), plan.fleet(2)
    space: dict[str, Any] = {"__name__": "crew"}
    exec(compile(plan.source("numpy"), "crew.py", "exec"), space)
    module = space["Learner"]()
    for t in range(8):
        now = {name: array[t] for name, array in data.items()}
        x = learner.decide()
        for other in (journaled, module):
            np.testing.assert_allclose(other.decide(), x, atol=1e-12)
        np.testing.assert_allclose(fleet.decide(), [x, x], atol=1e-12)
        learner = restored(learner.state(), learner.compiled, learner.contract)
        if t == 5:
            journaled.close()
            journaled = oco.open(plan, tmp_path, backend=backend)
            journaled.decide()
        journaled.decide()
        module.decide()
        own, theirs, emitted = learner.observe(**now), journaled.observe(**now), module.observe(**now)
        fleet.observe(**{name: np.stack([v, v]) for name, v in now.items()})
        assert own.loss == theirs.loss and emitted.loss == pytest.approx(own.loss, abs=1e-12)
    journaled.close()


def test_a_saved_trace_is_replayed(tmp_path: Path) -> None:
    plan = plan_of(TEXT)
    trace = plan.run(rounds(4))
    trace.save(tmp_path / "run.nc")
    again = oco.load_trace(tmp_path / "run.nc")
    assert np.array_equal(plan.replay(again).decisions, trace.decisions)
    np.testing.assert_array_equal(again.loss, trace.loss)
    assert again.comparator("dynamic").value == pytest.approx(trace.comparator("dynamic").value)


def greedy(plan: Any, bounds: dict[str, tuple[float, ...]], draw: Any) -> dict[str, Any]:
    """Rounds in which each corner of the streams is tried, and the one taken that costs the learner most now and moves it on."""
    learner, kept = plan.learner(backend="numpy"), {name: [] for name in bounds}
    before = np.zeros(0)
    for _ in range(T):
        x = np.asarray(learner.decide())
        before = x if not before.size else before
        now = draw(x, before)
        learner.observe(**now)
        before = x
        for name, value in now.items():
            kept[name].append(value)
    return {name: np.array(values) for name, values in kept.items()}


def away(x: Any, before: Any) -> dict[str, Any]:
    """Gradient that sends the decision on in the direction in which it came, and back from the ends."""
    moved = np.where(np.abs(x) >= 1, np.sign(x), -np.sign(x - before))
    return {"a": np.where(moved == 0, 1.0, moved), "fee": 2.0}


def flipping(x: Any, before: Any) -> dict[str, Any]:
    return {"a": np.where(x >= 0, 1.0, -1.0), "fee": 2.0}


@pytest.mark.parametrize(("text", "using", "adversary"), turns([STRONG, TEXT], ["", "ogd", "ofw"], [flipping, away]))
def test_the_guarantee_pays_for_moves(text: str, using: str, adversary: Any) -> None:
    plan = plan_of(text, using)
    data = greedy(plan, {"a": (), "fee": ()}, adversary)
    for given in (data, rounds(5)):
        trace = plan.run(given)
        regret, bound = trace.regret(), plan.guarantee.regret_curve(T)
        assert regret[-1] <= bound[-1] + 1e-9
        best = trace.regret("static", prefix=True)
        held = ~np.isnan(best)
        assert (best[held] <= bound[held] + 1e-6).all()
    assert not any("does not bound how far" in p for p in plan.guarantee.provisos)


def test_moves_of_mirror_steps_in_the_simplex() -> None:
    plan = plan_of(SIMPLEX, "oeg")
    costs = {"a": np.where(np.arange(T)[:, None] % 2, [[1.0, -1, 1]], [[-1.0, 1, -1]])}
    for data in (costs, {"a": np.random.default_rng(6).uniform(-1, 1, (T, 3))}):
        trace = plan.run(data)
        assert trace.regret()[-1] <= plan.guarantee.regret()
        eta, moved = plan.settings["eta"].value, np.abs(np.diff(trace.decisions, axis=0)).sum(axis=1)
        slope = 1.0 if plan.choice.winner.scales is None else 1.0 / plan.choice.winner.scales.loss
        assert moved.max() <= eta * slope + 1e-12


def test_dearer_moves_make_smaller_steps() -> None:
    steps = [plan_of(TEXT.replace("0.5 *", f"{c} *"), "ogd").settings["eta"] for c in (0, 0.5, 5, 50)]
    sizes = [float(value_at(s.formula, dict.fromkeys(s.symbols, np.float64(1)))) for s in steps]
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] < sizes[0] / 3


def test_where_the_proof_bounds_no_moves_the_guarantee_says_so() -> None:
    plan = plan_of(SERVED, "coldq")
    still = plan_of(SERVED.replace(" + 2 * norm1(x - prev(x))", ""), "coldq")
    assert any("does not bound how far decisions move" in line for line in plan.guarantee.provisos)
    worst = 2 * np.sqrt(2) * np.sqrt(200)  # 2 |x - y|_1 <= 2 sqrt(2) |x - y|_2, and the box is sqrt(200) wide
    assert plan.guarantee.regret() >= still.guarantee.regret() + worst * (T - 1) * (1 - 1e-9)
    assert "does not bound how far" in plan.explain()
    trace = plan.run(served(7))
    assert trace.regret()[-1] <= plan.guarantee.regret()


@pytest.mark.parametrize("seed", [8, 9])
def test_comparators_pay_for_their_moves(seed: int) -> None:
    data = rounds(seed)
    trace = plan_of(TEXT).run(data)
    static, dynamic = trace.comparator("static"), trace.comparator("dynamic")
    np.testing.assert_allclose(static.losses, data["a"] @ static.decision["x"], atol=1e-9)
    assert static.value == pytest.approx(-np.abs(data["a"].sum(axis=0)).sum(), abs=1e-6)
    np.testing.assert_allclose(dynamic.losses, charged(dynamic.decision["x"], data), atol=1e-9)
    x = cp.Variable((T, 2))
    moves = x[1:] - x[:-1]
    squares = data["fee"][1:] @ cp.sum(cp.square(moves), axis=1)
    best = cp.Problem(
        cp.Minimize(cp.sum(cp.multiply(data["a"], x)) + 0.5 * cp.sum(cp.abs(moves)) + squares), [cp.abs(x) <= 1]
    ).solve(solver="CLARABEL")
    assert dynamic.bound - 1e-6 <= best <= dynamic.value + 1e-6 <= static.value + 2e-6


def test_rules_of_practice_pay_too() -> None:
    trace = plan_of(TEXT).run(rounds(10))
    played = beside(RuleChoice.SOME, trace.problem, trace.data, Trade.at_price(trace.problem, 1.0)).played
    assert len(played) == 2
    for rule in played:
        np.testing.assert_allclose(rule.loss, charged(rule.decisions["x"], rounds(10)), atol=1e-8)


def test_the_default_under_constraints_knows_what_moves_cost() -> None:
    data = served(11)
    plan = oco.compile(oco.parse(SERVED), data=data)
    assert plan.algorithm == "hedged"
    runs = [plan.run(data, backend=b) for b in BACKENDS]
    np.testing.assert_allclose(runs[0].decisions, runs[1].decisions, atol=1e-8)
    x = runs[0].decisions
    moved = np.abs(np.diff(x, axis=0)).sum(axis=1)
    np.testing.assert_allclose(runs[0].loss[1:], (data["price"] * x).sum(axis=1)[1:] + 2 * moved, atol=1e-9)
    dearer = oco.parse(SERVED.replace("2 * norm1", "20 * norm1"))
    dear = oco.compile(dearer, "hedged", data=data).run(data).decisions
    assert np.abs(np.diff(dear, axis=0)).sum() < 0.7 * moved.sum()


def test_no_certificate_of_single_decisions() -> None:
    with pytest.raises(oco.OcoError) as caught:
        plan_of(TEXT).certified()
    assert caught.value.code == "OCO735" and "decision before" in caught.value.message
