"""HTML elements of a report. All text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from oco.dsl.text.notebook import marked

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d8dee4; --page: #ffffff; --tint: #f6f8fa; --grid: #e8e8e8;
        --blue: #0072b2; --accent: #0072b2; --warn: #9a6700; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --soft: #9aa4ae; --line: #3a4149; --page: #15181c; --tint: #1d2126;
        --grid: #2b3036; --blue: #4aa8e8; --accent: #56b4e9; --warn: #e3b341; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 72rem; background: var(--page); color: var(--ink);
       font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
p { margin: .5rem 0; max-width: 46rem; } .soft { color: var(--soft); } .warn { color: var(--warn); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .925rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .9rem .4rem 0; border-bottom: 1px solid var(--line); }
td:first-child, summary { overflow-wrap: anywhere; } td:first-child { min-width: 3ch; } td span { white-space: nowrap; }
th { font-weight: 600; color: var(--soft); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; } td.number { white-space: nowrap; }
code, pre { font: .875rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre { background: var(--tint); padding: .9rem 1rem; border-radius: 6px; overflow-x: auto; }
.gallery { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.25rem 2rem; }
figure { margin: 0; max-width: 44rem; } figure svg { width: 100%; height: auto; color: var(--ink); }
figcaption { color: var(--soft); font-size: .875rem; }
details { margin: .15rem 0; } details > details, details > p { margin-left: 1.1rem; }
summary { cursor: pointer; } summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.tag { display: inline-block; padding: 0 .5rem; border: 1px solid var(--line); border-radius: 999px; font-size: .8rem; color: var(--soft); }
.bad { color: var(--bad); border-color: currentColor; }
.scroll + .scroll { margin-top: 1.25rem; } p code { background: var(--tint); padding: 0 .25rem; border-radius: 3px; }
@media (max-width: 40rem) {
  body { padding: 1.25rem 1rem 3rem; } thead { display: none; }
  tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line); }
  td, td.number { display: flex; justify-content: space-between; gap: 1.5rem; padding: .15rem 0; border: 0; text-align: right; }
  td.number { white-space: normal; } td { overflow-wrap: anywhere; } td::before { overflow-wrap: normal; flex: none; }
  td::before { content: attr(data-label); color: var(--soft); text-align: left; } td:empty { display: none; }
  td:first-child { font-weight: 600; } td[data-label=""] { text-align: left; } td[data-label=""]::before { content: none; }
}
"""


IN_NOTEBOOK = "<style>.oco td:not(.number), .oco th:not(.number) { text-align: left; }</style>"
"""Style for tables on a page that has its own, which would align words to the right; they are in an element of class `oco`."""


_SMALL = re.compile(r"-?\d[\d.]*e-\d+")  # a browser would break such a number at its hyphen


def page(title: str, body: Iterable[str]) -> str:
    """Complete document that needs no other file."""
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
    return f'<!doctype html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head>\n<body>\n{chr(10).join(body)}\n</body></html>\n'


def section(title: str, *parts: str) -> str:
    """Section with a heading."""
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def paragraph(text: str, kind: str = "") -> str:
    """Paragraph of escaped text; `kind` is its CSS class."""
    mark = f' class="{kind}"' if kind else ""
    return f"<p{mark}>{marked(text)}</p>"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """Table with escaped cells; `numbers` are the right-aligned columns. On a narrow screen each row becomes a list."""

    def cell(tag: str, column: int, text: str) -> str:
        mark = ' class="number"' if column in numbers else ""
        label = f' data-label="{escape(headings[column])}"' if tag == "td" else ""
        words, small = _SMALL.subn(r"<span>\g<0></span>", escape(text))
        return f"<{tag}{mark}{label}>{f'<div>{words}</div>' if small else words}</{tag}>"

    head = "".join(cell("th", i, h) for i, h in enumerate(headings))
    body = "".join(f"<tr>{''.join(cell('td', i, c) for i, c in enumerate(row))}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def drawing(svg: str, caption: str) -> str:
    """Figure; `svg` is trusted, since it comes from our own plots."""
    return f'<figure role="img" aria-label="{escape(caption)}">{svg}<figcaption>{escape(caption)}</figcaption></figure>'


def gallery(drawings: Iterable[str]) -> str:
    """Figures side by side where there is room."""
    return f'<div class="gallery">{"".join(drawings)}</div>'


def folded(summary: str, *parts: str, tag: str = "") -> str:
    """Section that opens when it is clicked."""
    label = f' <span class="tag{" bad" if tag == "refuted" else ""}">{escape(tag)}</span>' if tag else ""
    return f"<details><summary>{marked(summary)}{label}</summary>{''.join(parts)}</details>"


def code(text: str) -> str:
    """Preformatted block of escaped text."""
    return f"<pre>{escape(text)}</pre>"
