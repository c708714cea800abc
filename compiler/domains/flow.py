"""Unit flows from a source to a sink of a directed graph without cycles."""

from __future__ import annotations

from typing import Any

from oco.compiler.domains.base import MAX_DENSE_ORDER, Domain
from oco.compiler.domains.dense_flow import DenseFlow
from oco.compiler.domains.flow_graph import FlowGraph
from oco.compiler.domains.sparse_flow import SparseFlow


def flow(shape: tuple[int, ...], edges: Any, source: Any, sink: Any) -> Domain:
    """The flows on `edges` (shape (number of edges, 2)): with their rows where a projection takes little time."""
    graph = FlowGraph.of(edges, source, sink)
    return DenseFlow.of(shape, graph) if graph.dimension <= MAX_DENSE_ORDER else SparseFlow(shape, graph)
