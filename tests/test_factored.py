"""Decisions kept as factors: the same rounds as with arrays, on every backend; and what a learner hands out."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from thorough import corners, thorough

import oco
from oco.backends.factors import Factors
from oco.backends.registry import backend
from oco.compiler.algorithms import ALGORITHMS
from oco.compiler.ir.passes import optimize
from oco.compiler.lowering import storage
from oco.compiler.selection.assemble import assemble
from oco.contract import contract_of
from oco.dsl.diagnostics import OcoError

M, N, T, TERMS = 7, 9, 24, 18

CONSTRAINTS = """subject to
    level: sum(X[row, col]) <= 0.02 each round
    corner: X[2, col] <= 0.02 each round
"""
MEAN = """subject to
    level: sum(X[row, col]) <= 0.02 on average
"""


def model(algorithm: str, constraints: str, distribution: str = "", domain: str = "nuclear_ball(5)") -> str:
    columns = N if domain.startswith("nuclear") else M
    return f"""model completion
horizon T = {T}
decision X[{M}, {columns}] in {domain}
stream row[3] in 0..{M - 1}{distribution}
stream col[3] in 0..{columns - 1}{distribution}
stream rating[3] in [-1, 1]{distribution}
minimize 0.5 * sum_squares(X[row, col] - rating) + 0.1 * X[0, 0]
{constraints}
using {algorithm}
"""


CASES = {
    "ofw-tvc": model("ofw-tvc", CONSTRAINTS),
    "ofw-tvc with a doubled guess": model("ofw-tvc with guess = 1e-6", CONSTRAINTS),
    "scofw-tvc": model("scofw-tvc with alpha_f = 0.1, beta = 0.001, gamma = 0.5", CONSTRAINTS),
    "projection-free": model("projection-free with oracle = ocg", MEAN, " iid"),
    "ofw": model("ofw", ""),
}
SPECTRAHEDRON = "spectrahedron(5)"
CASES |= {
    "ofw-tvc on a spectrahedron": model("ofw-tvc", CONSTRAINTS, domain=SPECTRAHEDRON),
    "scofw-tvc on a spectrahedron": model(
        "scofw-tvc with alpha_f = 0.1, beta = 0.001, gamma = 0.5", CONSTRAINTS, domain=SPECTRAHEDRON
    ),
    "projection-free on a spectrahedron": model(
        "projection-free with oracle = ocg", MEAN, " iid", domain=SPECTRAHEDRON
    ),
}


def rounds(columns: int, count: int = T) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "row": rng.integers(0, M, (count, 3)),
        "col": rng.integers(0, columns, (count, 3)),
        "rating": rng.uniform(-1, 1, (count, 3)),
    }


def play(plan: oco.Plan, terms: int | None, target: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Decisions (T, M, N or M) and losses (T,) with the matrix kept as so many outer products, or as an array."""
    algorithm = next(a for a in ALGORITHMS if a.name == plan.algorithm)
    kept = storage.low_rank_layouts(plan.canonical, terms) if terms else ()
    assert not terms or kept[0] is not None
    program = optimize(assemble(algorithm, replace(plan._spec, low_rank_layouts=kept), ""))
    (block,) = plan.canonical.blocks
    middle = block.domain.centre()
    ends = {"X": middle, "X_diagonal": middle[0, 0]}
    start = {f.name: np.array(ends.get(f.name, np.zeros(f.type.shape))) for f in program.decision}
    compiled = backend(target).compile(program, replace(contract_of(plan), start=start))
    assert compiled.measure is not None
    state, data = compiled.init(*start.values()), rounds(block.shape[1], count)
    decisions, losses = [], []
    for t in range(count):
        x = compiled.decide(*state)
        seen = [data[f.name][t] for f in program.feedback]
        losses.append(float(compiled.measure(t + 1, *x, *seen)[0]))
        decisions.append(Factors(*x).dense() if terms else np.array(x[0]))
        state = compiled.update(*state, *seen)
    return np.array(decisions), np.array(losses)


IN_C = ("ofw-tvc", "ofw-tvc on a spectrahedron")


PLAYED = [*((case, "numpy") for case in CASES), *((case, "c") for case in IN_C)]
ALIKE = [(f"{name} on a spectrahedron", "numpy") for name in ("scofw-tvc", "projection-free")]
"""The steps of these algorithms, and the matrices of another one, which are played too."""


@pytest.mark.parametrize("count", [T, thorough(60)])
@pytest.mark.parametrize("case, target", corners(PLAYED, [case for case in PLAYED if case not in ALIKE]))
def test_factors_play_the_rounds_of_arrays(case: str, target: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for twice the rank recompression loses nothing; with singular pairs to rounding the decisions are the same to 1e-9."""
    for kind in ("nuclear_ball", "spectrahedron"):
        monkeypatch.setattr(f"oco.compiler.domains.{kind}.WARM_RESIDUAL", 1e-14)
    monkeypatch.setattr("oco.compiler.domains.spectrahedron.FACTORED_RESIDUAL", 1e-14)
    plan = oco.compile(oco.parse(CASES[case].replace(f"horizon T = {T}", f"horizon T = {count}")))
    expected, losses = play(plan, None, "numpy", count)
    found, others = play(plan, TERMS, target, count)
    assert np.ptp(expected, axis=0).max() > 0.01
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_allclose(others, losses, atol=1e-9)


@cache
def large(rounds: int = 30) -> oco.Plan:
    """A matrix of more entries than are kept as an array."""
    text = model("ofw-tvc", CONSTRAINTS).replace(f"[{M}, {N}]", "[600, 700]").replace(f"T = {T}", f"T = {rounds}")
    return oco.compile(oco.parse(text))


def test_learners_of_large_matrices_decide_factors() -> None:
    plan = large()
    learner = plan.learner()
    for t in range(5):
        learner.decide()
        learner.observe(row=[t, 1, 2], col=[1, t, 3], rating=[1.0, -1.0, 0.5])
    x = learner.decide()
    assert isinstance(x, Factors) and x.shape == (600, 700)
    rows, columns = np.array([[0], [5]]), np.array([1, 2, 6])
    np.testing.assert_allclose(x.entries(rows, columns), np.asarray(x)[rows, columns])
    assert np.linalg.norm(x.dense(), "nuc") <= 5 * (1 + 1e-9)
    assert np.linalg.norm(x.dense()) > 0.1
    assert x.nbytes < 0.25 * x.dense().nbytes


def test_learners_start_at_matrices_of_low_rank() -> None:
    plan, rng = large(), np.random.default_rng(1)
    a = np.outer(rng.standard_normal(600), rng.standard_normal(700))
    a *= 4 / np.linalg.norm(a)
    np.testing.assert_allclose(plan.learner(start=a).decide().dense(), a, atol=1e-12)
    with pytest.raises(OcoError, match="lies outside"):
        plan.learner(start=2 * a)
    with pytest.raises(OcoError, match="has rank"):
        plan.learner(start=np.eye(600, 700) / 600)


@cache
def semidefinite() -> oco.Plan:
    text = model("ofw-tvc", CONSTRAINTS, domain=SPECTRAHEDRON).replace(f"[{M}, {M}]", "[600, 600]")
    return oco.compile(oco.parse(text))


def test_learners_of_large_semidefinite_matrices() -> None:
    plan = semidefinite()
    learner = plan.learner()
    assert learner.decide().diagonal == pytest.approx(5 / 600)
    for t in range(5):
        learner.decide()
        learner.observe(row=[t, 1, 2], col=[1, t, 2], rating=[1.0, -1.0, 0.5])
    x = learner.decide()
    assert isinstance(x, Factors) and plan.canonical.blocks[0].domain.contains(x.dense(), 1e-12)
    rows, columns = np.array([[0], [5]]), np.array([0, 2, 5])
    np.testing.assert_allclose(x.entries(rows, columns), np.asarray(x)[rows, columns])
    assert x.nbytes < 0.25 * x.dense().nbytes


def test_learners_start_beside_an_identity() -> None:
    plan, rng = semidefinite(), np.random.default_rng(3)
    v = np.linalg.qr(rng.standard_normal((600, 2)))[0]
    start = 2 * np.outer(v[:, 0], v[:, 0]) + 1.4 * np.outer(v[:, 1], v[:, 1]) + 1.6 / 600 * np.eye(600)
    x = plan.learner(start=start).decide()
    np.testing.assert_allclose(x.dense(), start, atol=1e-13)
    assert np.count_nonzero(x.s) == 2
    again = plan.learner(start=x).decide()
    np.testing.assert_allclose(again.dense(), start, atol=1e-13)
    uneven = start + 0.1 * (np.outer(v[:, 0], v[:, 1]) - np.outer(v[:, 1], v[:, 0]))
    for outside in (1.1 * start, uneven, start + 4 * np.outer(v[:, 0], v[:, 0]) - 4 * np.outer(v[:, 1], v[:, 1])):
        with pytest.raises(OcoError, match=r"lies outside|has rank"):
            plan.learner(start=outside)
    with pytest.raises(OcoError, match="has rank"):
        plan.learner(start=np.diag(np.arange(600.0)) * 5 / np.arange(600.0).sum())


def test_the_distance_of_factors_is_that_of_matrices() -> None:
    """The way from the start is measured between matrices, whatever terms they are written with."""
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal((9, 3)) for _ in range(2))
    x = Factors(a, np.array([1.0, 2.0, 0.0]), b, 0.3)
    y = Factors(b, np.array([0.5, 0.0, 1.0]), a, -0.1)
    assert x.distance(y) == pytest.approx(np.linalg.norm(x.dense() - y.dense()), rel=1e-12)
    assert x.used().distance(x) == pytest.approx(0.0, abs=1e-6)
    assert x.used().s.size == 2


def test_traces_keep_factors() -> None:
    rng, rounds = np.random.default_rng(2), 30
    data = {
        "row": rng.integers(0, M, (rounds, 3)),
        "col": rng.integers(0, N, (rounds, 3)),
        "rating": np.zeros((rounds, 3)),
    }
    trace = large(rounds).run(data, keep=10)
    assert [x.shape for x in trace.decisions] == [(600, 700)] * 3
    at = trace.decisions[1].entries(data["row"][10], data["col"][10])
    assert trace.loss[10] == pytest.approx(0.5 * np.sum(at**2) + 0.1 * trace.decisions[1].entries(0, 0))
    assert trace.to_dataset()["decision.X_left"].shape == (3, 600, 64)
