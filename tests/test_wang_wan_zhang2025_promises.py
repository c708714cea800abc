"""What is promised of the projection-free methods of Wang, Wan & Zhang 2025, and what holds of every run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driving import Run, example, situation
from projection_free_cases import CASES, LIVELY, Array, model_of, rounds_of

import oco
from oco.compiler.lowering.points import Geometry
from oco.compiler.selection.choice import named
from oco.compiler.selection.judging import judge
from oco.compiler.selection.plan import Plan, compile_plan
from oco.compiler.selection.verdicts import Applicability
from oco.dsl.load import parse

EXAMPLES = Path(__file__).parent.parent / "examples"
GAME = """
model game
horizon T = 256
decision x in box(1, 4)
stream s in [0, 1]
minimize 0.25 * square(x) + 0 * s
subject to
    high: 2 - x <= 0 each round
"""


def played_game(plan: Plan) -> tuple[Run, Array]:
    """The decisions of 256 rounds of f = x^2 / 4 under 2 - x <= 0 on [1, 4], from 1.5; the best of them is 2."""
    run, found = Run(plan, [np.array(1.5)]), []
    for _ in range(256):
        found.append(float(run.decisions[0]))
        run.play({"s": 0.0})
    return run, np.array(found)


@pytest.mark.parametrize("algorithm", ["ofw-tvc", "scofw-tvc"])
def test_guarantees_hold(algorithm: str) -> None:
    plan = compile_plan(parse(GAME), algorithm)
    _, x = played_game(plan)
    regret, violation = np.cumsum(x**2 / 4 - 1), np.cumsum(np.maximum(2 - x, 0))
    assert plan.guarantee is not None
    bounds = plan.guarantee.regret_curve(256), plan.guarantee.violation_curve(256)
    assert bounds[0] is not None and (regret <= bounds[0]).all()
    assert bounds[1] is not None and (violation <= bounds[1]).all()


@pytest.mark.parametrize("beta", [0.01, 0.1, 1.0])
def test_the_surrogate_regret_is_within_the_bound_of_theorem_1(beta: float) -> None:
    """Regret' <= 2^5 G_K D T^(3/4): the inequality before (34), with the queue and the guess at work."""
    gamma, rate = 1.0, 0.05
    settings = {"beta": beta, "gamma": gamma, "rate": rate, "guess": 1e-3, "G": 2.0, "D": 3.0}
    run, x = played_game(compile_plan(parse(GAME), "ofw-tvc", settings))
    g_plus = np.maximum(2 - x, 0)
    Q = np.cumsum(g_plus)
    surrogate = gamma * beta * (x**2 / 4 - 1) + rate * np.exp(rate * beta * Q) * beta * g_plus
    guess = 1e-3 * 2.0 ** float(run.value("k"))
    assert guess >= beta * 2.0 * (gamma + rate * math.exp(rate * beta * Q[-1]))
    assert surrogate.sum() <= 32 * guess * 3.0 * 256**0.75


def test_numbers_of_theorem_1() -> None:
    """The printed bounds where the first guess is small enough; with the printed guess the term that the proof forgets."""
    model = parse(GAME)
    G, D, T0 = 2.0, 3.0, 256
    printed = 64 * G * D * (T0**0.75 + 1)
    small = compile_plan(model, "ofw-tvc", {"guess": 1 / (32 * D)})
    assert small.guarantee is not None and small.settings["beta"].value == pytest.approx(1 / (64 * G * D))
    assert small.guarantee.regret() == pytest.approx(printed, rel=1e-9)
    assert small.guarantee.violation() <= 128 * G * D * T0**0.75 * math.log(2 + 4 * T0)
    paper = compile_plan(model, "ofw-tvc")
    assert paper.guarantee is not None
    missing = 64 * G * D * 32 * D * (1 - 1 / (32 * D)) * T0**0.75
    assert paper.guarantee.regret() == pytest.approx(printed + missing, rel=1e-9)


def test_numbers_of_theorem_2() -> None:
    model = parse(GAME)
    G, D, alpha_f, T0 = 2.0, 3.0, 0.5, 256
    plan = compile_plan(model, "scofw-tvc")
    gamma = G / (G + alpha_f * D)
    beta = alpha_f / (500 * G * T0 ** (2 / 3) * (G + alpha_f * D))
    assert plan.settings["gamma"].value == pytest.approx(gamma) and plan.settings["beta"].value == pytest.approx(beta)
    assert plan.guarantee is not None
    regret = 224 * G**2 / (gamma**2 * alpha_f) * T0 ** (2 / 3) + G * D * (gamma + 1) / gamma
    violation = math.sqrt((2 + gamma) / beta**2 + 2 * gamma * G * D * T0 / beta)
    assert plan.guarantee.regret() == pytest.approx(regret) and plan.guarantee.violation() == pytest.approx(violation)
    printed = compile_plan(model, "scofw-tvc", {"beta": f"1 / ({G} * {D} * T**(2/3))"})
    assert any(w.code == "OCO707" and "448 beta" in w.message for w in printed.warnings)


def test_the_settings_of_theorem_3() -> None:
    plan = compile_plan(oco.load(EXAMPLES / "blind_pricing.oco"), "bfw-tvc")
    value = {n: v.value for n, v in plan.settings.items()}
    d, D, r, M, T0 = 3, 2.0, 1.0, (1 + math.sqrt(3)) ** 2, 20000
    assert value["D"] == pytest.approx(D) and value["r"] == pytest.approx(r)
    assert M <= value["M"] <= 1.01 * M
    c, G, M = value["c"], value["G"], value["M"]
    assert value["delta"] == pytest.approx(c / T0**0.25) and value["delta"] <= r / 2
    assert value["K"] == 141 and value["epsilon"] == pytest.approx(4 * D**2 / math.sqrt(T0))
    C_2 = 16 * G * (c * D / r + 3 * c + 1 + 2 * c * D / (d * M) + d * M * D / c)
    assert value["beta"] == pytest.approx(1 / C_2)
    assert plan.guarantee is not None and math.isfinite(plan.guarantee.regret() or math.nan)


# What holds of every run.


@pytest.mark.parametrize(
    ("algorithm", "name"),
    [("ofw-tvc", "two"), ("scofw-tvc", "nuclear"), ("bfw-tvc", "box"), ("bfw-tvc", "nuclear"), ("scbfw-tvc", "two")],
)
def test_decisions_stay_in_the_domain(algorithm: str, name: str) -> None:
    case = CASES[name]
    plan = oco.compile(model_of(case), algorithm, LIVELY if algorithm == "ofw-tvc" else {"beta": 0.3})
    corner = case.lmo([np.linspace(-1, 2, p.size).reshape(p.shape) for p in case.start])
    blocks = plan.canonical.blocks
    learner = plan.learner(seed=5, start=dict(zip((b.name for b in blocks), corner)))
    for data in rounds_of(case, seed=11):
        x = learner.decide()
        parts = x if isinstance(x, dict) else {blocks[0].name: x}
        assert all(b.domain.contains(parts[b.name], 1e-9) for b in blocks)
        learner.observe(**data)


@pytest.mark.parametrize("algorithm", ["ofw-tvc", "scofw-tvc"])
def test_a_round_asks_for_one_linear_minimisation_and_no_projection(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = compile_plan(model_of(CASES["nuclear"]), algorithm)
    asked, minimise = [], Geometry.lmo
    monkeypatch.setattr(Geometry, "lmo", lambda self, c: asked.append(c) or minimise(self, c))
    monkeypatch.delattr(Geometry, "project")
    assert plan.program and len(asked) == 1


def test_a_block_asks_for_one_linear_minimisation_a_round() -> None:
    plan = compile_plan(model_of(CASES["ball"], "feedback bandit"), "scbfw-tvc")
    assert plan.settings["L"].value == plan.settings["K"].value == 15


def test_a_bandit_learner_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Also between decide and observe: the perturbation of a round belongs to its state."""
    case = CASES["two"]
    plan = oco.compile(model_of(case, "feedback bandit"), "bfw-tvc", {"K": 3})
    one, rounds = plan.learner(seed=4), rounds_of(case)
    for data in rounds[:10]:
        x = list(one.decide().values())
        one.observe(loss=case.loss(data, x), constraints=np.array(case.constraints(data, x)))
    x = one.decide()
    one.save(tmp_path / "state")
    other = oco.restore(tmp_path / "state")
    for data in rounds[10:20]:
        y = other.decide()
        assert all((x[n] == y[n]).all() for n in x)
        values = {"loss": case.loss(data, list(x.values())), "constraints": case.constraints(data, list(x.values()))}
        one.decide()
        one.observe(**values)
        other.observe(**values)
        x = one.decide()


def test_the_written_module_draws_the_same_numbers(tmp_path: Path) -> None:
    plan = oco.compile(model_of(CASES["ball"], "feedback bandit"), "bfw-tvc", {"K": 2})
    plan.write(tmp_path / "learner.py")
    written: dict[str, Any] = {"__name__": "written"}
    exec((tmp_path / "learner.py").read_text(), written)
    mine, theirs = plan.learner(seed=8), written["Learner"](seed=8)
    for t in range(9):
        assert (mine.decide() == theirs.decide()).all()
        values = {"loss": 1.0 + t, "constraints": np.array([0.1 * t, -0.2, 0.3])}
        mine.observe(**values)
        theirs.observe(**values)


def test_hypotheses() -> None:
    def verdict(text: str, name: str) -> Any:
        return judge(named(name), situation(text))

    base = CASES["simplex"].text.format(feedback="").replace("<= 0.1", "<= 1")
    assert verdict(base, "bfw-tvc").applicability is not Applicability.REFUSED
    assert verdict(base, "ofw-tvc").applicability is not Applicability.REFUSED
    linear = base.replace(" + sum_squares(w)", "")
    assert any("strongly convex" in r for r in verdict(linear, "scofw-tvc").reasons)
    assert any("dynamic" in r for r in verdict(base + "measure dynamic regret\n", "ofw-tvc").reasons)


@pytest.mark.parametrize("beta", [10.0**k for k in range(7)])
def test_constants_that_overflow_the_proof_are_refused(beta: float) -> None:
    """exp(rate beta F T) leaves the numbers there are, or its square does."""
    plan = example("blind_pricing", "bfw-tvc", "unit-free")
    assert not plan.allows({"c": 1.0, "K": 1.0, "beta": 1e3 * beta, "rate": 1.0})


def test_examples_run() -> None:
    """Learners for values only, and for a matrix of which a round shows one entry."""
    blind = example("blind_pricing")
    assert blind.algorithm in ("bfw-tvc", "scbfw-tvc")
    learner = blind.learner(seed=0)
    for _ in range(3):
        assert np.linalg.norm(learner.decide()) <= 1 + 1e-12
        learner.observe(loss=1.0, constraints=[0.1])
    text = (EXAMPLES / "ratings.oco").read_text().replace("943", "30").replace("1682", "40")
    ratings = oco.compile(oco.parse(text), "ofw-tvc").learner()
    for t in range(2):
        ratings.decide()
        ratings.observe(user=3, item=5 + t, rating=4.0, P=np.random.default_rng(t).uniform(-1, 1, (30, 40)))
        assert np.linalg.matrix_rank(ratings.decide(), 1e-6) == 1
