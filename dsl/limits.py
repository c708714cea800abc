"""How much text and how much nesting the language takes: the same for files and for the builder, so that every model can be printed."""

from __future__ import annotations

from oco.dsl.diagnostics import Diagnostic, OcoError
from oco.dsl.expressions import Constant, Expr, walk
from oco.dsl.source import Span

DEEPEST = 200
"""How many levels an expression may nest."""

TEXT_LIMIT = 4 * 2**20
"""How many characters a model file may have."""


def too_deep(span: Span | None) -> Diagnostic:
    return Diagnostic(
        "OCO107", f"this expression nests deeper than {DEEPEST} levels", span, "name its parts with `let`"
    )


def check_depth(expr: Expr, span: Span | None) -> None:
    """Refuse an expression that would nest too deep as text, where an array of numbers counts its axes."""
    levels: dict[int, int] = {}
    for node in walk(expr):
        own = len(node.shape) if isinstance(node, Constant) else 0
        levels[id(node)] = 1 + max((levels[id(child)] for child in node.children), default=own)
    if levels[id(expr)] > DEEPEST:
        raise OcoError(too_deep(span))
