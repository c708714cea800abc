"""The documentation's site: pages, navigation, links and examples are whole, blocks are executed as asked. `make site` builds it."""

from __future__ import annotations

import ast
import builtins
import re
import tomllib
from pathlib import Path

import pytest

import oco
from oco.cli.app import COMMANDS
from oco.compiler.algorithms import ALGORITHMS
from oco.dsl.codes import CODES
from oco.dsl.domains import DOMAINS
from oco.dsl.text.words import STATEMENT_WORDS
from website import codes, examples, reference, theory
from website.blocks import FENCE, blocks, without_blocks
from website.build import makers
from website.execute import executed
from website.links import broken, relinked
from website.pages import GENERATED, GUIDES, NAV, ROOT, documents, listed, place_of

MARKED = """\
```oco file=a.oco
model a
horizon T = 9
decision x in box(0, 1)
stream c in [-1, 1]
minimize c * x
```

```console
$ oco fmt a.oco
$ cat a.oco
```

<!-- run python
number = 6
-->

```python
print(number)
number * 7
```

<!-- fails -->
```python
raise ValueError("a reason")
```

<!-- shown: no cluster is at hand -->
```console
$ no-such-command
```
"""


def test_every_page_is_listed_once() -> None:
    """The navigation names every document and every page that lists others; the pages below those are found by their place."""
    of_lists = {place for place in makers() if place.rpartition("/")[0] in ("codes", "examples", "theory", "papers")}
    assert sorted(listed()) == sorted(set(listed()))
    assert set(listed()) >= {place for place in documents() if not place.startswith("papers/")} | set(GENERATED)
    assert set(makers()) == set(listed()) | of_lists
    assert [section for section, _ in NAV][:4] == ["Start", "Guides", "Examples", "Reference"]


def test_the_guides_are_those_of_the_folder() -> None:
    assert {path.stem for path in (ROOT / "docs" / "guides").glob("*.md")} == set(GUIDES)


@pytest.mark.parametrize("place", documents())
def test_links_lead_to_pages_and_files(place: str) -> None:
    path = documents()[place]
    text, copied = relinked(path.read_text(encoding="utf-8"), place, str(path.relative_to(ROOT)), place_of)
    assert not [name for name in copied if not (ROOT / name).exists()]
    led = re.findall(r"\]\(([^)#\s]+\.md)[)#]", without_blocks(text))
    known = set(makers())
    assert not [link for link in led if _resolved(place, link) not in known and "://" not in link]


def _resolved(place: str, link: str) -> str:
    return str((Path("/") / place).parent.joinpath(link).resolve().relative_to("/"))


@pytest.mark.parametrize("guide", GUIDES)
def test_guides_are_short_and_their_blocks_can_run(guide: str) -> None:
    """A screen or two of text; Python parses, and commands are those that there are."""
    text = (ROOT / "docs" / "guides" / f"{guide}.md").read_text(encoding="utf-8")
    all_blocks = [block for _, block in blocks(text)]
    assert len(text.splitlines()) <= 150 and all_blocks
    for block in all_blocks:
        if block.language == "python":
            compile(block.code, guide, "exec")
        if block.language == "console":
            named = re.findall(r"^\$ oco (\S+)", block.code, re.MULTILINE)
            assert set(named) <= set(COMMANDS)
    spans = re.findall(r"`oco ([a-z][a-z-]*)", FENCE.sub("", text))
    assert set(spans) <= set(COMMANDS)


@pytest.mark.parametrize("place", documents())
def test_blocks_read_names_that_their_page_defines(place: str) -> None:
    """`make site` executes them; this needs no execution, and shows a name that is nowhere."""
    known, read = {*dir(builtins), "__name__"}, set[str]()
    for _, block in blocks(documents()[place].read_text(encoding="utf-8")):
        if not block.executed or block.language not in ("python", "ipython") or block.file:
            continue
        known |= {*re.findall(r"^%%oco (\w+)", block.code)}
        code = re.sub(r"^%%\w.*", "", block.code, count=1, flags=re.DOTALL)
        for node in ast.walk(ast.parse(re.sub(r"^%.*", "", code, flags=re.MULTILINE))):
            match node:
                case ast.Name(id=name, ctx=ast.Load()):
                    read.add(name)
                case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    known.add(name)
                case ast.alias(name=name, asname=other):
                    known.add(other or name.partition(".")[0])
                case ast.ExceptHandler(name=str(name)):
                    known.add(name)
    assert read <= known


def test_every_name_of_the_interface_has_an_example() -> None:
    page = reference.interface()
    sections = {part.split("(")[0].split("`")[0]: part for part in page.split("\n### `")[1:]}
    assert sections.keys() >= set(oco.__all__)
    assert not [name for name, part in sections.items() if "```python" not in part]
    assert set(reference.examples()) <= sections.keys(), "examples of names that there are not"
    assert set(reference.examples()) >= set(DOMAINS)


def test_methods_of_objects_stand_in_the_examples() -> None:
    """Of the members that the page lists; those without one are for programs around a learner, or need another model."""
    shown = "\n".join(reference.examples().values())
    listed = re.findall(r"(?m)^\* `(\w+)", reference.interface())
    rare = {"compiled", "contract", "interactive", "interactive_frontier", "interactive_rules", "lean", "second_point"}
    rare |= {
        "alerting",
        "plot_frontier",
        "certificates",
        "certified_curve",
        "prefixes",
        "known_comparators",
        "kept",
        "of",
    }
    rare |= {
        "equality_violation",
        "spent",
        "totals",
        "shared",
        "rounds_per_second",
        "seconds",
        "update",
        "open",
        "as_data",
    }
    missing = {name for name in listed if not re.search(rf"\.{name}\b", shown)}
    assert missing <= rare, sorted(missing - rare)


def test_the_grammar_page_is_made_of_the_grammar() -> None:
    page = reference.grammar()
    for word in STATEMENT_WORDS:
        assert f"`{word}`" in page
    assert "predict: PREDICT name EQUAL expr" in page and "| `logistic` |" in page


def test_every_code_has_a_section() -> None:
    assert {code[3] for code in CODES} == set(codes.GROUPS)
    page = codes.index()
    assert not [code for code in CODES if f"(oco{code[3]}xx.md#{code.lower()})" not in page]


def test_lists_of_examples_and_algorithms_name_all() -> None:
    assert all(f"({name}.md)" in examples.index() for name in examples.names())
    assert all(f"({a.name}.md)" in theory.index() for a in ALGORITHMS)


def test_errata_name_algorithms_that_there_are() -> None:
    named = [name for _, body in theory.errata() for name in re.findall(r"`([\w-]+)`", body.split("\n\n")[1])]
    assert len(named) == len(set(named)) >= 10
    assert set(named) <= {a.name for a in ALGORITHMS}


def test_blocks_are_executed_as_asked() -> None:
    result = executed(MARKED, "page", standalone=True)
    assert not result.errors
    assert result.counts == {"oco blocks": 1, "console blocks": 1, "python blocks": 3}
    assert result.left_out == ["no cluster is at hand"]
    assert "minimize c * x\n```\n" in result.text and "```text { .output }\n6\n```" in result.text
    assert "42\n```" in result.text and "a reason\n```" in result.text and "number = 6" not in result.text


@pytest.mark.parametrize(
    "block",
    [
        "```python\n1 / 0\n```",
        "```oco\nmodel a\nhorizon T = 9\ndecision x in box(0, 1)\nminimize y\n```",
        "```console\n$ oco check absent.oco\n```",
        "<!-- fails -->\n```python\n1\n```",
    ],
)
def test_a_block_that_fails_is_an_error_of_the_page(block: str) -> None:
    assert len(executed(block, "page", standalone=True).errors) == 1


def test_links_that_lead_nowhere_are_seen(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#here">b</a><a href="#top"></a><a href="c.html">c</a>'
    )
    (tmp_path / "b.html").write_text('<p id="there"></p><script src="https://elsewhere.test/x.js"></script>')
    count, outward, wrong = broken(tmp_path)
    assert (count, outward, len(wrong)) == (4, 1, 3)


def test_the_extra_and_the_workflow_are_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert any("mkdocs-material" in name for name in project["optional-dependencies"]["docs"])
    assert "- run: make site" in (ROOT / ".github" / "workflows" / "docs.yml").read_text()
    settings = (ROOT / "website" / "mkdocs.yml").read_text()
    assert "font: false" in settings and "https://" not in settings


def test_the_page_of_an_algorithm_sets_its_formulas() -> None:
    page = theory.page_of(next(a for a in ALGORITHMS if a.name == "ogd"))
    assert page.count("<math") == page.count("| in it | is |") == 1 and "sum of the steps" in page
