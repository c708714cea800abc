"""Feedback, comparator, constraints and domain in every combination: a convex model has a learner, or nothing satisfies it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from thorough import thorough

import oco
from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.check import check_canonical
from oco.compiler.prover.facts import Facts
from oco.compiler.selection.choice import Choice, choose
from oco.compiler.selection.verdicts import withheld
from oco.compiler.theory.theorems import Situation
from oco.dsl.model import Model
from oco.dsl.statements import Feedback

DOMAINS = {
    "box": "box(-1, 1)",
    "point": "box(1, 1)",
    "simplex": "simplex",
    "edge": "box([0, 1], [1, 1])",
    "ball": "ball(1) with x[0] <= 0.5",
}
KINDS = {
    "none": "",
    "each": "    k: c[0] * x[0] + x[1] <= 1.5 each round\n",
    "average": "    k: c @ x <= 0.5 on average\n",
    "fixed": "    k: x[0] + x[1] <= 2 each round\n",
    "both": "    k: c @ x <= 0.5 on average\n    j: c[0] * x[0] <= 1.5 each round\n",
    "equality": "    k: x[0] - x[1] == 0.1 * c[0] on average\n",
    "boundary": "    k: x[1] == 1 + 0.5 * c[0] on average\n",
    "equality each": "    k: x[0] - 0.5 * x[1] == 0.5 * c[0] each round\n",
}
FEEDBACKS, MEASURES = ("full", "gradient", "two_point", "bandit"), ("static", "dynamic")
HEAD = """model cell
horizon T = {T}
decision x[2] in {domain}
stream c[2] in [-1, 1]{law}
feedback {feedback}
measure {measure} regret
"""
SCENES = [(d, k, law) for d, k in product(DOMAINS, KINDS) for law in ("", " iid")]
SAMPLE = [s for i, s in enumerate(SCENES) if i % 2 == (i // 16) % 2]
"""Each domain with each kind of constraint; the law alternates from domain to domain."""
BRIEF = [s for i, s in enumerate(SAMPLE) if i % 4 == (i // 8) % 4 and s[:2] != ("ball", "none")]
"""Each domain with every fourth kind, each kind with a domain; a ball is slow, and has the kind that has most of the others."""
GIVEN_UP = [
    (("box", "average", ""), "gradient", "dynamic"),
    (("box", "both", ""), "bandit", "dynamic"),
    (("point", "average", ""), "bandit", "dynamic"),
    (("box", "boundary", " iid"), "gradient", "static"),
]
T = 60


def model_of(scene: tuple[str, str, str], feedback: str, measure: str) -> Model:
    domain, kind, law = scene
    head = HEAD.format(domain=DOMAINS[domain], law=law, feedback=feedback, measure=measure, T=T)
    constraints = f"subject to\n{KINDS[kind]}" if KINDS[kind] else ""
    return oco.parse(f"{head}minimize c @ x + sum_squares(x)\n{constraints}")


def choices(scene: tuple[str, str, str]) -> Iterator[tuple[str, str, Choice]]:
    """Choices of a scene. Feedback and measure change no fact but by the form that equalities take."""
    facts: dict[bool, Facts] = {}
    for feedback, measure in product(FEEDBACKS, MEASURES):
        problem = canonical(model_of(scene, feedback, measure))
        form = bool(problem.equalities)
        if form not in facts:
            facts[form] = check_canonical(problem.model, problem)
        yield feedback, measure, choose(Situation(problem, facts[form], T))


@pytest.mark.parametrize(
    "scene", [s if s in BRIEF else thorough(s) for s in SAMPLE], ids=lambda s: "-".join(s).replace(" ", "_")
)
def test_every_cell_has_a_learner_that_says_what_it_promises(scene: tuple[str, str, str]) -> None:
    """Regret of the kind that the model measures is bounded, or the guarantee says that it is not."""
    for feedback, measure, choice in choices(scene):
        cell = (scene, feedback, measure)
        assert choice.winner is not None, cell
        guarantee, theorem = choice.winner.guarantee, choice.winner.theorem
        if guarantee is None:
            assert theorem is not None and withheld(theorem, choice.played, choice.winner.settings), cell
            continue
        kept = guarantee.regret_bound.measure == f"{measure} regret"
        assert kept != any("nothing is promised of dynamic regret" in r for r in guarantee.remarks), cell
        assert feedback != "bandit" or choice.winner.algorithm.reads is Feedback.BANDIT, cell
        assert feedback != "two_point" or choice.winner.algorithm.reads_values_alone, cell


@pytest.mark.parametrize(("scene", "feedback", "measure"), GIVEN_UP)
def test_a_learner_without_the_promise_runs(
    scene: tuple[str, str, str], feedback: str, measure: str, tmp_path: Path
) -> None:
    """Its decisions stay in the domain, its plan says what is not promised and why, and a saved state is restored."""
    plan = oco.compile(model_of(scene, feedback, measure), settings="paper")
    assert plan.guarantee is not None
    (sentence,) = (p for p in plan.guarantee.provisos if p.startswith("nothing is promised of"))
    assert " because " in sentence and sentence in " ".join(str(plan.explain()).split())
    data = np.random.default_rng(0).uniform(-1, 1, (T, 2))
    trace = plan.run({"c": data})
    domain = plan.canonical.blocks[0].domain
    assert all(domain.contains(x) for x in trace.decisions)
    learner = plan.learner(seed=0)
    learner.save(tmp_path / "state")
    assert np.array_equal(oco.restore(tmp_path / "state").decide(), learner.decide())


def test_equalities_that_hold_on_the_boundary_are_two_inequalities_of_the_report() -> None:
    plan = oco.compile(model_of(("box", "boundary", " iid"), "gradient", "static"), settings="paper")
    assert plan.canonical.constraint_labels == ("k.above", "k.below")
    inner = oco.compile(model_of(("box", "equality", " iid"), "gradient", "static"), settings="paper")
    assert inner.canonical.equality_labels == ("k",) and inner.guarantee is not None and not inner.guarantee.remarks


@pytest.mark.parametrize(("feedback", "measure"), list(product(FEEDBACKS, MEASURES)))
def test_what_nothing_satisfies_is_refused_in_every_cell(feedback: str, measure: str) -> None:
    """Error OCO708 names the constraint, whatever the feedback."""
    text = model_of(("point", "fixed", ""), feedback, measure).to_oco().replace("<= 2", "<= 1")
    with pytest.raises(oco.OcoError) as caught:
        oco.compile(oco.parse(text))
    assert caught.value.code == "OCO708" and "k cannot hold" in caught.value.message


def test_bandit_learning_over_a_point_has_nothing_to_lose() -> None:
    for scene, algorithm in ((("point", "none", ""), "bgd"), (("point", "average", ""), None)):
        plan = oco.compile(model_of(scene, "bandit", "static"), algorithm)
        assert plan.guarantee is not None and plan.guarantee.regret() == 0
        trace = plan.run({"c": np.random.default_rng(0).uniform(-1, 1, (T, 2))})
        assert np.array_equal(trace.decisions, np.ones((T, 2)))
