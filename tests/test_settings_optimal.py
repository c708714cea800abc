"""Optimal settings: never a weaker guarantee than the paper's, closed forms, the frontier, vacuous guarantees and pilot runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from thorough import corners, thorough

import oco
from oco.compiler.algorithms import ALGORITHMS
from oco.compiler.ir.symbolic_form import exact, quotient
from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.check import check
from oco.compiler.selection.explain import explain_data, explain_text
from oco.compiler.selection.frontier import frontier_text
from oco.compiler.selection.judging import judge
from oco.compiler.selection.modes import Mode
from oco.compiler.selection.plan import compile_plan, explain_choice
from oco.compiler.selection.request import AlgorithmRequest, Policy
from oco.compiler.selection.resolve_again import in_its_units
from oco.compiler.theory.line_search import least, stationary
from oco.compiler.theory.objective import normalized_sum, terms
from oco.compiler.theory.theorems import Situation
from oco.dsl.diagnostics import OcoError
from oco.dsl.load import parse
from oco.dsl.model import Model

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = ("tracking", "online_qp", "portfolio", "blind_pricing", "matrix_completion", "job_scheduling", "datacenter")

LEAST = AlgorithmRequest(policy=Policy(Mode.LEAST))
PLAIN = "model m\nhorizon T = 400\ndecision x[3] in box(-1, 1)\nstream p[3] in [-1, 1]\nminimize 5 * p @ x\n"
CAPPED = PLAIN + "subject to\n    cap: x[0] + x[1] - 0.5 <= 0    each round\n"


@pytest.fixture(scope="module")
def situations() -> Mapping[str, Situation]:
    """Facts of the examples, each checked when it is asked for."""

    class Situations(dict[str, Situation]):
        def __missing__(self, name: str) -> Situation:
            problem = canonical(oco.load(EXAMPLES / f"{name}.oco"))
            return self.setdefault(name, Situation(problem, check(problem.model), problem.horizon))

    return Situations()


@pytest.mark.parametrize(
    ("name", "rounds"),
    corners(
        product(NAMES, (100, 3000)),
        [("datacenter", 100), ("blind_pricing", 3000)],
    ),
)
def test_the_sum_is_above_the_papers_only_to_lower_a_vacuous_bound(
    name: str, rounds: int, situations: Mapping[str, Situation]
) -> None:
    s = situations[name]
    s = Situation(replace(s.canonical, horizon=rounds), s.facts, rounds)
    compared = 0
    for a in ALGORITHMS:
        paper, best = judge(a, s), judge(a, s, LEAST)
        if paper.guarantee is None or best.best is None or best.best.least is None:
            continue
        literal = normalized_sum(s, paper.guarantee, 1.0)
        pairs = list(zip(terms(s, paper.guarantee), terms(s, best.guarantee), strict=True))
        lower = any(usual.vacuous and found.number < usual.number for usual, found in pairs)
        assert literal is not None and (best.best.least <= literal * (1 + 1e-9) or lower), a.name
        assert lower or not any(found.vacuous and not usual.vacuous for usual, found in pairs), a.name
        compared += 1
    assert compared or name == "datacenter"


ON_AVERAGE = """
model m
horizon T = {T}
decision x[{n}] in box(0, 1)
stream c[{n}] in [-1, 1] iid
stream a[{n}] in [0, 1] iid
minimize c @ x
subject to
    budget: a @ x <= {right} on average
"""


@pytest.mark.parametrize(
    ("n", "right", "T"), [thorough(2, 0.3, 30_000), (5, 0.3, 1000), thorough(5, 0.3, 300), thorough(5, 0.6, 1000)]
)
@pytest.mark.parametrize("step", [3, thorough(1)])
def test_no_bound_that_says_something_becomes_vacuous(n: int, right: float, T: int, step: int) -> None:
    """A vacuous bound on violations has no weight: at n = 5, T = 1000 shrinking it would make the regret of dpp 6,102 instead of 160."""
    problem = canonical(parse(ON_AVERAGE.format(n=n, right=right, T=T)))
    s, compared = Situation(problem, check(problem.model), T), 0
    for a in ALGORITHMS[[a.name for a in ALGORITHMS].index("dpp") % step :: step]:
        paper, best = judge(a, s), judge(a, s, LEAST)
        if paper.guarantee is None or best.guarantee is None:
            continue
        for usual, found in zip(paper.guarantee.bounds, best.guarantee.bounds):
            assert usual.vacuous(T) or not found.vacuous(T), (a.name, usual.measure, usual.number(T), found.number(T))
            compared += not usual.vacuous(T)
    assert compared >= 2


@pytest.mark.parametrize("name", ["blind_pricing", *map(thorough, ("online_qp", "job_scheduling"))])
def test_a_best_value_that_is_known_as_a_formula_is_best(name: str, situations: Mapping[str, Situation]) -> None:
    """No other guess gives a smaller sum, with the other settings as they are."""
    compared = 0
    for a in ALGORITHMS:
        v = judge(a, situations[name], LEAST)
        if v.theorem is None or not v.theorem.best or v.best is None or v.best.least is None:
            continue
        s = in_its_units(situations[name], v)
        for known in v.theorem.best:
            own = v.settings[known]
            for factor in (1 / 64, 1 / 2, 1 / 1.1, 1.1, 2, 64):
                other = replace(own, formula=quotient(own.formula, exact(1 / factor)), value=None)
                found = normalized_sum(s, v.theorem.guarantee(s, {**v.settings, known: other}), 1.0)
                assert found is None or found >= v.best.least * (1 - 1e-9), (a.name, factor)
            compared += 1
    assert compared


def test_gradient_descent_has_its_best_step_in_closed_form() -> None:
    """D^2 / (2 eta_T) + G^2 / 2 sum eta_t with eta_t = k D / (G sqrt t): k = sqrt(sqrt(T) / sum 1/sqrt(t))."""
    plan = compile_plan(parse(PLAIN), "ogd", "optimal")
    winner = plan.choice.winner
    assert winner is not None and winner.best is not None
    (best,) = winner.best.constants
    T = 400
    expected = math.sqrt(math.sqrt(T) / float(np.sum(1 / np.sqrt(np.arange(1, T + 1)))))
    assert best.number == pytest.approx(expected, rel=1e-4)
    assert "sqrt(b)/sqrt(c)" in best.how
    assert plan.guarantee is not None
    G, D = 5 * math.sqrt(3), 2 * math.sqrt(3)
    exact = D * G * math.sqrt(math.sqrt(T) * float(np.sum(1 / np.sqrt(np.arange(1, T + 1)))))
    assert plan.guarantee.regret() == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(("b", "c", "powers"), [(2.0, 3.0, (-1, 1)), (0.1, 7.0, (-1, 2))])
def test_stationary_points_are_minima(b: float, c: float, powers: tuple[int, int]) -> None:
    k = stationary(powers)[0](b, c)

    def value(x: float) -> float:
        return b * x ** powers[0] + c * x ** powers[1]

    assert all(value(k) <= value(k * f) for f in (0.9, 0.99, 1.01, 1.1))


@pytest.mark.parametrize("at", [-9.0, -1.3, 0.0, 0.4, 12.0])
def test_the_search_finds_minima_far_away(at: float) -> None:
    assert least(lambda x: 1 + (x - at) ** 2) == pytest.approx(at, abs=0.2)


def test_the_search_stays_where_nothing_has_a_value() -> None:
    assert least(lambda x: math.inf) == 0.0


def test_violations_of_each_constraint_are_bounded_in_its_own_units() -> None:
    text = CAPPED + "    floor: 100 * (0 - x[2] - 0.5) <= 0    each round\n"
    plan = compile_plan(parse(text), "coldq", "optimal")
    assert plan.guarantee is not None and plan.guarantee.violation_bound is not None
    each = plan.guarantee.violation_bound.label_numbers(400)
    assert each["floor"] == pytest.approx(each["cap"] * 150 / 2.5)
    assert plan.guarantee.violation() == max(each.values())


def test_a_heavier_weight_gives_less_violation_and_more_regret() -> None:
    plan = oco.compile(parse(CAPPED.replace("0.5 <=", "0.5 * p[0] <=")), "sinha-vaze")
    points = plan.frontier()
    assert len(points) > 3
    violations, regrets = [p.violation for p in points], [p.regret for p in points]
    assert violations[-1] < violations[0] and regrets[0] < regrets[-1]
    assert len(frontier_text(points).splitlines()) == len(points) + 1
    line = plan.plot_frontier().get_lines()[0]
    np.testing.assert_array_equal(line.get_xdata(), [p.regret_share for p in points])


def test_explain_shows_both_settings_and_the_derivation() -> None:
    choice = explain_choice(parse(PLAIN), "optimal")
    text = explain_text(choice)
    for part in ("units", "best", "paper", "optimal", "least at k = sqrt(b)/sqrt(c)", "with the paper's settings"):
        assert part in text
    found = explain_data(choice)["settings_found"]
    assert found["sum"] < found["paper_sum"] and set(found["constants"]) == {"eta"}


def test_given_settings_are_used_as_they_are() -> None:
    model = parse(CAPPED + "using coldq with alpha = 3 * sqrt(t)\n")
    plan = oco.compile(model)
    assert str(plan.settings["alpha"].formula) == "3*sqrt(t)" and str(plan.settings["gamma"].formula) == "T/2"
    assert plan.choice.winner is not None and plan.choice.winner.scales is None
    free = parse(CAPPED + "using coldq with units = free, alpha = 3 * sqrt(t)\n")
    winner = oco.compile(free).choice.winner
    assert winner is not None and winner.scales is not None
    with pytest.raises(OcoError, match="is one of"):
        oco.compile(parse(CAPPED + "using coldq with units = feet, alpha = 3 * sqrt(t)\n"))


def test_saved_recipes_make_the_same_plan() -> None:
    from oco.plan import Plan

    plan = oco.compile(parse(CAPPED), tradeoff=3.0)
    again = Plan.from_recipe(plan.recipe)
    assert again.source() == plan.source() and again.tradeoff == 3.0


# Vacuous guarantees.

DRAWN = CAPPED.replace("stream p[3] in [-1, 1]", "stream p[3] ~ uniform(-1, 1)").replace("T = 400", "T = 60")
VACUOUS = (
    DRAWN.replace("cap: x[0] + x[1] - 0.5", "cap: x[0] + x[1] - 0.5 - p[0]").replace("T = 60", "T = 30")
    + "measure dynamic regret\n"
)


def test_the_horizon_from_which_a_bound_says_something() -> None:
    """ofw: its bound is vacuous below that horizon and not at it."""
    choice = explain_choice(parse(PLAIN.replace("T = 400", "T = 5") + "using ofw\n"), "paper")
    found = explain_data(choice)["settings_found"]["useful_from"]
    (T,) = found.values()
    for rounds, vacuous in ((int(T), False), (int(0.98 * T) - 1, True)):
        guarantee = compile_plan(parse(PLAIN.replace("T = 400", f"T = {rounds}")), "ofw", "paper").guarantee
        assert guarantee is not None and bool(guarantee.vacuous) == vacuous


@pytest.mark.usefixtures("unmixed")
def test_pilots_decide_where_no_guarantee_does() -> None:
    model = parse(VACUOUS)
    plan = oco.compile(model)
    assert plan.guarantee is not None and plan.guarantee.vacuous
    pilots = plan.choice.pilots
    assert pilots is not None and pilots.results[0].algorithm == plan.algorithm
    costs = [r.cost for r in pilots.results]
    assert costs == sorted(costs) and pilots.results[0].behind == 0
    assert "chosen by pilot" in plan.choice.verdicts[0].reason
    assert oco.compile(model).choice.pilots == pilots  # the same seed, the same rounds


def vacuous_on_average() -> Model:
    """Model of no distribution whose constraint holds on average: weights on rules count what each round breaks, and leave it to pilots."""
    text = VACUOUS.replace("~ uniform(-1, 1)", "in [-1, 1]").replace("each round", "on average")
    assert "on average" in text
    return parse(text)


@cache
def plan_on_data(later: float = 1.0) -> oco.Plan:
    """Plan of the model for 30 rounds at random, those after the eighteenth times a number."""
    given = np.random.default_rng(0).uniform(-1, 1, (30, 3))
    data = {"p": np.where(np.arange(30)[:, None] < 18, given, later * given)}
    return oco.compile(vacuous_on_average(), data=data, settings="unit-free")


@pytest.mark.usefixtures("unmixed")
def test_pilots_that_cannot_be_made_are_said_to_be_missing() -> None:
    plan = oco.compile(vacuous_on_average(), settings="unit-free")
    assert plan.choice.pilots is not None and not plan.choice.pilots.results
    assert "no pilot runs" in plan.choice.verdicts[0].reason


@pytest.mark.usefixtures("unmixed")
def test_data_make_pilots_possible() -> None:
    given = plan_on_data()
    assert given.choice.pilots is not None and given.choice.pilots.results


@pytest.mark.usefixtures("unmixed")
def test_pilots_see_the_beginning_of_the_data_alone_and_their_reason_stays() -> None:
    one, other = plan_on_data(), plan_on_data(later=-1.0)
    assert one.choice.pilots == other.choice.pilots and one.choice.pilots is not None
    assert one.choice.pilots.rounds == 18
    longer = one.with_horizon(40)
    assert longer.algorithm == one.algorithm and longer.choice.pilots == one.choice.pilots
    assert longer.choice.verdicts[0].reason == one.choice.verdicts[0].reason


# Tuning.

TUNED = PLAIN.replace("5 * p @ x", "p @ x").replace("T = 400", "T = 200")


def rounds_of(rng: np.random.Generator, n: int = 200) -> dict[str, Any]:
    return {"p": np.clip(0.2 + 0.1 * rng.standard_normal((n, 3)), -1, 1)}


def test_tuning_is_reproducible_and_gives_a_line_that_says_it_all() -> None:
    model, data = parse(TUNED), rounds_of(np.random.default_rng(1))
    found, again = (oco.tune(model, data, "ogd", seed=4) for _ in range(2))
    assert found.search == again.search and found.line == again.line
    assert found.search.winner.searched <= min(t.searched for t in found.search.tried if t.rounds == found.search.split)
    written = oco.compile(parse(TUNED + found.line + "\n"))
    assert written.guarantee is not None and found.plan.guarantee is not None
    assert written.guarantee.regret() == found.plan.guarantee.regret()
    np.testing.assert_array_equal(written.run(data).decisions, found.plan.run(data).decisions)


def test_tuning_finds_no_use_of_the_future() -> None:
    """The rounds held out hold a signal that large steps profit from; the search does not see it, and finds what it finds without it."""
    model, rng = parse(TUNED), np.random.default_rng(2)
    data = rounds_of(rng)
    planted = {"p": data["p"].copy()}
    split = 120
    planted["p"][split:] = np.where(np.arange(200 - split)[:, None] // 10 % 2 == 0, 1.0, -1.0)
    plain, other = (oco.tune(model, d, "ogd", seed=0) for d in (data, planted))
    assert plain.search.split == split
    assert [(t.name, t.searched) for t in plain.search.tried] == [(t.name, t.searched) for t in other.search.tried]
    assert plain.search.winner.numbers == other.search.winner.numbers
    assert plain.search.winner.held_out != other.search.winner.held_out
    for found in (plain, other):  # nor does it matter for the choice but between the winner and the optimal constants
        assert found.search.best.name in (found.search.winner.name, "optimal")


def test_the_rounds_held_out_decide_between_the_winner_and_the_optimal_constants() -> None:
    """Short steps pay while costs stay as they were; where they then change their sign longer ones do, and the optimal ones are kept."""
    rng, kept = np.random.default_rng(5), set()
    for sign in (1.0, -1.0):
        data = np.clip(0.2 + 0.2 * rng.standard_normal((400, 3)), -1, 1)
        data[240:] *= sign
        found = oco.tune(parse(TUNED.replace("T = 200", "T = 400")), {"p": data}, "ogd", seed=1)
        costs = {t.name: t.held_out for t in found.search.tried if t.held_out is not None}
        gained = costs["optimal"] - costs[found.search.winner.name]
        assert (found.search.best is found.search.winner) == (gained > found.search.by_chance)
        assert str(found.search) in found.plan.choice.verdicts[0].reason and str(found.search) in str(found)
        kept.add(found.search.best.name == "optimal")
    assert kept == {True, False}


def test_two_constants_that_make_up_for_each_other_are_found_far_away() -> None:
    """ofw-tvc allows a weight of the constraint (rate) of any size beside a beta as small; near the paper's it stands still."""
    text = CAPPED.replace("p @ x", "(p @ x - x[0] - x[1])").replace("horizon T = 400", "horizon T = 200")
    rounds = {"p": np.random.default_rng(3).uniform(-1, 1, (200, 3))}
    found = oco.tune(parse(text), rounds, "ofw-tvc", tradeoff=10.0)
    tried = {t.name: t for t in found.search.tried}
    assert found.search.winner.searched < tried["paper"].searched
    numbers = found.search.winner.numbers
    assert numbers["rate"] > 100 and numbers["beta"] < 0.01
    written = oco.compile(parse(text + found.line + "\n"))
    assert str(written.settings["guess"].formula) == str(found.plan.settings["guess"].formula)


def test_a_search_that_is_short_beside_the_run_is_told() -> None:
    """On 60 of 100 rounds: not for 100, and for 1000."""
    data = rounds_of(np.random.default_rng(0), 100)
    for rounds, told in ((100, False), (1000, True)):
        found = oco.tune(parse(TUNED.replace("T = 200", f"T = {rounds}")), data, "ogd")
        assert (f"it saw 60 rounds, and the best constants of {rounds}" in str(found)) is told


def test_too_little_to_tune_on_is_an_error() -> None:
    with pytest.raises(OcoError) as caught:
        oco.tune(parse(TUNED), rounds_of(np.random.default_rng(0), 10), "ogd")
    assert caught.value.code == "OCO710"
    with pytest.raises(OcoError) as caught:
        oco.tune(parse(TUNED + "using ogd with eta = 1\n"), rounds_of(np.random.default_rng(0)))
    assert caught.value.code == "OCO711"


def test_the_line_replaces_another_and_keeps_comments() -> None:
    from oco.cli.tuning import with_using

    text = "model m  # one\n# two\nusing ogd with eta = 1   # three\n"
    assert with_using(text, "using ogd with eta = 2") == "model m  # one\n# two\nusing ogd with eta = 2   # three\n"
    assert with_using("model m\n", "using ogd") == "model m\n\nusing ogd\n"


def test_where_nothing_is_gained_the_model_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """On zeros every decision costs alike."""
    from oco.cli import main

    text, zeros = TUNED.replace("T = 200", "T = 40"), np.zeros((40, 3))
    found, tune = list[Any](), oco.tune
    monkeypatch.setattr(oco, "tune", lambda *args, **options: found.append(tune(*args, **options)) or found[-1])
    (tmp_path / "m.oco").write_text(text)
    np.savez(tmp_path / "d.npz", p=zeros)
    assert main(["tune", str(tmp_path / "m.oco"), "--data", str(tmp_path / "d.npz"), "--write"]) == 0
    shown = capsys.readouterr()
    assert "The model stays as it is." in shown.out and "m.oco is not changed" in " ".join(shown.err.split())
    assert (tmp_path / "m.oco").read_text() == text
    assert [result.line for result in found] == [""]
