"""Horizons at which no guarantee says anything, and somewhat longer ones at which one does."""

from __future__ import annotations

from collections.abc import Iterator

from oco.compiler.selection.choice import Choice
from oco.compiler.selection.horizons import useful_from
from oco.dsl.diagnostics import Diagnostic, Severity

LONGER = 100
"""Times the horizon up to which another one is proposed: beyond, it is the ranges that are wide, not the horizon that is short."""


def short_horizon(choice: Choice) -> Iterator[Diagnostic]:
    """Warn where every guarantee is vacuous, with the horizon from which that of the first algorithm is not."""
    s, rounds = choice.situation, choice.situation.rounds
    if rounds is None or not choice.vacuous:
        return
    first = choice.usable[0]
    useful = useful_from(s, first).values()
    horizons = [u.horizon for u in useful if u.exact and u.horizon is not None]
    if not horizons or len(horizons) < len(useful) or max(horizons) > LONGER * rounds:
        return
    message = f"T = {rounds} is too short: until then no algorithm guarantees anything; `{first.name}` does from T = {max(horizons):.0f}"
    hint = "give the number of rounds that the learner is to run, or `horizon T unknown`"
    yield Diagnostic("OCO635", message, s.canonical.model.horizon.span, hint, Severity.WARNING)
