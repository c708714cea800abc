"""Lexer of Pygments for model files, so that Sphinx, MkDocs, Jupyter and IPython colour `.oco`; pyproject.toml names it to Pygments."""

from __future__ import annotations

import re
from typing import ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, String, Text, Whitespace

from oco.dsl.text.editor import scopes

TOKENS = {
    "comment.line.number-sign": Comment.Single,
    "string.quoted.double": String,
    "keyword.control": Keyword,
    "invalid.illegal": Error,
    "keyword.other": Keyword.Type,
    "entity.name.function.constraint": Name.Label,
    "constant.numeric": Number,
    "support.function": Name.Function,
    "keyword.operator": Operator,
}
"""Token type of each scope."""


class OcoLexer(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """Colours of the TextMate grammar, as tokens of Pygments."""

    name = "oco"
    aliases = ("oco",)
    filenames = ("*.oco",)
    mimetypes = ("text/x-oco",)
    url = "https://oco.example/docs"
    version_added = ""
    flags = re.MULTILINE
    tokens: ClassVar = {
        "root": [
            *((pattern, TOKENS[scope]) for scope, pattern in scopes()),
            (r"\n|[^\S\n]+", Whitespace),
            (r"[A-Za-z][A-Za-z0-9_]*", Name),
            (r"[()\[\]{},:.%<>]", Punctuation),
            (r".", Text),
        ]
    }
