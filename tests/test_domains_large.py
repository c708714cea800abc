"""Large sets: Lanczos bidiagonalization against full decompositions, and projections that sort nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from oco.compiler.domains import domain
from oco.compiler.domains.chebyshev import small_top_pair
from oco.compiler.domains.lanczos import top_pair
from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Type

M, N = 210, 240


def spectrum(values: np.ndarray, columns: int = N) -> np.ndarray:
    """A matrix with the given singular values."""
    rng, rows = np.random.default_rng(4), len(values)
    u = np.linalg.qr(rng.standard_normal((rows, rows)))[0]
    v = np.linalg.qr(rng.standard_normal((columns, rows)))[0]
    return (u * values) @ v.T


def in_blocks() -> np.ndarray:
    blocks = np.zeros((M, N))
    blocks[0, 0] = 1.1
    blocks[1:60, 1:60] = 0.2
    return blocks


CLOUDS: dict[str, Callable[[], np.ndarray]] = {
    "flat": lambda: np.random.default_rng(0).standard_normal((M, N)),
    "dominant": lambda: spectrum(np.r_[10.0, np.linspace(1, 0, M - 1)]),
    "twins": lambda: spectrum(np.r_[2.0, 2.0, 2.0, np.linspace(1, 0, M - 3)]),
    "near twins": lambda: spectrum(np.r_[2.0, 2.0 - 1e-7, np.linspace(1.9, 0, M - 2)]),
    "rank one": lambda: np.outer(np.arange(M, dtype=float), np.ones(N)),
    "single entry": lambda: np.eye(M, N)[::-1] * (np.arange(M)[:, None] == 7),
    "longest row outside the top block": in_blocks,
}


@cache
def cloud(name: str) -> np.ndarray:
    """Matrix of that name."""
    return CLOUDS[name]()


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("scale", [1e-140, 1.0, 1e140])
def test_nuclear_ball_minimises_by_the_top_pair(name: str, scale: float) -> None:
    d = domain("nuclear_ball", (M, N), 3.0)
    c = scale * cloud(name)
    x = d.lmo_array(c)
    assert np.sum(c / scale * x) == pytest.approx(-3 * np.linalg.norm(cloud(name), 2), rel=1e-9)
    assert np.linalg.matrix_rank(x, tol=1e-9) == 1
    assert d.contains(x, 1e-9)


def test_nuclear_ball_minimises_nothing_within_the_set() -> None:
    d = domain("nuclear_ball", (M, N), 3.0)
    assert d.contains(d.lmo_array(np.zeros((M, N))))


@pytest.mark.parametrize("kind", ["dense", "low rank", "degenerate"])
def test_spectrahedron_minimises_by_the_bottom_vector(kind: str) -> None:
    rng = np.random.default_rng(5)
    n = 210
    g = rng.standard_normal((n, n))
    c = {"dense": g + g.T, "low rank": -np.outer(g[0], g[0]), "degenerate": np.eye(n)}[kind]
    d = domain("spectrahedron", (n, n), 2.0)
    x = d.lmo_array(c)
    assert np.sum(c * x) == pytest.approx(2 * np.linalg.eigvalsh(c)[0], rel=1e-9, abs=1e-9)
    assert d.contains(x, 1e-9)


def test_sparse_operators_stay_sparse() -> None:
    """The top pair of a matrix that is given by its entries alone, and the certified residual."""
    rng = np.random.default_rng(6)
    m, n, count = 2000, 3000, 500
    rows, columns, values = rng.integers(0, m, count), rng.integers(0, n, count), rng.standard_normal(count)

    def rule(t, values, start):  # type: ignore[no-untyped-def]
        i, j = t.constant(rows, "i"), t.constant(columns, "j")
        forward = lambda x: t.scatter_add(values * t.gather(x, j), i, shape=(m,))  # noqa: E731
        backward = lambda y: t.scatter_add(values * t.gather(y, i), j, shape=(n,))  # noqa: E731
        return top_pair(t, forward, backward, (m, n), start, 1e-8)

    run = as_numpy("pair", rule, Type(DType.FLOAT, (count,)), Type(DType.FLOAT, (n,)))
    u, sigma, v = run(values, rng.standard_normal(n))
    dense = np.zeros((m, n))
    np.add.at(dense, (rows, columns), values)
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import svds

    assert float(sigma) == pytest.approx(svds(csr_array(dense), k=1)[1][0], rel=1e-9)
    assert np.linalg.norm(dense.T @ u - sigma * v) <= 1.1e-8 * sigma
    assert np.linalg.norm(u) == pytest.approx(1) and np.linalg.norm(v) == pytest.approx(1)


def test_a_warm_start_reaches_a_loose_residual() -> None:
    """From the previous answer on a slightly changed matrix: the residual asked for, and a value good to its square."""
    a = cloud("dominant")
    nudged = a + 1e-3 * np.random.default_rng(8).standard_normal((M, N))

    def rule(t, a, start):  # type: ignore[no-untyped-def]
        return top_pair(t, lambda x: a @ x, lambda y: y @ a, (M, N), start, 1e-3)

    run = as_numpy("pair", rule, Type(DType.FLOAT, (M, N)), Type(DType.FLOAT, (N,)))
    u, sigma, v = run(nudged, np.linalg.svd(a)[2][0])
    assert np.linalg.norm(nudged.T @ u - sigma * v) <= 1.1e-3 * sigma
    assert float(sigma) == pytest.approx(np.linalg.norm(nudged, 2), rel=1e-6)


@pytest.mark.parametrize("kind", ["l1_ball", "simplex"])
def test_projections_of_many_entries_are_fast_enough(kind: str) -> None:
    """A hundred thousand entries with the distances of neighbours halving: few passes, exact sum."""
    n = 10**5
    d = domain(kind, (n,), 1.0)
    p = d.project_array(np.ldexp(1.0, -(np.arange(n) % 1000)))
    assert d.contains(p, 1e-12)
    assert float(p.sum()) == pytest.approx(1.0, abs=1e-12)


SMALL = {
    "flat": np.random.default_rng(0).standard_normal((40, 40)),
    "wide": np.random.default_rng(1).standard_normal((12, 70)),
    "tall": np.random.default_rng(2).standard_normal((70, 12)),
    "dominant": spectrum(np.r_[10.0, np.linspace(1, 0, 39)], 50),
    "twins": spectrum(np.r_[2.0, 2.0, 2.0, np.linspace(1, 0, 37)], 50),
    "near twins": spectrum(np.r_[2.0, 2.0 - 1e-7, np.linspace(1.9, 0, 38)], 50),
    "crowded": spectrum(np.linspace(1, 0.999, 40), 50),
    "rank one": np.outer(np.arange(40.0), np.ones(30)),
    "one entry": np.array([[3.0]]),
    "zero": np.zeros((5, 7)),
}


@pytest.mark.parametrize("start", ["near", "anywhere", "the least", "nothing"])
@pytest.mark.parametrize("name", SMALL)
def test_small_matrices_have_their_top_pair(name: str, start: str) -> None:
    """The greatest singular value and a residual within the tolerance, also from a start that has little of the answer."""
    c, rng = SMALL[name], np.random.default_rng(9)
    m, n = c.shape
    vectors, noise = np.linalg.svd(c)[2], rng.standard_normal(n) / np.sqrt(n)
    starts = {"near": vectors[0] + 0.02 * noise, "anywhere": noise, "the least": vectors[-1] + 0.01 * noise}
    begun = starts.get(start, np.zeros(n))
    run = as_numpy(
        "pair", lambda t, c, x: small_top_pair(t, c, x, 1e-9), Type(DType.FLOAT, (m, n)), Type(DType.FLOAT, (n,))
    )
    for scale in (1e-150, 1.0, 1e150):
        u, sigma, v = run(scale * c, begun)
        top = np.linalg.norm(c, 2)
        assert float(sigma) / scale == pytest.approx(top, rel=1e-9, abs=1e-300)
        assert np.linalg.norm(u) == pytest.approx(1) and np.linalg.norm(v) == pytest.approx(1)
        assert np.linalg.norm(c @ v - float(sigma) / scale * u) <= 1.1e-9 * top
        assert np.linalg.norm(c.T @ u - float(sigma) / scale * v) <= 1.1e-9 * top
