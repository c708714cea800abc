"""Rules for calls that give integers."""

from __future__ import annotations

from oco.dsl.expressions import Call


def whole(call: Call) -> bool:
    """True where all arguments are integers."""
    return all(a.integer for a in call.args)


def counting(call: Call) -> bool:
    """True: the result is always whole."""
    return True
