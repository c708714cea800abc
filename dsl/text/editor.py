"""Colours of model files, made from the words of the language: scopes with their patterns for editors (`grammar/oco.tmLanguage.json`)
and for Pygments (highlighting.py).
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


def scopes() -> tuple[tuple[str, str], ...]:
    """TextMate scopes without the suffix `.oco`, each with its regular expression; the first that matches counts."""
    return (
        ("comment.line.number-sign", r"#.*$"),
        ("string.quoted.double", r'"[^"\n]*"'),
        ("keyword.control", rf"^\s*({_any(STATEMENT_WORDS)})\b"),
        ("invalid.illegal", rf"\b({_any(LATER_WORDS)})\b(?!\s*\()"),
        *(("keyword.other", phrase) for phrase in PHRASES),
        ("entity.name.function.constraint", r"^\s+([A-Za-z][A-Za-z0-9_]*)(?=\s*:)"),
        ("keyword.other", rf"(?<=[\w\])])\s+({_any(PLACED_WORDS)})(?=\s|$)"),
        ("constant.numeric", r"(?<![\w.])([0-9]+(\.(?!\.)[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"),
        ("support.function", r"\b[A-Za-z][A-Za-z0-9_]*(?=\()"),
        ("keyword.operator", r"\.\.|\*\*|<=|>=|==|[-+*/@~=]|\.T\b"),
    )


def textmate() -> str:
    """TextMate grammar as JSON."""
    grammar = {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "oco",
        "scopeName": "source.oco",
        "fileTypes": ["oco"],
        "patterns": [{"name": f"{scope}.oco", "match": pattern} for scope, pattern in scopes()],
    }
    return json.dumps(grammar, indent=2) + "\n"


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words))
