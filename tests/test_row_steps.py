"""Implicit steps over boxes cut by an affine row: against CVXPY and the condition of optimality, in NumPy and in C."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from driving import solve
from test_c99 import has_compiler

import oco
from oco.compiler.domains import Domain
from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Type
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.predicted_round import MARGIN, PREDICTED, predicted_of
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.canonical import Canonical, canonical
from oco.compiler.proximal.penalty import implicit_step
from oco.dsl.primitives import PRIMITIVES

Array = np.ndarray[Any, Any]
HEAD = """\
model allocation
horizon T = 60
decision x[5] in {}
stream a[5] in [0.2, 4]
stream w[5] in [0, 1]
"""
DOMAINS = (
    "simplex(2)",
    "capped_simplex(0.7, 2)",
    "budget(-1, 1.5, 2)",
    "box(0, 1) with sum(x) <= 2",
    "box(-1, 1) with x[0] - 2 * x[1] + 0.5 * x[3] == 0.25",
)


def step_of(problem: Canonical, kinks: slice = slice(0)) -> Callable[..., Array]:
    """Implicit step of a round as predicted: a function of y, c, alpha, Q (N + 1,) and the values of the streams."""
    whole, sizes = predicted_of(problem).whole, [b.domain.size for b in problem.blocks]
    assert whole is not None
    N = sum(c.size for c in problem.inequalities)
    names = [f"{PREDICTED}{s.name}" for s in problem.streams] + [f"{MARGIN}{i}" for i in range(N)]
    shapes = [s.shape for s in problem.streams] + [c.shape for c in problem.inequalities]
    ends = np.cumsum([0, *sizes])

    def traced(t: Tracer, y: Value, c: Value, alpha: Value, Q: Value, *data: Value) -> Value:
        spec = TraceSpec(whole, {}, whole.structure[0], problem.horizon)
        p = Problem(t, spec, dict(zip(names, data, strict=True)), t.lift(1))
        parts = [Point(tuple(v[int(a) : int(b)] for a, b in pairwise(ends))) for v in (y, c)]
        x = implicit_step(p, *parts, alpha, Q, kinks).blocks
        return x[0] if len(x) == 1 else t.concat(*x)

    size = (int(ends[-1]),)
    types = [Type(DType.FLOAT, s) for s in (size, size, (), (N + 1,), *shapes)]
    stepped = as_numpy("stepped", traced, *types)
    return lambda *args: stepped(*args, *[0.0] * N)[0]


def of_text(domain: str, rest: str) -> tuple[Callable[..., Array], Domain]:
    problem = canonical(oco.parse(HEAD.format(domain) + rest))
    return step_of(problem), problem.blocks[0].domain


def drawn(rng: np.random.Generator, d: Domain) -> tuple[Array, Array, float, Array, Array]:
    """y, c, alpha, a, w of a round; alpha is small, usual or large."""
    y = d.project_array(rng.normal(size=5))
    return y, 0.5 * rng.normal(size=5), float(rng.choice([0.01, 0.3, 10])), rng.uniform(0.2, 4, 5), rng.uniform(0, 1, 5)


@pytest.mark.parametrize("domain", DOMAINS)
def test_steps_under_constraints_are_those_of_cvxpy(domain: str) -> None:
    limits = "subject to\n    first: w @ x <= 0.2 each round\n    second: x[2] - a @ x <= -1.5 each round\n"
    step, d = of_text(domain, "minimize sum(a * square(x - w)) - a @ x\n" + limits)
    rng, binding = np.random.default_rng(1), 0
    for k in range(5):
        y, c, alpha, a, w = drawn(rng, d)
        Q, u = (0.5, 3.0, 100.0)[k % 3], cp.Variable(5)
        x = step(y, c, alpha, np.array([1.0, Q, Q]), a, w)
        cost = c @ u + a @ cp.square(u - w) - a @ u + alpha * cp.sum_squares(u - y)
        broken = cp.hstack([w @ u - 0.2, u[2] - a @ u + 1.5])
        solve(cost + Q * cp.sum(cp.pos(broken)), d.constraints(cp, u))
        assert np.abs(x - u.value).max() <= 1e-7 * d.diameter()
        assert d.contains(x, 1e-12)
        binding += bool(np.max(broken.value) > -1e-6)
    assert binding, "constraints decide"


def test_steps_under_a_curved_constraint_cost_no_more_than_those_of_cvxpy() -> None:
    """F(u) - F(x*) >= alpha |u - x*|^2, and CVXPY is within 1e-6 of x*."""
    limit = "subject to\n    size: sum_squares(x) <= 1.1 each round\n"
    step, d = of_text("capped_simplex(0.7, 2)", "minimize sum(a * square(x - w)) - a @ x\n" + limit)
    rng = np.random.default_rng(6)
    for _ in range(5):
        y, c, alpha, a, w = drawn(rng, d)
        x, u = step(y, c, alpha, np.array([1.0, 2.0]), a, w), cp.Variable(5)
        cost = c @ u + a @ cp.square(u - w) - a @ u + alpha * cp.sum_squares(u - y)
        cost += 2 * cp.pos(cp.sum_squares(u) - 1.1)
        solve(cost, d.constraints(cp, u))
        assert np.abs(x - u.value).max() <= 1e-5
        u.value = d.project_array(u.value)
        least = cost.value
        u.value = x
        assert cost.value <= least + 1e-10


def test_steps_that_begin_with_the_prices_of_kinks_end_sooner_at_the_same_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows with the same slopes, as those of what is left in a store, beside one with others."""
    limits = "".join(f"    l{k}: sum(a * x) - w @ x <= {k / 2} each round\n" for k in range(6))
    limits = f"subject to\n{limits}    other: a[0] - a @ x <= 0 each round\n"
    problem = canonical(
        oco.parse(HEAD.format("box(-1, 1)") + "minimize 0.1 * sum(a * square(x - w)) - a @ x\n" + limits)
    )
    steps, rng = [step_of(problem, kinks) for kinks in (slice(0), slice(1, None))], np.random.default_rng(3)
    solves, exact = [0, 0], PRIMITIVES["solve"]
    for k in range(8):
        y, c, _, a, w = drawn(rng, problem.blocks[0].domain)
        alpha, Q, results = (3.0, 30.0)[k % 2], np.array([1.0, *rng.uniform(0.1, 2.0, 7)]), []
        for which, step in enumerate(steps):

            def counted(*args: Any, which: int = which) -> Any:
                solves[which] += 1
                return exact(*args)

            monkeypatch.setitem(PRIMITIVES, "solve", counted)
            results.append(step(y, c, alpha, Q, a, w))
        u = cp.Variable(5)
        broken = cp.hstack([*(a @ u - w @ u - k / 2 for k in range(6)), a[0] - a @ u])
        cost = c @ u + 0.1 * (a @ cp.square(u - w)) - a @ u + alpha * cp.sum_squares(u - y)
        solve(cost + Q[1:] @ cp.pos(broken), [u >= -1, u <= 1])
        assert np.abs(results[0] - u.value).max() <= 1e-6
        assert np.abs(results[1] - results[0]).max() <= 1e-10
    assert solves[1] < 0.7 * solves[0]


LOSSES: dict[str, tuple[str, Callable[[Array, Array, Array], Array]]] = {
    "log": ("-sum(log(1 + a * x)) + 0 * w @ x", lambda x, a, w: -a / (1 + a * x)),
    "sqrt": ("-a @ sqrt(1 + x) + w @ x", lambda x, a, w: -a / (2 * np.sqrt(1 + x)) + w),
    "logistic": ("sum(logistic(a * x)) - w @ x", lambda x, a, w: a / (1 + np.exp(-a * x)) - w),
    "two": ("sum_squares(x - w) + a @ exp(-x)", lambda x, a, w: 2 * (x - w) - a * np.exp(-x)),
}
POSITIVE = ("simplex(2)", "capped_simplex(0.7, 2)", "box(0, 1) with sum(x) <= 2")


@pytest.mark.parametrize(("name", "domain"), [(n, POSITIVE[k % 3]) for k, n in enumerate(LOSSES)])
def test_steps_meet_the_condition_of_optimality(name: str, domain: str) -> None:
    """|x - x*|^2 <= (max over u in X of <grad(x), x - u>) / (2 alpha), for a strongly convex function with modulus 2 alpha."""
    loss, slope = LOSSES[name]
    (step, d), rng = of_text(domain, f"minimize {loss}\n"), np.random.default_rng(2)
    for _ in range(30):
        y, c, alpha, a, w = drawn(rng, d)
        x = step(y, c, alpha, np.ones(1), a, w)
        g = c + slope(x, a, w) + 2 * alpha * (x - y)
        gap = float(g @ x) + d.support(-g)
        assert d.contains(x, 1e-12)
        assert gap <= 2 * alpha * (1e-7 * d.diameter()) ** 2 + 1e-13 * (1 + np.abs(g).max())


def test_kinks_meet_the_row() -> None:
    """Sizes of shortages over a simplex: the step of CVXPY."""
    (step, d), rng = of_text("simplex(2)", "minimize a @ maximum(w - x, 0)\n"), np.random.default_rng(3)
    for _ in range(6):
        y, c, alpha, a, w = drawn(rng, d)
        u = cp.Variable(5)
        solve(c @ u + a @ cp.pos(w - u) + alpha * cp.sum_squares(u - y), d.constraints(cp, u))
        assert np.abs(step(y, c, alpha, np.ones(1), a, w) - u.value).max() <= 1e-6 * d.diameter()


def test_only_functions_that_are_convex_in_each_entry_are_taken_as_they_are() -> None:
    """2 x_0^2 - x_1^2 is convex over a simplex of two entries, and not beyond it."""
    text = "model m\nhorizon T = 9\ndecision x[2] in {}\nstream a in [0, 1]\nminimize a * {}\n"
    curved, saddle = "sum_squares(x)", "(2 * square(x[0]) - square(x[1]))"
    taken = [
        predicted_of(canonical(oco.parse(text.format(domain, loss)))).whole is not None
        for domain, loss in (("simplex", curved), ("simplex", saddle), ("ball(1)", curved), ("box(0, 1)", curved))
    ]
    assert taken == [True, False, False, True]


@pytest.mark.thorough
@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_c_decides_as_numpy_does() -> None:
    """Decisions over a simplex and over a box with a row, under a constraint that couples them."""
    text = """\
model both
horizon T = 60
decision x[4] in simplex(2)
decision y[2] in box(0, 1) with y[0] + 2 * y[1] <= 1.5
stream a[4] in [0.2, 4]
stream r in [0.5, 2]
minimize -sum(log(1 + a * x)) - r * sum(sqrt(1 + y))
subject to
    joint: a @ x + r * sum(y) <= 3 on average
"""
    plan, rng = oco.compile(oco.parse(text), "hedged"), np.random.default_rng(4)
    one, other = plan.learner(backend="numpy"), plan.learner(backend="c")
    for _ in range(4):
        for u, v in zip(one.decide().values(), other.decide().values()):
            np.testing.assert_allclose(u, v, atol=1e-8)
        data = {"a": rng.uniform(0.2, 4, 4), "r": rng.uniform(0.5, 2)}
        one.observe(**data)
        other.observe(**data)


@pytest.mark.parametrize("alpha", [0.001, 0.01])
def test_entries_that_reach_kinks_at_both_ends_of_a_search_meet_the_row(alpha: float) -> None:
    """Where |x| costs what the linear part pays, y is the step: the price at which one of its entries is 0 leads to that of the other.

    At y the slopes of the first two entries are -0.4 + 0.4 and 0.4 - 0.4, and that of the third is 0.4 at most, up to the price.
    """
    text = "model m\nhorizon T = 9\ndecision x[3] in box(-6, 6) with sum(x) == 0\nstream a[3] in [-9, 9]\n"
    step = step_of(canonical(oco.parse(text + "minimize 0.4 * norm1(x) + a @ x\n")))
    rng = np.random.default_rng(0)
    for third in (0.0, 0.1, -0.2, 0.2):
        for price in (0.0, 1.0, -2.0, 2.3):
            y = np.array([1.0, -1.0, 0.0]) + 1e-14 * rng.normal(size=3)
            x = step(y, np.zeros(3), alpha, np.ones(1), np.array([-0.4, 0.4, third]) + price)
            np.testing.assert_allclose(x, [1, -1, 0], atol=1e-9)
