"""Values in which a domain says what it is: where linear functions are greatest, one row or sum of its entries, one quadratic, factors."""

from __future__ import annotations

from oco.compiler.domains.norms import Floats
from oco.dsl.records import dataclass


@dataclass(frozen=True)
class LinearBound:
    """A bound of linear functions with coefficients in ranges over a set, rounded up; `attained` where it is their greatest value."""

    value: float
    attained: bool


@dataclass(frozen=True)
class EntrySum:
    """sum f(x_i) <= level, or == level where `equal`.

    of      the atom f of each entry; "": the entry itself
    search  factor of the steepest slope of a function of one entry up to which its multiplier is searched for
    """

    of: str
    level: float
    equal: bool = False
    search: float = 1.0


@dataclass(frozen=True, eq=False)
class AffineRow:
    """<weights, x> <= total, or == total where `equal`; `weights` has the shape of x."""

    weights: Floats
    total: float
    equal: bool


@dataclass(frozen=True, eq=False)
class QuadraticInequality:
    """constant + <linear, x> + x' square x / 2 <= 0 for flattened x; a vector `square` is the diagonal of a matrix."""

    constant: float
    linear: Floats
    square: Floats


@dataclass(frozen=True)
class FactorForm:
    """Points kept as factors U diag(s) V'; `identity`: with a multiple of the identity beside them."""

    identity: bool
