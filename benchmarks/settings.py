"""Settings compared: `paper`, `optimal` and `tuned` for every algorithm that applies to every example, against the best fixed decision.

Run: python benchmarks/settings.py [--rounds 1000,10000] [--models tracking,portfolio] [--algorithms coldq] [--seconds 20] [--write]

Every run is a line of docs/settings.csv as soon as it is over; a run that is there already is not made again (`--again` does), so an
interrupted table goes on where it stopped. `--write` puts the short tables into docs/settings.md. A run that takes more than `--seconds`
of processor time is given up, one that would by the time of shorter ones is not begun; the table says so; more `--seconds` make it.
Streams without a law of their own are drawn uniformly from the ranges of USUAL, which are narrower than what the models allow.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import oco
from oco.compiler.algorithms import ALGORITHMS
from oco.compiler.choice import judge
from oco.compiler.plan import compile_plan
from oco.compiler.theorems import Situation
from oco.compiler.verdicts import Standing
from oco.dsl.diagnostics import OcoError
from oco.dsl.model import Model
from oco.dsl.writing import write_text
from oco.evaluation.comparators import Budget
from oco.evaluation.comparators.compare import compare
from oco.evaluation.data import Data, load_data
from oco.plan import Plan

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "settings.md"
LINES = ROOT / "docs" / "settings.csv"
EXAMPLES = ROOT / "examples"
MODELS = (
    "job_scheduling",
    "datacenter",
    "tracking",
    "online_qp",
    "portfolio",
    "blind_pricing",
    "matrix_completion",
    "ratings",
)
KINDS = ("paper", "optimal", "tuned")
USUAL: Mapping[str, tuple[float, float]] = {
    "price": (0.0, 100.0),
    "relative": (0.96, 1.05),
    "theta": (-1.0, 1.0),
    "a": (0.0, 0.6),
    "c": (-0.5, 1.0),
    "cost": (-1.0, 0.0),
}
"""What adversarial streams usually look like, by name."""
PILOT_ROUNDS = 400
MOST_BYTES = 2e9
"""Data of a run that is made; the comparator reads it as a whole."""

Planned = Callable[[int], Plan]
"""The plan for so many rounds."""
Key = tuple[str, str, int, str]
"""Model, algorithm, rounds, kind of settings."""

# A stochastic problem that can be satisfied: the fitted exponents of the table on methods whose printed settings stand still.
STOCHASTIC = """\
model stochastic
horizon T = 1000
decision x[4] in box(0, 1)
stream cost[4] in [-1, 1] iid
stream use[4]  ~ uniform(0, 1)
minimize cost @ x
subject to
    cap: use @ x <= 0.5    WHEN
"""
TRADEOFF = 10.0
"""What violations count in the settings of that table: with 1 it pays to violate."""
FITTED = {
    "ofw-tvc": "each round",
    "projection-free": "on average",
    "meta-frank-wolfe": "on average",
    "sinha-vaze": "each round",
}


@dataclass(frozen=True)
class Row:
    """One run. `regret` is against the best fixed decision, `violation` is in units of the constraints' scales; both and `loss` a round.

    said  why there are no numbers
    """

    model: str
    algorithm: str
    rounds: int
    kind: str
    loss: float = math.nan
    regret: float = math.nan
    violation: float = math.nan
    guarantee: str = ""
    seconds: float = math.nan
    said: str = ""

    @property
    def key(self) -> Key:
        return self.model, self.algorithm, self.rounds, self.kind


class Kept:
    """The lines of the file, and those that are added to it."""

    def __init__(self, path: Path, again: Container[str]) -> None:
        self.path = path
        lines = list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []
        found = [Row(**{f.name: _read(f, line[f.name]) for f in fields(Row)}) for line in lines]
        self.rows: dict[Key, Row] = {r.key: r for r in found if r.algorithm not in again}
        self._write()

    def add(self, row: Row) -> None:
        self.rows[row.key] = row
        self._write()

    def _write(self) -> None:
        """The file, each time anew and in order."""
        out = io.StringIO()
        table = csv.DictWriter(out, [f.name for f in fields(Row)], lineterminator="\n")
        table.writeheader()
        order = {name: k for k, name in enumerate((*MODELS, *KINDS))}
        names = [a.name for a in ALGORITHMS]
        for row in sorted(
            self.rows.values(), key=lambda r: (order[r.model], names.index(r.algorithm), r.rounds, order[r.kind])
        ):
            table.writerow({f.name: _shown(getattr(row, f.name)) for f in fields(Row)})
        write_text(self.path, out.getvalue())

    def lacks(self, key: Key, seconds: float) -> bool:
        """Whether a run is to be made: it is not there, or it was given up and may take so long now."""
        row = self.rows.get(key)
        return row is None or (bool(row.said) and row.seconds <= seconds)

    def seconds(self, row: Key) -> float:
        """What a run should take, by the longest of the same settings that was made."""
        model, algorithm, rounds, kind = row
        same = [r for r in self.rows.values() if (r.model, r.algorithm, r.kind) == (model, algorithm, kind)]
        known = [r for r in same if r.rounds < rounds and not math.isnan(r.seconds)]
        longest = max(known, key=lambda r: r.rounds, default=None)
        return 0.0 if longest is None else longest.seconds * rounds / longest.rounds


def _read(field: Any, text: str) -> Any:
    return int(text) if field.type == "int" else (float(text) if text else math.nan) if field.type == "float" else text


def _shown(value: Any) -> str:
    return "" if value != value else f"{value:.4g}" if isinstance(value, float) else str(value)


class TooLong(Exception):
    """A run took more processor time than it may; how much it would have taken."""

    def __init__(self, expected: float) -> None:
        super().__init__(f"a run would take about {expected:.0f} s")
        self.expected = expected


def data_for(model: Model, rounds: int, seed: int = 0) -> Data:
    """Rounds drawn from the model's laws and, where a stream has none, from its usual range."""
    from oco.compiler.canonical import canonical

    problem, rng = canonical(model), np.random.default_rng(seed)
    given: dict[str, Any] = {}
    for s in problem.streams:
        if s.law is not None:
            continue
        low, high = USUAL.get(s.name, (float(s.lower.min()), float(s.upper.max())))
        shape = (rounds, *s.shape)
        given[s.name] = rng.integers(int(low), int(high) + 1, shape) if s.integer else rng.uniform(low, high, shape)
    if not given:
        return load_data(problem, None, seed=seed, rounds=rounds)
    return load_data(problem, given, seed=seed)


def guarantee_text(plan: Plan, rounds: int) -> str:
    if plan.guarantee is None:
        return "none"
    return ", ".join(
        f"{'-' if b.number(rounds) is None else format(b.number(rounds), '.2g')}{' (vacuous)' if b.vacuous(rounds) else ''}"
        for b in plan.guarantee.bounds
    )


def measured(plan: Plan, data: Data, best: Any, kind: str, seconds: float) -> Row:
    """One run over the data, given up after `seconds` of processor time."""
    from oco.evaluation.pilot import score

    name, rounds = plan.canonical.name, data.rounds
    row = Row(name, plan.algorithm, rounds, kind, guarantee=guarantee_text(plan, rounds))
    plan.compiled(plan.backend_for(rounds).name)
    began = time.process_time()

    def watch(done: int, loss: float, violation: float) -> None:
        spent = time.process_time() - began
        if spent > seconds:
            raise TooLong(spent * rounds / done)

    try:
        trace = plan.run(data, seed=0, keep="last", progress=watch)
    except TooLong as stopped:
        return replace(row, seconds=stopped.expected, said=f"{stopped.expected:.0f} s")
    spent = time.process_time() - began
    _, violation, _ = score(trace, plan.choice.situation, 1.0)
    loss = float(trace.loss.mean())
    known = best.losses is not None and len(best.losses)
    regret = loss - float(np.mean(best.losses)) if known else math.nan
    return replace(row, loss=loss, regret=regret, violation=violation, seconds=spent)


def searched(plan: Plan, rounds: int) -> Plan:
    """The plan with the constants that are best for a horizon; facts are kept."""
    s, verdict = plan.choice.situation, plan.choice.winner
    assert verdict is not None
    far = Situation(replace(s.canonical, horizon=rounds), s.facts, rounds)
    found = judge(verdict.algorithm, far, {}, None, plan.choice.policy)
    settled = plan.with_constants(None, rounds)
    return replace(settled, choice=replace(settled.choice, judged=(replace(found, standing=Standing.CHOSEN),)))


@dataclass(frozen=True)
class Wanted:
    """What is to be run."""

    models: Sequence[str]
    algorithms: Sequence[str]
    horizons: Sequence[int]
    kinds: Sequence[str]
    seconds: float


def fill(kept: Kept, wanted: Wanted) -> None:
    """Run what is not there yet, short runs first."""
    plans = {name: Plans(oco.load(EXAMPLES / f"{name}.oco")) for name in wanted.models}
    for rounds, name in product(wanted.horizons, wanted.models):
        model = plans[name].model
        keys = [(name, a, rounds, kind) for a in wanted.algorithms for kind in wanted.kinds]
        left = [k for k in keys if kept.lacks(k, wanted.seconds) and plans[name].applies(k[1])]
        if (size := _bytes(model, rounds)) > MOST_BYTES or not left:
            for _, algorithm, _, kind in left:
                kept.add(Row(name, algorithm, rounds, kind, said=f"{size / 1e9:.0f} GB of data"))
            continue
        data = data_for(model, rounds)
        best = compare(data.problem, data, "static", Budget(seconds=20.0))
        for key in left:
            expected = kept.seconds(key)
            row = Row(*key, seconds=expected, said=f"{expected:.0f} s")
            if expected <= wanted.seconds:
                row = plans[name].row(key[1], key[3], data, best, wanted.seconds)
            print(row, flush=True)
            kept.add(row)


def _bytes(model: Model, rounds: int) -> float:
    """The memory that the streams take."""
    from oco.compiler.canonical import canonical

    return 8.0 * rounds * sum(math.prod(s.shape) for s in canonical(model).streams)


@dataclass(frozen=True)
class Plans:
    """Plans by algorithm and kind, each made once: `tuned` for all horizons, on rounds that come before those of the table."""

    model: Model
    pilot_rounds: int = PILOT_ROUNDS
    weight: float = 1.0
    made: dict[tuple[str, str], Planned | str] = field(default_factory=dict)

    def row(self, algorithm: str, kind: str, data: Data, best: Any, seconds: float) -> Row:
        key = (algorithm, kind)
        try:
            if key not in self.made:
                self.made[key] = self.plan(algorithm, kind)
            found = self.made[key]
            if not isinstance(found, str):
                return measured(found(data.rounds), data, best, kind, seconds)
        except OcoError as error:
            self.made[key] = found = error.message
        return Row(self.model.name, algorithm, data.rounds, kind, said=found)

    @cached_property
    def paper(self) -> Plan:
        return Plan.of(compile_plan(self.model, None, "paper"))

    @cached_property
    def optimal(self) -> Plan:
        return Plan.of(compile_plan(self.model, None, "optimal", tradeoff=self.weight))

    def applies(self, algorithm: str) -> bool:
        verdict = next(v for v in self.paper.verdicts if v.name == algorithm)
        return verdict.standing is not Standing.REFUSED and verdict.guarantee is not None

    def plan(self, algorithm: str, kind: str) -> Planned:
        if kind == "paper":
            paper = self.paper.only(algorithm)
            return lambda rounds: paper.with_constants({}, rounds).promised()
        optimal = self.optimal.only(algorithm)
        if kind == "optimal":
            return lambda rounds: searched(optimal, rounds)
        from oco.tuning import tuned

        numbers = tuned(optimal, data_for(self.model, self.pilot_rounds, seed=1)).search.best.numbers
        return lambda rounds: optimal.with_constants(numbers, rounds).promised()


def exponents(horizons: list[int], seconds: float) -> Iterator[tuple[str, str, list[Row]]]:
    """The four methods on the stochastic problem: their average regret and violation over the horizons."""
    for name, when in FITTED.items():
        plans = Plans(oco.parse(STOCHASTIC.replace("WHEN", when)), 1200, TRADEOFF)
        for kind in KINDS:
            found = []
            for rounds in horizons:
                data = data_for(plans.model, rounds)
                best = compare(data.problem, data, "static", Budget(seconds=20.0))
                found.append(plans.row(name, kind, data, best, seconds))
            yield name, kind, found


def slope(values: list[float], horizons: list[int]) -> str:
    """The exponent of T in values at several horizons, by least squares in log-log; a word where a value is not positive."""
    kept = [(math.log(T), math.log(v)) for T, v in zip(horizons, values) if math.isfinite(v) and v > 1e-9]
    if len(kept) < 2:
        return "none left" if all(not v > 1e-9 for v in values if math.isfinite(v)) else "-"
    return f"{np.polyfit(*np.array(kept).T, 1)[0]:+.2f}"


def table(kept: Kept, horizons: list[int]) -> str:
    """Of each example the algorithm that is chosen for it: regret and violation a round over the horizons."""
    lines = [
        f"| model | algorithm | settings | {' | '.join(f'T = {T}' for T in horizons)} |",
        f"| --- | --- | --- | {' | '.join('---' for _ in horizons)} |",
    ]
    for name in MODELS:
        algorithm = oco.compile(oco.load(EXAMPLES / f"{name}.oco")).algorithm
        for kind in KINDS:
            rows = [kept.rows.get((name, algorithm, T, kind)) for T in horizons]
            cells = ["" if r is None else r.said or f"{r.regret:.3g}, {r.violation:.3g}" for r in rows]
            lines.append(f"| {name} | {algorithm} | {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def exponent_table(found: list[tuple[str, str, list[Row]]], horizons: list[int]) -> str:
    ends = " ".join(f"T = {T}," for T in horizons).rstrip(",")
    lines = [
        f"| algorithm | settings | average regret at {ends} | exponent of its size | average violation | exponent |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, kind, rs in found:
        columns = []
        for values in ([r.regret for r in rs], [r.violation for r in rs]):
            columns += [
                ", ".join(r.said or f"{v:.3g}" for r, v in zip(rs, values)),
                slope(list(map(abs, values)), horizons),
            ]
        lines.append(f"| {name} | {kind} | {' | '.join(columns)} |")
    return "\n".join(lines)


def main() -> None:
    names = ",".join(a.name for a in ALGORITHMS)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", default="1000,10000,100000")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--algorithms", default=names)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--again", default="", help="algorithms whose runs are made again")
    parser.add_argument("--seconds", type=float, default=20.0, help="of one run; longer ones are left out")
    parser.add_argument("--fitted", default="1000,10000,100000", help="horizons of the exponents")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    o = parser.parse_args()
    models, algorithms, kinds, again = (
        [w for w in text.split(",") if w] for text in (o.models, o.algorithms, o.kinds, o.again)
    )
    horizons, fitted = ([int(T) for T in text.split(",") if T] for text in (o.rounds, o.fitted))
    kept = Kept(LINES, again)
    fill(kept, Wanted(models, algorithms, horizons, kinds, o.seconds))
    of_exponents = exponent_table(list(exponents(fitted, o.seconds)), fitted) if fitted else ""
    print(of_exponents)
    if o.write:
        words = PAGE.read_text(encoding="utf-8").split("<!-- tables -->")[0]
        write_text(PAGE, f"{words}<!-- tables -->\n\n{of_exponents}\n\n{table(kept, horizons)}\n")


if __name__ == "__main__":
    main()
