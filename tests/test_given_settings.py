"""Given settings and starts that a theorem does not speak of: no guarantee, or a warning, and never a bound that is false."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from driving import Run, plan_of
from law_worlds import ROUNDS, Life, lives, theorem_of
from thorough import one_in, thorough

import oco
from oco.compiler.algorithms import ALGORITHMS, Algorithm
from oco.compiler.algorithms.qiu_wei2020 import _constants
from oco.compiler.selection.plan import Plan
from oco.dsl.diagnostics import OcoError
from oco.dsl.settings import SETTINGS, WORD_SETTINGS


def theorems(algorithm: Algorithm) -> Iterator[tuple[Life, Plan]]:
    """A world for each theorem of the algorithm that speaks for one of its methods somewhere."""
    seen = set()
    for life, plan in lives(algorithm.name, ROUNDS, variants=True):
        if (key := (life.method, theorem_of(plan).name)) not in seen:
            seen.add(key)
            yield life, plan


@pytest.mark.parametrize("every", [False, thorough(True)], ids=["some", "every"])
@pytest.mark.parametrize("algorithm", one_in(2, ALGORITHMS), ids=lambda a: a.name)
def test_settings_that_must_be_positive_are_refused_otherwise(algorithm: Algorithm, every: bool) -> None:
    """Zero, and one that is positive in later rounds alone: both, or by turns."""
    for life, plan in theorems(algorithm):
        for k, name in enumerate(n for n in theorem_of(plan).positive if n in plan.settings):
            own = plan.settings[name].formula
            formulas = (f"0 * ({own})", f"(t - 2.5) * ({own})")
            for formula in formulas if every else formulas[k % 2 :][:1]:
                try:
                    found = plan_of(life.world.text(ROUNDS), algorithm.name, {**dict(life.settings), name: formula})
                except OcoError as error:
                    named = error.code == "OCO715" and name in error.message
                    # or formulas of other settings divide by it, or take its root
                    assert named or error.code in ("OCO721", "OCO722"), (str(life), name, formula, error)
                else:  # another theorem speaks, which has no such setting
                    assert name not in theorem_of(found).positive, (str(life), name, formula)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
def test_other_settings_that_are_negative_promise_nothing_false(algorithm: Algorithm) -> None:
    """Minus the theorem's own: an error, no guarantee, or a warning; no crash and no bound below zero."""
    for life, plan in theorems(algorithm):
        for name, setting in plan.settings.items():
            if name in WORD_SETTINGS or name in theorem_of(plan).positive:
                continue
            given = {**dict(life.settings), name: f"-1 * ({setting.formula})"}
            try:
                found = plan_of(life.world.text(ROUNDS), algorithm.name, given)
            except OcoError:
                continue
            warned = {w.code for w in found.choice.warnings} & {"OCO704", "OCO707"}
            bounds = [] if found.guarantee is None else [b.number(ROUNDS) for b in found.guarantee.bounds]
            assert warned or all(b is None or b >= 0 for b in bounds), (str(life), given)
            assert warned or found.guarantee is not None, (str(life), given)


PROX = """
model m
horizon T = 300
decision x[3] in {domain}
stream c[3] in [-1, 1]
minimize c @ x + 0.05 * sum_squares(x)
subject to
    cap: sum_squares(x) + x[1] <= {limit} on average
"""


@pytest.mark.parametrize(("domain", "limit"), [("box(0, 1)", 1.1), ("simplex", 0.9)])
def test_constants_below_the_facts_break_the_promise_of_mirror_prox(domain: str, limit: float) -> None:
    """Assumption 2.1: constants may be given larger, not smaller; and a modulus smaller, not larger."""
    text = PROX.format(domain=domain, limit=limit)
    known = plan_of(text, "mirror-prox").settings
    for name in ("L_f", "L_g", "G", "H", "rho"):
        for factor in (0.5, 2.0):
            value = known[name].value
            assert value is not None and value > 0
            warnings = plan_of(text, "mirror-prox", {name: factor * value}).choice.warnings
            assert any(w.code == "OCO707" and name in w.message for w in warnings) == ((factor < 1) != (name == "rho"))


@pytest.mark.parametrize(("domain", "limit"), [("box(0, 1)", 1.1), ("simplex", 0.9)])
@pytest.mark.parametrize("rho", [1.0, 0.5])
def test_queue_and_step_of_mirror_prox_stay_below_their_bounds(domain: str, limit: float, rho: float) -> None:
    """(33) and (34), or (64) and (66), with the modulus that is given, on losses that push across the constraint."""
    plan = plan_of(PROX.format(domain=domain, limit=limit), "mirror-prox", {"rho": rho})
    bound = _constants(plan.choice.situation, plan.settings, 300)
    run, rng = Run(plan), np.random.default_rng(0)
    for _ in range(300):
        run.play({"c": rng.choice([-1.0, 1.0], 3, p=[0.8, 0.2])})
        assert np.linalg.norm(run.value("Q")) <= bound.queue(300)
        assert run.value("alpha") <= bound.last_alpha(300)
    assert run.value("alpha") > bound.base / 2


def test_a_promise_from_the_centre_is_not_made_from_elsewhere() -> None:
    """Exponentiated gradient never leaves a vertex: the regret 2 T is far above the bound, and the learner says why."""
    text = "model m\nhorizon T = 400\ndecision x[3] in simplex\nstream c[3] in [-1, 1]\nminimize c @ x\nusing oeg\n"
    plan = oco.compile(oco.parse(text))
    costs = np.tile([1.0, -1.0, -1.0], (400, 1))
    assert plan.guarantee is not None and plan.guarantee.from_centre
    promised = plan.guarantee.regret()
    assert promised is not None
    stuck, usual = (plan.run({"c": costs}, start=s) for s in (np.array([1.0, 0.0, 0.0]), None))
    assert stuck.loss.sum() + 400 == pytest.approx(800) and promised < 60
    assert usual.loss.sum() + 400 <= promised
    assert any("centre" in w for w in stuck.warnings) and not any("centre" in w for w in usual.warnings)


HEAD = "model m\nhorizon T {horizon}\ndecision x[2] in box(-1, 1)\nstream c[2] in [-1, 1] iid\nstream s ~ uniform(0.5, 1)\n"
MODELS = (
    "minimize c @ x\nsubject to\n    g: x[0] - s <= 0.5 each round\n",
    "minimize c @ x\nsubject to\n    g: s * x[0] <= 0.5 on average\n",
    "minimize c @ x\nsubject to\n    g: s * x[0] == 0.5 on average\n",
    "minimize c @ x\nsubject to\n    g: x[0] <= 0.5 on average\n",
    "minimize sum_squares(x - c)\nsubject to\n    g: x[0] - s <= 0.5 each round\nfeedback bandit\n",
    "minimize c @ x\n",
    "minimize sum_squares(x - c)\n",
    "predict c = last(c)\nminimize c @ x\n",
    "minimize c @ x\nfeedback two_point\n",
    "minimize c @ x\nfeedback bandit\n",
    "context v[2] in [-1, 1]\nminimize v @ x\nsubject to\n    g: sum(x) + 2 <= 30 in total\n",
)
VARYING = (("0.5 * sqrt(t)", "= 20"), ("0.5 * sqrt(t)", "unknown"), ("0.1 * sqrt(T)", "unknown"))


@pytest.mark.parametrize("every", [False, thorough(True)], ids=["some", "every"])
@pytest.mark.parametrize("algorithm", one_in(2, [a.name for a in reversed(ALGORITHMS)]))
def test_any_setting_may_be_a_formula_that_varies(algorithm: str, every: bool) -> None:
    """Whatever is given, a program is traced or words say why not. A number of things may come out below one. Formulas take turns."""

    def traced(text: str, given: dict[str, str]) -> bool:
        try:
            return bool(plan_of(text, algorithm, given).program.state)
        except OcoError as error:
            assert error.code.startswith("OCO7"), error
            return False

    head, models = HEAD, MODELS
    if algorithm == "tsallis-inf":
        head, models = HEAD.replace("box(-1, 1)", "simplex rounded"), ("minimize c @ x\nfeedback bandit\n",)
    model = next(m for m in models if traced(head.format(horizon="= 20") + m, {}))
    for k, setting in enumerate(s for s in SETTINGS[algorithm] if s not in WORD_SETTINGS):
        for formula, horizon in VARYING if every else VARYING[k % 3 :][:1]:
            traced(head.format(horizon=horizon) + model, {setting: formula})
