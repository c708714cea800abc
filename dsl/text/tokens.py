"""Scanner: text to tokens, comments and line ends included. It reports a mistake and continues."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from oco.dsl.diagnostics import Diagnostic
from oco.dsl.source import Source, Span
from oco.dsl.text.words import CONTEXTUAL_WORDS, LATER_WORDS, STATEMENT_WORDS

SYMBOLS: dict[str, str] = {
    "..": "RANGE",
    "**": "POWER",
    "<=": "LE",
    ">=": "GE",
    "==": "EQ",
    "!=": "NE",
    "(": "LPAR",
    ")": "RPAR",
    "[": "LSQB",
    "]": "RSQB",
    "{": "LBRACE",
    "}": "RBRACE",
    ",": "COMMA",
    ":": "COLON",
    "=": "EQUAL",
    "~": "TILDE",
    "+": "PLUS",
    "-": "MINUS",
    "*": "STAR",
    "/": "SLASH",
    "@": "AT",
    "%": "PERCENT",
    ".": "DOT",
    "<": "LESSTHAN",
    ">": "MORETHAN",
    "^": "CARET",
}
"""Terminals of `oco.lark` that are signs. Those that no rule uses are scanned so that the message can name the right sign."""

WORDS: dict[str, str] = {w: w.upper() for w in (*STATEMENT_WORDS, *CONTEXTUAL_WORDS, *LATER_WORDS)}
"""The terminals that are words."""

STATEMENT_KINDS = frozenset(WORDS[w] for w in STATEMENT_WORDS)
LATER_KINDS = frozenset(WORDS[w] for w in LATER_WORDS)
NAME_KINDS = frozenset({"NAME", *(WORDS[w] for w in CONTEXTUAL_WORDS)})
"""The kinds of token that can be a name."""

CLOSER = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
INT64_MAX = 2**63 - 1  # integers of the step IR have 64 bits

_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+|\r(?=\n))
      | (?P<newline>\n)
      | (?P<comment>\#[^\n]*)
      | (?P<name>[A-Za-z][A-Za-z0-9_]*)
      | (?P<number>(?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<symbol>\.\.|\*\*|<=|>=|==|!=|[()\[\]{},:=~+\-*/@%.<>^])
      | (?P<text>"[^"\n]*")""",
    re.VERBOSE,
)
_ALGORITHM = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*")
_NUMBER_TAIL = re.compile(r"[A-Za-z0-9_]+(?:\.(?!\.)[A-Za-z0-9_]+)*|\.(?!\.)[0-9][A-Za-z0-9_.]*")
_WRONG_NAME = re.compile(r"\w+")


class Token(NamedTuple):
    """Token; `type` is a terminal of the grammar, or COMMENT, NEWLINE, BAD. Positions are character offsets."""

    type: str
    text: str
    start: int
    end: int
    source: Source

    @property
    def span(self) -> Span:
        """Span of the token."""
        return Span(self.source, self.start, self.end)


class Scan(NamedTuple):
    """Tokens, and the problem of each BAD one by its offset."""

    tokens: list[Token]
    problems: dict[int, Diagnostic]


def scan(source: Source) -> Scan:
    """Scan all tokens of a text: COMMENT and NEWLINE too, blanks not."""
    text = source.text
    tokens: list[Token] = []
    problems: dict[int, Diagnostic] = {}
    position = 1 if text.startswith("\ufeff") else 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            token = Token("BAD", *_bad(text, position), source)
            if tokens and tokens[-1].end == position and tokens[-1].type in NAME_KINDS and token.text[0].isalpha():
                first = tokens.pop()  # `größe` is one word
                token = token._replace(text=first.text + token.text, start=first.start)
            problems[token.start] = _explain_character(token)
        elif match.lastgroup == "blank":
            position = match.end()
            continue
        else:
            token = _token(match, tokens, source)
            if token.type == "BAD":
                problems[token.start] = _explain_number(token)
        tokens.append(token)
        position = token.end
    return Scan(tokens, problems)


def _token(match: re.Match[str], before: list[Token], source: Source) -> Token:
    kind, text, (start, end) = match.lastgroup, match.group(), match.span()
    if kind == "name":
        after_using = before and before[-1].type == "USING" and text not in STATEMENT_WORDS and text != "with"
        if after_using and (longer := _ALGORITHM.match(source.text, start)):
            return Token("ALGORITHM", longer.group(), start, longer.end(), source)
        called = text in LATER_WORDS and source.text[end:].lstrip(" \t").startswith("(")
        return Token("NAME" if called else WORDS.get(text, "NAME"), text, start, end, source)
    if kind == "symbol":
        return Token(SYMBOLS[text], text, start, end, source)
    if kind == "number":
        tail = _NUMBER_TAIL.match(source.text, end)
        if tail is not None:
            end = tail.end()
        bad = tail is not None or number_value(text) is None
        return Token("BAD" if bad else "NUMBER", source.text[start:end], start, end, source)
    return Token({"newline": "NEWLINE", "comment": "COMMENT", "text": "TEXT"}[kind or ""], text, start, end, source)


def is_name(text: str) -> bool:
    """True where a text has the form of a name."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", text) is not None


def number_value(text: str) -> int | float | None:
    """Value of a number as written; None where it is too large, or too small to distinguish from zero."""
    if text.isdigit():
        digits = text.lstrip("0")
        value = int(digits or "0") if len(digits) < 20 else INT64_MAX + 1
        return value if value <= INT64_MAX else None
    real = float(text)
    lost = real == 0.0 and any(c in "123456789" for c in re.split("[eE]", text)[0])
    return None if lost or real == float("inf") else real


def _bad(text: str, position: int) -> tuple[str, int, int]:
    """Part that is no token: an unclosed string, a word in other letters, or one character."""
    end = position + 1
    if text[position] == "'" and position and (text[position - 1].isalnum() or text[position - 1] in ")]"):
        return "'", position, end
    if text[position] in "\"'“”‘’„«":
        closers = {"“": "”", "‘": "’", "„": "“", "«": "»"}.get(text[position], text[position])
        stop = text.find("\n", position)
        stop = len(text) if stop < 0 else stop
        close = text.find(closers, position + 1, stop)
        end = close + 1 if close > 0 else len(text[position:stop].split("#")[0].rstrip()) + position
    elif word := _WRONG_NAME.match(text, position):
        end = word.end()
    return text[position:end], position, end


CHARACTER_HINTS: dict[str, str] = {
    "≤": "write `<=`",
    "≥": "write `>=`",
    "≠": "constraints are `<=`, `>=` or `==`",
    "−": "this is not the minus sign of the keyboard: write `-`",
    "–": "this is not the minus sign of the keyboard: write `-`",
    "—": "this is not the minus sign of the keyboard: write `-`",
    "×": "write `*`",
    "·": "write `*`",
    "÷": "write `/`",
    "∈": "write `in`",
    "…": "write `..`",
    "²": "write `** 2`",
    "³": "write `** 3`",
    "∑": "write `sum(...)`",
    "∞": "bounds are finite numbers",
    "&": "one constraint stands on a line; there is no `and`",
    "|": "write `abs(x)` for an absolute value, `norm2(x)` for a norm",
    ";": "a statement ends at the end of its line",
    "'": "write `.T` for the transpose, and double quotes round a file's name",
    "$": "units stand in a comment: `# $/MWh`",
    "\\": "a statement goes on over a line end inside ( ) or [ ] only",
    "!": "a comment starts with `#`",
    "?": "a comment starts with `#`",
    "`": "names stand without quotes",
    "_": "a name begins with a letter",
}


def _stranger(text: str) -> str:
    """Name of the first letter of another alphabet: some look like Latin ones."""
    others = ((c, unicodedata.name(c, "")) for c in text if not c.isascii() and c.isalpha())
    return next((f": it holds {name.lower()} (U+{ord(c):04X})" for c, name in others if name[:5] != "LATIN"), "")


def _explain_character(token: Token) -> Diagnostic:
    first, span = token.text[0], token.span
    if first == '"':
        return Diagnostic("OCO104", "this string is never closed", span, 'end it with `"` on the same line')
    if len(token.text) > 1 and first in "'“‘„«":
        return Diagnostic(
            "OCO101", f"`{first}` is not a quote of the language", span, 'write straight double quotes: `"`'
        )
    if len(token.text) > 1 or first.isalpha():
        return Diagnostic(
            "OCO101",
            f"`{_short(token.text)}` is not a name{_stranger(token.text)}",
            span,
            "names are made of a to z, A to Z, digits and `_`, and begin with a letter",
        )
    if first in "“”‘’„«»":
        return Diagnostic(
            "OCO101", f"`{first}` is not a quote of the language", span, 'write straight double quotes: `"`'
        )
    if first.isspace():
        return Diagnostic(
            "OCO101", f"the blank character U+{ord(first):04X} does not belong here", span, "write an ordinary space"
        )
    if not first.isprintable():
        return Diagnostic(
            "OCO101",
            f"the invisible character U+{ord(first):04X} does not belong here",
            span,
            "delete it; models are plain text",
        )
    return Diagnostic("OCO101", f"`{first}` means nothing here", span, CHARACTER_HINTS.get(first, ""))


def _explain_number(token: Token) -> Diagnostic:
    text, span = token.text, token.span
    if re.fullmatch(r"[0-9.]+(?:[eE][+-]?[0-9]+)?", text) and text.count(".") < 2:
        size = "too small to tell from zero" if number_is_tiny(text) else "too large"
        hint = f"integers go up to {INT64_MAX}" if text.isdigit() else "numbers lie between 1e-300 and 1e300 in size"
        return Diagnostic("OCO103", f"the number `{_short(text)}` is {size}", span, hint)
    if text.replace("_", "").isdigit():
        return Diagnostic("OCO102", f"`{_short(text)}` is not a number", span, f"write {_short(text.replace('_', ''))}")
    head = re.match(r"[0-9]*\.?[0-9]+", text)
    tail = text[head.end() :] if head else ""
    if head and re.fullmatch("[A-Za-z][A-Za-z0-9_]*", tail) and not re.fullmatch("[eE]|[xXbBoO][0-9a-fA-F]+", tail):
        return Diagnostic(
            "OCO102",
            f"`{_short(text)}` is not a number",
            span,
            f"a product is written with `*`: {_short(head.group())} * {_short(tail)}",
        )
    return Diagnostic("OCO102", f"`{_short(text)}` is not a number", span, "numbers look like 12, 0.5 and 1e-3")


def number_is_tiny(text: str) -> bool:
    """True where a written number rounds to zero without being an integer."""
    return not text.isdigit() and float(text) == 0.0


def _short(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:20]}..."


def label_end(tokens: Sequence[Token]) -> int:
    """Place of the colon behind the label of a constraint, `cap:`, or of a family, `cap[z in zone]:`; -1 where there is none."""
    kinds = [t.type for t in tokens[:7]]
    if len(kinds) < 2 or kinds[0] not in NAME_KINDS:
        return -1
    if kinds[1] == "COLON":
        return 1
    return 6 if len(kinds) == 7 and kinds[1::2] == ["LSQB", "IN", "RSQB"] and kinds[6] == "COLON" else -1
