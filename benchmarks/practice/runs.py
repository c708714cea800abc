"""Default learner, tuned one, every algorithm and every rule on one problem, scored on the rounds after the first fifth.

What was played is kept, part by part, in a file of JSON, and is not played again. Nothing in it hangs on the time that it took: pilot
runs are planned by the model of costs, and a rule has minutes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import oco
from benchmarks.practice.ablation import PARTS, without
from benchmarks.practice.problems import Problem, priced
from oco.compiler.problem.canonical import Canonical
from oco.compiler.selection.verdicts import Applicability
from oco.dsl.statements import Feedback
from oco.dsl.writing import write_text
from oco.evaluation.baselines.base import FIRST, LeftOut, Played, play
from oco.evaluation.baselines.gradients import Gradients
from oco.evaluation.baselines.resolve import Resolve, TunedMargin
from oco.evaluation.baselines.rules import Which, beside, rules
from oco.evaluation.baselines.table import RuleLine, rule_line
from oco.evaluation.cost import Trade
from oco.plan import Plan

UNHURRIED = 1e9
"""Seconds of pilot runs, which the model of costs plans."""


class Part(StrEnum):
    """Part of the results at one price."""

    DEFAULT = "default"
    RULES = "rules"
    TUNED = "tuned"
    ALGORITHMS = "algorithms"
    ABLATION = "ablation"


MIDDLE = (Part.TUNED, Part.ALGORITHMS, Part.ABLATION)
"""Parts that are played at the middle price alone, unless all prices are asked for."""


@dataclass(frozen=True)
class Priced:
    """Results at one price of a unit of violation: the default learner, the algorithms by name and the rules, the cheapest first.

    picked    name of the rule that was cheapest on the first fifth
    tuned     what `oco tune` makes of the first fifth; None where it was not played
    ablation  the default without each of its parts, by name
    """

    price: float
    algorithm: str
    default: RuleLine
    rules: tuple[RuleLine, ...] = ()
    algorithms: tuple[RuleLine, ...] = ()
    picked: str = ""
    tuned: RuleLine | None = None
    ablation: tuple[RuleLine, ...] = ()


@dataclass(frozen=True)
class Results:
    """Results of a problem at all prices, with the rules that were left out and the number of rounds that were scored."""

    name: str
    words: str
    rounds: int
    priced: tuple[Priced, ...]
    left_out: tuple[LeftOut, ...] = ()


class Kept:
    """Results by problem in a file of JSON."""

    def __init__(self, path: Path) -> None:
        self.path = path
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self.results = {name: _results(x) for name, x in kept.items()}

    def save(self, results: Results) -> None:
        """Replace the results of a problem, and write the file."""
        self.results[results.name] = results
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, json.dumps({n: asdict(r) for n, r in self.results.items()}, indent=1) + "\n")


def _results(kept: dict[str, Any]) -> Results:
    rows = tuple(_priced(p) for p in kept["priced"])
    left_out = tuple(LeftOut(**x) for x in kept["left_out"])
    return Results(kept["name"], kept["words"], kept["rounds"], rows, left_out)


def _priced(p: dict[str, Any]) -> Priced:
    lists = {name: tuple(RuleLine(**line) for line in p[name]) for name in ("rules", "algorithms", "ablation")}
    tuned = None if p["tuned"] is None else RuleLine(**p["tuned"])
    return Priced(p["price"], p["algorithm"], RuleLine(**p["default"]), picked=p["picked"], tuned=tuned, **lists)


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
    results = kept.results.get(problem.name) or Results(problem.name, problem.words, problem.data.rounds - first, ())
    middle, fixed = problem.prices[len(problem.prices) // 2], dict[str, Played | LeftOut]()
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
    """True where a part is there; the default always is."""
    return part is Part.DEFAULT or bool(getattr(row, part.value))


class _Game:
    """Problem at one price."""

    def __init__(
        self, problem: Problem, price: float, first: int, seconds: float, fixed: dict[str, Played | LeftOut]
    ) -> None:
        self.problem, self.price, self.first, self.seconds, self.fixed = problem, price, first, seconds, fixed
        self.model = priced(problem.model, price)

    def played(self, row: Priced | None, part: Part) -> tuple[Priced, tuple[LeftOut, ...]]:
        """Row with one part more, and the rules that were left out."""
        plan = oco.compile(self.model, data=self.problem.data, budget=UNHURRIED)
        trade = Trade.at_price(plan.canonical, self.price)
        if row is None or part is Part.DEFAULT:
            own = self._line("default", plan, trade)
            row = (
                Priced(self.price, plan.algorithm, own)
                if row is None
                else replace(row, algorithm=plan.algorithm, default=own)
            )
        match part:
            case Part.RULES:
                return self._with_rules(row, plan.canonical, trade)
            case Part.TUNED:
                tuned = oco.tune(self.model, self.problem.data.first(self.first), seconds=UNHURRIED)
                return replace(row, tuned=self._line(f"tuned: {tuned.line}", tuned.plan, trade)), ()
            case Part.ALGORITHMS:
                named = (oco.compile(plan.model, algorithm=n, data=self.problem.data) for n in candidates(plan))
                lines = sorted((self._line(a.algorithm, a, trade) for a in named), key=lambda line: line.cost)
                return replace(row, algorithms=tuple(lines)), ()
            case Part.ABLATION:
                return replace(row, ablation=tuple(self._without(name, trade) for name in PARTS)), ()
        return row, ()

    def _with_rules(self, row: Priced, canonical: Canonical, trade: Trade) -> tuple[Priced, tuple[LeftOut, ...]]:
        every = self._played(canonical, trade)
        results = [r for r in every if isinstance(r, Played)]
        left_out = tuple(r for r in every if isinstance(r, LeftOut))
        lines = sorted((rule_line(r.name, r.after(self.first), trade) for r in results), key=lambda line: line.cost)
        early = {r.name: rule_line(r.name, r.before(self.first), trade).cost for r in results}
        picked = min(early, key=lambda name: early[name], default="")
        return replace(row, rules=tuple(lines), picked=picked), left_out

    def _played(self, canonical: Canonical, trade: Trade) -> list[Played | LeftOut]:
        """Results of all rules; those that the price does not enter are kept for the other prices."""
        if canonical.previous or canonical.carried:
            together = beside(Which.ALL, canonical, self.problem.data, trade, self.seconds)
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

    def _without(self, name: str, trade: Trade) -> RuleLine:
        """Totals of the default without one of its parts."""
        with without(name):
            plan = oco.compile(self.model, data=self.problem.data, budget=UNHURRIED)
            return self._line(name, plan, trade)

    def _line(self, name: str, plan: Plan, trade: Trade) -> RuleLine:
        trace = plan.run(self.problem.data)
        return rule_line(name, Played("", {}, trace.loss, trace.constraints, trace.equalities).after(self.first), trade)


def candidates(plan: Plan) -> list[str]:
    """Algorithms that apply to the model of a plan and read what its feedback reveals."""
    usable = (v for v in plan.verdicts if v.applicability is not Applicability.REFUSED)
    return [v.name for v in usable if v.algorithm.reads is not Feedback.BANDIT]
