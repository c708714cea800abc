"""Randomized rounding: decisions of 0 and 1 whose mean is the fractional decision, in every backend."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from thorough import thorough

import oco
from oco.backends.registry import restored
from oco.compiler.domains.base import Domain
from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Type
from oco.compiler.problem.canonical import canonical

Array = np.ndarray[Any, Any]
T = 50
EDGES = "[[0, 1], [0, 2], [1, 3], [2, 3], [1, 2]]"
SETS = {
    "box": ("x[4]", "{0, 1}"),
    "simplex": ("x[4]", "simplex rounded"),
    "capped": ("x[5]", "capped_simplex(1, 2) rounded"),
    "budget": ("x[5]", "budget(0, 1, 3) rounded"),
    "at most": ("x[5]", "{0, 1} with sum(x[0:4]) <= 2"),
    "at least": ("x[5]", "{0, 1} with sum(x[0:4]) >= 2"),
    "flow": ("x[5]", f"flow({EDGES}, 0, 3) rounded"),
    "birkhoff": ("x[4, 4]", "birkhoff(4) rounded"),
}


def text_of(name: str, domain: str = "", more: str = "") -> str:
    declared, written = SETS[name]
    return f"""\
model choices
horizon T = {T}
decision {declared} in {domain or written}
stream c{declared[1:]} in [-1, 1]
minimize sum(c * x)
{more}"""


@cache
def plan_of(name: str) -> Any:
    return oco.compile(oco.parse(text_of(name)))


def costs(plan: Any, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    shape = plan.canonical.blocks[0].shape
    return np.clip(rng.normal(0.3, 0.5, (T, *shape)) * np.linspace(-1, 1, int(np.prod(shape))).reshape(shape), -1, 1)


def vertices_of(domain: Domain, x: Array, draws: Array) -> Array:
    """Extreme point for each of the draws (m, k)."""
    kinds = Type(DType.FLOAT, domain.shape), Type(DType.FLOAT, (domain.vertex_draws,))
    vertex = as_numpy("vertex", domain.vertex, *kinds)
    return np.array([vertex(x, u)[0] for u in draws])


@pytest.mark.parametrize("count", [100, thorough(400)])
@pytest.mark.parametrize("name", SETS)
def test_extreme_points_have_the_decision_as_their_mean(name: str, count: int) -> None:
    """Over an even grid of draws the mean is exact up to the grid's width for each extreme point."""
    domain = canonical(oco.parse(text_of(name))).blocks[0].domain
    rng = np.random.default_rng(1)
    for x in (domain.centre(), *domain.sample(rng, 2), domain.lmo_array(rng.normal(size=domain.shape))):
        grid = (np.arange(count) + 0.5) / count
        draws = np.stack([rng.permutation(grid) for _ in range(domain.vertex_draws)], axis=1)
        found = vertices_of(domain, np.asarray(x), draws)
        assert set(np.unique(found)) <= {0.0, 1.0}
        assert all(domain.contains(v) for v in found)
        np.testing.assert_allclose(found.mean(axis=0), x, atol=2 * domain.size / count)


@pytest.mark.parametrize("name", SETS)
def test_c_draws_as_numpy_does(name: str) -> None:
    plan = plan_of(name)
    data = {"c": costs(plan, 2)}
    runs = [plan.run(data, backend=b, seed=5).decisions for b in ("numpy", "c")]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert set(np.unique(runs[0])) <= {0.0, 1.0}
    assert np.ptp(plan.run(data, backend="c", seed=6).decisions - runs[0]) > 0


def test_the_guarantee_holds_in_expectation() -> None:
    plan = plan_of("simplex")
    data = {"c": costs(plan, 3)}
    regrets = [plan.run(data, backend="c", seed=s).regret("static") for s in range(60)]
    bound = plan.guarantee.regret_bound.number(T)
    spread = 3 * np.std(regrets) / np.sqrt(len(regrets))
    assert np.mean(regrets) <= bound + spread
    assert any("x is drawn" in words for words in plan.contract.guarantee)


@pytest.mark.parametrize("algorithm", ["hedged", "dpp"])
def test_constraints_on_average_are_kept_by_draws(algorithm: str) -> None:
    """Sums of the constraint over draws differ from those of the decisions that are their means by what chance may show (Hoeffding)."""
    rounds, rng = 400, np.random.default_rng(5)
    text = text_of("box", more="subject to\n    cap: sum(x) <= 2  on average\n").replace(f"T = {T}", f"T = {rounds}")
    data = {"c": np.clip(rng.normal(-0.4, 0.4, (rounds, 4)), -1, 1)}
    plan = oco.compile(oco.parse(text), algorithm=algorithm)
    drawn = plan.run(data, backend="c", seed=1)
    means = oco.compile(oco.parse(text.replace("{0, 1}", "box(0, 1)")), algorithm=algorithm).run(data, backend="c")
    assert set(np.unique(drawn.decisions)) == {0.0, 1.0}
    chance = 4 * np.sqrt(rounds * np.log(2 / 1e-6) / 2)
    assert abs(drawn.decisions.sum() - means.decisions.sum()) <= chance
    assert drawn.constraints.sum() <= max(means.constraints.sum(), 0) + chance
    assert drawn.decisions.sum() >= 0.9 * 2 * rounds


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_states_journals_modules_and_fleets_draw_on(backend: str, tmp_path: Path) -> None:
    plan = plan_of("capped")
    c = costs(plan, 4)
    learner = plan.learner(backend=backend, seed=1)
    journaled = oco.open(plan, tmp_path / "j", backend=backend, seed=1)
    fleet = plan.fleet(2, backend=backend)
    space: dict[str, Any] = {"__name__": "choices"}
    exec(compile(plan.source("numpy"), "choices.py", "exec"), space)
    own = space["Learner"](seed=1)
    for t in range(12):
        x = learner.decide()
        assert x.sum() == 2 and set(np.unique(x)) <= {0.0, 1.0}
        np.testing.assert_array_equal(journaled.decide(), x)
        np.testing.assert_array_equal(own.decide(), x)
        assert fleet.decide().sum(axis=1).tolist() == [2, 2]
        learner = restored(learner.state(), learner.compiled, learner.contract)
        np.testing.assert_array_equal(learner.decide(), x)
        if t == 5:
            journaled.close()
            journaled = oco.open(plan, tmp_path / "j", backend=backend)
        for each in (learner, journaled, own):
            each.decide()
            each.observe(c=c[t])
        fleet.observe(c=np.stack([c[t]] * 2))
    journaled.close()


def test_text_and_builder_say_the_same() -> None:
    model = oco.parse(text_of("capped"))
    assert oco.parse(model.to_oco()) == model
    assert "capped_simplex(1, 2) rounded" in model.to_oco()
    m = oco.Model("choices", horizon=T)
    x = m.decision("x", 5, domain=oco.capped_simplex(1, 2).rounded())
    c = m.stream("c", 5, bounds=(-1, 1))
    m.minimize(oco.sum(c * x))
    assert m.to_oco() == model.to_oco()
    assert oco.parse(text_of("box")).to_oco() == oco.parse(text_of("box", "box(0, 1) rounded")).to_oco()


@pytest.mark.parametrize(
    ("domain", "change", "why"),
    [
        ("ball(1) rounded", ("", ""), "extreme points"),
        ("box(0, 2) rounded", ("", ""), "bounds are others"),
        ("simplex(1.5) rounded", ("", ""), "add up to 1.5"),
        ("{0, 1}", ("sum(c * x)", "sum(c * x) + sum_squares(x)"), "not linear"),
        (
            "{0, 1}",
            ("sum(c * x)\n", "sum(c * x)\nsubject to\n    cap: c @ x <= 1  each round\n"),
            "a draw may break `cap`",
        ),
        (
            "{0, 1}",
            ("sum(c * x)\n", "sum(c * x)\nsubject to\n    cap: sum_squares(x) <= 1  on average\n"),
            "`cap` is not linear",
        ),
        (
            "{0, 1}",
            ("sum(c * x)\n", "sum(c * x)\nsubject to\n    cap: c @ x <= 1  on average\nfeedback gradient\n"),
            "value of `cap` at the draw alone",
        ),
        ("{0, 1}", ("sum(c * x)\n", "sum(c * x)\nfeedback bandit\n"), "bandit"),
        ("{0, 1} with sum(x) <= 1.5", ("", ""), "extreme points"),
    ],
)
def test_what_cannot_be_rounded_says_why(domain: str, change: tuple[str, str], why: str) -> None:
    with pytest.raises(oco.OcoError, match=why) as caught:
        canonical(oco.parse(text_of("box", domain).replace(*change)))
    (found,) = caught.value.diagnostics
    assert found.code == "OCO539" and found.hint and found.span is not None


def test_under_a_budget_pacing_decides_as_the_hint_for_whole_decisions_says() -> None:
    text = """\
model seats
horizon T = 300
decision accept in {domain}
context fare in [0, 9]
context legs[2] in 0..1
maximize fare * accept
subject to
    left: legs * accept <= [60, 70]  in total
"""
    with pytest.raises(oco.OcoError, match="`pacing` takes whole decisions by itself, until a budget ends"):
        oco.compile(oco.parse(text.replace("{domain}", "{0, 1}")))
    rng = np.random.default_rng(3)
    data = {"fare": rng.uniform(0, 9, 300), "legs": rng.integers(0, 2, (300, 2))}
    accepted = oco.compile(oco.parse(text.replace("{domain}", "box(0, 1)")), "pacing").run(data).decisions.ravel()
    whole = np.isclose(accepted, 0) | np.isclose(accepted, 1)
    assert (~whole).sum() <= 2 and 60 < accepted.sum() < 240
