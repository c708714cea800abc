"""Online Newton steps: the rule beside a literal one, its inequality on hostile sequences, and exp-concavity of the loss."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from driving import MetricStep
from thorough import thorough

import oco

Array = np.ndarray[Any, Any]
T = 30
PORTFOLIO = "model p\nhorizon T = {T}\ndecision x[4] in simplex\nstream r[4] in [0.5, 2]\nminimize -log(r @ x)\n"
SQUARE = (
    "model s\nhorizon T = {T}\ndecision x[3] in {domain}\nstream a[3] in [-1, 1]\nstream b in [-1, 1]\n"
    "minimize square(a @ x - b)\n"
)
LOGISTIC = SQUARE.replace("square(a @ x - b)", "logistic(-(a @ x) * b)")
CUTS: dict[str, Callable[[Any], list[Any]]] = {
    "simplex": lambda v: [v >= 0, cp.sum(v) == 1],
    "ball(1)": lambda v: [cp.norm(v) <= 1],
    "box(-1, 0.5)": lambda v: [v >= -1, v <= 0.5],
}


@cache
def plan_of(text: str, rounds: int = T) -> Any:
    return oco.compile(oco.parse(text.format(T=rounds, domain="ball(1)")), algorithm="ons", settings={"units": "user"})


def literal(
    plan: Any,
    gradients: Callable[[int, Array], Array],
    normal: Array | None,
    domain: str,
    hessians: Callable[[int], Array] | None = None,
) -> Array:
    """The rule as its module writes it, each step solved by CVXPY; with `hessians` where it looks at them."""
    facts = plan.facts
    theta, D = facts["loss.exp_concavity"].value, facts["domain.diameter.l2"].value
    d = plan.model.decisions[0].shape[0]
    n = d - (normal is not None)
    step = MetricStep(d, CUTS[domain])
    x, A, S, M, steepest, played = plan.learner(backend="numpy").decide(), np.zeros((d, d)), 0.0, 0.0, 0.0, []
    for t in range(T):
        played.append(x)
        g = gradients(t, x)
        g = g if normal is None else g - normal * (normal @ g)
        S, M = S + g @ g, max(M, float(np.linalg.norm(g)))
        gamma = min(theta / 2, 0.8 / (D * M))
        A = A + gamma * np.outer(g, g)
        steepest = max(steepest, 0.0 if hessians is None else g @ hessians(t) @ g / (g @ g))
        eps = max(min(n / (gamma * D * D), np.sqrt(S) / D), steepest)
        x = step(x, g, np.linalg.cholesky(eps * np.eye(d) + A).T)
    return np.array(played)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_portfolios_take_the_steps_of_the_module(backend: str) -> None:
    r = np.clip(1 + 0.3 * np.random.default_rng(1).normal(size=(T, 4)), 0.5, 2)
    plan = plan_of(PORTFOLIO)
    expected = literal(plan, lambda t, x: -r[t] / (r[t] @ x), np.full(4, 0.5), "simplex")
    np.testing.assert_allclose(plan.run({"r": r}, backend=backend).decisions, expected, atol=2e-7)


@pytest.mark.parametrize("domain", ["ball(1)", "box(-1, 0.5)"])
def test_least_squares_take_the_steps_of_the_module(domain: str) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.uniform(-1, 1, (T, 3)), rng.uniform(-1, 1, T)
    plan = oco.compile(oco.parse(SQUARE.format(T=T, domain=domain)), algorithm="ons", settings={"units": "user"})
    expected = literal(
        plan, lambda t, x: 2 * (a[t] @ x - b[t]) * a[t], None, domain, lambda t: 2 * np.outer(a[t], a[t])
    )
    own = [plan.run({"a": a, "b": b}, backend=name).decisions for name in ("numpy", "c")]
    np.testing.assert_allclose(own[0], expected, atol=2e-6)
    np.testing.assert_allclose(own[0], own[1], atol=1e-9)


def worst(plan: Any, x: Array, attack: str, t: int, rng: np.random.Generator) -> Array:
    """Relatives of a round: drawn, turning, against the decision, or a jump after quiet."""
    if attack == "random":
        return rng.uniform(0.5, 2, 4)
    if attack == "turning":
        return np.where(np.arange(4) == t // 5 % 4, 2.0, 0.5)
    if attack == "against":
        return np.where(np.arange(4) == np.argmin(x), 2.0, 0.5)
    return np.where(np.arange(4) == 1, 2.0, 0.5) if t > 100 else 1 + 1e-4 * rng.normal(size=4)


@pytest.mark.parametrize("attack", ["random", "turning", "against", "jump"])
def test_the_regret_is_bounded(attack: str) -> None:
    """The theorem with what was observed, and with the constants that are declared."""
    rounds, rng = 200, np.random.default_rng(3)
    plan = plan_of(PORTFOLIO, rounds)
    learner, r, loss, gammas = plan.learner(backend="c"), [], 0.0, list[float]()
    for t in range(rounds):
        x = learner.decide()
        r.append(worst(plan, x, attack, t, rng))
        loss += learner.observe(r=r[-1]).loss
        gammas.append(min(0.5, 0.8 / (np.sqrt(2) * float(learner.values["M"]))))
    best, data = cp.Variable(4), np.array(r)
    least = cp.Problem(cp.Minimize(-cp.sum(cp.log(data @ best))), CUTS["simplex"](best)).solve(solver="CLARABEL")
    S, n = float(learner.values["S"]), 3
    seen = n / (2 * gammas[-1]) * (3 + np.log(gammas[0] / gammas[-1] + 2 * gammas[0] ** 2 * S / n**2))
    assert loss - least <= seen + 1e-6
    assert seen <= plan.guarantee.regret_bound.number(rounds)


@pytest.mark.parametrize("width", [1, 1000])
def test_the_first_steps_of_a_regression_are_those_of_its_features(width: int) -> None:
    """Steps go no further than to the minimum of the round's loss, however wide the domain, and the bound holds."""
    rng = np.random.default_rng(4)
    a, b = rng.uniform(-1, 1, (T, 3)), rng.uniform(-1, 1, T)
    text = SQUARE.format(T=T, domain=f"box(-{width}, {width})")
    plan = oco.compile(oco.parse(text), algorithm="ons", settings={"units": "user"})
    run = plan.run({"a": a, "b": b}, backend="numpy")
    x, best = np.asarray(run.decisions), np.linalg.lstsq(a, b, rcond=None)[0]
    for t in range(T - 1):
        before, after = a[t] @ x[t] - b[t], a[t] @ x[t + 1] - b[t]
        assert abs(after) <= abs(before) + 1e-9
    assert run.loss.sum() <= 2 * (b @ b)
    assert run.loss.sum() - ((a @ best - b) ** 2).sum() <= plan.guarantee.regret_bound.number(T)


def test_rounds_that_reveal_gradients_alone_have_no_curvature() -> None:
    text = SQUARE.format(T=T, domain="ball(1)") + "feedback gradient\n"
    plan = oco.compile(oco.parse(text), algorithm="ons")
    assert "C" not in {f.name for f in plan.program.state}
    assert plan.learner(backend="numpy").decide().shape == (3,)


def test_regret_grows_as_a_logarithm() -> None:
    """As rounds grow by a factor of 4 regret grows by the same number, to the best portfolio of independent rounds; a root doubles it."""
    found = list[float]()
    for rounds in (256, 1024, 4096):
        plan, each = plan_of(PORTFOLIO, rounds), list[float]()
        for seed in range(3):
            r = np.where(np.random.default_rng(seed).uniform(size=(rounds, 4)) < [0.5, 0.45, 0.4, 0.35], 2.0, 0.5)
            best = np.full(4, 0.25)
            for _ in range(500):  # Cover's algorithm (1984): it climbs to the best fixed portfolio
                best *= (r / (r @ best)[:, None]).mean(axis=0)
            least = -float(np.log(r @ best).sum())
            each.append(float(plan.run({"r": r}, backend="c").loss.sum()) - least)
        found.append(float(np.mean(each)))
    first, second = np.diff(found)
    assert 0 < second < 1.4 * first, found


@pytest.mark.parametrize(
    ("loss", "theta"),
    [
        ("-log(r @ x)", 1.0),
        thorough("-2 * log(r @ x)", 0.5),
        ("-sum(log(x + r)) / 3", 1.0),
        ("square(x[0] - 2)", 1 / 8),
        ("sum_squares(x)", 1 / 6),
        ("logistic(3 * x[0])", np.exp(-3)),
        ("exp(x[0] - x[1])", np.exp(-1)),
        ("square(x[0] - 2) - log(r @ x)", 1 / 9),
        ("sum_squares(x) + r @ x", None),
        ("r @ x", 0.0),
        ("log_sum_exp(x)", 0.0),
        ("log(r @ x)", 0.0),
    ],
)
def test_exp_concavity_is_that_of_closed_forms(loss: str, theta: float | None) -> None:
    text = f"model m\nhorizon T = 9\ndecision x[3] in box(0, 1)\nstream r[3] in [0.5, 1]\nminimize {loss}\n"
    text = text.replace("box(0, 1)", "box(0.1, 1)") if "log(r" in loss else text
    try:
        fact = oco.check(oco.parse(text))["loss.exp_concavity"]
    except oco.OcoError as error:
        assert loss == "log(r @ x)", error
        return
    if theta is None:  # by strong convexity: 2 over the largest squared gradient
        assert fact.value == pytest.approx(2 / (3 * 3.0**2), rel=1e-9)
    elif theta == 0.0:
        assert fact.value is None
    else:
        upper = 1 / (1 / theta - 2 * 2.0**2 + 2 * 1.9**2) if "- log" in loss else theta
        assert fact.value == pytest.approx(upper, rel=1e-9)


def test_a_loss_that_is_not_exp_concave_is_refused_and_may_be_assumed() -> None:
    text = LOGISTIC.format(T=T, domain="ball(1)").replace("logistic(-(a @ x) * b)", "a @ x + b")
    with pytest.raises(oco.OcoError, match="has no value here"):
        oco.compile(oco.parse(text), algorithm="ons")
    assumed = oco.compile(oco.parse(text + "assume loss.exp_concavity >= 0.1\n"), algorithm="ons")
    assert assumed.settings["gamma"].value is not None


@pytest.mark.usefixtures("unmixed")
def test_it_is_chosen_where_its_number_says_more() -> None:
    text = LOGISTIC.format(T=10**6, domain="ball(3)")
    assert oco.compile(oco.parse(text)).algorithm == "ons"
    assert oco.compile(oco.parse(text.replace(f"{10**6}", "20"))).algorithm == "ogd"
