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
    """One row of the table. Every rule gets the call first (its options, its shape, its argument expressions).

    name        the key of the table; in the language the name of the function (CVXPY's where CVXPY has it), for operators a word
                ("add"); internal atoms, made by derivatives alone, start with "_"
    arity       least and greatest number of arguments; greatest None: any
    shape       (call) -> Shape; raises OcoError (OCO3xx) when the arguments do not fit
    lower       (ops, call, *values) -> value, over the primitives: the meaning in every target
    bounds      (call, *intervals) -> Interval (see `dsl/intervals.py`): encloses every value, outward rounded
    curvature   (call, intervals, varies) -> Curvature as a function of the arguments that vary (bools), jointly, on those ranges
    monotone    (call, *intervals) -> a Monotone for each argument on those ranges
    vjp         (e, call, cotangent) -> the cotangent of each argument as an Expr, built by the algebra `e` (`dsl/algebra.py`);
                None: no derivative (whole numbers, constants)
    cvxpy       (cp, call, *args) -> the CVXPY expression; None: it has no twin, and the tests say why
    operator    how it is written when it is not a call ("+", "@", ".T"), with its precedence (1 binds loosest)
    parameters  names of the arguments, where they are not x and y; those after the first may be given by name: power(x, p = 2)
    allowed     (call, *intervals) -> "" or the words that say why an argument's range is not allowed
    proximal    (ops, call, v, w) -> w f'(z) at z = argmin (z - v)^2 / 2 + w f(z), f the atom in its first argument and w f convex; it may
                give None, where this call has no closed form (see `proximal.py`)
    """

    name: str
    doc: str
    arity: tuple[int, int | None]
    shape: Callable[[Call], Shape]
    lower: Callable[..., Any]
    bounds: Callable[..., Any]
    curvature: Callable[..., Curvature]
    monotone: Callable[..., tuple[Monotone, ...]]
    vjp: Callable[..., tuple[Expr | None, ...]]
    cvxpy: Callable[..., Any] | None
    operator: str = ""
    precedence: int = 0
    options: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    integer: Callable[[Call], bool] | None = None
    allowed: Callable[..., str] | None = None
    proximal: Callable[..., Any] | None = None

    @property
    def argument_names(self) -> tuple[str, ...]:
        """Name of each argument in order; the last one stands for any number of them where the arity is open."""
        return self.parameters or ("x", "y")[: self.arity[1]]

    @property
    def by_name(self) -> tuple[str, ...]:
        """Arguments that may be given by name: every one after the first."""
        return () if self.arity[1] is None else self.argument_names[1:]
