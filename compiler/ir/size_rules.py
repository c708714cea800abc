"""Rules of operations on sizes: how the sizes of the terms of a result come from those of its arguments (see `term_sizes.py`)."""

from __future__ import annotations

from oco.dsl.records import dataclass


@dataclass(frozen=True)
class SizeRule:
    """One rule.

    counted    how many arguments, from the first, have terms that count; None: all have
    adds       the result may be smaller than what it adds up, so that it has terms even where no argument has
    on_sizes   the operation that sizes go through in its place; empty: itself; None: sizes stay as they are
    picks      of two arguments the size of the smaller one (-1) or of the larger one (1) counts, however large the other is; 0: both do
    """

    counted: int | None = None
    adds: bool = False
    on_sizes: str | None = ""
    picks: int = 0


SUM = SizeRule(adds=True)
DIFFERENCE = SizeRule(adds=True, on_sizes="add")
EACH = SizeRule()
"""Sizes of the arguments are factors, or stand beside each other."""
FIRST = SizeRule(counted=1)
"""The first argument is scaled, or has its entries moved, by the others."""
SIGN = SizeRule(on_sizes=None)
SMALLER, LARGER = SizeRule(picks=-1), SizeRule(picks=1)
