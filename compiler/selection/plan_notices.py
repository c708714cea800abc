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
from oco.compiler.selection.verdicts import withheld
from oco.compiler.theory.theorems import Situation
from oco.dsl.diagnostics import Diagnostic, Severity
from oco.dsl.expressions import changes
from oco.dsl.statements import Timing
from oco.dsl.suppression import without_allowed


def plan_notices(choice: Choice) -> tuple[Diagnostic, ...]:
    """Warnings about the guarantee of the chosen algorithm. Silenced by `# allow CODE` on the line of `horizon`."""
    return without_allowed(_notices(choice))


def _notices(choice: Choice) -> Iterator[Diagnostic]:
    s, v = choice.situation, choice.winner
    stated = [bool(c.penalties) for c in s.canonical.constraints]
    if choice.policy.weight != 1.0 and stated and all(stated):
        message = f"the tradeoff {choice.policy.weight:g} weighs nothing: each constraint of {s.canonical.name} states its penalty"
        hint = "change the penalties, or leave them out where the tradeoff is to count"
        yield Diagnostic("OCO716", message, s.canonical.model.span, hint, Severity.WARNING)
    if v is not None and s.canonical.predictions and not v.algorithm.predicts:
        predicted = ", ".join(f"`{n}`" for n, _ in s.canonical.predictions)
        users = " or ".join(f"`using {a.name}`" for a in ALGORITHMS if a.predicts)
        message = f"`{v.name}` makes no use of the stated predictions of {predicted}"
        yield Diagnostic(
            "OCO717", message, s.canonical.model.span, f"{users} takes them, where it applies", Severity.WARNING
        )
    if v is not None and s.canonical.lookahead.contexts and count_ahead(s, v.settings) <= 1:
        given = ", ".join(f"`{n}`" for n in s.canonical.lookahead.contexts)
        message = (
            f"nothing looks ahead to the rounds to come of {given}: `{v.name}` takes the prediction of the round itself"
        )
        hint = (
            "a `state` says what a round leaves to the next, and `using hedged` values it; else predict the round alone"
        )
        yield Diagnostic("OCO616", message, s.canonical.model.span, hint, Severity.WARNING)
    if v is not None and v.theorem is not None and (why := withheld(v.theorem, choice.played, v.settings)):
        message = f"nothing is guaranteed of `{v.name}` here: {why}"
        yield Diagnostic("OCO704", message, s.canonical.model.horizon.span, "", Severity.WARNING)
    if v is not None:
        yield from _broken_at_first(choice.played, v.name)
    if v is None or v.guarantee is None or s.rounds is None:
        return
    span, useful = s.canonical.model.horizon.span, useful_from(s, v)
    for bound in v.guarantee.bounds:
        if bound.measure not in useful or bound.worst is None:
            continue
        promised = bound.number(s.rounds)
        most = f"{s.rounds} rounds of at most {number(bound.worst)} each"
        message = (
            f"the guarantee of {v.name} says nothing: {bound.measure} <= {number(promised or 0.0)}, no less than {most}"
        )
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
