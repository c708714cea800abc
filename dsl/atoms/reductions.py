"""Functions of all entries, or of those along one axis."""

from __future__ import annotations

from oco.dsl.atoms.base import Atom
from oco.dsl.atoms.operators import whole
from oco.dsl.atoms.shapes import reduced

AXIS = ("axis",)

REDUCTIONS: tuple[Atom, ...] = (
    Atom("sum", "the sum", (1, 1), reduced, options=AXIS, integer=whole),
    Atom("mean", "the mean", (1, 1), reduced, options=AXIS),
    Atom("max", "the largest entry", (1, 1), reduced, options=AXIS, integer=whole),
    Atom("min", "the smallest entry", (1, 1), reduced, options=AXIS, integer=whole),
    Atom("norm1", "the sum of absolute values", (1, 1), reduced, options=AXIS),
    Atom("norm2", "the Euclidean norm of the entries (of a matrix: Frobenius)", (1, 1), reduced, options=AXIS),
    Atom("norm_inf", "the largest absolute value", (1, 1), reduced, options=AXIS),
    Atom("sum_squares", "the sum of squares", (1, 1), reduced),
    Atom("log_sum_exp", "log of the sum of exp", (1, 1), reduced, options=AXIS),
)
