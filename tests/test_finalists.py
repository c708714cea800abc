"""Finalists of a choice: leaving the constants of the others as they are changes no choice and, once asked for, no verdict."""

from __future__ import annotations

import pytest

import oco
from oco.compiler.selection import choice
from oco.compiler.selection.plan import compile_plan
from oco.compiler.selection.verdicts import Verdict
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
        v.reasons,
        numbers,
        settings,
    )


@pytest.mark.parametrize("name", MODELS)
def test_verdicts_are_those_of_a_search_of_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lazy = compile_plan(parse(MODELS[name]), settings="optimal").choice
    assert lazy.deferred, "some come behind others whatever their constants are"
    first = {v.name: v for v in lazy.judged}
    assert all(first[n].best is None for n in lazy.deferred)
    monkeypatch.setattr(choice, "outranked", lambda s, verdicts: frozenset())
    full = compile_plan(parse(MODELS[name]), settings="optimal").choice
    assert not full.deferred
    assert list(map(shown, lazy.verdicts)) == list(map(shown, full.judged))
    assert all(v.best is not None for v in lazy.verdicts if v.name in lazy.deferred)


def test_what_runs_learns_of_the_winner_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan with its guarantee, settings and warnings searches none of those that come behind."""
    plan = oco.compile(parse(MODELS["each round"]))
    for name in plan.choice.deferred:
        monkeypatch.setitem(plan.choice.deferred, name, lambda: pytest.fail("searched"))  # type: ignore[misc]
    assert plan.guarantee is not None and plan.settings and plan.recipe is not None
    assert plan.warnings is not None and plan.program.entries
