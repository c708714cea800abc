"""Convex known constraints: each decision is the nearest point that satisfies them, beside CVXPY, in NumPy and in C."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from thorough import corners

import oco
from oco.backends.registry import restored
from oco.compiler.problem.canonical import canonical
from oco.evaluation.data import load_data

Array = np.ndarray[Any, Any]
T = 11
CAP = 1.2 + 0.5 * np.sin(np.arange(4))
A = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, -0.5]])
HEAD = f"""\
model moves
horizon T = {T}
param A[2, 3] = [[1, 0.5, 0], [0, 1, -0.5]]
param cap[4] = [{", ".join(repr(float(c)) for c in CAP)}]
decision x[3] in DOMAIN
context r in [0.01, 2]
context a[3] in [-1, 1]
stream price[3] in [-1, 5]
minimize price @ x
subject to
"""
CASES: dict[str, tuple[str, str, Any]] = {
    "squares of moves": (
        "box(-2, 2)",
        "sum_squares(x - prev(x)) <= r",
        lambda x, now, last, t: [cp.sum_squares(x - last) <= now["r"]],
    ),
    "length of moves": (
        "ball(2)",
        "norm2(x - prev(x)) <= r",
        lambda x, now, last, t: [cp.norm(x - last) <= now["r"]],
    ),
    "sizes of moves": (
        "simplex(2)",
        "abs(x - prev(x)) <= 0.1 * r + 0.05",
        lambda x, now, last, t: [cp.abs(x - last) <= 0.1 * now["r"] + 0.05],
    ),
    "largest move": (
        "box(-2, 2)",
        "2 * norm_inf(x - prev(x)) - r <= 0.1",
        lambda x, now, last, t: [2 * cp.norm_inf(x - last) - now["r"] <= 0.1],
    ),
    "sum of moves, box": (
        "box(-2, 2)",
        "norm1(x - prev(x)) <= r",
        lambda x, now, last, t: [cp.norm1(x - last) <= now["r"]],
    ),
    "sum of moves, ball": (
        "ball(2)",
        "norm1(x - prev(x)) <= r",
        lambda x, now, last, t: [cp.norm1(x - last) <= now["r"]],
    ),
    "table by round": (
        "box(-2, 2)",
        "norm2(A @ x) <= cap[t % 4]",
        lambda x, now, last, t: [cp.norm(A @ x) <= CAP[(t + 1) % 4]],
    ),
    "beside affine ones": (
        "ball(2)",
        "norm2(x - a) <= 1.5 + r  each round\n    tie: x[0] - x[1] == 0.1 * a[0]  each round\n    floor: sum(x) >= -2 - r",
        lambda x, now, last, t: [
            cp.norm(x - now["a"]) <= 1.5 + now["r"],
            x[0] - x[1] == 0.1 * now["a"][0],
            cp.sum(x) >= -2 - now["r"],
        ],
    ),
    "smooth": (
        "ball(2)",
        "log_sum_exp(a - 2 * x) + r * sum_squares(x) <= 3",
        lambda x, now, last, t: [cp.log_sum_exp(now["a"] - 2 * x) + now["r"] * cp.sum_squares(x) <= 3],
    ),
}
KEPT = ("length of moves", "sum of moves, ball", "table by round", "beside affine ones", "smooth")
"""A norm, a sum of sizes, a table, equalities beside it, and what is solved by Newton's method; sizes of moves are played in C."""


@cache
def plan_of(domain: str, rule: str) -> Any:
    """Plan of gradient descent, whose decisions are the nearest points, where no constraint is learned."""
    model = oco.parse(text_of(domain, rule))
    return oco.compile(model, None if canonical(model).learned.inequalities else "ogd")


def text_of(domain: str, rule: str) -> str:
    return HEAD.replace("DOMAIN", domain) + f"    near: {rule}  each round\n"


def rounds(seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {
        "r": rng.uniform(0.01, 0.6, T),
        "a": rng.uniform(-1, 1, (T, 3)),
        "price": rng.uniform(-1, 5, (T, 3)),
    }


def before(plan: Any, learner: Any) -> Array:
    """The rule's own decision of the round, in the user's units."""
    scales, x = plan._spec.scales, learner.values["x"]
    return np.asarray(x if scales is None else scales.origins[0] + scales.radius * x)


def used(model: Any, data: dict[str, Array]) -> dict[str, Array]:
    """The data that the model has streams for."""
    return {s.name: data[s.name] for s in model.streams}


@pytest.mark.parametrize("case", corners(CASES, KEPT))
def test_each_decision_is_the_nearest_point_within_the_constraints(case: str) -> None:
    domain, rule, constraints = CASES[case]
    plan, data, compared = plan_of(domain, rule), rounds(1), 0
    learner = plan.learner(backend="numpy")
    last = np.asarray(plan.canonical.blocks[0].domain.centre())
    for t in range(T):
        now = {name: value[t] for name, value in data.items()}
        y = before(plan, learner)
        x = learner.decide(r=now["r"], a=now["a"])
        feedback = learner.observe(price=now["price"])
        v = cp.Variable(3)
        known = [*plan.canonical.blocks[0].domain.constraints(cp, v), *constraints(v, now, last, t)]
        problem = cp.Problem(cp.Minimize(cp.sum_squares(v - y)), known)
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        assert feedback.violation.max() <= 1e-9
        assert plan.canonical.blocks[0].domain.violation(x) <= 1e-9
        assert np.sum((x - y) ** 2) <= problem.value + 1e-7
        compared += int(problem.value > 1e-4)
        last = x
    assert compared > 3


@pytest.mark.parametrize(
    "case", ["length of moves", "sizes of moves", "sum of moves, ball", "table by round", "beside affine ones"]
)
def test_c_decides_as_numpy_does(case: str) -> None:
    plan, data = plan_of(*CASES[case][:2]), rounds(2)
    in_c, in_numpy = (plan.run(data, backend=b).decisions for b in ("c", "numpy"))
    np.testing.assert_allclose(in_c, in_numpy, atol=1e-9)


@pytest.mark.parametrize(
    ("rule", "target"), [("sum_squares(x - 3 * a) <= 0.01 * r", 3.0), ("norm2(x - 4 * a) <= -r", 4.0)]
)
def test_where_no_decision_is_left_the_least_violating_one_is_taken(rule: str, target: float) -> None:
    plan, data, impossible = plan_of("box(-2, 2)", rule), rounds(3), 0
    learner = plan.learner(backend="numpy")
    for t in range(T):
        x = learner.decide(r=data["r"][t], a=data["a"][t])
        feedback = learner.observe(price=data["price"][t])
        nearest = np.clip(target * data["a"][t], -2, 2)
        if np.linalg.norm(nearest - target * data["a"][t]) > 0.1:
            impossible += 1
            np.testing.assert_allclose(x, nearest, atol=1e-5)
            assert feedback.violation.max() > 1e-3
    assert impossible > 5


def test_what_has_no_nearest_point_is_learned_or_refused() -> None:
    nested = "norm2(x - a) + norm2(x) <= 3"
    assert canonical(oco.parse(text_of("ball(2)", nested))).learned.known == ()
    with pytest.raises(oco.OcoError, match="prev"):
        canonical(oco.parse(text_of("ball(2)", nested.replace("- a", "- prev(x)"))))
    with pytest.raises(oco.OcoError) as caught:
        oco.compile(oco.parse(text_of("box(-2, 2)", "x[0] * x[1] <= r")))
    assert caught.value.diagnostics[0].code == "OCO502"


def test_the_guarantee_is_for_comparators_within_all_rounds() -> None:
    plan, data = plan_of("box(-2, 2)", "norm2(x - a) <= 2 + r"), rounds(4)
    assert plan.algorithm == "ogd" and plan.guarantee is not None
    trace = plan.run(data)
    fixed = trace.comparator("static")
    assert max(np.linalg.norm(fixed.decision["x"] - a) - 2 - r for a, r in zip(data["a"], data["r"])) <= 1e-6
    assert trace.loss.sum() - fixed.value <= plan.guarantee.regret_bound.number(T)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_states_journals_and_modules_continue_bit_for_bit(backend: str, tmp_path: Path) -> None:
    plan, data = plan_of(*CASES["length of moves"][:2]), rounds(5)
    learner, fleet = plan.learner(backend=backend), plan.fleet(2, backend=backend)
    journaled = oco.open(plan, tmp_path / "j", backend=backend)
    space: dict[str, Any] = {"__name__": "moves"}
    exec(compile(plan.source("numpy"), "moves.py", "exec"), space)
    own = space["Learner"]()
    for t in range(6):
        known = {"r": data["r"][t], "a": data["a"][t]}
        x = learner.decide(**known)
        np.testing.assert_array_equal(x, journaled.decide(**known))
        np.testing.assert_allclose(own.decide(**known), x, atol=1e-9)
        both = fleet.decide(r=np.full(2, known["r"]), a=np.stack([known["a"]] * 2))
        np.testing.assert_allclose(both, [x, x], atol=1e-12)
        learner = restored(learner.state(), learner.compiled, learner.contract)
        np.testing.assert_array_equal(learner.decide(), x)
        for each in (learner, journaled, own):
            each.decide()
            each.observe(price=data["price"][t])
        fleet.observe(price=np.stack([data["price"][t]] * 2))
    journaled.close()


def test_comparators_read_the_table_of_each_round() -> None:
    plan, data = plan_of(*CASES["table by round"][:2]), rounds(6)
    trace = plan.run(data, backend="numpy")
    assert trace.constraints.max() <= 1e-9
    assert load_data(plan.canonical, data).rounds == T
    assert np.linalg.norm(A @ trace.comparator("static").decision["x"]) <= CAP.min() + 1e-6
