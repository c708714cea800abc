"""Previous decisions in expressions: over streams of their own, or as the decision itself where none moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from oco.dsl.diagnostics import fail
from oco.dsl.expressions import Expr, Kind, Name, names, rewrite
from oco.dsl.previous import decision_of


class Named(Protocol):
    """Stream of a previous decision."""

    @property
    def name(self) -> str:
        """Its name in the problem."""


def of_previous(expr: Expr, streams: Mapping[str, Named]) -> Expr:
    """Expression with each `prev(x)` as its stream."""

    def renamed(node: Expr) -> Expr:
        if isinstance(node, Name) and node.name in streams:
            return Name(streams[node.name].name, Kind.STREAM, shape=node.shape, span=node.span)
        return node

    return rewrite(expr, renamed)


def standing_still(expr: Expr) -> Expr:
    """Expression with each `prev(x)` as x."""

    def still(node: Expr) -> Expr:
        if isinstance(node, Name) and (x := decision_of(node.name)):
            return Name(x, Kind.DECISION, shape=node.shape, span=node.span)
        return node

    return rewrite(expr, still)


def refuse_previous(expr: Expr) -> None:
    """Raise OCO217 where an expression holds a previous decision."""
    for name in names(expr, Kind.STREAM):
        if decision_of(name):
            message = f"`{name}` stands outside the constraints that the decision of each round meets exactly"
            raise fail("OCO217", message, expr.span)
