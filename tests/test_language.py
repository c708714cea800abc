"""The language reference and the editor grammar say what the parser does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from oco.dsl.atoms import ATOMS
from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.dsl.fact_keys import FUNCTION_FACTS, MODEL_FACTS
from oco.dsl.load import parse
from oco.dsl.source import Source
from oco.dsl.text.editor import textmate
from oco.dsl.text.formatter import format_text
from oco.dsl.text.parser import parse_file
from oco.dsl.text.tokens import SYMBOLS, WORDS
from oco.dsl.text.words import CONTEXTUAL_WORDS, LATER_WORDS, STATEMENT_WORDS, SYNONYMS

ROOT = Path(__file__).parent.parent
REFERENCE = (ROOT / "grammar" / "language.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```oco\n(.*?)```", REFERENCE, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=[b.split("\n")[0] for b in BLOCKS])
def test_examples_of_the_reference_parse_and_are_laid_out(block: str) -> None:
    assert parse_file(Source("language.md", block))[1] == []
    assert format_text(block) == block


def test_the_first_example_is_a_model() -> None:
    model = parse(BLOCKS[0])
    assert [d.shape for d in model.decisions] == [(10,)]
    assert [c.label for c in model.constraints] == ["service"]


def _rows() -> list[tuple[str, ...]]:
    """The rows of all tables, `\\|` read as a bar."""
    lines = [line for line in REFERENCE.splitlines() if line.startswith("| `")]
    return [tuple(cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]) for line in lines]


def test_the_tables_of_the_reference_are_complete() -> None:
    wanted = {(f"`{a.name}`", a.doc) for a in ATOMS.values() if not a.operator and not a.name.startswith("_")}
    wanted |= {(f"`{d.signature}`", d.doc) for d in DOMAINS.values()}
    wanted |= {(f"`{d.signature}`", d.doc) for d in DISTRIBUTIONS.values()}
    facts = {(f"`{f.key}`", f.relation and f"`{f.relation}`", f.words) for f in (*FUNCTION_FACTS, *MODEL_FACTS)}
    operators = {
        row for row in _rows() if any(sign in row[0] for sign in ("..`", "..b", "a + b", "a * b", "`-a`", "**", ".T"))
    }
    assert set(_rows()) - operators == wanted | facts
    with_axis = [a.name for a in ATOMS.values() if "axis" in a.options and not a.name.startswith("_")]
    *first, last = (f"`{name}`" for name in with_axis)
    assert f"The functions {', '.join(first)} and {last} take the option `axis`." in " ".join(REFERENCE.split())


def test_the_reference_names_every_word() -> None:
    for word in (*STATEMENT_WORDS, *LATER_WORDS, *CONTEXTUAL_WORDS):
        assert re.search(rf"\b{word}\b", REFERENCE), word


def test_operators_have_the_precedence_of_their_atoms() -> None:
    """The grammar's order of operators is the atom table's, by which the printer sets brackets."""
    rows = [
        re.findall(r"a ?(\.\.|\*\*|\.T|[-+*/@%])|`(-)a`", row[0]) for row in _rows() if row[0].startswith(("`a", "`-a"))
    ]
    levels = [[binary or "unary" for binary, _ in row] for row in rows if row]
    signs = {a.operator if a.name != "minus" else "unary": a.precedence for a in ATOMS.values() if a.operator}
    assert [len({signs[s] for s in level}) for level in levels] == [1] * len(levels)
    assert [signs[level[0]] for level in levels] == sorted(set(signs.values()))


# Words and the editor grammar.


def test_words_are_in_one_list_each() -> None:
    words = [*STATEMENT_WORDS, *CONTEXTUAL_WORDS, *LATER_WORDS]
    assert len(words) == len(set(words))
    assert set(SYNONYMS.values()) <= set(STATEMENT_WORDS)
    assert not set(SYNONYMS) & set(STATEMENT_WORDS)


def test_the_grammar_declares_what_the_scanner_makes() -> None:
    grammar = (ROOT / "grammar" / "oco.lark").read_text(encoding="utf-8")
    declared = set(" ".join(re.findall(r"^%declare (.*)$", grammar, re.MULTILINE)).split())
    made = {"NAME", "NUMBER", "TEXT", "ALGORITHM", *SYMBOLS.values(), *WORDS.values()}
    refused = {"NE", "LESSTHAN", "MORETHAN", "CARET", *(WORDS[w] for w in LATER_WORDS)}
    assert declared == made - refused


def test_the_editor_grammar_is_in_step(golden: Callable[..., None]) -> None:
    golden(textmate(), ROOT / "grammar" / "oco.tmLanguage.json")


def _scopes(line: str) -> dict[str, str]:
    """What an editor colours in a line: at each place the earliest match, then the first pattern."""
    patterns = [(p["name"], re.compile(p["match"])) for p in json.loads(textmate())["patterns"]]
    found: dict[str, str] = {}
    position = 0
    while position < len(line):
        matches = [
            (m.start(), i, m) for i, (_, p) in enumerate(patterns) if (m := p.search(line, position)) and m.group()
        ]
        if not matches:
            break
        _, i, match = min(matches, key=lambda m: m[:2])
        found[match.group().strip()] = patterns[i][0].removesuffix(".oco")
        position = match.end()
    return found


@pytest.mark.parametrize("word", STATEMENT_WORDS)
def test_statement_words_are_coloured_where_they_begin_a_line(word: str) -> None:
    assert _scopes(f"{word} x")[word] == "keyword.control"
    assert word not in _scopes(f"x + {word}")


@pytest.mark.parametrize(
    ("line", "scopes"),
    [
        ("stream mean[3] in [-1, 1] iid mean = 2", {"in": "keyword.other", "iid": "keyword.other", "mean": "keyword.other"}),
        ("    cap: x <= 1e-3  each round", {"cap": "entity.name.function.constraint", "each round": "keyword.other"}),
        ("    cap: x <= 1e-3  # c", {"1e-3": "constant.numeric", "# c": "comment.line.number-sign"}),
        ('param z in 0..4 = file("a.csv")', {"0": "constant.numeric", "..": "keyword.operator"}),
        ('param z = file("a.csv")', {"file": "support.function", '"a.csv"': "string.quoted.double"}),
        ("minimize mean(x2) + prev", {"mean": "support.function", "prev": "invalid.illegal"}),
        ("measure dynamic regret", {"dynamic regret": "keyword.other"}),
        ("feedback bandit", {"bandit": "keyword.other"}),
        ("horizon T unknown", {"T": "keyword.other", "unknown": "keyword.other"}),
        ("subject to", {"to": "keyword.other"}),
        ("using ogd with eta = 1", {"with": "keyword.other"}),
        ("    cap: x <= 1  on average", {"on average": "keyword.other"}),
    ],
)  # fmt: skip
def test_words_are_coloured_in_their_place(line: str, scopes: dict[str, str]) -> None:
    found = _scopes(line)
    assert {text: found.get(text) for text in scopes} == scopes


def test_every_word_is_coloured_somewhere() -> None:
    words = set(re.findall(r"[A-Za-z_]+", " ".join(p["match"] for p in json.loads(textmate())["patterns"])))
    assert {*STATEMENT_WORDS, *CONTEXTUAL_WORDS, *LATER_WORDS} <= words
