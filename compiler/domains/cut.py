"""Domains cut by affine inequalities and equalities."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.compiler.domains.arguments import finite
from oco.compiler.domains.base import Domain, Halfspaces
from oco.compiler.domains.norms import Floats
from oco.compiler.domains.programs import MOST_STEPS
from oco.compiler.domains.rows import check_rows
from oco.dsl.diagnostics import fail

FACETED = ("box", "simplex", "budget", "capped_simplex", "birkhoff")
"""Sets that are kept without their facets, one or two for each entry."""


def cut(base: Domain, A: Any = None, b: Any = None, E: Any = None, f: Any = None, steps: int = MOST_STEPS) -> Domain:
    """{ x in base : A x <= b, E x = f } for the flattened x; a polyhedron where the base is one.

    An error where nothing is left, or for a curved base nothing of its relative interior.
    `steps` are those that linear programs may take for a polyhedron.
    """
    A, b = _rows("A", A, "b", b, base.size)
    E, f = _rows("E", E, "f", f, base.size)
    (A, b), (E, f) = _without_zeros(A, b, b < 0, base), _without_zeros(E, f, f != 0, base)
    if not len(b) + len(f):
        return base
    from oco.compiler.domains.box_row import SMALL, BoxRow, SmallBoxRow
    from oco.compiler.domains.cut_sets import CutPolyhedron, CutSet

    if isinstance(base, CutSet):
        before = base.rows_added
        pairs = ((before.A, A), (before.b, b), (before.E, E), (before.f, f))
        A, b, E, f = (np.concatenate(pair) for pair in pairs)
        return cut(base.base, A, b, E, f, steps)
    rows = Halfspaces(A, b, E, f)
    one_row = base.is_box and len(b) + len(f) == 1 and bool(np.any(A) or np.any(E))
    if one_row and base.size > SMALL:
        return BoxRow(base.shape, base=base, rows_added=rows)
    if base.kind in FACETED:
        check_rows(base.size + len(b) + len(f), base.size, str(base))
    sides = base.halfspaces()
    if sides is None:
        return CutSet(base.shape, base=base, rows_added=rows)
    joined = tuple(np.concatenate(pair) for pair in ((sides.A, A), (sides.b, b), (sides.E, E), (sides.f, f)))
    named: dict[str, Any] = {"base": base, "added": len(b) + len(f), "steps": steps}
    if one_row:
        return SmallBoxRow(base.shape, *joined, **named, rows_added=rows)
    return CutPolyhedron(base.shape, *joined, **named)


def _without_zeros(A: Floats, b: Floats, broken: Floats, base: Domain) -> tuple[Floats, Floats]:
    """The rows that are not zero; an error where a row of zeros is broken everywhere."""
    zero = ~np.any(A, axis=1)
    if np.any(zero & broken):
        raise fail("OCO410", f"{base} cut by a row of zeros that never holds is empty")
    return A[~zero], b[~zero]


def _rows(left: str, A: Any, right: str, b: Any, size: int) -> tuple[Floats, Floats]:
    if A is None:
        return np.zeros((0, size)), np.zeros(0)
    matrix = finite(left, A).reshape(-1, size)
    return matrix, np.array(np.broadcast_to(finite(right, b), (len(matrix),)))
