"""The formatter: examples stay, layouts of one text come out alike, comments and columns stay, and the meaning does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from thorough import one_in

from oco.dsl.diagnostics import InternalError, OcoError
from oco.dsl.source import Source
from oco.dsl.text import formatter, syntax
from oco.dsl.text.formatter import format_text
from oco.dsl.text.parser import parse_file
from oco.dsl.text.tokens import scan

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.oco"))


def tree(text: str) -> tuple[syntax.Statement, ...]:
    file, findings = parse_file(Source("m.oco", text))
    assert findings == []
    return file.statements


def comments(text: str) -> list[str]:
    return [t.text.rstrip() for t in scan(Source("", text)).tokens if t.type == "COMMENT"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_stay_as_they_are(path: Path) -> None:
    text = path.read_bytes().decode()
    assert format_text(text) == text


LAYOUTS: list[tuple[str, str]] = [
    ("", ""),
    ("\n\n", ""),
    ("# only a comment  ", "# only a comment\n"),
    ("model  a\t\n\n\n\nhorizon T=5", "model  a\n\nhorizon T = 5\n"),
    ("  model a", "model a\n"),
    ("let y=a+b-c*d/e@f**g", "let y = a + b - c * d / e @ f ** g\n"),
    ("let y = - a*-b ** - c", "let y = -a * -b ** -c\n"),
    ("let y = ( a+b ) .T [ 0 , 1 : k ]", "let y = (a + b).T[0, 1:k]\n"),
    ("let y = X[:,0] @ X[ : , 1:]", "let y = X[:, 0] @ X[:, 1:]\n"),
    ("let y = sum (x ,axis=0)", "let y = sum(x, axis = 0)\n"),
    ("let y = [[1,2],[-3,4e-1]]", "let y = [[1, 2], [-3, 4e-1]]\n"),
    ("param z[ n ]in 0 .. m - 1= repeat( 0 .. 2*k , 3 )", "param z[n] in 0..m-1 = repeat(0..2*k, 3)\n"),
    ("stream s in[0,1]iid mean=1/2", "stream s in [0, 1] iid mean = 1 / 2\n"),
    ("stream in in[0,in[0]]", "stream in in [0, in[0]]\n"),
    ("stream s~pareto( 3,mean=8 )in [ 0,400 ]", "stream s ~ pareto(3, mean = 8) in [0, 400]\n"),
    ("subject to\ncap :x<=1 each round", "subject to\n    cap: x <= 1 each round\n"),
    ("subject to\n  cap: x<=1      each round", "subject to\n    cap: x <= 1      each round\n"),
    ("minimize(a-b)*c", "minimize (a - b) * c\n"),
    ("minimize-x#cost", "minimize -x #cost\n"),
    ("assume constraints . cap [ 0,1 ] .bound<=-3", "assume constraints.cap[0, 1].bound <= -3\n"),
    ("using mirror-descent with V=2*sqrt( T ),alpha=t", "using mirror-descent with V = 2 * sqrt(T), alpha = t\n"),
    ("model a\r\nhorizon T = 5\r\n", "model a\nhorizon T = 5\n"),
    ("\ufeffmodel a\n", "model a\n"),
    # columns
    ("param a[2]   = [1,2]   # one\nparam bb[20] = [3,4]", "param a[2]   = [1, 2]   # one\nparam bb[20] = [3, 4]\n"),
    ("let y=1   # one\nlet zz=2  # two", "let y = 1   # one\nlet zz = 2  # two\n"),
    ("let y=a+b+c  # one\nlet z=1      # two", "let y = a + b + c  # one\nlet z = 1          # two\n"),
    ("let y=1   # alone", "let y = 1   # alone\n"),
    ("let y =1\t# tab", "let y = 1    # tab\n"),
    # lines that go on
    ("let y=f(a,\n        b)", "let y = f(a,\n          b)\n"),
    ("let y=f(\n  a,\n\n\n  b)", "let y = f(\n  a,\n\n  b)\n"),
    ("let A = [[1,2],  # c\n         [3,4]]", "let A = [[1, 2],  # c\n         [3, 4]]\n"),
    # comments on lines of their own
    ("  # above\nmodel a", "# above\nmodel a\n"),
    ("subject to\n  # in\n  cap: x<=1\n# out", "subject to\n    # in\n    cap: x <= 1\n# out\n"),
]


@pytest.mark.parametrize(("text", "wanted"), LAYOUTS, ids=[t[:40] for t, _ in LAYOUTS])
def test_layouts(text: str, wanted: str) -> None:
    assert format_text(text) == wanted
    assert format_text(wanted) == wanted
    assert tree(wanted) == tree(text)


def _shaken(text: str, rng: random.Random) -> str:
    """The same tokens with other blanks between them."""
    out, position = [], 0
    for token in scan(Source("", text)).tokens:
        blanks = text[position : token.start]
        if position and blanks == " " and not (_joins(text[position - 1]) and _joins(token.text[0])):
            blanks = rng.choice(["", " ", " ", "   "])
        out += [blanks, token.text, rng.choice(["", "", "  ", "\n"]) if token.type == "NEWLINE" else ""]
        position = token.end
    return "".join(out)


def _joins(character: str) -> bool:
    """Whether two such characters side by side would make one token."""
    return character.isalnum() or character in "_.*=<>#"


@pytest.mark.parametrize("path", one_in(2, EXAMPLES), ids=lambda p: p.stem)
def test_shaken_examples_keep_meaning_and_comments_and_settle_at_once(path: Path) -> None:
    rng = random.Random(path.stem)
    text = path.read_text()
    for _ in range(10):
        shaken = _shaken(text, rng)
        formatted = format_text(shaken)
        assert format_text(formatted) == formatted
        assert tree(formatted) == tree(text)
        assert comments(formatted) == comments(text)
        assert not any(line != line.rstrip() for line in formatted.split("\n"))


def test_single_blanks_lost_or_doubled_are_restored() -> None:
    """Where no columns were made, the canonical text comes back."""
    text = "".join(line for line in EXAMPLES[0].read_text().splitlines(True) if "  " not in line.strip())
    assert format_text(text.replace(" @ ", "@").replace(" = ", "=").replace(", ", " ,")) == format_text(text)


def test_a_text_with_mistakes_is_refused_with_all_of_them() -> None:
    with pytest.raises(OcoError) as caught:
        format_text("minimise x\nlet y = (1\nlet z = 2x\n", "bad.oco")
    assert [e.code for e in caught.value.errors] == ["OCO108", "OCO105", "OCO102"]
    assert str(caught.value).startswith("bad.oco:1:1: error OCO108")


def test_a_formatter_that_changed_the_meaning_would_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatter, "_single_blank_lines", lambda lines: [line.replace("2", "3") for line in lines])
    with pytest.raises(InternalError):
        format_text("let y = 2\n")
    monkeypatch.setattr(formatter, "_single_blank_lines", lambda lines: [line.split("#")[0] for line in lines])
    with pytest.raises(InternalError):
        format_text("let y = 2 # two\n")


def test_long_texts_take_linear_time() -> None:
    rows = ",\n    ".join("[1, 2]" for _ in range(4000))
    assert format_text(f"param A[4000, 2] = [{rows}]\n").count("\n") == 4000
