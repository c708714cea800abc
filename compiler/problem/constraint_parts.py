"""Parts of a constraint in canonical form: its two sides as one expression, and the price of its violation."""

from __future__ import annotations

import numpy as np

from oco.compiler.problem.folding import Folding
from oco.dsl.build import call
from oco.dsl.diagnostics import fail
from oco.dsl.expressions import Constant, Expr
from oco.dsl.statements import Constraint


def penalties_of(c: Constraint, folding: Folding, shape: tuple[int, ...]) -> tuple[float, ...]:
    """Loss that a unit of violation of each entry is worth. Raises OCO527 where one is not a positive number."""
    if c.penalty is None:
        return ()
    values = np.broadcast_to(folding.array(c.penalty), shape).ravel()
    if not np.all((values > 0) & np.isfinite(values)):
        worst = float(values[~((values > 0) & np.isfinite(values))][0])
        message = f"the penalty of `{c.label}` is {worst:g}; a unit of violation must cost something"
        raise fail(
            "OCO527", message, c.penalty.span or c.span, "write a positive number in units of the loss, or leave it out"
        )
    return tuple(values.tolist())


def difference(left: Expr, right: Expr) -> Expr:
    """`left - right`, without the subtraction of a zero that changes nothing."""
    if isinstance(right, Constant) and not right.value.array.any() and right.shape in ((), left.shape):
        return left
    return call("sub", left, right)
