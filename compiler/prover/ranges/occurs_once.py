"""Exactness of interval arithmetic: each number of decision and streams enters once, and the domain is a box or one entry
is read.

For a continuous function of independent numbers each of which occurs once, the interval evaluation is its range (Moore 1966).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.prover.terms.kinks import jumps
from oco.dsl.atoms import ATOMS, form_of, forms, is_entrywise
from oco.dsl.dims import known
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Kind, Name, Slice, walk

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext


def occurs_once(setting: ProofContext, expr: Expr) -> bool:
    """True if the range of `expr` by intervals is its range exactly."""
    taken = {id(n): n for n in walk(expr) if isinstance(n, Index) and is_one_entry(setting, n)}
    nodes = [*taken.values(), *(n for n in walk(expr, taken))]
    if not _independent(setting, taken.values()):
        return False
    uses: dict[int, int] = {}
    for node in nodes:
        for child in node.children:
            uses[id(child)] = uses.get(id(child), 0) + 1
    seen = {n.name for m in taken.values() for n in walk(m) if isinstance(n, Name)}
    for node in nodes:
        if isinstance(node, (Constant, Slice)):
            continue
        if uses.get(id(node), 0) > 1 or not (id(node) in taken or _once(node)):
            return False
        if isinstance(node, Name):
            if node.name in seen or (node.kind is Kind.DECISION and not setting.blocks[node.name].domain.is_box):
                return False
            seen.add(node.name)
    return True


def _independent(setting: ProofContext, taken: Collection[Index]) -> bool:
    """True if these entries and their indices are numbers of their own: of one decision only fixed and different entries of a box."""
    places: dict[str, list[tuple[int, ...] | None]] = {}
    indices = [i.name for m in taken for i in m.items if isinstance(i, Name)]
    for m in taken:
        assert isinstance(m.base, Name)
        fixed = tuple(int(i.value.array) for i in m.items if isinstance(i, Constant))
        places.setdefault(m.base.name, []).append(fixed if len(fixed) == len(m.items) else None)
    for name, own in places.items():
        alone = len(own) == 1 or (None not in own and len(set(own)) == len(own) and setting.blocks[name].domain.is_box)
        if not alone or name in indices:
            return False
    return len(indices) == len(set(indices))


def is_one_entry(setting: ProofContext, node: Expr) -> bool:
    """True if it is `X[i, j]` of a decision, the indices fixed or streams:
    as a set is convex, its entry takes every value of its range."""
    if not isinstance(node, Index) or node.shape != () or not isinstance(node.base, Name):
        return False
    if node.base.name not in setting.blocks or not all(isinstance(i, (Constant, Name)) for i in node.items):
        return False
    hull = setting.box[node.base.name]
    tight = setting.blocks[node.base.name].domain.tight_hull
    return tight and (all(isinstance(i, Constant) for i in node.items) or hull.lo.size == hull.hi.size == 1)


def _once(node: Expr) -> bool:
    """True if the node uses each entry of its children once."""
    if isinstance(node, Call) and (jumps(node) or not ATOMS[node.atom].exact):
        return False
    match node:
        case Call(args=(left, right)) if form_of(node) == forms.MATRIX_PRODUCT:
            moving = [a for a in (left, right) if not isinstance(a, Constant)]
            return (len(left.shape) == 1 or left not in moving or len(right.shape) == 1) and all(
                _meets_once(node, a) for a in moving
            )
        case Call() if is_entrywise(node):
            size = math.prod(known(node.shape))
            return all(isinstance(a, Constant) or math.prod(known(a.shape)) == size for a in node.args)
        case Call():
            return True
        case Index(items=items):
            return all(isinstance(i, (Slice, Constant)) for i in items) and _distinct(items)
        case Array() | Name():
            return True
    return False


def _meets_once(node: Call, arg: Expr) -> bool:
    """True if each entry of a factor of a product enters one entry of it."""
    left, right = node.args
    if arg is left:
        return len(right.shape) == 1 or known(right.shape)[1] == 1
    return len(left.shape) == 1 or known(left.shape)[0] == 1


def _distinct(items: tuple[Expr, ...]) -> bool:
    """True if no entry is taken twice."""
    arrays = [i.value.array for i in items if isinstance(i, Constant)]
    if not arrays:
        return True
    flat = np.stack([a.ravel() for a in np.broadcast_arrays(*arrays)])
    flat = flat[:, np.lexsort(flat)]  # np.unique would import numpy.ma
    return not bool(np.any(np.all(flat[:, 1:] == flat[:, :-1], axis=0)))
