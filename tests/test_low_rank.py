"""Low-rank iterates: the same Frank-Wolfe run with dense matrices, sums that recompression may lose, and membership."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oco
from oco.compiler.domains import domain, low_rank
from oco.compiler.domains.combination import Combination, Whole
from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Type

M, N, CAPACITY = 30, 40, 12


def types(capacity: int) -> tuple[Type, ...]:
    whole = Type(DType.INT)
    return (
        Type(DType.FLOAT, (M, capacity)),
        Type(DType.FLOAT, (capacity,)),
        Type(DType.FLOAT, (N, capacity)),
        whole,
        Type(DType.FLOAT),
    )


def moved(t: Any, *values: Any) -> tuple[Any, ...]:
    *parts, sigma, u, v = values
    X = low_rank.LowRank(*parts)
    return low_rank.sum_of(t, low_rank.scaled(X, 1.0 - sigma), low_rank.scaled(low_rank.atom(t, u, v), sigma)).values


STEP = as_numpy("step", moved, *types(CAPACITY), Type(DType.FLOAT), Type(DType.FLOAT, (M,)), Type(DType.FLOAT, (N,)))
START = (np.zeros((M, CAPACITY)), np.zeros(CAPACITY), np.zeros((N, CAPACITY)), 0, 0.0)


def dense(state: Any) -> np.ndarray:
    U, s, V, *_ = state
    return (U * s) @ V.T


def test_frank_wolfe_is_the_same_with_dense_iterates() -> None:
    """Completing a matrix of rank 2: the low-rank iterate stays within what its recompressions say they dropped."""
    rng = np.random.default_rng(2)
    target = rng.standard_normal((M, 2)) @ rng.standard_normal((2, N))
    d = domain("nuclear_ball", (M, N), float(np.linalg.svd(target, compute_uv=False).sum()))
    state, X = START, np.zeros((M, N))
    for step in range(60):
        vertex = d.lmo_array(X - target)
        u, s, vt = np.linalg.svd(vertex)
        sigma = 2 / (step + 2)
        X = X + sigma * (vertex - X)
        state = STEP(*state, sigma, u[:, 0] * s[0], vt[0])
        assert np.linalg.norm(dense(state) - X, "nuc") <= state[4] + 1e-9 * d.radius
        assert d.contains(dense(state), 1e-9)
        assert state[3] <= CAPACITY
    assert state[4] <= 0.1 * d.radius


ORDER, ROOM = 20, 6
SYMMETRIC = (
    Type(DType.FLOAT, (ORDER, ROOM)),
    Type(DType.FLOAT, (ROOM,)),
    Type(DType.FLOAT, (ORDER, ROOM)),
    Type(DType.INT),
    Type(DType.FLOAT),
    Type(DType.FLOAT),
)


def test_semidefinite_iterates_keep_their_trace() -> None:
    """Atoms towards random directions from the middle of a spectrahedron: what recompression drops comes back as an identity."""
    d, rng = domain("spectrahedron", (ORDER, ORDER), 3.0), np.random.default_rng(7)
    step = as_numpy("step", moved, *SYMMETRIC, Type(DType.FLOAT), *[Type(DType.FLOAT, (ORDER,))] * 2)
    parts = [np.zeros(kind.shape) for kind in SYMMETRIC]
    state, X = (*parts[:3], 0, 0.0, 3.0 / ORDER), d.centre()
    for k in range(60):
        v = rng.standard_normal(ORDER)
        v /= np.linalg.norm(v)
        sigma = 1 / (k + 3)
        X = (1 - sigma) * X + sigma * 3 * np.outer(v, v)
        state = step(*state, sigma, 3 * v, v)
        found = dense(state) + state[5] * np.eye(ORDER)
        assert d.contains(found, 1e-13)
        assert np.linalg.norm(found - X, "nuc") <= state[4] + 1e-9
        assert state[3] <= ROOM
    assert state[5] > 0.2 * 3 / ORDER and state[4] > 0.1


def test_reading_beside_an_identity() -> None:
    """Products, entries and inner products of a I + U diag(s) U' against the whole array."""
    rng = np.random.default_rng(8)
    U, s = rng.standard_normal((ORDER, ROOM)), rng.random(ROOM)
    W, r = rng.standard_normal((ORDER, ROOM)), rng.random(ROOM)
    rows, columns = rng.integers(0, ORDER, 9), np.r_[rng.integers(0, ORDER, 6), [0, 1, 2]]
    rows[6:] = [0, 1, 2]
    C, v = rng.standard_normal((ORDER, ORDER)), rng.standard_normal(ORDER)
    X, Y = (U * s) @ U.T + 0.7 * np.eye(ORDER), (W * r) @ W.T - 0.2 * np.eye(ORDER)

    def read(t: Any, *parts: Any) -> tuple[Any, ...]:
        x, y = low_rank.given(t, *parts[:4]), low_rank.given(t, *parts[4:])
        plain = low_rank.LowRank(x.U, x.s, x.V, x.count, x.lost)
        places, whole = (t.constant(rows, "i"), t.constant(columns, "j")), Whole(t.constant(C, "C"))
        one = Combination(((1.0, x),))
        return (
            x.entries(*places),
            x.forward(t.constant(v, "v")),
            x.backward(t.constant(v, "v")),
            x.dense(),
            one.inner(Combination(((1.0, y),))),
            one.inner(Combination(((1.0, plain),))),
            Combination(((1.0, plain),)).inner(Combination(((1.0, y),))),
            one.inner(Combination(((1.0, whole),))),
        )

    kinds = [SYMMETRIC[k] for k in (0, 1, 2, 4)]
    found = as_numpy("read", read, *kinds, *kinds)(U, s, U, 0.7, W, r, W, -0.2)
    low = X - 0.7 * np.eye(ORDER)
    expected = (X[rows, columns], X @ v, X @ v, X, np.sum(X * Y), np.sum(X * low), np.sum(low * Y), np.sum(X * C))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_recompression_keeps_what_has_low_rank() -> None:
    """A sum of many terms of rank two in all loses nothing."""
    rng = np.random.default_rng(3)
    left, right = rng.standard_normal((M, 2)), rng.standard_normal((N, 2))
    state, X = START, np.zeros((M, N))
    for _ in range(40):
        u, v = left @ rng.standard_normal(2), right @ rng.standard_normal(2)
        v /= np.linalg.norm(v)
        X = 0.9 * X + 0.1 * np.outer(u, v)
        state = STEP(*state, 0.1, u, v)
    np.testing.assert_allclose(dense(state), X, atol=1e-10)
    assert state[4] <= 1e-12 * np.linalg.norm(X)


def test_reading_needs_no_dense_matrix() -> None:
    rng = np.random.default_rng(4)
    state = (
        rng.standard_normal((M, CAPACITY)),
        rng.random(CAPACITY),
        rng.standard_normal((N, CAPACITY)),
        CAPACITY,
        0.0,
    )
    rows, columns = rng.integers(0, M, 9), rng.integers(0, N, 9)
    C, v, u = rng.standard_normal((M, N)), rng.standard_normal(N), rng.standard_normal(M)

    def read(t: Any, *parts: Any) -> tuple[Any, ...]:
        X = low_rank.LowRank(*parts)
        constants = t.constant(rows, "i"), t.constant(columns, "j")
        return (
            X.entries(*constants),
            Combination(((1.0, X),)).inner(Combination(((2.0, Whole(t.constant(C, "C"))),))) / 2.0,
            X.forward(t.constant(v, "v")),
            X.backward(t.constant(u, "u")),
            X.dense(),
        )

    some, product, right, left, whole = as_numpy("read", read, *types(CAPACITY))(*state)
    X = dense(state)
    np.testing.assert_allclose(some, X[rows, columns])
    np.testing.assert_allclose(product, np.sum(C * X))
    np.testing.assert_allclose(right, X @ v)
    np.testing.assert_allclose(left, X.T @ u)
    np.testing.assert_allclose(whole, X)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_a_start_from_the_last_answer_plays_as_full_decompositions_do(target: str) -> None:
    """ofw on matrices of more than 40 rows, against the rule written out with LAPACK (Weibel et al. 2026)."""
    m, n, rounds, eta = 45, 50, 12, 0.05
    text = f"model warm\nhorizon T = {rounds}\ndecision X[{m}, {n}] in nuclear_ball(5)\nstream C[{m}, {n}] in [-1, 1]\n"
    plan = oco.compile(oco.parse(text + "minimize 0.5 * sum_squares(X - C)\n"), "ofw", {"eta": eta})
    C = np.random.default_rng(3).uniform(-1, 1, (rounds, m, n))
    learner, x, G = plan.learner(backend=target), np.zeros((m, n)), np.zeros((m, n))
    for t in range(1, rounds + 1):
        np.testing.assert_allclose(learner.decide(), x, atol=1e-7)
        learner.observe(C=C[t - 1])
        G += x - C[t - 1]
        u, _, vt = np.linalg.svd(eta * G + x)
        x = x + np.sqrt(3 / rounds) * (-5 * np.outer(u[:, 0], vt[0]) - x)
    assert np.abs(x).max() > 0.1
