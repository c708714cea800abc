"""TextMate grammar with which editors colour model files, made from the words of the language:
`grammar/oco.tmLanguage.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from oco.dsl.text.words import LATER_WORDS, STATEMENT_WORDS

PLACED_WORDS = ("in", "iid", "rounded", "start", "unknown", "with")
"""Contextual words that are coloured wherever they stand apart; the others in the phrases below."""

PHRASES = (
    r"\b(each)\s+(round)\b",
    r"\b(on)\s+(average)\b",
    r"\b(in)\s+(total)\b",
    r"\b(in)\s+[0-9.]+%\s+(of)\s+(rounds)\b",
    r"(?<=,)\s+(penalty)\b",
    r"\b(static|dynamic)\s+(regret)\b",
    r"(?<=iid)\s+(mean)\b",
    r"(?<=feedback)\s+(full|gradient|two_point|bandit)\b(?:\s+(delayed)\b)?",
    r"(?<=subject)\s+(to)\b",
    r"(?<=horizon)\s+(T)\b",
)


def textmate() -> str:
    """TextMate grammar as JSON."""
    grammar = {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "oco",
        "scopeName": "source.oco",
        "fileTypes": ["oco"],
        "patterns": [
            _rule("comment.line.number-sign.oco", r"#.*$"),
            _rule("string.quoted.double.oco", r'"[^"\n]*"'),
            _rule("keyword.control.oco", rf"^\s*({_any(STATEMENT_WORDS)})\b"),
            _rule("invalid.illegal.oco", rf"\b({_any(LATER_WORDS)})\b(?!\s*\()"),
            *(_rule("keyword.other.oco", phrase) for phrase in PHRASES),
            _rule("entity.name.function.constraint.oco", r"^\s+([A-Za-z][A-Za-z0-9_]*)(?=\s*:)"),
            _rule("keyword.other.oco", rf"(?<=[\w\])])\s+({_any(PLACED_WORDS)})(?=\s|$)"),
            _rule("constant.numeric.oco", r"(?<![\w.])([0-9]+(\.(?!\.)[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"),
            _rule("support.function.oco", r"\b[A-Za-z][A-Za-z0-9_]*(?=\()"),
            _rule("keyword.operator.oco", r"\.\.|\*\*|<=|>=|==|[-+*/@~=]|\.T\b"),
        ],
    }
    return json.dumps(grammar, indent=2) + "\n"


def _rule(scope: str, match: str) -> dict[str, str]:
    return {"name": scope, "match": match}


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words))
