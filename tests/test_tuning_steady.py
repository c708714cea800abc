"""Tuning against known answers: the steady state is judged, the default is never lost, and what is gained is stated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from driving import situation
from scipy.stats import t as student
from scipy.stats import ttest_1samp

import oco
from oco.compiler.prover.seen_ranges import seen_ranges
from oco.compiler.selection.plan import compile_plan
from oco.compiler.selection.variants import variants
from oco.compiler.selection.verdicts import Informativeness
from oco.compiler.theory.theorems import Free
from oco.dsl.load import parse
from oco.evaluation.by_chance import exceeded_by_chance
from oco.evaluation.cost import PartOfRounds, SteadyCost, Trade
from oco.evaluation.data import Data
from oco.evaluation.tuning import SearchSpace, TriedConstants, Tuning, tune

T = 200
BUDGET = """model m
horizon T = 200
decision x in box(0, 1)
stream c in [0, 1]
minimize -c * x
subject to
    budget: x - 0.5 <= 0   on average
"""
FREE = (Free("a", 0.01, 100.0),)
Rule = Callable[[float, np.ndarray], tuple[np.ndarray, np.ndarray]]


class Known:
    """Plan whose loss (T,) and constraint (T,) are known functions of its constant and of the rounds' numbers from 0."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def trial(self, rounds: int, runs: int) -> Any:
        def run(numbers: Mapping[str, float], data: Data, seed: int) -> Any:
            loss, g = self.rule(numbers["a"], np.arange(data.rounds, dtype=np.float64))
            values = {"loss": loss, "constraints": g[:, None], "equalities": np.zeros((len(loss), 0))}
            return SimpleNamespace(problem=data.problem, **values)

        return run


def tuned(rule: Rule, default: float = 1.0) -> Tuning:
    data = Data(compile_plan(parse(BUDGET)).canonical, T, MappingProxyType({"c": np.zeros(T)}))
    spaces = {"rule": SearchSpace(Known(rule), FREE, {"default": {"a": default}})}
    return tune(spaces, data, situation(BUDGET))


def test_what_pays_at_first_and_not_later_is_not_taken() -> None:
    """A large constant earns at once and then nothing; the steady state is least at a = 0.3, though all 120 rounds together favour 100."""

    def rule(a: float, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        steady = np.log(a / 0.3) ** 2
        return np.where(t < 20, -50.0 * a, steady), np.zeros(len(t))

    result = tuned(rule)
    assert result.best is result.winner and result.best.numbers["a"] == pytest.approx(0.3, rel=0.25)
    assert result.gained == pytest.approx(np.log(1 / 0.3) ** 2 - np.log(result.best.numbers["a"] / 0.3) ** 2)
    assert "so they are taken" in str(result) and "is gained" in str(result)


def test_the_default_stays_where_nothing_is_better_on_the_rounds_held_out() -> None:
    """What the search prefers costs more after round 120, and the default is kept."""

    def rule(a: float, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        apart = abs(np.log(a))
        return np.where(t < 120, -apart, apart), np.zeros(len(t))

    result = tuned(rule)
    assert result.winner is not result.default and result.best is result.default and result.gained == 0
    assert "nothing is gained" in str(result)


@pytest.mark.parametrize(("gain", "is_taken"), [(0.02, False), (0.2, False), (0.4, True)])
def test_what_chance_may_gain_is_not_taken(gain: float, is_taken: bool) -> None:
    """Noise of size 1 on 80 rounds held out: what is taken is what SciPy's one-sided t-test of the means of ten blocks finds at 1%."""
    noise = np.random.default_rng(1).normal(0, 1, T)
    noise[120:] -= noise[120:].mean() + gain

    def rule(a: float, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        later = np.where(a == 1, 0.0, noise[: len(t)])
        return np.where(t < 120, abs(np.log(a / 3)), later), np.zeros(len(t))

    result = tuned(rule)
    means = noise[120:].reshape(10, 8).mean(axis=1)
    assert (ttest_1samp(means, 0.0, alternative="less").pvalue < 0.01) == is_taken
    assert result.winner.held.value < result.default.held.value
    assert (result.best is result.winner) == is_taken and ("chance" in str(result)) != is_taken
    assert result.by_chance == pytest.approx(student.ppf(0.99, 9) * means.std(ddof=1) / np.sqrt(10))


def test_what_chance_exceeds_is_the_quantile_of_students_t() -> None:
    for degrees in range(1, 31):
        exceeded = [exceeded_by_chance(degrees, share) for share in (0.001, 0.01, 0.2)]
        assert exceeded == pytest.approx(student.isf([0.001, 0.01, 0.2], degrees), rel=1e-10)


def test_waves_are_no_gain() -> None:
    """Differences of mean 0 that stay for four rounds each, 2,000 times: one in a hundred is taken, where one standard error of rounds that
    were independent would take a quarter of them.
    """
    drawn = np.repeat(np.random.default_rng(2).normal(0, 1, (2000, 20)), 4, axis=1)

    def takes(apart: np.ndarray) -> bool:
        ours = TriedConstants("ours", {}, 0.0, 120, held=SteadyCost(float(apart.mean())), each=tuple(apart))
        default = TriedConstants("default", {}, 0.0, 120, held=SteadyCost(0.0), each=(0.0,) * len(apart))
        result = Tuning((ours, default), "default", 120, 200, 0)
        return result.best is ours

    simple = drawn.mean(axis=1) < -drawn.std(axis=1, ddof=1) / np.sqrt(80)
    assert np.mean([takes(x) for x in drawn]) < 0.02 and simple.mean() > 0.25


def test_a_default_that_cannot_run_is_replaced() -> None:
    """Decisions of the default are not finite in the long run: what is, whatever it costs, is taken."""

    def rule(a: float, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.where((t >= 120) & (a == 1), np.inf, 5.0 + abs(np.log(a / 3))), np.zeros(len(t))

    result = tuned(rule)
    assert result.best is result.winner and result.winner is not result.default


@pytest.mark.parametrize("seed", range(5))
def test_costs_of_rounds_add_up_to_the_cost(seed: int) -> None:
    """Inequalities each round and on average, broken and not, and equalities of both signs; one that does not count."""
    rng = np.random.default_rng(seed)
    run = PartOfRounds(rng.normal(0, 1, 50), rng.normal(0, 1, (50, 5)), rng.normal(0, 1, (50, 2)))
    units = np.array([2.0, 0.0, 1.0, 0.5, 3.0, 1.0, 4.0])
    trade = Trade(np.array([True, True, False, False, True]), 2.0, units, 0.7)
    assert trade.each(run).mean() == pytest.approx(trade.score(run)[2], abs=1e-12)


@pytest.mark.parametrize("late", [0.5, 0.2])
def test_spending_that_savings_hide_comes_last(late: float) -> None:
    """Large constants spend nothing for 50 rounds and then `late` above the budget: cheap for the search, and ruinous in a long run."""

    def rule(a: float, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        over = np.where(t < 50, -1.0, late) if a > 1 else np.full(len(t), -0.01)
        return np.full(len(t), -a), over

    result = tuned(rule)
    assert not result.best.grows and result.best.numbers["a"] <= 1
    assert any(t.grows for t in result.tried if t.numbers["a"] > 1)


def test_a_trend_of_spending_is_noticed() -> None:
    """Spending that rises through the budget towards the end of the search is not over; what keeps below it is taken."""

    def rule(a: float, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(t), -a), np.where(a > 1, (t - 95.0) / 100, -0.2)

    assert tuned(rule).best.numbers["a"] <= 1


def test_a_campaign_tuned_on_its_first_fifth_does_not_overspend_later() -> None:
    """Seasons of 24 rounds; what was chosen on 160 rounds spends at most a tenth more than the budget in the 640 after them."""
    text = """model pacing
horizon T = 800
decision x[2] in box(0, 1)
stream traffic[2] in [0, 20]
stream price[2]   in [0, 4]
minimize -sum(traffic * log(1 + 4 * x))
subject to
    budget: price @ x <= 0.5   on average
"""
    rng, t = np.random.default_rng(3), np.arange(800)
    day = 1 + 0.8 * np.sin(2 * np.pi * t[:, None] / 24 + 0.5 * np.arange(2))
    rounds = {
        "traffic": np.array([1.0, 3.0]) * day * rng.lognormal(0, 0.3, (800, 2)),
        "price": np.array([0.6, 1.0]) * (2 - day / 2) * rng.lognormal(0, 0.2, (800, 2)),
    }
    result = oco.tune(parse(text), {n: v[:160] for n, v in rounds.items()}, "recoo", seconds=2.0)
    run = result.plan.run(rounds)
    spent = (run.constraints[160:, 0] + 0.5).sum() / (0.5 * 640)
    assert 0.3 < spent < 1.1
    default = oco.compile(parse(text), "recoo", "optimal").run(rounds)
    assert run.loss[160:].sum() <= default.loss[160:].sum()


# Guarantees on the rounds seen.

RANGES = """model m
horizon T = 50
decision x[3] in box(0, 2)
stream price[3] in [-{wide}, {wide}]
stream need in [0, {wide}]
minimize price @ x
subject to
    serve: need - sum(x) <= 0   each round
"""


def rounds_seen(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"price": rng.uniform(-1, 1, (50, 3)), "need": rng.uniform(0, 2, 50)}


def test_the_worst_on_the_rounds_seen_is_that_of_the_corners() -> None:
    """sup f - inf f = 2 sum |price|, sup [g]_+ = need, whatever ranges are declared."""
    data = rounds_seen()
    for wide in (10, 1000):
        ranges = seen_ranges(compile_plan(parse(RANGES.format(wide=wide))).canonical, data)
        assert ranges.loss == pytest.approx(2 * np.abs(data["price"]).sum(1).mean())
        np.testing.assert_allclose(ranges.inequalities, [data["need"].mean()])


def test_of_many_rounds_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten of fifty, spread evenly, the first and the last among them."""
    monkeypatch.setattr("oco.compiler.prover.seen_ranges.LOOKED_AT", 10)
    data, places = rounds_seen(), np.linspace(0, 49, 10).astype(int)
    ranges = seen_ranges(compile_plan(parse(RANGES.format(wide=10))).canonical, data)
    assert ranges.loss == pytest.approx(2 * np.abs(data["price"][places]).sum(1).mean())
    np.testing.assert_allclose(ranges.inequalities, [data["need"][places].mean()])


def test_a_guarantee_above_the_worst_on_the_rounds_seen_is_vacuous() -> None:
    """The bound is far below what declared ranges allow, and far above what any decisions could have done."""
    model, data = parse(RANGES.format(wide=1000)), rounds_seen()
    unseen, seen = compile_plan(model, "nested"), compile_plan(model, "nested", seen=data)
    assert unseen.guarantee is not None and seen.guarantee is not None
    bound = seen.guarantee.regret_bound
    assert bound.number(50) == unseen.guarantee.regret_bound.number(50)
    assert not unseen.guarantee.regret_bound.vacuous(50) and bound.vacuous(50)
    assert bound.worst == pytest.approx(2 * np.abs(data["price"]).sum(1).mean())
    assert "on the data no decisions cost more than" in str(seen.explain())
    assert seen.choice.verdicts[0].informativeness is Informativeness.VACUOUS


def test_other_prices_and_memories_are_searched() -> None:
    """`nested` has windows, `hedged` prices: each is a verdict that compiles again from its setting."""
    model = parse(RANGES.format(wide=10).replace("each round", "each round, penalty 5"))
    windows = variants(compile_plan(model, "nested", "optimal").choice)
    assert "window = 24" in windows
    prices = variants(compile_plan(model, "hedged", "optimal").choice)
    assert {"penalty = 0.5", "penalty = 15", "penalty = 50", "season = 7"} <= set(
        prices
    ) and "season = 24" not in prices
    assert prices["penalty = 50"].settings["penalty"].value == 50


def test_a_space_that_costs_less_is_searched_further() -> None:
    """The second algorithm's own constants cost less than the first's, and the search goes on there."""
    data = Data(compile_plan(parse(BUDGET)).canonical, T, MappingProxyType({"c": np.zeros(T)}))

    def away(of: float) -> Known:
        return Known(lambda a, t: (np.full(len(t), abs(np.log(a / 0.5)) + of), np.zeros(len(t))))

    spaces = {
        "first": SearchSpace(away(5.0), FREE, {"default": {"a": 1.0}}),
        "second": SearchSpace(away(0.0), FREE, {"second": {"a": 1.0}}),
    }
    result = tune(spaces, data, situation(BUDGET))
    assert result.best.space == "second" and result.best.numbers["a"] == pytest.approx(0.5, rel=0.3)
    assert result.reference == "default" and result.default.space == "first"
    assert replace(result, tried=(result.default,)).gained == 0


def test_no_constants_are_tried_twice_over_the_same_rounds() -> None:
    """A start at the end of its range, to which half of all draws are cut: each trial of a rung is another one."""
    tried: list[tuple[float, int]] = []

    def rule(a: float, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tried.append((a, len(t)))
        return np.full(len(t), abs(np.log(a / 50))), np.zeros(len(t))

    result = tuned(rule, default=100.0)
    searched = [x for x in tried if x[1] < T]
    assert len(set(searched)) == len(searched) > 20
    assert result.best.numbers["a"] == pytest.approx(50, rel=0.2)
