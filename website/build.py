"""Build of the site: pages gathered and generated, blocks executed, set by MkDocs, links checked.

`python -m website.build` writes `build/site/html`; words after it name the pages to build, for a quick look at some. Pages whose source
and whose code did not change are taken from `build/site/kept`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import ClassVar, Protocol

from website import codes, examples, reference, theory
from website.execute import executed
from website.links import broken, copy_of, relinked
from website.pages import ROOT, documents, listed, nav, place_of, titles_of

OUT = ROOT / "build" / "site"
PAGES, KEPT, HTML = OUT / "pages", OUT / "kept", OUT / "html"
PRODUCT = ("api", "backends", "benchmarks/guarantees", "compiler", "dsl", "evaluation", "examples", "grammar")
SOURCES = (".py", ".c", ".oco", ".csv", ".lark", ".json", ".md", ".lean")
"""Endings of the files of the product that pages depend on."""
TAGS = "div|math|svg|a|img|br|sub|sup|kbd|details|summary|span|p"
WIDE = ("examples/", "practice.md", "corpus.md", "codes/index.md", "theory/index.md")
"""Pages with wide tables or output, set without a table of contents beside them."""
WORKERS = 2
"""Processes that make pages: each takes a core, and about 500 MB."""


@dataclass(frozen=True)
class Made:
    """Page as Markdown, with the files beside it, and what was executed on the way."""

    text: str
    files: Mapping[str, str]
    counts: Mapping[str, int]
    left_out: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


def makers() -> dict[str, Maker]:
    """Functions that make the pages, by their place on the site."""
    made: dict[str, Maker] = {place: _Document(place, path) for place, path in documents().items()}
    made |= {"api.md": _Text("interface", True), "grammar.md": _Text("grammar"), "codes/index.md": _Text("codes")}
    made |= {f"codes/oco{hundred}xx.md": _Codes(hundred) for hundred in codes.GROUPS}
    made |= {"examples/index.md": _Text("examples"), **{f"examples/{n}.md": _Example(n) for n in examples.names()}}
    algorithms = {f"theory/{a.name}.md": _Algorithm(a.name) for a in theory.ALGORITHMS}
    return made | {"theory/index.md": _Text("theory"), "papers/index.md": _Text("papers")} | algorithms


class Maker(Protocol):
    """Function that makes a page; `modules` are those of the site that it does so with."""

    modules: ClassVar[tuple[str, ...]]

    def __call__(self) -> Made: ...


@dataclass(frozen=True)
class _Document:
    """Document of the project, its links led to places of the site."""

    place: str
    path: Path
    modules: ClassVar = ("blocks.py", "execute.py")

    def __call__(self) -> Made:
        text = self.path.read_text(encoding="utf-8")
        return _executed(text, self.place, self.place.startswith("guides/"))


@dataclass(frozen=True)
class _Text:
    """Page that a function writes, its blocks executed where asked."""

    name: str
    run: bool = False
    modules: ClassVar = (
        "blocks.py",
        "execute.py",
        "reference.py",
        "codes.py",
        "examples.py",
        "theory.py",
        "examples_of_api.md",
    )

    def __call__(self) -> Made:
        text = {
            "interface": reference.interface,
            "grammar": reference.grammar,
            "codes": codes.index,
            "examples": examples.index,
            "theory": theory.index,
            "papers": _papers,
        }[self.name]()
        return _executed(text, f"{self.name}.md", True) if self.run else Made(text, {}, {})


@dataclass(frozen=True)
class _Codes:
    """Page of the codes of a hundred."""

    hundred: str
    modules: ClassVar = ("codes.py",)

    def __call__(self) -> Made:
        counts: Counter[str] = Counter()
        return Made(codes.page_of(self.hundred, counts), {}, counts)


@dataclass(frozen=True)
class _Example:
    """Page of an example."""

    name: str
    modules: ClassVar = ("examples.py", "plots.py")

    def __call__(self) -> Made:
        return Made(examples.page_of(self.name), {}, {"examples run": 1})


@dataclass(frozen=True)
class _Algorithm:
    """Page of an algorithm."""

    name: str
    modules: ClassVar = ("theory.py", "plots.py", "../docs/errata.md")

    def __call__(self) -> Made:
        (algorithm,) = (a for a in theory.ALGORITHMS if a.name == self.name)
        return Made(theory.page_of(algorithm), {}, {"algorithms run": 1})


def _executed(text: str, place: str, standalone: bool) -> Made:
    result = executed(text, place.removesuffix(".md"), standalone)
    files = {name: data.decode() for name, data in result.files.items()}
    return Made(result.text, files, result.counts, tuple(result.left_out), tuple(result.errors))


def _papers() -> str:
    """Page that lists the experiments of the papers."""
    rows = [
        f"* [{path.read_text(encoding='utf-8').splitlines()[0].lstrip('# ')}]({path.name})"
        for path in sorted((ROOT / "docs" / "papers").glob("*.md"))
    ]
    return (
        "# The papers' experiments\n\nRun again, with the claims that held and those that did not.\n\n"
        + "\n".join(rows)
        + "\n"
    )


@cache
def _digest(modules: tuple[str, ...]) -> str:
    """Digest of the code of the product, and of the modules of the site that a page is made with."""
    paths = (path for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SOURCES)
    digest = hashlib.sha256()
    for path in (*paths, *(ROOT / "website" / name for name in modules)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def made(place: str) -> Made:
    """Page of a place, from `build/site/kept` where nothing that it is made of changed."""
    maker = makers()[place]
    source = maker.path.read_text(encoding="utf-8") if isinstance(maker, _Document) else ""
    key = hashlib.sha256(json.dumps([place, source, _digest(maker.modules)]).encode()).hexdigest()[:24]
    kept = KEPT / f"{place.replace('/', '-')}.{key}.json"
    if kept.exists():
        return Made(**json.loads(kept.read_text(encoding="utf-8")))
    result = maker()
    if not result.errors:
        KEPT.mkdir(parents=True, exist_ok=True)
        for old in KEPT.glob(f"{place.replace('/', '-')}.*.json"):
            old.unlink(missing_ok=True)
        kept.write_text(json.dumps(result.__dict__), encoding="utf-8")
    return result


def gathered(places: list[str]) -> dict[str, Made]:
    """Pages of places, made side by side."""
    results: dict[str, Made] = {}
    with ProcessPoolExecutor(WORKERS, get_context("fork")) as pool:  # with all that is imported here
        waiting = {pool.submit(made, place): place for place in places}
        for done in as_completed(waiting):
            results[waiting[done]] = done.result()
            print(f"{len(results):4} of {len(places)}  {waiting[done]}", flush=True)
    return {place: results[place] for place in places}


def staged(pages: Mapping[str, Made]) -> None:
    """Write pages and what they link to below `build/site/pages`."""
    shutil.rmtree(PAGES, ignore_errors=True)
    sources = {place: str(path.relative_to(ROOT)) for place, path in documents().items()}
    copied: set[str] = set()
    for place, page in pages.items():
        text, files = relinked(page.text, place, sources.get(place, f"docs/{place}"), place_of)
        copied |= files
        target = PAGES / place
        target.parent.mkdir(parents=True, exist_ok=True)
        wide = "---\nhide: [toc]\n---\n\n" if place.startswith(WIDE) else ""
        target.write_text(wide + _without_tags(text), encoding="utf-8")
        for name, data in page.files.items():
            (target.parent / Path(name).name).write_text(data, encoding="utf-8")
    for name in sorted(copied):
        source = ROOT / name
        target = PAGES / copy_of(name)
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    shutil.copytree(ROOT / "website" / "theme", PAGES / "theme")


def _without_tags(text: str) -> str:
    """Page in which signs such as those of `<c, x>` are no tags; lines of HTML stay."""
    parts = re.split(r"(^```.*?^```[^\n]*$|`[^`\n]*`|^<div[^\n]*)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        p if p.startswith(("`", "<div")) else re.sub(rf"<(?=[A-Za-z])(?!(?:{TAGS})\b)", "&lt;", p) for p in parts
    )


def configured(pages: Mapping[str, Made]) -> Path:
    """Write MkDocs' settings with the navigation of these pages."""
    import yaml

    titles = titles_of({place: page.text for place, page in pages.items()})
    children: dict[str, list[str]] = {}
    for place in sorted(pages):
        if place not in listed():
            children.setdefault(f"{place.rpartition('/')[0]}/index.md", []).append(place)
    settings = yaml.safe_load((ROOT / "website" / "mkdocs.yml").read_text(encoding="utf-8"))
    chosen = [
        {name: [e for e in entries if _places(e) & pages.keys()]}
        for part in nav(children, titles)
        for name, entries in part.items()
    ]
    settings |= {"docs_dir": str(PAGES), "site_dir": str(HTML), "nav": [part for part in chosen if all(part.values())]}
    path = OUT / "mkdocs.yml"
    path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return path


def _places(entry: dict[str, object]) -> set[str]:
    """Pages that an entry of the navigation names."""
    (value,) = entry.values()
    return {value} if isinstance(value, str) else set().union(*(_places(e) for e in value))  # type: ignore[union-attr, attr-defined]


def main(words: list[str]) -> int:
    """Build the site, or the pages whose places begin with one of the words; print counts. Returns the exit status."""
    began = time.perf_counter()
    places = [place for place in makers() if not words or place.startswith(tuple(words)) or place == "index.md"]
    pages = gathered(places)
    errors = [error for page in pages.values() for error in page.errors]
    if errors:
        print("\n\n".join(errors), f"\n{len(errors)} blocks failed", file=sys.stderr)
        return 1
    staged(pages)
    strict = [] if words else ["--strict"]
    set_ = time.perf_counter()
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", *strict, "--config-file", str(configured(pages))]
    done = subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    if done.returncode:
        return 1
    count, outward, wrong = broken(HTML)
    _report(pages, set_ - began, time.perf_counter() - set_)
    print(f"links          {count}, of which {outward} lead out of the site; broken: {len(wrong)}")
    print("\n".join(wrong), file=sys.stderr, end="")
    return 1 if wrong and not words else 0


def _report(pages: Mapping[str, Made], making: float, setting: float) -> None:
    """Print what was executed, and what was not with the reason."""
    counts: Counter[str] = sum((Counter(page.counts) for page in pages.values()), Counter())
    left_out = Counter(reason for page in pages.values() for reason in page.left_out)
    size = sum(path.stat().st_size for path in HTML.rglob("*") if path.is_file())
    print(f"\npages          {len(pages)} in {size / 1e6:.1f} MB: {HTML}")
    print(f"seconds        {making:.0f} for pages, {setting:.0f} for MkDocs and links")
    print("executed       " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    print("\n".join(f"not executed   {n:4} {reason}" for reason, n in sorted(left_out.items())))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
