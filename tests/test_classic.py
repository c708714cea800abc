"""ogd and oeg against their rules written out: the projection by CVXPY, the weights in plain exponentials."""

from __future__ import annotations

import math
from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest
from driving import Array, Round, solved, trajectory
from thorough import turns

from oco.compiler.selection.plan import compile_plan
from oco.dsl.load import parse

OGD = """
model follow
horizon T = 60
decision x[4] in {domain}
stream a[4] in [-2, 2]
minimize {loss}
"""

LINEAR: tuple[str, Callable[[Round, Array], Array]] = ("a @ x", lambda d, x: d["a"])
LOGISTIC: tuple[str, Callable[[Round, Array], Array]] = (
    "logistic(3 * a @ x)",
    lambda d, x: 3 * d["a"] / (1 + math.exp(-3 * d["a"] @ x)),
)
SQUARES: tuple[str, Callable[[Round, Array], Array]] = ("3 * sum_squares(x - a)", lambda d, x: 6 * (x - d["a"]))

DOMAINS = {
    "box(-1, [1, 2, 3, 4])": (
        lambda v: [v >= -1, v <= np.array([1, 2, 3, 4])],
        np.array([0, 0.5, 1, 1.5]),
        math.sqrt(4 + 9 + 16 + 25),
    ),
    "ball(1.5)": (lambda v: [cp.norm2(v) <= 1.5], np.zeros(4), 3.0),
    "simplex(2)": (lambda v: [v >= 0, cp.sum(v) == 2], np.full(4, 0.5), 2 * math.sqrt(2)),
}


@pytest.mark.parametrize(("domain", "loss"), turns([*DOMAINS], [LINEAR, LOGISTIC, SQUARES]))
def test_ogd_is_projected_gradient_descent(domain: str, loss: tuple[str, Callable[[Round, Array], Array]]) -> None:
    """eta_t = 0.7 / sqrt(t), so that the reference needs no fact."""
    constraints, x, diameter = DOMAINS[domain]
    text, gradient = loss
    rng = np.random.default_rng(6)
    rounds = [{"a": rng.uniform(-2, 2, 4)} for _ in range(40)]
    plan = compile_plan(parse(OGD.format(domain=domain, loss=text)), algorithm="ogd", settings={"eta": "0.7 / sqrt(t)"})
    ours = trajectory(plan, rounds)
    v, target = cp.Variable(4), cp.Parameter(4)
    projection = cp.Problem(cp.Minimize(cp.sum_squares(v - target)), constraints(v))
    for t, data in enumerate(rounds, start=1):
        assert np.linalg.norm(ours[t - 1][0] - x) <= 1e-6 * diameter
        target.value = x - 0.7 / math.sqrt(t) * gradient(data, x)
        solved(projection)
        x = np.asarray(v.value)


def test_oeg_multiplies_the_weights() -> None:
    text = "model m\nhorizon T = 60\ndecision w[5] in simplex\nstream r[5] in [0.5, 2]\nminimize -log(r @ w)\n"
    rng = np.random.default_rng(9)
    rounds = [{"r": rng.uniform(0.5, 2, 5)} for _ in range(60)]
    plan = compile_plan(parse(text), algorithm="oeg", settings={"eta": 0.4})
    w = np.full(5, 0.2)
    for data, (ours,) in zip(rounds, trajectory(plan, rounds)):
        np.testing.assert_allclose(ours, w, rtol=1e-11)
        w = w * np.exp(0.4 * data["r"] / (data["r"] @ w))
        w = w / w.sum()


def test_settings_of_the_theorems() -> None:
    """D / (G sqrt(t)) with D = 4 and G = 2 sqrt(4) on box(-1, 1)^4; 1 / (mu t) with mu = 6; sqrt(2 log d / T) / G."""
    linear = compile_plan(parse(OGD.format(domain="box(-1, 1)", loss="a @ x")), algorithm="ogd")
    assert str(linear.settings["eta"].formula) == "1/sqrt(t)"
    squares = compile_plan(parse(OGD.format(domain="box(-1, 1)", loss="3 * sum_squares(x - a)")), algorithm="ogd")
    assert str(squares.settings["eta"].formula) == "1/(6*t)"
    simplex = compile_plan(parse(OGD.format(domain="simplex", loss="a @ x")), algorithm="oeg")
    assert simplex.settings["eta"].value == pytest.approx(math.sqrt(2 * math.log(4) / 60) / 2)
