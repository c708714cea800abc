"""First decision of a run, held in all rounds: what is lost by learning nothing."""

from __future__ import annotations

import numpy as np

from oco.evaluation.baselines.base import MEMORY, Game, GivenUp
from oco.evaluation.baselines.table import RuleLine, rule_line
from oco.evaluation.cost import Trade
from oco.evaluation.measured_run import MeasuredRun

NAME = "first decision held"


def held_line(trace: MeasuredRun) -> RuleLine | None:
    """Totals of the first decision in all rounds; None where it was not kept, or where the rounds are too large a table."""
    problem, trade = trace.problem, Trade.at_price(trace.problem, 1.0)
    first = trace.record.decisions
    kept = len(trace.record.kept) > 0 and trace.record.kept[0] == 0 and all(b.name in first for b in problem.blocks)
    size = sum(b.domain.size for b in problem.blocks)
    if not kept or problem.previous or trace.rounds * size * 8 > MEMORY:
        return None
    try:
        game = Game.of(problem, trace.data, trade)
    except GivenUp:
        return None
    x = np.concatenate([np.ravel(first[b.name][0]) for b in problem.blocks])
    played = game.play(NAME, np.broadcast_to(x, (trace.rounds, len(x))))
    return rule_line(NAME, played, trade)
