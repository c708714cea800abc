"""Contexts that compiled code takes itself: decisions, losses and errors are those of Python's way."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_c99 import needs_compiler
from test_contexts import TEXT, plan_of, rounds

import oco
from oco.backends.c99.build import stepper
from oco.backends.learner import Learner
from oco.evaluation.data import load_data

ROOT = Path(__file__).parent.parent
pytestmark = [needs_compiler, pytest.mark.skipif(stepper() is None, reason="no headers of Python")]


def learner(backend: str = "c", **options: Any) -> Learner:
    result: Learner = plan_of().learner(backend=backend, **options)
    return result


def row_of(data: dict[str, Any], t: int) -> tuple[dict[str, Any], float]:
    return {"load": data["load"][t], "cap": data["cap"][t]}, data["price"][t]


def in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every call that goes through Python fail."""
    for name in ("learn_context", "feedback"):
        monkeypatch.setattr(Learner, name, lambda *given: pytest.fail("it went through Python"))


def test_rounds_are_those_of_numpy_and_never_leave_c(monkeypatch: pytest.MonkeyPatch) -> None:
    data, theirs, expected = rounds(np.random.default_rng(0), 30), learner("numpy"), []
    for t in range(30):
        known, price = row_of(data, t)
        decision = theirs.decide(**known)
        expected.append((decision, theirs.observe(price=price).loss))
    ours = learner()
    in_c(monkeypatch)
    for t, (decision, loss) in enumerate(expected):
        known, price = row_of(data, t)
        given = (known, {"cap": known["cap"].tolist(), "load": float(known["load"])})[t % 2]
        np.testing.assert_allclose(ours.decide(**given), decision, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(ours.decide(), ours.decide(**known))
        seen = ours.observe(price=price, **(known if t % 3 else {}))
        assert seen.loss == pytest.approx(loss, rel=1e-12, abs=1e-12) and seen.round == t + 1


@pytest.mark.parametrize("forced", [False, True])
def test_states_are_those_of_python(forced: bool) -> None:
    """To the bit, where calls in C and in Python take turns, within a round too."""
    data, ours, theirs = rounds(np.random.default_rng(1), 30), learner(), learner()
    python: tuple[Callable[..., Any], ...] = tuple(
        getattr(Learner, name).__get__(theirs) for name in ("decide", "observe")
    )
    for t in range(30):
        known, price = row_of(data, t)
        np.testing.assert_array_equal(ours.decide(**known), python[0](**known))
        if forced:  # the round is begun in C and ended in Python, and the other way round
            assert Learner.observe(ours, price=price).loss == theirs.observe(price=price).loss
        else:
            assert ours.observe(price=price).loss == python[1](price=price).loss
        assert {n: v.tobytes() for n, v in ours.values.items()} == {n: v.tobytes() for n, v in theirs.values.items()}


def test_a_round_that_is_left_out_leaves_no_contexts() -> None:
    ours, theirs = learner(), learner("numpy")
    for own in (ours, theirs):
        own.decide(load=8.0, cap=np.array([3, 3]))
        own.skip()
        with pytest.raises(oco.OcoError) as caught:
            own.decide()
        assert caught.value.code == "OCO860"
    known = {"load": 4.0, "cap": np.array([0, 1])}
    np.testing.assert_allclose(ours.decide(**known), theirs.decide(**known), rtol=1e-12)
    assert ours.state()["context"].keys() == known.keys()


@pytest.mark.parametrize("other", [{"load": 4.5}, {"cap": np.array([0, 2])}])
def test_other_contexts_for_the_same_round_are_refused(other: dict[str, Any]) -> None:
    ours, known = learner(), {"load": 4.0, "cap": np.array([0, 1])}
    decision = ours.decide(**known)
    for call in (ours.decide, lambda **given: ours.observe(price=1.0, **given)):
        with pytest.raises(oco.OcoError) as caught:
            call(**{**known, **other})
        assert caught.value.code == "OCO860"
    np.testing.assert_array_equal(ours.decide(), decision)
    np.testing.assert_array_equal(ours.decide(**{**known, "load": np.float32(4.0)}), decision)


def test_the_observed_round_needs_contexts_and_a_decision() -> None:
    ours = learner()
    ours.decide(load=4.0, cap=np.array([0, 1]))
    ours.observe(price=1.0)
    with pytest.raises(oco.OcoError) as caught:
        ours.observe(price=1.0)
    assert caught.value.code == "OCO860"
    with pytest.raises(oco.OcoError, match="nothing is given for cap"):
        ours.decide(load=4.0)
    ours.decide(load=4.0, cap=np.array([0, 1]))
    with pytest.raises(oco.OcoError, match="nothing is given for price"):
        ours.observe(load=4.0, cap=np.array([0, 1]))
    assert ours.observe(price=1.0).round == 2


def test_rounds_go_on_after_the_horizon() -> None:
    """The rule is begun anew there, in a struct of its own."""
    data, ours, theirs = rounds(np.random.default_rng(2), 90), learner(), learner("numpy")
    for t in range(90):
        known, price = row_of(data, t)
        np.testing.assert_allclose(ours.decide(**known), theirs.decide(**known), rtol=1e-10, atol=1e-10)
        ours.observe(price=price), theirs.observe(price=price)
    assert ours.warnings == theirs.warnings


def test_feedback_has_what_rounds_left_before() -> None:
    """In models with states: the numbers of Python's way, also of the rounds at which a learner looks at itself."""
    plan = oco.compile(oco.load(ROOT / "examples" / "heat_store.oco"))
    data = load_data(plan.canonical, ROOT / "examples" / "data" / "heat_store.csv", rounds=70)
    ours, theirs = (plan.learner(backend=b) for b in ("c", "numpy"))
    assert "Stepper" in repr(ours.observe)
    kept = []
    for row in data:
        known = {name: row.pop(name) for name in ours.contexts.names}
        np.testing.assert_allclose(ours.decide(**known), theirs.decide(**known), rtol=1e-9, atol=1e-9)
        a, b = ours.observe(**row), theirs.observe(**row)
        assert a.loss == pytest.approx(b.loss, rel=1e-9, abs=1e-9)
        kept.append((a, b))
    assert ours.warnings == theirs.warnings
    del ours  # feedback is asked for its data after its learner has gone
    for a, b in kept:
        for name, value in b.values.items():
            np.testing.assert_allclose(a.values[name], value, rtol=1e-9, atol=1e-9)
        assert [*copy(a).values] == [*a.values] == [*b.values]


def test_contexts_stand_beside_the_random_arrays_of_a_round() -> None:
    text = TEXT.partition("\nsubject to")[0].replace("box(0, 8)", "ball(8)")
    plan, data = oco.compile(oco.parse(text), algorithm="bgd"), rounds(np.random.default_rng(4), 30)
    ours, theirs = (plan.learner(backend=b, seed=5) for b in ("c", "numpy"))
    for t in range(30):
        known, price = row_of(data, t)
        np.testing.assert_allclose(ours.decide(**known), theirs.decide(**known), rtol=1e-10, atol=1e-10)
        assert ours.observe(price=price).loss == pytest.approx(theirs.observe(price=price).loss, abs=1e-9)
        (a,), (b,) = ours.drawn or (0,), theirs.drawn or (0,)
        np.testing.assert_array_equal(a, b)
