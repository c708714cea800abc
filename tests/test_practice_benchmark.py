"""Benchmark of practice: what it plays and keeps, what its page counts, and the parts that its ablation leaves out."""

import math
from dataclasses import replace

import numpy as np
import pytest

import oco
from benchmarks.practice import ablation
from benchmarks.practice.causes import ELSEWHERE
from benchmarks.practice.chance import BLOCK, RESAMPLES, Chance, Saving, chance, resampled
from benchmarks.practice.page import page
from benchmarks.practice.problems import DRAWN, Problem, priced, problems, widened
from benchmarks.practice.results import Kept, Priced, Results
from benchmarks.practice.runs import Part, compare
from benchmarks.practice.totals import against, dominating, early, excess, missed
from oco.compiler.problem.canonical import canonical
from oco.evaluation.baselines.base import SkippedRule
from oco.evaluation.baselines.rule_table import RuleLine
from oco.evaluation.data import load_data

SMALL = """model small
horizon T = 20
decision q in box(0, 4)
stream need in [0, 4]
minimize q
subject to
    serve: need - q <= 0    each round
"""


def line(name, loss, violation):
    return RuleLine(name, loss, violation, 0, 0.0)


def small():
    model = oco.parse(SMALL)
    need = np.random.default_rng(1).uniform(1, 3, 20)
    return Problem("small", model, load_data(canonical(model), {"need": need}), (2.0,), "needs, drawn")


def test_a_row_is_played_once_and_kept(tmp_path):
    """Smallest run of the benchmark: default and rules at one price."""
    played, kept = [], Kept(tmp_path / "results.json")
    problem = small()
    parts = (Part.DEFAULT, Part.RULES)
    results = compare(problem, kept, parts, note=played.append)
    again = compare(problem, Kept(tmp_path / "results.json"), parts, note=played.append)
    assert again == results and played == [f"small, price 2: {part}" for part in parts]
    (row,) = results.priced
    assert results.rounds == 16 and row.default.loss > 0
    need = problem.data.array("need")
    robust = next(x for x in row.rules if x.name == "constant, constraints at the worst of the ranges")
    assert (robust.loss, robust.violation) == pytest.approx((16 * 4.0, 0.0), abs=1e-5)
    last = next(x for x in row.rules if x.name == "re-solve with the last values")
    assert last.loss == pytest.approx(need[3:-1].sum(), rel=1e-6)
    assert last.violation == pytest.approx(np.maximum(need[4:] - need[3:-1], 0).sum(), rel=1e-6)
    assert len(row.early_rules) == 2 and "## small" in page([results])


def test_bounds_are_ten_times_as_wide_and_rounds_are_the_same():
    problem = problems(None)["newsvendor"]()
    wide = widened(problem)
    ends = {s.name: (float(s.lower.min()), float(s.upper.max())) for s in wide.data.problem.streams}
    assert ends == {"demand": (0.0, 2000.0), "room": (10.0, 4000.0)}
    np.testing.assert_array_equal(wide.data.array("demand"), problem.data.array("demand"))
    nyiso = widened(problems(None)["nyiso"]())
    own = {s.name: s for s in nyiso.data.problem.streams}
    assert float(own["price"].lower.min()) == -19000 and float(own["jobs"].upper) == 3200


def test_every_problem_that_is_drawn_has_rounds_within_its_bounds():
    for name in DRAWN:
        problem = problems(None, seed=1)[name]()
        assert problem.data.rounds == problem.data.problem.horizon
        assert {c.penalty for c in problem.model.constraints} == {None} and len(problem.prices) == 3
        assert all(c.penalty is not None for c in priced(problem.model, 2.0).constraints)


def test_parts_are_left_out_and_put_back():
    for part, places in ablation.PARTS.items():
        before = [getattr(place, name) for place, name, _ in places]
        with ablation.without(part):
            assert all(getattr(place, name) is not old for (place, name, _), old in zip(places, before)), part
        assert all(getattr(place, name) is old for (place, name, _), old in zip(places, before))


def test_equal_weights_play_the_mean_of_the_experts():
    problem = small()
    with ablation.without("with equal weights"):
        plan = oco.compile(priced(problem.model, 2.0), "hedged", backend="numpy")
        learner = plan.learner()
    for need in (2.0, 3.5, 1.0):
        learner.decide()
        learner.observe(need=need)
    units = np.asarray(learner.values["x"])
    assert float(learner.decide()) == pytest.approx(2.0 + 2.0 * units.mean()) and units.std() > 0.1


def test_excesses_are_of_the_other_total_and_of_wealth():
    assert excess(102.0, 100.0, False) == pytest.approx(0.02) and excess(-98.0, -100.0, False) == pytest.approx(0.02)
    assert excess(math.log(1.02), 0.0, True) == pytest.approx(0.02) and excess(0.0, 0.0, False) == 0.0


def test_the_page_counts_rules_that_dominate_and_targets_that_are_missed():
    better, other = line("less of both", 9.0, 1.0), line("more late", 5.0, 8.0)
    first = {"early": line("default", 3.0, 0.0), "early_rules": (line("cheap", 2.0, 0.0),)}
    lost = Priced(1.0, "coldq", line("default", 10.0, 2.0), (better, other), picked="more late", **first)
    won = Priced(10.0, "coldq", line("default", 8.0, 0.5), (better, other), picked="more late")
    assert dominating(lost) == [better] and dominating(won) == []
    results = Results("p", "words of it", 80, (lost, won), (SkippedRule("slow", "it takes long"),))
    assert early(results, lost) == pytest.approx(0.5) and missed(results, won) == []
    assert missed(results, lost)[0] == "+20.0% over the best rule" and "dominated by 1" in missed(results, lost)
    text = page([results])
    assert "at most 2% more than the picked rule in 2, than the best rule in 1" in text
    assert "no rule dominates it in 1." in text
    assert "| p | 1 | `coldq` | 10 | 2 | 12 | -7.7% | +20.0%: less of both | - | 1 of 2 |" in text
    assert "Left out: slow (it takes long)." in text and "## Algorithms" not in text


def test_the_page_compares_with_the_algorithms_of_the_papers():
    rules = line("best", 6.0, 1.0), line("picked", 99.0, 1.0)
    own = line("hedged", 100.0, 2.0), line("nested", 80.0, 30.0)
    near = Priced(1.0, "hedged", own[0], rules, own, "picked")
    results = Results("p", "words of it", 80, (near,))
    assert against(results, near, own[1]) == pytest.approx(-8 / 110)
    text = page([results])
    assert "| -7.3%: `nested` |" in text and "| p | 1 | 102 | **102** | 110 |" in text
    assert "of the papers in 1 of 1" in text


def test_the_page_says_where_parts_gain_that_gain_nothing_on_its_problems():
    own, rules = line("hedged", 100.0, 0.0), (line("best", 120.0, 0.0),)
    parts = (
        line("without a reserve of budgets", 100.0, 0.0),
        line("without margins", 110.0, 0.0),
        line("without seasons", 100.1, 0.0),
    )
    row = Priced(1.0, "hedged", own, rules, picked="best", ablation=parts)
    text = page([Results("p", "words of it", 80, (row,))])
    assert "| without margins | +10.0% |" in text and "| without seasons | +0.1% |" in text
    idle = text.split("on no problem: ")[1].split("\n")[0]
    assert idle == f'"without a reserve of budgets" ({ELSEWHERE["without a reserve of budgets"]}), "without seasons".'


def test_runs_are_resampled_in_circular_blocks():
    """Sums by indices, block after block, from the same starts; a run of ones has as many rounds as it had."""
    values = np.stack([np.random.default_rng(3).normal(0, 1, 50), np.ones(50)], axis=1)
    drawn = resampled(values, np.random.default_rng(4))
    starts = np.random.default_rng(4).integers(0, 50, (RESAMPLES, 3))
    for k in (0, 1, RESAMPLES - 1):
        rounds = np.concatenate([(s + np.arange(BLOCK)) % 50 for s in starts[k]])[:50]
        np.testing.assert_allclose(drawn[k], values[rounds].sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(drawn[:, 1], 50.0)


def test_the_best_of_rules_that_are_no_better_is_chance():
    """Of 200 draws of ten rules with the default's own mean, few have p below 0.1; one that saves 0.3 a round of size 1 is found."""
    rng = np.random.default_rng(5)
    p_values = []
    for _ in range(200):
        costs = rng.normal(0, 1, (11, 120))
        p_values.append(chance(costs[0], dict(zip("abcdefghij", costs[1:])), set()).p_value)
    assert 0.03 < np.mean(np.array(p_values) < 0.1) < 0.25 and 0.3 < np.mean(p_values) < 0.7
    costs = rng.normal(0, 1, (3, 2000))
    found = chance(costs[0], {"no better": costs[1], "better": costs[2] - 0.3}, {"no better", "better"})
    better, other = found.savings
    assert better.name == "better" and better.beyond_chance and not other.beyond_chance and found.p_value < 0.01
    assert better.saved == pytest.approx((costs[0] - costs[2]).sum() + 600.0) and better.low < 600.0 < better.high


def test_a_rule_that_dominates_is_judged_by_chance(tmp_path):
    """Needs that fall from round to round: the last value serves them, and costs less than what remembers them."""
    model = oco.parse(SMALL)
    falling = {"need": np.linspace(3.0, 1.0, 20)}
    problem = Problem("small", model, load_data(canonical(model), falling), (2.0,), "needs that fall")
    kept = Kept(tmp_path / "results.json")
    (row,) = compare(problem, kept, (Part.DEFAULT, Part.RULES, Part.CHANCE)).priced
    assert row.chance is not None and {s.name for s in row.chance.savings} == {x.name for x in dominating(row)}
    line = next(x for x in row.rules if x.name == row.chance.savings[0].name)
    own = row.default.loss + 2.0 * row.default.violation
    assert row.chance.savings[0].saved == pytest.approx(own - line.loss - 2.0 * line.violation)
    assert Kept(tmp_path / "results.json").results["small"].priced == (row,)


def test_the_page_says_what_may_be_chance():
    lost = Priced(1.0, "hedged", line("default", 10.0, 2.0), (line("less of both", 9.0, 1.0),), picked="less of both")
    luck, gain = (Chance((Saving("less of both", 2.0, low, 5.0),), 0.25) for low in (-1.0, 0.5))
    text = page([Results("p", "words of it", 80, (replace(lost, chance=luck),))])
    assert (
        "| 1 of 1, 0 beyond chance |" in text
        and "in 0, and none beyond chance in 1 of 1 others that were judged." in text
    )
    assert "| p | 1 | less of both | 2 | -1 to 5 | 0.25 |" in text
    text = page([Results("p", "words of it", 80, (replace(lost, chance=gain),))])
    assert (
        "| 1 of 1, 1 beyond chance |" in text
        and "in 0, and none beyond chance in 0 of 1 others that were judged." in text
    )


def test_the_page_says_where_tuning_keeps_the_default():
    own = Priced(1.0, "hedged", line("default", 10.0, 2.0), (line("best", 20.0, 2.0),), picked="best")
    kept, taken = replace(own, tuned=own.default), replace(own, tuned=line("tuned: using b", 9.0, 2.0))
    text = page([Results("p", "words of it", 80, (kept, taken))])
    assert "In 1 of 2 rows it keeps the default" in text
    assert "costs less than the default in 1, and more in 0, by over 2% in 0." in text
    assert "| +0.0% | -45.5% | - |" in text and "| -8.3% | -45.5% | `using b` |" in text
