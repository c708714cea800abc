"""Patterns over expressions: what a node is, and its parts."""

from __future__ import annotations

import numpy as np

from oco.dsl.expressions import Call, Constant, Expr


def args_of(node: Expr) -> tuple[Expr, ...]:
    """Arguments of a call; none of anything else."""
    return node.args if isinstance(node, Call) else ()


def options_of(node: Expr) -> tuple[tuple[str, int | float], ...]:
    """Options of a call; none of anything else."""
    return node.options if isinstance(node, Call) else ()


def is_number(node: Expr) -> bool:
    """True for a constant that is a single number."""
    return isinstance(node, Constant) and node.value.array.size == 1 and node.shape == ()


def is_all(node: Expr, value: float) -> bool:
    """True if it is a constant all of whose entries have this value."""
    if not isinstance(node, Constant):
        return False
    entries = node.value.array
    return bool(np.all((entries if any(entries.strides) else entries.flat[0]) == value))
