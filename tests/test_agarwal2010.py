"""Two-point gradient descent against a literal reference, its estimates against exact gradients, its promise against runs."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from law_worlds import play
from test_flaxman2005 import DOMAINS, design
from thorough import corners

import oco
from oco.compiler.selection.plan import compile_plan
from oco.dsl.diagnostics import OcoError

TEXT = """
model two_points
horizon T = {T}
decision {domain}
stream a[3] in [-1, 1]
minimize sum_squares(x) + a @ x
feedback two_point
"""
GIVEN = {"units": "user", "eta": 0.02, "delta": 0.1, "r": 0.25}


@cache
def plan_of(name: str, T: int, **settings: float | str) -> oco.Plan:
    text = TEXT.format(T=T, domain=DOMAINS[name][0])
    return oco.compile(oco.parse(text), algorithm="two-point", settings=settings or None)


def loss(x: np.ndarray, a: np.ndarray) -> float:
    return float(x @ x + a @ x)


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_decisions_are_those_of_the_paper(name: str, backend: str) -> None:
    """y_{t+1} = P(y_t - eta d/(2 delta) (f_t(y_t + delta u_t) - f_t(y_t - delta u_t)) u_t) over the shrunk domain about its centre."""
    T, (_, d, project) = 60, DOMAINS[name]
    rng = np.random.default_rng(3)
    a, normals = rng.uniform(-1, 1, (T, 3)), rng.normal(size=(T, 3))
    learner = plan_of(name, T, **GIVEN).learner(draws={"u": normals}, backend=backend)
    centre = np.full(3, 1 / 3) if name == "simplex" else np.zeros(3)
    y, shrink = centre.copy(), 1 - 0.1 / 0.25
    for t in range(T):
        u = normals[t] - (normals[t].mean() if name == "simplex" else 0.0)
        u /= np.linalg.norm(u)
        x, z = learner.decide(), learner.second_point()
        np.testing.assert_allclose([x, z], [y + 0.1 * u, y - 0.1 * u], atol=1e-9)
        learner.observe(loss=loss(x, a[t]), second_loss=loss(z, a[t]))
        step = 0.02 * d / 0.2 * (loss(x, a[t]) - loss(z, a[t])) * u
        y = centre + shrink * (project(centre + (y - step - centre) / shrink) - centre)


@pytest.mark.parametrize("name", DOMAINS)
def test_estimates_have_the_gradient_for_their_mean(name: str) -> None:
    """One step from the centre along each direction of a design, which is exact for quadratic losses, in the affine hull."""
    eta, delta = 1e-4, 0.1
    plan = plan_of(name, 2, units="user", eta=eta, delta=delta, r=0.25)
    a, steps = np.array([0.7, -0.2, 0.4]), []
    centre = np.full(3, 1 / 3) if name == "simplex" else np.zeros(3)
    for u in design(name):
        trace = plan.run({"a": np.stack([a, a])}, draws={"u": np.stack([u, u])})
        steps.append((trace.decisions[1] - delta * u - centre) / -eta)
    exact = 2 * centre + a
    exact = exact - exact.mean() if name == "simplex" else exact
    np.testing.assert_allclose(np.mean(steps, axis=0), exact, atol=1e-8)


KINDS = ("still", "drawn", "swings")


@pytest.mark.parametrize(("name", "kind"), corners(product(DOMAINS, KINDS), list(zip(DOMAINS, KINDS))))
def test_regret_stays_within_the_promise_and_decisions_in_the_domain(name: str, kind: str) -> None:
    T = 1000
    plan = plan_of(name, T)
    assert plan.guarantee is not None
    rng, sign = np.random.default_rng(1), np.array([1.0, -1.0, 1.0])
    a = {
        "still": np.tile(sign, (T, 1)),
        "drawn": rng.uniform(-1, 1, (T, 3)),
        "swings": sign * np.sign(np.sin(np.arange(T) / 100))[:, None],
    }[kind]
    trace = plan.run({"a": a}, seed=2)
    assert all(plan.canonical.blocks[0].domain.contains(x) for x in trace.decisions[::50])
    assert trace.regret("static")[-1] <= plan.guarantee.regret()


def test_the_guarantee_is_the_formula_of_the_theorem() -> None:
    """D^2/(2 eta) + eta T (d G)^2/2 + T delta (2 G + min(G D, W)/r) for a ball of radius 2."""
    T = 400
    plan = plan_of("ball", T, **{**GIVEN, "r": 2.0})
    G, D, W = (plan.facts.value("loss.lipschitz.l2"), 4.0, plan.choice.situation.loss_range)
    expected = D**2 / 0.04 + 0.02 * T * (3 * G) ** 2 / 2 + T * 0.1 * (2 * G + min(G * D, W) / 2)
    assert plan.guarantee is not None and plan.guarantee.regret() == pytest.approx(expected)
    assert [str(r) for r in plan.guarantee.rates.values()] == ["sqrt(T)"]


def test_regret_grows_as_the_root_of_the_rounds() -> None:
    """Exponent between 2^8 and 2^14 rounds of coins with a drift, from values at both points."""
    horizons, regrets = [2**8, 2**10, 2**12, 2**14], []
    for T in horizons:
        rng, own = np.random.default_rng(T), []
        text = TEXT.format(T=T, domain=DOMAINS["box"][0]).replace("two_point", "full")
        plan = compile_plan(oco.parse(text), "two-point")
        for seed in range(8):
            a = rng.choice([-1.0, 1.0], (T, 3), p=[0.6, 0.4])
            best = np.clip(-a.mean(axis=0) / 2, -1, 1)
            own.append(play(plan, {"a": a}, seed).loss.sum() - T * (best @ best) - a.sum(axis=0) @ best)
        regrets.append(np.mean(own))
    exponent = np.polyfit(np.log(horizons), np.log(regrets), 1)[0]
    assert 0 < regrets[-1] < 0.05 * 2**14 and 0.2 < exponent < 0.6


def test_two_points_are_the_choice_where_two_are_revealed() -> None:
    text = TEXT.format(T=1000, domain="x[3] in box(-1, 1)")
    assert oco.compile(oco.parse(text)).algorithm == "two-point"
    assert oco.compile(oco.parse(text.replace("two_point", "bandit"))).algorithm == "response-surface"
    assert oco.compile(oco.parse(text.replace("two_point", "full"))).algorithm == "hedged"
    m = oco.Model("two_points", horizon=1000)
    x, a = m.decision("x", 3, domain=oco.box(-1, 1)), m.stream("a", 3, bounds=(-1, 1))
    m.minimize(oco.sum_squares(x) + a @ x)
    m.feedback("two_point")
    assert oco.compile(m).algorithm == "two-point" and "feedback two_point" in m.build().to_oco()


def test_the_second_point_asks_for_the_feedback() -> None:
    text = TEXT.format(T=50, domain="x[3] in box(-1, 1)")
    with pytest.raises(OcoError, match="no second point"):
        oco.compile(oco.parse(text.replace("two_point", "bandit"))).learner().second_point()
    with pytest.raises(OcoError, match="second point"):
        oco.compile(oco.parse(text.replace("two_point", "bandit")), algorithm="two-point")


def test_emitted_modules_have_the_second_point(tmp_path: Path) -> None:
    plan = plan_of("box", 30)
    space: dict[str, object] = {"__name__": "emitted"}
    exec(plan.source(backend="numpy"), space)
    theirs, ours = space["Learner"](seed=5), plan.learner(seed=5, backend="numpy")
    for _ in range(5):
        np.testing.assert_array_equal(theirs.decide(), ours.decide())
        np.testing.assert_array_equal(theirs.second_point(), ours.second_point())
        for learner in (theirs, ours):
            learner.decide()
            learner.observe(loss=0.3, second_loss=0.2)
    header = next(text for name, text in plan.files(backend="c").items() if name.endswith(".h"))
    assert "whose loss is second_loss, is what decide gives with all these numbers negated" in header
    again = oco.restore(ours.state())
    np.testing.assert_array_equal(again.second_point(), ours.second_point())
    apart = float(np.linalg.norm(again.decide() - again.second_point()))
    assert math.isclose(apart, 2 * plan.settings["delta"].value * plan.choice.winner.scales.radius)
