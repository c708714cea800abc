"""The `using` line that tuning writes: with the same model it gives the same settings, for every theorem of every algorithm."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from test_unit_free import HOMES, Units, in_units
from thorough import one_in, thorough

import oco
from oco.compiler.algorithms import ALGORITHMS
from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.check import check
from oco.compiler.selection.choice import Choice, choose
from oco.compiler.selection.judging import judge
from oco.compiler.selection.modes import Mode
from oco.compiler.selection.plan import Plan
from oco.compiler.selection.request import AlgorithmRequest, Policy
from oco.compiler.selection.verdicts import Applicability
from oco.compiler.theory.settings import Setting
from oco.compiler.theory.theorems import Situation
from oco.dsl.load import parse
from oco.tuning import using_line

UNIT_FREE = Policy(Mode.UNIT_FREE)
"""Constants are given here, so that nothing is searched."""


AT_HOME = {name.split()[0] for name in HOMES}
"""Algorithms that have a world in several units."""
OPEN = ", number of rounds unknown"
"""End of the names of worlds whose model states no horizon."""


def text_of(world: str) -> str:
    text = in_units(world.removesuffix(OPEN), Units())
    return re.sub(r"horizon T = \d+", "horizon T unknown", text) if world.endswith(OPEN) else text


@cache
def situation(world: str) -> Situation:
    problem = canonical(parse(text_of(world)))
    return Situation(problem.learned, check(problem.model), problem.horizon)


def worlds_of(name: str, theorem: int) -> tuple[str, ...]:
    """Those of the laws of units, and others where theorems hold that ask for curved losses or for draws, or for no horizon."""
    if (name, theorem) == ("sinha-vaze", 2):
        return tuple(f"{world}{OPEN}" for world in HOMES[name])
    own = (w for n, worlds in HOMES.items() if n.split()[0] == name for w in worlds)
    return tuple(dict.fromkeys((*own, "free curved", "curved", "in the mean, drawn")))


def plans_by(name: str, theorem: int) -> Iterator[tuple[str, Plan]]:
    """The worlds in which a theorem holds, with the plan that it gives as if the algorithm had no other."""
    algorithm = next(a for a in ALGORITHMS if a.name == name)
    spoken = algorithm.theorems[theorem]
    for world in worlds_of(name, theorem):
        s = situation(world)
        found = judge(replace(algorithm, theorems=(spoken,)), s, AlgorithmRequest(name, spoken.words, None, UNIT_FREE))
        if found.applicability is Applicability.APPLICABLE and found.guarantee is not None:
            verdict = replace(found, algorithm=algorithm, applicability=Applicability.CHOSEN)
            yield (
                world,
                Plan(s.canonical.model, s.canonical.standing, s.facts, Choice(s, (verdict,), True, policy=UNIT_FREE)),
            )


def formulas_of(settings: Mapping[str, Setting]) -> dict[str, Any]:
    return {n: s.formula for n, s in settings.items()}


@pytest.mark.parametrize("worlds", [1, thorough(9)])
@pytest.mark.parametrize(
    ("name", "theorem"),
    one_in(2, [(a.name, k) for a in ALGORITHMS if a.promises and a.name in AT_HOME for k in range(len(a.theorems))]),
)
def test_the_line_gives_the_same_settings(name: str, theorem: int, worlds: int) -> None:
    """In so many of the worlds where the theorem has constants that are free."""
    rng, told = np.random.default_rng(theorem), 0
    for world, plan in plans_by(name, theorem):
        if told == worlds:
            break
        drawn = (
            {f.name: float(f"{rng.uniform(max(f.low, 0.3), min(f.high, 1)):.3g}") for f in plan.free} for _ in range(20)
        )
        numbers = next((n for n in drawn if plan.allows(n)), None)
        if numbers is None:
            continue
        line = using_line(name, plan.given_constants(numbers))
        using = parse(f"{text_of(world)}{line}\n").using
        assert using is not None
        request = AlgorithmRequest(using.algorithm, dict(using.settings), using.span, Policy(Mode.LEAST))
        written = choose(plan.choice.situation, request)
        wanted = plan.with_constants(numbers)
        assert written.winner is not None and wanted.choice.winner is not None
        assert formulas_of(written.winner.settings) == formulas_of(wanted.settings), (world, line)
        scales, own = written.winner.scales, wanted.choice.winner.scales
        assert scales is not None and own is not None
        assert (scales.loss, scales.radius) == (own.loss, own.radius)
        told += 1
    assert told


def test_a_tuned_model_compiles_again() -> None:
    """coldq with a loss that is a little strongly convex: the theorem for convex losses promises more at this horizon."""
    text = (
        in_units("curved", Units())
        .replace("sum_squares", "0.01 * sum_squares")
        .replace("horizon T = 16", "horizon T = 60")
    )
    rng = np.random.default_rng(0)
    data = {"price": rng.uniform(-1, 1, (60, 3)), "need": rng.uniform(0.25, 0.75, 60)}
    found = oco.tune(parse(text), data, "coldq", seconds=0.5)
    assert "V_x" in found.line and len(found.plan.choice.verdicts[0].algorithm.theorems) > 1
    written = oco.compile(parse(f"{text}{found.line}\n"))
    assert formulas_of(written.settings) == formulas_of(found.plan.settings)
    np.testing.assert_array_equal(written.run(data).decisions, found.plan.run(data).decisions)


def test_constants_beside_a_setting_in_the_models_units_stay_in_them() -> None:
    text = in_units("each round", Units(loss=8.0)) + "using coldq with epsilon = 0.25\n"
    plan = oco.compile(parse(text))
    line = using_line("coldq", plan.given_constants({"alpha": 2.0}))
    written = oco.compile(parse(text.replace("using coldq with epsilon = 0.25", line)))
    wanted = plan.with_constants({"alpha": 2.0})
    assert "units" not in line and formulas_of(written.settings) == formulas_of(wanted.settings)
    assert written.choice.verdicts[0].scales is None


HARD = """model d
horizon T = 1000
decision x[2] in box(0, 1)
stream c[2] in [-1, 1]
stream a[2] in [0, 1]
minimize c @ x
subject to
    cap: a @ x <= 0.2 each round
"""


def test_settings_choose_among_the_algorithms_that_use_them() -> None:
    """`sinha-vaze`, which has no alpha, promises more with constants that are sought than `coldq` with an alpha that is given."""
    plan = oco.compile(parse(HARD + "using with alpha = 2\n"))
    sums = {v.name: v.score for v in oco.compile(parse(HARD)).choice.compared().with_searched().verdicts}
    assert plan.algorithm == "coldq" and sums["sinha-vaze"] < plan.choice.verdicts[0].score
    assert plan.settings["alpha"].value == 2 and not any(w.code == "OCO712" for w in plan.warnings)
    told = str(plan.explain())
    assert "it does not use `alpha`, which `using` sets" in told
    assert oco.compile(parse(HARD), settings={"alpha": 2}).settings["alpha"].value == 2


@pytest.mark.parametrize("value", [None, [1], True, 2 + 1j])
def test_a_setting_is_a_number_or_a_formula(value: Any) -> None:
    with pytest.raises(oco.OcoError, match="a number or a formula") as caught:
        oco.compile(parse(HARD), "coldq", {"alpha": value})
    assert caught.value.code == "OCO721"
