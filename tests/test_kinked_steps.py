"""Penalized steps under constraints with kinks: exactness, hard data, every method that makes them, and what is promised of them."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from coldq_cases import KINKS, SETS, kinked
from driving import Array, Run, plan_of, solve
from thorough import corners, thorough

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.epigraph import epigraph
from oco.dsl.load import parse


@pytest.mark.parametrize("domain", corners(SETS, ["ball"]))
def test_steps_with_smooth_pieces_equal_those_of_cvxpy(domain: str) -> None:
    """Each from the learner's own state; where the solver's decision is further from ours, it is worse by what strong convexity says."""
    case, rng = kinked("smooth", domain), np.random.default_rng(7)
    run, tight = Run(plan_of(case.text, "coldq", {"alpha": "sqrt(t)"})), 0
    for t in range(1, 13):
        data, y, v = case.draw(rng), run.decisions[0], cp.Variable(4)
        run.play(data)
        x, Q, alpha = run.decisions[0], run.value("Q"), math.sqrt(t)

        def cost(v: Any, y: Array = y, data: Any = data, Q: Array = Q, alpha: float = alpha) -> Any:
            penalties = sum(q * cp.pos(g) for q, g in zip(Q, case.constraints(data, [v])))
            return data["c"] @ (v - y) + alpha * cp.sum_squares(v - y) + penalties

        solve(cost(v), case.domain([v]))
        apart = float(np.linalg.norm(x - v.value))
        worse = float(cost(cp.Constant(v.value)).value - cost(cp.Constant(x)).value)
        assert apart <= 1e-6 * case.diameter or (worse >= 0.99 * alpha * apart**2 and apart <= 1e-4 * case.diameter)
        tight += any(abs(float(g.value)) <= 1e-9 for g in case.constraints(data, [cp.Constant(x)])[:2])
    assert tight >= 3


def test_steps_under_sums_of_absolute_values_equal_soft_thresholds() -> None:
    """Over a ball, to 1e-9 of its width: for multipliers of the sum and of the ball an entry is a soft threshold, both by bisection."""
    text = """
model sums
horizon T = 60
decision x[6] in ball(1)
stream c[6] in [-3, 3]
stream k[6] in [-0.2, 0.2]
stream r in [0.8, 2]
minimize c @ x
subject to
    near: norm1(x - k) <= r each round
"""
    rng, run, bound, worst = np.random.default_rng(5), Run(plan_of(text, "coldq")), 0, 0.0

    def search(f: Any, high: float) -> float:
        low = 0.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if f(middle) > 0 else (low, middle)
        return high

    for t in range(1, 9):
        y, data = (
            run.decisions[0],
            {"c": rng.uniform(-3, 3, 6), "k": rng.uniform(-0.2, 0.2, 6), "r": rng.uniform(0.8, 2)},
        )
        run.play(data)
        alpha, Q = math.sqrt(t), float(run.value("Q")[0])

        def point(lam: float, nu: float, y: Array = y, d: Any = data, alpha: float = alpha) -> Array:
            """argmin <c, x> + alpha |x - y|^2 + lam |x - k|_1 + nu |x|^2."""
            target = (2 * alpha * y - d["c"]) / (2 * (alpha + nu)) - d["k"]
            return d["k"] + np.sign(target) * np.maximum(np.abs(target) - lam / (2 * (alpha + nu)), 0)

        def decision(lam: float) -> Array:
            free = point(lam, 0.0)
            return (
                free
                if np.linalg.norm(free) <= 1
                else point(lam, search(lambda nu: np.linalg.norm(point(lam, nu)) - 1, 1e3))
            )

        def violation(lam: float, d: Any = data) -> float:
            return float(np.abs(decision(lam) - d["k"]).sum() - d["r"])

        exact = decision(search(violation, Q))
        worst = max(worst, float(np.abs(run.decisions[0] - exact).max()))
        bound += np.linalg.norm(exact) > 1 - 1e-9
    assert worst <= 1e-9 * 2 and bound >= 2


HARD = """
model hard
horizon T = 1000
decision x[6] in {domain}
stream c[6] in [-1000000, 1000000]
stream A[5, 6] in [-1000, 1000]
stream b[5] in [-1000, 1000]
minimize c @ x
subject to
    sums: norm1(A @ x - b) <= 3 each round
    largest: max(A @ x - b) <= 0 each round
    either: maximum(A[0] @ x - b[0], abs(x[0])) <= 0.5 each round
"""
HARD_SETS = {
    "box(-1, 2)": lambda v: [v >= -1, v <= 2],
    "ball(1.5)": lambda v: [cp.norm2(v) <= 1.5],
    "simplex(2)": lambda v: [v >= 0, cp.sum(v) == 2],
}


@pytest.mark.parametrize("domain", corners(HARD_SETS, ["simplex(2)"]))
def test_steps_are_as_good_as_those_of_cvxpy_on_hard_pieces(domain: str) -> None:
    """Gradients, pieces and queues over seven orders of magnitude, dependent and opposite pieces: never a worse objective than CVXPY's."""
    rng = np.random.default_rng(1)
    run = Run(plan_of(HARD.format(domain=domain), "coldq"))
    begin, (y,) = run.state, run.decisions
    for k in range(9):
        c, A = rng.normal(size=6) * 10.0 ** rng.integers(-2, 5), rng.normal(size=(5, 6)) * 10.0 ** rng.integers(-2, 3)
        if k % 3 == 1:
            A[1], A[3] = -A[0], A[2]
        elif k % 3 == 2:
            A[2], A[4] = A[0] + A[1], 0
        b, Q = A @ rng.uniform(-1, 1, 6) + rng.normal(size=5) * rng.choice([0, 0.1, 1]), 10.0 ** rng.uniform(-2, 5, 3)
        run.state = (*begin[:2], Q, *begin[3:])
        run.play({"c": c, "A": A, "b": b})

        def parts(v: Any, c: Array = c, A: Array = A, b: Array = b) -> list[Any]:
            r = A @ v - b
            return [cp.norm1(r) - 3, cp.max(r), cp.maximum(r[0], cp.abs(v[0])) - 0.5]

        def cost(v: Any, c: Array = c, Q: Array = Q) -> Any:
            return c @ (v - y) + cp.sum_squares(v - y) + sum(q * cp.pos(g) for q, g in zip(Q, parts(v)))

        v = cp.Variable(6)
        solve(cost(v) / max(1.0, float(np.abs(c).max()), float(Q.max() * np.abs(A).max())), HARD_SETS[domain](v))
        terms = np.abs(c) @ np.abs(v.value - y) + sum(q * abs(float(g.value)) for q, g in zip(Q, parts(v))) + 1
        assert float(cost(cp.Constant(run.decisions[0])).value) <= float(cost(v).value) + 1e-5 * terms


PROMISED = """
model promised
horizon T = 60
decision x[3] in {domain}
stream c[3] in [-1, 1]
stream a[2, 3] in [-1, 1]
minimize c @ x
subject to
    each: max(a @ (x - {centre})) <= 0.1 each round
    sums: norm1(x - {centre}) + abs(a[0] @ (x - {centre})) <= 0.5 each round
"""


SLACK = {"box(-1, 1)": "0", "ball(1)": "0", "simplex": "1 / 3"}


@pytest.mark.parametrize(
    ("algorithm", "domain"),
    [
        *corners(product(["coldq"], SLACK), [("coldq", "ball(1)")]),
        ("recoo", "simplex"),
        thorough("coldq-expert", "box(-1, 1)"),
    ],
)
def test_promises_hold_under_kinks(algorithm: str, domain: str) -> None:
    """On random data and against an adversary who turns each round against the decision; C decides as NumPy does."""
    model = oco.parse(PROMISED.format(domain=domain, centre=SLACK[domain]))
    plan = oco.compile(model, algorithm=algorithm, backend="numpy")
    rng, bound = np.random.default_rng(3), plan.guarantee
    data = {"c": rng.uniform(-1, 1, (60, 3)), "a": rng.uniform(-1, 1, (60, 2, 3))}
    learner = plan.learner()
    for t in range(60):  # the cost pulls on, the first piece leans the way that the decision has gone
        x = learner.decide() - (1 / 3 if domain == "simplex" else 0)
        lean = np.sign(x) + (x == 0)
        if t >= 30:
            data["c"][t], data["a"][t] = -lean, [lean, -lean]
        learner.observe(c=data["c"][t], a=data["a"][t])
    trace = plan.run(data)
    assert trace.regret("static")[-1] <= bound.regret(60)
    worst = trace.violation("hard")[-1].sum()
    assert worst <= bound.violation(60) and (
        worst > 0 or algorithm == "coldq-expert"
    )  # whose penalties are larger still
    assert np.abs(trace.decisions - plan.run(data, backend="c").decisions).max() <= 1e-9


def test_given_multipliers_stay_under_kinks() -> None:
    """yu-neely weighs its constraints: argmin <c, x> + sum_k w_k g_k(x) + alpha |x - y|^2 against CVXPY from the same state."""
    text = """
model weighed
horizon T = 100
decision x[4] in ball(1)
stream c[4] in [-2, 2]
param A[3, 4] = [[1, -2, 0, 1], [0, 1, 1, -1], [2, 0, -1, 0]]
minimize c @ x
subject to
    sums: norm1(A @ x) + x[0] <= 0.4
    bowl: sum_squares(x) + max(x) <= 0.3
"""
    A, rng = np.array([[1, -2, 0, 1], [0, 1, 1, -1], [2, 0, -1, 0.0]]), np.random.default_rng(2)
    plan = plan_of(text, "yu-neely", {"gamma": 1.5, "alpha": 2})
    run, kept = Run(plan), 0
    for _ in range(10):
        y, Q, c, v = run.decisions[0], run.value("Q"), rng.uniform(-2, 2, 4), cp.Variable(4)

        def g(v: Any) -> list[Any]:
            return [cp.norm1(A @ v) + v[0] - 0.4, cp.sum_squares(v) + cp.max(v) - 0.3]

        now = 1.5 * np.array([float(e.value) for e in g(cp.Constant(y))])
        weights = (np.maximum(-now, Q + now) + now) * 1.5
        run.play({"c": c})
        solve(c @ v + sum(w * e for w, e in zip(weights, g(v))) + 2 * cp.sum_squares(v - y), [cp.norm2(v) <= 1])
        assert np.linalg.norm(run.decisions[0] - v.value) <= 1e-5
        kept += bool((np.abs(A @ run.decisions[0]) <= 1e-10).any())
    assert kept >= 2  # a decision rests on a kink


def test_kinks_are_lifted_from_the_inside_out() -> None:
    """Levels, pieces and depth of each table of kinks; the gradient of a smooth piece changes, those of affine ones do not."""
    found = {name: epigraph(canonical(parse(kinked(name, "ball").text))) for name in KINKS}
    assert {n: (e.levels, len(e.owner), e.depth) for n, e in found.items()} == {
        "largest": (3, 14, 1),
        "sums": (11, 26, 1),
        "nodes": (15, 32, 2),
        "smooth": (5, 10, 1),
    }
    assert found["smooth"].second_derivatives.tolist().count(2.0) == 1 and not found["nodes"].second_derivatives.any()
