"""Text of a model as the rules of `lint` see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from oco.dsl.diagnostics import Diagnostic
from oco.dsl.dims import Shape
from oco.dsl.model import Model
from oco.dsl.source import Span
from oco.dsl.statements import Let
from oco.dsl.text import syntax


@dataclass(frozen=True)
class LintContext:
    """Syntax tree of a text, and the model that was made of it."""

    file: syntax.SourceFile
    model: Model

    @cached_property
    def used(self) -> frozenset[str]:
        """Names that stand anywhere but where they are declared."""
        return frozenset(
            name.name
            for statement in self.file.statements
            for name in syntax.identifiers(statement)
            if name is not getattr(statement, "name", None) and name is not getattr(statement, "label", None)
        )

    def shape(self, name: str) -> Shape | None:
        """Shape of a declared name; None of any other word."""
        declared = self.model.table().get(name)
        return None if declared is None else declared.value.shape if isinstance(declared, Let) else declared.shape

    def lines(self, span: Span) -> Span:
        """Whole lines that hold a span, with the line end after them."""
        text = self.file.source.text
        end = text.find("\n", span.end)
        return Span(span.source, text.rfind("\n", 0, span.start) + 1, len(text) if end < 0 else end + 1)


Rule = Callable[[LintContext], Iterator[Diagnostic]]
"""Rule of `lint` on a text: the warnings of one code."""
