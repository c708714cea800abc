"""Mistakes of syntax: the code, the exact place, the way out; one finding a mistake, and never anything but an OcoError."""

from __future__ import annotations

import itertools
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from thorough import thorough

from oco.dsl.codes import CODES, Stage
from oco.dsl.diagnostics import Diagnostic, OcoError
from oco.dsl.limits import DEEPEST, TEXT_LIMIT
from oco.dsl.load import parse
from oco.dsl.source import Source
from oco.dsl.suggest import nearest
from oco.dsl.text.formatter import format_text
from oco.dsl.text.parser import parse_file, parse_formula
from oco.dsl.text.syntax import UnreadableStatement
from oco.dsl.text.tokens import SYMBOLS, WORDS, scan

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.oco"))

HEAD = """model m
horizon T = 10
decision x[2] in box(0, 1)
minimize sum(x)
subject to
    cap: sum(x) <= 1
"""


def findings(text: str) -> list[Diagnostic]:
    return parse_file(Source("m.oco", text))[1]


def the_finding(text: str) -> Diagnostic:
    found = findings(text)
    assert len(found) == 1, [d.render() for d in found]
    return found[0]


# The text, the code, the part that the caret marks ("" the end of the line), words of the hint or message.
MISTAKES: list[tuple[str, str, str, str]] = [
    # characters
    ("minimize x − 1", "OCO101", "−", "write `-`"),
    ("cap: x ≤ 1", "OCO101", "≤", "`<=`"),
    ("minimize x²", "OCO101", "²", "`** 2`"),
    ("let λ = 1", "OCO101", "λ", "a to z"),
    ("let préis = 1", "OCO101", "préis", "a to z"),
    ("let _x = 1", "OCO101", "_x", "begin with a letter"),
    ("minimize x\u00a0+ 1", "OCO101", "\u00a0", "ordinary space"),
    ("minimize x\u200b + 1", "OCO101", "\u200b", "delete it"),
    ("minimize x\x00", "OCO101", "\x00", "U+0000"),
    ("minimize x;", "OCO101", ";", "end of its line"),
    ("minimize A' @ x", "OCO101", "'", "`.T`"),
    ("param a = file('a.csv')", "OCO101", "'a.csv'", "double quotes"),
    ("param a = file(“a.csv”)", "OCO101", "“a.csv”", "double quotes"),
    ("minimize x \\", "OCO101", "\\", "inside ( ) or [ ]"),
    # numbers and strings
    ("minimize 1.2.3 * x", "OCO102", "1.2.3", "0.5"),
    ("minimize 2x", "OCO102", "2x", "2 * x"),
    ("minimize 1_000", "OCO102", "1_000", "1000"),
    ("minimize 0x1F", "OCO102", "0x1F", "12"),
    ("minimize 1e", "OCO102", "1e", "1e-3"),
    ("minimize 1e999", "OCO103", "1e999", "too large"),
    ("minimize 1e-999", "OCO103", "1e-999", "too small"),
    ("minimize 9223372036854775808", "OCO103", "9223372036854775808", "9223372036854775807"),
    (f"minimize {'9' * 5000}", "OCO103", "9" * 5000, "too large"),
    ('param a = file("a.csv)  # c', "OCO104", '"a.csv)', "same line"),
    # brackets
    ("minimize sum(x", "OCO105", "(", "add `)`"),
    ("minimize sum(abs(x)", "OCO105", "(", "add `)`"),
    ("minimize sum(x[1)", "OCO105", "[", "add `]`"),
    ("minimize sum(x))", "OCO106", ")", "nothing opens"),
    ("minimize sum(x]", "OCO106", "]", "close it with `)`"),
    ("minimize []", "OCO127", "[]", "at least one"),
    ("minimize [1, 2,]", "OCO127", "]", "after the comma"),
    ("minimize f(, x)", "OCO127", ",", "before the comma"),
    ("minimize [1 2]", "OCO127", "2", "commas"),
    ("minimize x[0:4:2]", "OCO122", ":", "no step"),
    ("minimize (0:4)", "OCO100", ":", "expected"),
    # the beginning of a statement
    ("minimise x", "OCO108", "minimise", "`minimize`"),
    ("Minimize x", "OCO108", "Minimize", "`minimize`"),
    ("subjet to", "OCO108", "subjet", "`subject to`"),
    ("such that", "OCO108", "such", "`subject to`"),
    ("parameter n = 5", "OCO108", "parameter", "`param`"),
    ("variable x in box(0, 1)", "OCO108", "variable", "`decision`"),
    ("y = 2 * x", "OCO108", "y", "let y"),
    ("T = 50", "OCO108", "T", "horizon T"),
    ("frobnicate x", "OCO108", "frobnicate", "`model`"),
    ("x <= 1", "OCO109", "x", "`subject to`"),
    ("subject to\n    sum(x) <= 1", "OCO109", "sum", "cap: sum(x) <= 1"),
    ("subject to\n    limit x <= 1", "OCO109", "limit", "limit: ..."),
    ("subject to\n    2 * x <= 1", "OCO109", "2", "label"),
    ("subject to\n    : x <= 1", "OCO109", ":", "name before the colon"),
    ("max sum(x)", "OCO108", "max", "did you mean `maximize`?"),
    ("maximise sum(x)", "OCO108", "maximise", "did you mean `maximize`?"),
    ("prev c in [0, 1]", "OCO111", "prev", "previous decision"),
    ("minimize x - prev", "OCO111", "prev", "previous decision"),
    ("stream prev in [0, 1]", "OCO111", "prev", "previous decision"),
    ("model a horizon T = 5", "OCO128", "horizon", "line of its own"),
    ("minimize x subject to", "OCO128", "subject", "line of its own"),
    # declarations
    ("model", "OCO100", "", "a name"),
    ("model 5", "OCO100", "5", "a name"),
    ("model a b", "OCO100", "b", "end of the line"),
    ("horizon N = 5", "OCO100", "N", "horizon T = 5"),
    ("horizon 5000", "OCO100", "5000", "horizon T = 5000"),
    ("horizon T 5", "OCO100", "5", "`=`"),
    ("horizon T == 5", "OCO114", "==", "`=`"),
    ("param a 5", "OCO100", "5", "`=`"),
    ("param a [1, 2] [3]", "OCO119", "[", "`=`"),
    ("param a in box(0, 1)", "OCO120", "box(0, 1)", "in [0, 1]"),
    ("param a in [0, 1, 2]", "OCO120", "[0, 1, 2]", "greatest"),
    ("decision x[3] box(0, 1)", "OCO119", "box", "in box(0, 1)"),
    ("decision x", "OCO100", "", "`in`"),
    ("decision x in 0..9", "OCO120", "0..9", "`[0, 9]`"),
    ("decision x in [0, 1, 2]", "OCO120", "[0, 1, 2]", "an interval"),
    ("decision x in 2 * simplex", "OCO120", "2 * simplex", "domain"),
    ("decision x = 5", "OCO119", "=", "no value"),
    ("stream s = 5", "OCO119", "=", "`param`"),
    ("state s = s + x start 1", "OCO119", "start", "`in [0, 100] start 10`"),
    ("stream s[2] [0, 1]", "OCO119", "[", "`in`"),
    ("stream s from [0, 1]", "OCO119", "from", "`in [lo, hi]`"),
    ("stream s normal(0, 1)", "OCO119", "normal", "~ normal"),
    ("stream s ~ normal(0, 1) [-6, 6]", "OCO119", "[-6, 6]", "in [-6, 6]"),
    ("stream s ~ 5", "OCO120", "5", "uniform(0, 1)"),
    ("stream s in uniform(0, 1)", "OCO120", "uniform(0, 1)", "~ uniform(0, 1)"),
    ("stream s in [0, 1] in [0, 2]", "OCO124", "in [0, 2]", "keep one"),
    ("stream s iid ~ f(1) iid", "OCO124", "iid", "keep one"),
    ("stream s ~ pareto(mean = 8, 3)", "OCO125", "3", "first"),
    ("stream s ~ pareto(mean = 8, mean = 9)", "OCO124", "mean = 9", "keep one"),
    ("let y 5", "OCO100", "5", "`=`"),
    ("let y == 5", "OCO114", "==", "`=`"),
    ("let = 5", "OCO100", "=", "a name"),
    # expressions
    ("minimize", "OCO100", "", "an expression"),
    ("minimize x +", "OCO100", "", "an expression"),
    ("minimize * x", "OCO100", "*", "an expression"),
    ("minimize 2 x", "OCO100", "x", "2 * x"),
    ("minimize x (y)(z)", "OCO100", "(", "`*`"),
    ("minimize 2(x)", "OCO100", "(", "`*`"),
    ("minimize x + + y", "OCO100", "+", "leave the `+` out"),
    ("minimize x ^ 2", "OCO115", "^", "`**`"),
    ("minimize x *** 2", "OCO115", "*", "`**`"),
    ("minimize x.sum", "OCO121", "sum", "`.T`"),
    ("minimize x.t", "OCO121", "t", "`.T`"),
    ("minimize \u0445", "OCO101", "\u0445", "cyrillic small letter ha (U+0445)"),
    ("minimize x.bound", "OCO121", "bound", "`.T`"),
    ("minimize sum(x[i] for i in 0..3)", "OCO100", "for", "whole arrays"),
    ("minimize x if y", "OCO100", "if", "whole arrays"),
    ("minimize x <= 1", "OCO112", "<=", "subject to"),
    ("minimize x < 1", "OCO113", "<", "subject to"),
    ("let y = a == b", "OCO112", "==", "constraint"),
    # constraints
    ("cap: x < 1", "OCO113", "<", "`<=`"),
    ("cap: x > 1", "OCO113", ">", "`>=`"),
    ("cap: x != 1", "OCO113", "!=", "`==`"),
    ("cap: x = 1", "OCO114", "=", "`==`"),
    ("cap: 0 <= x <= 1", "OCO112", "<=", "two constraints"),
    ("cap: x - 1", "OCO118", "", "`<= 0`"),
    ("cap: x - 1  each round", "OCO118", "each", "`<= 0`"),
    ("cap: x <= 1  every round", "OCO117", "every round", "`each round`"),
    ("cap: x <= 1  in average", "OCO117", "in average", "`on average`"),
    ("cap: x <= 1  each", "OCO117", "each", "`each round`"),
    ("cap: x <= 1  always", "OCO117", "always", "`each round`"),
    ("cap: x <= 1  each time", "OCO117", "each time", "`each round`"),
    ("cap: x <= 1 y", "OCO100", "y", "1 * y"),
    ("cap: x <=", "OCO100", "", "an expression"),
    ("subject", "OCO100", "", "`to`"),
    ("subject to: ", "OCO100", ":", "end of the line"),
    ("subject to a: x <= 1", "OCO100", "a", "below `subject to`"),
    # wishes
    ("measure regret", "OCO123", "regret", "`measure static regret`"),
    ("measure dynamik regret", "OCO123", "dynamik", "`dynamic`"),
    ("measure dynamic", "OCO123", "", "`measure dynamic regret`"),
    ("feedback bandits", "OCO123", "bandits", "`bandit`"),
    ("feedback", "OCO123", "", "`feedback bandit`"),
    ("assume slater.margin >=", "OCO100", "", ""),
    ("assume slater.margin = 1", "OCO100", "=", "`<=`"),
    ("assume slater.margin == 1", "OCO114", "==", "`<=`"),
    ("assume 5 <= slater.margin", "OCO100", "5", "the name of a fact"),
    ("using", "OCO100", "using", "algorithm"),
    ("using coldq epsilon = 1", "OCO100", "epsilon", "`with`"),
    ("using coldq with epsilon", "OCO100", "", "`=`"),
    ("using coldq with V = 1, V = 2", "OCO124", "V = 2", "keep one"),
    ("using coldq with V = [1, 2", "OCO105", "[", "add `]`"),
]


@pytest.mark.parametrize(("text", "code", "part", "words"), MISTAKES, ids=[m[0][:60] for m in MISTAKES])
def test_mistakes_are_marked_and_explained(text: str, code: str, part: str, words: str) -> None:
    found = the_finding(text)
    assert found.code == code, found.render()
    assert found.span is not None and found.span.text == part, found.render()
    assert words in f"{found.message} {found.hint}", found.render()
    if part == "":
        assert found.span.start == len(text.rstrip())


@pytest.mark.parametrize("code", [c for c, row in CODES.items() if c.startswith("OCO1") and row.stage is Stage.PARSE])
def test_the_example_of_a_code_provokes_it_alone(code: str) -> None:
    assert the_finding(CODES[code].example).code == code


def test_every_syntax_code_that_is_used_is_explained() -> None:
    root = Path(__file__).parent.parent
    files = (
        root / "dsl/limits.py",
        root / "dsl/diagnostics.py",
        *(root / "dsl/text").glob("*.py"),
        root / "api/guarded.py",
    )
    used = {c for f in files for c in re.findall("OCO1[0-9]{2}", f.read_text())}
    assert used == {c for c in CODES if c.startswith("OCO1")}


# One finding a mistake.

INDEPENDENT = [m[0] for m in MISTAKES if "\n" not in m[0] and "(" not in m[0] and m[0] != "such that"]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_so_many_mistakes_so_many_findings(count: int) -> None:
    rng = random.Random(count)
    for _ in range(40):
        mistakes = rng.sample([t for t in INDEPENDENT if not _breaks_off(t)], count)
        text = "\n".join(itertools.chain.from_iterable((m, "let ok = 1") for m in mistakes))
        assert [d.span and d.span.line for d in findings(text)] == [2 * i + 1 for i in range(count)], text


def _breaks_off(text: str) -> bool:
    return text.startswith("cap") or text == ""


@pytest.mark.parametrize("follow", ["let y = 1", "subject to", "stream s in [0, 1]", "    cap: x <= 1", "model m"])
@pytest.mark.parametrize("broken", ["minimize sum(x", "minimize sum((x)", "param A = [[1, 2", "cap: f(A[0 <= 1"])
def test_an_unclosed_bracket_does_not_swallow_what_follows(broken: str, follow: str) -> None:
    if "[" in broken and follow == "    cap: x <= 1":
        follow = "cap: x[0:1] <= 1"
    file, found = parse_file(Source("m.oco", f"{broken}\n\n# comment (\n{follow}\nlet z = 2\n"))
    assert [d.code for d in found] == ["OCO105"]
    assert [isinstance(s, UnreadableStatement) for s in file.statements] == [True, False, False]


def test_a_slice_on_its_own_line_is_not_taken_for_a_label() -> None:
    assert findings("minimize x[\na:b\n]") == []


def test_a_line_that_was_broken_off_is_one_mistake() -> None:
    assert the_finding("minimize x +\n    y\nlet z = 1").span is not None
    assert the_finding("subject to\n    cap:\n    x <= 1  each round").code == "OCO100"
    with pytest.raises(OcoError) as caught:
        parse(HEAD + "stream\n    s in [0, 1]\nlet y = s\n")
    assert len(caught.value.errors) == 1


def test_what_follows_from_a_mistake_is_not_reported() -> None:
    for line in (
        "stream price[2 in [0, 1]",
        "param price[2] = [1, 2.3.4]",
        "strem price[2] in [0, 1",
        "let price = x *",
    ):
        text = HEAD.replace("minimize sum(x)", f"{line}\nminimize price @ x")
        with pytest.raises(OcoError) as caught:
            parse(text)
        assert len(caught.value.errors) == 1, str(caught.value)


def test_a_misspelt_statement_still_declares() -> None:
    """The statement is read as what it was meant to be, so mistakes elsewhere are found and none is made up."""
    with pytest.raises(OcoError) as caught:
        parse(HEAD + "strem s[3] in [0, 1]\nlet y = s @ x\n")
    assert [e.code[:4] for e in caught.value.errors] == ["OCO1", "OCO3"]


# Limits.


def test_nesting_is_bounded() -> None:
    for depth, fine in ((DEEPEST - 1, True), (DEEPEST + 1, False), (10**4, False)):
        for text in (
            "(" * depth + "x" + ")" * depth,
            "-" * depth + "x",
            "*".join("x" * (depth + 1)),
            "**".join("x" * depth),
        ):
            assert [d.code for d in findings(f"minimize {text}")] == ([] if fine else ["OCO107"])
    assert [d.code for d in findings(f"minimize {'(' * 10**5}")] == ["OCO107"]
    with pytest.raises(OcoError):
        parse_formula("-" * 10**4 + "t")


def test_deep_models_compare_and_print_without_a_recursion_error() -> None:
    text = HEAD.replace("sum(x)\n", f"{'exp(' * 150}sum(x){')' * 150}\n")
    assert parse(text) == parse(text)
    assert format_text(text) == text


def test_long_texts_are_refused() -> None:
    found = the_finding("#" * (TEXT_LIMIT + 1))
    assert found.code == "OCO129" and found.span is None


# Speed.


def test_models_are_read_without_lark() -> None:
    model = "model m\nhorizon T = 9\ndecision x in box(0, 1)\nminimize x\n"
    code = f"import sys, oco; oco.parse({model!r}); assert 'lark' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# Anything at all.

PIECES = [
    *SYMBOLS, *WORDS, *"\t\"'“\x00\\{;é\n", "\r\n", "1.2.3", "1e999", "maximize", "x", "f(", "label:", "each round", "# c", ".T"
]  # fmt: skip


def _mutated(text: str, rng: random.Random) -> str:
    """The text with a few tokens or characters added, left out, doubled or swapped."""
    for _ in range(rng.choice([1, 1, 2, 4])):
        tokens = scan(Source("", text)).tokens or scan(Source("", "x y")).tokens
        i = rng.randrange(len(tokens))
        token, other = tokens[i], tokens[rng.randrange(len(tokens))]
        middle = rng.choice(
            [
                "",
                rng.choice(PIECES),
                f"{token.text} {rng.choice(PIECES)}",
                other.text,
                token.text * 2,
                chr(rng.randrange(0x3000)),
            ]
        )
        text = text[: token.start] + middle + text[token.end :]
    return text


@pytest.mark.parametrize("count", [120, thorough(500)])
def test_any_text_is_read_or_refused_with_words(count: int) -> None:
    rng = random.Random(7)
    texts = [path.read_text() for path in EXAMPLES]
    internal = re.compile(r"\b([A-Z]{2,}|None|Token|__\w+)\b")
    for _ in range(count):
        text = _mutated(rng.choice(texts), rng)
        for found in findings(text):
            assert found.span is not None and 0 <= found.span.start <= found.span.end <= len(text)
            assert not internal.search(re.sub("`[^`]*`|U\\+[0-9A-F]+", "", f"{found.message} {found.hint}")), (
                found.render()
            )
            assert found.render().startswith("m.oco:")
        try:
            formatted = format_text(text)
        except OcoError:
            continue
        assert format_text(formatted) == formatted


def test_of_a_very_long_line_the_part_around_the_mistake_is_shown() -> None:
    rows = the_finding(f"let y = {'1 + ' * 5000}2x + {'1 + ' * 5000}1").render().split("\n")
    assert max(map(len, rows)) < 200
    assert rows[1][rows[2].index("^") :].startswith("2x +")
    assert rows[0].startswith("m.oco:1:20009: ")


def test_what_is_shown_of_a_line_holds_no_control_characters() -> None:
    shown = the_finding("let y = \t1.2.3 \x1b[31m\r\nlet z = 1").render()
    assert shown.split("\n")[1:3] == ["    1 | let y =  1.2.3  [31m", "      |          ^^^^^"]
    assert all(c.isprintable() or c == "\n" for c in the_finding("let \x1b = 1").render())


# The nearest word.


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("pric", "price"),
        ("Price", "price"),
        ("rpice", "price"),
        ("prices", "price"),
        ("jbos", "jobs"),
        ("xyz", None),
        ("", None),
        ("x" * 999, None),
    ],
)
def test_nearest(word: str, near: str | None) -> None:
    assert nearest(word, ["price", "jobs", "speed", "p"]) == near
