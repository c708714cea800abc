"""Decisions held in all rounds: the first one of a run, and doing nothing. What a guarantee should be better than."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.evaluation.baselines.base import MEMORY, Game, RuleUnavailable
from oco.evaluation.baselines.rule_table import RuleLine, rule_line
from oco.evaluation.cost import Trade
from oco.evaluation.data import Data
from oco.evaluation.measured_run import MeasuredRun

HELD, NOTHING = "first decision held", "doing nothing"


HeldLines = tuple[RuleLine | None, RuleLine | None]
"""Totals of the first decision in all rounds, and of the decision 0."""


def held_lines(trace: MeasuredRun) -> HeldLines:
    """Totals of what is held in all rounds of a run; see `held_in_all`."""
    starts = len(trace.record.kept) > 0 and trace.record.kept[0] == 0
    return held_in_all(trace.problem, trace.data, trace.record.decisions if starts else {})


def held_in_all(problem: Canonical, data: Data, decisions: Mapping[str, Any]) -> HeldLines:
    """Totals of the first decision in all rounds, and of the decision 0; `decisions` are by name, the round first.

    None for a first decision that is not there, for a 0 outside the domain, and for both where the rounds are too large a table
    or the model has states.
    """
    problem = problem.standing
    blocks = problem.blocks
    size = sum(b.domain.size for b in blocks)
    if problem.carried or data.rounds * size * 8 > MEMORY:
        return None, None
    try:
        game = Game.of(problem, data, Trade.at_price(problem, 1.0))
    except RuleUnavailable:
        return None, None
    known = all(b.name in decisions for b in blocks)
    beginning = np.concatenate([np.ravel(decisions[b.name][:1]) for b in blocks]) if known else None
    allowed = all(b.domain.contains(np.zeros(b.shape)) for b in blocks)
    return _held(game, HELD, beginning), _held(game, NOTHING, np.zeros(size) if allowed else None)


def _held(game: Game, name: str, x: np.ndarray | None) -> RuleLine | None:
    """Totals of a decision x (n,) in all rounds; None without a decision, or where its loss is not defined."""
    if x is None:
        return None
    with np.errstate(all="ignore"):
        played = game.play(name, np.broadcast_to(x, (game.rounds, len(x))))
    return rule_line(name, played, game.trade) if np.isfinite(played.loss).all() else None
