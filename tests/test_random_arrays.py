"""Random arrays of learners: the same numbers of the generator in NumPy, round by round in C, and in whole horizons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from test_c99 import needs_compiler

import oco
from oco.backends.arguments import generator
from oco.backends.c99.build import stepper
from oco.backends.play import can_play, play
from oco.backends.random_arrays import Drawing
from oco.plan import Plan

ROUNDS = 40
BLIND = """
model blind
horizon T = 1000
decision p[3] in ball(1)
stream a[3] ~ uniform(-1, 1)
stream c[3] ~ uniform(-1, 1)
minimize sum_squares(p - a)
subject to
    cap: c @ p <= 0.25 each round
feedback bandit
"""
SEEN = """
model seen
horizon T = 1000
decision x[4] in simplex
stream price[4] in [0, 1]
minimize price @ x
subject to
    cap: x[0] - price[1] <= 0.1 on average
using projection-free with oracle = sftrl
"""


@pytest.fixture(scope="module")
def blind() -> Plan:
    return oco.compile(oco.parse(BLIND), settings="paper")


@pytest.fixture(scope="module")
def seen() -> Plan:
    return oco.compile(oco.parse(SEEN))


PRICES = np.random.default_rng(7).random((ROUNDS, 4))


def played_blindly(learner: Any, first: int, last: int) -> list[np.ndarray]:
    decided = []
    for t in range(first, last):
        decided.append(learner.decide())
        learner.observe(loss=float(np.sin(t)) ** 2, constraints=[0.3 * float(np.cos(t))])
    return decided


@needs_compiler
@pytest.mark.skipif(stepper() is None, reason="no headers of Python")
def test_c_draws_what_numpy_draws(blind: Plan) -> None:
    learners = [blind.learner(seed=3, backend=backend) for backend in ("numpy", "c")]
    assert learners[1]._quick is not None and not learners[1]._quick.busy
    decided = [played_blindly(learner, 0, ROUNDS) for learner in learners]
    np.testing.assert_allclose(decided[0], decided[1], rtol=0, atol=1e-12)
    states = [learner.state() for learner in learners]
    assert states[0]["random"] == states[1]["random"]


@needs_compiler
def test_a_learner_saved_within_a_round_draws_nothing_twice(blind: Plan) -> None:
    learner = blind.learner(seed=3, backend="c")
    played_blindly(learner, 0, 5)
    decided = learner.decide()
    again = oco.restore(learner.state(), backend="c")
    np.testing.assert_array_equal(again.decide(), decided)
    np.testing.assert_array_equal(played_blindly(again, 5, 20), played_blindly(learner, 5, 20))


@needs_compiler
def test_draws_of_the_caller_are_taken(blind: Plan) -> None:
    draws = {"u": np.random.default_rng(1).normal(size=(ROUNDS, 3))}
    decided = [played_blindly(blind.learner(draws=draws, backend=b), 0, ROUNDS) for b in ("numpy", "c")]
    np.testing.assert_allclose(decided[0], decided[1], rtol=0, atol=1e-12)
    with pytest.raises(oco.OcoError, match="OCO849"):
        played_blindly(blind.learner(draws=draws, backend="c"), 0, ROUNDS + 1)


def one_by_one(learner: Any, prices: np.ndarray) -> np.ndarray:
    decided = []
    for price in prices:
        decided.append(learner.decide())
        learner.observe(price=price)
    return np.array(decided)


def at_once(learner: Any, prices: np.ndarray) -> np.ndarray:
    parts = play(learner, lambda start, stop: {"price": prices[start:stop]}, len(prices))
    return np.concatenate([part.decisions["x"] for part in parts])


@needs_compiler
@pytest.mark.parametrize("begun", [False, True])
def test_whole_horizons_draw_as_single_rounds_do(seen: Plan, begun: bool) -> None:
    learners = [seen.learner(seed=5, backend=backend) for backend in ("numpy", "c", "c")]
    assert can_play(learners[2])
    decided = [one_by_one(learner, PRICES[:3]) for learner in learners]
    if begun:
        decided = [learner.decide() for learner in learners]
    decided = [one_by_one(learners[0], PRICES), one_by_one(learners[1], PRICES), at_once(learners[2], PRICES)]
    np.testing.assert_array_equal(decided[1], decided[2])
    np.testing.assert_allclose(decided[0], decided[1], rtol=0, atol=1e-12)
    assert learners[1].state()["random"] == learners[2].state()["random"]


@needs_compiler
def test_a_refused_round_takes_no_number(seen: Plan) -> None:
    wrong = PRICES.copy()
    wrong[17, 2] = 3.0
    learner, other = (seen.learner(seed=5, backend="c") for _ in range(2))
    with pytest.raises(oco.OcoError, match="OCO845"):
        at_once(learner, wrong)
    one_by_one(other, PRICES[:17])
    other.decide()
    assert learner.state()["random"] == other.state()["random"]
    np.testing.assert_array_equal(at_once(learner, PRICES[17:]), one_by_one(other, PRICES[17:]))


class Several(Drawing):
    """A learner of two random arrays and nothing else."""

    def __init__(self, distributions: Sequence[str]) -> None:
        from types import SimpleNamespace as Of

        shapes = (3,), ()
        fields = tuple(Of(name=f"u{k}", type=Of(shape=s)) for k, s in enumerate(shapes))
        self.compiled = Of(program=Of(draws=fields))
        self.contract = Of(distributions={f.name: d for f, d in zip(fields, distributions)})
        self.round, self._random, self._draws, self._drawn = 1, generator(2), None, None


@pytest.mark.parametrize("distributions", [("uniform", "uniform"), ("normal", "uniform")])
@pytest.mark.parametrize("known", [0, 1])
def test_several_arrays_come_in_the_order_of_rounds(distributions: Sequence[str], known: int) -> None:
    one, many = Several(distributions), Several(distributions)
    rows = []
    for one.round in range(1, 7):
        rows.append(one._random_arrays())
    if known:
        many._random_arrays()
    kept: list[Sequence[np.ndarray]] = []

    def run(played: int) -> Callable[[Sequence[np.ndarray]], Any]:
        def record(draws: Sequence[np.ndarray]) -> Any:
            kept.append(draws)
            return type("Recorded", (), {"rounds": played})

        return record

    many._with_random_arrays(9, run(4))
    for k, array in enumerate(kept[0]):
        np.testing.assert_array_equal(array[:6], [row[k] for row in rows])
    many.round = 5
    np.testing.assert_array_equal(many._random_arrays()[0], rows[4][0])


VALUES = """
model values
horizon T = 60
decision x[3] in box(-1, 1)
decision y in box(0, 2)
stream a[3] ~ uniform(-1, 1)
stream b ~ uniform(0, 1)
minimize sum_squares(x - a) + square(y - b)
feedback two_point
"""
SLOPES = """
model slopes
horizon T = 60
decision x[3] in box(0, 1)
decision y in box(0, 2)
stream a[3] ~ uniform(-1, 1)
stream b ~ uniform(0, 1)
minimize sum_squares(x - a) + square(y - b)
subject to
    cap: a @ x + y <= 1.5 on average
    some: sum(x) + b * y <= 2 on average
feedback gradient
"""


@needs_compiler
@pytest.mark.parametrize("text", [BLIND, VALUES, SLOPES])
def test_whole_runs_disclose_what_the_feedback_does(text: str) -> None:
    plan = oco.compile(oco.parse(text), settings="paper")
    assert plan.player(50, "c") is not None and plan.player(50, "numpy") is None
    driven, played = (plan.run(rounds=50, seed=4, backend=backend) for backend in ("numpy", "c"))
    for name, array in driven.record.decisions.items():
        np.testing.assert_allclose(played.record.decisions[name], array, rtol=0, atol=1e-11)
    np.testing.assert_allclose(played.record.loss, driven.record.loss, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(played.record.constraints, driven.record.constraints, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(played.record.duals, driven.record.duals, rtol=1e-11, atol=1e-12)
    assert played.warnings == driven.warnings
