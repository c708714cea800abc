"""Documents against the tree: tests that hold the promises of SECURITY.md, numbers that pages quote."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from sources import nodes
from thorough import corners

from benchmarks.counts import QUOTES, Quote

ROOT = Path(__file__).parent.parent
PAGES = ("docs/known.md",)
"""Pages with a test beside each feature."""
NAMED = re.compile(r"(tests/[\w/]+\.py)?::(\w+)`")
PROMISES = re.findall(
    r"^\*\*(.+?)\*\*(.+?)(?=^\*\*|\Z)",
    (ROOT / "SECURITY.md").read_text(encoding="utf-8").partition("## Promises")[2].partition("\n## ")[0],
    re.MULTILINE | re.DOTALL,
)


def names_of_tests(path: Path) -> set[str]:
    """Names of the test functions of a file."""
    return {node.name for node in nodes(path) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_promises_are_read() -> None:
    assert len(PROMISES) >= 10


@pytest.mark.parametrize(("title", "text"), PROMISES, ids=[title.split("\n")[0][:40] for title, _ in PROMISES])
def test_promises_of_security_name_tests_that_exist(title: str, text: str) -> None:
    """`tests/test_x.py::test_y`, or `::test_y` for another test of the file that is named before it."""
    named = NAMED.findall(text)
    assert named and named[0][0], f"no test is named for: {title}"
    path = ""
    for file, test in named:
        path = file or path
        assert test in names_of_tests(ROOT / path), f"{path} has no test {test}"
    assert not re.findall(r"tests/test_\w+\.py`", text), f"a file of tests without a test: {title}"


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_tests_that_exist(page: str) -> None:
    """Each `tests/test_x.py::test_y` of a page."""
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / page).read_text(encoding="utf-8"))
    assert len(named) >= 40
    assert not [f"{path}::{test}" for path, test in named if test not in names_of_tests(ROOT / path)]


KEPT = [quote for quote in QUOTES if quote.file != "docs/choosing.md"]
"""Quotes of each kind: those of `docs/choosing.md` come from the run of the README with other words."""


@pytest.mark.parametrize("quote", corners(QUOTES, KEPT), ids=[quote.passage[:40].strip() for quote in QUOTES])
def test_numbers_that_documents_quote_are_those_of_the_tree(quote: Quote) -> None:
    """`python benchmarks/counts.py` writes them anew."""
    assert quote.quoted((ROOT / quote.file).read_text(encoding="utf-8")) == quote.counts()


def test_numbers_are_written_in_place_whatever_stood_there() -> None:
    quote = Quote("x.md", "takes {} rounds of {} each.", lambda: (1234, 5))
    text = "It takes 9\nrounds of 1,000 each. It takes time."
    assert quote.quoted(text) == (9, 1000)
    assert quote.written(text) == "It takes 1,234\nrounds of 5 each. It takes time."


LINKED = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("grammar/*.md"),
]


@pytest.mark.parametrize("page", LINKED, ids=lambda path: path.name)
def test_links_of_pages_lead_to_files(page: Path) -> None:
    prose = re.sub(r"^```.*?^```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", prose) if not link.startswith("http")]
    assert not [link for link in links if link and not (page.parent / link).exists()]


def test_the_index_of_the_documentation_has_every_page() -> None:
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert not [
        page.name for page in ROOT.glob("docs/*.md") if page.name != "index.md" and f"({page.name})" not in index
    ]


def test_the_readme_is_short_and_its_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 120
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "learner.py").stat().st_size > 1000
