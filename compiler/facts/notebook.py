"""Facts and derivations in a notebook: HTML that needs no script or style sheet, and LaTeX for MathJax."""

from __future__ import annotations

import html
from collections.abc import Iterator

from oco.compiler.facts.ledger import listed, reason, value_text
from oco.compiler.facts.types import Fact, Facts, Status, Step
from oco.dsl.text.latex import escaped
from oco.dsl.text.notebook import CODE, marked

_CELL = "text-align:left;padding:2px 10px 2px 0;vertical-align:top;border-top:1px solid rgba(128,128,128,.3)"
_LIST = "margin:0;padding-left:1.2em"
_RULE = "opacity:.6;white-space:nowrap"


def facts_html(facts: Facts) -> str:
    """The ledger as a table; the derivation of each fact unfolds under its reason."""
    rows = [_row(facts[key]) for key in listed(facts)]
    head = "".join(f'<th style="{_CELL}">{name}</th>' for name in ("fact", "value", "status", "why"))
    warnings = "".join(
        f"<li>{html.escape(d.code)}: {marked(d.message)} <small>{marked(d.hint)}</small></li>" for d in facts.warnings
    )
    noted = f'<ul style="{_LIST}">{warnings}</ul>' if warnings else ""
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<table style="border-collapse:collapse">{table}</table>{noted}'


def _row(fact: Fact) -> str:
    why = marked(reason(fact))
    if fact.why is not None and fact.why.premises:
        why = f"<details><summary>{why}</summary>{_tree(fact.why.premises, set())}</details>"
    value = f'<span style="white-space:nowrap">{html.escape(value_text(fact.value))}</span>'
    cells = (_key(fact.key), value, _status(fact), why)
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"


def _key(key: str) -> str:
    """A key, which a narrow page may break after its dots."""
    return f"<code>{html.escape(key).replace('.', '.<wbr>')}</code>"


def _status(fact: Fact) -> str:
    message = f"{fact.status}{', loose' if fact.loose else ''}"
    return f"<b>{message}</b>" if fact.status is Status.REFUTED else message


def fact_html(fact: Fact) -> str:
    """One fact with its whole derivation."""
    head = f"<p>{_key(fact.key)} = {html.escape(value_text(fact.value))} ({_status(fact)})</p>"
    return head + (_tree((fact.why,), set()) if fact.why is not None else "")


def _tree(steps: tuple[Step, ...], shown: set[int]) -> str:
    """Nested lists; a step that was shown is not unfolded again."""
    items = []
    for step in steps:
        again = id(step) in shown
        shown.add(id(step))
        inner = _tree(step.premises, shown) if step.premises and not again else ""
        rule = f'<small style="{_RULE}">{html.escape(step.rule)}</small>'
        items.append(f"<li>{marked(step.claim)} {rule}{inner}</li>")
    return f'<ul style="{_LIST}">{"".join(items)}</ul>'


def facts_latex(facts: Facts) -> str:
    """The ledger as an array: key, value and status."""
    rows = [
        rf"\text{{{escaped(key)}}} & {_tex_value(facts[key])} & \text{{{facts[key].status}}}" for key in listed(facts)
    ]
    return "$$\\begin{array}{lll}\n" + " \\\\\n".join(rows) + "\n\\end{array}$$"


def _tex_value(fact: Fact) -> str:
    """Numbers as TeX writes them, words as text."""
    message = value_text(fact.value)
    if not isinstance(fact.value, int | float) or isinstance(fact.value, bool):
        return rf"\text{{{escaped(message)}}}"
    digits, e, exponent = message.partition("e")
    return rf"{digits} \cdot 10^{{{int(exponent)}}}" if e else r"\infty" if "inf" in message else digits


def fact_latex(fact: Fact) -> str:
    """The derivation as lines of an array, premises indented under what they prove."""
    lines = [f"\\text{{{escaped(fact.key)}}} = {_tex_value(fact)} \\quad\\text{{({fact.status})}}"]
    lines += _latex_lines(fact.why, 1, set()) if fact.why is not None else []
    return "$$\\begin{array}{l}\n" + " \\\\\n".join(lines) + "\n\\end{array}$$"


def _latex_lines(step: Step, depth: int, shown: set[int]) -> Iterator[str]:
    again = id(step) in shown
    shown.add(id(step))
    parts = CODE.split(step.claim)
    message = "".join(
        f"\\texttt{{{escaped(p)}}}" if i % 2 else f"\\text{{{escaped(p)}}}" for i, p in enumerate(parts) if p
    )
    yield "\\quad " * depth + message
    if not again:
        for premise in step.premises:
            yield from _latex_lines(premise, depth + 1, shown)
