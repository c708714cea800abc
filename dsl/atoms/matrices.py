"""Functions of vectors and matrices."""

from __future__ import annotations

from oco.dsl.atoms import shapes
from oco.dsl.atoms.base import Atom
from oco.dsl.atoms.operators import whole

MATRICES: tuple[Atom, ...] = (
    Atom("quad_form", "x.T @ P @ x", (2, 2), shapes.quadratic),
    Atom("dot", "the inner product of two vectors", (2, 2), shapes.dot, integer=whole),
    Atom("outer", "the matrix of products of the entries of two vectors", (2, 2), shapes.vectors, integer=whole),
    Atom("trace", "the sum of the diagonal", (1, 1), shapes.trace, integer=whole),
    Atom(
        "diag",
        "the matrix with a vector on its diagonal, or the diagonal of a matrix",
        (1, 1),
        shapes.diagonal,
        integer=whole,
    ),
    Atom("nuclear_norm", "the sum of the singular values", (1, 1), shapes.of_rank(2)),
    Atom("sigma_max", "the largest singular value", (1, 1), shapes.of_rank(2)),
)
