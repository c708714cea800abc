"""The table of atoms: everything that a function or an operator of the language is, one row each."""

from __future__ import annotations

from oco.dsl.atoms.base import Atom, Curvature, Monotone
from oco.dsl.atoms.constructors import CONSTRUCTORS
from oco.dsl.atoms.elementwise import ELEMENTWISE
from oco.dsl.atoms.internal import INTERNAL
from oco.dsl.atoms.matrices import MATRICES
from oco.dsl.atoms.operators import OPERATORS
from oco.dsl.atoms.reductions import REDUCTIONS

ATOMS: dict[str, Atom] = {
    a.name: a for a in (*OPERATORS, *ELEMENTWISE, *REDUCTIONS, *MATRICES, *CONSTRUCTORS, *INTERNAL)
}

__all__ = ["ATOMS", "Atom", "Curvature", "Monotone"]
