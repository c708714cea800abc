"""Facts and derivations in a notebook: HTML that needs no script or style sheet, and LaTeX for MathJax."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from oco.compiler.facts.ledger import listed, reason, value_text
from oco.compiler.facts.types import Fact, Facts, Step

_CELL = "text-align:left;padding:2px 10px 2px 0;vertical-align:top"
_CODE = re.compile(r"`([^`]*)`")
_TEX = str.maketrans({c: f"\\{c}" for c in "&%$#_{}"} | {"~": r"\sim{}", "^": r"\hat{}", "\\": r"\backslash{}"})


def facts_html(facts: Facts) -> str:
    """The ledger as a table; the derivation of each fact unfolds under its reason."""
    rows = [_row(facts[key]) for key in listed(facts)]
    head = "".join(f'<th style="{_CELL}">{name}</th>' for name in ("fact", "value", "status", "why"))
    warnings = "".join(f"<li>{html.escape(d.code)}: {_marked(d.message)}</li>" for d in facts.warnings)
    noted = f"<ul>{warnings}</ul>" if warnings else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{noted}"


def _row(fact: Fact) -> str:
    status = f"{fact.status}{', loose' if fact.loose else ''}"
    why = _marked(reason(fact))
    if fact.why is not None and fact.why.premises:
        why = f"<details><summary>{why}</summary>{_tree(fact.why.premises, set())}</details>"
    cells = (f"<code>{html.escape(fact.key)}</code>", html.escape(value_text(fact.value)), status, why)
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"


def fact_html(fact: Fact) -> str:
    """One fact with its whole derivation."""
    status = f"{fact.status}{', loose' if fact.loose else ''}"
    head = f"<p><code>{html.escape(fact.key)}</code> = {html.escape(value_text(fact.value))} ({status})</p>"
    return head + (_tree((fact.why,), set()) if fact.why is not None else "")


def _tree(steps: tuple[Step, ...], shown: set[int]) -> str:
    """Nested lists; a step that was shown is not unfolded again."""
    items = []
    for step in steps:
        again = id(step) in shown
        shown.add(id(step))
        inner = _tree(step.premises, shown) if step.premises and not again else ""
        items.append(f"<li>{_marked(step.claim)} <small>{html.escape(step.rule)}</small>{inner}</li>")
    return f"<ul>{''.join(items)}</ul>"


def _marked(text: str) -> str:
    """Escaped, with what stands in backticks as code."""
    return _CODE.sub(r"<code>\1</code>", html.escape(text))


def fact_latex(fact: Fact) -> str:
    """The derivation as lines of an array, premises indented under what they prove."""
    lines = [f"\\text{{{_tex(fact.key)}}} = {_tex(value_text(fact.value))} \\quad\\text{{({fact.status})}}"]
    lines += _latex_lines(fact.why, 1, set()) if fact.why is not None else []
    return "$$\\begin{array}{l}\n" + " \\\\\n".join(lines) + "\n\\end{array}$$"


def _latex_lines(step: Step, depth: int, shown: set[int]) -> Iterator[str]:
    again = id(step) in shown
    shown.add(id(step))
    parts = _CODE.split(step.claim)
    said = "".join(f"\\texttt{{{_tex(p)}}}" if i % 2 else f"\\text{{{_tex(p)}}}" for i, p in enumerate(parts) if p)
    yield "\\quad " * depth + said
    if not again:
        for premise in step.premises:
            yield from _latex_lines(premise, depth + 1, shown)


def _tex(text: str) -> str:
    return text.translate(_TEX)
