"""Rules of practice: what they decide, against closed forms, CVXPY and published numbers; and that they see the past alone."""

import json
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import MappingProxyType

import cvxpy as cp
import numpy as np
import pytest
import scipy.stats
from thorough import thorough

import oco
from oco.cli import main
from oco.compiler.problem.canonical import canonical
from oco.evaluation.baselines import base
from oco.evaluation.baselines.base import Game, Played, RuleUnavailable, SkippedRule, play
from oco.evaluation.baselines.gradients import FixedPenalty
from oco.evaluation.baselines.portfolios import BuyAndHold, ExponentiatedGradientPortfolio, nearest_in_norm, wealth
from oco.evaluation.baselines.predictions import Last, Mean, Stated, predicted
from oco.evaluation.baselines.resolve import NoMargin, Resolve, Resolving, TunedMargin
from oco.evaluation.baselines.rules import RuleChoice, beside, cheap_rules, rules
from oco.evaluation.baselines.stated import Deviations, OfModel, Quantile, WorstOfRange
from oco.evaluation.cost import Trade
from oco.evaluation.data import Data, load_data
from oco.evaluation.report import run_page
from oco.evaluation.report.run_page import report
from oco.evaluation.summary import summarize

ROOT = Path(__file__).parent.parent
NYISO = ROOT / "examples" / "data" / "nyiso_2017-05.csv"

JOBS = """model jobs
horizon T = 30
decision x[4] in box(0, 100)
stream price[4] in [-10, 50]
stream jobs ~ poisson(40) in [0, 70]
minimize price @ x
subject to
    service: jobs - 4 * sum(log(1 + x)) <= 0    each round
"""
MIXED = """model mixed
horizon T = 30
decision x[3] in box(0, 1)
decision y in box(-1, 1)
stream a[3] in [0, 2]
stream u ~ uniform(0, 1)
stream pick in 0..2
minimize sum_squares(x - a) + square(y - u) + a[pick] * y
subject to
    cap: a @ x + u * y <= 1.5       each round
    mean: sum(x) >= 0.3 + 0.1 * u   on average
"""
FOLIO = """model folio
horizon T = 30
decision w[3] in simplex
stream r[3] in [0.5, 2]
minimize -log(sum(r * w))
"""

REGRESSION = """model regression
horizon T = 30
decision w[3] in box(-5, 5)
decision c in box(-1, 1)
stream a[3] in [-1, 1]
stream y in [-3, 3]
minimize square(y - a @ w - c)
"""

CUT = 16
"""Round from which on other data come."""
DRAWN = JOBS.replace("price[4] in [-10, 50]", "price[4] ~ uniform(-10, 50)")


def drawn(text, seed=0, rounds=30):
    """Problem of a text with rounds drawn between the bounds of its streams."""
    problem = canonical(oco.parse(text).with_horizon(rounds))
    rng, given = np.random.default_rng(seed), {}
    for s in problem.streams:
        if s.distribution is not None:
            given[s.name] = s.distribution.sample(rng, rounds)
        else:
            values = rng.uniform(s.lower, s.upper, (rounds, *s.shape))
            given[s.name] = np.rint(values).astype(np.int64) if s.integer else values
    return problem, Data(problem, rounds, MappingProxyType(given))


def nyiso(rule):
    model = oco.load(ROOT / "examples" / "job_scheduling.oco").with_horizon(744)
    problem = canonical(model)
    played = play(rule, problem, load_data(problem, NYISO), Trade.at_price(problem, 1e5))
    assert isinstance(played, Played)
    excess = played.constraints[:, 0]
    return played.loss.sum() / 1e6, np.maximum(excess, 0).sum(), int((excess > 1e-6).sum())


@pytest.mark.parametrize(
    "rule, loss, late, rounds",
    [
        (Resolve(Mean(3), NoMargin()), 235.0, 15_620, 382),
        (Resolve(Mean(3), OfModel(Deviations(2))), 300.3, 334, 15),
        (Resolve(Stated(), OfModel(Deviations(4)), fixed=True), 396.4, 0, 0),
    ],
)
def test_rules_on_the_prices_of_new_york_cost_what_code_by_hand_found(rule, loss, late, rounds):
    """Figures of an independent implementation in NumPy, rounded as it gave them."""
    found = nyiso(rule)
    assert found == (pytest.approx(loss, abs=0.06), pytest.approx(late, abs=0.6), rounds)


@pytest.mark.parametrize(
    "text, part",
    [
        (JOBS, slice(0, None, 4)),
        thorough(JOBS, slice(2, None, 4)),
        thorough(JOBS, slice(1, None, 2)),
        thorough(MIXED, slice(0, None, 2)),
        (MIXED, slice(1, None, 4)),
        thorough(MIXED, slice(3, None, 4)),
        (FOLIO, slice(None)),
        (REGRESSION, slice(0, 2)),
    ],
)
def test_later_rounds_change_no_earlier_decision(text, part):
    problem, data = drawn(text)
    other = drawn(text, seed=1)[1]
    trade = Trade.at_price(problem, 10.0)
    for rule in rules(problem)[part]:
        before = play(rule, problem, data, trade)
        assert isinstance(before, Played), f"{rule.name}: {before}"
        given = {n: np.concatenate([v[:CUT], other.given[n][CUT:]]) for n, v in data.given.items()}
        after = play(rule, problem, Data(problem, 30, MappingProxyType(given)), trade)
        for name, x in before.decisions.items():
            np.testing.assert_allclose(after.decisions[name][: CUT + 1], x[: CUT + 1], atol=2e-4, err_msg=rule.name)


def test_every_decision_lies_in_the_domain_and_is_measured_as_the_model_says():
    problem, data = drawn(MIXED, rounds=16)
    for rule in rules(problem):
        played = play(rule, problem, data, Trade.at_price(problem, 10.0))
        x, y, s = played.decisions["x"], played.decisions["y"], data.given
        assert x.min() >= -1e-9 and x.max() <= 1 + 1e-9 and np.abs(y).max() <= 1 + 1e-9
        loss = ((x - s["a"]) ** 2).sum(1) + (y - s["u"]) ** 2 + s["a"][np.arange(16), s["pick"]] * y
        np.testing.assert_allclose(played.loss, loss, atol=1e-12)
        np.testing.assert_allclose(played.constraints[:, 0], (s["a"] * x).sum(1) + s["u"] * y - 1.5, atol=1e-12)


def test_a_round_that_is_solved_again_is_what_cvxpy_finds():
    problem, data = drawn(JOBS)
    played = play(Resolve(Last(), OfModel(Quantile(0.99))), problem, data, Trade.at_price(problem, 10.0))
    law = scipy.stats.poisson(40)
    jobs = law.ppf(0.99)
    for t in (1, 20, 29):
        x = cp.Variable(4)
        service = 4 * cp.sum(cp.log(1 + x)) >= jobs
        best = cp.Problem(cp.Minimize(data.given["price"][t - 1] @ x), [x >= 0, x <= 100, service])
        best.solve(solver="CLARABEL")
        mine = played.decisions["x"][t]
        assert data.given["price"][t - 1] @ mine == pytest.approx(best.value, rel=1e-4, abs=1e-3)
        assert 4 * np.log(1 + mine).sum() >= jobs - 1e-4


def test_a_constant_serves_the_mean_and_its_deviations():
    """Equal middles of the prices' ranges: every entry serves a quarter of the jobs."""
    problem, data = drawn(JOBS)
    spread = float(np.sqrt(problem.streams[1].distribution.variance()))
    for rule, jobs in (
        (Resolve(Stated(), OfModel(Deviations(2)), fixed=True), 40 + 2 * spread),
        (Resolve(Stated(), OfModel(WorstOfRange()), fixed=True), 70.0),
    ):
        played = play(rule, problem, data, Trade.at_price(problem, 10.0))
        np.testing.assert_allclose(played.decisions["x"], np.expm1(jobs / 16), rtol=1e-4)


def test_deviations_of_a_constraint_are_those_of_draws():
    problem = canonical(oco.load(ROOT / "examples" / "tracking.oco").with_horizon(2))
    data = load_data(problem, None, rounds=2)
    game = Game.of(problem, data, Trade.at_price(problem, 1.0))
    of = Resolving(game, predicted(game, Stated()))
    x = np.random.default_rng(0).uniform(0, 5, (2, 10))
    rng = np.random.default_rng(1)
    A, b = rng.uniform(0, 1, (40_000, 2, 10)), rng.uniform(0, 1, (40_000, 2))
    for t, margins in enumerate(OfModel(Deviations(1)).margins(of, x)):
        np.testing.assert_allclose(margins, (A @ x[t] - b).std(axis=0), rtol=0.02)


def test_deviations_of_many_entries_have_their_closed_form():
    """Of a sum of 700 uniform entries; a rule whose work or memory is too much says so, whatever the number of entries."""
    text = "model wide\nhorizon T = 3\ndecision x[700] in box(0, 1)\nstream a[700] ~ uniform(0, 1)\nminimize sum(x)\n"
    problem, data = drawn(text + "subject to\n    need: 100 - a @ x <= 0 each round\n")
    x = np.random.default_rng(0).uniform(0, 1, (3, 700))
    game = Game.of(problem, data, Trade.at_price(problem, 1.0))
    margins = OfModel(Deviations(2)).margins(Resolving(game, predicted(game, Stated())), x)
    np.testing.assert_allclose(margins[:, 0], 2 * np.sqrt((x**2).sum(axis=1) / 12), rtol=1e-6)
    short = Game.of(problem, data, Trade.at_price(problem, 1.0), seconds=0.1)
    with pytest.raises(RuleUnavailable, match="evaluating the constraints 1,400 times"):
        OfModel(Deviations(2)).margins(Resolving(short, predicted(short, Stated())), x)


def test_quantiles_are_those_of_scipy():
    problem = canonical(oco.parse(JOBS.replace("in [0, 70]", "in [0, 45]")))
    law, cut = scipy.stats.poisson(40), problem.streams[1].distribution
    for share in (0.01, 0.5, 0.9, 0.999):
        assert cut.quantile(share) == law.ppf(share * law.cdf(45))


def test_predictions_are_means_of_the_past():
    values = np.arange(10.0) ** 2
    first = np.array(-1.0)
    assert list(Last()(values, first)) == [-1, *values[:-1]]
    assert list(Last(3)(values, first)) == [-1, 0, 1, 0, 1, 4, 9, 16, 25, 36]
    np.testing.assert_allclose(Mean(3)(values, first), [-1, *(values[max(0, t - 3) : t].mean() for t in range(1, 10))])
    np.testing.assert_allclose(Mean()(values, first), [-1, *(values[:t].mean() for t in range(1, 10))])


@pytest.mark.parametrize("seed", range(3))
def test_gradient_steps_keep_the_regret_of_their_theorem(seed):
    """Streeter & McMahan 2010, Theorem 2: regret <= sqrt(2) D sqrt(sum |s|^2), on linear losses that nothing constrains."""
    text = "model m\nhorizon T = 300\ndecision x[3] in box(-1, 2)\nstream c[3] in [-1, 1]\nminimize c @ x\n"
    problem, data = drawn(text, seed, 300)
    rule = FixedPenalty(steps=(1.0,), rates=(1.0,))
    played = play(rule, problem, data, Trade.at_price(problem, 1.0))
    total = data.given["c"].sum(axis=0)
    best = np.minimum(-1 * total, 2 * total).sum()
    bound = np.sqrt(2) * np.sqrt(27) * np.sqrt((data.given["c"] ** 2).sum())
    assert played.loss.sum() - best <= bound


def test_portfolios_are_known_by_their_structure():
    assert wealth(canonical(oco.parse(FOLIO))) is not None
    for other in (FOLIO.replace("in simplex", "in box(0, 1)"), FOLIO.replace("-log(", "-sqrt("), JOBS):
        assert wealth(canonical(oco.parse(other))) is None
    assert len(cheap_rules(canonical(oco.parse(FOLIO)))) == 2


def test_buy_and_hold_is_worth_the_mean_of_its_shares_and_eg_follows_its_formula():
    problem, data = drawn(FOLIO)
    trade, r = Trade.at_price(problem, 1.0), data.given["r"]
    held = play(BuyAndHold(), problem, data, trade)
    assert -held.loss.sum() == pytest.approx(np.log(np.prod(r, axis=0).mean()))
    x = play(ExponentiatedGradientPortfolio(), problem, data, trade).decisions["w"]
    slopes = r / (r * x).sum(axis=1, keepdims=True)
    weights = np.exp(0.05 * np.cumsum(slopes, axis=0)[:-1])  # exponential weights on the sum of all slopes
    np.testing.assert_allclose(x[1:], weights / weights.sum(axis=1, keepdims=True), rtol=1e-9)


def test_the_nearest_point_in_a_norm_is_what_cvxpy_finds():
    rng = np.random.default_rng(0)
    for n in (2, 7):
        root = rng.normal(size=(n, n))
        A, y = root @ root.T + 0.1 * np.eye(n), rng.normal(size=n)
        x = cp.Variable(n)
        cp.Problem(cp.Minimize(cp.quad_form(x - y, A)), [x >= 0, cp.sum(x) == 1]).solve(solver="CLARABEL")
        np.testing.assert_allclose(nearest_in_norm(A, y), x.value, atol=1e-5)


def test_a_trade_counts_hard_and_soft_violations_in_their_units():
    run = Played("", {}, np.array([1.0, 3.0]), np.array([[2.0, -1.0], [-2.0, 3.0]]), np.array([[1.0], [-4.0]]))
    trade = Trade(np.array([True, False]), 10.0, np.array([4.0, 2.0, 0.0]), 5.0)
    assert list(trade.broken(run)) == [2.0, 2.0, 3.0]
    assert trade.score(run) == pytest.approx((0.2, (2 / 4 + 2 / 2) / 2, 0.2 + 5 * 0.75))
    assert list(trade.prices) == [12.5, 25.0, 0.0]


def test_what_takes_too_long_or_has_no_range_is_left_out_by_name():
    problem, data = drawn(JOBS)
    late = play(Resolve(Last(), NoMargin()), problem, data, Trade.at_price(problem, 1.0), seconds=0.0)
    assert isinstance(late, SkippedRule) and "more than the work" in late.why
    open_ended = replace(problem, streams=(problem.streams[0], replace(problem.streams[1], upper=np.asarray(np.inf))))
    left = play(Resolve(Last(), OfModel(WorstOfRange())), open_ended, data, Trade.at_price(problem, 1.0))
    assert isinstance(left, SkippedRule) and "no finite range" in left.why


def played_by_all(problem, data):
    return beside(RuleChoice.ALL, problem, data, Trade.at_price(problem, 100.0), start=8)


@pytest.fixture(scope="module")
def of_jobs():
    """Problem and data of JOBS, with every rule beside a run of them."""
    problem, data = drawn(JOBS)
    return problem, data, played_by_all(problem, data)


def test_rules_beside_a_run_are_ordered_by_their_cost(of_jobs):
    problem, _, found = of_jobs
    trade = Trade.at_price(problem, 100.0)
    costs = [trade.score(r)[2] for r in found.played]
    assert costs == sorted(costs) and not found.left_out and len(found.played) == len(rules(problem))
    assert {len(r.loss) for r in found.played} == {22}


def test_a_run_prints_the_best_rule(tmp_path, capsys):
    (tmp_path / "m.oco").write_text(DRAWN)

    def run(*words):
        status = main(["run", str(tmp_path / "m.oco"), "--algorithms", "coldq", *words])
        return status, capsys.readouterr().out

    assert "best rule" in run()[1]
    assert "best rule" not in run("--baselines", "none")[1]
    rules = json.loads(run("--json")[1])["runs"][0]["rules"]
    assert len(rules["lines"]) == 2 and rules["learner"]["name"] == "the learner (coldq)"
    assert run("--baselines", "few")[0] == 2


def test_a_report_has_a_point_and_a_row_for_each_rule(monkeypatch):
    monkeypatch.setattr(run_page, "drawings", lambda trace: {})  # those of the run alone
    plan = oco.compile(oco.parse(DRAWN), "coldq")
    trace = plan.run()
    found = beside(RuleChoice.SOME, trace.problem, trace.data, Trade.of(plan.choice.situation, 1.0))
    page = report(trace, beside=found)
    assert "Rules to compare with" in page and "loss against violation" in page
    for number, line in summarize(trace, beside=found).rules.marked:
        assert f">{number}</td>" in page and line.name in page


def test_rules_are_left_out_by_work_alone() -> None:
    """On every machine the same rules are played, and the same is said of those that are not."""
    seconds, problem = 0.05, canonical(oco.parse(DRAWN))
    game = Game.of(problem, load_data(problem, None, seed=3), Trade.at_price(problem, 1.0), seconds)
    Resolve(Last(), NoMargin()).decide(game)
    assert base.CALL < game.meter.spent <= base.CALL + base.ENTRY * 30 * 5
    with pytest.raises(RuleUnavailable, match="problems is more than the work for one rule"):
        Resolve(Last(), TunedMargin()).decide(game)
    with pytest.raises(RuleUnavailable, match="stepping through 30 rounds is more than the work for one rule"):
        FixedPenalty().decide(replace(game, meter=base.WorkAllowance(29 * base.STEP)))


def test_rules_are_the_same_however_slow_the_clock_says_that_a_machine_is(of_jobs, monkeypatch):
    problem, data, ordinary = of_jobs
    hours = count(0.0, 3600.0)
    monkeypatch.setattr("oco.evaluation.baselines.base.perf_counter", lambda: next(hours))
    slow = played_by_all(problem, data)
    assert [r.name for r in slow.played] == [r.name for r in ordinary.played] and not slow.left_out
    for a, b in zip(slow.played, ordinary.played, strict=True):
        np.testing.assert_array_equal(a.loss, b.loss)
