"""The table of atoms: everything that a function or an operator of the language is, one row each."""

from __future__ import annotations

from oco.dsl.atoms.base import Atom, Curvature, Monotone, Regularity
from oco.dsl.atoms.constructors import CONSTRUCTORS
from oco.dsl.atoms.elementwise import ELEMENTWISE
from oco.dsl.atoms.forms import Form
from oco.dsl.atoms.internal import INTERNAL
from oco.dsl.atoms.kinked import KINKED
from oco.dsl.atoms.matrices import MATRICES
from oco.dsl.atoms.operators import OPERATORS
from oco.dsl.atoms.reductions import REDUCTIONS
from oco.dsl.expressions import Call, Expr

ATOMS: dict[str, Atom] = {
    a.name: a for a in (*OPERATORS, *KINKED, *ELEMENTWISE, *REDUCTIONS, *MATRICES, *CONSTRUCTORS, *INTERNAL)
}


def form_of(expr: Expr) -> Form | None:
    """The algebraic form of a call; None for what is no call, and for general functions."""
    return ATOMS[expr.atom].form if isinstance(expr, Call) else None


__all__ = ["ATOMS", "Atom", "Curvature", "Form", "Monotone", "Regularity", "form_of"]
