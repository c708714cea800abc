"""Default learner, tuned one, every algorithm and every rule on one problem, scored on the rounds after the first fifth.

What was played is kept, part by part, in a file of JSON, and is not played again. Nothing in it hangs on the time that it took: pilot
runs are planned by the model of costs, and a rule has minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from enum import StrEnum
from functools import cached_property

import oco
from benchmarks.practice.ablation import PARTS, without
from benchmarks.practice.chance import chance
from benchmarks.practice.problems import Problem, priced, widened
from benchmarks.practice.results import OWN, Kept, Priced, Results
from benchmarks.practice.totals import dominating
from oco.compiler.problem.canonical import Canonical
from oco.compiler.selection.verdicts import Applicability
from oco.dsl.statements import Feedback
from oco.evaluation.baselines.base import FIRST, Played, SkippedRule, play
from oco.evaluation.baselines.gradients import Gradients
from oco.evaluation.baselines.resolve import Resolve, TunedMargin
from oco.evaluation.baselines.rule_table import RuleLine, rule_line
from oco.evaluation.baselines.rules import RuleChoice, beside, cheap_rules, rules
from oco.evaluation.cost import Trade
from oco.plan import Plan

EARLY = 0.1
"""Share of the rounds in which a learner comes from its first decision to where it stays."""
UNHURRIED = 1e9
"""Seconds of pilot runs, which the model of costs plans."""


class Part(StrEnum):
    """Part of the results at one price."""

    DEFAULT = "default"
    RULES = "rules"
    TUNED = "tuned"
    ALGORITHMS = "algorithms"
    WIDE = "wide"
    ABLATION = "ablation"
    CHANCE = "chance"


MIDDLE = (Part.TUNED, Part.WIDE, Part.ABLATION)
"""Parts that are played at the middle price alone, unless all prices are asked for."""


def compare(
    problem: Problem,
    kept: Kept,
    parts: Collection[Part] = tuple(Part),
    seconds: float = 600.0,
    every_price: bool = False,
    again: bool = False,
    note: Callable[[str], None] = lambda text: None,
) -> Results:
    """Play what is asked for and not kept yet, part by part, each of which is kept as soon as it is there.

    seconds  of one rule
    again    True: what is kept is played again
    """
    first = max(1, int(FIRST * problem.data.rounds))
    results = kept.results.get(problem.name)
    scored = problem.data.rounds - first
    results = results or Results(problem.name, problem.words, scored, (), wealth=problem.wealth)
    middle, fixed = problem.prices[len(problem.prices) // 2], dict[str, Played | SkippedRule]()
    for price in problem.prices:
        row = next((p for p in results.priced if p.price == price), None)
        game = _Game(problem, price, first, seconds, fixed)
        for part in (p for p in Part if p in parts and (every_price or price == middle or p not in MIDDLE)):
            if row is not None and not again and _has(row, part):
                continue
            note(f"{problem.name}, price {price:g}: {part}")
            row, left_out = game.played(row, part)
            rows = {p.price: p for p in results.priced} | {price: row}
            left = {x.name: x for x in (*results.left_out, *left_out)}
            results = replace(results, priced=tuple(rows[p] for p in sorted(rows)), left_out=tuple(left.values()))
            kept.save(results)
    return results


def _has(row: Priced, part: Part) -> bool:
    """True where a part is there, as the default always is, or there is none, as where the default has no experts."""
    none = (part is Part.ABLATION and row.algorithm != OWN) or (part is Part.CHANCE and not dominating(row))
    return part is Part.DEFAULT or none or bool(getattr(row, part.value))


class _Game:
    """Problem at one price."""

    def __init__(
        self, problem: Problem, price: float, first: int, seconds: float, fixed: dict[str, Played | SkippedRule]
    ) -> None:
        self.problem, self.price, self.first, self.seconds, self.fixed = problem, price, first, seconds, fixed
        self.model = priced(problem.model, price)

    @cached_property
    def plan(self) -> Plan:
        """Default, as `oco run --data` compiles it."""
        return oco.compile(self.model, data=self.problem.data, budget=UNHURRIED)

    @cached_property
    def trade(self) -> Trade:
        """Trade at the price, in the model's own units."""
        return Trade.at_price(self.plan.canonical, self.price)

    def played(self, row: Priced | None, part: Part) -> tuple[Priced, tuple[SkippedRule, ...]]:
        """Row with one part more, and the rules that were left out."""
        if row is None or part is Part.DEFAULT:
            row = self._with_default(row)
        match part:
            case Part.RULES:
                return self._with_rules(row)
            case Part.TUNED:
                return replace(row, tuned=self._tuned(row.default)), ()
            case Part.ALGORITHMS:
                return replace(row, algorithms=self._algorithms(row.default)), ()
            case Part.WIDE:
                return replace(row, wide=self._wide()), ()
            case Part.CHANCE:
                return self._with_chance(row), ()
            case Part.ABLATION if self.plan.algorithm == OWN:
                return replace(row, ablation=tuple(self._without(name) for name in PARTS)), ()
        return row, ()

    def _with_default(self, row: Priced | None) -> Priced:
        played = _played(self.plan, self.problem)
        lines = [rule_line("default", r, self.trade) for r in (played.after(self.first), played.before(self.early))]
        if row is None:
            return Priced(self.price, self.plan.algorithm, lines[0], early=lines[1])
        of_all = (replace(lines[0], name=OWN) if x.name == self.plan.algorithm == OWN else x for x in row.algorithms)
        algorithms = tuple(sorted(of_all, key=lambda line: line.cost))
        return replace(row, algorithm=self.plan.algorithm, default=lines[0], early=lines[1], algorithms=algorithms)

    @property
    def early(self) -> int:
        """Number of rounds of the first tenth."""
        return max(1, int(EARLY * self.problem.data.rounds))

    def _with_rules(self, row: Priced) -> tuple[Priced, tuple[SkippedRule, ...]]:
        canonical, trade = self.plan.canonical, self.trade
        every = self._played(canonical, trade)
        results = [r for r in every if isinstance(r, Played)]
        left_out = tuple(r for r in every if isinstance(r, SkippedRule))
        lines = sorted((rule_line(r.name, r.after(self.first), trade) for r in results), key=lambda line: line.cost)
        before = {r.name: rule_line(r.name, r.before(self.first), trade).cost for r in results}
        picked = min(before, key=lambda name: before[name], default="")
        cheap = {r.name for r in cheap_rules(canonical)}
        early = tuple(rule_line(r.name, r.before(self.early), trade) for r in results if r.name in cheap)
        return replace(row, rules=tuple(lines), picked=picked, early_rules=early), left_out

    def _played(self, canonical: Canonical, trade: Trade) -> list[Played | SkippedRule]:
        """Results of all rules; those that the price does not enter are kept for the other prices."""
        if canonical.previous or canonical.carried:
            together = beside(RuleChoice.ALL, canonical, self.problem.data, trade, self.seconds)
            return [*together.played, *together.left_out]
        for rule in rules(canonical):
            priced_in = isinstance(rule, Gradients) or (
                isinstance(rule, Resolve) and isinstance(rule.margin, TunedMargin)
            )
            key = f"{rule.name}, {self.price:g}" if priced_in else rule.name
            if key not in self.fixed:
                self.fixed[key] = play(rule, canonical, self.problem.data, trade, self.seconds)
        own = [r.name for r in rules(canonical)]
        return [self.fixed[n] if n in self.fixed else self.fixed[f"{n}, {self.price:g}"] for n in own]

    def _with_chance(self, row: Priced) -> Priced:
        """Row with what the rules that dominate save, and what of it may be chance."""
        shown = {line.name for line in dominating(row)}
        if not shown:
            return replace(row, chance=None)
        each = {
            r.name: self.trade.each(r.after(self.first))
            for r in self._played(self.plan.canonical, self.trade)
            if isinstance(r, Played)
        }
        own = self.trade.each(_played(self.plan, self.problem).after(self.first))
        return replace(row, chance=chance(own, each, shown))

    def _algorithms(self, own: RuleLine) -> tuple[RuleLine, ...]:
        """Totals of each algorithm, the cheapest first; those of the default were played."""
        names = [n for n in candidates(self.plan) if n != OWN or self.plan.algorithm != OWN]
        plans = [oco.compile(self.plan.model, algorithm=n, data=self.problem.data) for n in names]
        lines = [self._line(a.algorithm, a) for a in plans]
        lines += [replace(own, name=OWN)] if self.plan.algorithm == OWN else []
        return tuple(sorted(lines, key=lambda line: line.cost))

    def _tuned(self, default: RuleLine) -> RuleLine:
        """Totals with the line that `oco tune` prints for the first fifth, compiled with the data as the default is; those of the default
        where it keeps that, and the model stays as it is.
        """
        tuned = oco.tune(self.model, self.problem.data.first(self.first), seconds=UNHURRIED)
        if tuned.search.best is tuned.search.default:
            return default
        plan = oco.compile(self.model, tuned.plan.algorithm, tuned.plan.given, data=self.problem.data)
        return self._line(f"tuned: {tuned.line}", plan)

    def _without(self, name: str) -> RuleLine:
        """Totals of the default without one of its parts."""
        with without(name):
            return self._line(name, self._as_chosen(self.problem))

    def _wide(self) -> RuleLine:
        """Totals of the default where the declared bounds are too wide."""
        wide = widened(self.problem)
        plan = self._as_chosen(wide)
        return rule_line(plan.algorithm, _played(plan, wide).after(self.first), self.trade)

    def _as_chosen(self, problem: Problem) -> Plan:
        """Default of a problem that is a variant; where it weighs experts nothing else is judged again."""
        model = priced(problem.model, self.price)
        if self.plan.algorithm == OWN:
            return oco.compile(model, algorithm=OWN, data=problem.data)
        return oco.compile(model, data=problem.data, budget=UNHURRIED)

    def _line(self, name: str, plan: Plan) -> RuleLine:
        return rule_line(name, _played(plan, self.problem).after(self.first), self.trade)


def _played(plan: Plan, problem: Problem) -> Played:
    """Run of a plan over the rounds of a problem."""
    trace = plan.run(problem.data, keep="last")
    return Played("", {}, trace.loss, trace.constraints, trace.equalities)


def candidates(plan: Plan) -> list[str]:
    """Algorithms that apply to the model of a plan and read what its feedback reveals."""
    usable = (v for v in plan.verdicts if v.applicability is not Applicability.REFUSED)
    return [v.name for v in usable if v.algorithm.reads is not Feedback.BANDIT]
