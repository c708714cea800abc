"""Links of pages: those of the documents led to places of the site, and those of the built pages checked."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

LINK = re.compile(r"(?<!\\)(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\()([^)\s]+)(\)(?:\{[^}]*\})?)")


def relinked(text: str, place: str, source: str, place_of: Callable[[str], str | None]) -> tuple[str, set[str]]:
    """Page whose links lead to places of the site, and the files of the project to copy below `files/`.

    place   of the page on the site
    source  of the page in the project, from its root
    """
    copied: set[str] = set()

    def led(match: re.Match[str]) -> str:
        target, hash_, anchor = match[2].partition("#")
        if not target or ":" in target:
            return match[0]
        of_project = os.path.normpath(os.path.join(os.path.dirname(source), target))
        to = place_of(of_project)
        if to is None:
            copied.add(of_project)
            to = copy_of(of_project)
        relative = os.path.relpath(to, os.path.dirname(place) or ".")
        return f"{match[1]}{relative}{hash_}{anchor}{match[3]}"

    parts = re.split(r"(^```.*?^```[^\n]*$|`[^`\n]*`)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("`") else LINK.sub(led, part) for part in parts), copied


def copy_of(source: str) -> str:
    """Place on the site of the copy of a file of the project; one of Markdown is text there, for it is no page."""
    return (
        source.removeprefix("docs/")
        if source.startswith("docs/")
        else f"files/{source}{'.txt' * source.endswith('.md')}"
    )


class _Page(HTMLParser):
    """Links and places of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value is not None and not (tag == "use" or value.startswith("data:")):
                self.links.append(value)
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value or "")


def broken(site: Path) -> tuple[int, int, list[str]]:
    """Number of links of a built site, number of those that lead out of it, and those that lead nowhere."""
    pages = {}
    for path in site.rglob("*.html"):
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path.resolve()] = page
    count, outward, wrong = 0, 0, []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            count += 1
            if parts.scheme or parts.netloc:
                outward += 1
                if parts.scheme in ("http", "https") and link in _loaded(path):
                    wrong.append(f"{path.relative_to(site.resolve())} loads {link} from elsewhere")
                continue
            base = site if parts.path.startswith("/") else path.parent  # 404.html is served for any path
            target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                wrong.append(f"{path.relative_to(site.resolve())}: {link}")
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].places | {"__search"}
            ):
                wrong.append(f"{path.relative_to(site.resolve())}: {link} (no such place)")
    return count, outward, wrong


def _loaded(path: Path) -> set[str]:
    """Addresses that a page loads as it opens: scripts, styles, images."""
    text = path.read_text(encoding="utf-8")
    loaded = re.findall(r'<(?:script|img|iframe)[^>]*\bsrc="([^"]+)"', text)
    return {*loaded, *re.findall(r'<link[^>]*rel="(?:stylesheet|preload|preconnect)"[^>]*href="([^"]+)"', text)}


def site_path(place: str) -> str:
    """Path of a page in the built site."""
    return str(PurePosixPath(place).with_suffix(".html"))
