"""Pages of the site: where each comes from, and how they are ordered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from website.blocks import title

ROOT = Path(__file__).parent.parent

GUIDES = (
    "first_model",
    "from_cvxpy",
    "when_it_holds",
    "bounds",
    "predictions",
    "reading",
    "choosing",
    "little_feedback",
    "data",
    "notebooks",
    "service",
    "operation",
    "controller",
    "cluster",
    "jax",
)
"""Guides in the order in which they are read."""

GENERATED = ("api.md", "grammar.md", "codes/index.md", "examples/index.md", "theory/index.md")
"""Pages that are made of the code, besides those of a single code, example or algorithm."""

NAV: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Start", ("index.md", "python.md", "commands.md", "known.md", "glossary.md")),
    ("Guides", tuple(f"guides/{name}.md" for name in GUIDES)),
    ("Examples", ("examples/index.md",)),
    ("Reference", ("language.md", "grammar.md", "api.md", "settings.md", "lint.md", "editors.md", "codes/index.md")),
    (
        "Theory",
        (
            "theory/index.md",
            "errata.md",
            "certificates.md",
            "prove.md",
            "guarantees.md",
            "rates.md",
            "tightness.md",
            "watching.md",
        ),
    ),
    (
        "Measured",
        (
            "practice.md",
            "choosing.md",
            "speed.md",
            "domains.md",
            "agreement.md",
            "float32.md",
            "corpus.md",
            "papers/index.md",
        ),
    ),
    ("Project", ("contributing.md", "security.md", "conduct.md", "changelog.md")),
)
"""Sections with their pages; pages of single codes, examples and algorithms follow the page that lists them."""

MOVED = {
    "grammar/language.md": "language.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
    "docs/papers": "papers/index.md",
    "examples": "examples/index.md",
}
"""Places on the site of files and folders that are not below `docs/`."""


def documents() -> dict[str, Path]:
    """Documents that are pages, by their place on the site."""
    below = {str(path.relative_to(ROOT / "docs")): path for path in sorted((ROOT / "docs").rglob("*.md"))}
    moved = {
        place: ROOT / source for source, place in MOVED.items() if source.endswith(".md") and source != "README.md"
    }
    return {place: path for place, path in (below | moved).items() if place != "api.md"}


def place_of(source: str) -> str | None:
    """Place on the site of a file of the project, given from its root; None for one that is no page."""
    if source in MOVED:
        return MOVED[source]
    if source.startswith("docs/") and source.endswith(".md"):
        return source.removeprefix("docs/")
    if source.startswith("examples/") and source.endswith(".oco"):
        return source.removesuffix(".oco") + ".md"
    return None


def nav(children: dict[str, list[str]], titles: dict[str, str]) -> list[dict[str, object]]:
    """Navigation as MkDocs takes it; `children` are the pages below one that lists them."""
    return [{section: list(_entries(pages, children, titles))} for section, pages in NAV]


def _entries(
    pages: tuple[str, ...], children: dict[str, list[str]], titles: dict[str, str]
) -> Iterator[dict[str, object]]:
    for page in pages:
        name = titles.get(page, page)
        below = [{titles[child]: child} for child in children.get(page, [])]
        yield {name: [{"Overview": page}, *below]} if below else {name: page}


def listed() -> list[str]:
    """Pages that the navigation names."""
    return [page for _, pages in NAV for page in pages]


def titles_of(texts: dict[str, str]) -> dict[str, str]:
    """First heading of each page, without signs of Markdown."""
    return {place: title(text, Path(place)).replace("`", "") for place, text in texts.items()}
