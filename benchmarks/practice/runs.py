"""Default learner, every algorithm and every rule on one problem, scored on the rounds after the first fifth."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import oco
from benchmarks.practice.problems import Problem, priced
from oco.compiler.problem.canonical import Canonical
from oco.compiler.selection.verdicts import Applicability
from oco.dsl.statements import Feedback
from oco.dsl.writing import write_text
from oco.evaluation.baselines.base import FIRST, DecisionRule, LeftOut, Played, play
from oco.evaluation.baselines.gradients import Gradients
from oco.evaluation.baselines.resolve import Resolve, TunedMargin
from oco.evaluation.baselines.rules import rules
from oco.evaluation.baselines.table import RuleLine, rule_line
from oco.evaluation.cost import Trade
from oco.plan import Plan


@dataclass(frozen=True)
class Priced:
    """Results at one price of a unit of violation: the default learner, the algorithms by name and the rules, the cheapest first.

    picked  name of the rule that was cheapest on the first fifth
    """

    price: float
    algorithm: str
    default: RuleLine
    rules: tuple[RuleLine, ...]
    algorithms: tuple[RuleLine, ...] = ()
    picked: str = ""


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
        rows = tuple(_read(p) for p in kept["priced"])
        left_out = tuple(LeftOut(**x) for x in kept["left_out"])
        return cls(kept["name"], kept["words"], kept["rounds"], rows, left_out, kept["seconds"])


def _read(p: dict[str, Any]) -> Priced:
    rules, algorithms = (tuple(RuleLine(**line) for line in p[name]) for name in ("rules", "algorithms"))
    return Priced(p["price"], p["algorithm"], RuleLine(**p["default"]), rules, algorithms, p["picked"])


def compare(problem: Problem, seconds: float) -> Results:
    """Play the default learner, all algorithms and all rules at every price; each rule has so many seconds."""
    began, first = perf_counter(), max(1, int(FIRST * problem.data.rounds))
    results, left_out = list[Priced](), {}
    fixed: dict[str, Played | LeftOut] = {}
    for price in problem.prices:
        plan = oco.compile(priced(problem.model, price), data=problem.data)
        trade = Trade.at_price(plan.canonical, price)
        own = rule_line("default", _scored(plan, problem, first), trade)
        named = (oco.compile(plan.model, algorithm=name, data=problem.data) for name in candidates(plan))
        algorithms = [rule_line(a.algorithm, _scored(a, problem, first), trade) for a in named]
        lines, early = [], {}
        for rule in rules(plan.canonical):
            played = _played(rule, plan.canonical, problem, trade, seconds, fixed)
            if isinstance(played, LeftOut):
                left_out[rule.name] = played
            else:
                lines.append(rule_line(rule.name, played.after(first), trade))
                early[rule.name] = rule_line(rule.name, played.before(first), trade).cost
        lines.sort(key=lambda line: line.cost)
        algorithms.sort(key=lambda line: line.cost)
        picked = min(early, key=lambda name: early[name])
        results.append(Priced(price, plan.algorithm, own, tuple(lines), tuple(algorithms), picked))
    return Results(
        problem.name,
        problem.words,
        problem.data.rounds - first,
        tuple(results),
        tuple(left_out.values()),
        perf_counter() - began,
    )


def candidates(plan: Plan) -> list[str]:
    """Algorithms that apply to the model of a plan and read what its feedback reveals."""
    usable = (v for v in plan.verdicts if v.applicability is not Applicability.REFUSED)
    return [v.name for v in usable if v.algorithm.reads is not Feedback.BANDIT]


def _scored(plan: Plan, problem: Problem, first: int) -> Played:
    trace = plan.run(problem.data)
    return Played("", {}, trace.loss, trace.constraints, trace.equalities).after(first)


def _played(
    rule: DecisionRule,
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
