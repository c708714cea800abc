"""List of the rules for a problem, and games of several rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from oco.compiler.problem.canonical import Canonical
from oco.dsl.statements import Feedback
from oco.evaluation.baselines.base import (
    SECONDS,
    DecisionRule,
    Game,
    Played,
    RuleUnavailable,
    SkippedRule,
    depends_on_earlier_rounds,
    play,
)
from oco.evaluation.baselines.gradients import DualAscent, FixedPenalty
from oco.evaluation.baselines.portfolios import (
    BuyAndHold,
    ExponentiatedGradientPortfolio,
    NewtonSteps,
    UniformPortfolio,
    wealth,
)
from oco.evaluation.baselines.predictions import Last, Mean, Predictor, Stated, unstated
from oco.evaluation.baselines.regressions import regression_rules
from oco.evaluation.baselines.resolve import Learned, Margin, NoMargin, Resolve, TunedMargin, WorstSeen
from oco.evaluation.baselines.rule_table import Beside
from oco.evaluation.baselines.stated import Deviations, OfModel, Quantile, WorstOfRange, stated_in_constraints
from oco.evaluation.baselines.stepwise import StepRule, play_stepwise
from oco.evaluation.baselines.values import SeesMore, rules_of_values, sees_more
from oco.evaluation.cost import Trade
from oco.evaluation.data import Data

PREDICTORS: Sequence[Predictor] = (Last(), Mean(3), Mean(24), Mean(168), Last(24), Mean())
CHEAP_SECONDS = 5.0
"""Seconds for one rule beside a run, by the model of costs."""
TOGETHER = 2
"""Rules whose time those may take that are played side by side, a round at a time."""


class RuleChoice(StrEnum):
    """Rules that are played beside a run."""

    SOME = "some"
    ALL = "all"
    NONE = "none"


def rules(problem: Canonical) -> list[DecisionRule]:
    """All rules that are made for such a problem, those first that see no more than its feedback reveals."""
    if problem.feedback is Feedback.FULL:
        return informed_rules(problem)
    return [*playable_rules(problem), *(SeesMore(rule) for rule in informed_rules(problem))]


def playable_rules(problem: Canonical) -> list[DecisionRule]:
    """Rules that see what less than full feedback reveals: values where nothing else is, or the slopes at the decision."""
    if problem.feedback is Feedback.GRADIENT:
        return [FixedPenalty((1.0,), (1.0,)), *([DualAscent((1.0,), (1.0,))] if problem.constraints else [])]
    return rules_of_values()


def informed_rules(problem: Canonical) -> list[DecisionRule]:
    """All rules that are made for such a problem where the data of a round are seen after it."""
    stated = stated_in_constraints(problem)
    constrained = bool(problem.inequalities)
    predictors = PREDICTORS if unstated(problem) else (Stated(),)
    margins: list[Margin] = [NoMargin()]
    of_distribution: list[Margin] = (
        [OfModel(Deviations(2)), OfModel(Deviations(4)), OfModel(Quantile(0.999))] if stated else []
    )
    chosen: list[DecisionRule] = [*portfolio_rules(problem), *regression_rules(problem)]
    if constrained:
        worst = OfModel(WorstOfRange())
        constants = [*of_distribution, worst] if stated else [worst]
        chosen += [Resolve(Stated(), m, fixed=True) for m in constants]
        margins += [*of_distribution, Learned(0.95), Learned(0.99), WorstSeen()]
        chosen += [Resolve(p, TunedMargin()) for p in predictors]
        chosen += [Resolve(predictors[0], worst)]
        chosen += [Resolve(Mean(), WorstSeen())]
    chosen += [Resolve(p, m) for m in margins for p in predictors[: 2 if constrained else None]]
    return [*chosen, FixedPenalty(), DualAscent()]


def cheap_rules(problem: Canonical) -> list[DecisionRule]:
    """Two rules that take seconds: a constant, or nearly one, and one that re-solves every round; of less than full feedback all that are
    playable.
    """
    if problem.feedback is not Feedback.FULL:
        return playable_rules(problem)
    if wealth(problem) is not None:
        return list(portfolio_rules(problem))[::3]
    if of_regression := regression_rules(problem):
        return list(of_regression)
    if not problem.constraints:
        return [Resolve(Mean(), NoMargin()), Resolve(Mean(3), NoMargin())]
    if stated_in_constraints(problem):
        predictor = Mean(3) if unstated(problem) else Stated()
        return [Resolve(Stated(), OfModel(Deviations(4)), fixed=True), Resolve(predictor, OfModel(Quantile(0.999)))]
    return [Resolve(Mean(), WorstSeen()), Resolve(Mean(3), TunedMargin())]


def portfolio_rules(problem: Canonical) -> tuple[DecisionRule, ...]:
    """Rules for a portfolio; none for another problem."""
    if wealth(problem) is None:
        return ()
    within = bool(problem.constraints)
    return (UniformPortfolio(within), BuyAndHold(within), ExponentiatedGradientPortfolio(within), NewtonSteps(within))


def beside(
    which: RuleChoice, problem: Canonical, data: Data, trade: Trade, seconds: float | None = None, start: int = 0
) -> Beside:
    """Play rules over the data; `seconds` are for each of them by the model of costs, so that the same rules are played on every
    machine, for `TOGETHER` where all are played side by side. They are
    ordered by what they cost from the round `start` (from 0) on, those last that see more than the feedback reveals.
    """
    allowed = seconds or (CHEAP_SECONDS if which is RuleChoice.SOME else SECONDS)
    results: list[Played | SkippedRule] = []
    if which is not RuleChoice.NONE and depends_on_earlier_rounds(problem):
        results = _stepwise(which, problem, data, trade, allowed)
        own = None if any(isinstance(r, Played) for r in results) else with_rows_as_measured(problem)
        if own is not None:
            at_once = replace(data, problem=own)
            others = [play(rule, own, at_once, trade, allowed) for rule in share_rules(problem, own, which)]
            results = others if any(isinstance(r, Played) for r in others) else results
    elif which is not RuleChoice.NONE:
        chosen = cheap_rules(problem) if which is RuleChoice.SOME else rules(problem)
        results = [play(rule, problem, data, trade, allowed) for rule in chosen]
    played = [r.after(start) for r in results if isinstance(r, Played)]
    order = sorted(played, key=lambda r: (sees_more(r.name), trade.score(r)[2]))
    return Beside(tuple(order), tuple(r for r in results if isinstance(r, SkippedRule)), trade)


def step_rules(problem: Canonical) -> list[StepRule]:
    """Rules for a problem whose rounds leave something to the next, the two cheap ones first."""
    predictors = PREDICTORS if unstated(problem) else (Stated(),)
    learned = sum(c.size for c in problem.learned.inequalities)
    margins = (0.95, 0.99, 1.0) if learned else ()
    first = [StepRule(p) for p in (*predictors[:1], *predictors[-1:])]
    others = [StepRule(p, m) for p in predictors for m in (None, *margins)]
    return list(dict.fromkeys((*first, *others)))


def with_rows_as_measured(problem: Canonical) -> Canonical | None:
    """Problem whose constraints in a share of the rounds bind in each round, as they are measured, for rules with margins of their own.

    None where there are none, or where rounds leave anything but margins to the next.
    """
    own = problem.standing
    shared = any(c.margin is not None for c in own.inequalities)
    if not shared or own.carried or problem.moving is not None:
        return None
    rows = (c if c.margin is None else replace(c.as_measured, margin=None, known=False) for c in own.inequalities)
    return replace(own, inequalities=tuple(replace(c, moving=None) for c in rows))


def share_rules(problem: Canonical, own: Canonical, which: RuleChoice) -> list[DecisionRule]:
    """Rules that solve all rounds at once, for a problem with constraints in a share of the rounds; `own` is it with these as measured."""
    share = max(1.0 - c.margin.share for c in problem.standing.inequalities if c.margin is not None)
    first: list[DecisionRule] = [Resolve(Mean(), Learned(share)), Resolve(Mean(3), Learned(share))]
    return first if which is RuleChoice.SOME else list(dict.fromkeys((*first, *rules(own))))


def _stepwise(
    which: RuleChoice, problem: Canonical, data: Data, trade: Trade, seconds: float
) -> list[Played | SkippedRule]:
    chosen = step_rules(problem)[: 2 if which is RuleChoice.SOME else None]
    try:
        revealed = replace(problem, streams=problem.revealed)
        game = Game.of(revealed, replace(data, problem=revealed), trade, TOGETHER * seconds)
    except RuleUnavailable as reason:
        return [SkippedRule(r.name, str(reason)) for r in chosen]
    return play_stepwise(chosen, replace(game, problem=problem))
