"""`oco fmt`: a text in canonical layout. It works on tokens, so that every comment stays, and checks that the meaning
did too.

Layout: blanks round signs, constraints indented by four, at most one blank line in a row, no blanks at line ends, one
line end at the end. Runs of two or more blanks align columns, and stay: tokens that stood under each other after such
runs stand under each other again.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field

from oco.dsl.diagnostics import InternalError, OcoError
from oco.dsl.records import dataclass
from oco.dsl.source import Source
from oco.dsl.text import syntax
from oco.dsl.text.lines import split
from oco.dsl.text.parser import parse_file
from oco.dsl.text.spacing import CLOSERS, OPENERS, gaps
from oco.dsl.text.tokens import Scan, Token, scan

INDENT = 4
TAB = 4


@dataclass
class _Cell:
    """Token in its row. Columns count from 0: `was` in the given text, `now` in the new one."""

    text: str
    was: int
    run: int
    gap: int
    now: int = -1

    @property
    def wide(self) -> bool:
        """True where a run of blanks before it aligns it."""
        return self.run >= 2

    @property
    def end(self) -> int:
        return self.now + len(self.text)


@dataclass(eq=False)
class _Row:
    """Line of the text. `indent` is its required start; None for a line that continues a statement, whose first row and
    whose row right above are in `above`.
    """

    cells: list[_Cell] = field(default_factory=list)
    indent: int | None = 0
    above: tuple[_Row, ...] = ()

    def add(self, token: Token, blanks: str, gap: int) -> None:
        """Add the next token, after `blanks` in the text."""
        end = self.cells[-1].was + len(self.cells[-1].text) if self.cells else 0
        column = end + len((" " * (end % TAB) + blanks).expandtabs(TAB)) - end % TAB
        self.cells.append(_Cell(token.text.rstrip(), column, column - end if self.cells else 0, gap))

    def render(self) -> str:
        line = ""
        for cell in self.cells:
            line += " " * (cell.now - len(line)) + cell.text
        return line


def format_text(text: str, name: str = "<string>") -> str:
    """Text in canonical layout. Raises OcoError where the text has mistakes of syntax."""
    source = Source(name, text)
    before, errors = parse_file(source)
    if errors:
        raise OcoError(*errors)
    rows = _rows(source, before)
    _place(rows)
    result = "".join(line + "\n" for line in _single_blank_lines([row.render() for row in rows]))
    _check_same(source, before, result)
    return result


def _rows(source: Source, file: syntax.SourceFile) -> list[_Row]:
    scanned = scan(source)
    apart = _gaps(scanned)
    indents = {s.span.start: INDENT * isinstance(s, syntax.ConstraintStatement) for s in file.statements}
    rows: list[_Row] = [_Row()]
    depth = 0
    first = last = rows[0]
    end = 1 if source.text.startswith("\ufeff") else 0
    for token in scanned.tokens:
        if token.type == "NEWLINE":
            rows.append(_Row())
        else:
            row = rows[-1]
            if not row.cells and depth > 0:
                row.indent, row.above = None, (first, last)
            elif not row.cells:
                row.indent, first = indents.get(token.start, 0), row
            row.add(token, source.text[end : token.start], 1 if token.type == "COMMENT" else apart.get(token.start, 0))
            last = row
            depth += (token.type in OPENERS) - (token.type in CLOSERS)
        end = token.end
    _indent_comments(rows)
    return rows


def _gaps(scanned: Scan) -> dict[int, int]:
    """Canonical number of blanks before each token of a statement, by its offset."""
    apart: dict[int, int] = {}
    for line in split(scanned):
        apart |= {token.start: len(gap) for gap, token in zip(gaps(line.tokens), line.tokens[1:])}
    return apart


def _indent_comments(rows: list[_Row]) -> None:
    """Indent a comment on a line of its own, if it was indented, like the statement after it."""
    following = 0
    for row in reversed(rows):
        if not row.cells or row.indent is None:
            continue
        if row.cells[0].text.startswith("#"):
            row.indent = following if row.cells[0].was else 0
        else:
            following = row.indent


def _place(rows: list[_Row]) -> None:
    """Give every cell its new column, from left to right over all rows at once, so that aligned columns move together."""
    columns: defaultdict[int, list[tuple[_Row, int]]] = defaultdict(list)
    for row in rows:
        for i, cell in enumerate(row.cells):
            columns[cell.was].append((row, i))
    for column in sorted(columns):
        members = columns[column]
        ends = [row.cells[i - 1].end for row, i in members if i and row.cells[i].wide]
        aligned = max([column, *(end + 2 for end in ends)])
        for row, i in members:
            cell = row.cells[i]
            if i == 0:
                cell.now = _start(row, cell)
            elif not cell.wide:
                cell.now = row.cells[i - 1].end + cell.gap
            else:
                cell.now = aligned if len(ends) > 1 else row.cells[i - 1].end + cell.run


def _start(row: _Row, cell: _Cell) -> int:
    """Column at which a row begins. A continuation stays under the token it stood under, or moves with the statement's
    first row.
    """
    if row.indent is not None:
        return row.indent
    first, last = row.above
    for above in (*last.cells, *first.cells):
        if above.was == cell.was:
            return above.now
    return max(0, cell.was + first.cells[0].now - first.cells[0].was)


def _single_blank_lines(lines: list[str]) -> list[str]:
    """Remove blank lines at the start and at the end, and merge several into one."""
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _check_same(source: Source, before: syntax.SourceFile, result: str) -> None:
    """Check that the new text has the meaning of the old one, comments included."""
    after, errors = parse_file(Source(source.name, result))
    if errors or after.statements != before.statements:
        raise InternalError("the formatted text does not mean the same")
    if _comments(source) != _comments(Source(source.name, result)):
        raise InternalError("the formatted text has other comments")


def _comments(source: Source) -> list[str]:
    return [token.text.rstrip() for token in scan(source).tokens if token.type == "COMMENT"]
