"""Comparators in hindsight against CVXPY, closed forms and published numbers; and what is said where there is none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from oco.compiler.canonical import Canonical, canonical
from oco.compiler.twin import to_cvxpy
from oco.dsl.load import load, parse
from oco.dsl.model import Timing
from oco.evaluation.comparators import Budget, Comparator, Status, compare, compare_prefixes
from oco.evaluation.comparators.structure import degree, separable
from oco.evaluation.data import Data, load_data

ROOT = Path(__file__).parent.parent
PORTFOLIO = ROOT.parent / "shared" / "data" / "portfolio"


def problem(body: str, rounds: int) -> Canonical:
    return canonical(parse(f"model m\nhorizon T = {rounds}\n{body}"))


def reference(p: Canonical, data: Data, rounds: list[int], averages: bool) -> float:
    """The least sum of losses over `rounds` (from 0) by CVXPY: constraints on average hold in the mean if `averages`, else in each."""
    variables = {b.name: cp.Variable(b.shape) for b in p.blocks}
    loss: Any = 0
    constraints = [c for b in p.blocks for c in b.domain.constraints(cp, variables[b.name])]
    sums: dict[str, Any] = {}
    for t in rounds:
        env = {s.name: data.array(s.name)[t] for s in p.streams}
        loss = loss + to_cvxpy(p.objective, variables, env, t + 1)
        for c in p.inequalities:
            g = to_cvxpy(c.expr, variables, env, t + 1)
            if averages and c.timing is Timing.ON_AVERAGE:
                sums[c.label] = sums.get(c.label, 0) + g
            else:
                constraints.append(g <= 0)
        for c in p.equalities:
            h = to_cvxpy(c.expr, variables, env, t + 1)
            sums["=" + c.label] = sums.get("=" + c.label, 0) + h
            if not averages:
                constraints.append(h == 0)
    if averages:
        constraints += [s == 0 if label.startswith("=") else s <= 0 for label, s in sums.items()]
    found = cp.Problem(cp.Minimize(loss), constraints)
    found.solve(solver="CLARABEL")
    assert found.status == "optimal"
    return float(found.value)


def check_certificate(found: Comparator) -> None:
    assert found.status is Status.CERTIFIED, found.words
    scale = max(1.0, float(np.abs(found.losses).sum()))
    assert abs(found.gap) <= 1e-5 * scale
    assert found.value == pytest.approx(float(found.losses.sum()))


MODELS = {
    "quadratic under random limits": (
        "decision x[4] in box(0, 5)\nstream H[2, 4] in [-1, 1]\nstream y[2] in [-9, 9]\nstream A[2, 4] in [0, 1]\nstream b[2] in [0.5, 1]\n"
        "minimize 0.5 * sum_squares(H @ x - y)\nsubject to\n    limits: A @ x <= b    each round\n"
    ),
    "the same on average": (
        "decision x[4] in box(0, 5)\nstream H[2, 4] in [-1, 1]\nstream y[2] in [-9, 9]\nstream A[2, 4] in [0, 1]\nstream b[2] in [0.5, 1]\n"
        "minimize 0.5 * sum_squares(H @ x - y)\nsubject to\n    limits: A @ x <= b    on average\n"
    ),
    "linear with a concave service": (
        "decision x[6] in box(0, 10)\nstream c[6] in [-1, 3]\nstream jobs in [2, 4]\nminimize c @ x\n"
        "subject to\n    service: jobs - sum(log(1 + 4 * x)) <= 0    each round\n"
    ),
    "logarithm on the simplex": (
        "decision w[5] in simplex\nstream r[5] in [0.5, 2]\nstream e[5] in [0, 1]\nminimize -log(r @ w)\n"
        "subject to\n    sector: e @ w <= 0.6    on average\n"
    ),
    "ball with a linear limit": (
        "decision p[3] in ball(1)\nstream a[3] in [-2, 2]\nstream c[3] in [-1, 1]\nminimize sum_squares(p - a)\n"
        "subject to\n    cap: c @ p <= 0.25    each round\n"
    ),
    "equalities on average": (
        "decision x[4] in box(0, 3)\nstream c[4] in [-1, 3]\nstream u[4] in [0.5, 1]\nminimize c @ x + 0.1 * sum_squares(x)\n"
        "subject to\n    share: u[0] * x[0] + u[1] * x[1] - u[2] * x[2] == 0    on average\n    least: sum(u * x) >= 2    on average\n"
    ),
    "two decisions": (
        "decision x[2] in box(-1, 2)\ndecision w[3] in simplex(2)\nstream a[2] in [-2, 2]\nstream c[3] in [0, 1]\n"
        "minimize sum_squares(x - a) + c @ w + exp(x[0])\nsubject to\n    link: x[0] + w[0] <= 1    each round\n"
    ),
    "the number of the round": (
        "decision x[2] in box(-1, 1)\nstream a[2] in [-2, 2]\nminimize sum_squares(x - a / t)\n"
        "subject to\n    rising: x[0] + x[1] <= t / 10    each round\n"
    ),
    "logistic": "decision x[3] in box(-2, 2)\nstream a[3] in [-1, 1]\nminimize logistic(a @ x) + 0.01 * sum_squares(x)\n",
    "a known law on average": (
        "decision x[3] in box(0, 4)\nstream a[3] in [-1, 1]\nstream need ~ constant(2)\nminimize sum_squares(x - a)\n"
        "subject to\n    cover: need - sum(log(1 + x)) <= 0    on average\n    least: need <= sum(x)    on average\n"
    ),
    "quadratic limits": (
        "decision x[3] in box(-2, 2)\nstream a[3] in [-1, 1]\nstream r in [0.5, 1]\nminimize a @ x\n"
        "subject to\n    power: sum_squares(x) <= r    each round\n"
    ),
}


def drawn(p: Canonical, rounds: int) -> Data:
    rng = np.random.default_rng(0)
    arrays = {
        s.name: rng.uniform(np.broadcast_to(s.lower, s.shape), np.broadcast_to(s.upper, s.shape), (rounds, *s.shape))
        for s in p.streams
    }
    return load_data(p, arrays)


@pytest.mark.parametrize("body", MODELS.values(), ids=MODELS.keys())
def test_static_comparators_match_cvxpy(body: str) -> None:
    p = problem(body, 25)
    data = drawn(p, 25)
    found = compare(p, data, "static")
    check_certificate(found)
    assert found.value == pytest.approx(reference(p, data, list(range(25)), averages=True), rel=3e-6, abs=1e-6)
    assert all(b.domain.contains(found.decision[b.name], 1e-7) for b in p.blocks)
    assert np.all(found.excess <= 1e-6)


@pytest.mark.parametrize("body", MODELS.values(), ids=MODELS.keys())
def test_dynamic_comparators_match_cvxpy(body: str) -> None:
    p = problem(body, 12)
    data = drawn(p, 12)
    found = compare(p, data, "dynamic")
    check_certificate(found)
    for t in range(12):
        assert found.losses[t] == pytest.approx(reference(p, data, [t], averages=False), rel=1e-5, abs=1e-6)
    assert all(found.decision[b.name].shape == (12, *b.shape) for b in p.blocks)


@pytest.mark.parametrize("name", ["djia", "msci", "nyse_o", "nyse_n", "sp500", "tse"])
def test_log_wealth_of_the_best_constant_rebalanced_portfolio(name: str) -> None:
    """The published values, to the six digits that they are given with."""
    known = {
        "djia": 0.215054,
        "msci": 0.409253,
        "nyse_o": 5.523846,
        "nyse_n": 4.790162,
        "sp500": 1.403307,
        "tse": 1.913975,
    }
    path = PORTFOLIO / f"{name}_relatives.csv"
    if not path.exists():
        pytest.skip("the price relatives are not part of the repository")
    assets = path.read_text().split("\n", 1)[0].count(",") + 1
    p = problem(f"decision w[{assets}] in simplex\nstream r[{assets}] in [0.01, 10]\nminimize -log(r @ w)\n", 1)
    found = compare(p, load_data(p, path), "static")
    check_certificate(found)
    assert f"{-found.value:.6f}" == f"{known[name]:.6f}"


def test_constraints_on_average_hold_in_expectation_where_the_law_is_known() -> None:
    body = "decision x in box(0, 10)\nstream c in [0, 1]\nstream need ~ uniform(1, 3)\nminimize c * x\n{}"
    rule = "subject to\n    cover: x >= need    {}\n"
    p = problem(body.format(rule.format("on average")), 50)
    data = load_data(p, {"c": np.ones(50)}, seed=5)
    found = compare(p, data, "static")
    assert found.decision["x"] == pytest.approx(2.0, abs=1e-6)
    assert float(data.array("need").mean()) != pytest.approx(2.0, abs=1e-3)
    p = problem(body.format(rule.format("each round")), 50)
    worst = compare(p, load_data(p, {"c": np.ones(50)}, seed=5), "static")
    assert worst.decision["x"] == pytest.approx(float(data.array("need").max()), abs=1e-6)


def test_given_data_of_unknown_law_binds_in_its_mean() -> None:
    p = problem(
        "decision x in box(0, 10)\nstream need in [1, 3]\nminimize x\nsubject to\n    cover: x >= need    on average\n",
        3,
    )
    found = compare(p, load_data(p, {"need": np.array([1.0, 1.5, 3.0])}), "static")
    assert found.decision["x"] == pytest.approx(5.5 / 3, abs=1e-7)


def test_rounds_that_cannot_hold_together_are_named() -> None:
    p = problem(
        "decision x in box(0, 10)\nstream a in [-10, 10]\nminimize (x - 3) ** 2\nsubject to\n    above: a >= x    each round\n",
        4,
    )
    data = load_data(p, {"a": np.array([5.0, -2.0, 6.0, 1.0])})
    static = compare(p, data, "static")
    assert static.status is Status.LEAST_VIOLATING and static.impossible.tolist() == [2]
    assert static.decision["x"] == pytest.approx(0.0, abs=1e-4) and static.excess[0] == pytest.approx(2.0, abs=1e-4)
    assert "satisfies" in static.words and "2" in static.words
    dynamic = compare(p, data, "dynamic")
    assert dynamic.status is Status.LEAST_VIOLATING and dynamic.impossible.tolist() == [2]
    np.testing.assert_allclose(dynamic.decision["x"], [3.0, 0.0, 3.0, 1.0], atol=1e-4)


def test_two_rounds_that_contradict_each_other() -> None:
    body = "decision x in box(0, 10)\nstream lo in [0, 10]\nstream hi in [0, 10]\nminimize x ** 2\nsubject to\n"
    p = problem(body + "    up: x >= lo    each round\n    down: x <= hi    each round\n", 3)
    data = load_data(p, {"lo": np.array([0.0, 6.0, 1.0]), "hi": np.array([9.0, 9.0, 4.0])})
    static = compare(p, data, "static")
    assert static.status is Status.LEAST_VIOLATING and set(static.impossible) == {2, 3}
    assert static.decision["x"] == pytest.approx(5.0, abs=1e-4)
    assert compare(p, data, "dynamic").status is Status.CERTIFIED


def test_means_that_cannot_hold_together() -> None:
    p = problem(
        "decision x in box(0, 1)\nstream need in [1, 3]\nminimize x\nsubject to\n    cover: x >= need    on average\n",
        2,
    )
    found = compare(p, load_data(p, {"need": np.array([1.5, 2.5])}), "static")
    assert found.status is Status.LEAST_VIOLATING and found.excess[0] == pytest.approx(1.0, abs=1e-4)


def test_what_takes_longer_than_the_budget_is_not_computed() -> None:
    p = problem("decision x[3] in box(0, 1)\nstream c[3] ~ uniform(0, 1)\nminimize c @ x\n", 1000)
    found = compare(p, load_data(p), "dynamic", Budget(seconds=0.0))
    assert found.status is Status.NOT_COMPUTED and found.losses is None and "0 s" in found.words


LARGE = """decision x[4] in box(-1, 1)
stream c[4] ~ uniform(-1, 1)
minimize c @ x + sum_squares(x - 0.3)
subject to
    each: c @ x <= 1.1         each round
    mean: sum(c * x) <= 0.1    on average
"""


def test_data_that_does_not_fit_gives_an_interval() -> None:
    """The parts' best decisions bound from below, their mean is a decision: the whole program's value lies between."""
    p = problem(LARGE, 3000)
    data = load_data(p, seed=1)
    whole = compare(p, data, "static")
    found = compare(p, data, "static", Budget(memory=data.nbytes // 2))
    assert whole.status is Status.CERTIFIED and found.status is Status.INTERVAL
    assert found.bound < whole.bound and whole.value < found.value
    expected = (
        8 * 4 * (1 / 3) / 4
    )  # 8 parts, 4 entries: a part gains the square of its mean of c over 4, a round's worth of variance
    assert found.gap < 2 * expected and np.all(found.excess <= 1e-5)
    assert compare(p, data, "dynamic", Budget(memory=1000)).status is Status.CERTIFIED
    late = compare(p, data, "static", Budget(seconds=0.0, memory=data.nbytes // 2))
    assert late.status is Status.NOT_COMPUTED and "GiB" in late.words


@pytest.mark.parametrize("body", MODELS.values(), ids=MODELS.keys())
def test_the_best_of_the_first_rounds_is_the_same_side_by_side_and_alone(body: str) -> None:
    p = problem(body, 40)
    data = drawn(p, 40)
    ends = np.array([1, 2, 3, 7, 19, 40])
    found = compare_prefixes(p, data, ends)
    for end, value, bound, status in zip(ends, found.value, found.bound, found.status):
        alone = compare(p, data.first(int(end)), "static")
        size = max(1.0, float(np.abs(alone.losses).sum()))
        assert value == pytest.approx(alone.value, rel=3e-6, abs=3e-6 * size)
        assert status is alone.status and bound <= value + 1e-9 * size


def test_prefixes_that_nothing_satisfies_have_the_least_violating_decision() -> None:
    p = problem(
        "decision x in box(0, 10)\nstream a in [-10, 10]\nminimize (x - 3) ** 2\nsubject to\n    above: a >= x    each round\n",
        4,
    )
    data = load_data(p, {"a": np.array([5.0, 6.0, -2.0, 1.0])})
    found = compare_prefixes(p, data, np.array([1, 2, 3, 4]))
    assert found.status == (Status.CERTIFIED,) * 2 + (Status.LEAST_VIOLATING,) * 2
    np.testing.assert_allclose(found.decision["x"], [3.0, 3.0, 0.0, 0.0], atol=1e-3)


KINKED = {
    "absolute values": "decision x[3] in ball(3)\nstream a[3] in [-1, 1]\nstream y in [-2, 2]\nminimize abs(a @ x - y) + 0.1 * norm1(x)\n",
    "hinges": "decision x[3] in ball(3)\nstream a[3] in [-1, 1]\nstream y in [-2, 2]\nminimize hinge(y * (a @ x)) + norm_inf(x)\n",
    "a maximum": "decision x in box(0, 9)\nstream d in [0, 9]\nminimize max([2 * (d - x), x - d])\n",
    "limits with kinks": (
        "decision x[2] in box(-3, 3)\nstream a[2] in [-1, 1]\nminimize sum_squares(x - 3 * a) - sum(x)\n"
        "subject to\n    near: norm2(x - a) <= 1.9    each round\n    mean: maximum(x[0], a[0]) + pos(x[1]) <= 0.6    on average\n"
    ),
}


@pytest.mark.parametrize("body", KINKED.values(), ids=KINKED.keys())
def test_many_kinks_give_an_interval_around_the_value(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["oco.evaluation.comparators.compare"], "LARGEST", 10)
    p = problem(body, 60)
    data = drawn(p, 60)
    exact = reference(p, data, list(range(60)), averages=True)
    found = compare(p, data, "static")
    assert found.status in (Status.INTERVAL, Status.CERTIFIED)
    slack = 1e-6 * abs(exact)
    assert found.bound <= exact + slack and exact <= found.value + slack
    assert found.gap <= 0.02 * abs(exact) and np.all(found.excess <= 1e-6)
    ends = np.array([30, 60])
    several = compare_prefixes(p, data, ends)
    assert several.bound[1] <= exact + slack and exact <= several.value[1] + slack


@pytest.mark.parametrize(("seed", "zones"), [(0, 10)])
def test_job_scheduling_matches_bisection_of_its_dual(seed: int, zones: int) -> None:
    """min c x s.t. sum_i 4 log(1 + 4 x_i) >= jobs on a box: x_i = clip(4 lam / c_i - 1/4), lam by bisection."""
    p = canonical(load(ROOT / "examples" / "job_scheduling.oco"))
    rng = np.random.default_rng(seed)
    price, jobs = rng.uniform(5, 80, (60, zones)), rng.integers(2300, 2700, 60)
    found = compare(p, load_data(p, {"price": price, "jobs": jobs}), "dynamic")
    check_certificate(found)
    for t in range(60):
        c = np.repeat(price[t], 10)
        low, high = 0.0, 1e9
        for _ in range(200):
            lam = (low + high) / 2
            x = np.clip(4 * lam / c - 0.25, 0, 1000)
            low, high = (lam, high) if 4 * np.log1p(4 * x).sum() < jobs[t] else (low, lam)
        assert found.losses[t] == pytest.approx(float(c @ x), rel=1e-7)


@pytest.mark.parametrize(
    ("expr", "order", "diagonal"),
    [
        ("c @ x", 1, True),
        ("sum_squares(x - c)", 2, True),
        ("sum_squares(A @ x - c)", 2, False),
        ("sum(c * log(1 + x)) - 2", np.inf, True),
        ("-log(c @ x)", np.inf, False),
        ("(x[0] - x[1]) ** 2", 2, False),
        ("x[0] ** 2 + exp(x[1])", np.inf, True),
        ("3 * sum(exp(x)) / 2 - c @ x", np.inf, True),
        ("sum(x * x) + sum(x)", 2, True),
        ("sum(exp(x) * c)", np.inf, True),
        ("c @ exp(x)", np.inf, True),
        ("log_sum_exp(x)", np.inf, False),
    ],
)
def test_structure_is_recognised(expr: str, order: float, diagonal: bool) -> None:
    p = problem(f"decision x[3] in box(0, 1)\nstream c[3] in [0.1, 1]\nstream A[3, 3] in [0, 1]\nminimize {expr}\n", 1)
    assert degree(p.objective, ("x",)) == order
    found = separable(p.objective, ("x",))
    assert found == diagonal


def test_the_decisions_of_a_datacenter_pace_in_expectation() -> None:
    """Equalities on average with known laws: rows that depend on each other do not disturb the solver."""
    p = canonical(load(ROOT / "examples" / "datacenter.oco"))
    rng = np.random.default_rng(1)
    data = load_data(p, {"price": rng.uniform(-50, 200, (300, 5))}, seed=2)
    found = compare(p, data, "static")
    check_certificate(found)
    mu, group, beta = (
        found.decision["mu"],
        np.loadtxt(ROOT / "examples" / "datacenter_groups.csv", delimiter=","),
        [0.05, 0.1, 0.25, 0.6],
    )
    use = next(s.mean for s in p.streams if s.name == "use")
    np.testing.assert_allclose(group @ (use * mu), np.array(beta) * (use * mu).sum(), rtol=1e-6)


DOMAINS = {
    "a cross-polytope by its facets": ("", "decision x[4] in l1_ball(1.5)\n"),
    "a cross-polytope by its projection": ("", "decision x[14] in l1_ball(2)\n"),
    "an ellipsoid": (
        "param P[3, 3] = [[2, 0.3, 0], [0.3, 1, 0], [0, 0, 1]]\n",
        "decision x[3] in ellipsoid(P, [1, 0, 0])\n",
    ),
    "a polytope": (
        "param A[4, 3] = [[1, 1, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1]]\n",
        "decision x[3] in polytope(A, [1, 0.5, 0.5, 0.5])\n",
    ),
    "a capped simplex": ("", "decision x[5] in capped_simplex(0.4)\n"),
    "the positive part of a ball": ("", "decision x[5] in nonneg_ball(1)\n"),
    "a ball of groups": ("", "decision x[6] in group_ball(1, [0, 0, 1, 1, 2, 2])\n"),
}


@pytest.mark.parametrize(("params", "decision"), DOMAINS.values(), ids=DOMAINS.keys())
def test_every_kind_of_set(params: str, decision: str) -> None:
    n = int(decision.split("[")[1].split("]")[0])
    body = f"{params}{decision}stream a[{n}] in [-1, 1]\nminimize sum_squares(x - 2 * a) + a @ x\n"
    p = problem(body + "subject to\n    tilt: a[0] * x[0] + x[1] <= 0.1    on average\n", 20)
    data = drawn(p, 20)
    found = compare(p, data, "static")
    assert found.status is Status.CERTIFIED and abs(found.gap) <= 1e-6 * abs(found.value)
    assert found.value == pytest.approx(reference(p, data, list(range(20)), averages=True), rel=1e-6)
    dynamic = compare(p, data.first(3), "dynamic")
    assert dynamic.status is Status.CERTIFIED
    assert dynamic.losses[2] == pytest.approx(reference(p, data, [2], averages=False), rel=1e-5)


def test_a_matrix_of_small_nuclear_norm() -> None:
    """Gathered squares: the sum over the rounds is a weighted least-squares problem, here solved by CVXPY as one."""
    text = (
        "decision X[5, 4] in nuclear_ball(2)\nstream row[6] in 0..4\nstream col[6] in 0..3\nstream y[6] in [-1, 1]\n"
        "stream G[5, 4] in [-1, 1]\nminimize 0.5 * sum_squares(X[row, col] - y)\nsubject to\n    side: sum(G * X) <= 0    on average\n"
    )
    p = problem(text, 30)
    rng = np.random.default_rng(0)
    row, col, y = rng.integers(0, 5, (30, 6)), rng.integers(0, 4, (30, 6)), rng.uniform(-1, 1, (30, 6))
    G = rng.uniform(-1, 1, (30, 5, 4))
    found = compare(p, load_data(p, {"row": row, "col": col, "y": y, "G": G}), "static")
    X = cp.Variable((5, 4))
    entries = X[row.ravel(), col.ravel()]
    constraints = [cp.normNuc(X) <= 2, cp.sum(cp.multiply(G.mean(axis=0), X)) <= 0]
    value = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(entries - y.ravel())), constraints).solve(solver="CLARABEL")
    assert found.status is Status.CERTIFIED and found.value == pytest.approx(value, rel=1e-6)


KINKS = {
    "absolute deviations": "decision x[3] in box(-2, 2)\nstream a[3] in [-1, 1]\nstream y in [-3, 3]\nminimize abs(a @ x - y)\n",
    "hinge losses with a shared norm": (
        "decision x[3] in ball(2)\nstream a[3] in [-1, 1]\nminimize hinge(a @ x) + 0.1 * norm1(x) + 0.01 * sum_squares(x)\n"
    ),
    "the largest of affine functions": (
        "decision x[3] in simplex\nstream A[4, 3] in [-1, 1]\nminimize max(A @ x)\nsubject to\n    first: x[0] <= 0.5    each round\n"
    ),
    "norms in constraints": (
        "decision x[4] in box(-1, 1)\nstream c[4] in [-1, 1]\nstream r in [0.5, 1]\nminimize c @ x\nsubject to\n"
        "    length: norm2(x) <= r    each round\n    spread: norm_inf(x - c) <= 1.5    on average\n"
    ),
    "smooth and kinked parts": (
        "decision x[2] in box(-3, 3)\nstream a[2] in [-2, 2]\nminimize sum_squares(x - a) + 2 * sum(abs(x - 0.5 * a)) + pos(x[0] - a[1])\n"
    ),
    "concave kinks that are subtracted": (
        "decision x[2] in box(0, 3)\nstream a[2] in [0.5, 2]\nminimize a @ x - 2 * min(a * x) - minimum(x[0], a[0])\n"
    ),
    "columns": (
        "decision X[2, 3] in box(-1, 1)\nstream B[2, 3] in [-1, 1]\n"
        "minimize sum(max(X - B, axis = 1)) - 0.2 * sum(X * B) + sum(norm1(X, axis = 0))\n"
    ),
}


@pytest.mark.parametrize("body", KINKS.values(), ids=KINKS.keys())
def test_functions_with_kinks(body: str) -> None:
    p = problem(body, 15)
    data = drawn(p, 15)
    found = compare(p, data, "static")
    check_certificate(found)
    assert found.value == pytest.approx(reference(p, data, list(range(15)), averages=True), rel=1e-5, abs=1e-5)
    dynamic = compare(p, data, "dynamic")
    check_certificate(dynamic)
    for t in (0, 7, 14):
        assert dynamic.losses[t] == pytest.approx(reference(p, data, [t], averages=False), rel=1e-5, abs=1e-5)
    assert set(found.decision) == set(dynamic.decision) == {b.name for b in p.blocks}


@pytest.mark.parametrize("loss_scale", [1e-4, 1e5])
@pytest.mark.parametrize("set_scale", [1e-3, 1e4])
@pytest.mark.parametrize("shape", ["box(0, {s})", "ball({s})", "simplex({s})"])
def test_units_do_not_matter(loss_scale: float, set_scale: float, shape: str) -> None:
    """The same problem in other units has the same decisions, and is certified as sharply."""

    def solved(f: float, s: float) -> Comparator:
        body = (
            f"decision x[4] in {shape.format(s=s)}\nstream c[4] in [-1, 1]\nstream A[2, 4] in [-1, 1]\nstream b[2] in [0.3, 1]\n"
            f"minimize {f} * (c @ x / {s} + 0.2 * sum_squares(x - {s} * c) / {s} ** 2)\n"
            f"subject to\n    limits: A @ x <= {s} * b    each round\n"
        )
        p = problem(body, 10)
        return compare(p, drawn(p, 10), "dynamic")

    plain, scaled = solved(1.0, 1.0), solved(loss_scale, set_scale)
    check_certificate(plain)
    assert scaled.status is plain.status is Status.CERTIFIED
    np.testing.assert_allclose(scaled.losses / loss_scale, plain.losses, atol=1e-7)
    np.testing.assert_allclose(scaled.decision["x"] / set_scale, plain.decision["x"], atol=1e-4)
