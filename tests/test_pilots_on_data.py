"""The choice on data: pilot runs of all algorithms that apply decide, within a limit of wall time."""

from __future__ import annotations

from functools import cache, partial
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from driving import plan_for

import oco
from oco import tuning
from oco.dsl.statements import Feedback
from oco.evaluation import pilot as pilot_module
from oco.evaluation.cost import Trade
from oco.plan import Plan

TEXT = """
model pacing
horizon T = 480
decision bid[3] in box(0, 1)
stream value[3] in [0, 10]
stream price[3] in [0, 10]
minimize -(value @ bid)
subject to
    budget: price @ bid <= 3 on average
"""


def rounds(seed: int) -> dict[str, np.ndarray]:
    """Prices and values with a season of 96 rounds, far below what the model allows."""
    rng = np.random.default_rng(seed)
    season = 1 + 0.6 * np.sin(2 * np.pi * np.arange(480) / 96)[:, None]
    price, value = (season * rng.lognormal(mean, sd, (480, 3)) for mean, sd in ((0.6, 0.4), (0.8, 0.6)))
    return {"price": np.clip(price, 0, 10), "value": np.clip(value[::-1], 0, 10)}


@pytest.fixture(autouse=True)
def _piloted(monkeypatch: pytest.MonkeyPatch) -> None:
    """No algorithm that weighs others goes first, as where the feedback keeps it out: pilot runs decide."""
    monkeypatch.setattr(tuning, "_ahead_of_pilots", lambda choice, data: None)


@cache
def on_data(text: str = TEXT, settings: str | None = None) -> Plan:
    """Plan by pilots on the rounds of seed 0."""
    return oco.compile(oco.parse(text), data=rounds(0), budget=60, settings=settings)


def test_an_ad_campaign_earns_the_most_of_those_that_keep_the_budget() -> None:
    """The learner whose guarantee is the best number earns less; those that earn more overspend ever more, and no price excuses that."""
    plan, data = on_data(), rounds(0)
    pilots = plan.choice.pilots
    assert pilots is not None and not pilots.left_out
    able = [v for v in plan.choice.verdicts if v.guarantee is not None or v.name == "hedged"]
    usable = [v for v in able if v.algorithm.reads is not Feedback.BANDIT]
    assert set(pilots.order) == {v.name for v in usable} and len(usable) > 4
    best = {name: next(r for r in pilots.results if r.algorithm == name) for name in pilots.order}
    kept, growing = ({n for n, r in best.items() if r.grows is grows} for grows in (False, True))
    assert plan.algorithm in kept and best[plan.algorithm].cost == min(best[n].cost for n in kept)
    assert min(best[n].cost for n in growing) < min(best[n].cost for n in kept - {"hedged"})
    runs = {v.name: plan.taking(v).run(data) for v in usable}
    over = {n: run.constraints.sum() for n, run in runs.items()}
    assert max(over[n] for n in kept) < 0.05 * 3 * 480 < 0.1 * 3 * 480 < min(over[n] for n in growing)
    by_guarantee = plan_for(TEXT)
    assert by_guarantee.choice.pilots is None
    assert -runs[plan.algorithm].loss.sum() > -1.4 * runs[by_guarantee.algorithm].loss.sum()


def test_a_stated_penalty_weighs_the_violation_instead() -> None:
    """With a price the cheapest run is taken: earnings less what the overspending costs."""
    plan, data = on_data(TEXT.replace("on average", "on average, penalty 2"), "unit-free"), rounds(0)
    pilots = plan.choice.pilots
    assert pilots is not None and not any(r.grows for r in pilots.results)
    first = {n: v[: pilots.rounds] for n, v in data.items()}
    runs = {name: plan.only(name).run(first) for name in pilots.order}
    costs = {n: run.loss.sum() + 2 * max(run.constraints.sum(), 0) for n, run in runs.items()}
    assert costs[plan.algorithm] == min(costs.values())


def test_violation_that_grows_in_the_second_half_is_seen_through_savings() -> None:
    """Spending 2 below the budget for 50 rounds and 1 above it for 50 leaves no violation, and the run has come to rest above it."""
    plan = on_data()
    trade = Trade.of(plan.choice.situation, 1.0)

    def run(*values: tuple[float, int]) -> SimpleNamespace:
        g = np.concatenate([np.full((n, 1), x) for x, n in values])
        return SimpleNamespace(loss=np.zeros(len(g)), constraints=g, equalities=np.zeros((len(g), 0)))

    for values, grows in (((-2.0, 50), (1.0, 50)), True), (((3.0, 50), (-1.0, 50)), False), (((1.0, 100),), True):
        assert trade.steady(run(*values)).grows is grows, values
    rising = run(
        (-1.0, 50), (-1.0, 25), (0.9, 25)
    )  # below the budget in the mean of the second half, above it at its end
    assert trade.steady(rising).grows and not trade.steady(run((-1.0, 75), (0.01, 25))).grows


def test_a_run_costs_what_its_second_half_costs() -> None:
    """Earnings, savings and violations of the first half count for nothing; a given start counts instead."""
    trade = Trade.of(on_data().choice.situation, 1.0)
    loss = np.concatenate([np.full(50, -100.0), np.full(50, 1.0)])
    g = np.concatenate([np.full((50, 1), -5.0), np.full((50, 1), 2.0)])
    cost = trade.steady(SimpleNamespace(loss=loss, constraints=g, equalities=np.zeros((100, 0))))
    assert (cost.own_loss, cost.own_violation) == (1.0, 2.0)
    later = trade.steady(SimpleNamespace(loss=loss, constraints=g, equalities=np.zeros((100, 0))), 25)
    assert later.own_loss == pytest.approx((-25 * 100 + 50) / 75) and later.own_violation == 0


def test_a_bad_beginning_counts_once_and_its_end_for_all_rounds_to_come() -> None:
    """A rule that loses 1,000 before it comes to rest at 1 costs less than one that rests at 2 from 1,000 more rounds on."""
    trade = Trade.of(on_data().choice.situation, 1.0)

    def cost(rounds: int | None, *values: tuple[float, int]) -> float:
        loss = np.concatenate([np.full(n, x) for x, n in values])
        empty = np.zeros((len(loss), 0))
        run = SimpleNamespace(loss=loss, constraints=np.full((len(loss), 1), -1.0), equalities=empty)
        return trade.projected(run, rounds).value * trade.loss_unit

    bad, steady = ((20.0, 50), (1.0, 50)), ((2.0, 100),)
    assert cost(None, *bad) == pytest.approx(1) and cost(None, *steady) == pytest.approx(2)
    assert cost(1000, *bad) == pytest.approx((20 * 50 + 950) / 1000) and cost(1000, *steady) == pytest.approx(2)
    assert cost(800, *bad) > cost(800, *steady) and cost(40, *bad) == pytest.approx(1)


@pytest.mark.parametrize(("less", "kept"), [(0.01, True), (0.5, False), (-0.5, True)])
def test_the_default_stays_where_another_gains_what_chance_may_show(
    less: float, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Losses of 200 rounds with noise of 1: 0.01 less a round in their mean is chance, 0.5 is none."""
    monkeypatch.setattr(pilot_module, "usual_seconds", lambda program, rounds: 0.0)
    s, noise = on_data().choice.situation, np.random.default_rng(3).normal(0, 1, (2, 200))

    def plan(loss: np.ndarray) -> SimpleNamespace:
        parts = {"constraints": np.full((200, 1), -1.0), "equalities": np.zeros((200, 0))}
        return SimpleNamespace(
            program=None, run=lambda data, seed: SimpleNamespace(loss=loss, problem=s.canonical, **parts)
        )

    losses = {"default": noise[0] - noise[0].mean(), "other": noise[1] - noise[1].mean() - less}
    plans = {(name, False): partial(plan, loss) for name, loss in losses.items()}
    data = oco.evaluation.data.load_data(s.canonical, rounds(0), seed=0).first(200)
    pilots = pilot_module.pilot(plans, data, (0,), s, 1.0, "drawn", default="default")
    assert (pilots.order[0] == "default") is kept
    assert ("chance may show" in pilots.why("default")) is (kept and less > 0)


def test_pilots_are_planned_by_a_model_of_costs_and_not_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is a hundred times slower the same candidates run over the same rounds."""
    texts, first = [], {name: values[:48] for name, values in rounds(0).items()}
    for factor in (1.0, 100.0):
        ticks = count()
        monkeypatch.setattr(pilot_module, "perf_counter", lambda f=factor, k=ticks: 0.001 * f * next(k))
        short = oco.parse(TEXT.replace("480", "48"))
        pilots = oco.compile(short, data=first, budget=5, settings="unit-free").choice.pilots
        assert pilots is not None
        texts.append((pilots.order, pilots.rounds, pilots.left_out))
    assert texts[0] == texts[1]


def test_what_the_time_does_not_suffice_for_is_named() -> None:
    plan = oco.compile(oco.parse(TEXT), data=rounds(0), budget=0, settings="unit-free")
    pilots = plan.choice.pilots
    assert pilots is not None and not pilots.order  # nothing is compared, so nothing is run
    assert plan.algorithm == "hedged"
    why = plan.choice.verdicts[0].reason
    assert pilots.left_out and all(name in why for name in pilots.left_out) and "`--budget` gives more time" in why


@pytest.mark.parametrize("options", [{"algorithm": "coldq"}, {"settings": "paper"}])
def test_what_is_asked_for_needs_no_pilots(options: dict[str, str]) -> None:
    plan = oco.compile(oco.parse(TEXT), data=rounds(0), **options)
    assert plan.choice.pilots is None
