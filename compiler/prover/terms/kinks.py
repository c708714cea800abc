"""Kinks and jumps of functions, and the places where they lie: derivatives say nothing across a jump.

A function whose gradient is made of continuous pieces that meet without a jump has a second derivative almost everywhere on every
segment, and its gradient is Lipschitz continuous with any bound of that derivative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oco.compiler.problem.calculus import vector_jacobian
from oco.dsl import algebra
from oco.dsl.atoms import ATOMS, Regularity, regularity_of
from oco.dsl.expressions import Call, Expr, Kind, Name, walk

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext


def jumps(node: Expr) -> bool:
    """True if the function of a node may jump."""
    return regularity_of(node) is Regularity.ANY


def distance(node: Call) -> Expr | None:
    """An expression that is nowhere 0 where the function of the node keeps away from its jumps; None where none is known."""
    away = ATOMS[node.atom].away
    return None if away is None else away(algebra, node)


def continuous(expr: Expr) -> bool:
    """True if the expression has no jumps, so that its derivative bounds its change."""
    return not any(map(jumps, walk(expr)))


def smooth(expr: Expr) -> bool:
    """True if every function in it has a continuous slope, with a derivative almost everywhere."""
    return all(regularity_of(n) is Regularity.SMOOTH for n in walk(expr))


def differentiable(setting: ProofContext, expr: Expr) -> bool:
    """True if the gradient of every entry, as a learner computes it, has no jump on the domain, boundary included."""
    if smooth(expr):
        return True
    weights = Name("weights of the entries", Kind.STREAM, shape=expr.shape)
    slopes = vector_jacobian(expr, weights, setting.decisions).values()
    return all(_steady(setting, n) for g in slopes for n in walk(setting.simplify(g)) if isinstance(n, Call))


def _steady(setting: ProofContext, node: Call) -> bool:
    """True if the node has no jump, or keeps away from it."""
    if not jumps(node) or not setting.depends(node) or setting.ranges(node).is_point:
        return True
    apart = distance(node)
    return apart is not None and setting.ranges(apart).abs().positive
