"""A verdict's settings once more: for another horizon, with other constants, and with the guarantee worked out again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from oco.compiler.algorithms.common import FEASIBLE_COMPARATOR
from oco.compiler.selection.seen_by import seen_by
from oco.compiler.selection.verdicts import Verdict, weigh, withheld
from oco.compiler.theory.delays import in_turns
from oco.compiler.theory.moves import promise
from oco.compiler.theory.resolve import FreeNumbers, theorem_settings
from oco.compiler.theory.seen_worst import on_data
from oco.compiler.theory.theorems import Condition, Guarantee, Situation, Theorem
from oco.compiler.theory.unit_free import in_user_units, without_units
from oco.dsl.expressions import Kind, names
from oco.dsl.settings import WORD_SETTINGS


def in_its_units(s: Situation, v: Verdict) -> Situation:
    """The situation that a verdict's settings are made for."""
    s = seen_by(v.algorithm, s)
    return s if v.scales is None or v.theorem is None else without_units(s, v.theorem.norm)[0]


def at_horizon(s: Situation, horizon: int) -> Situation:
    """Situation of another number of rounds; facts are kept."""
    longer = replace(s.canonical, horizon=horizon)
    return replace(s, canonical=longer, horizon=longer.learner_rounds, source=s.source or s)


def proved_at(s: Situation, horizon: int) -> Situation | None:
    """Situation of the model with another number of rounds, without what data show; None where it may have other facts, as these
    depend on the number of rounds or on the round.
    """
    problem = s.canonical
    of_states = (e for r in problem.streams for e in (r.following, r.uncut))
    of_rounds = (c.expr for c in (*problem.constraints, *problem.known))
    parts = (e for e in (problem.objective, problem.moving, *of_states, *of_rounds) if e is not None)
    if problem.reads_horizon or any(names(e, Kind.ROUND) for e in parts):
        return None
    model = problem.model.with_horizon(horizon)
    problem, facts = replace(problem, model=model, horizon=horizon), replace(s.facts, model=model)
    return replace(at_horizon(s, horizon), canonical=problem, facts=facts, seen=None)


def given_formulas(v: Verdict) -> dict[str, str | float]:
    """The settings that the user gave, as text."""
    return {n: str(x.formula) for n, x in v.settings.items() if x.given}


def given_words(v: Verdict) -> dict[str, str | float]:
    """The settings that the user gave as words, as text."""
    return {n: x for n, x in given_formulas(v).items() if n in WORD_SETTINGS}


def revised(
    s: Situation,
    v: Verdict,
    numbers: FreeNumbers | None = None,
    horizon: int | None = None,
    open_names: Mapping[str, Any] | None = None,
) -> tuple[Situation, Verdict]:
    """Situation and verdict of the algorithm and theorem for another horizon, or with other numbers of the free constants.

    Facts are kept, and the verdict has no guarantee: `promised_again` works it out.

    numbers     None: those of the verdict
    open_names  symbols for names in `numbers`
    """
    if v.theorem is None:
        return s, v
    if horizon is not None and horizon != s.rounds:
        s = at_horizon(s, horizon)
    if numbers is None and v.best is not None:
        numbers = v.best.numbers
    settings = theorem_settings(v.theorem, in_its_units(s, v), given_formulas(v), None, numbers, open_names)
    return s, replace(v, settings=settings, guarantee=None)


def promised_again(s: Situation, v: Verdict, weight: float) -> Verdict:
    """The verdict with the guarantee of its settings."""
    assert v.theorem is not None
    s = seen_by(v.algorithm, s)
    if withheld(v.theorem, s, v.settings):
        return v
    inner = in_its_units(s, v)
    return with_guarantee(v, s, inner, promise(v.theorem, inner, v.settings), weight)


def with_guarantee(v: Verdict, s: Situation, inner: Situation, guarantee: Guarantee, weight: float) -> Verdict:
    """Verdict with the guarantee of its settings, weighed there: in the user's units, with its conditions and with what is not promised.

    s          situation as the algorithm sees it
    inner      the same in the units of the settings, for which the guarantee is given
    """
    assert v.theorem is not None
    measured = on_data(guarantee, s, v.scales)
    informativeness, score = weigh(inner, measured, weight)
    own = _with_provisos(v.theorem, s, measured)
    shown = in_turns(own if v.scales is None else in_user_units(own, s, v.scales), s.canonical)
    return replace(v, guarantee=shown, informativeness=informativeness, score=score)


def _with_provisos(theorem: Theorem, s: Situation, guarantee: Guarantee) -> Guarantee:
    """Guarantee with the conditions on the sequence, those that hold on data marked, and with what is not promised.

    Where known constraints cut the domain, its comparator must satisfy those of all rounds.
    """
    comparator = FEASIBLE_COMPARATOR.test(s) if s.canonical.known else None
    known = (comparator,) if isinstance(comparator, Condition) else ()
    conditions = tuple(dict.fromkeys((*theorem.conditions(s), *known)))
    if s.seen is not None:
        conditions = tuple(replace(c, measured=s.seen.words(c.key)) for c in conditions)
    return replace(guarantee, conditions=conditions, remarks=(*guarantee.remarks, *s.given_up))
