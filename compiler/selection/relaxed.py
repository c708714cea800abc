"""A weaker promise where no theorem gives the one that is asked for, so that a convex model has a learner all the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from oco.compiler.problem.canonical import Canonical, canonical
from oco.compiler.prover.check import LOSS, check_canonical
from oco.compiler.prover.phrasing import number
from oco.compiler.prover.search_budget import SearchBudget
from oco.compiler.selection.verdicts import Applicability, Verdict
from oco.compiler.theory.theorems import Situation
from oco.compiler.theory.ways_out import borders_of_slopes
from oco.dsl.expressions import Expr, constant
from oco.dsl.model import Model
from oco.dsl.statements import Measure

RARE = 1e-3
"""Probability with which some value of a run lies outside the range that a guarantee takes of its distribution."""


def relaxed(s: Situation, judged: Sequence[Verdict], usable: Sequence[Verdict] = ()) -> Situation | None:
    """Situation that asks for less, with a sentence on what is given up and why; None where nothing is left to give up.

    Streams of a stated distribution without ends are taken to lie where they do with high probability. Losses whose slope is infinite
    at the border of the domain are played a little inside of it. Equalities on average without proved multipliers become two
    inequalities each; of dynamic regret static regret is left.

    judged  verdicts on what is asked for that are refusals
    usable  the others; beside those of rules that read gradients nothing is given up
    """
    if usable and not _values_only(s, usable):
        return None
    narrower = _within_likely_ranges(s) or _kept_from_infinite_slopes(s)
    if narrower is not None or usable:
        return narrower
    return _with_equalities_as_pairs(s, judged) or _of_static_regret(s, judged)


def asking_less(
    s: Situation, verdict: Verdict, again: Callable[[Situation], Verdict], runs: Callable[[Situation], bool]
) -> tuple[Situation, Verdict]:
    """Situation that asks for less of one algorithm, and the verdict on it; those given where no theorem holds there either.

    again  verdict of the algorithm on a situation
    runs   whether its rule can play a situation: equalities then stay what they are
    """
    less, refusal = s, verdict
    while refusal.applicability is Applicability.REFUSED:
        weaker = relaxed(less, [refusal])
        if weaker is None or (weaker.canonical.equalities != less.canonical.equalities and runs(less)):
            return s, verdict
        less, refusal = weaker, again(weaker)
    return less, refusal


def _with_equalities_as_pairs(s: Situation, judged: Sequence[Verdict]) -> Situation | None:
    """Situation with two inequalities for each equality on average; None where there is none."""
    if not s.canonical.equalities:
        return None
    able = [v for v in judged if any("multipliers.bounded" in t.facts for t in v.algorithm.theorems)]
    lost = f"{', '.join(f'`{c.label}`' for c in s.canonical.equalities)} as equalities on average"
    pairs = s.canonical.as_inequalities()
    words = f"nothing is promised of {lost}, because {_reason(able, judged)}; they are taken as two inequalities each"
    return _asking_for(s, pairs, words)


def _of_static_regret(s: Situation, judged: Sequence[Verdict]) -> Situation | None:
    """Situation that measures static regret; None where it does so already."""
    if s.canonical.measure is not Measure.DYNAMIC:
        return None
    able = [v for v in judged if any(Measure.DYNAMIC in t.measures for t in v.algorithm.theorems)]
    words = f"nothing is promised of dynamic regret, because {_reason(able, judged)}; the bound is one of static regret"
    static = replace(s.canonical, model=replace(s.canonical.model, measure=Measure.STATIC))
    return replace(s, canonical=static, given_up=(*s.given_up, words))


def _values_only(s: Situation, usable: Sequence[Verdict]) -> bool:
    """True where rules that read values alone apply for want of bounded gradients, though the model gives gradients."""
    return not s.canonical.feedback.gives_values_alone and all(v.algorithm.reads_values_alone for v in usable)


def _within_likely_ranges(s: Situation) -> Situation | None:
    """Situation in which streams of a distribution without ends lie where they do in all rounds with probability 1 - `RARE`."""
    c = s.canonical
    endless = [r for r in c.streams if r.distribution is not None and not np.isfinite([r.lower, r.upper]).all()]
    if not endless or c.horizon is None:
        return None
    share = RARE / (2 * c.horizon * sum(math.prod(r.shape) for r in endless))
    model, ranges = c.model, list[str]()
    for r in endless:
        assert r.distribution is not None
        low, high = (np.broadcast_to(r.distribution.quantile(q), r.shape) for q in (share, 1 - share))
        low, high = np.where(np.isfinite(r.lower), r.lower, low), np.where(np.isfinite(r.upper), r.upper, high)
        if not np.isfinite([low, high]).all():
            return None
        ends = constant(low), constant(high)
        bounded = tuple(replace(x, bounds=ends) if x.name == r.name else x for x in model.streams)
        model = replace(model, streams=bounded)
        ranges.append(f"`{r.name}` lies in [{number(float(low.min()))}, {number(float(high.max()))}]")
    words = f"{' and '.join(ranges)}, as stated distributions have it in all rounds with probability {1 - RARE:g}"
    return _on_model(s, model, f"the guarantee is for sequences for which {words}")


def _kept_from_infinite_slopes(s: Situation) -> Situation | None:
    """Situation with cuts of the decisions' sets that bound all gradients; None where they are bounded or cuts do not help."""
    c = s.canonical
    exprs = [e for e, prefix in _slopes(c) if s.number(f"{prefix}.lipschitz.l2") is None]
    if not exprs or not (away := borders_of_slopes(c, exprs)):
        return None
    cuts = " and ".join(f"`{border}`" for border in away)
    words = f"decisions are kept where {cuts}, and compared with such decisions alone, because a gradient is infinite beyond"
    return _on_model(s, reduce(lambda model, border: border.cut(model), away, c.model), words)


def _on_model(s: Situation, model: Model, words: str) -> Situation:
    """Situation of a narrower model, with the sentence on what is given up."""
    result = _asking_for(s, canonical(model, s.canonical.seasons), words)
    return replace(result, canonical=result.canonical.learned)


def _asking_for(s: Situation, problem: Canonical, words: str) -> Situation:
    """Situation of another problem, with its facts and the sentence on what is given up."""
    facts = check_canonical(problem.model, problem, budget=SearchBudget(s.facts.effort))
    seen = None if s.seen is None else replace(s.seen, problem=problem)
    return replace(s, canonical=problem, facts=facts, given_up=(*s.given_up, words), seen=seen)


def _slopes(c: Canonical) -> list[tuple[Expr, str]]:
    """Expressions whose gradients a rule may take, each with the prefix of its facts."""
    return [(c.objective, LOSS), *((g.expr, f"constraints.{g.label}") for g in c.inequalities)]


def _reason(able: Sequence[Verdict], judged: Sequence[Verdict]) -> str:
    """Objection to the method that comes nearest, with its name."""
    nearest = min(able or judged, key=lambda v: len(v.objections))
    return f"{nearest.name}, which comes nearest, does not apply: {nearest.reasons[0]}"
