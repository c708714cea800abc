"""What the baselines ask of a model: gradients, functions, and facts whose lack is named."""

from __future__ import annotations

import numpy as np
import pytest
from driving import Run, plan_of, trajectory
from test_baselines import RULES

from oco.dsl.diagnostics import OcoError

MOVING = """
model moving
horizon T = 300
decision x[3] in box(-1, 1)
stream c[3] in [-1, 1]
stream w[3] in [-1, 1]
minimize c @ x
subject to
    cut: w @ x <= 0.2 each round
"""


@pytest.mark.parametrize("name", sorted({name for name, _, _ in RULES.values()} | {"ofw"}))
def test_what_nothing_bounds_is_named(name: str) -> None:
    """Settings that need a bound which nobody stated are an error that names it; given settings need none."""
    text = MOVING.replace("stream c[3] in [-1, 1]", "stream c[3]").replace("stream w[3] in [-1, 1]", "stream w[3]")
    if name == "ofw":
        text = text.split("subject")[0]
    asks = {
        "ofw": "loss",
        "mahdavi": "loss",
        "jenatton": "loss",
        "sinha-vaze": "loss",
        "yu-neely": "loss",
        "pfs": "loss",
    }
    if name in asks:
        with pytest.raises(OcoError) as caught:
            plan_of(text, name)
        assert caught.value.code == "OCO706" and "loss.lipschitz.l2" in caught.value.message
    given = {r: s for r, _, s in RULES.values()}.get(name, {"eta": 0.1}) | ({"G": 1} if name == "sinha-vaze" else {})
    plan = plan_of(text, name, given)
    assert plan.guarantee is None and "OCO704" in [w.code for w in plan.warnings]
    x = np.array([v for (v,) in trajectory(plan, [{"c": np.full(3, 1e3), "w": np.full(3, -50.0)}] * 4)])
    assert (np.abs(x) <= 1 + 1e-12).all() and np.abs(x[1:]).max() > 0


@pytest.mark.parametrize("name", ["dpp", "mahdavi", "jenatton", "sinha-vaze", "pfs"])
def test_gradients_are_enough(name: str) -> None:
    """With `feedback gradient` the decisions are those of full feedback."""
    _, _, settings = next(r for r in RULES.values() if r[0] == name)
    full = plan_of(MOVING, name, settings)
    partial = plan_of(MOVING + "feedback gradient\n", name, settings)
    rng = np.random.default_rng(2)
    one, other = Run(full), Run(partial)
    for _ in range(10):
        c, w = rng.uniform(-1, 1, (2, 3))
        (x,) = one.decisions
        assert np.abs(x - other.decisions[0]).max() <= 1e-12
        one.play({"c": c, "w": w})
        values = {"loss": c @ x, "constraints": [w @ x - 0.2], "gradient": c, "constraint_gradients": [w]}
        other.play(values)


@pytest.mark.parametrize("name", ["recoo", "yu-neely"])
def test_functions_are_asked_for(name: str) -> None:
    with pytest.raises(OcoError) as caught:
        plan_of(MOVING + "feedback gradient\n", name, {})
    assert caught.value.code == "OCO705" and "functions" in caught.value.message
