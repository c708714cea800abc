"""Comparators in hindsight against CVXPY, closed forms and published numbers; and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from comparator_cases import MODELS, check_certificate, drawn, problem, reference
from thorough import one_in

from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.degrees import degree
from oco.dsl.load import load
from oco.evaluation.comparators import ComparatorStatus
from oco.evaluation.comparators.compare import compare
from oco.evaluation.comparators.structure import separable
from oco.evaluation.data import load_data

ROOT = Path(__file__).parent.parent
PORTFOLIO = ROOT.parent / "shared" / "data" / "portfolio"


@pytest.mark.parametrize("body", MODELS.values(), ids=MODELS.keys())
def test_static_comparators_match_cvxpy(body: str) -> None:
    p = problem(body, 25)
    data = drawn(p, 25)
    found = compare(p, data, "static")
    check_certificate(found)
    assert found.value == pytest.approx(reference(p, data, list(range(25)), averages=True), rel=3e-6, abs=1e-6)
    assert all(b.domain.contains(found.decision[b.name], 1e-7) for b in p.blocks)
    assert np.all(found.violation <= 1e-6)


@pytest.mark.parametrize("body", one_in(2, MODELS.values()), ids=MODELS.keys())
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
    assert static.status is ComparatorStatus.LEAST_VIOLATING and static.impossible.tolist() == [2]
    assert static.decision["x"] == pytest.approx(0.0, abs=1e-4) and static.violation[0] == pytest.approx(2.0, abs=1e-4)
    assert "satisfies" in static.words and "2" in static.words
    dynamic = compare(p, data, "dynamic")
    assert dynamic.status is ComparatorStatus.LEAST_VIOLATING and dynamic.impossible.tolist() == [2]
    np.testing.assert_allclose(dynamic.decision["x"], [3.0, 0.0, 3.0, 1.0], atol=1e-4)


def test_two_rounds_that_contradict_each_other() -> None:
    body = "decision x in box(0, 10)\nstream lo in [0, 10]\nstream hi in [0, 10]\nminimize x ** 2\nsubject to\n"
    p = problem(body + "    up: x >= lo    each round\n    down: x <= hi    each round\n", 3)
    data = load_data(p, {"lo": np.array([0.0, 6.0, 1.0]), "hi": np.array([9.0, 9.0, 4.0])})
    static = compare(p, data, "static")
    assert static.status is ComparatorStatus.LEAST_VIOLATING and set(static.impossible) == {2, 3}
    assert static.decision["x"] == pytest.approx(5.0, abs=1e-4)
    assert compare(p, data, "dynamic").status is ComparatorStatus.CERTIFIED


def test_means_that_cannot_hold_together() -> None:
    p = problem(
        "decision x in box(0, 1)\nstream need in [1, 3]\nminimize x\nsubject to\n    cover: x >= need    on average\n",
        2,
    )
    found = compare(p, load_data(p, {"need": np.array([1.5, 2.5])}), "static")
    assert found.status is ComparatorStatus.LEAST_VIOLATING and found.violation[0] == pytest.approx(1.0, abs=1e-4)


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
