"""Text of a model as the rules of `lint` see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from oco.dsl.diagnostics import Diagnostic
from oco.dsl.dims import Shape
from oco.dsl.labels import axes_of, indexes_of
from oco.dsl.model import Model
from oco.dsl.records import dataclass
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

    def place(self, entry: syntax.Subscript) -> int | None:
        """Place of the entry that a name picks, of the only index of `entry`: 1 for `x[NYC]` where NYC is the second name of the axis."""
        match entry:
            case syntax.Subscript(base=syntax.Identifier(name=base), items=(item,)):
                declared, text = self.model.table().get(base), _name_of(item)
                if text is None or declared is None or isinstance(declared, Let) or _declares(self, item):
                    return None
                axes = axes_of(declared.dims, indexes_of(self.model.params))
                names = axes[0].names if axes and axes[0] is not None else ()
                return names.index(text) if text in names else None
        return None

    def lines(self, span: Span) -> Span:
        """Whole lines that hold a span, with the line end after them."""
        text = self.file.source.text
        end = text.find("\n", span.end)
        return Span(span.source, text.rfind("\n", 0, span.start) + 1, len(text) if end < 0 else end + 1)


def _name_of(item: syntax.Item) -> str | None:
    """Name that an index states: a word, or a text in quotes."""
    match item:
        case syntax.Identifier(name=text) | syntax.QuotedString(value=text):
            return text
    return None


def _declares(context: LintContext, item: syntax.Item) -> bool:
    """True for a word that the model declares, which is then no name of an entry."""
    return isinstance(item, syntax.Identifier) and item.name in context.model.table()


Rule = Callable[[LintContext], Iterator[Diagnostic]]
"""Rule of `lint` on a text: the warnings of one code."""
