"""Rules beside a learner: who costs what over the same rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.dsl.records import dataclass
from oco.evaluation.baselines.base import KNOWN, Played, SkippedRule
from oco.evaluation.baselines.values import sees_more
from oco.evaluation.cost import Measured, Trade
from oco.evaluation.measured_run import MeasuredRun

Array = np.ndarray[Any, Any]
NOTHING = 1e-6  # sum of violations below which it is rounding, where no round was broken
ALIKE = 0.01  # share by which violations may differ that count as alike


@dataclass(frozen=True, eq=False)
class Beside:
    """Rules that were played beside a learner, the cheapest first, and those left out; the trade that orders them."""

    played: tuple[Played, ...]
    left_out: tuple[SkippedRule, ...]
    trade: Trade


@dataclass(frozen=True)
class RuleLine:
    """Totals over all rounds.

    violation  sum over the constraints of what each was broken by, in its own units (`Trade.broken`)
    broken     rounds in which a constraint that binds each round was broken
    cost       loss + weight x violation a round, in the units of the trade
    priced     loss + violations at the penalties of the model; None where it states none
    """

    name: str
    loss: float
    violation: float
    broken: int
    cost: float
    priced: float | None = None

    @property
    def shown_violation(self) -> float:
        """Violation; 0 where it is rounding alone."""
        return 0.0 if self.broken == 0 and self.violation < NOTHING else self.violation


@dataclass(frozen=True)
class RuleTable:
    """Learner and rules in one measure, the cheapest first of the rules that keep the constraints as well, then of the others; pairs of
    name and reason for those left out; the measure in words; and how many of the first rules keep the constraints without a penalty about
    as well as the learner, or in the share of the rounds that they ask for.
    """

    learner: RuleLine
    lines: tuple[RuleLine, ...]
    left_out: tuple[tuple[str, str], ...]
    weighing: str
    keeping: int = 0

    @property
    def best(self) -> RuleLine | None:
        """Cheapest rule that keeps the constraints as well, or where none does, of all; None where none was played."""
        return self.lines[0] if self.lines else None

    @property
    def better(self) -> bool:
        """True where a rule keeps the constraints as well and costs less than the learner."""
        return self.best is not None and self.keeping > 0 and self.best.cost < self.learner.cost

    @property
    def marked(self) -> tuple[tuple[str, RuleLine], ...]:
        """Lines with their marks in tables and pictures: the learner's, then the rules' numbers from 1."""
        return (("*", self.learner), *((str(k + 1), line) for k, line in enumerate(self.lines)))


def rule_table(trace: MeasuredRun, beside: Beside) -> RuleTable:
    """Table of a run and the rules that were played over its rounds."""
    own = rule_line(f"the learner ({trace.promise.algorithm})", trace, beside.trade)
    keep = [not sees_more(r.name) and _keeps(trace.problem, beside.trade, r, trace) for r in beside.played]
    order = sorted(range(len(keep)), key=lambda k: not keep[k])
    lines = tuple(rule_line(beside.played[k].name, beside.played[k], beside.trade) for k in order)
    left_out = tuple((r.name, r.why) for r in beside.left_out)
    return RuleTable(own, lines, left_out, beside.trade.words, sum(keep))


def rule_line(name: str, run: Measured, trade: Trade) -> RuleLine:
    """Totals of one run."""
    hard = run.constraints[:, trade.hard]
    slack = _slack(trade)[: len(trade.hard)][trade.hard]
    beyond = hard > slack
    broken = int(np.ascontiguousarray(beyond.T).any(axis=0).sum())
    loss, violation = float(run.loss.sum()), trade.broken(run).copy()
    violation[np.flatnonzero(trade.hard)[~beyond.any(axis=0)]] = 0.0  # what rounding adds up to over many rounds
    priced = None if trade.penalties is None else loss + float(trade.penalties @ violation)
    return RuleLine(name, loss, float(violation.sum()), broken, trade.score(run)[2], priced)


def _keeps(problem: Canonical, trade: Trade, rule: Measured, own: Measured) -> bool:
    """True where a rule keeps each constraint without a penalty about as well as the learner: one that may be broken in a share of the
    rounds in these, or in no more rounds than the learner; others by what they are broken by in all.
    """
    rounds, shared = len(rule.loss), np.zeros(len(trade.units), dtype=bool)
    allowed = np.zeros(rule.constraints.shape[1])
    ends = np.cumsum([0, *(c.size for c in problem.inequalities)])
    for c, a, b in zip(problem.inequalities, ends, ends[1:]):
        if c.margin is not None:
            shared[a:b], allowed[a:b] = True, c.margin.allowed(rounds)
    broken, most = (_rounds_broken(trade, run) for run in (rule, own))
    if (broken > np.maximum(allowed, most))[shared[: len(allowed)]].any():
        return False
    unpriced = ~shared if trade.penalties is None else ~shared & (trade.penalties == 0)
    violation, least = trade.broken(rule), trade.broken(own)
    return bool((violation <= least + ALIKE * abs(least) + rounds * _slack(trade))[unpriced].all())


def _rounds_broken(trade: Trade, run: Measured) -> Array:
    """Rounds in which each inequality is broken, (N,)."""
    return np.asarray((run.constraints > _slack(trade)[: run.constraints.shape[1]]).sum(axis=0))


def _slack(trade: Trade) -> Array:
    """Excess of each constraint that is within what solvers leave, (N + M,)."""
    scales = trade.units if trade.scales is None else trade.scales
    known = np.isfinite(scales) & (scales > 0)  # constraints that do not count have the unit 0
    return np.asarray(KNOWN * np.where(known, scales, 1.0))
