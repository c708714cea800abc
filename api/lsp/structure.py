"""Outline, renaming, hints in the text and edits that mend a mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oco.dsl.builder_arguments import checked_name
from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass
from oco.dsl.scope import check_reserved
from oco.dsl.source import Span
from oco.dsl.text import syntax
from oco.dsl.text.words import STATEMENT_WORDS
from oco.lsp.checked import Checked
from oco.lsp.document import Document, Occurrence


@dataclass(frozen=True)
class Entry:
    """Statement in the outline of a file: its name, what it is, its place, and that of the name."""

    name: str
    detail: str
    span: Span
    selection: Span


@dataclass(frozen=True)
class InlayHint:
    """Words that an editor shows in the text, after a character."""

    offset: int
    text: str
    tooltip: str = ""


def outline(document: Document) -> list[Entry]:
    """Statements with names, and the objective, in the order of the text."""
    entries = []
    for statement in document.file.statements:
        word = statement.span.text.split(maxsplit=1)[0].rstrip(":")
        name = getattr(statement, "name", None)
        if isinstance(statement, syntax.ConstraintStatement):
            entries.append(Entry(statement.label.name, "constraint", statement.span, statement.label.span))
        elif isinstance(statement, syntax.MinimizeStatement | syntax.UsingStatement | syntax.HorizonStatement):
            start = Span(statement.span.source, statement.span.start, statement.span.start + len(word))
            entries.append(Entry(word, "", statement.span, start))
        elif isinstance(name, syntax.Identifier) and word in STATEMENT_WORDS:
            entries.append(Entry(name.name, word, statement.span, name.span))
    return entries


def renamed(document: Document, occurrence: Occurrence, name: str) -> list[Span]:
    """Places to be written anew where a name becomes another.

    Raises OcoError where that is no name (OCO526), has a meaning in the language (OCO205), or is taken (OCO203).
    """
    checked_name(name, f"what was called `{occurrence.name}`", occurrence.span)
    check_reserved(name, occurrence.span)
    taken = [o for o in document.occurrences if o.declares and (o.name, o.space) == (name, occurrence.space)]
    if taken and name != occurrence.name:
        raise fail(
            "OCO203", f"`{name}` is declared already, on line {taken[0].span.line}", occurrence.span, "another name"
        )
    return [o.span for o in document.alike(occurrence)]


def inlay_hints(document: Document, checked: Checked) -> Iterator[InlayHint]:
    """Shapes behind `let` names, and what is known of the loss and of each constraint behind its line."""
    for statement in document.file.statements:
        if isinstance(statement, syntax.LetStatement) and statement.name.name in checked.shapes:
            shape = checked.shapes[statement.name.name]
            yield InlayHint(statement.name.span.end, ": number" if shape == "a number" else f": {shape}")
        elif isinstance(statement, syntax.MinimizeStatement):
            yield from _known(checked, "loss", statement.span.end)
        elif isinstance(statement, syntax.ConstraintStatement):
            yield from _known(checked, f"constraints.{statement.label.name}", statement.span.end)


def _known(checked: Checked, of: str, offset: int) -> Iterator[InlayHint]:
    def value(key: str) -> str:
        fact = checked.facts.get(f"{of}.{key}")
        return "" if fact is None or fact.grade == "unknown" else fact.value

    structure, slope = value("structure"), value("lipschitz.l2")
    curvature = "convex" if value("convex") == "yes" else ""
    words = [structure or curvature, f"|grad| <= {slope}" if slope else ""]
    text = ", ".join(word for word in words if word)
    if text:
        why = checked.facts.get(f"{of}.convex")
        yield InlayHint(offset, f"  {text}", "" if why is None else why.why)


def edits(diagnostic: Mapping[str, Any]) -> list[tuple[int, int, str]]:
    """Edits that a diagnostic proposes, as (first character, character after the last, text)."""
    return [(fix["span"]["offset"], fix["span"]["end_offset"], fix["text"]) for fix in diagnostic["fixes"]]
