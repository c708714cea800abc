"""Finalists of a choice: leaving the constants of the others as they are changes no choice and, once they are searched, no verdict."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Any

import pytest
from thorough import corners

import oco
from oco.compiler.algorithms import ALGORITHMS
from oco.compiler.ir.symbolic import Symbol
from oco.compiler.selection import finalists, judging
from oco.compiler.selection.choice import Choice
from oco.compiler.selection.plan import compile_plan, explain_choice
from oco.compiler.selection.verdicts import Verdict
from oco.compiler.theory import best_constants
from oco.compiler.theory.line_search import doubled
from oco.compiler.theory.objective import summed
from oco.compiler.theory.resolve import theorem_settings
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import Setting, parse_formula, schedule_symbols
from oco.compiler.theory.theorems import Situation, Theorem
from oco.compiler.theory.unit_free import without_units
from oco.dsl.load import parse

MODELS = {
    "on average": """model m
horizon T = 400
decision x[2] in simplex(1)
stream a[2] in [-1, 1]
stream c[2] ~ uniform(-1, 1)
minimize a @ x
subject to
    cap: c @ x <= 0.2 on average
""",
    "each round": """model m
horizon T = 400
decision x[2] in box(0, 1)
stream a[2] in [-1, 1]
stream c[2] in [-1, 1]
minimize sum_squares(x - a)
subject to
    cap: c @ x <= 0.2 each round
""",
    "one says something": """model m
horizon T = 100000
decision x[2] in box(0, 1)
stream a[2] in [0, 1]
stream c[2] in [0, 1]
minimize sum_squares(x - a)
subject to
    cap: c @ x <= 0.5 each round
""",
}


def shown(v: Verdict) -> tuple[object, ...]:
    numbers = () if v.guarantee is None else tuple(b.number(400) for b in v.guarantee.bounds)
    settings = {n: str(s) for n, s in v.settings.items()}
    return (
        v.name,
        v.applicability,
        v.theorem and v.theorem.name,
        v.score,
        v.informativeness,
        numbers,
        settings,
    )


@cache
def few_searched(name: str) -> Choice:
    return explain_choice(parse(MODELS[name]), "optimal")


@cache
def all_searched(name: str) -> Choice:
    """Choice with a whole search for each algorithm."""
    with pytest.MonkeyPatch.context() as m:
        m.setattr(finalists, "outranked", lambda s, verdicts: frozenset())
        m.setattr(best_constants._Search, "far_above", lambda search, rival: False)
        m.setattr(best_constants._Search, "stays_vacuous", lambda search: False)
        return explain_choice(parse(MODELS[name]), "optimal")


@pytest.mark.parametrize("name", corners(MODELS, ["one says something"]))
def test_verdicts_are_those_of_a_search_of_all(name: str) -> None:
    few, full = few_searched(name), all_searched(name)
    assert few.unsearched, "some come behind others whatever their constants are"
    assert all(v.best is None for v in few.verdicts if v.name in few.unsearched)
    assert shown(few.verdicts[0]) == shown(full.verdicts[0])
    every = few.with_searched()
    assert not every.unsearched and not full.unsearched
    assert list(map(shown, every.verdicts)) == list(map(shown, full.verdicts))


FEW = [("one says something", 2)]


@pytest.mark.parametrize(("name", "most"), corners(product(MODELS, [1, 2, 4]), FEW))
def test_the_first_few_are_those_of_a_search_of_all(name: str, most: int) -> None:
    first = few_searched(name).with_searched(most).usable[:most]
    assert list(map(shown, first)) == list(map(shown, all_searched(name).usable[:most]))


def test_a_scan_far_above_a_rival_ends_the_search() -> None:
    few = few_searched("one says something")
    promised = {v.name for v in few.usable if v.guarantee is not None and not v.guarantee.reservations}
    assert few.unsearched & promised, "no hypothesis is open, and yet no constants bring them near"
    best = few.verdicts[0]
    for v in map(few.searched, (v for v in few.usable if v.name in few.unsearched & promised)):
        assert v.score > best.score or v.guarantee is None


@pytest.mark.parametrize("name", corners(MODELS, ["one says something"]))
def test_a_scan_that_ends_early_says_what_a_whole_one_says(name: str) -> None:
    """Steps of a scan only come down: one that is near a rival on the way is not far above it in the end."""
    choice, answers = few_searched(name), set()
    for v in choice.usable:
        if v.theorem is None or not v.theorem.free:
            continue
        inner, _ = without_units(choice.situation, v.theorem.norm)

        def new(theorem: Theorem = v.theorem, inner: Situation = inner) -> best_constants._Search:
            return best_constants._Search(theorem, inner, {}, 1.0, theorem_settings(theorem, inner, {}))

        whole, logs = best_constants._Descent(new(), summed), new()._start
        sums = [whole.value(logs)]
        for step in best_constants.SCANS:
            logs, value = whole.scan(logs, step, -math.inf)
            sums.append(value)
        for rival in [x / r for x in sums if math.isfinite(x) for r in (1.2, 2.0)]:
            above = any(x > far * rival for x, far in zip(sums[1:], best_constants.FAR_ABOVE))
            assert new().far_above(rival) == above, (v.name, rival)
            answers.add(above)
    assert answers == {True, False}


def test_settings_whose_numbers_stay_keep_their_schedules() -> None:
    """One constant moves, the others' schedules are not worked out anew, and no value is another than that of new settings."""
    symbols = schedule_symbols() | {"a": Symbol("a"), "b": Symbol("b")}
    formulas = {"eta": "a / sqrt(t)", "mu": "b * t", "both": "a * b + t"}
    settings = {n: Setting(n, parse_formula(f, symbols), None, "") for n, f in formulas.items()}
    first = best_constants.closed(settings, {"a": 2.0, "b": 3.0})
    kept = first["mu"].along(Rounds.of(5000), 5000)
    second = best_constants.closed(settings, {"a": 4.0, "b": 3.0}, first)
    assert second["mu"].along(Rounds.of(5000), 5000) is kept
    for numbers, results in (({"a": 2.0, "b": 3.0}, first), ({"a": 4.0, "b": 3.0}, second)):
        for name, new in best_constants.closed(settings, numbers).items():
            assert (results[name].along(Rounds.of(5000), 5000).last == new.along(Rounds.of(5000), 5000).last).all()
    assert second["eta"].number(100) == 2 * first["eta"].number(100) == 4.0


def test_a_choice_is_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading and showing what was chosen searches for no constants."""
    plan, named = oco.compile(parse(MODELS["each round"])), compile_plan(parse(MODELS["each round"]), "ogd", "optimal")

    def searched(*args: Any, **options: Any) -> None:
        pytest.fail("searched")

    monkeypatch.setattr(judging, "optimum", searched)
    assert plan.guarantee is not None and plan.settings and plan.recipe is not None
    assert plan.warnings is not None and plan.program.entries
    for p in (plan, named):
        assert {v.name for v in p.verdicts} == {a.name for a in ALGORITHMS}
        assert p.choice.usable is not None and p.choice.played is not None
        assert p.explain() and p.to_json()


def test_doubled_steps_stop_where_nothing_is_gained() -> None:
    assert doubled(lambda x: (x - 4) ** 2, 1.0) == (0.0, 4.0)
    assert doubled(lambda x: math.inf if x else 1.0, 1.0) == (1.0, 0.0)
