"""Derivations as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np

from oco.compiler.prover.phrasing import coordinates, number
from oco.compiler.prover.types import Step, Witness

WIDTH = 116
"""Characters of a line of text."""


def value_text(value: Any) -> str:
    """A fact's value in a few characters."""
    match value:
        case None:
            return "-"
        case bool() | np.bool_():
            return "yes" if value else "no"
        case str():
            return value
        case int() | float() | np.number():
            return number(float(value))
        case dict():
            return f"{len(value)} decisions" if len(value) > 1 else value_text(next(iter(value.values()), None))
        case _:
            array = np.asarray(value)
            return coordinates(array) if array.size <= 3 and array.dtype.kind in "if" else f"{array.size} numbers"


def step_lines(step: Step, depth: int, shown: set[int]) -> Iterator[str]:
    """Step and its premises, indented under the step that uses them. A step that was shown is not shown again."""
    head = "  " * depth
    again = id(step) in shown and step.premises
    where = f" (line {step.span.line})" if step.span is not None else ""
    message = f"{step.claim}{where}   [{step.rule}]{' (as above)' if again else ''}"
    yield from textwrap.wrap(message, max(WIDTH, len(head) + 40), initial_indent=head, subsequent_indent=head + "    ")
    if again:
        return
    shown.add(id(step))
    for premise in step.premises:
        yield from step_lines(premise, depth + 1, shown)


def witness_lines(witness: Witness) -> Iterator[str]:
    """Witness in words, then its values, a line each."""
    yield f"witness: {witness.words} (by {number(witness.violation)})"
    for name, value in witness.values.items():
        yield f"  {name} = {coordinates(np.asarray(value))}"
