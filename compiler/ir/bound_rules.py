"""Lower bounds of what an operation gives, from lower bounds of its arguments (None where there is none). See `lower_bounds.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from oco.compiler.ir.program import DType, Equation, Literal

_ROUNDING = 1 - 1e-15

BoundRule = Callable[[Equation, Sequence[float | None]], float | None]


def of_all(fn: Callable[..., float]) -> BoundRule:
    """Rule for arguments that all have bounds."""
    return lambda e, args: None if None in args else fn(*args)


def product(e: Equation, args: Sequence[float | None]) -> float | None:
    """Lower bound of a b: of factors that are not negative, or of a square."""
    a, b = args
    if a is not None and b is not None and a >= 0 and b >= 0:
        return a * b * _ROUNDING
    return 0.0 if e.args[0] == e.args[1] else None


def quotient(e: Equation, args: Sequence[float | None]) -> float | None:
    """Lower bound of a / b, where neither is negative."""
    (a, b), divisor = args, e.args[1]
    if a is None or b is None or a < 0 or b < 0:
        return None
    return a / divisor.value * _ROUNDING if isinstance(divisor, Literal) and divisor.value > 0 else 0.0


def root(e: Equation, args: Sequence[float | None]) -> float | None:
    """Lower bound of a square root."""
    return math.sqrt(args[0]) * _ROUNDING if args[0] is not None and args[0] >= 0 else 0.0


def larger(e: Equation, args: Sequence[float | None]) -> float | None:
    """Lower bound of a maximum: the larger of those known."""
    return max((a for a in args if a is not None), default=None)


def first(e: Equation, args: Sequence[float | None]) -> float | None:
    """Bound for operations that give entries of their first argument."""
    return args[0]


def converted(e: Equation, args: Sequence[float | None]) -> float | None:
    """Lower bound of a truth value as a number, which is 0 or 1, and of a number."""
    return 0.0 if e.args[0].type.dtype is DType.BOOL else args[0]


def total(e: Equation, args: Sequence[float | None]) -> float | None:
    """Lower bound of a sum of entries: 0 where none is negative."""
    return 0.0 if args[0] is not None and args[0] >= 0 else None


def nonnegative(e: Equation, args: Sequence[float | None]) -> float | None:
    """Bound of an operation that is never below 0."""
    return 0.0


def absolute(e: Equation, args: Sequence[float | None]) -> float | None:
    """Lower bound of an absolute value."""
    return max(args[0] or 0.0, 0.0)


def sum_of_two(e: Equation, args: Sequence[float | None]) -> float | None:
    """Lower bound of a + b, rounded downwards."""
    return of_all(lambda a, b: (a + b) * (_ROUNDING if a + b > 0 else 1 / _ROUNDING))(e, args)


def chosen(e: Equation, args: Sequence[float | None]) -> float | None:
    """Bound of `where`, whichever side is taken."""
    return of_all(min)(e, args[1:])


def inner_product(e: Equation, args: Sequence[float | None]) -> float | None:
    """Bound of an inner product: 0 where no factor is negative, or a vector meets itself."""
    return 0.0 if e.args[0] == e.args[1] or all(a is not None and a >= 0 for a in args) else None


smallest: BoundRule = of_all(lambda *bounds: min(bounds))
