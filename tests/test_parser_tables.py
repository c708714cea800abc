"""The parser's tables and its machine against Lark, which makes the first and is itself a machine for them."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from lark import Lark
from lark import Token as LarkToken
from lark.exceptions import UnexpectedToken
from thorough import thorough

from oco.dsl.diagnostics import OcoError
from oco.dsl.source import Source
from oco.dsl.text.lines import split
from oco.dsl.text.machine import END, Machine
from oco.dsl.text.tables import STARTS, built, from_json, grammar, tables, to_json
from oco.dsl.text.tokens import Token, scan
from oco.dsl.text.tree import TreeBuilder

ROOT = Path(__file__).parent.parent
FILES = [*sorted((ROOT / "examples").glob("*.oco")), *sorted((ROOT / "tests" / "bad").glob("*.oco"))]


def test_the_shipped_tables_are_of_the_grammar() -> None:
    """After a change of the grammar: `make tables`."""
    text = grammar()
    assert (ROOT / "grammar" / "tables.json").read_text(encoding="utf-8") == to_json(built(text), text)


def test_tables_of_another_grammar_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = grammar().replace("horizon: HORIZON T EQUAL expr", "horizon: HORIZON EQUAL expr")
    monkeypatch.setattr("oco.dsl.text.tables.grammar", lambda: changed)
    found = tables.__wrapped__()
    assert found == built(changed) != from_json_of_shipped()


def from_json_of_shipped() -> Any:
    import json

    return from_json(json.loads((ROOT / "grammar" / "tables.json").read_text(encoding="utf-8")))


@cache
def lark() -> Lark:
    return Lark(
        grammar(),
        parser="lalr",
        lexer="basic",
        start=list(STARTS),
        keep_all_tokens=True,
        maybe_placeholders=True,
        transformer=TreeBuilder(),  # type: ignore[arg-type]
    )


def by_lark(tokens: list[Token], start: str) -> Any:
    """The tree; or how many tokens were read and what could have come then; or the complaint of the tree builder."""
    parser: Any = lark().parse_interactive(start=start)
    fed = 0
    try:
        for token in tokens:
            parser.feed_token(token)
            fed += 1
        return parser.feed_token(LarkToken("$END", ""))
    except UnexpectedToken:
        return fed, frozenset(parser.accepts())
    except OcoError as error:
        return str(error)


def by_machine(tokens: list[Token], start: str) -> Any:
    machine = Machine(tables(), TreeBuilder(), start)
    try:
        for fed, token in enumerate(tokens):
            if not machine.feed(token.type, token):
                return fed, machine.accepts()
        return machine.values[-1] if machine.feed(END, None) else (len(tokens), machine.accepts())
    except OcoError as error:
        return str(error)


@pytest.mark.parametrize("step", [3, thorough(1)])
def test_the_machine_reads_as_lark_does(step: int) -> None:
    """Statements of all examples and mistakes, whole, cut short, and with tokens left out, doubled and swapped."""
    rng = random.Random(0)
    files = FILES[::step]
    statements = [line.tokens for path in files for line in split(scan(Source("x", path.read_text(errors="replace"))))]
    read = refused = 0
    for tokens in statements:
        for trial in range(6):
            said = list(tokens)
            k = rng.randrange(len(said))
            said[k : k + trial // 2] = [said[k], rng.choice(tokens)] if trial % 2 else []
            for start in STARTS:
                expected = by_lark(said, start)
                assert by_machine(said, start) == expected, said
                read += not isinstance(expected, tuple | str)
                refused += isinstance(expected, tuple)
    assert read > 100 and refused > 1000
