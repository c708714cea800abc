"""Atom of the language: one row with all its properties."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Any

from oco.dsl.atoms.forms import Form
from oco.dsl.atoms.norms import Norm
from oco.dsl.dims import Shape
from oco.dsl.expressions import Call, Expr
from oco.dsl.records import dataclass


class Curvature(StrEnum):
    """Curvature of an expression in the decisions."""

    CONSTANT = "constant"
    AFFINE = "affine"
    CONVEX = "convex"
    CONCAVE = "concave"
    UNKNOWN = "unknown"


class Monotone(StrEnum):
    """Monotonicity of an atom in one argument, the others fixed."""

    UP = "nondecreasing"
    DOWN = "nonincreasing"
    NEITHER = "neither"


class Regularity(IntEnum):
    """Regularity of an atom in all arguments together, where it is allowed."""

    ANY = 0
    """Possibly discontinuous."""
    CONTINUOUS = 1
    """Continuous; its derivative, as the rule `vjp` writes it, may jump."""
    SMOOTH = 2
    """Continuously differentiable, with a derivative that is differentiable almost everywhere."""


@dataclass(frozen=True)
class Atom:
    """Row of the table. Every rule gets the call first (its options, its shape, its argument expressions).

    name        the key of the table; in the language the name of the function (CVXPY's where CVXPY has it), for
                operators a word ("add"); internal atoms, made by derivatives alone, start with "_"
    arity       least and greatest number of arguments; greatest None: any
    shape       (call) -> Shape; raises OcoError (OCO3xx) when the arguments do not fit
    lower       (ops, call, *values) -> value, over the primitives: the meaning in every target
    bounds      (call, *intervals) -> Interval (see `dsl/intervals.py`): encloses every value, outward rounded
    curvature   (call, intervals, varies) -> Curvature as a function of the arguments that vary (bools), jointly, on
                those ranges
    monotone    (call, *intervals) -> a Monotone for each argument on those ranges
    vjp         (e, call, cotangent) -> the cotangent of each argument as an Expr, built by the algebra `e`
                (`dsl/algebra.py`); None: no derivative (integers, constants)
    cvxpy       (cp, call, *args) -> the CVXPY expression; None: CVXPY has no equivalent, and the tests give the reason
    operator    written form where it is not a call ("+", "@", ".T"), with its precedence (1 binds loosest)
    parameters  names of the arguments, where they are not x and y; those after the first may be given by name: power(x,
                p = 2)
    allowed     (call, *intervals) -> "" or the reason why an argument's range is not allowed
    proximal    (ops, call, v, w) -> w f'(z) at z = argmin (z - v)^2 / 2 + w f(z), f the atom in its first argument and
                w f convex; it may give None, where this call has no closed form (see `proximal.py`)

    The remaining columns have safe defaults: an atom that sets none of them is a general function that may jump.

    form        algebraic form, for every stage that can do more with a sum, a product or a largest of pieces
    regularity  continuity and smoothness
    exact       `bounds` is the range itself up to rounding, where each entry of the arguments enters once and moves
                alone
    away        (e, call) -> an expression that is nowhere 0 where the atom keeps away from its jumps; without it the
                atom keeps away from them where its range is one number
    decided     (e, call, *intervals) -> another expression of equal value and derivative on those ranges; None: there
                is none
    replay      (call, *ends) -> the least and greatest values on those ranges, each (least, greatest) arrays of the
                argument's shape; written without `bounds`, in plain floating point, for the second reading of proofs
                (see `replay.py`)
    norm        data of a norm of a vector or a matrix for second-order and spectral cones (see `norms.py`)
    latex       LaTeX of a call, with #1 for its argument; "": by its name
    ufunc       NumPy's name of the operator
    several     atom that several arguments mean in a model's text: max(a, b) is maximum(a, b)
    decomposes  its value takes the singular values of its first argument
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
    form: Form | None = None
    regularity: Regularity = Regularity.ANY
    exact: bool = False
    away: Callable[..., Expr] | None = None
    decided: Callable[..., Expr | None] | None = None
    replay: Callable[..., Any] | None = None
    norm: Norm | None = None
    latex: str = ""
    ufunc: str = ""
    several: str = ""
    decomposes: bool = False

    @property
    def argument_names(self) -> tuple[str, ...]:
        """Name of each argument in order; the last one represents any number of them where the arity is open."""
        return self.parameters or ("x", "y")[: self.arity[1]]

    @property
    def by_name(self) -> tuple[str, ...]:
        """Arguments that may be given by name: every one after the first."""
        return () if self.arity[1] is None else self.argument_names[1:]
