"""Exp-concavity: the largest theta that is found with exp(-theta f) concave in the decisions, for every value of the streams.

As exp(-theta f) is concave where theta grad f grad f' <= hess f, the number r = 1 / theta adds up over sums, by the inequality of Cauchy
and Schwarz, and grows with a factor as the function does. It is 1 for -log of a concave function, 2 max u^2 for the square of an affine
u (2 max |u|^2 for a sum of them), the largest exp(u) for exp(u) and for log(1 + exp(u)), and at most G^2 / mu where the function is
mu-strongly convex with gradients of norm G.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.curvature.composition import CONCAVE_KINDS, FLAT_KINDS
from oco.compiler.prover.domain import downward
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.phrasing import number
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.dsl.atoms import form_of, forms
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Expr

Floats = np.ndarray[Any, Any]
KEY = "loss.exp_concavity"


def exp_concavity(setting: ProofContext, loss: Mapping[str, Fact]) -> Fact:
    """The fact on the loss, from its expression and the facts on it; unknown where no theta > 0 is found."""
    expr = setting.canonical.objective
    r = float(inverse(setting, setting.simplify(expr), 1))
    modulus, slope = loss["loss.strong_convexity.l2"].value, loss["loss.lipschitz.l2"].value
    if modulus and slope is not None:
        r = min(r, slope**2 / modulus)
    theta = downward(1.0 / r) if 0.0 < r < math.inf else 0.0
    if theta <= 0.0:
        return Fact(KEY, None, Status.UNKNOWN)
    why = Step(ProofRule.EXP_CONCAVITY, f"exp(-{number(theta)} f) is concave, f the loss", theta, (), expr.span, expr)
    return Fact(KEY, theta, Status.PROVED, why, loose=True)


def inverse(setting: ProofContext, expr: Expr, sign: int) -> Floats:
    """1 / theta of the entries of `sign` times an expression, of its shape; 0 where it is constant, infinite where nothing is found."""
    shape = known(expr.shape)
    none = np.full(shape, np.inf)
    if not setting.depends(expr):
        return np.zeros(shape)
    if not isinstance(expr, Call):
        return none
    match form_of(expr), expr.args:
        case forms.Signed(signs), args:
            parts = [np.broadcast_to(inverse(setting, a, sign * own), shape) for own, a in zip(signs, args)]
            return np.asarray(np.sum(parts, axis=0))
        case (forms.TIMES, (factor, other)) if not setting.depends(factor) or not setting.depends(other):
            factor, other = (factor, other) if not setting.depends(factor) else (other, factor)
            range_ = setting.ranges(factor)
            if not (range_.nonnegative or range_.nonpositive):
                return none
            size = np.broadcast_to(range_.hi if range_.nonnegative else -range_.lo, shape)
            r = np.broadcast_to(inverse(setting, other, sign if range_.nonnegative else -sign), shape)
            return np.asarray(np.multiply(size, r, out=np.zeros(shape), where=size > 0.0))
        case (forms.QUOTIENT, (above, below)) if not setting.depends(below) and setting.ranges(below).positive:
            least = np.broadcast_to(setting.ranges(below).lo, shape)
            return np.asarray(np.broadcast_to(inverse(setting, above, sign), shape) / least)
        case forms.Total(of="", root=False, mean=mean), (whole, *rest) if not rest and shape == ():
            entries = np.broadcast_to(inverse(setting, whole, sign), known(whole.shape))
            return np.asarray(entries.sum() / (max(entries.size, 1) if mean else 1))
        case forms.Logarithm(), (inside,) if sign < 0 and setting.composition(inside) in CONCAVE_KINDS:
            return np.ones(shape)
        case ((forms.SQUARE | forms.SUM_OF_SQUARES), (inside, *_)) if sign > 0 and _is_affine(setting, inside):
            return np.asarray(2.0 * np.broadcast_to(setting.ranges(expr).hi, shape))
        case ((forms.EXPONENTIAL | forms.SOFT_PLUS), (inside,)) if sign > 0 and _is_affine(setting, inside):
            with np.errstate(over="ignore"):
                return np.asarray(np.exp(np.broadcast_to(setting.ranges(inside).hi, shape)))
    return none


def _is_affine(setting: ProofContext, expr: Expr) -> bool:
    return setting.composition(expr) in FLAT_KINDS
