"""Which functions have kinks or jumps, and where these lie: derivatives say nothing across a jump."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oco.dsl.expressions import Call, Expr, walk

if TYPE_CHECKING:
    from oco.compiler.facts.setting import Setting

JUMPS = ("_sign", "_positive", "_nonneg", "_peak", "_polar", "_leading", "_unit")
KINKS = (
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
)
KINKED = (*KINKS, *JUMPS, "huber")  # huber has a slope everywhere, and a second derivative almost everywhere


def continuous(expr: Expr) -> bool:
    """Whether the expression has no jumps, so that its derivative tells how it moves."""
    return not any(isinstance(n, Call) and n.atom in JUMPS for n in walk(expr))


def smooth(expr: Expr) -> bool:
    """Whether every function in it has a second derivative."""
    return not any(isinstance(n, Call) and n.atom in KINKED for n in walk(expr))


def differentiable(setting: Setting, expr: Expr) -> bool:
    """Whether no decision in the domain, its boundary included, meets a kink: the gradient that a learner computes is that of one piece."""
    return not any(
        isinstance(n, Call) and n.atom in (*KINKS, *JUMPS) and setting.depends(n) and not _apart(setting, n)
        for n in walk(expr)
    )


def _apart(setting: Setting, node: Call) -> bool:
    """Whether the range of the argument keeps away from the kink."""
    ranges = [setting.ranges(a) for a in node.args]
    if node.atom in ("abs", "pos", "neg", "norm1"):
        return bool(np.all((ranges[0].lo > 0) | (ranges[0].hi < 0)))
    if node.atom == "hinge":
        return bool(np.all((ranges[0].lo > 1) | (ranges[0].hi < 1)))
    if node.atom in ("maximum", "minimum") and len(ranges) == 2:
        return bool(np.all(ranges[0].lo > ranges[1].hi) or np.all(ranges[1].lo > ranges[0].hi))
    return False
