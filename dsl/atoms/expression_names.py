"""Names of expressions in messages to the user."""

from __future__ import annotations

from oco.dsl.dims import show
from oco.dsl.expressions import Constant, Expr, Name

LONGEST = 40  # characters of an argument that a sentence writes out


def describe(expr: Expr, otherwise: str = "this expression") -> str:
    """Expression as the user wrote it, in backticks, where that is short; else `otherwise`."""
    if isinstance(expr, Name):
        return f"`{expr.name}`"
    if expr.span is not None:
        text = " ".join(expr.span.text.split())
        if 0 < len(text) <= LONGEST:
            return f"`{text}`"
    if isinstance(expr, Constant) and expr.shape == ():
        return f"`{expr.value.array.item()}`"
    return otherwise


def with_shape(expr: Expr, otherwise: str = "this expression") -> str:
    """Phrase with a shape: `x` has shape [3]; `b` is a number."""
    verb = f"has shape {show(expr.shape)}" if expr.shape else "is a number"
    return f"{describe(expr, otherwise)} {verb}"
