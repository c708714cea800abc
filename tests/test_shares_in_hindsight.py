"""Constraints in a share of the rounds whose streams multiply decisions: worst values, decisions in hindsight, rules to compare with."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from statistics import NormalDist
from types import MappingProxyType

import cvxpy as cp
import numpy as np
import pytest
from test_c99 import has_compiler

import oco
from oco.compiler.problem.canonical import Canonical, canonical
from oco.evaluation.baselines.base import Played
from oco.evaluation.baselines.rules import RuleChoice, beside
from oco.evaluation.comparators.base import ComparatorStatus
from oco.evaluation.comparators.shares import in_shares
from oco.evaluation.cost import Trade
from oco.evaluation.data import Data
from oco.evaluation.report.verdict import verdict
from oco.evaluation.summary import summarize

POWER = """
model power
horizon T = {T}
decision p[3] in box(0, 2)
stream gain[3] in [0, 10]
stream leak[3] in [0, 3]
maximize sum(log(1 + gain * p))
subject to
    neighbour: leak @ p <= 1  in 75% of rounds
"""
LEVEL = """
model level
horizon T = 40
decision x in box(0, 4)
stream a in [0, 9]
stream b in [0, 9]
maximize x
subject to
    first: a * x <= 2  in 90% of rounds
    second: b * x <= 2  in 80% of rounds
"""


def standing(text: str) -> Canonical:
    return canonical(oco.parse(text)).standing


def data_of(problem: Canonical, rounds: int, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    given = {s.name: rng.uniform(s.lower, s.upper, (rounds, *s.shape)) for s in problem.streams}
    return Data(problem, rounds, MappingProxyType(given))


def test_the_best_decision_of_one_number_is_at_quantiles_of_the_data() -> None:
    problem = standing(LEVEL)
    for seed in range(3):
        data = data_of(problem, 40, seed)
        found = in_shares(problem, data)
        a, b = (np.sort(data.given[name])[::-1] for name in ("a", "b"))
        assert found is not None and found.status is ComparatorStatus.INTERVAL
        # 0.1 * 40 + 0.9 rounds may break the first and 0.2 * 40 + 0.8 the second: 4 and 8.
        assert float(found.decision["x"]) == pytest.approx(min(2 / a[4], 2 / b[8]), rel=1e-6)
        assert found.bound <= -4 * 40 + 1e-6


def test_a_decision_in_hindsight_beside_all_choices_of_rounds() -> None:
    T, problem = 8, standing(POWER.format(T=8))
    for seed in range(2):
        data = data_of(problem, T, seed)
        gain, leak = data.given["gain"], data.given["leak"]
        found = in_shares(problem, data)
        assert found is not None
        x = found.decision["p"]
        assert (leak @ x > 1 + 1e-6).sum() <= 2  # 0.25 * 8 + 0.75
        p, left_out = cp.Variable(3), cp.Parameter(T, nonneg=True)
        loss = -sum(cp.sum(cp.log(1 + cp.multiply(g, p))) for g in gain)
        chosen = cp.Problem(
            cp.Minimize(loss), [leak @ p <= 1 + 20 * left_out, p >= 0, p <= 2]
        )  # leak @ p is 18 at most
        assert found.value == pytest.approx(-np.log(1 + gain * x).sum(), rel=1e-9)
        values = []
        for left in combinations(range(T), 2):
            left_out.value = [float(t in left) for t in range(T)]
            values.append(chosen.solve(solver=cp.CLARABEL))
        assert found.bound - 1e-5 <= min(values) <= found.value + 1e-5
        assert found.value <= min(values) + 0.1 * abs(min(values))


def test_what_the_constraint_allows_without_it_is_certified() -> None:
    problem = standing(LEVEL.replace("<= 2", "<= 90"))
    found = in_shares(problem, data_of(problem, 40))
    assert found is not None and found.status is ComparatorStatus.CERTIFIED
    assert float(found.decision["x"]) == pytest.approx(4, rel=1e-6)
    assert in_shares(standing(LEVEL.split("subject")[0]), data_of(problem, 40)) is None


STATED = "~ normal(0.5, 0.1) in [0, 3]"


@pytest.mark.parametrize(("ranges", "at"), [("in [0, 3]", 3.0), (STATED, NormalDist(0.5, 0.1).inv_cdf(0.75))])
def test_rounds_that_may_break_no_more_hold_at_the_worst_values(ranges: str, at: float) -> None:
    """Decisions begin where the row holds whatever comes, or for what is likely as stated, and not where nothing is decided."""
    text = POWER.format(T=80).replace("leak[3] in [0, 3]", f"leak[3] {ranges}")
    (row,) = standing(text).inequalities
    assert row.margin is not None and row.margin.enough
    plan = oco.compile(oco.parse(text), "hedged")
    learner = plan.learner(backend="c" if has_compiler() else "numpy")
    first = learner.decide()
    assert at * first.sum() == pytest.approx(1, abs=1e-5)
    assert any("streams at their worst" in line for line in plan.contract.guarantee)
    broken = 0
    rng = np.random.default_rng(3)
    for t in range(80):
        x = learner.decide()
        leak = np.full(3, 0.1) if t % 5 < 2 else rng.uniform(0.1, 3, 3) if t < 40 else np.full(3, 3.0)
        broken += leak @ x > 1 + 1e-6
        learner.observe(gain=rng.uniform(1, 10, 3), leak=leak)
    assert 5 <= broken <= row.margin.allowed(80)


def test_a_verdict_compares_with_the_decision_that_keeps_shares() -> None:
    problem = standing(LEVEL)
    data = data_of(problem, 40)
    trace = oco.compile(oco.parse(LEVEL), "hedged").run(dict(data.given), backend="numpy")
    run, found = summarize(trace), in_shares(problem, data)
    assert found is not None and run.in_shares == pytest.approx(found.value, rel=1e-9)
    assert run.to_json()["in_shares"] == run.in_shares
    words = " ".join(verdict(trace, run, "data", "algorithm", ()).split())
    assert "best fixed decision found that keeps constraints in their shares of rounds" in words


def test_rules_solve_all_rounds_at_once_where_a_round_at_a_time_is_too_much() -> None:
    T, problem = 300, canonical(oco.parse(POWER.format(T=300)))
    revealed = replace(problem, streams=problem.revealed)
    data, trade = data_of(revealed, T), Trade.at_price(problem.standing, 10.0)
    result = beside(RuleChoice.SOME, problem, data, trade, seconds=0.2)
    assert len(result.played) == 2 and not result.left_out
    gain, leak = data.given["gain"], data.given["leak"]
    other = {n: np.concatenate([v[:100], v[:-101:-1], v[200:]]) for n, v in data.given.items()}
    again = beside(RuleChoice.SOME, problem, replace(data, given=MappingProxyType(other)), trade, seconds=0.2)
    by_name = {r.name: r for r in again.played}
    for rule in result.played:
        x = rule.decisions["p"]
        np.testing.assert_allclose(by_name[rule.name].decisions["p"][:100], x[:100], atol=1e-6)
        assert isinstance(rule, Played) and "0.75 quantile" in rule.name
        np.testing.assert_allclose(rule.loss, -np.log(1 + gain * x).sum(axis=1), rtol=1e-9)
        np.testing.assert_allclose(rule.constraints[:, 0], (leak * x).sum(axis=1) - 1, atol=1e-9)
        assert (rule.constraints[20:, 0] > 0).mean() <= 0.35
