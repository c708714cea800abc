"""Fixed constraints of each round: `hedged` keeps to them from the first round, and other algorithms learn them as they did."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from thorough import thorough

import oco
from oco.compiler.problem.canonical import canonical
from oco.evaluation.cost import Trade
from oco.evaluation.report.trace import Trace
from oco.plan import Plan

T = 50
MINUTES, PRICES, OVEN = np.array([0.8, 0.9, 5.0]), np.array([3.0, 3.5, 22.0]), 60.0
BAKERY = f"""model bakery
horizon T = {T}
decision bake[3] in box(0, 80)
stream demand[3] in [0, 80]
stream flour in [0, 120]
maximize [3.0, 3.5, 22.0] @ minimum(bake, demand) - [1.0, 1.2, 9.0] @ bake
subject to
    oven: [0.8, 0.9, 5.0] @ bake <= {OVEN:g} each round
    dough: sum(bake) <= flour each round
"""
ALONE = BAKERY.replace("    dough: sum(bake) <= flour each round\n", "").replace("stream flour in [0, 120]\n", "")


def rounds(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"demand": rng.uniform(0, 1, (T, 3)) * [60.0, 40.0, 8.0], "flour": rng.uniform(40, 120, T)}


@cache
def planned(text: str, algorithm: str | None = None) -> Plan:
    data = {n: v for n, v in rounds().items() if f"stream {n}" in text}
    return oco.compile(oco.parse(text), algorithm, data=data)


def minutes(trace: Trace) -> np.ndarray:
    """Minutes of the oven in each round, worked out from the decisions."""
    return np.asarray(trace.decisions) @ MINUTES


@pytest.mark.parametrize(
    ("text", "backend"),
    [(ALONE, "c"), thorough(ALONE, "numpy"), thorough(BAKERY, "c"), (BAKERY, "numpy")],
    ids=["alone in C", "alone", "beside one that is learned, in C", "beside one that is learned"],
)
def test_no_decision_breaks_a_fixed_constraint(text: str, backend: str) -> None:
    """From the first round on, from the centre of the domain, which breaks it by more than 200 minutes."""
    plan = planned(text)
    assert plan.algorithm == "hedged" and MINUTES.sum() * 40 > OVEN + 200
    trace = plan.run({n: v for n, v in rounds(1).items() if f"stream {n}" in text}, backend=backend)
    assert trace.rounds == T and minutes(trace).max() <= OVEN * (1 + 1e-9)
    assert minutes(trace).max() >= 0.9 * OVEN, "it earns by the oven"


def test_it_earns_what_a_cut_domain_earns_and_more_than_with_the_constraint_learned() -> None:
    """The cut domain is the same problem; a stated penalty makes a constraint one that is learned, as all fixed ones were."""
    data = {"demand": rounds(1)["demand"]}
    cut = ALONE.replace("box(0, 80)", f"box(0, 80) with [0.8, 0.9, 5.0] @ bake <= {OVEN:g}").partition("subject to")[0]
    learned = ALONE.replace("each round", "each round, penalty 10")
    own, domain, late = (oco.compile(oco.parse(t), "hedged").run(data) for t in (ALONE, cut, learned))
    assert own.loss.sum() <= domain.loss.sum() + 0.01 * abs(domain.loss.sum())
    broken = np.maximum(minutes(late) - OVEN, 0.0).sum()
    assert broken > 100 and own.loss.sum() <= late.loss.sum() + 10 * broken


def test_each_backend_fleet_and_module_decides_the_same() -> None:
    plan, data = planned(BAKERY), rounds(2)
    expected = np.asarray(plan.run(data, backend="numpy").decisions)
    np.testing.assert_allclose(plan.run(data, backend="c").decisions, expected, atol=1e-7)
    space: dict[str, Any] = {"__name__": "emitted"}
    exec(plan.source(backend="numpy"), space)
    module, fleet = space["Learner"](), plan.fleet(2, backend="c")
    for t in range(20):
        seen = {name: values[t] for name, values in data.items()}
        np.testing.assert_array_equal(module.decide(), expected[t])
        np.testing.assert_allclose(fleet.decide(), [expected[t]] * 2, atol=1e-7)
        module.observe(**seen)
        fleet.observe(**{name: np.stack([value] * 2) for name, value in seen.items()})


def test_curved_constraints_and_equalities_are_kept_too() -> None:
    text = (
        "model m\nhorizon T = 60\ndecision x[3] in box(-1, 1)\nstream c[3] in [-2, 2]\nminimize c @ x\nsubject to\n"
        "    disc: sum_squares(x) <= 0.5 each round\n    plane: x[0] + x[1] == 0.2 each round\n"
    )
    data = {"c": np.random.default_rng(0).uniform(-1, 1, (60, 3))}
    for backend in ("numpy", "c"):
        x = np.asarray(oco.compile(oco.parse(text), "hedged").run(data, backend=backend).decisions)
        assert (x**2).sum(axis=1).max() <= 0.5 + 1e-6 and abs(x[:, 0] + x[:, 1] - 0.2).max() <= 1e-6


def test_rounds_that_distributions_state_are_rehearsed_within_them() -> None:
    """Three decisions serve at least 10 jobs each on most days, at 25 in all: the first decision is no middle of the domain."""
    text = (
        "model m\nhorizon T = 50\ndecision x[3] in box(0, 40)\nstream jobs[3] ~ poisson(6) in [0, 40]\nminimize sum(x)\n"
        "subject to\n    serve: jobs - x <= 0 each round\n    crew: sum(x) <= 25 each round\n"
    )
    plan = oco.compile(oco.parse(text), "hedged")
    for backend in ("numpy", "c"):
        x = plan.learner(backend=backend).decide()
        assert x.sum() <= 25 * (1 + 1e-9) and (x >= 5).all()


@pytest.mark.parametrize("name", ["coldq", "nested", "clasp"])
def test_other_algorithms_learn_them(name: str) -> None:
    """What their theorems are about is in their problem, as without data."""
    plan = planned(BAKERY, name)
    assert [c.label for c in plan.choice.played.canonical.inequalities] == ["oven", "dough"]
    assert plan.choice.played is plan.choice.situation and not any(c.known for c in plan.canonical.inequalities)
    assert "OCO612" in [w.code for w in plan.warnings]
    assert minutes(plan.run(rounds(1))).max() > OVEN + 1


def test_nothing_is_proved_again_and_models_without_them_are_as_they_were() -> None:
    plan = planned(BAKERY)
    assert plan.choice.played.facts is plan.choice.situation.facts and plan.choice.played is plan.choice.played
    others = ("on average", "each round, penalty 3")
    for text in (BAKERY.replace("60 each round", f"60 {timing}") for timing in others):
        problem = canonical(oco.parse(text)).learned
        assert problem.keeping_fixed is problem
        own = oco.compile(oco.parse(text), "hedged")
        assert own.choice.played is own.choice.situation


def test_explanations_say_so_and_no_warning_says_otherwise() -> None:
    plan = planned(BAKERY)
    assert "each decision keeps to `oven`, from the first on" in " ".join(str(plan.explain()).split())
    assert "keeps to" not in str(planned(BAKERY, "coldq").explain())
    assert "OCO612" not in [w.code for w in plan.warnings]


def test_the_same_plan_comes_of_every_way_to_it() -> None:
    """Named, of a recipe, of another algorithm's plan, at another horizon, with constants of its own: one program."""
    plan = planned(BAKERY)
    restored = Plan.from_recipe(plan.recipe)
    other = planned(BAKERY, "coldq").with_horizon(T)
    ways = [restored, plan.with_horizon(T), plan.only("hedged"), plan.with_constants(None).promised()]
    for way in ways:
        assert str(way.program) == str(plan.program) and way.canonical.constraint_labels == ("dough", "oven")
    assert [c.known for c in plan.canonical.inequalities] == [False, True]
    assert other.canonical.constraint_labels == ("oven", "dough") == plan.only("coldq").canonical.constraint_labels
    longer = plan.with_horizon(2 * T)
    assert longer.canonical.constraint_labels == ("dough", "oven")
    assert str(longer.program) == str(
        oco.compile(oco.parse(BAKERY.replace(f"T = {T}", f"T = {2 * T}")), "hedged").program
    )


def test_runs_are_judged_in_the_order_of_their_constraints() -> None:
    """What is broken costs the same, whichever order the constraints of a plan stand in."""
    plan, data = planned(BAKERY), rounds(1)
    s = planned(BAKERY, "coldq").choice.situation
    trace = plan.only("coldq").run(data)
    turned = Trade.of(s, 1.0, plan.canonical)
    own = Trade.of(s, 1.0, trace.problem)
    np.testing.assert_array_equal(turned.units, own.units[::-1])
    excess = np.maximum([minutes(trace) - OVEN, np.asarray(trace.decisions).sum(axis=1) - data["flour"]], 0.0).sum(
        axis=1
    )
    np.testing.assert_allclose(own.score(trace)[1], (excess / own.units).sum() / T)
    assert own.units[0] != own.units[1]


def test_regret_is_against_decisions_that_keep_to_them() -> None:
    """Comparators obey the constraint as they did: the best fixed decision of a linear loss is that of a linear program."""
    text = (
        "model m\nhorizon T = 60\ndecision x[3] in box(0, 1)\nstream c[3] in [-2, 2]\nminimize c @ x\n"
        "subject to\n    cap: [1, 2, 1] @ x <= 1.5 each round\n"
    )
    c = np.random.default_rng(3).uniform(-1, 1, (60, 3)) - [0.4, 0.2, 0.1]
    trace = oco.compile(oco.parse(text), "hedged").run({"c": c})
    best = linprog(c.sum(axis=0), [[1.0, 2.0, 1.0]], [1.5], bounds=(0, 1)).fun
    np.testing.assert_allclose(trace.regret("static")[-1], trace.loss.sum() - best, rtol=1e-6)
    assert trace.last_violation("hard").sum() <= 1e-8
