"""Rounds drawn from stated distributions before the first one: where `hedged` begins, and what of it stays."""

from __future__ import annotations

import numpy as np
import pytest
from driving import plan_of
from test_c99 import has_compiler

import oco
from oco.compiler.algorithms.rehearsal import ROUNDS, is_whole, rehearsed
from oco.dsl.load import parse

SHOP = """
model shop
horizon T = 60
decision x[2] in box(0, 20)
stream price[2] {price}
stream jobs ~ poisson(4) in 0..20
minimize price @ x
subject to
    service: jobs - sum(x) <= 0     each round, penalty 50
"""
STATED = SHOP.format(price="~ uniform(1, 2) in [0, 9]")
PARTLY = SHOP.format(price="in [0, 9]")


def test_it_begins_where_the_stated_distribution_leads() -> None:
    """Near the demand's quantiles, far from the middle of the domain; losses and weights begin at nothing."""
    for text in (STATED, PARTLY):
        learner = oco.compile(parse(text), "hedged").learner(backend="numpy")
        first = float(np.sum(learner.decide()))
        assert 4 <= first <= 14 and abs(first - 20) > 5
        assert not learner.values["L"].any() and learner.values["gap_of"] == 0 and learner.round == 1
        assert learner.values["margin"].any() and bool(learner.values["S"].any()) == (text is STATED)


def test_what_is_drawn_is_as_stated() -> None:
    for text, whole in ((STATED, True), (PARTLY, False)):
        problem = plan_of(text, "hedged").choice.situation.canonical
        problem = problem.unscaled or problem
        data = rehearsed(problem)
        assert is_whole(problem) == whole and {n: v.shape for n, v in data.items()} == {
            "price": (ROUNDS, 2),
            "jobs": (ROUNDS,),
        }
        assert data["jobs"].dtype == np.int64 and data["jobs"].max() <= 20 and abs(data["jobs"].mean() - 4) < 1.5
        assert whole or (data["price"] == 4.5).all()


@pytest.mark.parametrize(
    "change",
    [("jobs ~ poisson(4) in 0..20", "jobs in 0..20"), ("stream jobs ~ poisson(4) in 0..20", "context jobs in 0..20")],
)
def test_without_a_distribution_or_before_a_context_nothing_is_rehearsed(change: tuple[str, str]) -> None:
    problem = plan_of(STATED.replace(*change), "hedged").choice.situation.canonical
    assert not rehearsed(problem.unscaled or problem)


def test_a_start_that_somebody_chose_stays() -> None:
    plan = oco.compile(parse(STATED), "hedged")
    own = np.array([1.0, 2.0])
    np.testing.assert_allclose(plan.learner(start=own, backend="numpy").decide(), own, atol=1e-12)


def test_the_guarantee_counts_the_rounds_before() -> None:
    stated, partly = (plan_of(text, "hedged").guarantee for text in (STATED, PARTLY))
    assert stated is not None and partly is not None
    assert "B" in {q.name for q in stated.regret_bound.quantities}
    assert "B" not in {q.name for q in partly.regret_bound.quantities}


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_c_begins_as_numpy_does() -> None:
    rng = np.random.default_rng(1)
    plan = oco.compile(parse(STATED), "hedged")
    learners = [plan.learner(backend=b) for b in ("numpy", "c")]
    for _ in range(12):
        a, b = (np.asarray(x.decide()) for x in learners)
        np.testing.assert_allclose(a, b, atol=1e-9)
        price, jobs = rng.uniform(1, 2, 2), int(rng.poisson(4))
        for x in learners:
            x.decide()
            x.observe(price=price, jobs=jobs)


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_the_first_rounds_cost_less() -> None:
    """In the mean over draws, against a model that states no distribution."""
    unstated = SHOP.format(price="in [0, 9]").replace("jobs ~ poisson(4) in", "jobs in")
    plans, costs = [oco.compile(parse(text), "hedged", backend="c") for text in (STATED, unstated)], np.zeros(2)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        data = {"price": rng.uniform(1, 2, (60, 2)), "jobs": rng.poisson(4, 60)}
        for k, plan in enumerate(plans):
            trace = plan.run(data)
            costs[k] += trace.loss[:10].sum() + 50 * np.maximum(trace.constraints[:10], 0).sum()
    assert costs[0] < 0.9 * costs[1]
