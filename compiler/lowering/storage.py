"""Storage of decisions: as arrays, or large matrices as few outer products with sums of gradients as lists of entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oco.compiler.domains import low_rank
from oco.compiler.domains.combination import Combination, Matrix, Sparse, Whole, laid_out
from oco.compiler.domains.low_rank import LowRank
from oco.compiler.ir.build import Named
from oco.compiler.ir.program import DType, Field, Type
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.expressions import Lowering
from oco.compiler.problem.calculus import gradient, vector_jacobian
from oco.compiler.problem.canonical import Canonical, DecisionBlock
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Constant, Expr, Index, Kind, Name, Slice, walk
from oco.dsl.records import dataclass
from oco.dsl.statements import Feedback

LARGE = 1 << 18
"""Entries of a matrix up to which it is kept as an array whatever its factors would take."""
TERMS, FEW_TERMS = 64, 32
"""Outer products that a matrix may have; few where a pair of vectors has more entries than `LARGE_PAIR`."""
LARGE_PAIR = 1 << 15
FACTORS = ("left", "weights", "right", "diagonal")
"""Suffixes of the fields of a decision kept as factors: X = left diag(weights) right', or that plus diagonal I."""


@dataclass(frozen=True)
class LowRankLayout:
    """Layout of a matrix decision: `terms` outer products, and `entries` of a sum of gradients (0: the sum is an array)."""

    terms: int
    entries: int
    identity: bool

    def fields(self, block: DecisionBlock) -> tuple[Field, ...]:
        """The decision as it goes in and out of a program."""
        m, n = block.shape
        shapes = ((m, self.terms), (self.terms,), (n, self.terms), *(((),) if self.identity else ()))
        identity = " + diagonal I" if self.identity else ""
        words = f"of {block.name} = left diag(weights) right'{identity} in {block.domain}"
        return tuple(Field(f"{block.name}_{f}", Type(DType.FLOAT, s), words) for f, s in zip(FACTORS, shapes))

    def no_gradient(self, t: Tracer, shape: tuple[int, ...]) -> Combination:
        """Zero, as a sum of gradients begins."""
        m, n = shape
        if not self.entries:
            return Combination(((1.0, Whole(t.zeros(shape))),))
        none = t.full(0, (self.entries,))
        return Combination(((1.0, Sparse(t.zeros((self.entries,)), none, none, (m, n), t.lift(0))),))


def low_rank_layouts(problem: Canonical, terms: int | None = None) -> tuple[LowRankLayout | None, ...]:
    """Layouts of the decisions that a method of adding up atoms and gradients keeps as factors: those whose array
    would be larger; None for the others.

    It takes a nuclear ball or a spectrahedron, a known number of rounds, functions that are revealed in full, and entries of the decision
    alone, gathered by integers. `terms` keeps a decision of any size so.
    """
    return tuple(_layout_of(problem, b, terms) for b in problem.blocks)


def _layout_of(problem: Canonical, block: DecisionBlock, terms: int | None) -> LowRankLayout | None:
    factors = block.domain.factors
    fits = problem.feedback is Feedback.FULL and problem.horizon is not None
    if factors is None or not fits or any(s.name == f"{block.name}_{f}" for s in problem.streams for f in FACTORS):
        return None
    m, n = block.shape
    held = terms or (TERMS if m + n <= LARGE_PAIR else FEW_TERMS)
    if terms is None and (m * n <= LARGE or 4 * held * (m + n) > m * n):
        return None
    gathered = _gathered(problem, block)
    if gathered is None:
        return None
    entries = gathered * (problem.horizon or 1)
    listed = entries if terms is not None or 3 * entries < m * n else 0
    return LowRankLayout(held, listed, factors.identity)


def _gathered(problem: Canonical, block: DecisionBlock) -> int | None:
    """Number of entries of the gradients of a round; None where the decision is used otherwise than by its entries."""
    exprs = [problem.objective, *(c.expr for c in problem.inequalities), *(h.expr for h in problem.equalities)]
    if not all(_only_entries(e, block.name) for e in exprs):
        return None
    name, count = (block.name,), 0
    for k, expr in enumerate(exprs):
        if expr.shape == ():
            slope = gradient(expr, name)
        else:
            slope = vector_jacobian(expr, Name(f"_weights{k}", Kind.STREAM, shape=expr.shape), name)
        parts = scattered(slope[block.name])
        if parts is None:
            return None
        count += sum(_places(p) for p in parts)
    return count


def _only_entries(expr: Expr, name: str) -> bool:
    """True if the decision occurs as `X[i, j]` alone, with integers or arrays of them for i and j."""
    for node in walk(expr):
        for child in node.children:
            if isinstance(child, Name) and child.kind is Kind.DECISION and child.name == name:
                entries = isinstance(node, Index) and node.base is child and len(node.items) == 2
                if not entries or any(isinstance(i, Slice) for i in node.items):  # type: ignore[attr-defined]
                    return False
    return not (isinstance(expr, Name) and expr.kind is Kind.DECISION)


def scattered(slope: Expr) -> list[Call] | None:
    """A gradient as the scattered lists that add up to it; None where it is something else."""
    if isinstance(slope, Constant) and algebra.value_of(slope) == 0:
        return []
    if isinstance(form_of(slope), forms.Scattered):
        assert isinstance(slope, Call)
        return [slope]
    if form_of(slope) is forms.SUM:
        assert isinstance(slope, Call)
        parts = [scattered(a) for a in slope.args]
        return None if any(p is None for p in parts) else [c for p in parts if p is not None for c in p]
    return None


def _places(scatter: Call) -> int:
    return int(np.prod(_common(scatter), dtype=np.int64))


def _common(scatter: Call) -> tuple[int, ...]:
    return np.broadcast_shapes(*(known(item.shape) for item in scatter.args[1:]))


def sparse_gradient(t: Tracer, lower: Lowering, slope: Expr, shape: tuple[int, ...]) -> Combination:
    """A gradient of gathered entries as lists of entries."""
    m, n = shape
    parts = scattered(slope)
    assert parts is not None
    terms = []
    for part in parts:
        places = (t.reshape(t.broadcast(lower(a), _common(part)), (_places(part),)) for a in part.args)
        values, rows, columns = places
        terms.append((1.0, Sparse(t.to_float(values), rows, columns, (m, n))))
    return Combination(tuple(terms))


class StateLayout:
    """The parts of a kept point as fields, and back. The layout of a symbol is fixed when `init` is traced."""

    def __init__(self, t: Tracer) -> None:
        self.t = t
        self.kinds: dict[str, Matrix] = {}

    def fields(self, name: str, x: Combination) -> dict[str, Value]:
        """Arrays by field name of a point x that the state keeps under `name`."""
        if name not in self.kinds:
            self.kinds[name] = x.terms[0][1]
        matrix = laid_out(self.t, x, self.kinds[name])
        return {f"{name}_{part}": v for part, v in zip(matrix.PARTS, matrix.values)}

    def names(self, name: str) -> tuple[str, ...]:
        """The fields of a symbol; the symbol itself where it is an array."""
        if name not in self.kinds:
            return (name,)
        kind = self.kinds[name]
        return tuple(f"{name}_{part}" for part, _ in zip(kind.PARTS, kind.values))

    def block(self, name: str, fields: Named) -> Any:
        """Kept point of a name, rebuilt from its fields; an array unchanged."""
        if name not in self.kinds:
            return fields[name]
        return Combination(((1.0, self.kinds[name].rebuilt(*(fields[f] for f in self.names(name)))),))


def started(t: Tracer, block: DecisionBlock, room: LowRankLayout, given: Named) -> Combination:
    """A decision from its fields."""
    return Combination(((1.0, low_rank.given(t, *(given[f.name] for f in room.fields(block)))),))


def decided(t: Tracer, block: DecisionBlock, room: LowRankLayout, x: Combination) -> Mapping[str, Value]:
    """The fields of a decision."""
    m, n = block.shape
    matrix = laid_out(t, x, low_rank.zero(t, (m, n), room.terms, room.identity))
    assert isinstance(matrix, LowRank)
    parts = (matrix.U, matrix.s, matrix.V, *(() if matrix.diagonal is None else (matrix.diagonal,)))
    return dict(zip((f.name for f in room.fields(block)), parts))
