"""HTML of a model for a notebook: its text, with the words of the language set off. Needs no script and no style sheet."""

from __future__ import annotations

import re
from html import escape

from oco.dsl.statements import Statements
from oco.dsl.text.printer import print_model
from oco.dsl.text.words import STATEMENT_WORDS, shown

WORDS = "|".join((*map(shown, STATEMENT_WORDS), "each round", "on average", "in", "iid"))
_KEYWORD = re.compile(
    rf"(?m)^(\s*)({WORDS})\b|\b(each round|on average|in total|iid|in [0-9.]+% of rounds)$"
    r"|\b(each round|on average)(?=,)|(?<=, )(penalty)\b"
)
CODE = re.compile(r"`([^`]*)`")
"""Text in backticks."""
LONGEST_LINE = 400  # data written into the model is cut off on the screen


def model_html(model: Statements) -> str:
    """HTML of the model's canonical text."""
    lines = [
        line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + " ..." for line in print_model(model).splitlines()
    ]
    text = _KEYWORD.sub(lambda m: f"{m[1] or ''}<b>{m[2] or m[3]}</b>", escape("\n".join(lines), quote=False))
    return f'<pre style="line-height:1.4;padding:8px 12px;border-left:3px solid currentColor">{text}</pre>'


def marked(text: str) -> str:
    """HTML of a sentence: escaped, with text in backticks as code."""
    return CODE.sub(r"<code>\1</code>", escape(text))
