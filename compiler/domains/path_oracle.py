"""Linear minimisation over the unit flows of a graph, whatever else their set is worked out from."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from oco.compiler.domains.base import Domain
from oco.compiler.domains.flow_graph import FlowGraph, flow_text
from oco.compiler.domains.norms import Floats
from oco.compiler.domains.shortest_path import PathTable

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value


class PathOracle(Domain):
    """Unit flows on the edges of `graph`, whose extreme points are the paths from the source to the sink."""

    kind: ClassVar[str] = "flow"
    lmo_cost = "O(number of edges), a shortest path"
    fractional = ""

    graph: FlowGraph

    @cached_property
    def _table(self) -> PathTable:
        return PathTable.of(self.graph)

    def lmo(self, t: Tracer, c: Value) -> Value:
        """A shortest path; at each node the edge of the lowest index among equals."""
        return self._table.trace(t, c)

    def lmo_array(self, c: Any) -> Floats:
        """Linear minimisation as by `lmo`, without a program that is read step by step."""
        return self._table.shortest(self._read(c))

    def __str__(self) -> str:
        return flow_text(self.graph)
