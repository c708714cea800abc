"""The structure of the constraints in the decisions: affine, separable (a sum of functions of single entries), or neither.

Decided by marks: each entry of each subexpression is marked with the entry of the decision that it depends on. The `lower` column of
the atoms runs over arrays of marks, by the column `marks` of the operations, so that an atom needs no rule of its own here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any

import numpy as np

from oco.compiler.domains import Domain
from oco.compiler.ir.mark_rules import MIXED, NONE, SUM, Marks
from oco.compiler.ir.ops import OPS as OPERATIONS
from oco.compiler.problem.calculus import dependence, vector_jacobian
from oco.dsl.atoms import ATOMS
from oco.dsl.dims import known
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Kind, Name, Slice, names, walk
from oco.dsl.records import dataclass


class Structure(StrEnum):
    """Structure of all constraints together in the decisions."""

    AFFINE = "affine"
    SEPARABLE = "separable"
    OTHER = "other"


def structure_of(functions: Sequence[tuple[str, Expr]], decisions: tuple[str, ...]) -> tuple[Structure, str]:
    """Structure of all functions (label, expression) in the decisions, and the label of the first that has no better one."""
    separable = list[str]()
    for label, f in functions:
        own = _structure(f, decisions)
        if own is Structure.OTHER:
            return own, label
        separable += [label] if own is Structure.SEPARABLE else []
    return (Structure.SEPARABLE, separable[0]) if separable else (Structure.AFFINE, "")


@lru_cache(maxsize=64)
def _structure(f: Expr, decisions: tuple[str, ...]) -> Structure:
    """Structure of one function, which many problems have: those of a round as predicted, with margins, with what is known beside it."""
    if is_affine(f, decisions):
        return Structure.AFFINE
    return Structure.SEPARABLE if is_separable(f, decisions) else Structure.OTHER


def is_affine(expr: Expr, decisions: tuple[str, ...]) -> bool:
    """True if no derivative depends on the decisions."""
    weights = Name("_weights", Kind.STREAM, shape=expr.shape)
    return all(not names(d, Kind.DECISION) for d in vector_jacobian(expr, weights, decisions).values())


def is_separable(expr: Expr, decisions: tuple[str, ...]) -> bool:
    """True if every entry is a sum of functions of single entries of the decisions."""
    try:
        return bool((_marks(expr, decisions) >= SUM).all())
    except _Unmarked:
        return False


def has_single_entries(expr: Expr, decisions: tuple[str, ...]) -> bool:
    """True if at most one entry of the decisions enters each entry."""
    try:
        return bool((_marks(expr, decisions) >= NONE).all())
    except _Unmarked:
        return False


def entries_alone(expr: Expr, sizes: Mapping[str, int]) -> Marks | None:
    """Entry of the decisions that each entry of an expression depends on, shape (K,); None where one depends on none or on several.

    sizes  numbers of entries of the decisions, in the order in which the entries are numbered
    """
    try:
        marks = _marks(expr, tuple(sizes), sizes)
    except _Unmarked:
        return None
    return marks.reshape(-1) if marks.size and bool((marks > NONE).all()) else None


def separable_over_box(structure: Structure, domains: Sequence[Domain]) -> bool:
    """True if a step falls apart into its entries."""
    return structure is Structure.SEPARABLE and all(d.is_box for d in domains)


def separable_under_rows(structure: Structure, domains: Sequence[Domain]) -> bool:
    """True if a step falls apart into its entries once the row of each domain has a price."""
    return structure is Structure.SEPARABLE and all(d.is_box or d.row is not None for d in domains)


class _Unmarked(Exception):
    """An operation without a rule for marks."""


def _marks(expr: Expr, decisions: tuple[str, ...], sizes: Mapping[str, int] | None = None) -> Marks:
    nodes = list(walk(expr))
    depends = dependence(nodes, decisions)
    offsets = _offsets(_sizes(nodes, decisions) if sizes is None else sizes, decisions)
    results: dict[int, Any] = {}
    for node in nodes:
        results[id(node)] = _mark(node, results, offsets) if id(node) in depends else _free(node)
    return _array(results[id(expr)])


def _sizes(nodes: list[Expr], decisions: tuple[str, ...]) -> Mapping[str, int]:
    """Numbers of entries of the decisions that occur."""
    return {
        n.name: int(np.prod(known(n.shape), dtype=np.int64))
        for n in nodes
        if isinstance(n, Name) and n.name in decisions
    }


def _offsets(sizes: Mapping[str, int], decisions: tuple[str, ...]) -> Mapping[str, int]:
    """Index where the entries of each decision begin in the numbering of all entries."""
    starts = np.cumsum([0, *(sizes.get(d, 0) for d in decisions)])
    return dict(zip(decisions, (int(s) for s in starts)))


def _free(node: Expr) -> Any:
    """Marks of a node without decisions: the numbers themselves where they are known, for they may be indices."""
    if isinstance(node, Constant):
        return node.value.array
    return None if isinstance(node, Slice) else _Marked(np.full(known(node.shape), NONE))


def _mark(node: Expr, results: Mapping[int, Any], offsets: Mapping[str, int]) -> Any:
    match node:
        case Name(name=name, shape=shape):
            sizes = known(shape)
            return _Marked(offsets[name] + np.arange(int(np.prod(sizes, dtype=np.int64))).reshape(sizes))
        case Call(atom=atom, args=args):
            return _as_marked(ATOMS[atom].lower(OPS, node, *(results[id(a)] for a in args)))
        case Array(items=items):
            return _Marked(np.stack([_array(results[id(i)]) for i in items]))
        case Index(base=base, items=items):
            return _Marked(_indexed(_array(results[id(base)]), items, known(node.shape)))
    raise _Unmarked


def _indexed(base: Marks, items: tuple[Expr, ...], shape: tuple[int, ...]) -> Marks:
    if all(isinstance(i, Constant) for i in items):
        return np.asarray(base[tuple(i.value.array for i in items if isinstance(i, Constant))])
    places = [
        _known_slice(i) if isinstance(i, Slice) else i.value.array if isinstance(i, Constant) else None for i in items
    ]
    if any(p is None for p in places):
        return np.full(shape, MIXED)  # which entry it is depends on the round
    return np.asarray(base[tuple(places)])


def _known_slice(item: Slice) -> slice | None:
    ends = [e.value.array.item() if isinstance(e, Constant) else e for e in (item.start, item.stop)]
    return None if any(isinstance(e, Expr) for e in ends) else slice(*ends)


def _array(value: Any) -> Marks:
    return value.marks if isinstance(value, _Marked) else np.full(np.shape(value), NONE)


def _as_marked(value: Any) -> _Marked:
    return _Marked(_array(value))


@dataclass(frozen=True, eq=False)
class _Marked:
    """An array of marks that takes part in arithmetic like the array it stands for."""

    marks: Marks

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.marks.shape)

    def __add__(self, other: Any) -> _Marked:
        return OPS.add(self, other)

    def __sub__(self, other: Any) -> _Marked:
        return OPS.sub(self, other)

    def __mul__(self, other: Any) -> _Marked:
        return OPS.mul(self, other)

    def __truediv__(self, other: Any) -> _Marked:
        return OPS.div(self, other)

    def __rtruediv__(self, other: Any) -> _Marked:
        return OPS.div(other, self)

    def __pow__(self, other: Any) -> _Marked:
        return OPS.pow(self, other)

    def __matmul__(self, other: Any) -> _Marked:
        return OPS.matmul(self, other)

    def __rmatmul__(self, other: Any) -> _Marked:
        return OPS.matmul(other, self)

    def __neg__(self) -> _Marked:
        return self

    __radd__, __rsub__, __rmul__ = __add__, __sub__, __mul__
    __array_ufunc__ = None


class _MarkOps:
    """The primitives over marks."""

    def __getattr__(self, name: str) -> Callable[..., _Marked]:
        rule = OPERATIONS[name.rstrip("_")].on_marks
        if rule is None:
            raise _Unmarked

        def run(*args: Any, **options: Any) -> _Marked:
            return _Marked(np.asarray(rule(*(_array(a) for a in args), **options)))

        return run


OPS = _MarkOps()
