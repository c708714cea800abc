"""Benchmark of practice: what it plays and keeps, what its page counts, and the parts that its ablation leaves out."""

import math

import numpy as np
import pytest

import oco
from benchmarks.practice import ablation
from benchmarks.practice.causes import ELSEWHERE
from benchmarks.practice.page import page
from benchmarks.practice.problems import DRAWN, Problem, priced, problems, widened
from benchmarks.practice.runs import Kept, Part, Priced, Results, compare
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
