"""Derivations in a notebook: HTML that needs no script or style sheet, and LaTeX for MathJax."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from oco.compiler.prover.derivation import value_text
from oco.compiler.prover.types import Status, Step
from oco.dsl.text.latex import escaped
from oco.dsl.text.notebook import CODE, marked

LIST = "margin:0;padding-left:1.2em"
_RULE = "opacity:.6;white-space:nowrap"


def key_html(key: str) -> str:
    """A key, which a narrow page may break after its dots."""
    return f"<code>{html.escape(key).replace('.', '.<wbr>')}</code>"


def grade_html(status: Status, grade: str) -> str:
    """Status in words, set off where the claim is refuted."""
    return f"<b>{grade}</b>" if status is Status.REFUTED else grade


def derivation_html(key: str, value: Any, status: Status, grade: str, why: Step | None) -> str:
    """Fact with its whole derivation."""
    head = f"<p>{key_html(key)} = {html.escape(value_text(value))} ({grade_html(status, grade)})</p>"
    return head + (steps_html((why,), set()) if why is not None else "")


def steps_html(steps: tuple[Step, ...], shown: set[int]) -> str:
    """Nested lists; a step that was shown is not unfolded again."""
    items = []
    for step in steps:
        again = id(step) in shown
        shown.add(id(step))
        inner = steps_html(step.premises, shown) if step.premises and not again else ""
        rule = f'<small style="{_RULE}">{html.escape(step.rule)}</small>'
        items.append(f"<li>{marked(step.claim)} {rule}{inner}</li>")
    return f'<ul style="{LIST}">{"".join(items)}</ul>'


def value_latex(value: Any) -> str:
    """Numbers as TeX writes them, words as text."""
    message = value_text(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return rf"\text{{{escaped(message)}}}"
    digits, e, exponent = message.partition("e")
    return rf"{digits} \cdot 10^{{{int(exponent)}}}" if e else r"\infty" if "inf" in message else digits


def derivation_latex(key: str, value: Any, status: Status, why: Step | None) -> str:
    """Derivation as lines of an array, premises indented under the claim that they prove."""
    lines = [f"\\text{{{escaped(key)}}} = {value_latex(value)} \\quad\\text{{({status})}}"]
    lines += _step_lines(why, 1, set()) if why is not None else []
    return "$$\\begin{array}{l}\n" + " \\\\\n".join(lines) + "\n\\end{array}$$"


def _step_lines(step: Step, depth: int, shown: set[int]) -> Iterator[str]:
    again = id(step) in shown
    shown.add(id(step))
    parts = CODE.split(step.claim)
    message = "".join(
        f"\\texttt{{{escaped(p)}}}" if i % 2 else f"\\text{{{escaped(p)}}}" for i, p in enumerate(parts) if p
    )
    yield "\\quad " * depth + message
    if not again:
        for premise in step.premises:
            yield from _step_lines(premise, depth + 1, shown)
