"""Runs of an algorithm under one kind of settings, measured; and the file that keeps them, a line each."""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.settings.problems import EXAMPLES, Problem, rounds_of
from oco.compiler.algorithms import ALGORITHMS
from oco.compiler.selection.judging import judge
from oco.compiler.selection.plan import compile_plan
from oco.compiler.selection.request import AlgorithmRequest
from oco.compiler.selection.verdicts import Applicability
from oco.compiler.theory.theorems import Situation
from oco.dsl.diagnostics import OcoError
from oco.dsl.model import Model
from oco.dsl.writing import write_text
from oco.evaluation.comparators import ComparatorBudget
from oco.evaluation.comparators.base import Comparator
from oco.evaluation.comparators.compare import compare
from oco.evaluation.data import FEWEST_ROUNDS, Data
from oco.evaluation.pilot import score
from oco.evaluation.tuning import SEARCHED
from oco.plan import Plan
from oco.tuning import tuned

KINDS = ("paper", "optimal", "tuned")
PILOT_SEED = 1000
"""Seed of the rounds that settings are tuned on: no table has them."""
PILOT_SECONDS = 10.0
"""Approximate seconds that one search may take."""
RUNS_A_SEARCH = 25
"""A search costs about so many runs as long as what it sees."""
COMPARED = ComparatorBudget(seconds=120.0)
EARLY = 5.0
"""Seconds after which a run that would take far too long is given up."""

Key = tuple[str, str, int, str, int]
"""Problem, algorithm, rounds, kind of settings, seed."""


@dataclass(frozen=True)
class Row:
    """One run. `regret` is against the best fixed decision, `violation` is in units of the constraints' scales; both and `loss` a round.

    said  why there are no numbers
    """

    model: str
    algorithm: str
    rounds: int
    kind: str
    seed: int
    loss: float = math.nan
    regret: float = math.nan
    violation: float = math.nan
    guarantee: str = ""
    seconds: float = math.nan
    said: str = ""

    @property
    def key(self) -> Key:
        return self.model, self.algorithm, self.rounds, self.kind, self.seed


class Kept:
    """The lines of the file, and those that are added to it; without those of the problems that are to be run again."""

    def __init__(self, path: Path, again: Sequence[str] = ()) -> None:
        self.path = path
        lines = list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []
        found = [Row(**{f.name: _read(f, line[f.name]) for f in fields(Row)}) for line in lines]
        self.rows: dict[Key, Row] = {r.key: r for r in found if r.model not in again}

    def add(self, row: Row) -> None:
        """Keep a run, and write the file anew, in order."""
        self.rows[row.key] = row
        out = io.StringIO()
        table = csv.DictWriter(out, [f.name for f in fields(Row)], lineterminator="\n")
        table.writeheader()
        order = {name: k for k, name in enumerate((*EXAMPLES, *KINDS))}
        names = [a.name for a in ALGORITHMS]
        for r in sorted(
            self.rows.values(),
            key=lambda r: (order.get(r.model, -1), r.model, names.index(r.algorithm), r.rounds, order[r.kind], r.seed),
        ):
            table.writerow({f.name: _shown(getattr(r, f.name)) for f in fields(Row)})
        write_text(self.path, out.getvalue())

    def lacks(self, key: Key, seconds: float) -> bool:
        """True where a run is to be made: it is not there, or it was given up and may take so long now."""
        row = self.rows.get(key)
        return row is None or (bool(row.said) and row.seconds <= seconds)


def _read(field: Any, text: str) -> Any:
    return int(text) if field.type == "int" else (float(text) if text else math.nan) if field.type == "float" else text


def _shown(value: Any) -> str:
    return "" if value != value else f"{value:.4g}" if isinstance(value, float) else str(value)


class TooLong(Exception):
    """A run takes more processor time than it may; how much it would take."""

    def __init__(self, expected: float) -> None:
        super().__init__(f"a run would take about {expected:.0f} s")
        self.expected = expected


def measured(plan: Plan, data: Data, best: Comparator, row: Row, seconds: float) -> Row:
    """One run over the data, given up after `seconds` of processor time, or before where it would take three times as many."""
    rounds = data.rounds
    row = replace(row, guarantee=guarantee_text(plan, rounds))
    plan.compiled(plan.backend_for(rounds).name)
    began = time.process_time()

    def watch(done: int, loss: float, violation: float) -> None:
        spent = time.process_time() - began
        expected = spent * rounds / done
        if spent > seconds or (spent > EARLY and expected > 3 * seconds):
            raise TooLong(expected)

    try:
        trace = plan.run(data, seed=row.seed, keep="last", progress=watch)
    except TooLong as stopped:
        return replace(row, seconds=stopped.expected, said=f"{stopped.expected:.0f} s")
    spent = time.process_time() - began
    _, violation, _ = score(trace, plan.choice.situation, 1.0)
    loss = float(trace.loss.mean())
    regret = math.nan if best.losses is None or not len(best.losses) else loss - float(best.losses.mean())
    return replace(row, loss=loss, regret=regret, violation=violation, seconds=spent)


def guarantee_text(plan: Plan, rounds: int) -> str:
    if plan.guarantee is None:
        return "none"
    return ", ".join(
        f"{'-' if b.number(rounds) is None else format(b.number(rounds), '.2g')}{' (vacuous)' if b.vacuous(rounds) else ''}"
        for b in plan.guarantee.bounds
    )


def least_guarantee(plan: Plan, rounds: int) -> Plan:
    """The plan with the constants that are best for a horizon; facts are kept."""
    s, verdict = plan.choice.situation, plan.choice.winner
    assert verdict is not None
    far = Situation(replace(s.canonical, horizon=rounds), s.facts, rounds)
    found = judge(verdict.algorithm, far, AlgorithmRequest(policy=plan.choice.policy))
    settled = plan.with_constants(None, rounds)
    return replace(
        settled, choice=replace(settled.choice, verdicts=(replace(found, applicability=Applicability.CHOSEN),))
    )


@dataclass(frozen=True)
class Plans:
    """Plans of a model by algorithm, kind and rounds, each made once; a word where there is none."""

    model: Model
    weight: float
    made: dict[tuple[str, str, int], Plan | str] = field(default_factory=dict)

    @cached_property
    def paper(self) -> Plan:
        return Plan.of(compile_plan(self.model, None, "paper"))

    @cached_property
    def optimal(self) -> Plan:
        return Plan.of(compile_plan(self.model, None, "optimal", tradeoff=self.weight))

    def applies(self, algorithm: str) -> bool:
        """True where there is a theorem that holds."""
        verdict = next(v for v in self.paper.verdicts if v.name == algorithm)
        return verdict.applicability is not Applicability.REFUSED and verdict.guarantee is not None

    def of(self, algorithm: str, kind: str, rounds: int, spent: float) -> Plan | str:
        """The plan; `spent` is what a run of so many rounds took with other settings, in seconds."""
        key = (algorithm, kind, rounds)
        if key not in self.made:
            try:
                self.made[key] = self._make(algorithm, kind, rounds, spent)
            except OcoError as error:
                self.made[key] = error.message
        return self.made[key]

    def _make(self, algorithm: str, kind: str, rounds: int, spent: float) -> Plan:
        if kind == "paper":
            return self.paper.only(algorithm).with_constants({}, rounds).promised()
        optimal = least_guarantee(self.optimal.only(algorithm), rounds)
        if kind == "optimal":
            return optimal
        affordable = PILOT_SECONDS / RUNS_A_SEARCH / (spent / rounds) if spent > 0 else math.inf
        seen = max(FEWEST_ROUNDS, int(min(rounds, affordable)))
        numbers = tuned(optimal, rounds_of(self.model, math.ceil(seen / SEARCHED), PILOT_SEED)).search.best.numbers
        return optimal.with_constants(numbers, rounds).promised()


def fill(
    kept: Kept, problems: Sequence[Problem], horizons: Sequence[int], kinds: Sequence[str], seconds: float
) -> None:
    """Make the runs that are not kept yet, short ones first; each that takes at most `seconds` of processor time."""
    plans = {id(m): Plans(m, p.weight) for p in problems for m in p.models.values()}
    for rounds in horizons:
        for problem in (p for p in problems if p.longest is None or rounds <= p.longest):
            for seed, model, algorithms in _worlds(problem):
                of_model = plans[id(model)]
                keys = [(problem.name, a, rounds, kind, seed) for a in algorithms for kind in kinds]
                left = [k for k in keys if kept.lacks(k, seconds) and of_model.applies(k[1])]
                if left:
                    data = rounds_of(model, rounds, seed)
                    _fill(kept, of_model, left, data, compare(data.problem, data, "static", COMPARED), seconds)


def _worlds(problem: Problem) -> Iterator[tuple[int, Model, list[str]]]:
    """Seeds, models and the algorithms that run on them: what has the same rounds and the same best fixed decision."""
    models = {id(m): m for m in problem.models.values()}
    for seed in problem.seeds:
        for model in models.values():
            yield seed, model, [a for a, m in problem.models.items() if m is model]


def _fill(kept: Kept, plans: Plans, left: Sequence[Key], data: Data, best: Comparator, seconds: float) -> None:
    for key in left:
        _, algorithm, rounds, kind, seed = key
        alike = [kept.rows.get((*key[:3], k, seed)) for k in KINDS[:2]]
        spent = max((r.seconds for r in alike if r is not None and r.seconds == r.seconds), default=0.0)
        row = Row(*key, seconds=spent, said=f"{spent:.0f} s")
        if not (kind == "tuned" and spent > seconds):
            plan = plans.of(algorithm, kind, rounds, spent)
            row = Row(*key, said=plan) if isinstance(plan, str) else measured(plan, data, best, Row(*key), seconds)
        print(row, flush=True)
        kept.add(row)
