"""Rules of operations on sizes: how the sizes of the terms of a result come from those of its arguments (see `term_sizes.py`)."""

from __future__ import annotations

from oco.dsl.records import dataclass


@dataclass(frozen=True)
class SizeRule:
    """One rule.

    counted    how many arguments, from the first, have terms that count; None: all have
    adds       the result may be smaller than what it adds up, so that it has terms even where no argument has
    on_sizes   the operation that sizes go through in its place; empty: itself; None: sizes stay as they are
    """

    counted: int | None = None
    adds: bool = False
    on_sizes: str | None = ""


SUM = SizeRule(adds=True)
DIFFERENCE = SizeRule(adds=True, on_sizes="add")
EACH = SizeRule()
"""Sizes of the arguments are factors, or stand beside each other. The least of two has the smaller one, so that a limit of
1e300 makes no rounding of what it limits.
"""
FIRST = SizeRule(counted=1)
"""The first argument is scaled, or has its entries moved, by the others."""
SIGN = SizeRule(on_sizes=None)
