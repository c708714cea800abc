"""A weaker promise where no theorem gives the one that is asked for, so that a convex model has a learner all the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from oco.compiler.prover.budget import SearchBudget
from oco.compiler.prover.check import check_canonical
from oco.compiler.selection.verdicts import Verdict
from oco.compiler.theory.theorems import Situation
from oco.dsl.statements import Measure


def relaxed(s: Situation, judged: Sequence[Verdict]) -> Situation | None:
    """Situation that asks for less, with a sentence on what is given up and why; None where nothing is left to give up.

    Equalities on average without proved multipliers become two inequalities each; of dynamic regret static regret is left.

    judged  verdicts on what is asked for, all of them refusals
    """
    if s.canonical.equalities:
        able = [v for v in judged if any("multipliers.bounded" in t.facts for t in v.algorithm.theorems)]
        labels = ", ".join(f"`{c.label}`" for c in s.canonical.equalities)
        pairs = s.canonical.as_inequalities()
        facts = check_canonical(pairs.model, pairs, budget=SearchBudget(s.facts.effort))
        lost, instead = f"{labels} as equalities on average", "they are taken as two inequalities each"
        words = f"nothing is promised of {lost}, because {_reason(able, judged)}; {instead}"
        return replace(s, canonical=pairs, facts=facts, given_up=(words,))
    if s.canonical.measure is Measure.DYNAMIC:
        able = [v for v in judged if any(Measure.DYNAMIC in t.measures for t in v.algorithm.theorems)]
        instead = "the bound is one of static regret"
        words = f"nothing is promised of dynamic regret, because {_reason(able, judged)}; {instead}"
        static = replace(s.canonical, model=replace(s.canonical.model, measure=Measure.STATIC))
        return replace(s, canonical=static, given_up=(words,))
    return None


def _reason(able: Sequence[Verdict], judged: Sequence[Verdict]) -> str:
    """Objection to the method that comes nearest, with its name."""
    nearest = min(able or judged, key=lambda v: len(v.objections))
    return f"{nearest.name}, which comes nearest, does not apply: {nearest.reasons[0]}"
