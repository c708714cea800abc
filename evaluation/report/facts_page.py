"""Tables of facts in a notebook: HTML that needs no script or style sheet, and LaTeX for MathJax."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping

from oco.compiler.prover.derivation import value_text
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.ledger import listed, reason
from oco.dsl.diagnostics import Diagnostic
from oco.dsl.text.latex import escaped
from oco.dsl.text.notebook import marked
from oco.evaluation.report.derivation_page import LIST, grade_html, key_html, steps_html, value_latex

_CELL = "text-align:left;padding:2px 10px 2px 0;vertical-align:top;border-top:1px solid rgba(128,128,128,.3)"


def facts_html(facts: Mapping[str, Fact], warnings: Iterable[Diagnostic]) -> str:
    """The ledger as a table; the derivation of each fact unfolds under its reason."""
    rows = [_row(facts[key]) for key in listed(facts)]
    head = "".join(f'<th style="{_CELL}">{name}</th>' for name in ("fact", "value", "status", "why"))
    items = "".join(
        f"<li>{html.escape(d.code)}: {marked(d.message)} <small>{marked(d.hint)}</small></li>" for d in warnings
    )
    noted = f'<ul style="{LIST}">{items}</ul>' if items else ""
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<table style="border-collapse:collapse">{table}</table>{noted}'


def _row(fact: Fact) -> str:
    why = marked(reason(fact))
    if fact.why is not None and fact.why.premises:
        why = f"<details><summary>{why}</summary>{steps_html(fact.why.premises, set())}</details>"
    value = f'<span style="white-space:nowrap">{html.escape(value_text(fact.value))}</span>'
    cells = (key_html(fact.key), value, grade_html(fact.status, fact.grade), why)
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"


def facts_latex(facts: Mapping[str, Fact]) -> str:
    """The ledger as an array: key, value and status."""
    rows = [
        rf"\text{{{escaped(key)}}} & {value_latex(facts[key].value)} & \text{{{facts[key].status}}}"
        for key in listed(facts)
    ]
    return "$$\\begin{array}{lll}\n" + " \\\\\n".join(rows) + "\n\\end{array}$$"
