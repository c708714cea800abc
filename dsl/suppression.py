"""Warnings that comments of a text silence.

`# oco: ignore CODE` or `# allow CODE` at the end of a line is for what begins or stands there, `# oco: ignore CODE` on a line of its own
before the first statement for the whole text. Several codes stand with commas between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from oco.dsl.diagnostics import Diagnostic, Severity
from oco.dsl.source import Source

_CODES = r"(OCO\d{3}(?:\s*,\s*OCO\d{3})*)"
_LINE = re.compile(rf"#.*?\b(?:allow|oco:\s*ignore)\s+{_CODES}")
_WHOLE = re.compile(rf"^\s*#\s*oco:\s*ignore\s+{_CODES}")


def without_allowed(results: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics without the warnings that comments of their texts silence; errors stay."""
    return tuple(d for d in results if d.severity is Severity.ERROR or not _silenced(d))


def _silenced(d: Diagnostic) -> bool:
    if d.span is None:
        return False
    source = d.span.source
    last = source.position(max(d.span.start, d.span.end - 1))[0]
    lines = (source.line(number) for number in range(d.span.line, last + 1))
    return any(d.code in _codes(_LINE, line) for line in lines) or d.code in _of_whole(source)


def _of_whole(source: Source) -> set[str]:
    """Codes that are silenced in the whole text."""
    return {code for line in _head(source.text) for code in _codes(_WHOLE, line)}


def _head(text: str) -> Iterator[str]:
    """Comments before the first statement."""
    for line in text.split("\n"):
        if line.strip() and not line.lstrip().startswith("#"):
            return
        yield line


def _codes(pattern: re.Pattern[str], line: str) -> list[str]:
    match = pattern.search(line)
    return [] if match is None else re.split(r"\s*,\s*", match[1])
