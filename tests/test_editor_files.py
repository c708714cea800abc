"""Files for editors are made from the words of the language, and colour as Pygments does."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from oco.dsl.text.editor import CODEMIRROR_STYLES, codemirror, scopes, vim, words_header, words_json
from oco.dsl.text.highlighting import TOKENS, OcoLexer
from oco.dsl.text.words import CONTEXTUAL_WORDS, STATEMENT_WORDS

ROOT = Path(__file__).parent.parent
EDITORS = ROOT / "editors"
WRITTEN = {
    "tree-sitter-oco/words.json": words_json,
    "tree-sitter-oco/src/words.h": words_header,
    "vim/syntax/oco.vim": vim,
    "codemirror/oco.mjs": codemirror,
}
MODELS = sorted(ROOT.glob("examples/*.oco"))
node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")


@pytest.mark.parametrize("name", WRITTEN)
def test_files_of_editors_are_in_step(name: str, golden: Callable[..., None]) -> None:
    golden(WRITTEN[name](), EDITORS / name)


@pytest.mark.parametrize("name", ["tree-sitter-oco/package.json", "vscode/package.json"])
def test_versions_are_that_of_the_project(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert json.loads((EDITORS / name).read_text(encoding="utf-8"))["version"] == project["version"]


def test_queries_colour_every_word() -> None:
    query = (EDITORS / "tree-sitter-oco" / "queries" / "highlights.scm").read_text(encoding="utf-8")
    lists = {kind: re.findall(r'"(\w+)"', words) for words, kind in re.findall(r"\[([^]]*)\] @([\w.]+)", query)}
    assert lists["keyword"] == list(STATEMENT_WORDS)
    assert lists["keyword.modifier"] == list(CONTEXTUAL_WORDS)


STREAM = """
import { oco } from %s;
const coloured = [];
for (const string of %s) {
  for (const stream = { string, pos: 0 }; stream.pos < string.length; ) {
    const start = stream.pos;
    const style = oco.token(stream);
    coloured.push([style, string.slice(start, stream.pos)]);
  }
}
console.log(JSON.stringify(coloured));
"""


def coloured(lines: list[str]) -> list[tuple[str, str]]:
    """Parts of lines with their styles in CodeMirror, those without one left out."""
    script = STREAM % (json.dumps((EDITORS / "codemirror" / "oco.mjs").as_uri()), json.dumps(lines))
    command = ["node", "--input-type=module", "--eval", script]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return [(style, text) for style, text in json.loads(run.stdout) if style]


@node
def test_codemirror_colours_as_pygments_does() -> None:
    """Both try the same patterns at each place; CodeMirror sees a line at a time."""
    lines = [line for path in MODELS for line in path.read_text(encoding="utf-8").splitlines()]
    styles = {CODEMIRROR_STYLES[scope]: TOKENS[scope] for scope, _ in scopes()}
    shown = [(styles[style], text.strip()) for style, text in coloured(lines)]
    tokens = [(kind, value.strip()) for line in lines for kind, value in OcoLexer().get_tokens(line)]
    assert shown == [(kind, value) for kind, value in tokens if value and kind in TOKENS.values()]


@node
def test_the_line_of_a_magic_is_no_part_of_the_model() -> None:
    assert coloured(["%%oco m", "let a = 1"]) == [
        ("meta", "%%oco m"),
        ("keyword", "let"),
        ("operator", "="),
        ("number", "1"),
    ]
