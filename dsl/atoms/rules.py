"""Curvature, monotonicity and range rules that many atoms share. `varies` flags the arguments that depend on the
decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oco.dsl.atoms.base import Curvature, Monotone
from oco.dsl.expressions import Call, Name
from oco.dsl.intervals import Interval

Intervals = tuple[Interval, ...]
Varies = tuple[bool, ...]
CurvatureRule = Callable[[Call, Intervals, Varies], Curvature]
UP, DOWN, NEITHER = Monotone.UP, Monotone.DOWN, Monotone.NEITHER
CONVEX, CONCAVE, AFFINE, UNKNOWN = Curvature.CONVEX, Curvature.CONCAVE, Curvature.AFFINE, Curvature.UNKNOWN


def always(curvature: Curvature) -> CurvatureRule:
    """Rule of one curvature for all arguments and ranges."""
    return lambda call, intervals, varies: curvature


def up(call: Call, *intervals: Interval) -> tuple[Monotone, ...]:
    """Nondecreasing in every argument."""
    return (UP,) * len(intervals)


def down(call: Call, *intervals: Interval) -> tuple[Monotone, ...]:
    """Nonincreasing in every argument."""
    return (DOWN,) * len(intervals)


def neither(call: Call, *intervals: Interval) -> tuple[Monotone, ...]:
    """Not monotone in any argument."""
    return (NEITHER,) * len(intervals)


def by_sign(x: Interval) -> Monotone:
    """Monotonicity in a factor, or of an even function: up where the range is nonnegative, down where it is
    nonpositive.
    """
    return UP if x.nonnegative else DOWN if x.nonpositive else NEITHER


def even(call: Call, x: Interval, *rest: Interval) -> tuple[Monotone, ...]:
    """Monotonicity of an even convex function of the first argument."""
    return (by_sign(x), *(NEITHER for _ in rest))


def even_curvature(call: Call, intervals: Intervals, varies: Varies) -> Curvature:
    """Curvature of |x| and its sums: affine where every entry keeps away from 0. At 0 itself the derivative is not
    one-sided.
    """
    x = intervals[0]
    return AFFINE if bool(np.all((x.lo > 0) | (x.hi < 0))) else CONVEX


def hinged_at(corner: float) -> CurvatureRule:
    """Rule for a function that is affine on either side of one point, convex over it and at it."""

    def rule(call: Call, intervals: Intervals, varies: Varies) -> Curvature:
        x = intervals[0]
        return AFFINE if bool(np.all((x.lo > corner) | (x.hi < corner))) else CONVEX

    return rule


def same(call: Call) -> bool:
    """True where both arguments are one expression: a shared node, or one name."""
    left, right = call.args
    return left is right or (isinstance(left, Name) and left == right)


def bilinear(call: Call, intervals: Intervals, varies: Varies) -> Curvature:
    """Curvature of a product: affine in one argument when the other is fixed; the inner product of a vector with itself
    is convex.
    """
    if not all(varies):
        return AFFINE
    return CONVEX if same(call) and (call.atom == "mul" or call.shape == ()) else UNKNOWN


def bilinear_monotone(call: Call, left: Interval, right: Interval) -> tuple[Monotone, ...]:
    """Monotonicity of a product by the sign of the other argument."""
    return by_sign(right), by_sign(left)


def needs(kind: str, holds: Callable[[Interval], bool], which: int = 0) -> Callable[..., str]:
    """Rule `allowed` that argument `which` satisfies `holds`, with the reason "NAME needs KIND"."""

    def rule(call: Call, *intervals: Interval) -> str:
        return "" if holds(intervals[which]) else f"{call.atom} needs {kind}, and its range is {intervals[which]}"

    return rule


def positive(x: Interval) -> bool:
    """True where the range is positive."""
    return x.positive


def nonnegative(x: Interval) -> bool:
    """True where the range is nonnegative."""
    return x.nonnegative


def axis(call: Call) -> int | None:
    """Axis of a reduction; None for all entries."""
    given = call.option("axis")
    return None if given is None else int(given)


def kept(call: Call) -> Any:
    """Shape of the argument with length 1 along the reduced axis."""
    at = axis(call)
    shape = call.args[0].shape
    return (1,) * len(shape) if at is None else (*shape[:at], 1, *shape[at + 1 :])
