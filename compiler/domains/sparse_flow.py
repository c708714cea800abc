"""Unit flows on graphs with many edges: all but the projection is worked out from the edges, in time and memory that grow with them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from oco.compiler.domains.base import MAX_VERTICES, Halfspaces
from oco.compiler.domains.dense_flow import DenseFlow
from oco.compiler.domains.flow_graph import FlowGraph, balances
from oco.compiler.domains.norms import Floats, exact_sum, vector_norm
from oco.compiler.domains.path_oracle import PathOracle
from oco.compiler.domains.rows import check_rows
from oco.dsl.limits import MOST_ROW_NUMBERS
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

WITHOUT = "use an algorithm that moves along edges alone, such as `using ofw`"


@dataclass(frozen=True, eq=False)
class SparseFlow(PathOracle):
    """The set of `DenseFlow` over a graph of many edges: linear minimisation, radii, bounds and samples from paths, without rows.

    Distances of two flows are bounded by those of two paths that share no edge but those that all paths take. The ball within is that of
    a flow that uses all edges of paths; its radius is the least amount on one, since no direction of flows of length one uses an edge by
    more than that.
    """

    projection_cost = DenseFlow.projection_cost
    tight_hull: ClassVar[bool] = True

    graph: FlowGraph

    # Operations of a round.

    @property
    def expensive(self) -> Mapping[str, str]:
        why = f"the flows on {self.size:,} edges have {self.dimension:,} dimensions, and each step of it solves systems of that order"
        return {"project": why, "project_jacobian": why, "bregman_step": why}

    @cached_property
    def _polyhedron(self) -> DenseFlow:
        """The set with its rows written out. An error (OCO805) where they do not fit into memory."""
        return DenseFlow.of(self.shape, self.graph)

    def project(self, t: Tracer, v: Value) -> Value:
        return self._polyhedron.project(t, v)

    def project_jacobian(self, t: Tracer, v: Value, p: Value, M: Value) -> Value:
        return self._polyhedron.project_jacobian(t, v, p, M)

    # Membership.

    def violation(self, x: Floats) -> float:
        return max(float(-x.min()), float(np.max(np.abs(self.graph.balance(x)))))

    @cached_property
    def _moving(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Edges that some paths take and others do not."""
        return np.asarray(self.graph.used & ~self.graph.always)

    def interior_margin(self, x: Floats) -> float:
        return float(np.min(x[self._moving], initial=np.inf)) if self.dimension else 0.0

    # Geometry.

    @property
    def bounds_only(self) -> frozenset[str]:
        return frozenset({"diameter.l1", "diameter.l2", "inner_radius"})

    @property
    def lower(self) -> Floats:
        return self.graph.always.astype(np.float64)

    @property
    def upper(self) -> Floats:
        return self.graph.used.astype(np.float64)

    def support(self, c: Floats) -> float:
        return exact_sum(c * self.lmo_array(-c))

    def _most(self, weights: Floats) -> float:
        """The largest sum of weights along a path."""
        return exact_sum(weights * self._table.shortest(-weights))

    @cached_property
    def _farthest_l1(self) -> float:
        """A bound of the distance of two paths in the number of edges: of those that not all take, and twice the most on one path."""
        moving = self._moving.astype(np.float64)
        return min(float(moving.sum()), 2 * self._most(moving))

    def _diameter_l2(self) -> float:
        return math.sqrt(self._farthest_l1)

    def _diameter_l1(self) -> float:
        return self._farthest_l1

    @cached_property
    def radius(self) -> float:
        return math.sqrt(self._most(np.ones(self.size)))

    @cached_property
    def radius_about_centre(self) -> float:
        """Exact: |x - c|^2 = sum x (1 - 2 c) + |c|^2 for a path x."""
        weights = 1.0 - 2.0 * self.centre()
        return vector_norm(self._table.shortest(-weights) - self.centre())

    @property
    def inner_radius(self) -> float:
        return self.interior_margin(self.centre())

    def centre(self) -> Floats:
        """A flow that uses all edges of paths."""
        return self.graph.middle

    @property
    def dimension(self) -> int:
        return self.graph.dimension

    @property
    def hull_fits(self) -> bool:
        return (len(self.graph.steps) + int((~self.graph.used).sum())) * self.size <= MOST_ROW_NUMBERS

    def affine_hull(self) -> tuple[Floats, Floats]:
        """Balances of the nodes of paths but the sink, and no flow on other edges. An error (OCO805) where they do not fit into memory."""
        g, nodes = self.graph, [node for node, _ in self.graph.steps]
        unused = np.flatnonzero(~g.used)
        check_rows(len(nodes) + len(unused), self.size, f"the affine hull of {self}", hint=WITHOUT)
        rows, sides = balances(g)
        alone = np.zeros((len(unused), self.size))
        alone[np.arange(len(unused)), unused] = 1.0
        return np.concatenate([rows[nodes] * g.used, alone]), np.append(sides[nodes], np.zeros(len(unused)))

    def tangent(self, c: Floats) -> Floats:
        """`c` without differences of potentials of the nodes, by conjugate gradients on the Laplacian matrix of the edges of paths."""
        from scipy.sparse.linalg import LinearOperator, cg

        g = self.graph
        tails, heads = g.edges[g.used].T
        free = np.arange(g.nodes) != g.sink  # the potential of the sink is 0

        def leaving(flow: Floats) -> Floats:
            return np.asarray((np.bincount(tails, flow, g.nodes) - np.bincount(heads, flow, g.nodes)) * free)

        degrees = np.maximum(np.bincount(tails, minlength=g.nodes) + np.bincount(heads, minlength=g.nodes), 1)
        laplacian = LinearOperator((g.nodes,) * 2, matvec=lambda p: leaving(p[tails] - p[heads]), dtype=np.float64)
        jacobi = LinearOperator((g.nodes,) * 2, matvec=lambda p: p / degrees, dtype=np.float64)
        result = np.where(g.used, c, 0.0)
        for _ in range(2):  # the second time takes off what the first one leaves
            potentials, _ = cg(laplacian, leaving(result[g.used]), rtol=1e-12, M=jacobi)
            result[g.used] -= potentials[tails] - potentials[heads]
        return result

    def halfspaces(self) -> Halfspaces | None:
        return self._polyhedron.halfspaces() if self._fits else None

    @property
    def _fits(self) -> bool:
        """True if the rows of the set fit into memory."""
        return (self.graph.nodes + self.size) * self.size <= MOST_ROW_NUMBERS

    @cached_property
    def _corners(self) -> Floats | None:
        return self.graph.paths() if MAX_VERTICES * self.size <= MOST_ROW_NUMBERS else None

    def vertices(self) -> Floats | None:
        return self._corners

    def sample(self, rng: np.random.Generator, n: int) -> Floats:
        return self.graph.random_flows(rng, n)

    # In CVXPY.

    def constraints(self, cp: Any, variable: Any) -> list[Any]:
        return [variable >= 0, self._balanced(variable)]

    def interior_constraints(self, cp: Any, variable: Any, margin: Any) -> list[Any]:
        low = self._moving.astype(np.float64)
        return [variable >= low * margin, self._balanced(variable)]

    def _balanced(self, variable: Any) -> Any:
        from scipy.sparse import csr_array

        g, ends = self.graph, np.ones(self.size)
        places = np.concatenate([g.edges[:, 0], g.edges[:, 1]]), np.tile(np.arange(self.size), 2)
        incidence = csr_array((np.append(ends, -ends), places), shape=(g.nodes, self.size))
        return incidence @ variable == -g.balance(np.zeros(self.size))
