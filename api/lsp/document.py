"""Model file as an editor holds it: statements that could be read, mistakes of the others, and where each name occurs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from oco.dsl.diagnostics import Diagnostic, OcoError
from oco.dsl.records import dataclass
from oco.dsl.source import Source, Span
from oco.dsl.text import syntax
from oco.dsl.text.parser import parse_file
from oco.dsl.text.tokens import Token, scan

LABEL_IN_KEY = re.compile(r"\bconstraints\.([A-Za-z][A-Za-z0-9_]*)")
"""Label of a constraint in the key of a fact, as `assume` and the formulas of `using` have it."""

DECLARING = (
    syntax.ModelStatement,
    syntax.IndexStatement,
    syntax.ParamStatement,
    syntax.DecisionStatement,
    syntax.StreamStatement,
    syntax.StateStatement,
    syntax.LetStatement,
)
KEYED = (syntax.AssumeStatement, syntax.UsingStatement)


@dataclass(frozen=True)
class Occurrence:
    """Place of a name. Labels of constraints, and the name of the model, are names apart from the others (`space`)."""

    name: str
    space: str
    span: Span
    declares: bool = False


@dataclass(frozen=True)
class Document:
    """Text with its syntax tree and the mistakes of its syntax; names are not looked up."""

    source: Source
    file: syntax.SourceFile
    mistakes: tuple[Diagnostic, ...]

    @classmethod
    def of(cls, text: str, name: str = "<string>") -> Document:
        """Document of a text, whatever it holds."""
        source = Source(name, text)
        try:
            file, mistakes = parse_file(source)
        except OcoError as error:
            file, mistakes = syntax.SourceFile(source, ()), list(error.diagnostics)
        return cls(source, file, tuple(mistakes))

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """All tokens, comments and line ends among them."""
        return tuple(scan(self.source).tokens)

    @cached_property
    def occurrences(self) -> tuple[Occurrence, ...]:
        """Places of all names, in the order of the text."""
        places = [place for statement in self.file.statements for place in _of_statement(statement)]
        return tuple(sorted(places, key=lambda place: place.span.start))

    def at(self, offset: int) -> Occurrence | None:
        """Name that holds a character, or ends before it."""
        return next((o for o in self.occurrences if o.span.start <= offset <= o.span.end), None)

    def alike(self, occurrence: Occurrence) -> tuple[Occurrence, ...]:
        """All places of the name of an occurrence."""
        return tuple(o for o in self.occurrences if (o.name, o.space) == (occurrence.name, occurrence.space))

    def declaration(self, occurrence: Occurrence) -> Occurrence | None:
        """Place that declares the name of an occurrence."""
        return next((o for o in self.alike(occurrence) if o.declares), None)

    def statement_at(self, offset: int) -> syntax.Statement | None:
        """Statement that holds a character, or ends before it."""
        return next((s for s in self.file.statements if s.span.start <= offset <= s.span.end), None)

    def statement_of(self, occurrence: Occurrence) -> syntax.Statement | None:
        """Statement that declares the name of an occurrence."""
        declaration = self.declaration(occurrence)
        return None if declaration is None else self.statement_at(declaration.span.start)

    def token_at(self, offset: int) -> Token | None:
        """Word or sign that holds a character, or ends before it; a word goes before the sign that follows it."""
        near = [t for t in self.tokens if t.start <= offset <= t.end and t.type not in ("NEWLINE", "COMMENT")]
        return min(near, key=lambda t: (not t.text[:1].isalpha(), t.start), default=None)


def _of_statement(statement: syntax.Statement) -> Iterator[Occurrence]:
    if isinstance(statement, KEYED):
        yield from _labels(statement.span)
    if isinstance(statement, syntax.ConstraintStatement):
        yield Occurrence(statement.label.name, "label", statement.label.span, declares=True)
    declared = statement.name if isinstance(statement, DECLARING) else None
    space = "model" if isinstance(statement, syntax.ModelStatement) else "name"
    if declared is not None:
        yield Occurrence(declared.name, space, declared.span, declares=True)
    skipped = (declared, statement.label if isinstance(statement, syntax.ConstraintStatement) else None)
    for identifier in syntax.identifiers(statement):
        if all(identifier is not other for other in skipped):
            yield Occurrence(identifier.name, "name", identifier.span)


def _labels(span: Span) -> Iterator[Occurrence]:
    for match in LABEL_IN_KEY.finditer(span.text):
        yield Occurrence(match[1], "label", Span(span.source, span.start + match.start(1), span.start + match.end(1)))
