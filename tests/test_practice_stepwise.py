"""Rules of practice where a round leaves something to the next, and where constraints are known before the decision."""

from dataclasses import replace
from types import MappingProxyType

import cvxpy as cp
import numpy as np
import pytest

import oco
from oco.compiler.problem.canonical import canonical
from oco.evaluation.baselines import base
from oco.evaluation.baselines.base import Game, Played, SkippedRule, play
from oco.evaluation.baselines.gradients import FixedPenalty
from oco.evaluation.baselines.predictions import Last, Mean
from oco.evaluation.baselines.round_program import RoundProgram
from oco.evaluation.baselines.rules import RuleChoice, beside, step_rules
from oco.evaluation.baselines.stepwise import StepRule, play_stepwise
from oco.evaluation.cost import Trade
from oco.evaluation.data import Data

T = 12
RAMP = f"""model ramp
horizon T = {T}
decision p[3] in box(0, 10)
context load in [5, 20]
stream price[3] in [0, 5]
stream calls in [0, 6]
minimize price @ p + 0.1 * t / T * sum(p)
subject to
    balance: sum(p) >= load           each round
    up:      p - prev(p) <= 6         each round
    down:    prev(p) - p <= 6         each round
    reserve: calls - p[0] <= 0        each round
"""
STORE = f"""model store
horizon T = {T}
decision charge in box(-4, 4)
stream price in [0, 5]
state stored = 0.9 * stored + charge in [0, 10] start 5
minimize price * charge + 0.1 * square(charge)
"""
SHARE = f"""model share
horizon T = {T}
decision x in box(0, 30)
context forecast in [5, 15]
stream surprise in [-5, 5]
minimize x
subject to
    enough: x >= forecast + surprise  in 80% of rounds
"""
CONTEXT = f"""model known
horizon T = {T}
decision p[2] in box(0, 10)
context load in [5, 15]
stream price[2] in [0, 5]
minimize price @ p
subject to
    balance: sum(p) == load           each round
"""


def game_of(text: str, seed: int = 0) -> tuple[Game, Data]:
    problem = canonical(oco.parse(text))
    revealed = replace(problem, streams=problem.revealed)
    rng = np.random.default_rng(seed)
    given = {s.name: rng.uniform(s.lower, s.upper, (T, *s.shape)) for s in problem.revealed}
    data = Data(revealed, T, MappingProxyType(given))
    return replace(Game.of(revealed, data, Trade.at_price(problem, 10.0)), problem=problem), data


@pytest.mark.parametrize("text", [RAMP, STORE, SHARE])
def test_later_rounds_change_no_earlier_decision(text: str) -> None:
    game, _ = game_of(text)
    other, _ = game_of(text, seed=1)
    rules = step_rules(game.problem)
    before = play_stepwise(rules, game)
    contexts = {s.name for s in game.problem.streams if s.stream.known and s.name in game.streams}
    cut = 5
    mixed = {n: np.concatenate([v[:cut], other.streams[n][cut:]]) for n, v in game.streams.items()}
    after = play_stepwise(rules, replace(game, streams=mixed))
    for one, two in zip(before, after):
        assert isinstance(one, Played) and isinstance(two, Played)
        for name, x in one.decisions.items():
            np.testing.assert_allclose(
                two.decisions[name][: cut if contexts else cut + 1], x[: cut if contexts else cut + 1], atol=1e-5
            )


def test_a_round_is_what_cvxpy_finds_beside_the_decision_before() -> None:
    game, _ = game_of(RAMP)
    (played,) = play_stepwise([StepRule(Last())], game)
    assert isinstance(played, Played)
    p, before = played.decisions["p"], np.full(3, 5.0)
    for t in range(T):
        x = cp.Variable(3)
        price, calls = (game.streams["price"][t - 1], game.streams["calls"][t - 1]) if t else (np.full(3, 2.5), 3.0)
        allowed = [x >= 0, x <= 10, cp.sum(x) >= game.streams["load"][t], cp.abs(x - before) <= 6, x[0] >= calls]
        best = cp.Problem(cp.Minimize((price + 0.1 * (t + 1) / T) @ x), allowed)
        best.solve(solver=cp.CLARABEL)
        assert (price + 0.1 * (t + 1) / T) @ p[t] == pytest.approx(best.value, abs=1e-4)
        assert np.abs(p[t] - before).max() <= 6 + 1e-5 and p[t].sum() >= game.streams["load"][t] - 1e-5
        before = p[t]
    loss = (game.streams["price"] * p).sum(1) + 0.1 * np.arange(1, T + 1) / T * p.sum(1)
    np.testing.assert_allclose(played.loss, loss, atol=1e-9)
    labels = game.problem.learned.whole.constraint_labels
    steps = np.diff(np.concatenate([np.full((1, 3), 5.0), p]), axis=0) - 6
    ramps = [k for k, label in enumerate(labels) if label.startswith("up")]
    np.testing.assert_allclose(played.constraints[:, ramps], steps, atol=1e-9)


def test_too_much_work_is_refused_before_a_program_is_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    game, _ = game_of(RAMP)
    least = T * (base.PROGRAM + base.ENTRY * 3)
    (played,) = play_stepwise([StepRule(Last())], replace(game, meter=base.WorkAllowance(1.01 * least)))
    assert isinstance(played, Played)
    monkeypatch.setattr(RoundProgram, "of", lambda _: pytest.fail("a program was formed"))
    (left_out,) = play_stepwise([StepRule(Last())], replace(game, meter=base.WorkAllowance(0.99 * least)))
    assert isinstance(left_out, SkippedRule) and f"solving {T} problems" in left_out.why


def test_states_follow_the_decisions_of_each_rule() -> None:
    game, data = game_of(STORE)
    for played in play_stepwise([StepRule(Last()), StepRule(Mean())], game):
        assert isinstance(played, Played)
        stored = 5.0
        for charge in played.decisions["charge"]:
            stored = 0.9 * stored + charge
            assert -1e-5 <= stored <= 10 + 1e-5
    result = beside(RuleChoice.SOME, game.problem, data, game.trade)
    assert len(result.played) == 2 and not result.left_out


def test_a_share_of_rounds_is_kept_by_the_margin_of_the_model() -> None:
    game, _ = game_of(SHARE)
    (played,) = play_stepwise([StepRule(Mean())], game)
    assert isinstance(played, Played)
    assert (played.constraints[:, 0] > 1e-6).sum() <= 0.2 * T + 0.8


def test_gradients_keep_to_what_is_known_before_the_decision() -> None:
    problem = canonical(oco.parse(CONTEXT))
    rng = np.random.default_rng(0)
    data = Data(
        problem, T, MappingProxyType({s.name: rng.uniform(s.lower, s.upper, (T, *s.shape)) for s in problem.streams})
    )
    played = play(FixedPenalty(), problem, data, Trade.at_price(problem, 10.0))
    assert isinstance(played, Played)
    np.testing.assert_allclose(played.decisions["p"].sum(1), data.given["load"], atol=1e-5)
