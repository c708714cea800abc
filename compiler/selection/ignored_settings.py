"""Given settings that have no effect: what the theorem that speaks for an algorithm does not use."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oco.compiler.selection.request import AlgorithmRequest
from oco.compiler.selection.seen_by import seen_by
from oco.compiler.selection.verdicts import Applicability, Verdict
from oco.compiler.theory.resolve import GivenSettings, defaults
from oco.compiler.theory.theorems import Objection, Situation, Theorem, UnknownFact
from oco.dsl.diagnostics import Diagnostic, OcoError, Severity
from oco.dsl.settings import UNITS


def ignored_settings(v: Verdict, s: Situation, request: AlgorithmRequest) -> Iterator[Diagnostic]:
    """A warning for each given setting that neither the rule nor another setting reads, with what would use it."""
    if v.theorem is None:
        return
    s = seen_by(v.algorithm, s)
    for name in unread(v.theorem, s, request.given):
        message = f"the setting {name} has no effect: `{v.name}` does not use it here, by {v.theorem.name}"
        yield Diagnostic("OCO712", message, request.span, _way_out(v, s, name), Severity.WARNING)


def unread(theorem: Theorem, s: Situation, given: GivenSettings) -> list[str]:
    """The given settings that neither the theorem nor another of them reads."""
    if not given:
        return []
    used = {UNITS, *_names(theorem, s, given)}
    mentioned = {n for n in given if any(_mentions(str(x), n) for other, x in given.items() if other != n)}
    return [n for n in given if n not in used and n not in mentioned]


def using_all_settings(
    usable: list[Verdict], s: Situation, given: GivenSettings
) -> tuple[list[Verdict], list[Verdict]]:
    """Verdicts that use most of the given settings; the others refused, since the settings were not given for them."""
    ignored = {v.name: [] if v.theorem is None else unread(v.theorem, seen_by(v.algorithm, s), given) for v in usable}
    least = min(map(len, ignored.values()), default=0)
    refused = [_refused(v, ignored[v.name]) for v in usable if len(ignored[v.name]) > least]
    return [v for v in usable if len(ignored[v.name]) == least], refused


def _refused(v: Verdict, ignored: list[str]) -> Verdict:
    reason = f"it does not use {', '.join(f'`{n}`' for n in ignored)}, which `using` sets"
    return Verdict(v.algorithm, Applicability.REFUSED, v.theorem, (Objection(reason, f"write `using {v.name}`"),))


def _names(theorem: Theorem, s: Situation, given: GivenSettings) -> set[str]:
    """The settings of a theorem; none where a fact that they need is not known."""
    try:
        numbers, words = defaults(theorem, s, {n: x for n, x in given.items() if n in theorem.words})
    except (OcoError, UnknownFact):
        return set(given)
    return {*numbers, *words, *theorem.accepts}


def _mentions(formula: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", formula) is not None


def _way_out(v: Verdict, s: Situation, name: str) -> str:
    """Theorem of the algorithm that uses the setting, with what it needs; else the settings that are used."""
    assert v.theorem is not None
    for other in v.algorithm.theorems:
        if other.name != v.theorem.name and name in _names(other, s, {}):
            reasons = [o.reason for o in other.objections(s)]
            return f"{other.name} uses it" + (f", but {reasons[0]}" if reasons else "")
    return f"leave it out; it uses {', '.join(sorted(_names(v.theorem, s, {})))}"
