"""Jacobians of vector expressions, kept structured: a diagonal stays a vector, and a matrix product stays one.

A Jacobian of an expression of shape S towards a decision of shape X has the shape S + X. Reverse accumulation costs a pass a row, so
affine maps and entrywise functions are followed forwards here, and rows are unrolled only where no rule applies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from oco.compiler.problem.calculus import dependence, gradient
from oco.dsl import algebra as e
from oco.dsl.atoms import ATOMS, form_of, forms, is_entrywise
from oco.dsl.dims import known
from oco.dsl.expressions import Array, Call, Expr, Index, Kind, Name, constant, walk
from oco.dsl.records import dataclass

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class DiagonalJacobian:
    """Entry i of the expression depends on entry i of the decision alone, with the slope `entries[i]`."""

    entries: Expr


@dataclass(frozen=True)
class Dense:
    """All slopes: a shape that stretches to that of the expression and then the decision's."""

    entries: Expr


Slopes = DiagonalJacobian | Dense


def jacobian(expr: Expr, decisions: Iterable[str]) -> dict[str, Expr]:
    """For each decision the slopes of every entry, of shape `expr.shape + decision.shape`; a constant 0 where it does not occur."""
    nodes = list(walk(expr))
    shapes = {n.name: known(n.shape) for n in nodes if isinstance(n, Name) and n.kind is Kind.DECISION}
    results: dict[str, Expr] = {}
    for name in decisions:
        if name in shapes:
            results[name] = _Towards(name, shapes[name], nodes).dense(expr)
        else:
            results[name] = e.number(0)
    return results


def diagonal(expr: Expr, decision: str) -> Expr | None:
    """d expr_i / d decision_i where entry i depends on entry i of this decision alone, else None."""
    nodes = list(walk(expr))
    shape = next((known(n.shape) for n in nodes if isinstance(n, Name) and n.name == decision), None)
    if shape is None or known(expr.shape) != shape:
        return None
    slopes = _Towards(decision, shape, nodes).of(expr)
    return slopes.entries if isinstance(slopes, DiagonalJacobian) or shape == () else None


class _Towards:
    """Slopes towards one decision, forwards, each shared node once."""

    def __init__(self, name: str, shape: Sizes, nodes: list[Expr]) -> None:
        self.name = name
        self.shape = shape
        self.depends = dependence(nodes, (name,))
        self.done: dict[int, Slopes] = {}
        self.kept: list[Expr] = []  # an id names a node only while the node lives

    def dense(self, node: Expr) -> Expr:
        """The slopes at full shape."""
        slopes = self.of(node)
        size = known(node.shape)
        if isinstance(slopes, Dense):
            return e.broadcast(slopes.entries, size + self.shape)
        if not size:
            return slopes.entries
        flat = e.reshape(e.broadcast(slopes.entries, size), (math.prod(size),))
        square = e.call("eye", math.prod(size)) if e.value_of(slopes.entries) == 1 else e.call("diag", flat)
        return e.reshape(square, size + self.shape)

    def of(self, node: Expr) -> Slopes:
        if id(node) not in self.done:
            self.done[id(node)] = self._rule(node)
            self.kept.append(node)
        return self.done[id(node)]

    def _rule(self, node: Expr) -> Slopes:
        if isinstance(node, Name) and node.name == self.name:
            return DiagonalJacobian(e.number(1))
        if node.shape == ():
            return Dense(gradient(node, (self.name,))[self.name])
        if isinstance(node, Call):
            if is_entrywise(node):
                return self._entrywise(node)
            if form_of(node) is forms.MATRIX_PRODUCT and sum(id(a) in self.depends for a in node.args) == 1:
                result = self._product(node)
                if result is not None:
                    return result
            if isinstance(form_of(node), forms.Stretched):
                return self._stretched(node.args[0], known(node.shape))
            if isinstance(form_of(node), forms.Scattered) and not any(id(i) in self.depends for i in node.args[1:]):
                values, *items = node.args
                return Dense(e.call("_scatter", self.dense(values), *items, shape=known(node.shape) + self.shape))
        if isinstance(node, Array):
            return Dense(e.array(tuple(self._or_zero(i) for i in node.items)))
        if isinstance(node, Index) and not any(id(i) in self.depends for i in node.items):
            return Dense(e.index(self.dense(node.base), node.items))
        return self._rows(node)

    def _or_zero(self, node: Expr) -> Expr:
        if id(node) in self.depends:
            return self.dense(node)
        return e.call("zeros", *(known(node.shape) + self.shape))

    def _entrywise(self, node: Call) -> Slopes:
        """The chain rule entry by entry: the slopes of each argument, scaled."""
        size = known(node.shape)
        args = tuple(e.broadcast(a, size) if id(a) in self.depends else a for a in node.args)
        shares = ATOMS[node.atom].vjp(e, node.with_children(args), e.number(1))
        total: Slopes | None = None
        for arg, share in zip(node.args, shares):
            if id(arg) in self.depends and share is not None:
                part = self._scaled(share, self._stretched(arg, size), len(size))
                total = part if total is None else self._sum(total, part, size)
        return Dense(e.number(0)) if total is None else total

    def _stretched(self, arg: Expr, size: Sizes) -> Slopes:
        """The slopes of an argument that is stretched to `size`."""
        slopes = self.of(arg)
        if known(arg.shape) == size:
            return slopes
        dense = self.dense(arg)
        lead = (1,) * (len(size) - len(arg.shape))
        return Dense(e.reshape(dense, lead + known(arg.shape) + self.shape) if arg.shape else dense)

    def _scaled(self, factor: Expr, slopes: Slopes, rank: int) -> Slopes:
        if isinstance(slopes, DiagonalJacobian):
            return DiagonalJacobian(e.mul(factor, slopes.entries))
        if factor.shape != ():
            factor = e.reshape(factor, factor.shape + (1,) * len(self.shape))
        return Dense(e.mul(factor, slopes.entries))

    def _sum(self, a: Slopes, b: Slopes, size: Sizes) -> Slopes:
        if isinstance(a, DiagonalJacobian) and isinstance(b, DiagonalJacobian):
            return DiagonalJacobian(e.add(a.entries, b.entries))
        return Dense(e.add(self._spelled(a, size), self._spelled(b, size)))

    def _spelled(self, slopes: Slopes, size: Sizes) -> Expr:
        if isinstance(slopes, Dense):
            return slopes.entries
        flat = e.reshape(e.broadcast(slopes.entries, size), (math.prod(size),))
        return e.reshape(e.call("diag", flat), size + self.shape)

    def _product(self, node: Call) -> Slopes | None:
        """A fixed matrix times a vector: the matrix times its slopes. None where the decision is in the matrix."""
        left, right = node.args
        matrix, vector = (left, right) if id(right) in self.depends else (e.transpose(right), left)
        if len(matrix.shape) != 2 or len(vector.shape) != 1:
            return None
        slopes = self.of(vector)
        if isinstance(slopes, DiagonalJacobian):
            return Dense(e.mul(matrix, slopes.entries))
        columns = math.prod(self.shape)
        flat = e.reshape(self.dense(vector), (*known(vector.shape), columns))
        return Dense(e.reshape(e.matmul(matrix, flat), known(node.shape) + self.shape))

    def _rows(self, node: Expr) -> Slopes:
        """One gradient an entry."""
        whole = e.reshape(node, (math.prod(known(node.shape)),))
        entries = (e.index(whole, (constant(i),)) for i in range(known(whole.shape)[0]))
        rows = tuple(e.broadcast(gradient(entry, (self.name,))[self.name], self.shape) for entry in entries)
        return Dense(e.reshape(e.array(rows), known(node.shape) + self.shape))
