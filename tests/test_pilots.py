"""Pilot runs: they choose the algorithm and its constants where no guarantee does, in the same way in every unit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from driving import plan_for
from thorough import corners, thorough

import oco
from oco.compiler.selection.pilots import PilotResult
from oco.compiler.selection.shared_program import with_program_of
from oco.evaluation.cost import PartOfRounds, Trade
from oco.evaluation.data import load_data

EXAMPLES = Path(__file__).parent.parent / "examples"
FAVOURS_PAPER = """\
model m
horizon T = 20
decision x[3] in box(-1, 1)
stream p[3] ~ uniform(-1, 1)
minimize {c} * p @ x
subject to
    cap: p @ x - 0.2 <= 0    each round
measure dynamic regret
"""
FAVOURS_LEAST = """\
model m
horizon T = 40
decision x[3] in box(0, 1)
stream c[3] ~ uniform(-1, 0)
stream a[3] ~ uniform(0, 1)
minimize {c} * c @ x
subject to
    cap: a @ x - 0.5 <= 0    each round
measure dynamic regret
"""
MODELS = {"unit-free": FAVOURS_PAPER, "optimal": FAVOURS_LEAST}


@pytest.mark.usefixtures("unmixed")
@pytest.mark.parametrize("mode", corners(MODELS, ["unit-free"]))
def test_pilots_choose_between_the_least_guarantee_and_the_papers_constants(mode: str) -> None:
    text = MODELS[mode].format(c=5)
    plan = plan_for(text)
    pilots = plan.choice.pilots
    assert pilots is not None and plan.mode == mode and pilots.results[0].algorithm == plan.algorithm
    assert pilots.papers_constants == (mode == "unit-free") and plan.choice.policy.mode == mode
    assert {r.papers_constants for r in pilots.results} == {True, False}
    for result in pilots.results:
        assert result.cost == pytest.approx(cost_of(result, text), rel=1e-12)
    assert pilots.results[0].cost == min(r.cost for r in pilots.results)
    same = plan_for(text, plan.algorithm, mode)
    assert {n: s.formula for n, s in same.settings.items()} == {n: s.formula for n, s in plan.settings.items()}
    assert ("favoured the paper's constants" in plan.choice.verdicts[0].reason) == (mode == "unit-free")


def cost_of(result: PilotResult, text: str) -> float:
    """Cost a round at the horizon, of the runs of a plan that is asked for by name: the first half once, the second for all the others."""
    plan = plan_for(text, result.algorithm, "unit-free" if result.papers_constants else "optimal")
    runs = [plan.run(load_data(plan.canonical, None, seed=k), seed=k) for k in (0, 1)]
    trade, horizon, costs = Trade.of(plan.choice.situation, 1.0), plan.horizon, []
    assert horizon is not None
    for run in runs:
        half = len(run.loss) // 2
        first, second = (trade.score(PartOfRounds.of(run, *ends))[2] for ends in ((0, half), (half, None)))
        costs.append((half * first + (horizon - half) * second) / horizon)
    return float(np.mean(costs))


@pytest.mark.usefixtures("unmixed")
def test_what_is_asked_for_is_what_is_taken() -> None:
    text = MODELS["unit-free"].format(c=5)
    least, plain = (plan_for(text, settings=kind) for kind in ("optimal", "unit-free"))
    for plan in (least, plain):
        pilots = plan.choice.pilots
        assert (
            pilots is not None
            and {r.papers_constants for r in pilots.results} == {plan is plain}
            and pilots.literal is None
        )
    assert least.mode == "optimal" and least.choice.winner is not None and least.choice.winner.best is not None
    assert plain.mode == "unit-free" and plain.choice.winner is not None and plain.choice.winner.best is None
    named = plan_for(text, "coldq")
    assert named.mode == "optimal" and named.choice.pilots is None


@pytest.mark.usefixtures("unmixed")
@pytest.mark.parametrize(
    ("mode", "factor"),
    [
        ("unit-free", 2.0**12),
        thorough("optimal", 2.0**-12),
        thorough("unit-free", 2.0**-12),
        thorough("optimal", 2.0**12),
    ],
)
def test_the_units_of_the_loss_change_nothing_of_the_choice(mode: str, factor: float) -> None:
    plan, other = (plan_for(MODELS[mode].format(c=c)) for c in (5, 5 * factor))
    assert (plan.algorithm, plan.mode) == (other.algorithm, other.mode)
    np.testing.assert_array_equal(plan.run(seed=3).decisions, other.run(seed=3).decisions)


@pytest.mark.usefixtures("unmixed")
def test_a_plan_with_constants_from_pilots_is_made_again() -> None:
    plan = plan_for(MODELS["unit-free"].format(c=5))
    learner, data = plan.learner(), plan.run(seed=1)
    learner.decide()
    learner.observe(p=data.data.array("p")[0])
    np.testing.assert_array_equal(oco.restore(learner.state()).decide(), learner.decide())
    longer = plan.with_horizon(50)
    assert (longer.algorithm, longer.mode) == (plan.algorithm, plan.mode)
    assert longer.choice.verdicts[0].reason == plan.choice.verdicts[0].reason


@pytest.mark.usefixtures("unmixed")
def test_settings_of_a_paper_that_carry_units_are_told_and_not_taken() -> None:
    """The data of a usual day: prices far below what the model allows. The paper's steps are in $/MWh, and happen to fit."""
    model, rng = oco.load(EXAMPLES / "datacenter.oco"), np.random.default_rng(0)
    streams = {s.name: s for s in oco.compile(model, settings="paper").canonical.streams}
    data = {
        n: rng.uniform(0, 100, (60, *s.shape)) if n == "price" else rng.uniform(s.lower, s.upper, (60, *s.shape))
        for n, s in streams.items()
    }
    plan = oco.compile(model, data=data)
    pilots, (why,) = plan.choice.pilots, {plan.choice.verdicts[0].reason}
    assert pilots is not None and pilots.literal is not None
    assert plan.mode == "optimal" and "the only one whose theorem holds" in why
    assert pilots.literal.cost < pilots.results[0].cost and "`--settings paper` takes them" in why


@pytest.mark.usefixtures("unmixed")
def test_the_program_of_a_pilot_is_that_of_the_plan_it_chooses_where_settings_know_no_horizon() -> None:
    """Traced once for both; the plan that is asked for by name traces its own, which is the same."""
    text = (EXAMPLES / "caching.oco").read_text()
    plan = plan_for(text)
    assert plan.choice.pilots is not None and plan.anytime and plan.choice.pilots.rounds < (plan.horizon or 0)
    assert "program" in vars(plan)
    named = plan_for(text, plan.algorithm, plan.mode)
    assert "program" not in vars(named) and str(named.program) == str(plan.program)


@pytest.mark.usefixtures("unmixed")
def test_a_plan_takes_no_program_of_another_horizon() -> None:
    plan = plan_for(FAVOURS_LEAST.format(c=5))
    longer = plan.with_constants(None, 80)
    assert str(longer.program) != str(plan.program)
    assert "program" not in vars(with_program_of(plan.with_constants(None, 40), longer))
    assert with_program_of(longer.with_constants(None, 80), longer).program is longer.program
