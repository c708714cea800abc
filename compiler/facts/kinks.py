"""Which functions have kinks or jumps, and where these lie: derivatives say nothing across a jump.

A function whose gradient is made of continuous pieces that meet without a jump has a second derivative almost everywhere on every
segment, and its gradient is Lipschitz continuous with any bound of that derivative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oco.compiler.calculus import vector_jacobian
from oco.dsl.build import applied
from oco.dsl.expressions import Call, Expr, Kind, Name, walk

if TYPE_CHECKING:
    from oco.compiler.facts.setting import Setting

JUMPS = ("_sign", "_positive", "_nonneg", "_within", "_peak", "_polar", "_leading", "_unit")
KINKED = (
    "abs",
    "pos",
    "neg",
    "hinge",
    "maximum",
    "minimum",
    "max",
    "min",
    "norm1",
    "norm2",
    "norm_inf",
    "nuclear_norm",
    "sigma_max",
    "_clip",
    *JUMPS,
)


def continuous(expr: Expr) -> bool:
    """Whether the expression has no jumps, so that its derivative tells how it moves."""
    return not any(isinstance(n, Call) and n.atom in JUMPS for n in walk(expr))


def smooth(expr: Expr) -> bool:
    """Whether every function in it has a continuous slope, with a derivative almost everywhere."""
    return not any(isinstance(n, Call) and n.atom in KINKED for n in walk(expr))


def differentiable(setting: Setting, expr: Expr) -> bool:
    """Whether the gradient of every entry, as a learner computes it, has no jump at any decision in the domain, its boundary included."""
    if smooth(expr):
        return True
    weights = Name("weights of the entries", Kind.STREAM, shape=expr.shape)
    slopes = vector_jacobian(expr, weights, setting.decisions).values()
    return all(_steady(setting, n) for g in slopes for n in walk(setting.simplify(g)) if isinstance(n, Call))


def _steady(setting: Setting, node: Call) -> bool:
    """Whether the node has no jump, or keeps away from it."""
    if node.atom not in JUMPS or not setting.depends(node):
        return True
    if node.atom == "_unit":
        return setting.ranges(applied("norm2", node.args, node.options)).positive
    return setting.ranges(node).is_point
