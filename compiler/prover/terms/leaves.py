"""An array expression as an entrywise function of its leaves: what stands between is applied to each entry alone.

`log(1 + 4 * x)` is entrywise in the leaf `x`; `square(H @ x - y)` in the leaves `H @ x` and `y`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

from oco.compiler.problem.calculus import gradient
from oco.dsl.algebra import broadcast
from oco.dsl.atoms import is_entrywise
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Constant, Expr, Kind, Name, walk
from oco.dsl.records import dataclass


@dataclass(frozen=True, eq=False)
class Entrywise:
    """`body` is entrywise in the names of `leaves`, each of the body's full shape; a leaf is the expression that its name stands for."""

    body: Expr
    leaves: Mapping[str, Expr]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the body."""
        return known(self.body.shape)

    @cached_property
    def slopes(self) -> Mapping[str, Expr]:
        """The derivative of each entry towards the same entry of each leaf."""
        return self.derivatives(self.body)

    @cached_property
    def second_derivatives(self) -> Mapping[tuple[str, str], Expr]:
        """The second derivatives of each entry, once for each pair of leaves."""
        results: dict[tuple[str, str], Expr] = {}
        names = list(self.leaves)
        for i, (a, slope) in enumerate(self.slopes.items()):
            towards = self.derivatives(slope)
            results.update({(a, b): towards[b] for b in names[i:]})
        return results

    def derivatives(self, expr: Expr) -> dict[str, Expr]:
        """The derivative of each entry of an entrywise expression in the leaves towards the same entry of each leaf."""
        whole = broadcast(expr, self.shape)
        return gradient(call("sum", whole) if self.shape else whole, list(self.leaves))


def entrywise(expr: Expr, is_leaf: Callable[[Expr], bool]) -> Entrywise:
    """Split at the outermost nodes that are leaves, or not entrywise. Constants are no leaves."""
    nodes = list(walk(expr))
    inner = {id(expr)}
    for node in reversed(nodes):
        if id(node) in inner and is_entrywise(node) and not is_leaf(node):
            inner.update(id(c) for c in node.children)
    shape = known(expr.shape)
    leaves: dict[str, Expr] = {}
    built: dict[int, Expr] = {}
    for node in nodes:
        if id(node) not in inner:
            continue
        if isinstance(node, Constant):
            built[id(node)] = node
        elif isinstance(node, Call) and is_entrywise(node) and not is_leaf(node):
            built[id(node)] = call(node.atom, *(built[id(c)] for c in node.args))
        else:
            same = (n for n, leaf in leaves.items() if isinstance(leaf, Name) and leaf == node)
            name = next(same, f"leaf {len(leaves)}")
            leaves.setdefault(name, node)
            built[id(node)] = Name(name, Kind.DECISION, shape=shape)
    return Entrywise(broadcast(built[id(expr)], shape), leaves)
