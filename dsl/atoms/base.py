"""What an atom of the language is: one row that says everything about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from oco.dsl.dims import Shape
from oco.dsl.expressions import Call, Expr


class Curvature(StrEnum):
    CONSTANT = "constant"
    AFFINE = "affine"
    CONVEX = "convex"
    CONCAVE = "concave"
    UNKNOWN = "unknown"


class Monotone(StrEnum):
    """How an atom moves with one argument, the others fixed."""

    UP = "nondecreasing"
    DOWN = "nonincreasing"
    NEITHER = "neither"


@dataclass(frozen=True)
class Atom:
    """One row of the table. The rules get the call's argument expressions, or their `Interval`s (see `dsl/intervals.py`).

    name        the name in the language (CVXPY's where CVXPY has it); internal ones, made by derivatives alone, start with "_"
    arity       least and greatest number of arguments; greatest None: any
    shape       (args, options) -> Shape; raises OcoError (OCO3xx) when the arguments do not fit
    lower       (ops, *values, **options) -> value, over the primitives: the meaning in every target
    bounds      (*intervals, **options) -> Interval: encloses every value, outward rounded, entrywise with broadcasting
    curvature   (*intervals) -> Curvature of the atom as a function of all its arguments on those ranges
    monotone    (*intervals) -> a Monotone for each argument on those ranges
    vjp         (call, cotangent) -> the cotangent of each argument as an Expr (None: no derivative, integer or constant)
    cvxpy       (cp, *args, **options) -> the CVXPY expression; None: it has no twin and the tests say why
    operator    how it is written when it is not a call ("+", "@", ".T"), with its precedence
    allowed     (*intervals) -> "" or the words that say why an argument's range is not allowed ("log needs a positive argument")
    """

    name: str
    doc: str
    arity: tuple[int, int | None]
    shape: Callable[[tuple[Expr, ...], dict[str, Any]], Shape]
    lower: Callable[..., Any]
    bounds: Callable[..., Any]
    curvature: Callable[..., Curvature]
    monotone: Callable[..., tuple[Monotone, ...]]
    vjp: Callable[[Call, Expr], tuple[Expr | None, ...]]
    cvxpy: Callable[..., Any] | None
    operator: str = ""
    precedence: int = 0
    options: tuple[str, ...] = ()
    integer: Callable[..., bool] | None = None
    allowed: Callable[..., str] | None = None
