"""Directed graphs without cycles, as flows from a source to a sink use them: in time and memory that grow with the edges alone."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from oco.compiler.domains.arguments import written
from oco.compiler.domains.base import MAX_VERTICES
from oco.compiler.domains.norms import Floats
from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass

Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, eq=False)
class FlowGraph:
    """Graph whose edge k goes from the node `edges[k, 0]` to `edges[k, 1]`, with a path from `source` to `sink`.

    Nodes are counted from 0; `labels` are their numbers in the model.
    """

    edges: Ints
    source: int
    sink: int
    labels: Floats

    def __post_init__(self) -> None:
        if not self.paths_from[self.source]:
            first, last = (int(self.labels[node]) for node in (self.source, self.sink))
            raise fail("OCO417", f"no path leads from node {first} to node {last}")

    @classmethod
    def of(cls, edges: Any, source: Any, sink: Any) -> FlowGraph:
        """Graph of those nodes that an edge, the source or the sink names.

        An error (OCO417) for a cycle, or where no path leads to the sink.
        """
        pairs = np.asarray(edges, dtype=np.float64)
        ends = [float(np.asarray(source)), float(np.asarray(sink))]
        labels, places = np.unique(np.append(pairs, ends), return_inverse=True)
        places = places.astype(np.int64).ravel()
        return cls(places[:-2].reshape(-1, 2), int(places[-2]), int(places[-1]), labels)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.labels)

    @property
    def size(self) -> int:
        """Number of edges."""
        return len(self.edges)

    @cached_property
    def leaving(self) -> list[list[tuple[int, int]]]:
        """By node, the edges that leave it and the nodes that they lead to."""
        results: list[list[tuple[int, int]]] = [[] for _ in range(self.nodes)]
        for k, (tail, head) in enumerate(self.edges.tolist()):
            results[tail].append((k, head))
        return results

    @cached_property
    def order(self) -> list[int]:
        """Nodes, each before those that its edges lead to; an error where the graph has a cycle."""
        incoming = np.bincount(self.edges[:, 1], minlength=self.nodes).tolist()
        results = [node for node, count in enumerate(incoming) if count == 0]
        for node in results:  # which grows
            for _, head in self.leaving[node]:
                incoming[head] -= 1
                if incoming[head] == 0:
                    results.append(head)
        if len(results) < self.nodes:
            within = next(int(self.labels[node]) for node, count in enumerate(incoming) if count > 0)
            raise fail("OCO417", f"the graph has a cycle through node {within}")
        return results

    @cached_property
    def paths_from(self) -> list[int]:
        """Number of paths from each node to the sink; those beyond `MAX_VERTICES` count as one more."""
        count = [0] * self.nodes
        count[self.sink] = 1
        for node in reversed(self.order):
            if node != self.sink:
                count[node] = min(sum(count[head] for _, head in self.leaving[node]), MAX_VERTICES + 1)
        return count

    @cached_property
    def used(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Truth values (size,): some path from the source to the sink takes the edge."""
        reached = [False] * self.nodes
        reached[self.source] = True
        for node in self.order:
            if reached[node] and node != self.sink:
                for _, head in self.leaving[node]:
                    reached[head] = True
        tails, heads = self.edges.T
        leads_on = np.array([count > 0 for count in self.paths_from])
        return np.asarray(np.array(reached)[tails] & leads_on[heads] & (tails != self.sink))

    @cached_property
    def always(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Truth values (size,): every path takes the edge, which alone crosses between two nodes in a topological order.

        Every path crosses each such place once, and an edge that all paths take has the nodes before it on one side.
        """
        place = np.empty(self.nodes, dtype=np.int64)
        place[self.order] = np.arange(self.nodes)
        first, last = place[self.edges].T
        crossing = np.bincount(first[self.used], minlength=self.nodes + 1)
        crossing -= np.bincount(last[self.used], minlength=self.nodes + 1)
        alone = np.append(0, np.cumsum(np.cumsum(crossing) == 1))
        return np.asarray(self.used & (alone[last] > alone[first]))

    @cached_property
    def steps(self) -> list[tuple[int, list[tuple[int, int]]]]:
        """Nodes of paths but the sink, each before those that its edges lead to, with its edges of paths and their heads."""
        used = self.used.tolist()
        pairs = ((node, [(k, head) for k, head in self.leaving[node] if used[k]]) for node in self.order)
        return [(node, edges) for node, edges in pairs if edges]

    @property
    def dimension(self) -> int:
        """Dimension of the unit flows: edges of paths, less the nodes before the sink, which each keep a balance."""
        return int(np.count_nonzero(self.used)) - len(self.steps)

    def paths(self) -> Floats | None:
        """All paths as vectors of 0 and 1 (count, size), in the order of their edges; None where there are more than `MAX_VERTICES`."""
        if self.paths_from[self.source] > MAX_VERTICES:
            return None
        onward = dict(self.steps)
        partial: list[tuple[int, tuple[int, ...]]] = [(self.source, ())]
        whole = []
        while partial:
            node, taken = partial.pop()
            if node == self.sink:
                whole.append(taken)
            else:
                partial += [(head, (*taken, k)) for k, head in reversed(onward[node])]
        result = np.zeros((len(whole), self.size))
        for row, taken in zip(result, whole):
            row[list(taken)] = 1.0
        return result

    def balance(self, x: Floats) -> Floats:
        """Amounts that leave the nodes less those that enter them (nodes,), less the unit that goes from the source to the sink."""
        tails, heads = self.edges.T
        result = np.bincount(tails, x, self.nodes) - np.bincount(heads, x, self.nodes)
        result[self.source] -= 1.0
        result[self.sink] += 1.0
        return np.asarray(result)

    @cached_property
    def middle(self) -> Floats:
        """Unit flow of at least one part in `size` on every edge of a path (size,).

        Each such edge sends a unit. What the edges that leave a node send beyond what enters it is added to those that enter it, backwards
        from the sink; then what enters beyond what leaves to those that leave, forwards from the source. All of it is divided by its total.
        """
        amount = self.used.astype(np.float64).tolist()
        entering: list[list[int]] = [[] for _ in range(self.nodes)]
        for _, edges in self.steps:
            for k, head in edges:
                entering[head].append(k)
        for node, edges in reversed(self.steps):
            short = sum(amount[k] for k, _ in edges) - sum(amount[k] for k in entering[node])
            for k in entering[node] if short > 0 else ():
                amount[k] += short / len(entering[node])
        for node, edges in self.steps:
            short = sum(amount[k] for k in entering[node]) - sum(amount[k] for k, _ in edges)
            for k, _ in edges if short > 0 else ():
                amount[k] += short / len(edges)
        total = sum(amount[k] for k in entering[self.sink]) if self.source != self.sink else 1.0
        return np.array(amount) / total

    def random_flows(self, rng: np.random.Generator, count: int) -> Floats:
        """Unit flows (count, size) that each node splits by shares drawn uniformly: with a density that is positive on the interior.

        Flows that use every edge of a path are one to one with the shares.
        """
        x, through = np.zeros((self.size, count)), np.zeros((self.nodes, count))
        through[self.source] = 1.0
        for node, edges in self.steps:
            places = [k for k, _ in edges]
            shares = rng.standard_exponential((len(edges), count))
            x[places] = shares * (through[node] / shares.sum(axis=0))
            for k, head in edges:
                through[head] += x[k]
        return np.ascontiguousarray(x.T)


def balances(graph: FlowGraph) -> tuple[Floats, Floats]:
    """Amounts that leave the nodes less those that enter them, as rows over the edges (nodes, size) with their right sides."""
    rows, edges = np.zeros((graph.nodes, graph.size)), np.arange(graph.size)
    np.add.at(rows, (graph.edges[:, 0], edges), 1.0)
    np.add.at(rows, (graph.edges[:, 1], edges), -1.0)
    return rows, -graph.balance(np.zeros(graph.size))


def flow_text(graph: FlowGraph) -> str:
    """Text of the flows on a graph in the language."""
    first, last = (written(graph.labels[node]) for node in (graph.source, graph.sink))
    return f"flow({written(graph.labels[graph.edges])}, {first}, {last})"
