"""Kinks of opposed signs in one place: equal values, convexity by a known answer, and the decision of CVXPY for two prices."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.folding import Folding
from oco.dsl.evaluate import evaluate

HEAD = """model m
horizon T = 60
decision x[3] in box(0, [3, 5, 8])
stream d[3] in [0, 8]
stream buy in [0.2, 0.5]
stream sell in [0, 0.2]
"""
CONVEX = [
    "0.3 * pos(x[0] - d[0]) - 0.1 * pos(d[0] - x[0])",
    "buy * pos(x[0] - d[0]) - sell * pos(d[0] - x[0])",
    "buy * pos(sum(x) - sum(d)) - sell * neg(sum(x) - sum(d))",
    "sum(buy * pos(x - d) - sell * pos(d - x))",
    "buy * abs(x[1] - d[1]) - 0.5 * sell * pos(2 * d[1] - 2 * x[1])",
    "buy * maximum(sum(x), 4) - sell * maximum(4, sum(x)) + square(x[0])",
    "sum(x) + buy * pos(buy * x[2] - d[2]) + sell * minimum(buy * x[2], d[2])",
]
DATA = {"d": np.array([1.0, 2.0, 6.0]), "buy": 0.4, "sell": 0.1}


@pytest.mark.parametrize("loss", CONVEX)
def test_two_prices_of_one_kink_are_convex_and_have_the_values_that_were_written(loss: str) -> None:
    model = oco.parse(f"{HEAD}minimize {loss}\n")
    assert oco.check(model)["loss.convex"].value is True
    joined, rng = canonical(model).objective, np.random.default_rng(2)
    written = Folding(model).fold(model.objective)
    for _ in range(40):
        data = {"d": rng.uniform(0, 8, 3), "buy": rng.uniform(0.2, 0.5), "sell": rng.uniform(0, 0.2)}
        own = data | {"x": rng.uniform(0, [3, 5, 8])}
        assert_allclose(evaluate(joined, own), evaluate(written, own), rtol=1e-12, atol=1e-12)


def test_kinks_whose_prices_are_never_negative_stay_as_they_are_written() -> None:
    model = oco.parse(f"{HEAD}minimize buy * pos(x[0] - d[0]) + sell * pos(d[0] - x[0])\n")
    assert canonical(model).objective == Folding(model).fold(model.objective)


def test_a_constraint_may_have_two_prices() -> None:
    model = oco.parse(
        f"{HEAD}minimize sum(x)\nsubject to\n    bill: buy * pos(4 - x[0]) - sell * pos(x[0] - 4) <= 1  each round\n"
    )
    assert oco.check(model)["constraints.bill.convex"].value is True


def test_prices_that_may_cross_are_refused_with_the_form_that_is_convex_where_data_allow_it() -> None:
    head = HEAD.replace("sell in [0, 0.2]", "sell in [0, 0.4]")
    with pytest.raises(oco.OcoError) as refused:
        oco.compile(oco.parse(f"{head}minimize buy * pos(x[0] - d[0]) - sell * pos(d[0] - x[0])\n"))
    terms = "pos(buy - sell) * pos(x[0] - d[0]) - sell * (d[0] - x[0])"
    assert refused.value.code == "OCO501" and f"write `{terms}` for them" in refused.value.hint
    model = oco.parse(f"{head}minimize {terms}\n")
    assert oco.check(model)["loss.convex"].value is True


def test_max_and_min_of_several_arguments_are_those_of_each_entry() -> None:
    short = oco.parse(f"{HEAD}minimize sum(max(d - x, 0)) - buy * min(x[0], d[0], 3)\n")
    long = oco.parse(f"{HEAD}minimize sum(maximum(d - x, 0)) - buy * minimum(x[0], d[0], 3)\n")
    assert short.objective == long.objective


def test_the_comparator_pays_two_prices() -> None:
    model = oco.parse(f"{HEAD}minimize {CONVEX[3]} + 0.01 * sum_squares(x)\n")
    rng, T = np.random.default_rng(5), 60
    data = {"d": rng.uniform(0, 8, (T, 3)), "buy": rng.uniform(0.2, 0.5, T), "sell": rng.uniform(0, 0.2, T)}
    trace = oco.compile(model, "ogd").run(data)
    x = cp.Variable(3)
    paid = [
        cp.sum((b - s) * cp.pos(x - d) + s * (x - d))
        for d, b, s in zip(data["d"], data["buy"], data["sell"], strict=True)
    ]
    best = cp.Problem(cp.Minimize(cp.sum(paid) + 0.01 * T * cp.sum_squares(x)), [x >= 0, x <= [3, 5, 8]]).solve()
    assert_allclose(float(trace.loss.sum() - trace.regret()[-1]), best, rtol=1e-6)
