"""Unit flows of a directed graph without cycles as a polyhedron, with a row for each edge and node."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.domains.flow_graph import FlowGraph, balances
from oco.compiler.domains.norms import Floats
from oco.compiler.domains.path_oracle import PathOracle
from oco.compiler.domains.polyhedron import Polyhedron
from oco.compiler.domains.rows import check_rows
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False)
class DenseFlow(PathOracle, Polyhedron):
    """{ x >= 0 on the edges : one unit leaves the source and reaches the sink, what enters another node leaves it }.

    The extreme points are the paths from the source to the sink.
    """

    graph: FlowGraph = field(default_factory=lambda: FlowGraph.of([[0, 1]], 0, 1))

    @classmethod
    def of(cls, shape: tuple[int, ...], graph: FlowGraph) -> DenseFlow:
        """The flows on a graph. An error (OCO805) where their rows do not fit into memory."""
        nodes, count = graph.nodes, graph.size
        name = f"a flow on {count:,} edges between {nodes:,} nodes, as its projection needs it,"
        check_rows(nodes + count, count, name, hint="use an algorithm without projections, such as `using ofw`")
        return cls(shape, -np.eye(count), np.zeros(count), *balances(graph), graph)

    @property
    def _known_hull(self) -> tuple[Floats, Floats]:
        return self.graph.always.astype(np.float64), self.graph.used.astype(np.float64)

    @cached_property
    def _hull(self) -> tuple[Floats, Floats]:
        return self._known_hull

    @cached_property
    def _corners(self) -> Floats | None:
        return self.graph.paths()
