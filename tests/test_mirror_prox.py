"""Mirror prox against Algorithms 1 and 2 of Qiu & Wei 2020 written out: the steps by CVXPY; its promise against runs."""

from __future__ import annotations

import math
from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest
from driving import Array, Run, solved, trajectory
from scipy.optimize import linprog
from thorough import one_in

from oco.compiler.selection.plan import compile_plan, explain_choice
from oco.compiler.selection.verdicts import Applicability
from oco.dsl.load import parse

TEXT = """
model m
horizon T = 40
decision x[4] in {domain}
stream a[4] in [-2, 2]
minimize sum_squares(x - a)
subject to
    energy: sum_squares(x) <= 1.5 on average
    caps: [x[0] + x[1], x[2]] <= [0.7, 0.4] on average
"""
SETTINGS = {"V": 30.0, "L_f": 2.0, "L_g": 2.0, "G": 5.0, "H": 6.0}


MATRIX = """
model m
horizon T = 40
decision X[2, 2] in {domain}
stream a[4] in [-2, 2]
minimize 3 * logistic(a[0:2] @ X[0] + a[2:4] @ X[1])
subject to
    energy: sum_squares(X) <= 1.5 on average
    caps: [X[0, 0] + X[0, 1], X[1, 0]] <= [0.7, 0.4] on average
"""
LOSSES: dict[str, tuple[str, Callable[[Array, Array], Array]]] = {
    "squares": (TEXT, lambda x, a: 2 * (x - a)),
    "logistic": (TEXT.replace("sum_squares(x - a)", "3 * logistic(a @ x)"), lambda x, a: 3 * a / (1 + np.exp(-a @ x))),
    "matrix": (MATRIX, lambda x, a: 3 * a / (1 + np.exp(-a @ x))),
}


def g(x: Array) -> tuple[Array, Array]:
    """Values and gradients of the constraints."""
    return np.array([x @ x - 1.5, x[0] + x[1] - 0.7, x[2] - 0.4]), np.array([2 * x, [1, 1, 0, 0], [0, 0, 1, 0]])


def reference(rounds: list[Array], domain: str, start: Array, gradient: Callable[[Array, Array], Array]) -> list[Array]:
    """Both listings, with f_0 = 0 and x_0 = xt_1 = start (erratum 1); a matrix is the vector of its rows."""
    T, V, L_f, L_g, G, H = len(rounds), 30.0, 2.0, 2.0, 5.0, 6.0
    eta, gamma, nu = max(V, L_f**2) ** -0.5, max(V, L_f**2) ** 0.25, 1 / T

    v, p, centre = cp.Variable(4), cp.Parameter(4), cp.Parameter(4)
    inside = {
        "box(0, 1)": [v >= 0, v <= 1],
        "ball(1.2)": [cp.norm2(v) <= 1.2],
        "nuclear_ball(1.2)": [cp.normNuc(cp.reshape(v, (2, 2), order="C")) <= 1.2],
    }
    nearest = cp.Problem(cp.Minimize(p @ v + cp.sum_squares(v - centre) / 2), inside.get(domain, []))

    def step(direction: Array, alpha: float, base: Array) -> Array:
        if domain == "simplex":
            mixed = (1 - nu) * base + nu / 4
            weight = mixed * np.exp(-direction / alpha)  # Clarabel leaves 1e-5 in exponential cones
            return weight / weight.sum()
        p.value, centre.value = direction / alpha, base
        solved(nearest)
        return np.array(v.value)

    x, xt, Q, alpha, slope, played = start, start, np.zeros(3), 0.0, np.zeros(4), []
    for a in rounds:
        values, slopes = g(x)
        Q = np.maximum(-gamma * values, Q + gamma * values)
        xi = gamma * L_g * Q.sum() + gamma**2 * (L_g * G + H**2)
        if domain == "simplex":
            alpha = max(3 * (eta * L_f**2 + gamma**2 * L_g * G) + 2 / eta + 3 * xi, alpha)
        else:
            alpha = max(2 * (gamma**2 * L_g * G + eta * L_f**2 + 1 / eta + xi), alpha)
        c = gamma * (Q + gamma * values) @ slopes
        x = step(slope + c, alpha, xt)
        played.append(x)
        slope = gradient(x, a)
        xt = step(slope + c, alpha, xt)
    return played


DOMAINS = {
    "box(0, 1)": (np.full(4, 0.5), 2e-6),
    "ball(1.2)": (np.zeros(4), 2.4e-6),
    "simplex": (np.full(4, 0.25), 1e-11),
    "nuclear_ball(1.2)": (np.zeros(4), 2.4e-6),
}
CASES = [(d, loss) for d in DOMAINS for loss in LOSSES if (loss == "matrix") == d.startswith("nuclear")]


@pytest.mark.parametrize(("domain", "loss"), one_in(2, CASES))
def test_trajectories_equal_the_listing(domain: str, loss: str) -> None:
    """To 1e-6 of the diameter; on the simplex to rounding, against the closed form in plain exponentials."""
    rng = np.random.default_rng(2)
    rounds = [rng.uniform(-2, 2, 4) for _ in range(40)]
    (start, tolerance), (text, gradient) = DOMAINS[domain], LOSSES[loss]
    plan = compile_plan(parse(text.format(domain=domain)), algorithm="mirror-prox", settings=SETTINGS)
    ours = trajectory(plan, [{"a": a} for a in rounds])
    theirs = reference(rounds, domain, start, gradient)
    assert max(np.linalg.norm(z - start) for z in theirs) > 100 * tolerance
    assert max(np.linalg.norm(np.ravel(x) - z) for (x,), z in zip(ours, theirs)) <= tolerance


def test_settings_come_from_the_facts() -> None:
    """On box(0, 1)^4: |2 (x - a)| <= 6 in each entry, so F = 12; smoothness 2; |g| <= 2.5, 1.3, 0.6; slopes 4, sqrt 2, 1."""
    plan = compile_plan(parse(TEXT.format(domain="box(0, 1)")), algorithm="mirror-prox")
    value = {name: s.value for name, s in plan.settings.items()}
    assert value["L_f"] == pytest.approx(2) and value["L_g"] == pytest.approx(2)
    assert value["G"] == pytest.approx(2.5 + 1.3 + 0.6) and value["H"] == pytest.approx(4 + math.sqrt(2) + 1)
    assert value["V"] == pytest.approx(4 * 12**2 * 39)
    assert value["eta"] == pytest.approx(value["V"] ** -0.5) and value["gamma"] == pytest.approx(value["V"] ** 0.25)


@pytest.mark.parametrize("change", [0.0, 0.05, 1.0], ids=["still", "slow", "fast"])
def test_the_promises_hold(change: float) -> None:
    """Linear and quadratic losses that change by `change`: prefix regret and violation stay below the bounds."""
    T = 300
    text = f"""
model m
horizon T = {T}
decision x[3] in box(0, 1)
stream c[3] in [-1, 1]
minimize c @ x + 0.05 * sum_squares(x)
subject to
    cap: x[0] + 2 * x[1] + x[2] <= 1.1 on average
assume variation.gradient <= {3 * (2 * change) ** 2 * T + 1e-9}
"""
    plan = compile_plan(parse(text), algorithm="mirror-prox")
    rng = np.random.default_rng(4)
    costs = np.array([-0.5, -0.8, 0.2]) * (1 - change) + change * rng.choice([-1.0, 1.0], (T, 3))
    run = Run(plan)
    x = []
    for c in costs:
        x.append(run.decisions[0])
        run.play({"c": c})
    x = np.array(x)
    losses = (costs * x).sum(axis=1) + 0.05 * (x**2).sum(axis=1)
    least = linprog(costs.sum(axis=0), [[1, 2, 1]], [1.1], bounds=[(0, 1)] * 3).fun  # the square is at least 0
    violation = max(0.0, float(np.sum(x @ [1, 2, 1] - 1.1)))
    assert plan.guarantee is not None
    assert losses.sum() - least - 0.05 * 3 * T <= plan.guarantee.regret()
    assert violation <= plan.guarantee.violation()


def test_a_loss_that_never_changes_costs_a_constant() -> None:
    """Regret of the same loss over T and 4 T rounds: O(1), as the paper says."""
    regrets = []
    for T in (200, 800):
        text = f"""
model m
horizon T = {T}
decision x[2] in box(0, 1)
minimize sum_squares(x - [0.9, 0.7])
subject to
    cap: sum(x) <= 1.2 on average
"""
        plan = compile_plan(parse(text), algorithm="mirror-prox")
        xs = np.array([x for (x,) in trajectory(plan, [{}] * T)[:T]])
        regrets.append((((xs - [0.9, 0.7]) ** 2).sum(axis=1) - 2 * 0.2**2).sum())
    assert abs(regrets[1] - regrets[0]) <= 0.05 * abs(regrets[0]) + 1e-6


def test_moving_constraints_are_refused() -> None:
    text = TEXT.format(domain="box(0, 1)").replace("x[2]] <=", "a[2] * x[2]] <=")
    verdict = next(v for v in explain_choice(parse(text)).verdicts if v.name == "mirror-prox")
    assert verdict.applicability is Applicability.REFUSED
    assert any("fixed constraints" in r for r in verdict.reasons)
