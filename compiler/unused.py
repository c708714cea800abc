"""Given settings that have no effect: what the theorem that speaks for an algorithm does not use."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oco.compiler.settle import GivenSettings, defaults
from oco.compiler.theorems import Situation, Theorem, UnknownFact
from oco.compiler.verdicts import Verdict
from oco.dsl.diagnostics import Diagnostic, OcoError, Severity
from oco.dsl.settings import UNITS
from oco.dsl.source import Span


def unused_settings(v: Verdict, s: Situation, given: GivenSettings, span: Span | None) -> Iterator[Diagnostic]:
    """A warning for each given setting that neither the rule nor another setting reads, with what would use it."""
    if v.theorem is None:
        return
    used = _names(v.theorem, s, given)
    for name in given:
        if name == UNITS or name in used or any(_mentions(str(x), name) for n, x in given.items() if n != name):
            continue
        said = f"the setting {name} has no effect: `{v.name}` does not use it here, by {v.theorem.name}"
        yield Diagnostic("OCO712", said, span, _way_out(v, s, given, name), Severity.WARNING)


def _names(theorem: Theorem, s: Situation, given: GivenSettings) -> set[str]:
    """The settings of a theorem; none where a fact that they need is not known."""
    try:
        numbers, words = defaults(theorem, s, {n: x for n, x in given.items() if n in theorem.words})
    except (OcoError, UnknownFact):
        return set(given)
    return {*numbers, *words, *theorem.accepts}


def _mentions(formula: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", formula) is not None


def _way_out(v: Verdict, s: Situation, given: GivenSettings, name: str) -> str:
    assert v.theorem is not None
    for other in v.algorithm.theorems:
        if other.name != v.theorem.name and name in _names(other, s, {}):
            reasons = [o.reason for o in other.objections(s)]
            return f"{other.name} uses it" + (f", but {reasons[0]}" if reasons else "")
    return f"leave it out; it uses {', '.join(sorted(_names(v.theorem, s, {})))}"
