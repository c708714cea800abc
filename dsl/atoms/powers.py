"""Powers with any real exponent: the rules of `**` and of `power`."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.atoms.base import Curvature, Monotone
from oco.dsl.atoms.rules import AFFINE, CONCAVE, CONVEX, DOWN, NEITHER, UNKNOWN, UP, Intervals, Varies, by_sign
from oco.dsl.expressions import Call, Constant, Expr
from oco.dsl.intervals import Interval


def fixed(expr: Expr) -> float | None:
    """Exponent where it is one literal number."""
    return float(expr.value.array) if isinstance(expr, Constant) and expr.shape == () else None


def _whole(exponent: Interval) -> bool:
    return exponent.is_point and bool(np.all(exponent.lo == np.round(exponent.lo)))


def _parity(exponent: Interval) -> int | None:
    """Parity 0 or 1 where every exponent is an integer of that parity."""
    if not _whole(exponent):
        return None
    odd = np.mod(exponent.lo, 2)
    return int(odd.flat[0]) if odd.size and bool(np.all(odd == odd.flat[0])) else None


def curvature(call: Call, intervals: Intervals, varies: Varies) -> Curvature:
    """Curvature of x**p in x by the exponent and the sign of x; a**x is convex in x for a > 0."""
    x, p = intervals
    if varies[1]:
        return CONVEX if not varies[0] and x.positive else UNKNOWN
    if p.is_point and bool(np.all((p.lo == 0) | (p.lo == 1))):
        return AFFINE
    parity = _parity(p)
    if x.nonpositive and parity is not None and not x.positive:
        return _on_negatives(x, p, parity)
    if parity == 0 and p.least >= 2:
        return CONVEX
    # Outside x >= 0 a power that is not whole has no value; `allowed` says so.
    if _whole(p) and not x.nonnegative:
        return UNKNOWN
    if p.least >= 1 or p.greatest <= 0:
        return CONVEX
    return CONCAVE if p.least >= 0 and p.greatest <= 1 else UNKNOWN


def _on_negatives(x: Interval, p: Interval, parity: int) -> Curvature:
    if p.least < 0 and not (-x).positive:
        return UNKNOWN
    return CONVEX if parity == 0 else CONCAVE


def monotone(call: Call, x: Interval, p: Interval) -> tuple[Monotone, Monotone]:
    """Monotonicity in the base and in the exponent."""
    return _in_base(x, p), _in_exponent(x)


def _in_base(x: Interval, p: Interval) -> Monotone:
    parity = _parity(p)
    if parity is not None and not x.nonnegative:
        if p.least >= 0:
            return UP if parity == 1 else by_sign(x)
        if not (-x).positive:
            return NEITHER
        return DOWN if parity == 1 else UP
    if _whole(p) and not x.nonnegative:
        return NEITHER
    return UP if p.least >= 0 else DOWN if p.greatest <= 0 else NEITHER


def _in_exponent(x: Interval) -> Monotone:
    return UP if x.least >= 1 else DOWN if x.nonnegative and x.greatest <= 1 else NEITHER


def allowed(call: Call, x: Interval, p: Interval) -> str:
    """Reason why a range is not allowed: whole powers take any base (negative ones any but 0); all others a nonnegative
    base.
    """
    if p.least < 0 and x.least <= 0 <= x.greatest:
        return f"a negative power needs a base that is never 0, and the range of this one is {x}"
    if not _whole(p) and not x.nonnegative:
        return f"a power that is not an integer needs a nonnegative base, and the range of this one is {x}"
    return ""


def lower(o: Any, call: Call, x: Any, p: Any) -> Any:
    """Value of x**p over the primitives, with simple operations for common exponents."""
    base = o.to_float(x) if call.args[0].integer else x
    match fixed(call.args[1]):
        case 1.0:
            return base
        case 2.0:
            return base * base
        case 3.0:
            return base * base * base
        case 0.5:
            return o.sqrt(base)
        case -1.0:
            return 1.0 / base
        case _:
            return o.pow(base, p)


def vjp(e: Any, call: Call, g: Expr) -> tuple[Expr | None, Expr | None]:
    """Cotangents of d x**p = p x**(p - 1) dx + x**p log(x) dp."""
    x, p = call.args
    towards_x = e.mul(g, e.mul(p, e.pow(x, e.sub(p, e.number(1)))))
    towards_p = None if isinstance(p, Constant) else e.mul(g, e.mul(call, e.call("log", x)))
    return e.collapse(towards_x, call.shape, x.shape), None if towards_p is None else e.collapse(
        towards_p, call.shape, p.shape
    )


def cvxpy_form(cp: Any, call: Call, x: Any, p: Any) -> Any:
    """CVXPY expression, whose power takes one fixed number; a varying exponent gives an exponential, convex over a
    positive base alone.
    """
    if p.is_constant() and p.ndim == 0:
        return _power_of_number_in_cvxpy(cp, x, float(p.value))
    if p.is_constant():
        powers = p.value + np.zeros(np.broadcast_shapes(x.shape, p.shape))
        bases = cp.vec(x + np.zeros(powers.shape), order="C")
        parts = [_power_of_number_in_cvxpy(cp, bases[k], float(power)) for k, power in enumerate(powers.ravel())]
        return cp.reshape(cp.hstack(parts), powers.shape, order="C")
    if x.is_constant() and np.all(x.value > 0):
        return cp.exp(cp.multiply(np.log(x.value), p))
    return cp.exp(cp.multiply(p, cp.log(x + 0 * p)))


def _power_of_number_in_cvxpy(cp: Any, x: Any, p: float) -> Any:
    """Number for p = 0: CVXPY treats x**0 as constant, and fails on objectives that are sums with it."""
    return cp.power(x, p) if p else cp.Constant(np.ones(x.shape))


POWER_RULES: dict[str, Any] = {
    "lower": lower,
    "bounds": lambda call, x, p: x.power(p),
    "curvature": curvature,
    "monotone": monotone,
    "vjp": vjp,
    "cvxpy": cvxpy_form,
    "allowed": allowed,
}
