"""Rules of practice under less than full feedback: they see what was played alone, and those that see more are marked."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from thorough import thorough

import oco
from oco.compiler.problem.canonical import canonical
from oco.evaluation.baselines.base import Played, play
from oco.evaluation.baselines.rules import RuleChoice, beside, cheap_rules, rules
from oco.evaluation.baselines.values import EpsilonGreedy, SimultaneousPerturbation, sees_more
from oco.evaluation.cost import Trade
from oco.evaluation.data import Data

TEXT = """model m
horizon T = 60
decision x[2] in box(-1, 1)
stream a[2] in [-1, 1]
minimize sum_squares(x - a)
subject to
    cap: sum(x) + a[0] <= 1   each round
feedback bandit
"""
FREE = TEXT.replace("subject to\n    cap: sum(x) + a[0] <= 1   each round\n", "")


def rounds(text: str = TEXT, T: int = 60):
    problem = canonical(oco.parse(text).with_horizon(T))
    a = np.clip(np.random.default_rng(5).normal([0.5, -0.3], 0.1, (T, 2)), -1, 1)
    return problem, Data(problem, T, MappingProxyType({"a": a})), Trade.at_price(problem, 3.0)


@pytest.mark.parametrize("rule", [SimultaneousPerturbation(), EpsilonGreedy()], ids=lambda r: type(r).__name__)
def test_a_round_says_no_more_than_the_value_of_what_was_played(rule) -> None:
    """Other losses with the same values at the decisions that were played leave all decisions as they are.

    In round t the loss |x - a|^2 is that of a turned about the decision x_t, as far from it in another direction.
    """
    problem, data, trade = rounds(FREE)
    before = play(rule, problem, data, trade)
    assert isinstance(before, Played)
    x, a = before.decisions["x"], data.given["a"]
    turn = np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]])
    turned = x + (a - x) @ turn.T
    after = play(rule, problem, replace(data, given=MappingProxyType({"a": turned})), trade)
    np.testing.assert_allclose(after.decisions["x"], x, atol=1e-9)
    np.testing.assert_allclose(after.loss, before.loss, atol=1e-9)


def test_simultaneous_perturbation_goes_where_values_are_less_and_pairs_surround_its_point() -> None:
    problem, data, trade = rounds(FREE, 400)
    x = play(SimultaneousPerturbation(), problem, data, trade).decisions["x"]
    middle = (x[0::2] + x[1::2]) / 2
    np.testing.assert_allclose(middle[:6], 0.0, atol=1e-12)  # five pairs to set the gain, at the centre
    np.testing.assert_allclose(middle[-1], [0.5, -0.3], atol=0.1)
    width = np.abs(x[0::2] - middle)
    np.testing.assert_allclose(width, 0.1 / np.arange(1, 201)[:, None] ** 0.101 * np.ones(2), atol=1e-12)


def test_the_least_mean_value_is_that_of_the_decisions_played() -> None:
    """Five decisions, each once at first; then the one with the least mean in nine rounds of ten or more."""
    problem, data, trade = rounds(T=400)
    played = play(EpsilonGreedy(), problem, data, trade)
    x = played.decisions["x"]
    arms = np.array([[0, 0], [0.5, 0], [0, 0.5], [-0.5, 0], [0, -0.5]])
    np.testing.assert_allclose(x[:5], arms)
    values = played.loss + trade.prices[0] * np.maximum(played.constraints[:, 0], 0)
    which = np.argmin(np.abs(x[:, None] - arms).sum(axis=2), axis=1)
    greedy = [
        which[t] == np.argmin([values[:t][which[:t] == k].mean() for k in range(5)]) for t in range(5, len(which))
    ]
    assert 0.85 < np.mean(greedy) < 1.0


@pytest.mark.parametrize("feedback", ["bandit", thorough("two_point"), thorough("gradient")])
def test_rules_that_see_more_are_marked_and_come_last(feedback: str) -> None:
    cheap = cheap_rules(canonical(oco.parse(TEXT.replace("bandit", feedback))))
    assert not any(sees_more(r.name) for r in cheap) and len(cheap) >= 2
    problem, data, trade = rounds(FREE.replace("bandit", feedback), 12)
    found = beside(RuleChoice.ALL, problem, data, trade)
    marks = [sees_more(r.name) for r in found.played]
    assert marks == sorted(marks) and any(marks) and not marks[0]
    assert len(found.played) == len(rules(problem)) and not found.left_out


def test_gradient_rules_tune_nothing_where_other_points_are_not_seen() -> None:
    """One choice of the numbers is played; under full feedback the first fifth chooses among several, and the name says so."""
    problem, _, _ = rounds(TEXT.replace("bandit", "gradient"))
    assert all(len(r.steps) == len(r.rates) == 1 and "tuned" not in r.name for r in cheap_rules(problem))
    full = rules(canonical(oco.parse(TEXT.replace("feedback bandit\n", ""))))
    assert "projected gradient, penalty and step tuned on the first fifth" in [r.name for r in full]
