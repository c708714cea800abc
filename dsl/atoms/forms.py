"""Algebraic forms of atoms: a closed list that every later stage can match on.

An atom without a form is a general function: stages fall back to its bounds, curvature and derivative. Forms compare by
identity, so rows take the constants below where there is one. Patterns read `match form_of(node), node.children:` and
then `case forms.TIMES, (left, right):`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from oco.dsl.expressions import Expr
from oco.dsl.records import dataclass


@dataclass(frozen=True, eq=False)
class Form:
    """Algebraic form of an atom."""


@dataclass(frozen=True, eq=False)
class Signed(Form):
    """Sum of the arguments with these signs, entry by entry."""

    signs: tuple[int, ...]


class Pairing(StrEnum):
    """Pairs of entries that a product multiplies."""

    ENTRIES = "entry by entry"
    MATRICES = "as matrices, where a vector stands for a row or a column"
    ALL = "every entry with every entry"


@dataclass(frozen=True, eq=False)
class Bilinear(Form):
    """Product of two arguments, linear in either."""

    pairing: Pairing


@dataclass(frozen=True, eq=False)
class Quotient(Form):
    """First argument over the second, entry by entry."""


@dataclass(frozen=True, eq=False)
class Remainder(Form):
    """Remainder of the first argument on division by the second, integers, entry by entry."""


@dataclass(frozen=True, eq=False)
class Power(Form):
    """Power of the first argument, entry by entry; the second argument is the exponent where it is None here."""

    exponent: float | None = None


@dataclass(frozen=True, eq=False)
class Logarithm(Form):
    """Natural logarithm of `shift` plus the argument, entry by entry."""

    shift: float = 0.0


@dataclass(frozen=True, eq=False)
class Exponential(Form):
    """Exponential of the argument, entry by entry."""


@dataclass(frozen=True, eq=False)
class SoftPlus(Form):
    """Soft positive part log(1 + exp(x)), entry by entry."""


@dataclass(frozen=True, eq=False)
class Total(Form):
    """Sum over the entries, or those along an axis, of the entrywise atom `of` ("": of the entries themselves).

    mean  divided by their number
    root  the square root of that sum
    """

    of: str = ""
    mean: bool = False
    root: bool = False

    @property
    def entrywise(self) -> bool:
        """True where it is the plain sum of a function of each entry."""
        return bool(self.of) and not self.mean and not self.root


@dataclass(frozen=True, eq=False)
class Extreme(Form):
    """Largest (or smallest) of several pieces, each affine in the arguments.

    pieces  (algebra, *arguments) -> the pieces, each of the shape of an argument or a number
    over    the extreme is also taken over the entries of each piece, or those along an axis
    """

    largest: bool
    pieces: Callable[..., tuple[Expr, ...]]
    over: bool = False


@dataclass(frozen=True, eq=False)
class Transposed(Form):
    """Transpose of a matrix."""


@dataclass(frozen=True, eq=False)
class Reshaped(Form):
    """Entries in another shape, in C order."""


@dataclass(frozen=True, eq=False)
class Stretched(Form):
    """Argument broadcast to the shape of the call."""


@dataclass(frozen=True, eq=False)
class Scattered(Form):
    """Zeros with the first argument added at the places of the others, the items of an index: the transpose of
    indexing.
    """


@dataclass(frozen=True, eq=False)
class Diagonal(Form):
    """Matrix with a vector on its diagonal, the diagonal of a matrix, or the sum of it: linear in the entries."""


@dataclass(frozen=True, eq=False)
class Quadratic(Form):
    """Quadratic form x' P x for the vector and the matrix that are its arguments."""


@dataclass(frozen=True, eq=False)
class SoftMaximum(Form):
    """Soft maximum log(sum(exp(x))), over all entries or along an axis."""


@dataclass(frozen=True, eq=False)
class UnitVector(Form):
    """Vector of Euclidean norm at most 1 made of the entries, or one along an axis."""


@dataclass(frozen=True, eq=False)
class Jump(Form):
    """Piecewise constant function of each entry, which jumps at 0."""


@dataclass(frozen=True, eq=False)
class Uniform(Form):
    """Array of equal entries; the arguments are its shape."""

    value: float


SUM, DIFFERENCE, NEGATIVE = Signed((1, 1)), Signed((1, -1)), Signed((-1,))
TIMES, MATRIX_PRODUCT, OUTER_PRODUCT = (Bilinear(p) for p in Pairing)
QUOTIENT, REMAINDER = Quotient(), Remainder()
SQUARE, ROOT, RECIPROCAL = Power(2.0), Power(0.5), Power(-1.0)
EXPONENTIAL, LOGARITHM, SOFT_PLUS = Exponential(), Logarithm(), SoftPlus()
TOTAL, MEAN = Total(), Total(mean=True)
SUM_OF_SQUARES, SUM_OF_SIZES, LENGTH = Total("square"), Total("abs"), Total("square", root=True)
TRANSPOSE = Transposed()
SIGN, STEP = Jump(), Jump()


def _itself(e: Any, *args: Expr) -> tuple[Expr, ...]:
    return args


def _both(e: Any, x: Expr) -> tuple[Expr, ...]:
    return x, e.minus(x)


SIZE = Extreme(True, _both)
LARGEST_SIZE = Extreme(True, _both, over=True)
LARGEST, SMALLEST = Extreme(True, _itself), Extreme(False, _itself)
LARGEST_ENTRY, SMALLEST_ENTRY = Extreme(True, _itself, over=True), Extreme(False, _itself, over=True)
POSITIVE_PART = Extreme(True, lambda e, x: (x, e.number(0)))
NEGATIVE_PART = Extreme(True, lambda e, x: (e.minus(x), e.number(0)))
HINGE = Extreme(True, lambda e, x: (e.sub(e.number(1), x), e.number(0)))
