"""Colours of model files, made from the words of the language: scopes with their patterns for editors (`grammar/oco.tmLanguage.json`),
for Pygments (highlighting.py), Vim and CodeMirror, and lists of the words for the grammar of tree-sitter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from oco.dsl.text.words import CONTEXTUAL_WORDS, LATER_WORDS, STATEMENT_WORDS

PLACED_WORDS = ("in", "iid", "rounded", "start", "unknown", "with")
"""Contextual words that are coloured wherever they stand apart; the others in the phrases below."""

PHRASES = (
    r"\b(each)\s+(round)\b",
    r"\b(on)\s+(average)\b",
    r"\s+(in)\s+(total)\b",
    r"\s+(in)\s+[0-9.]+%\s+(of)\s+(rounds)\b",
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
        ("constant.numeric", r"(?:(?<![\w.])|(?<=\.\.))([0-9]+(\.(?!\.)[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"),
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


def words_json() -> str:
    """Words by kind as JSON, which the grammar of tree-sitter reads."""
    kinds = {"statements": STATEMENT_WORDS, "contextual": CONTEXTUAL_WORDS, "later": LATER_WORDS}
    return json.dumps({kind: sorted(words) for kind, words in kinds.items()}, indent=2) + "\n"


def words_header() -> str:
    """Words of statements as an array of C, which the scanner of tree-sitter includes."""
    rows = "".join(f'    "{word}",\n' for word in sorted(STATEMENT_WORDS))
    return f"// {ORIGIN}\nstatic const char *const STATEMENT_WORDS[] = {{\n{rows}}};\n"


ORIGIN = "Written by oco.dsl.text.editor from the words of the language."
VIM_GROUPS = {
    "comment.line.number-sign": "Comment",
    "string.quoted.double": "String",
    "keyword.control": "Statement",
    "invalid.illegal": "Error",
    "keyword.other": "Keyword",
    "entity.name.function.constraint": "Label",
    "constant.numeric": "Number",
    "support.function": "Function",
    "keyword.operator": "Operator",
}
"""Highlight group of Vim for each scope."""


def vim() -> str:
    """Syntax file of Vim and Neovim. Of two matches at one place Vim takes the one that is defined last."""
    matches = [f"syntax match oco{VIM_GROUPS[scope]} ;\\v{_very_magic(pattern)};" for scope, pattern in scopes()]
    links = [f"highlight default link oco{group} {group}" for group in VIM_GROUPS.values()]
    head = [f'" {ORIGIN}', 'if exists("b:current_syntax")', "  finish", "endif"]
    return "\n".join([*head, *reversed(matches), *links, 'let b:current_syntax = "oco"']) + "\n"


_PART = re.compile(r"\(\?<?[:=!]|\[(?:\\.|[^\]])*\]|\\.|.")
_AFTER = {"(": ")", "(?:": ")", "(?=": ")@=", "(?!": ")@!", "(?<=": ")@<=", "(?<!": ")@<!"}
"""End of each kind of group in Vim."""


def _very_magic(pattern: str) -> str:
    """Regular expression of Python in the very magic syntax of Vim, for what the scopes use of it."""
    parts, ends = [], []
    for part in _PART.findall(pattern):
        if part in _AFTER:
            ends.append(_AFTER[part])
            parts.append("%(" if part == "(?:" else "(")
        elif part == ")":
            parts.append(ends.pop())
        elif part == r"\b":
            parts.append("%(<|>)")
        elif part[0] == "[":
            parts.append(part.replace(r"\w", "A-Za-z0-9_"))
        else:
            parts.append(f"\\{part}" if part in "=~@<>%&" else part)
    return "".join(parts)


CODEMIRROR_STYLES = {
    "comment.line.number-sign": "comment",
    "string.quoted.double": "string",
    "keyword.control": "keyword",
    "invalid.illegal": "invalid",
    "keyword.other": "modifier",
    "entity.name.function.constraint": "labelName",
    "constant.numeric": "number",
    "support.function": "variableName.function",
    "keyword.operator": "operator",
}
"""Style of CodeMirror 6 for each scope."""

_STREAM_PARSER = """
/** Stream parser: each part of a line takes the style of the first pattern that matches there. `%%oco` is a style of its own. */
export const oco = {
  name: "oco",
  languageData: { commentTokens: { line: "#" } },
  token(stream) {
    for (const [style, pattern] of PATTERNS) {
      pattern.lastIndex = stream.pos;
      const match = pattern.exec(stream.string);
      if (match !== null && match[0].length > 0) {
        stream.pos += match[0].length;
        return style;
      }
    }
    return null;
  },
};
"""


def codemirror() -> str:
    """Module of JavaScript with the stream parser of model files and of `%%oco` cells, for CodeMirror 6 and 5."""
    patterns = [
        ("meta", r"^%%oco.*$"),
        *((CODEMIRROR_STYLES[scope], pattern) for scope, pattern in scopes()),
        ("", r"[A-Za-z][A-Za-z0-9_]*|\s+|."),
    ]
    rows = "".join(f"  [{json.dumps(style) if style else 'null'}, /{_slashes(p)}/y],\n" for style, p in patterns)
    return f"// {ORIGIN}\nconst PATTERNS = [\n{rows}];\n{_STREAM_PARSER}"


def _slashes(pattern: str) -> str:
    """Pattern within the slashes of JavaScript."""
    return pattern.replace("/", r"\/")


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words))
