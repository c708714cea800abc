"""What a flow knows of its paths without a linear program, against its vertices: all paths, one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

import oco
from oco.compiler.domains.dense_flow import DenseFlow
from oco.compiler.domains.flow import flow
from oco.compiler.domains.flow_graph import FlowGraph, balances
from oco.compiler.domains.sparse_flow import SparseFlow
from oco.dsl.diagnostics import OcoError

Edges = tuple[np.ndarray, int]
"""Edges, and the node that paths from node 0 lead to."""


def graphs(count: int) -> list[DenseFlow]:
    """Flows on random graphs without cycles, with edges that no path takes and some that all take."""
    rng, found = np.random.default_rng(3), list[DenseFlow]()
    while len(found) < count:
        nodes, size = int(rng.integers(2, 7)), int(rng.integers(1, 11))
        names = rng.permutation(nodes)
        pairs = np.sort([rng.choice(nodes, 2, replace=False) for _ in range(size)], axis=1)
        try:
            graph = FlowGraph.of(names[pairs], *rng.choice(nodes, 2, replace=False))
            found.append(DenseFlow.of((size,), graph))
        except OcoError as error:
            assert error.code == "OCO417"
    return found


def grid(rows: int, columns: int) -> Edges:
    """Edges to the right and downwards."""
    places = np.arange(rows * columns).reshape(rows, columns)
    right = np.stack([places[:, :-1].ravel(), places[:, 1:].ravel()], axis=1)
    down = np.stack([places[:-1].ravel(), places[1:].ravel()], axis=1)
    return np.concatenate([right, down]), rows * columns - 1


def layers(rng: np.random.Generator) -> Edges:
    """Nodes of very different numbers of edges, and some that no path meets."""
    pairs = np.sort(rng.integers(0, 30, (150, 2)) ** 2 // 29, axis=1)
    chained = np.stack([np.arange(29), np.arange(1, 30)], axis=1)
    return np.concatenate([pairs[pairs[:, 0] < pairs[:, 1]], chained[::2], chained[1::2]]), 28


def star(points: int) -> Edges:
    """Edges from one node to all points, and from them to one."""
    k = np.arange(1, points + 1)
    return np.concatenate([np.stack([0 * k, k], axis=1), np.stack([k, 0 * k + points + 1], axis=1)]), points + 1


def chain(nodes: int) -> Edges:
    """Two edges from each node to the next."""
    k = np.arange(nodes)
    return np.repeat(np.stack([k, k + 1], axis=1), 2, axis=0), nodes


GRAPHS = graphs(60)


def test_the_smallest_box_is_that_around_all_paths() -> None:
    taken = 0
    for f in GRAPHS:
        paths = f.vertices()
        assert paths is not None
        np.testing.assert_array_equal(f.lower, paths.min(axis=0))
        np.testing.assert_array_equal(f.upper, paths.max(axis=0))
        taken += int(f.lower.sum()) > 0
    assert 5 < taken < len(GRAPHS) - 5, "some graphs have edges that all paths take, some have none"


@pytest.mark.parametrize("ties", [False, True])
def test_a_shortest_path_is_that_of_the_program(ties: bool) -> None:
    rng = np.random.default_rng(4)
    for f in GRAPHS:
        cost = rng.integers(-1, 2, f.size).astype(float) if ties else rng.normal(size=f.size)
        found, paths = f.lmo_array(cost), f.vertices()
        assert paths is not None
        np.testing.assert_array_equal(found, f._minimisation(cost)[0])
        assert cost @ found == pytest.approx((paths @ cost).min(), abs=1e-12)


def test_nodes_may_have_any_numbers() -> None:
    """Only those that are named count: the numbers neither cost time nor memory, and stand in the text and in what is said."""
    edges = np.array([[0, 1], [1, 2], [0, 2]])
    labels = np.array([7, 10**9, 3])
    near, far = flow((3,), edges, 0, 2), flow((3,), labels[edges], 7, 3)
    paths = (near.vertices(), far.vertices())
    assert paths[0] is not None and paths[1] is not None
    assert {p.tobytes() for p in paths[0]} == {p.tobytes() for p in paths[1]}
    assert str(far) == f"flow({labels[edges].tolist()}, 7, 3)"
    with pytest.raises(OcoError, match="from node 0 to node 1000000000000"):
        flow((3,), edges, 0, 10**12)
    with pytest.raises(OcoError, match="cycle through node 3"):
        flow((3,), labels[[[1, 2], [2, 1], [0, 2]]], 7, 3)


def test_a_sink_that_is_the_source_is_reached_without_an_edge() -> None:
    f = flow((3,), np.array([[0, 1], [1, 2], [0, 2]]), 1, 1)
    np.testing.assert_array_equal(f.vertices(), np.zeros((1, 3)))
    np.testing.assert_array_equal(f.project_array(np.ones(3)), np.zeros(3))
    assert f.contains(np.zeros(3)) and not f.contains(np.ones(3))
    assert f.diameter() == 0


LARGER = [SparseFlow(f.shape, f.graph) for f in GRAPHS if f.dimension > 0][:12]


def test_what_is_known_from_the_edges_is_that_of_the_rows() -> None:
    assert len(LARGER) == 12
    for sparse in LARGER:
        dense = DenseFlow.of(sparse.shape, sparse.graph)
        paths = sparse.vertices()
        assert paths is not None and sparse.dimension == dense.dimension == np.linalg.matrix_rank(paths - paths[0])
        np.testing.assert_array_equal(sparse.lower, dense.lower)
        np.testing.assert_array_equal(sparse.upper, dense.upper)
        assert sparse.radius == pytest.approx(dense.radius, abs=1e-12)
        from_centre = np.linalg.norm(paths - sparse.centre(), axis=1)
        assert sparse.radius_about_centre == pytest.approx(from_centre.max(), abs=1e-12)
        for norm in ("l1", "l2"):
            assert sparse.diameter(norm) >= dense.diameter(norm) - 1e-12
        assert 0 < sparse.inner_radius <= dense.inner_radius + 1e-9
        A, b = sparse.affine_hull()
        assert np.linalg.matrix_rank(A) == len(A) == sparse.size - sparse.dimension
        np.testing.assert_allclose(paths @ A.T, np.tile(b, (len(paths), 1)), atol=1e-12)


@pytest.mark.parametrize("name", ["grid", "layers", "star", "chain"])
def test_a_shortest_path_costs_what_a_linear_program_does(name: str) -> None:
    """Among them nodes with more edges than a row of the table has room for, and rows of one node."""
    rng = np.random.default_rng(5)
    edges, sink = {"grid": grid(7, 9), "layers": layers(rng), "star": star(70), "chain": chain(40)}[name]
    f = SparseFlow((len(edges),), FlowGraph.of(edges, 0, sink))
    incidence = csr_array(balances(f.graph)[0])
    for _ in range(3):
        cost = rng.normal(size=f.size)
        least = linprog(cost, A_eq=incidence, b_eq=balances(f.graph)[1]).fun
        found = f.lmo_array(cost)
        np.testing.assert_array_equal(found, f._minimisation(cost)[0])
        assert f.violation(found) == 0 and cost @ found == pytest.approx(least, abs=1e-9)


def test_flows_drawn_and_the_middle_use_all_edges_of_paths() -> None:
    f = SparseFlow((len(grid(6, 6)[0]),), FlowGraph.of(grid(6, 6)[0], 0, 35))
    assert f.centre().min() >= 1 / f.size and f.violation(f.centre()) <= 1e-12
    drawn = f.sample(np.random.default_rng(0), 20)
    assert drawn.min() > 0 and max(f.violation(x) for x in drawn) <= 1e-12


def test_a_hundred_thousand_edges() -> None:
    """A grid, whose paths have 446 edges: the cheapest of costs that make one path free, and the set's size."""
    edges, sink = grid(224, 224)
    f = flow((len(edges),), edges, 0, sink)
    assert "project" in f.expensive and f.dimension == len(edges) - 224 * 224 + 1
    assert f.radius == pytest.approx(np.sqrt(446)) and f.diameter("l1") == pytest.approx(892)
    wanted = f.lmo_array(np.random.default_rng(0).normal(size=f.size))
    cost = np.random.default_rng(1).random(f.size) * (1.0 - wanted)
    np.testing.assert_array_equal(f.lmo_array(cost), wanted)
    with pytest.raises(OcoError, match="as its projection needs it") as error:
        f.project_array(wanted)
    assert error.value.code == "OCO805"


@pytest.mark.thorough
def test_a_plan_for_a_hundred_thousand_edges() -> None:
    edges, sink = grid(224, 224)
    m = oco.Model("paths", horizon=1000)
    x = m.decision("x", len(edges), domain=oco.flow(edges, 0, sink))
    c = m.stream("c", len(edges), bounds=(0, 1))
    m.minimize(c @ x)
    plan = oco.compile(m)
    assert plan.algorithm == "ofw"
    cost = np.random.default_rng(0).random(len(edges))
    decisions = []
    for backend in ("numpy", "c"):
        learner = plan.learner(backend=backend)
        for _ in range(3):
            decisions.append(learner.decide())
            learner.observe(c=cost)
    np.testing.assert_allclose(decisions[:3], decisions[3:], atol=1e-12)
    assert cost @ decisions[2] < cost @ decisions[0]
    assert plan.canonical.blocks[0].domain.violation(decisions[2]) <= 1e-9


def test_a_cycle_among_many_edges_is_found() -> None:
    edges, sink = grid(60, 60)
    with pytest.raises(OcoError, match="cycle") as error:
        flow((len(edges) + 1,), np.concatenate([edges, [[sink - 1, 5]]]), 0, sink)
    assert error.value.code == "OCO417"
