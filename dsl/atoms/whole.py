"""When a call gives whole numbers."""

from __future__ import annotations

from oco.dsl.expressions import Call


def whole(call: Call) -> bool:
    """Whole numbers in, whole numbers out."""
    return all(a.integer for a in call.args)


def counting(call: Call) -> bool:
    """Whole numbers always."""
    return True
