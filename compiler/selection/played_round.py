"""Round as the rule of a chosen algorithm is traced on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from oco.compiler.lowering.round_problem import TraceSpec
from oco.compiler.lowering.rounding import rounding_draws
from oco.compiler.lowering.storage import low_rank_layouts
from oco.compiler.problem.canonical import Canonical
from oco.compiler.selection.choice import Choice


def trace_spec(choice: Choice, **options: Any) -> TraceSpec:
    """Specification of the round for the winner of a choice, its settings and its scales; options are fields of `TraceSpec`."""
    winner, situation = choice.winner, choice.played
    assert winner is not None
    algorithm = winner.algorithm
    problem = situation.canonical.predicting if algorithm.predicts else situation.canonical
    structure, _ = problem.structure
    spec = TraceSpec(
        problem,
        winner.settings,
        structure,
        situation.horizon,
        situation.dependent_rows,
        scales=winner.scales,
        restarts=choice.restarts,
        seasons=situation.own_seasons,
        **options,
    )
    kept = low_rank_layouts(problem) if algorithm.frank_wolfe(spec) else ()
    return replace(spec, draws=(*algorithm.draws(spec), *rounding_draws(problem)), low_rank_layouts=kept)


def with_streams_of(given: Canonical, problem: Canonical) -> Canonical:
    """Problem with the streams of the given one: its guarantee may be for narrower ranges, and data need not keep to these."""
    if problem.model.streams == given.model.streams:
        return problem
    own = {s.name: s for s in given.streams}
    streams = tuple(own.get(s.name, s) for s in problem.streams)
    return replace(problem, model=replace(problem.model, streams=given.model.streams), streams=streams)
