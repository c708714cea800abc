"""Contexts: the statement, the builder, and what learners of every backend are told before they decide."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import oco

TEXT = """\
model dispatch

horizon T = 40

decision p[2] in box(0, 8)

context load in [3, 9]
stream price in [-1, 5]
context cap[2] in 0..3 iid mean = 1

minimize price * sum(p) + load * p[0] + cap @ p

subject to
    balance: sum(p) >= load + price  each round
"""
BACKENDS = ("numpy", "c")


def rounds(rng: np.random.Generator, count: int) -> dict[str, Any]:
    whole = rng.integers(0, 4, (count, 2))
    return {"load": rng.uniform(3, 9, count), "price": rng.uniform(-1, 5, count), "cap": whole}


@cache
def plan_of(text: str = TEXT) -> Any:
    return oco.compile(oco.parse(text))


def module_of(path: Path, text: str) -> ModuleType:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_text_and_builder_say_the_same() -> None:
    model = oco.parse(TEXT)
    assert model.to_oco() == TEXT
    assert oco.parse(model.to_oco()) == model
    assert [s.known for s in model.streams] == [True, False, True]
    m = oco.Model("dispatch", horizon=40)
    p = m.decision("p", 2, domain=oco.box(0, 8))
    load = m.context("load", bounds=(3, 9))
    price = m.stream("price", bounds=(-1, 5))
    cap = m.context("cap", 2, bounds=range(4), iid=True, mean=1)
    m.minimize(price * oco.sum(p) + load * p[0] + cap @ p)
    m.subject_to(oco.sum(p) >= load + price, name="balance", each_round=True)
    assert m.to_oco() == TEXT
    assert r"\text{known} \quad & \mathrm{load}_{t}" in model._repr_latex_()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_learner_takes_contexts_before_and_streams_after(backend: str) -> None:
    plan, data = plan_of(), rounds(np.random.default_rng(0), 40)
    told, whole = (plan.learner(backend=backend) for _ in range(2))
    trace = plan.run(data, backend=backend)
    for t in range(40):
        row = {name: value[t] for name, value in data.items()}
        decision = told.decide(load=row["load"], cap=row["cap"])
        np.testing.assert_array_equal(told.decide(), decision)
        whole.decide(load=row["load"], cap=row["cap"])
        first, second = told.observe(price=row["price"]), whole.observe(**row)
        np.testing.assert_allclose(trace.decisions[t], decision, rtol=1e-12, atol=1e-12)
        by_hand = row["price"] * decision.sum() + row["load"] * decision[0] + row["cap"] @ decision
        assert first.loss == second.loss == pytest.approx(by_hand, abs=1e-9)
        assert first.constraints[0] == pytest.approx(row["load"] + row["price"] - decision.sum(), abs=1e-9)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, "OCO860"),
        ({"load": 4}, "OCO840"),
        ({"laod": 4, "cap": [0, 0]}, "OCO840"),
        ({"load": 4, "cap": [0, 0], "price": 1}, "OCO840"),
        ({"load": [4, 4], "cap": [0, 0]}, "OCO842"),
        ({"load": np.nan, "cap": [0, 0]}, "OCO843"),
        ({"load": 4, "cap": [0, 0.5]}, "OCO844"),
        ({"load": 10, "cap": [0, 0]}, "OCO845"),
    ],
)
def test_wrong_contexts_change_nothing(backend: str, given: dict[str, Any], code: str) -> None:
    learner = plan_of().learner(backend=backend)
    before = learner.state()
    with pytest.raises(oco.OcoError) as caught:
        learner.decide(**given)
    assert caught.value.code == code
    assert learner.state() == before
    learner.decide(load=4, cap=[0, 0])


def test_a_round_has_one_context() -> None:
    learner = plan_of().learner()
    with pytest.raises(oco.OcoError, match=r"decide\(load=\.\.\., cap=\.\.\.\)"):
        learner.observe(price=1)
    learner.decide(load=4, cap=[0, 0])
    with pytest.raises(oco.OcoError, match="decided with another load"):
        learner.decide(load=5, cap=[0, 0])
    with pytest.raises(oco.OcoError, match="decided with another cap"):
        learner.observe(load=4, cap=[0, 1], price=1)
    learner.observe(price=1)
    with pytest.raises(oco.OcoError) as caught:
        learner.observe(price=1)
    assert caught.value.code == "OCO860" and learner.round == 2


def test_contexts_out_of_bounds_are_clipped_where_that_is_allowed() -> None:
    learner = plan_of().learner(on_out_of_bounds="clip")
    learner.decide(load=100, cap=[0, 0])
    feedback = learner.observe(price=1)
    assert feedback.values["load"] == 9 and "clipped" in learner.warnings[0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_saved_state_keeps_the_context_of_its_round(backend: str, tmp_path: Path) -> None:
    plan = plan_of()
    learner = plan.learner(backend=backend)
    decision = learner.decide(load=4, cap=[1, 2])
    learner.save(tmp_path / "state.json")
    restored = oco.restore(tmp_path / "state.json", backend)
    np.testing.assert_array_equal(restored.decide(), decision)
    assert restored.observe(price=2).loss == learner.observe(price=2).loss
    assert "context" not in learner.state()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_journal_replays_contexts(backend: str, tmp_path: Path) -> None:
    plan, data = plan_of(), rounds(np.random.default_rng(1), 6)
    rows = [{name: value[t] for name, value in data.items()} for t in range(6)]
    with oco.open(plan, tmp_path, backend=backend) as learner:
        for row in rows[:5]:
            learner.decide(load=row["load"], cap=row["cap"])
            learner.observe(price=row["price"])
        decision = learner.decide(load=rows[5]["load"], cap=rows[5]["cap"])
    with oco.open(plan, tmp_path, backend=backend) as again:
        np.testing.assert_array_equal(again.decide(), decision)
        assert again.observe(round=3, price=rows[2]["price"]).values["load"] == rows[2]["load"]
        with pytest.raises(oco.OcoError) as caught:
            again.observe(round=3, price=rows[2]["price"] + 0.1)
        assert caught.value.code == "OCO856"
        again.decide()
        again.observe(price=rows[5]["price"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_fleet_takes_a_context_for_each_learner(backend: str) -> None:
    plan, rng = plan_of(), np.random.default_rng(2)
    fleet, alone = plan.fleet(3, backend=backend), [plan.learner(backend=backend) for _ in range(3)]
    for _ in range(4):
        row = rounds(rng, 3)
        decided = fleet.decide(load=row["load"], cap=row["cap"])
        feedback = fleet.observe(price=row["price"])
        for k, learner in enumerate(alone):
            own = learner.decide(load=row["load"][k], cap=row["cap"][k])
            np.testing.assert_allclose(decided[k], own, rtol=1e-12, atol=1e-12)
            assert feedback.loss[k] == pytest.approx(learner.observe(price=row["price"][k]).loss, abs=1e-12)
    with pytest.raises(oco.OcoError, match="learner 1: load is 99"):
        fleet.decide(load=[4, 99, 4], cap=np.zeros((3, 2), dtype=int))


def test_the_emitted_module_takes_contexts(tmp_path: Path) -> None:
    plan, data = plan_of(), rounds(np.random.default_rng(3), 8)
    module = module_of(tmp_path / "dispatch.py", plan.source("numpy"))
    own, learner = module.Learner(), plan.learner(backend="numpy")
    with pytest.raises(ValueError, match="is decided with load, cap"):
        own.decide()
    for t in range(8):
        known = {name: data[name][t] for name in ("load", "cap")}
        np.testing.assert_array_equal(own.decide(**known), learner.decide(**known))
        own = module.Learner.from_state(own.state())
        with pytest.raises(ValueError, match="another load"):
            own.decide(**{**known, "load": 6.5})
        assert own.observe(price=data["price"][t]).loss == learner.observe(price=data["price"][t]).loss


@pytest.mark.parametrize("feedback", ["gradient", "bandit"])
def test_less_than_full_feedback_still_has_contexts(feedback: str) -> None:
    text = TEXT.partition("\nsubject to")[0] + f"\nfeedback {feedback}\n"
    plan = plan_of(text)
    assert plan.program.context == ("load", "cap")
    learner = plan.learner()
    learner.decide(load=4, cap=[1, 2])
    seen = {"gradient": [1.0, 2.0]} if feedback == "gradient" else {}
    assert learner.observe(loss=3.0, **seen).loss == 3.0
    plan.run(rounds(np.random.default_rng(4), 5))
