"""Unit flows from a source to a sink of a directed graph without cycles."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.arguments import written
from oco.compiler.domains.base import MAX_VERTICES
from oco.compiler.domains.norms import Floats
from oco.compiler.domains.polyhedron import Polyhedron
from oco.compiler.domains.rows import check_rows
from oco.dsl.diagnostics import fail

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value


@dataclass(frozen=True, eq=False)
class Flow(Polyhedron):
    """{ x >= 0 on the edges : one unit leaves `source` and reaches `sink`, what enters another node leaves it }.

    Edge k goes from `edges[k, 0]` to `edges[k, 1]`. The extreme points are the paths from the source to the sink. Nodes are counted
    from 0, those alone that an edge, the source or the sink names; `labels` are their numbers in the model.
    """

    kind: ClassVar[str] = "flow"

    edges: Floats = field(default_factory=lambda: np.zeros((1, 2), dtype=np.int64))
    source: int = 0
    sink: int = 1
    labels: tuple[int, ...] = (0, 1)

    lmo_cost = "O(number of edges), a shortest path"
    fractional = ""

    def __post_init__(self) -> None:
        if not self._paths_from[self.source]:
            first, last = self.labels[self.source], self.labels[self.sink]
            raise fail("OCO417", f"no path leads from node {first} to node {last}")
        super().__post_init__()

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The nodes, each before those that its edges lead to; an error where the graph has a cycle."""
        incoming = np.bincount(self.edges[:, 1], minlength=self.nodes)
        results = [int(v) for v in np.flatnonzero(incoming == 0)]
        for node in results:  # which grows
            for _, head in self._leaving[node]:
                incoming[head] -= 1
                if incoming[head] == 0:
                    results.append(head)
        if len(results) < self.nodes:
            within = self.labels[int(np.flatnonzero(incoming > 0)[0])]
            raise fail("OCO417", f"the graph has a cycle through node {within}")
        return tuple(results)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.labels)

    @cached_property
    def _leaving(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """By node, the edges that leave it and the nodes that they lead to."""
        results: list[list[tuple[int, int]]] = [[] for _ in range(self.nodes)]
        for k, (tail, head) in enumerate(self.edges.tolist()):
            results[tail].append((k, head))
        return tuple(map(tuple, results))

    @cached_property
    def _paths_from(self) -> list[int]:
        """Number of paths from each node to the sink."""
        count = [0] * self.nodes
        count[self.sink] = 1
        for node in reversed(self.order):
            if node != self.sink:
                count[node] = sum(count[head] for _, head in self._leaving[node])
        return count

    @cached_property
    def _hull(self) -> tuple[Floats, Floats]:
        """1 on the edges of some path; at least 1 on those of every path, alone to cross between two nodes in a topological order.

        Every path crosses each such place once, and an edge that all paths take has the nodes before it on one side.
        """
        place = np.empty(self.nodes, dtype=np.int64)
        place[list(self.order)] = np.arange(self.nodes)
        reached = np.zeros(self.nodes, dtype=bool)
        reached[self.source] = True
        for node in (n for n in self.order if reached[n] and n != self.sink):
            reached[[head for _, head in self._leaving[node]]] = True
        tails, heads = self.edges[:, 0], self.edges[:, 1]
        leads_on = np.array([count > 0 for count in self._paths_from])
        used = reached[tails] & leads_on[heads] & (tails != self.sink)
        crossing = np.zeros(self.nodes + 1, dtype=np.int64)
        np.add.at(crossing, place[tails[used]], 1)
        np.add.at(crossing, place[heads[used]], -1)
        alone = np.append(0, np.cumsum(np.cumsum(crossing) == 1))
        always = used & (alone[place[heads]] > alone[place[tails]])
        return always.astype(np.float64), used.astype(np.float64)

    @property
    def _known_hull(self) -> tuple[Floats, Floats]:
        return self._hull

    def lmo_array(self, c: Any) -> Floats:
        """Linear minimisation as by `lmo`, without a program that is read step by step."""
        cost, best = self._read(c).tolist(), {self.sink: (0.0, -1, -1)}
        for node in reversed(self.order):
            through = [(cost[k] + best[head][0], k, head) for k, head in self._leaving[node] if head in best]
            if through and node != self.sink:
                best[node] = min(through, key=itemgetter(0))
        x, node = np.zeros(self.size), self.source
        while node != self.sink:
            _, k, node = best[node]
            x[k] = 1.0
        return x

    @cached_property
    def _corners(self) -> Floats | None:
        if self._paths_from[self.source] > MAX_VERTICES:
            return None
        partial = [(self.source, np.zeros(self.size))]
        whole = []
        while partial:
            node, x = partial.pop()
            if node == self.sink:
                whole.append(x)
                continue
            for k in np.flatnonzero(self.edges[:, 0] == node)[::-1]:
                if self._paths_from[self.edges[k, 1]]:
                    longer = x.copy()
                    longer[k] = 1.0
                    partial.append((int(self.edges[k, 1]), longer))
        return np.array(whole)

    def lmo(self, t: Tracer, c: Value) -> Value:
        """A shortest path; at each node the edge of the lowest index among equals."""
        leaving = [np.flatnonzero(self.edges[:, 0] == node) for node in range(self.nodes)]
        most = max(len(k) for k in leaving)
        table = np.array([[*k, *[self.size] * (most - len(k))] for k in leaving])
        out = t.constant(table, "out", "edges that leave each node, filled up with one of infinite cost")
        heads = t.constant(np.append(self.edges[:, 1], 0), "head", "the node that each edge leads to")
        order = t.constant(np.array(self.order[::-1]), "order", "nodes, from the last to the first")
        cost = t.concat(c, t.full(np.inf, (1,)))

        def relax(i: Value, distance: Value, best: Value) -> tuple[Value, Value]:
            node = t.gather(order, i)
            k = t.gather(out, node)
            through = t.gather(cost, k) + t.gather(distance, t.gather(heads, k))
            least = t.min(through)
            at_sink = node == self.sink
            distance = t.put(distance, t.where(at_sink, 0.0, least), node)
            return distance, t.put(best, t.gather(k, t.argmin(through)), node)

        start = (t.full(np.inf, (self.nodes,)), t.full(0, (self.nodes,)))
        _, best = t.for_(self.nodes, relax, start)

        def on_the_way(node: Value, x: Value) -> Value:
            return t.not_(node == self.sink)

        def walk(node: Value, x: Value) -> tuple[Value, Value]:
            k = t.gather(best, node)
            return t.gather(heads, k), t.put(x, 1.0, k)

        return t.while_(on_the_way, walk, (t.lift(self.source), t.zeros((self.size,))))[1]

    def __str__(self) -> str:
        labels = np.array(self.labels)
        return f"flow({written(labels[self.edges])}, {labels[self.source]}, {labels[self.sink]})"


def flow(shape: tuple[int, ...], edges: Any, source: Any, sink: Any) -> Flow:
    """The flows on `edges` (shape (number of edges, 2))."""
    pairs = np.asarray(edges, dtype=np.float64)
    ends = [float(np.asarray(source)), float(np.asarray(sink))]
    labels, places = np.unique(np.append(pairs, ends), return_inverse=True)
    nodes, count = len(labels), len(pairs)
    check_rows(nodes + count, count, f"a flow on {count:,} edges between {nodes:,} nodes")
    table, start, end = places[:-2].reshape(count, 2), int(places[-2]), int(places[-1])
    incidence = np.zeros((nodes, count))
    np.add.at(incidence, (table[:, 0], np.arange(count)), 1.0)
    np.add.at(incidence, (table[:, 1], np.arange(count)), -1.0)
    balance = np.zeros(nodes)
    balance[start] += 1.0
    balance[end] -= 1.0
    known = tuple(map(int, labels.tolist()))
    return Flow(shape, -np.eye(count), np.zeros(count), incidence, balance, table, start, end, known)
