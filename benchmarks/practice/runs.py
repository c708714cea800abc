"""Default learner and every rule on one problem, scored on the rounds after the first fifth."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np

import oco
from benchmarks.practice.problems import Problem
from oco.compiler.problem.canonical import Canonical
from oco.compiler.theory.theorems import Situation
from oco.dsl.writing import write_text
from oco.evaluation.baselines.base import FIRST, LeftOut, Played, Rule, play
from oco.evaluation.baselines.gradients import Gradients
from oco.evaluation.baselines.resolve import Resolve, TunedMargin
from oco.evaluation.baselines.rules import rules
from oco.evaluation.baselines.table import RuleLine, rule_line
from oco.evaluation.cost import Trade
from oco.evaluation.data import problem_for
from oco.plan import Plan


@dataclass(frozen=True)
class Priced:
    """Results at one price of a unit of violation: the default learner, and the rules, the cheapest first."""

    price: float
    algorithm: str
    default: RuleLine
    rules: tuple[RuleLine, ...]


@dataclass(frozen=True)
class Results:
    """Results of a problem at all prices, with the rules that were left out and the number of rounds that were scored."""

    name: str
    words: str
    rounds: int
    priced: tuple[Priced, ...]
    left_out: tuple[LeftOut, ...]
    seconds: float

    def save(self, folder: Path) -> None:
        """Write the results as NAME.json."""
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / f"{self.name}.json", json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read what `save` wrote."""
        kept = json.loads(path.read_text(encoding="utf-8"))
        priced = tuple(
            Priced(p["price"], p["algorithm"], RuleLine(**p["default"]), tuple(RuleLine(**line) for line in p["rules"]))
            for p in kept["priced"]
        )
        left_out = tuple(LeftOut(**x) for x in kept["left_out"])
        return cls(kept["name"], kept["words"], kept["rounds"], priced, left_out, kept["seconds"])


def compare(problem: Problem, seconds: float) -> Results:
    """Play the default learner and all rules at every price; each rule has so many seconds."""
    began, first = perf_counter(), max(1, int(FIRST * problem.data.rounds))
    unit, results, left_out = units_of(problem), [], {}
    fixed: dict[str, Played | LeftOut] = {}
    for price in problem.prices:
        plan = default(problem, price, unit)
        trade = Trade.at_price(plan.canonical, price)
        trace = plan.run(problem.data)
        own = Played("", {}, trace.loss, trace.constraints, trace.equalities).after(first)
        lines = []
        for rule in rules(plan.canonical):
            played = _played(rule, plan.canonical, problem, trade, seconds, fixed)
            if isinstance(played, LeftOut):
                left_out[rule.name] = played
            else:
                lines.append(rule_line(rule.name, played.after(first), trade))
        lines.sort(key=lambda line: line.cost)
        results.append(Priced(price, plan.algorithm, rule_line("default", own, trade), tuple(lines)))
    return Results(
        problem.name,
        problem.words,
        problem.data.rounds - first,
        tuple(results),
        tuple(left_out.values()),
        perf_counter() - began,
    )


def default(problem: Problem, price: float, unit: Trade) -> Plan:
    """Plan as `oco run --data` makes it, with the `--tradeoff` that has this price in the model's units; `unit` has the
    units of a tradeoff.
    """
    units = unit.units[unit.units > 0]
    weight = price * float(np.mean(units)) / unit.loss_unit if len(units) else 1.0
    return oco.compile(problem.model, data=problem.data, tradeoff=weight)


def units_of(problem: Problem) -> Trade:
    """Units in which a tradeoff of 1 counts loss and violation."""
    canonical = problem_for(problem.model, problem.data)
    return Trade.of(Situation(canonical, oco.check(problem.model), canonical.horizon), 1.0)


def _played(
    rule: Rule,
    canonical: Canonical,
    problem: Problem,
    trade: Trade,
    seconds: float,
    fixed: dict[str, Played | LeftOut],
) -> Played | LeftOut:
    """Result of a rule, kept for other prices in `fixed` where the price does not enter."""
    tuned = isinstance(rule, Gradients) or (isinstance(rule, Resolve) and isinstance(rule.margin, TunedMargin))
    if tuned:
        return play(rule, canonical, problem.data, trade, seconds)
    if rule.name not in fixed:
        fixed[rule.name] = play(rule, canonical, problem.data, trade, seconds)
    return fixed[rule.name]
