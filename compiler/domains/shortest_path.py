"""Shortest paths of graphs without cycles, over the step IR: nodes go in rows, all of which a round works out at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.domains.flow_graph import FlowGraph, Ints
from oco.compiler.domains.norms import Floats
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

CALL = 100
"""Places of a table whose work takes as long as the beginning of a row: about 5 in C, and several hundreds in NumPy."""


@dataclass(frozen=True, eq=False)
class PathTable:
    """Nodes in rows of one width W, each row after those that its edges lead to; up to D edges leave a node.

    `edges` and `heads` (rows, D, W) are the edges that leave the nodes of a row, and the places of the nodes that they lead to: place
    W (r + 1) + c is the node of row r and column c, place 0 is the sink. Edge `size` fills the table up, at an infinite cost; edges
    `size + 1` cost nothing and lead to nodes that stand for some of the edges of a node with more than D.
    """

    edges: Ints
    heads: Ints
    source: int
    size: int

    @classmethod
    def of(cls, graph: FlowGraph) -> PathTable:
        """Table of the edges on paths, of the width and depth that take the least work."""
        degrees = np.array([len(edges) for _, edges in graph.steps] or [1])
        deep = min(_depths(int(degrees.max())), key=lambda depth: (depth * _nodes_for(degrees, depth), depth))
        parts, places = list(_parts(graph, deep)), {graph.sink: 0}
        height = {graph.sink: 0}
        for node, edges in parts:
            height[node] = 1 + max(height[head] for _, head in edges)
        levels = np.bincount([height[node] for node, _ in parts] or [1])[1:]
        width = min(_depths(int(levels.max())), key=lambda w: int(np.sum(-(-levels // w))) * (CALL + w * deep))
        first = np.append(0, np.cumsum(-(-levels // width))) * width + width
        table = np.full((int(first[-1]) // width - 1, deep, width), graph.size, dtype=np.int64)
        heads = np.zeros_like(table)
        for node, edges in parts:
            place = places[node] = int(first[height[node] - 1])
            first[height[node] - 1] += 1
            row, column = place // width - 1, place % width
            for slot, (k, head) in enumerate(edges):
                table[row, slot, column], heads[row, slot, column] = k, places[head]
        return cls(table, heads, places[graph.source], graph.size)

    @property
    def stands_in(self) -> bool:
        """True if some nodes stand for edges of others."""
        return bool(np.any(self.edges > self.size))

    def distances(self, cost: Floats) -> Floats:
        """Least cost from each place to the sink (rows + 1, W), for costs of the edges (size,)."""
        rows, _, width = self.edges.shape
        costs, result = np.append(cost, [np.inf, 0.0]), np.zeros((rows + 1, width))
        flat = result.reshape(-1)
        for row, (edges, heads) in enumerate(zip(self.edges, self.heads)):
            (costs[edges] + flat[heads]).min(axis=0, out=result[row + 1])
        return result

    def shortest(self, cost: Floats) -> Floats:
        """A shortest path as a vector of 0 and 1 (size,); at each node the edge of the lowest index among equals."""
        costs, flat = np.append(cost, [np.inf, 0.0]), self.distances(cost).reshape(-1)
        x, place, width = np.zeros(self.size + 2), self.source, self.edges.shape[2]
        while place:
            row, column = place // width - 1, place % width
            edges, heads = self.edges[row, :, column], self.heads[row, :, column]
            slot = int(np.argmin(costs[edges] + flat[heads]))
            x[edges[slot]], place = 1.0, int(heads[slot])
        return x[: self.size]

    def trace(self, t: Tracer, c: Value) -> Value:
        """`shortest` over the step IR."""
        rows, deep, width = self.edges.shape
        out = t.constant(
            self.edges, "out", "edges that leave the nodes of each row, filled up with one of infinite cost"
        )
        heads = t.constant(self.heads, "head", "the place of the node that each edge leads to")
        cost = t.concat(
            c, t.constant(np.array([np.inf, 0.0]), "beyond", "costs of edges that fill up, and that stand for several")
        )

        def relax(i: Value, distance: Value) -> Value:
            ahead = t.gather(t.reshape(distance, shape=((rows + 1) * width,)), t.gather(heads, i))
            return t.put(distance, t.min(t.gather(cost, t.gather(out, i)) + ahead, axis=0), i + 1)

        (distance,) = t.for_(rows, relax, (t.zeros((rows + 1, width)),))
        flat = t.reshape(distance, shape=((rows + 1) * width,))
        edges, ends = (t.reshape(table, shape=(rows * deep * width,)) for table in (out, heads))
        slots = t.constant(width * np.arange(deep), "slots", "where the edges of a node stand in the table")

        def on_the_way(place: Value, x: Value) -> Value:
            return t.not_(place == 0)

        def walk(place: Value, x: Value) -> tuple[Value, Value]:
            column = place % width
            at = (place - column - width) * deep + column + slots
            next_places = t.gather(ends, at)
            taken = t.gather(edges, at)
            slot = t.argmin(t.gather(cost, taken) + t.gather(flat, next_places))
            return t.gather(next_places, slot), t.put(x, 1.0, t.gather(taken, slot))

        extra = 2 if self.stands_in else 0
        x = t.while_(on_the_way, walk, (t.lift(self.source), t.zeros((self.size + extra,))))[1]
        return x[: self.size] if extra else x


def _depths(most: int) -> list[int]:
    """Powers of two up to the first that is at least `most`; of one edge a node also 1."""
    return [1] if most <= 1 else [2**k for k in range(1, (most - 1).bit_length() + 1)]


def _nodes_for(degrees: Ints, deep: int) -> int:
    """Number of nodes, those that stand for edges included, where none has more than `deep` edges."""
    count, total = degrees, len(degrees)
    while deep > 1 and np.any(count > deep):
        count = -(-count[count > deep] // deep)
        total += int(count.sum())
    return total


def _parts(graph: FlowGraph, deep: int) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Nodes of paths with at most `deep` edges each, from the sink on.

    Nodes that stand for edges of others are numbered past those of the graph.
    """
    following = graph.nodes
    for node, leaving in reversed(graph.steps):
        edges = leaving
        while len(edges) > deep:
            grouped = [edges[k : k + deep] for k in range(0, len(edges), deep)]
            for k, group in enumerate(grouped):
                if len(group) == 1:
                    continue
                yield following, group
                grouped[k], following = [(graph.size + 1, following)], following + 1
            edges = [group[0] for group in grouped]
        yield node, edges
