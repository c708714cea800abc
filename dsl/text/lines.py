"""Split of a file's tokens into statements: one a line, except that a line end inside ( ) or [ ] does not count."""

from __future__ import annotations

from typing import NamedTuple

from oco.dsl.diagnostics import Diagnostic
from oco.dsl.limits import DEEPEST, too_deep
from oco.dsl.source import Span
from oco.dsl.text.tokens import CLOSER, STATEMENT_KINDS, Scan, Token, label_end

RELATIONS = frozenset({"LE", "GE", "EQ", "NE", "LESSTHAN", "MORETHAN"})
OPENERS = frozenset(CLOSER)
CLOSERS = frozenset(CLOSER.values())
_SIGN = {"RPAR": ")", "RSQB": "]", "RBRACE": "}"}


class Line(NamedTuple):
    """Tokens of one statement, at least one, and the first mistake in its characters or brackets."""

    tokens: list[Token]
    problem: Diagnostic | None

    @property
    def span(self) -> Span:
        """Span of all tokens."""
        return self.tokens[0].span.to(self.tokens[-1].span)


def split(scanned: Scan) -> list[Line]:
    """Statements in order.

    An unclosed bracket is reported once, and the statement ends before the next line that can only be a new statement:
    one that starts with a statement's word, or with the label of a constraint.
    """
    lines: list[Line] = []
    current = _Statement()
    tokens = scanned.tokens
    for i, token in enumerate(tokens):
        if token.type == "NEWLINE":
            if not current.open or _starts_statement(tokens, i + 1, current.open[-1]):
                current = _flush(current, lines)
        elif token.type != "COMMENT":
            current.take(token, scanned.problems.get(token.start))
    _flush(current, lines)
    return lines


class _Statement:
    """Statement being collected, with the brackets that are open in it."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.open: list[Token] = []
        self.problem: Diagnostic | None = None

    def take(self, token: Token, problem: Diagnostic | None) -> None:
        self.tokens.append(token)
        if token.type in OPENERS:
            self.open.append(token)
            if len(self.open) > DEEPEST:
                problem = too_deep(token.span)
        elif token.type in CLOSERS:
            problem = self._close(token)
        self.problem = self.problem or problem

    def _close(self, token: Token) -> Diagnostic | None:
        if not self.open:
            return Diagnostic(
                "OCO106", f"nothing opens this `{token.text}`", token.span, "delete it, or open it before"
            )
        last = self.open.pop()
        if CLOSER[last.type] == token.type:
            return None
        if any(CLOSER[other.type] == token.type for other in self.open):
            while CLOSER[self.open.pop().type] != token.type:
                pass
            return unclosed(last)
        return Diagnostic(
            "OCO106",
            f"`{last.text}` is closed by `{token.text}`",
            token.span,
            f"close it with `{_SIGN[CLOSER[last.type]]}`",
        )


def unclosed(opener: Token) -> Diagnostic:
    """Diagnostic for a bracket that is never closed."""
    return Diagnostic("OCO105", f"`{opener.text}` is never closed", opener.span, f"add `{_SIGN[CLOSER[opener.type]]}`")


def _flush(current: _Statement, lines: list[Line]) -> _Statement:
    """Add the statement to the list, and start the next one."""
    if current.tokens:
        problem = current.problem or (unclosed(current.open[-1]) if current.open else None)
        lines.append(Line(current.tokens, problem))
    return _Statement()


def _starts_statement(tokens: list[Token], start: int, opener: Token) -> bool:
    """True where the line at `start`, inside an open bracket, can only be a new statement."""
    row: list[Token] = []
    while start < len(tokens) and tokens[start].type != "NEWLINE":
        row.append(tokens[start])
        start += 1
    if not row:
        return False
    if row[0].type in STATEMENT_KINDS:
        return True
    return label_end(row) > 0 and (opener.type == "LPAR" or any(t.type in RELATIONS for t in row))
