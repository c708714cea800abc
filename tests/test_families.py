"""Constraints written one by one that are alike, evaluated as vectors: against the formula, and the model that has vectors."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from thorough import corners

import oco
from oco.compiler.algorithms.memory import memory_of
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.families import families
from oco.dsl.evaluate import evaluate
from oco.dsl.load import parse
from oco.dsl.model import Model

N = 12
RNG = np.random.default_rng(0)
SCALE, LIMIT = RNG.uniform(1, 2, N).round(3), RNG.uniform(1, 3, N).round(3)


def model(vectors: bool, slope: bool = False) -> oco.Model:
    """Upper and lower rows of each entry in turn, with a sum between them; `slope`: data multiply decisions."""
    m = oco.Model("m", horizon=40)
    x = m.decision("x", N, domain=oco.box(0, 4))
    cost, high, low = (m.stream(n, N, bounds=b) for n, b in (("cost", (-3, 3)), ("high", (1, 3)), ("low", (0, 1))))
    m.minimize(cost @ x)
    if vectors:
        m.subject_to(SCALE * x - high * LIMIT <= 0, name="up", each_round=True)
        m.subject_to(oco.sum(x) <= 20, name="all", each_round=True)
        m.subject_to((low * x if slope else low - x) <= 0.5, name="down", each_round=True)
        return m
    for i in range(N):
        m.subject_to(SCALE[i] * x[i] - high[i] * LIMIT[i] <= 0, name=f"up{i}", each_round=True)
        if i == 4:
            m.subject_to(oco.sum(x) <= 20, name="all", each_round=True)
        m.subject_to((low[i] * x[i] if slope else low[i] - x[i]) <= 0.5, name=f"down{i}", each_round=True)
    return m


@cache
def built(vectors: bool, slope: bool = False) -> Model:
    """Model of `model`, whose facts all algorithms share."""
    return model(vectors, slope).build()


def data(rounds: int = 40) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {
        "cost": rng.uniform(-3, 3, (rounds, N)),
        "high": rng.uniform(1, 3, (rounds, N)),
        "low": rng.uniform(0, 1, (rounds, N)),
    }


def test_families_hold_the_same_numbers_in_another_order() -> None:
    problem = canonical(model(False).build())
    own = problem.families
    assert [len(m) for m in own.members] == [N, N, 1] and own.order is not None
    env = {n: v[0] for n, v in data().items()} | {"x": np.linspace(0, 4, N)}
    entries = np.concatenate([np.ravel(evaluate(e, env)) for e in own.exprs])
    direct = np.array([float(evaluate(c.expr, env)) for c in problem.inequalities])
    assert np.array_equal(entries[own.back], direct) and np.array_equal(direct[own.order], entries)


def test_few_and_different_numbers_stay_as_they_are() -> None:
    rows = [f"    c{i}: x[{i}] <= {i + 1}" for i in range(7)] + [f"    d{i}: square(x[{i}]) <= 9" for i in range(7)]
    text = "model m\nhorizon T = 9\ndecision x[9] in box(0, 1)\nminimize sum(x)\nsubject to\n" + "\n".join(rows) + "\n"
    problem = canonical(parse(text))
    assert problem.families.order is None and len(problem.families.exprs) == 14
    exprs = [c.expr for c in problem.inequalities]
    assert len(families(exprs * 2).exprs) == 2, "fourteen of each"
    assert len(families(exprs * 2, [0] * 14 + [1] * 14).exprs) == 28, "seven of each kind"


@pytest.mark.parametrize(
    ("algorithm", "slope"),
    corners(
        product(["coldq", "nested", "recoo"], [False, True]), [("coldq", True), ("nested", False), ("recoo", True)]
    ),
)
def test_a_loop_decides_as_vectors_do(algorithm: str, slope: bool) -> None:
    loop, vectors = (oco.compile(built(v, slope), algorithm=algorithm) for v in (False, True))
    one, other = loop.learner(), vectors.learner()
    for t in range(40):
        a, b = one.decide(), other.decide()
        assert np.allclose(a, b, rtol=0, atol=1e-7)
        row = {n: v[t] for n, v in data().items()}
        one.observe(**row)
        other.observe(**row)


def test_constraints_are_measured_in_the_order_of_the_text() -> None:
    plan = oco.compile(built(False), algorithm="coldq")
    row, x = {n: v[0] for n, v in data().items()}, np.linspace(0, 4, N)
    measure = plan.compiled("numpy").measure
    assert measure is not None
    _, g, _ = measure(1, x, *(row[f.name] for f in plan.program.feedback))
    by_label = dict(zip(plan.canonical.constraint_labels, np.ravel(g)))
    assert by_label["all"] == pytest.approx(x.sum() - 20)
    for i in range(N):
        assert by_label[f"up{i}"] == pytest.approx(SCALE[i] * x[i] - row["high"][i] * LIMIT[i])
        assert by_label[f"down{i}"] == pytest.approx(row["low"][i] - x[i] - 0.5)


def test_the_memory_of_a_loop_is_that_of_vectors() -> None:
    own, vectors = memory_of(canonical(model(False).build())), memory_of(canonical(model(True).build()))
    assert own is not None and vectors is not None
    assert len(own.canonical.inequalities) == 3 and sorted(own.owner) == list(range(2 * N + 1))
    assert sum(own.sizes) == sum(vectors.sizes) == 2 * N
