"""One plan for one input: commands and the builder agree, and the module that `oco compile` writes decides as `oco run` did."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from thorough import corners

import oco
from oco.cli.one_run import Files, following_commands
from oco.compiler.problem.canonical import canonical
from oco.evaluation.data import Data, load_data, problem_for
from oco.evaluation.drawn import trial_rounds
from oco.evaluation.report.verdict import guarantee_words
from oco.evaluation.rounds_file import write_rounds
from oco.evaluation.summary import summarize
from oco.pipeline import planned
from oco.tuning import explained

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = sorted({path.stem for path in EXAMPLES.glob("*.oco")} - {"ratings"})
"""Examples; not the one of which a round is a matrix of 1.6 million numbers."""
ROUNDS = 12
CHEAP = ("battery", "dispatch", "datacenter")
"""Examples whose plan takes a third of a second; of the others the paper's settings are taken, without a search."""

KEPT = (*CHEAP[:1], "blind_pricing", "caching", "tracking")
"""Examples of each kind of module: with values alone, a choice of vertices, neither, and a file of parameters."""


@cache
def model_of(name: str) -> Any:
    return oco.load(EXAMPLES / f"{name}.oco")


@cache
def rounds_of(name: str) -> Data:
    problem = canonical(model_of(name))
    revealed = {s.name for s in problem.revealed}
    given = {n: a for n, a in trial_rounds(problem, ROUNDS, 1).items() if n in revealed}
    return load_data(problem, given or None, seed=0, rounds=None if given else ROUNDS)


@cache
def compiled(name: str) -> Any:
    """Plan of `oco compile MODEL --data F`."""
    return oco.compile(model_of(name), settings=None if name in CHEAP else "paper", data=rounds_of(name), budget=0)


@cache
def ran(name: str) -> Any:
    return compiled(name).run(rounds_of(name), seed=rounds_of(name).seed, backend="numpy")


def plan_of_run(name: str) -> Any:
    """Plan of `oco run MODEL --data F`."""
    data, settings = rounds_of(name), None if name in CHEAP else "paper"
    options: dict[str, Any] = {"tradeoff": 1.0, "effort": 1.0, "budget": 0}
    return planned(problem_for(model_of(name), data), None, settings, None, data=data, seed=data.seed, **options)


def emitted(plan: Any) -> Any:
    module = ModuleType("emitted")
    exec(compile(plan.source("numpy"), "emitted", "exec"), vars(module))
    return module


def entries(decision: Any) -> Any:
    """Decision as one vector, whether it is an array or a dict of them."""
    parts = decision.values() if isinstance(decision, dict) else (decision,)
    return np.concatenate([np.ravel(part) for part in parts])


@pytest.mark.parametrize("name", corners(NAMES, KEPT))
def test_emitted_modules_decide_bit_for_bit_as_the_run_did(name: str, tmp_path: Path) -> None:
    data, module = rounds_of(name), emitted(compiled(name))
    trace = ran(name)
    learner = module.Learner()
    write_rounds(data, tmp_path / "rounds.csv")
    if data.problem.feedback.gives_values_alone:  # no file can hold what its decisions would have cost
        assert "data.csv" not in compiled(name).usage("learner.py", "data.csv")
        rounds = ({"loss": f, "constraints": g} for f, g in zip(trace.loss, trace.constraints))
    else:
        rounds = module.rounds_of(str(tmp_path / "rounds.csv"))
    made, measured = trace.decisions, trace.loss
    for t, streams in enumerate(rounds):
        own = {n: a[t] for n, a in made.items()} if isinstance(made, dict) else made[t]
        decision = learner.decide(**{k: streams[k] for k in module.CONTEXT})
        assert np.array_equal(entries(decision), entries(own)), f"round {t + 1}"
        assert learner.observe(**streams).loss == measured[t]


@pytest.mark.parametrize("name", corners(NAMES, KEPT))
def test_a_guarantee_stands_beside_what_the_model_bounds(name: str) -> None:
    """Number that a theorem promises, beside the loss of the first decision held, or the most that any decisions can lose."""
    words = guarantee_words(summarize(ran(name)))
    assert re.search("the first decision held|any decisions|gives a rate|none:", words), words


@pytest.mark.parametrize("name", corners(NAMES, KEPT))
def test_the_file_to_review_is_the_models(
    name: str, tmp_path: Path, fixed_lines: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most half of the file with the rule stands in that of every model, and the two files decide as the one module does."""
    monkeypatch.syspath_prepend(tmp_path)
    rule, runner = compiled(name).write(tmp_path, "numpy")
    lines = rule.read_text().splitlines(keepends=True)
    assert sum(len(line) for line in lines if line in fixed_lines) <= 0.5 * sum(map(len, lines))
    one, parts, first = emitted(compiled(name)), import_module(runner.stem), rounds_of(name).read(0, 1)
    known = {n: first[n][0] for n in one.CONTEXT}
    assert np.array_equal(*(entries(module.Learner().decide(**known)) for module in (one, parts)))


@pytest.fixture(scope="module")
def fixed_lines() -> set[str]:
    """Lines that are the same in files with the rules of two models that have nothing in common."""
    texts = (
        "decision u in box(0, 1)\nstream a in [-1, 1]\nminimize a * u\n",
        "decision q[3] in simplex\nstream k[3] in [0, 2]\nminimize k @ q\n",
    )
    rules = [
        oco.compile(oco.parse(f"model m{k}\nhorizon T = 9{k}\n{text}"), settings="paper").files_at("")
        for k, text in enumerate(texts)
    ]
    return set.intersection(*({*next(iter(files.values())).splitlines(keepends=True)} for files in rules))


@pytest.mark.parametrize("name", corners(CHEAP, CHEAP[:1]))
def test_compile_run_and_explain_make_one_plan(name: str) -> None:
    plan = compiled(name)
    assert plan_of_run(name).for_rounds(ROUNDS).recipe == plan.recipe
    winner = explained(model_of(name), None, 1.0, rounds_of(name), seconds=0).winner
    assert winner is not None and winner.name == plan.algorithm
    assert {n: str(s) for n, s in winner.settings.items()} == {n: str(s) for n, s in plan.settings.items()}


def test_the_builder_makes_the_plan_of_the_text() -> None:
    m = oco.Model("small", horizon=50)
    x = m.decision("x", 2, domain=oco.box(0, 1))
    a = m.stream("a", 2, bounds=(0, 1))
    m.minimize(oco.sum_squares(x - a))
    text = (
        "model small\nhorizon T = 50\ndecision x[2] in box(0, 1)\nstream a[2] in [0, 1]\nminimize sum_squares(x - a)\n"
    )
    assert oco.compile(m).recipe == oco.compile(oco.parse(text)).recipe


def test_commands_after_a_run_name_the_backend_that_ran_it() -> None:
    """C and NumPy round differently: the module that decides as the run did is one of the same backend."""
    files = Files(Path("m.oco"), Path("d.csv"), False, (), None, None)
    assert following_commands(files, "numpy")[1] == "oco compile m.oco --data d.csv"
    assert following_commands(files, "c")[1] == "oco compile m.oco --data d.csv --backend c"
