"""Canonical problem, facts, choice and plan are made once for a command, and problems of another horizon are those of its model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oco
from oco.cli import main
from oco.compiler.problem.canonical import canonical
from oco.compiler.theory import unit_free
from oco.evaluation.data import problem_for

MODEL = (
    "model m\nhorizon T = 60\ndecision x[2] in box(0, 1)\nstream a[2] in [0, 1]\nminimize sum_squares(x - a)\n"
    "subject to\n    cap: sum(x) <= 1.5\n"
)
FREE = MODEL[: MODEL.index("subject to")]
ROUNDS = 40
STAGES = {
    "problem": ("oco.compiler.problem.canonical", "Folding"),
    "facts": ("oco.compiler.prover.check", "_solved"),
    "choice": ("oco.compiler.selection.plan", "choose"),
    "plan": ("oco.compiler.selection.plan", "plan_of"),
}
"""Function of each stage that runs once whenever it is made."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Number of times that each stage was made."""
    counts: Counter[str] = Counter()

    def counted(stage: str, own: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any, **options: Any) -> Any:
            counts[stage] += 1
            return own(*args, **options)

        return count

    for stage, (module, name) in STAGES.items():
        owner = __import__(module, fromlist=[name])
        monkeypatch.setattr(owner, name, counted(stage, getattr(owner, name)))
    return counts


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.oco").write_text(MODEL)
    (tmp_path / "free.oco").write_text(FREE)
    values = np.random.default_rng(0).random((ROUNDS, 2))
    (tmp_path / "a.csv").write_text("a[0],a[1]\n" + "\n".join(f"{u:.3f},{v:.3f}" for u, v in values) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "stages"),
    [
        ("check m.oco", ("problem", "facts")),
        ("check m.oco --data a.csv", ("problem", "facts")),
        ("explain free.oco", ("problem", "facts", "choice")),
        ("explain free.oco --data a.csv --budget 0", ("problem", "facts", "choice")),
        ("compile free.oco", ("problem", "facts", "choice", "plan")),
        ("compile m.oco --data a.csv --budget 0", ("problem", "facts", "choice", "plan")),
        ("run m.oco --data a.csv --budget 0", ("problem", "facts", "choice", "plan")),
        ("tune free.oco --data a.csv --budget 0.5", ("problem", "facts", "choice", "plan")),
    ],
)
def test_a_command_makes_each_stage_once(words: str, stages: tuple[str, ...], made: Counter[str], folder: Path) -> None:
    assert main(words.split()) == 0
    assert made == dict.fromkeys(stages, 1)


def test_the_builder_makes_each_stage_once(made: Counter[str]) -> None:
    m = oco.Model("small", horizon=50)
    x = m.decision("x", 2, domain=oco.box(0, 1))
    m.minimize(oco.sum_squares(x - m.stream("a", 2, bounds=(0, 1))))
    oco.compile(m)
    assert made == dict.fromkeys(STAGES, 1)


def test_learners_that_are_restored_from_one_recipe_share_its_plan(made: Counter[str]) -> None:
    """The stages are made once more for two states of a plan, and each learner goes on by its own state."""
    learner, states = oco.compile(oco.parse(MODEL.replace("model m", "model restored"))).learner(), []
    for goal in np.eye(2):
        learner.decide()
        learner.observe(a=goal)
        states.append(learner.state())
    made.clear()
    one, other = map(oco.restore, states)
    assert made == dict.fromkeys(STAGES, 1)
    assert np.array_equal(other.decide(), learner.decide()) and not np.array_equal(one.decide(), other.decide())


@pytest.mark.parametrize(
    ("loss", "rows", "reads"),
    [
        ("sum_squares(x - a)", "cap: sum(x) <= 1.5", False),
        ("sum_squares(x - a) * T", "cap: sum(x) <= 1.5", True),
        ("sum_squares(x - a)", "cap: sum(x) <= 0.5 * T in total", True),
        ("sum_squares(x - a)", "cap: sum(x) <= a[0] + 0.5 in 90% of rounds", True),
    ],
)
def test_problems_of_another_horizon_are_those_of_its_model(loss: str, rows: str, reads: bool) -> None:
    text = f"model m\nhorizon T = 30\ndecision x[2] in box(0, 1)\nstream a[2] in [0, 1]\nminimize {loss}\nsubject to\n    {rows}\n"
    model = oco.parse(text)
    problem = canonical(model)
    assert problem.reads_horizon == reads and problem.with_horizon(30) is problem
    assert repr(problem.with_horizon(ROUNDS)) == repr(canonical(model.with_horizon(ROUNDS)))
    assert problem_for(model, {"a": np.zeros((ROUNDS, 2))}).horizon == ROUNDS


@pytest.mark.parametrize(
    ("loss", "again"), [("sum_squares(x - a)", False), ("sum(x * a) * t", True), ("sum(x * a) / T", True)]
)
def test_plans_of_another_horizon_are_those_of_its_model(
    loss: str, again: bool, made: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Facts and Slater point are sought again where the number of rounds or the round stands in the problem, and nowhere else."""
    slater: list[Any] = []
    sought = unit_free.Feasibility
    monkeypatch.setattr(unit_free, "Feasibility", lambda context: slater.append(context) or sought(context))
    model = oco.parse(
        MODEL.replace("sum_squares(x - a)", loss).replace("cap: sum(x) <= 1.5", "cap: sum(x) <= 1 + a[0]")
    )
    plan = oco.compile(model)
    first = made["facts"], len(slater)
    longer = plan.with_horizon(500)
    assert (made["facts"] > first[0], len(slater) > first[1]) == (again, again)
    anew = oco.compile(model.with_horizon(500), plan.algorithm)
    assert str(longer.facts) == str(anew.facts) and longer.guarantee.regret() == anew.guarantee.regret()
    assert {n: str(x) for n, x in longer.settings.items()} == {n: str(x) for n, x in anew.settings.items()}
    assert longer.model.to_oco() == anew.model.to_oco() and str(longer.program) == str(anew.program)
    assert plan.with_constants(None, 500).with_horizon(500).model.to_oco() == anew.model.to_oco()
