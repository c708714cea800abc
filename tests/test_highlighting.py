"""Pygments colours model files as editors do."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.token import Comment, Error, Keyword, Name, Number, Operator

from oco.dsl.text.editor import scopes
from oco.dsl.text.highlighting import TOKENS, OcoLexer
from oco.dsl.text.words import STATEMENT_WORDS

ROOT = Path(__file__).parent.parent
MODELS = sorted(ROOT.glob("examples/*.oco"))


def coloured(text: str) -> list[tuple[object, str]]:
    """Tokens without blanks."""
    return [(kind, value.strip()) for kind, value in OcoLexer().get_tokens(text) if value.strip()]


@pytest.mark.parametrize("path", MODELS, ids=[path.stem for path in MODELS])
def test_examples_have_no_token_in_error_and_lose_no_letter(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tokens = list(OcoLexer(stripnl=False, ensurenl=False).get_tokens(text))
    assert "".join(value for _, value in tokens) == text
    assert not [value for kind, value in tokens if kind is Error]
    begun = {line.split()[0] for line in text.splitlines() if line and line.split()[0] in STATEMENT_WORDS}
    assert begun == {value.strip() for kind, value in tokens if kind is Keyword}


def test_words_are_coloured_by_their_place() -> None:
    line = "stream mean[3] in [-1, 1] iid mean = 2  # mean"
    assert coloured(line) == [
        (Keyword, "stream"),
        (Name, "mean"),
        *coloured("[3]"),
        (Keyword.Type, "in"),
        *coloured("[-1, 1]"),
        (Keyword.Type, "iid"),
        (Keyword.Type, "mean"),
        (Operator, "="),
        (Number, "2"),
        (Comment.Single, "# mean"),
    ]
    assert (Name.Function, "sum") in coloured("minimize sum(x)")
    assert (Name.Label, "cap") in coloured("subject to\n    cap: x <= 1  each round")
    assert (Error, "prev") in coloured("minimize prev + 1")


def test_every_scope_of_the_editors_has_a_token() -> None:
    assert {scope for scope, _ in scopes()} == set(TOKENS)


def test_pygments_knows_where_the_lexer_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, name = project["entry-points"]["pygments.lexers"]["oco"].split(":")
    assert getattr(import_module(module), name) is OcoLexer


def test_pages_are_coloured() -> None:
    page = highlight("horizon T = 10\n", OcoLexer(), HtmlFormatter())
    assert re.search(r'<span class="k">horizon</span>', page)
