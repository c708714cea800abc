"""Spacing of tokens in canonical text, for the formatter, the printer's formulas and the settings of `using`."""

from __future__ import annotations

from oco.dsl.source import Source
from oco.dsl.text.tokens import CLOSER, NAME_KINDS, STATEMENT_KINDS, Token, label_end, scan

OPENERS = frozenset(CLOSER)
CLOSERS = frozenset(CLOSER.values())
BINARY = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "AT", "POWER"})
SEPARATORS = frozenset({"COMMA", "EQUAL", "COLON", "LE", "GE", "EQ", "TILDE"})


def canonical(text: str) -> str:
    """Part of a statement on one line, canonically spaced, without comments."""
    tokens = [t for t in scan(Source("", text)).tokens if t.type not in ("NEWLINE", "COMMENT")]
    return "".join(gap + token.text for gap, token in zip(["", *gaps(tokens)], tokens))


def gaps(tokens: list[Token]) -> list[str]:
    """Blank, "" or " ", between each token of a statement and the next."""
    ends = _operand_ends(tokens)
    tight = _tight(tokens, ends)
    return [" " if _apart(tokens, i, ends, tight) else "" for i in range(len(tokens) - 1)]


def _operand_ends(tokens: list[Token]) -> list[bool]:
    """Flag for each token with which an operand ends. A word right after an operand is a keyword (`x in`, `T unknown`),
    so none ends there; nor with the word after the comma that ends a constraint (`each round, penalty 50`).
    """
    ends: list[bool] = []
    depth, constraint = 0, label_end(tokens) > 0
    for before, token in zip([None, *tokens], tokens):
        depth += (token.type in OPENERS) - (token.type in CLOSERS)
        if token.type in NAME_KINDS:
            adds = constraint and depth == 0 and before is not None and before.type == "COMMA"
            ends.append(not adds and not (ends and ends[-1]))
        else:
            ends.append(token.type in CLOSERS or token.type in ("NUMBER", "TEXT", "ALGORITHM"))
    return ends


def _tight(tokens: list[Token], ends: list[bool]) -> list[bool]:
    """Flag for each operator without blanks because it is part of a range: `0..m-1`."""
    tight = [False] * len(tokens)
    segments: list[list[int]] = [[]]
    pending: list[list[int]] = []

    def close(segment: list[int]) -> None:
        if any(tokens[i].type == "RANGE" for i in segment):
            for i in segment:
                tight[i] = True

    for i, token in enumerate(tokens):
        keyword = token.type in NAME_KINDS and not ends[i]
        if token.type in OPENERS:
            pending.append(segments.pop())
            segments.append([])
        elif token.type in CLOSERS:
            close(segments.pop())
            segments.append(pending.pop() if pending else [])
        elif token.type in SEPARATORS or token.type in STATEMENT_KINDS or keyword:
            close(segments.pop())
            segments.append([])
        elif token.type in BINARY or token.type == "RANGE":
            segments[-1].append(i)
    close(segments[-1])
    return tight


def _apart(tokens: list[Token], i: int, ends: list[bool], tight: list[bool]) -> bool:
    """True where a blank stands between token i and the next."""
    left, right = tokens[i], tokens[i + 1]
    if left.type in OPENERS or right.type in CLOSERS or right.type == "COMMA":
        return False
    if right.type == "COLON":
        return left.type == "COMMA"
    if left.type in ("DOT", "RANGE") or right.type in ("DOT", "RANGE"):
        return left.type == "NUMBER" and right.type == "DOT"  # `12.T` is no number
    if left.type == "COLON":
        return i == label_end(tokens)
    if right.type in OPENERS and ends[i] and left.type != "ALGORITHM":
        return False
    if left.type == "MINUS" and not (i and ends[i - 1]):
        return False
    if right.type == "PERCENT" and i + 2 < len(tokens) and tokens[i + 2].type == "OF":
        return False
    if left.type in BINARY:
        return not tight[i]
    if right.type in BINARY and ends[i]:
        return not tight[i + 1]
    return True
