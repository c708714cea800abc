"""The operators."""

from __future__ import annotations

from oco.dsl.atoms import shapes
from oco.dsl.atoms.base import Atom
from oco.dsl.expressions import Call


def whole(call: Call) -> bool:
    """Whole numbers in, whole numbers out."""
    return all(a.integer for a in call.args)


OPERATORS: tuple[Atom, ...] = (
    Atom(
        "range",
        "whole numbers from a to b, both included",
        (2, 2),
        shapes.whole_range,
        operator="..",
        precedence=1,
        integer=lambda c: True,
    ),
    Atom("add", "the sum, entry by entry", (2, 2), shapes.entrywise, operator="+", precedence=2, integer=whole),
    Atom("sub", "the difference, entry by entry", (2, 2), shapes.entrywise, operator="-", precedence=2, integer=whole),
    Atom("mul", "the product, entry by entry", (2, 2), shapes.entrywise, operator="*", precedence=3, integer=whole),
    Atom("div", "the quotient, entry by entry", (2, 2), shapes.entrywise, operator="/", precedence=3),
    Atom("matmul", "the matrix product", (2, 2), shapes.product, operator="@", precedence=3, integer=whole),
    Atom("minus", "the negative of every entry", (1, 1), shapes.entrywise, operator="-", precedence=4, integer=whole),
    Atom("pow", "the left side to the power of the right", (2, 2), shapes.entrywise, operator="**", precedence=5),
    Atom("transpose", "the transpose", (1, 1), shapes.transposed, operator=".T", precedence=6, integer=whole),
)
