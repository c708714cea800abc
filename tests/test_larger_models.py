"""Models larger than what the choice takes unasked: they are compiled and played, and their numbers are those of a reference."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import oco
from oco.compiler.algorithms import wang_yan_liu2025_expert
from oco.compiler.certificates.rational import exact_value, fractions
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.stores import stores
from oco.compiler.prover import vector
from oco.dsl import algebra
from oco.dsl.diagnostics import OcoError
from oco.dsl.expressions import Kind, Name

Array = np.ndarray[Any, Any]
PIECES = """model pieces
horizon T = 9
param A[{rows}, 60]
decision x[60] in box(0, 1)
context budget in [0, 60]
stream c[60] in [-1, 1]
minimize c @ x
subject to
    near: sum(abs(A @ x - 0.3)) <= budget {timing}
using {name}
"""
EXPERTS = """model experts
horizon T {horizon}
decision x[2] in box(0, 1)
stream c[2] in [-1, 1]
stream e in [0.5, 1]
minimize c @ x
subject to
    cap: sum(x) <= e each round
using coldq-expert with M = 17
"""


def model_of(text: str, **params: Any) -> Any:
    return oco.parse(text, params or None)


def played(text: str, rounds: int, **data: Array) -> list[Array]:
    """Decisions of a model over so many rounds of the data."""
    learner, decided = oco.compile(model_of(text)).learner(backend="numpy"), []
    for t in range(rounds):
        decided.append(learner.decide())
        learner.observe(**{name: values[t] for name, values in data.items()})
    return decided


def test_the_nearest_point_under_hundreds_of_absolute_values() -> None:
    """The first decision, moved from the middle of the box, beside CVXPY: 300 pieces of kinks."""
    rng = np.random.default_rng(0)
    A = rng.uniform(0, 1, (150, 60)) / 60
    model = model_of(PIECES.format(rows=150, timing="each round", name="ogd"), A=A)
    x = oco.compile(model).learner(backend="numpy").decide(budget=6.0)
    v, start = cp.Variable(60), np.full(60, 0.5)
    near = [v >= 0, v <= 1, cp.norm1(A @ v - 0.3) <= 6]
    cp.Problem(cp.Minimize(cp.sum_squares(v - start)), near).solve(solver=cp.CLARABEL)
    assert np.abs(A @ start - 0.3).sum() > 7 and np.abs(A @ x - 0.3).sum() <= 6 + 1e-6
    np.testing.assert_allclose(x, v.value, rtol=0, atol=1e-5)


def test_whoever_names_a_method_of_large_systems_gets_it() -> None:
    """The choice avoids it: 401 entries for Newton steps, 300 pieces of kinks for the exact step."""
    large = "model p\nhorizon T = 3\ndecision x[401] in simplex\nstream r[401] in [0.5, 2]\nminimize -log(r @ x)\n"
    assert oco.compile(model_of(large)).algorithm != "ons"
    x = played(large + "using ons", 3, r=np.random.default_rng(1).uniform(0.5, 2, (3, 401)))[-1]
    assert x.min() >= 0 and np.isclose(x.sum(), 1) and np.ptp(x) > 0
    learned = PIECES.replace("context budget", "stream budget").format(rows=150, timing="each round", name="coldq")
    own = {"A": np.full((150, 60), 1 / 60)}
    assert oco.compile(model_of(learned, **own)).algorithm == "coldq"
    assert oco.compile(model_of(learned.replace("using coldq", ""), **own)).algorithm != "coldq"


def test_201_stores_are_valued_as_one() -> None:
    """Stores with the same prices have the values of a single one."""
    text = """model stores
horizon T = 40
decision x[{k}] in box(-1, 1)
stream c[{k}] in [0, 1]
state b[{k}] = b + x in [0, 10] start 5
minimize c @ x
using hedged"""
    c = np.random.default_rng(2).uniform(0, 1, 3)
    values = []
    for k in (1, 201):
        learner = oco.compile(model_of(text.format(k=k))).learner(backend="numpy")
        for price in c:
            learner.decide()
            learner.observe(c=np.full(k, price))
        values.append(np.asarray(learner.value("value")))
    assert len(stores(canonical(model_of(text.format(k=201))).learned)[0].entries) == 201
    assert values[0].max() > 0
    np.testing.assert_allclose(values[1], np.broadcast_to(values[0], values[1].shape), rtol=0, atol=1e-9)


def test_17_experts_of_a_horizon_that_is_unknown() -> None:
    """Within the first epoch the decisions are those of a model with its length as the horizon."""
    plan = oco.compile(model_of(EXPERTS.format(horizon="unknown")))
    assert plan.choice.restarts is not None
    T = plan.choice.restarts[0]
    rng = np.random.default_rng(3)
    data = {"c": rng.uniform(-1, 1, (T, 2)), "e": rng.uniform(0.5, 1, T)}
    ours = played(EXPERTS.format(horizon="unknown"), T, **data)
    np.testing.assert_allclose(ours, played(EXPERTS.format(horizon=f"= {T}"), T, **data), rtol=0, atol=1e-9)


def test_experts_that_fill_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes two entries and a multiplier."""
    monkeypatch.setattr(wang_yan_liu2025_expert, "MOST_NUMBERS", 50)
    with pytest.raises(OcoError) as caught:
        _ = oco.compile(model_of(EXPERTS.format(horizon="unknown"))).program
    assert caught.value.code == "OCO721" and "17 experts" in caught.value.message


@pytest.mark.parametrize("count", [30, 31, 90])
def test_regression_on_many_contexts(count: int) -> None:
    """Its covariances are those of NumPy."""
    text = f"""model m
horizon T = 60
decision x[2] in box(0, 1)
context z[{count}] in [0, 1]
stream c[2] in [-1, 1]
minimize c @ x
using hedged"""
    rng, T = np.random.default_rng(4), 20
    z, c = rng.uniform(0, 1, (T, count)), rng.uniform(-1, 1, (T, 2))
    learner = oco.compile(model_of(text)).learner(backend="numpy")
    for t in range(T):
        learner.decide(z=z[t])
        learner.observe(c=c[t])
    np.testing.assert_allclose(learner.value("C_zz"), np.cov(z.T, bias=True), rtol=0, atol=1e-9)
    both = np.cov(np.concatenate([c, z], axis=1).T, bias=True)[:2, 2:]
    np.testing.assert_allclose(learner.value("C_sz"), both, rtol=0, atol=1e-9)


def test_high_powers_are_exact_in_fractions() -> None:
    x = Name("x", Kind.DECISION, shape=())
    value = exact_value(algebra.pow(x, algebra.number(101)), {"x": fractions(0.1)}, 1).item()
    assert value == Fraction(0.1) ** 101


def test_proofs_go_on_where_a_decision_is_long() -> None:
    """Beyond 40 entries a Hessian is not written out at the usual effort, and the fact says at which it is."""
    text = "model m\nhorizon T = 9\ndecision x[41] in box(0.5, 1)\nstream c[41] in [0, 1]\n"
    model = model_of(text + "minimize sum_squares(x) * (2 + sum(x) / 41) + c @ x")
    fact = oco.check(model)["loss.convex"]
    assert fact.value is None and "not searched further: `oco --effort 4 ...`" in " ".join(str(fact).split())
    assert oco.check(model, effort=4.0)["loss.convex"].value is True


def test_slopes_of_many_constraints_are_taken_with_more_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """|grad exp(x_i) / 10| is at most e / 10 over the box."""
    monkeypatch.setattr(vector, "USUAL_SLOPES", 129 * 129 - 1)
    text = "model m\nhorizon T = 9\nparam A[129, 129]\ndecision x[129] in box(0, 1)\nstream c[129] in [-1, 1]\nminimize c @ x\n"
    model = model_of(text + "subject to\n    cap: exp(A @ x) / 10 + c <= 5 each round", A=np.eye(129))
    fact = oco.check(model)["constraints.cap.lipschitz.l2"]
    assert fact.value is None and "not searched further" in str(fact)
    assert oco.check(model, effort=4.0)["constraints.cap.lipschitz.l2"].value == pytest.approx(np.e / 10)
