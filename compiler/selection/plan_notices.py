"""Warnings about a plan: a tradeoff without effect, a guarantee that says nothing, a horizon too short for the settings."""

from __future__ import annotations

from collections.abc import Iterator

from oco.compiler.algorithms import ALGORITHMS
from oco.compiler.algorithms.rounds_ahead import count_ahead
from oco.compiler.problem.fixed_rows import can_be_kept
from oco.compiler.prover.notices import cut_of
from oco.compiler.prover.phrasing import number
from oco.compiler.selection.choice import Choice
from oco.compiler.selection.horizons import useful_from
from oco.compiler.selection.verdicts import Verdict, withheld
from oco.compiler.theory.theorems import Situation
from oco.dsl.diagnostics import Diagnostic, Severity
from oco.dsl.expressions import changes
from oco.dsl.statements import Timing
from oco.dsl.suppression import without_allowed


def plan_notices(choice: Choice) -> tuple[Diagnostic, ...]:
    """Warnings about the guarantee of the chosen algorithm. Silenced by `# allow CODE` on the line of `horizon`."""
    return without_allowed(_notices(choice))


def _notices(choice: Choice) -> Iterator[Diagnostic]:
    yield from _tradeoff_without_effect(choice)
    v = choice.winner
    if v is None:
        return
    yield from _predictions_unused(choice.situation, v)
    yield from _nothing_ahead(choice.situation, v)
    if v.theorem is not None and (why := withheld(v.theorem, choice.played, v.settings)):
        message = f"nothing is guaranteed of `{v.name}` here: {why}"
        yield Diagnostic("OCO704", message, choice.situation.canonical.model.horizon.span, "", Severity.WARNING)
    yield from _broken_at_first(choice.played, v.name)
    yield from _vacuous_bounds(choice.situation, v)


def _tradeoff_without_effect(choice: Choice) -> Iterator[Diagnostic]:
    """Warning about a tradeoff where each constraint states its penalty."""
    problem, weight = choice.situation.canonical, choice.policy.weight
    if weight != 1.0 and problem.constraints and all(c.penalties for c in problem.constraints):
        message = f"the tradeoff {weight:g} weighs nothing: each constraint of {problem.name} states its penalty"
        hint = "change the penalties, or leave them out where the tradeoff is to count"
        yield Diagnostic("OCO716", message, problem.model.span, hint, Severity.WARNING)


def _predictions_unused(s: Situation, v: Verdict) -> Iterator[Diagnostic]:
    """Warning about stated predictions that the algorithm makes no use of."""
    if s.canonical.predictions and not v.algorithm.predicts:
        predicted = ", ".join(f"`{n}`" for n, _ in s.canonical.predictions)
        users = " or ".join(f"`using {a.name}`" for a in ALGORITHMS if a.predicts)
        message, hint = f"`{v.name}` makes no use of the stated predictions of {predicted}", f"{users} takes them"
        span = s.canonical.model.span
        yield Diagnostic("OCO717", message, span, f"{hint}, where it applies", Severity.WARNING)


def _nothing_ahead(s: Situation, v: Verdict) -> Iterator[Diagnostic]:
    """Warning about predictions of rounds to come of which the algorithm takes that of the round itself."""
    if s.canonical.lookahead.contexts and count_ahead(s, v.settings) <= 1:
        given = ", ".join(f"`{n}`" for n in s.canonical.lookahead.contexts)
        message = (
            f"nothing looks ahead to the rounds to come of {given}: `{v.name}` takes the prediction of the round itself"
        )
        hint = (
            "a `state` says what a round leaves to the next, and `using hedged` values it; else predict the round alone"
        )
        yield Diagnostic("OCO616", message, s.canonical.model.span, hint, Severity.WARNING)


def _vacuous_bounds(s: Situation, v: Verdict) -> Iterator[Diagnostic]:
    """Warnings about bounds that say nothing at this horizon, with the horizon from which they do."""
    if v.guarantee is None or s.rounds is None:
        return
    span, useful = s.canonical.model.horizon.span, useful_from(s, v)
    for bound in v.guarantee.bounds:
        if bound.measure not in useful or bound.worst is None:
            continue
        promised = number(bound.number(s.rounds) or 0.0)
        most = f"{s.rounds} rounds of at most {number(bound.worst)} each"
        message = f"the guarantee of {v.name} says nothing: {bound.measure} <= {promised}, no less than {most}"
        hint = "its rate says how it grows; `oco explain` shows what each algorithm promises"
        yield Diagnostic("OCO608", message, span, hint, Severity.WARNING)
        from_then = useful[bound.measure]
        if from_then.horizon is not None:
            message = f"T = {s.rounds} is too short for the settings of {v.name} to promise anything of {bound.measure}"
            yield Diagnostic("OCO609", message, span, str(from_then), Severity.WARNING)


def _broken_at_first(s: Situation, algorithm: str) -> Iterator[Diagnostic]:
    """Fixed constraints that the algorithm learns to meet, and that the domain, which decisions never leave, could be cut by."""
    for c in s.canonical.inequalities:
        if c.timing is not Timing.EACH_ROUND or c.label != c.origin or changes(c.expr):
            continue
        most = s.entries(c.label, c.shape, "upper")
        if (most is None or most.max() > 0) and (cut := cut_of(c, s.canonical.model)):
            keeping = " or ".join(f"`using {a.name}`" for a in ALGORITHMS if a.keeps_fixed)
            keeps = can_be_kept(c, s.canonical.model, s.canonical.blocks)
            ways = f"{cut}; or write {keeping}, which keeps to it, where it applies" if keeps else cut
            message = f"`{c.label}` is the same in every round, but nothing keeps the first decisions of `{algorithm}` from breaking it"
            yield Diagnostic("OCO612", message, c.span, ways, Severity.WARNING)
