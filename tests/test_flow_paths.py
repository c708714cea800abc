"""What a flow knows of its paths without a linear program, against its vertices: all paths, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from oco.compiler.domains import Domain
from oco.compiler.domains.flow import flow
from oco.dsl.diagnostics import OcoError


def graphs(count: int) -> list[Domain]:
    """Flows on random graphs without cycles, with edges that no path takes and some that all take."""
    rng, found = np.random.default_rng(3), list[Domain]()
    while len(found) < count:
        nodes, size = int(rng.integers(2, 7)), int(rng.integers(1, 11))
        names = rng.permutation(nodes)
        pairs = np.sort([rng.choice(nodes, 2, replace=False) for _ in range(size)], axis=1)
        try:
            found.append(flow((size,), names[pairs], *rng.choice(nodes, 2, replace=False)))
        except OcoError as error:
            assert error.code == "OCO417"
    return found


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
