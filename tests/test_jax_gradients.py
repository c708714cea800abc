"""Slopes of a run's cost in its settings: central differences, JAX's own transformations, and tuning along them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oco
from oco.dsl.diagnostics import OcoError

jax = pytest.importorskip("jax")

WALK = """model walk
horizon T = 80
decision x[3] in box(-1, 1)
stream a[3] ~ uniform(-1, 1)
minimize sum_squares(x - a)
subject to
    cap: sum(x) <= 0.5 each round
"""
MEAN = WALK.replace("each round", "on average").replace("walk", "mean")
BALL = (
    "model ball\nhorizon T = 80\ndecision x[3] in ball(1)\nstream a[3] ~ uniform(-1, 1)\nminimize sum_squares(x - a)\n"
)
BLIND = BALL.replace("ball\n", "blind\n", 1) + "feedback bandit\n"
BUDGET = """model budget
horizon T = 80
decision x[2] in box(0, 3)
context a[2] ~ uniform(-2, 2)
minimize a @ x
subject to
    spend: sum(x) <= 40 in total
"""
CASES = [(WALK, "coldq"), (MEAN, "dpp"), (BALL, "ogd"), (BLIND, "bgd")]


def plan_of(text: str, algorithm: str) -> oco.Plan:
    return oco.compile(oco.parse(text), algorithm, "paper")


@pytest.fixture(scope="module")
def loss() -> Any:
    """Loss of a run of gradient steps."""
    return plan_of(BALL, "ogd").loss_of_settings(rounds=60)


@pytest.mark.parametrize(("text", "algorithm"), CASES, ids=[a for _, a in CASES])
def test_slopes_are_central_differences_of_a_run_and_its_violation(text: str, algorithm: str) -> None:
    plan = plan_of(text, algorithm)
    loss, trace = plan.loss_of_settings(rounds=60, seed=3, price=2.0), plan.run(rounds=60, seed=3, backend="numpy")
    violation = 2.0 * trace.last_violation("soft" if text == MEAN else "hard").sum()
    assert loss.value_and_slopes(loss.settings)[0] == pytest.approx(trace.loss.sum() + violation, rel=1e-12)
    for factor in (1.0, 0.1):  # small steps have divisors that are floored, and branches that are not taken
        at = {n: factor * x for n, x in loss.settings.items()}
        _, slopes = loss.value_and_slopes(at)
        for name, x in at.items():
            up, down = (loss.value_and_slopes({**at, name: x * (1 + h)})[0] for h in (1e-5, -1e-5))
            assert slopes[name] == pytest.approx((up - down) / (2e-5 * x), rel=1e-5, abs=1e-5)


def test_it_is_a_function_of_jax(loss: Any) -> None:
    value, slopes = loss.value_and_slopes(loss.settings)
    assert float(loss({})) == pytest.approx(value, rel=1e-6)  # in 32 bits
    short = jax.grad(loss)(loss.settings)
    assert {n: float(x) for n, x in short.items()} == pytest.approx(slopes, rel=1e-5)
    with jax.enable_x64(True):
        name = next(iter(slopes))
        assert float(jax.jit(loss)(loss.settings)) == value
        factors = np.array([0.3, 1.0, 2.0])
        each = jax.vmap(lambda x: loss({name: x}))(factors)
        assert list(map(float, each)) == pytest.approx(
            [loss.value_and_slopes({name: x})[0] for x in factors], rel=1e-12
        )
        along = jax.vmap(jax.grad(lambda x: loss({name: x})))(factors)
        assert float(along[1]) == pytest.approx(slopes[name], rel=1e-10)
        assert float(jax.jvp(loss, (loss.settings,), (dict.fromkeys(slopes, 1.0),))[1]) == pytest.approx(
            sum(slopes.values()), rel=1e-10
        )


def test_settings_that_are_not_free_are_refused(loss: Any) -> None:
    with pytest.raises(OcoError, match="omega") as refused:
        loss({"omega": 1.0})
    assert refused.value.code == "OCO874" and "eta" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("text", "algorithm", "options", "code"),
    [
        (WALK, "coldq", {"backend": "numpy"}, "OCO874"),
        (WALK, "coldq", {"data": {"a": np.zeros((81, 3))}}, "OCO874"),
        (BALL + "feedback full delayed 3\n", "ogd", {}, "OCO874"),
        (BLIND.replace("stream", "context c ~ uniform(0, 1)\nstream").replace("- a", "- c * a"), "bgd", {}, "OCO874"),
        (BUDGET, "optimistic", {}, "OCO711"),
    ],
)
def test_runs_that_are_not_differentiated_say_why(text: str, algorithm: str, options: Any, code: str) -> None:
    with pytest.raises(OcoError) as refused:
        plan_of(text, algorithm).loss_of_settings(**options)
    assert refused.value.code == code


def test_tuning_along_slopes_costs_no_more_than_the_default() -> None:
    result = oco.tune(oco.parse(MEAN.replace("T = 80", "T = 400")), algorithm="dpp", gradient=True)
    best, default = result.search.best, result.search.default
    assert best.held.order <= default.held.order and result.plan.algorithm == "dpp"
    steps = [t.searched for t in result.search.tried]
    assert min(steps) < default.searched and len(steps) > 3
    assert result.line.startswith("using dpp with ") and oco.compile(
        oco.parse(MEAN.replace("T = 80", "T = 400") + result.line)
    )
