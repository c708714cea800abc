"""Rules of `lint` that read the text and its names alone, by code; and the edits that they propose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from oco.dsl.diagnostics import Diagnostic, Fix
from oco.dsl.lint.context import LintContext, Rule
from oco.dsl.lint.unused import unused_names
from oco.dsl.lint.vectors import equal_constraints, repeated_constraints, sums_of_entries
from oco.dsl.model import Model
from oco.dsl.source import Source
from oco.dsl.suppression import without_allowed
from oco.dsl.text.parser import parse_file

TEXT_RULES: dict[str, Rule] = {
    "OCO630": unused_names,
    "OCO631": sums_of_entries,
    "OCO632": repeated_constraints,
    "OCO633": equal_constraints,
}


def lint_text(source: Source, model: Model, codes: Iterable[str] = tuple(TEXT_RULES)) -> tuple[Diagnostic, ...]:
    """Warnings of the rules of these codes about a text, in its order, without those that comments silence.

    model  made of the text
    """
    context = LintContext(parse_file(source)[0], model)
    warnings = (d for code in codes if code in TEXT_RULES for d in TEXT_RULES[code](context))
    return tuple(sorted(without_allowed(warnings), key=lambda d: (d.span.start if d.span else -1, d.code)))


def apart(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Diagnostics with fixes whose edits meet none of an earlier one."""
    results: list[Diagnostic] = []
    taken: list[Fix] = []
    for d in diagnostics:
        meets = any(a.span.start < b.span.end and b.span.start < a.span.end for a in d.fixes for b in taken)
        if d.fixes and not meets:
            results.append(d)
            taken += d.fixes
    return results


def fixed(text: str, diagnostics: Iterable[Diagnostic]) -> str:
    """Text with the fixes of diagnostics whose edits do not meet."""
    edits = sorted((fix for d in diagnostics for fix in d.fixes), key=lambda fix: fix.span.start)
    return "".join(_pieces(text, edits))


def _pieces(text: str, edits: Sequence[Fix]) -> Iterator[str]:
    at = 0
    for fix in edits:
        yield text[at : fix.span.start] + fix.text
        at = fix.span.end
    yield text[at:]
