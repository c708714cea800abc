"""Table of atoms, one row for each function or operator of the language with all its properties."""

from __future__ import annotations

from math import inf

from oco.dsl.atoms.base import Atom, Curvature, Monotone, Regularity
from oco.dsl.atoms.constructors import CONSTRUCTORS
from oco.dsl.atoms.elementwise import ELEMENTWISE
from oco.dsl.atoms.forms import Extreme, Form, Total
from oco.dsl.atoms.internal import INTERNAL
from oco.dsl.atoms.kinked import KINKED
from oco.dsl.atoms.matrices import MATRICES
from oco.dsl.atoms.operators import OPERATORS
from oco.dsl.atoms.reductions import REDUCTIONS
from oco.dsl.atoms.shapes import entrywise
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Expr
from oco.dsl.intervals import interval

ATOMS: dict[str, Atom] = {
    a.name: a for a in (*OPERATORS, *KINKED, *ELEMENTWISE, *REDUCTIONS, *MATRICES, *CONSTRUCTORS, *INTERNAL)
}


def form_of(expr: Expr) -> Form | None:
    """Algebraic form of a call; None for other nodes, and for general functions."""
    return ATOMS[expr.atom].form if isinstance(expr, Call) else None


def kink_of(expr: Expr) -> Extreme | None:
    """Pieces of which a call, or each term of a call that is a sum, is the largest or smallest; None for others."""
    form = form_of(expr)
    if isinstance(form, Total) and form.entrywise:
        form = ATOMS[form.of].form
    return form if isinstance(form, Extreme) else None


def regularity_of(expr: Expr) -> Regularity:
    """Regularity of the function of a node; indexing and stacking are linear."""
    return ATOMS[expr.atom].regularity if isinstance(expr, Call) else Regularity.SMOOTH


def never_negative(expr: Call) -> bool:
    """True where the call is never negative, whatever its arguments are."""
    row = ATOMS[expr.atom]
    everywhere = (interval(-inf, inf, known(a.shape)) for a in expr.args)
    return row.norm is not None or bool(row.bounds(expr, *everywhere).nonnegative)


def is_entrywise_atom(name: str) -> bool:
    """True for an atom each of whose entries depends on the corresponding entry of its arguments alone."""
    return ATOMS[name].shape is entrywise and not ATOMS[name].options


def is_entrywise(expr: Expr) -> bool:
    """True for a call each of whose entries depends on the corresponding entry of its arguments alone."""
    return isinstance(expr, Call) and is_entrywise_atom(expr.atom)


__all__ = [
    "ATOMS",
    "Atom",
    "Curvature",
    "Form",
    "Monotone",
    "Regularity",
    "form_of",
    "is_entrywise",
    "is_entrywise_atom",
    "kink_of",
    "never_negative",
    "regularity_of",
]
