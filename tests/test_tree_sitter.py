"""The grammar of tree-sitter accepts the texts that the parser reads, and no others."""

from __future__ import annotations

import ctypes
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from fuzz.generate import generated
from fuzz.grammar import corpus, mutated, sentence
from thorough import corners

from oco.dsl.source import Source
from oco.dsl.text.parser import parse_file
from oco.dsl.text.words import STATEMENT_WORDS

tree_sitter = pytest.importorskip("tree_sitter", reason="the package tree-sitter is not installed")
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler is installed")

ROOT = Path(__file__).parent.parent
GRAMMAR = ROOT / "editors" / "tree-sitter-oco"
EXAMPLES = sorted(ROOT.glob("examples/*.oco"))
BEYOND = {"OCO107", "OCO124", "OCO129"}
"""Codes of mistakes that no context-free grammar knows: limits of depth and length, and names given twice."""
GENERATED = 2000


@pytest.fixture(scope="module")
def language(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Language of the compiled grammar."""
    library, source = tmp_path_factory.mktemp("grammar") / "oco.so", GRAMMAR / "src"
    files = [str(source / name) for name in ("parser.c", "scanner.c")]
    command = [COMPILER, "-std=c11", "-O0", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Wno-unused"]
    subprocess.run([*command, "-I", str(source), *files, "-o", str(library)], check=True, timeout=60)
    make = ctypes.CDLL(str(library)).tree_sitter_oco
    make.restype = ctypes.c_void_p
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return tree_sitter.Language(capsule(make(), b"tree_sitter.Language", None))


@pytest.fixture(scope="module")
def tree(language: Any) -> Callable[[str], Any]:
    """Function from a text to the root of its tree."""
    parser = tree_sitter.Parser(language)
    return lambda text: parser.parse(text.encode("utf-8")).root_node


def disagreements(tree: Callable[[str], Any], texts: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Texts that one accepts and the other refuses, with the codes of the parser, but for those with mistakes beyond a grammar alone."""
    wrong = []
    for text in texts:
        codes = [mistake.code for mistake in parse_file(Source("text.oco", text))[1]]
        if tree(text).has_error != bool(codes) and not (codes and BEYOND.issuperset(codes)):
            wrong.append((text, codes))
    return wrong


def test_written_models_and_mistakes(tree: Callable[[str], Any]) -> None:
    reference = (ROOT / "grammar" / "language.md").read_text(encoding="utf-8")
    folders = ("examples", "benchmarks", "tests/bad")
    written = [path.read_text(encoding="utf-8") for folder in folders for path in (ROOT / folder).rglob("*.oco")]
    assert disagreements(tree, [*written, *re.findall(r"```oco\n(.*?)```", reference, re.DOTALL)]) == []


def test_generated_texts(tree: Callable[[str], Any]) -> None:
    rng, known = random.Random(0), corpus()
    makers = (sentence, lambda rng: mutated(rng, known))
    texts = [makers[k % 2](rng) for k in range(GENERATED)]
    accepted = sum(not tree(text).has_error for text in texts)
    assert GENERATED / 4 < accepted < GENERATED * 3 / 4
    assert disagreements(tree, texts) == []


@pytest.mark.parametrize("seed", corners(range(50), {0, 1}))
def test_generated_models(tree: Callable[[str], Any], seed: int) -> None:
    text = generated(seed).text
    assert not tree(text).has_error and disagreements(tree, [text]) == []


NUMBERS = (
    "1. .5 0.5 1e3 1.e-3 007 0 1e308 1.7976931348623157e308 1.7976931348623158e308 1.7976931348623159e308 1e309 1e-323 2e-324 3e-324 0e999 "
    "9223372036854775807 9223372036854775808 00009223372036854775807 99999999999999999999 1e 1e+ 2x 1_000 0x1 1.5.2 1.x 1..2 1...5 .5.T "
    "1e99999999999999999999 0.00000000001e-320 100000000000000000000e290"
)


@pytest.mark.parametrize("number", NUMBERS.split())
def test_numbers(tree: Callable[[str], Any], number: str) -> None:
    assert disagreements(tree, [f"let a = {number}\n", f"let a = x[{number}]", f"let a = 2 * {number} + 1"]) == []


LINES = """\
let a = (1 +
   2)  # on two lines\r
let a = 1 +
let each = on.T @ round ** -in[T]
let let = 1
let models = 1
let a = prev(x)
let a = prev
param a in (zone)
param a in ([0, 1])
param a in (0)..3
param a in [0, 1, 2]
decision x in {1, 0} rounded
decision x in {0, 2}
stream s in {-1, -(2), 3} iid
stream s in {a}
index z = ["a b", (c), -1]
index z = [0.5]
index z = file("z.csv")
index z = read("z.csv")
let a = loss.convex
using with eta = constraints.g[0, 1].bound / sqrt(T)
using with eta = (a + b).c
using weibel-2026-x
using
a: x <= 1 <= 2
a: x <= 1 in 99% of rounds, penalty 3
a: f(x, axis = 0, 1) <= 1
""".splitlines()


@pytest.mark.parametrize("line", LINES)
def test_lines(tree: Callable[[str], Any], line: str) -> None:
    assert disagreements(tree, [line, f"\n  \n{line}\n\n# end", f"{line}\r\n{line}"]) == []


def test_an_open_bracket_leaves_the_statements_below_it(tree: Callable[[str], Any]) -> None:
    root = tree("model m\nlet a = sum(x\nlet b = (1\n  + 2)\nminimize b\n")
    assert root.has_error
    kinds = [child.type for child in root.children]
    assert kinds[-2:] == ["let_statement", "objective_statement"]


def test_queries_colour_the_words_of_statements(language: Any, tree: Callable[[str], Any]) -> None:
    query = tree_sitter.Query(language, (GRAMMAR / "queries" / "highlights.scm").read_text(encoding="utf-8"))
    for path in EXAMPLES:
        text = path.read_text(encoding="utf-8")
        captures = tree_sitter.QueryCursor(query).captures(tree(text))
        begun = [line.split()[0] for line in text.splitlines() if line and line.split()[0] in STATEMENT_WORDS]
        assert sorted(node.text.decode() for node in captures["keyword"]) == sorted(begun), path.name


def test_the_corpus_has_every_example(tree: Callable[[str], Any], golden: Callable[..., None]) -> None:
    """`tree-sitter test` compares the same trees."""
    parts = []
    for path in EXAMPLES:
        text, bar = path.read_text(encoding="utf-8"), "=" * 18
        root = tree(text)
        rows = "\n".join(f"  {child}" for child in root.children if child.is_named)
        parts.append(f"{bar}\n{path.stem}\n{bar}\n\n{text}\n---\n\n(source_file\n{rows})\n")
    golden("\n".join(parts), GRAMMAR / "test" / "corpus" / "examples.txt")
