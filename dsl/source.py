"""Places in a text, for diagnostics."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from oco.dsl.records import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """Text with the name that users know it by (a file's path, `<string>`, a notebook cell)."""

    name: str
    text: str = field(repr=False)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character offset, both counted from 1."""
        line = self.text.count("\n", 0, offset) + 1
        return line, offset - (self.text.rfind("\n", 0, offset) + 1) + 1

    def line(self, number: int) -> str:
        """Text of line `number` (from 1), without its line break."""
        lines = self.text.split("\n")
        return lines[number - 1] if 0 < number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` up to, not including, `end` of a source."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        """Line of the first character, from 1."""
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        """Column of the first character, from 1."""
        return self.source.position(self.start)[1]

    @property
    def text(self) -> str:
        """Characters of the span."""
        return self.source.text[self.start : self.end]

    def as_data(self) -> dict[str, Any]:
        """Place as JSON values: lines and columns from 1, offsets in characters from 0, ends not included."""
        (line, column), (end_line, end_column) = (self.source.position(k) for k in (self.start, self.end))
        return {
            "file": self.source.name,
            "line": line,
            "column": column,
            "end_line": end_line,
            "end_column": end_column,
            "offset": self.start,
            "end_offset": self.end,
        }

    def to(self, other: Span | None) -> Span:
        """Smallest span that contains both."""
        if other is None or other.source is not self.source:
            return self
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))
