"""Settings compared: `paper`, `optimal` and `tuned` for every algorithm that applies to every example, against the best fixed decision.

Run: python benchmarks/settings.py [--rounds 1000,10000] [--models tracking,portfolio] [--seconds 20] [--write]
`--write` puts the tables into docs/settings.md. A run that would take longer than `--seconds` is left out, and the table says so.
Streams without a law of their own are drawn uniformly from the ranges of USUAL, which are narrower than what the models allow.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import oco
from oco.compiler.algorithms import ALGORITHMS
from oco.dsl.diagnostics import OcoError
from oco.dsl.model import Model
from oco.evaluation.comparators import Budget, compare
from oco.evaluation.data import Data, load_data
from oco.plan import Plan

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "settings.md"
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
    """One run. `regret` is against the best fixed decision, `violation` is in units of the constraints' scales; both a round."""

    model: str
    algorithm: str
    rounds: int
    kind: str
    loss: float
    regret: float
    violation: float
    guarantee: str
    said: str = ""


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


def plan_for(model: Model, name: str, kind: str, pilot: Data | None, weight: float = 1.0) -> Plan:
    """The plan with one kind of settings; `tuned` on rounds that come before those of the table."""
    plan = oco.compile(model, name, "paper" if kind == "paper" else "optimal", tradeoff=weight)
    if kind != "tuned":
        return plan
    from oco.tuning import tuned

    return tuned(plan, pilot).plan


def measured(plan: Plan, data: Data, best: Any, kind: str, seconds: float) -> Row:
    """One run over the data, given up where its first rounds say that it takes too long."""
    from oco.evaluation.pilot import score

    name, rounds = plan.canonical.name, data.rounds
    planned = plan if plan.horizon == rounds else plan.with_horizon(rounds)
    guarantee = guarantee_text(planned, rounds)
    began = time.perf_counter()
    tenth = data.first(min(rounds, 200))
    planned.run(tenth if tenth.rounds == rounds else iter(tenth), seed=0)
    expected = (time.perf_counter() - began) * rounds / tenth.rounds
    if expected > seconds:
        return Row(name, plan.algorithm, rounds, kind, math.nan, math.nan, math.nan, guarantee, f"{expected:.0f} s")
    trace = planned.run(data, seed=0)
    _, violation, _ = score(trace, planned.choice.situation, 1.0)
    loss = float(trace.loss.mean())
    known = best.losses is not None and len(best.losses)
    regret = loss - float(np.mean(best.losses)) if known else math.nan
    return Row(name, plan.algorithm, rounds, kind, loss, regret, violation, guarantee)


def rows(models: list[str], horizons: list[int], kinds: list[str], seconds: float) -> Iterator[Row]:
    for name in models:
        model = oco.load(EXAMPLES / f"{name}.oco")
        pilot = data_for(model, 400, seed=1)
        applicable = [a.name for a in ALGORITHMS if _applies(model, a.name)]
        plans: dict[tuple[str, str], Plan | str] = {}
        for rounds in horizons:
            data = data_for(model, rounds)
            best = compare(data.problem, data, "static", Budget(seconds=20.0))
            for algorithm in applicable:
                for kind in kinds:
                    yield _row(plans, model, algorithm, kind, pilot, data, best, seconds)


def _row(
    plans: dict[tuple[str, str], Plan | str],
    model: Model,
    algorithm: str,
    kind: str,
    pilot: Data,
    data: Data,
    best: Any,
    seconds: float,
    weight: float = 1.0,
) -> Row:
    key = (algorithm, kind)
    try:
        if key not in plans:
            plans[key] = plan_for(model, algorithm, kind, pilot, weight)
        found = plans[key]
        if not isinstance(found, str):
            return measured(found, data, best, kind, seconds)
    except OcoError as error:
        plans[key] = found = error.message
    return Row(model.name, algorithm, data.rounds, kind, math.nan, math.nan, math.nan, "", found)


def _applies(model: Model, name: str) -> bool:
    try:
        return oco.compile(model, name, "paper").guarantee is not None
    except OcoError:
        return False


def exponents(horizons: list[int], seconds: float) -> Iterator[tuple[str, str, list[Row]]]:
    """The four methods on the stochastic problem: their average regret and violation over the horizons."""
    for name, when in FITTED.items():
        model = oco.parse(STOCHASTIC.replace("WHEN", when))
        pilot = data_for(model, 1200, seed=1)
        for kind in KINDS:
            found = []
            plans: dict[tuple[str, str], Plan | str] = {}
            for rounds in horizons:
                data = data_for(model, rounds)
                best = compare(data.problem, data, "static", Budget(seconds=20.0))
                found.append(_row(plans, model, name, kind, pilot, data, best, seconds, TRADEOFF))
            yield name, kind, found


def slope(values: list[float], horizons: list[int]) -> str:
    """The exponent of T in values at several horizons, by least squares in log-log; a word where a value is not positive."""
    kept = [(math.log(T), math.log(v)) for T, v in zip(horizons, values) if math.isfinite(v) and v > 1e-9]
    if len(kept) < 2:
        return "none left" if all(not v > 1e-9 for v in values if math.isfinite(v)) else "-"
    return f"{np.polyfit(*np.array(kept).T, 1)[0]:+.2f}"


def table(found: list[Row]) -> str:
    lines = [
        "| model | algorithm | T | settings | loss | regret | violation | guarantees (regret, violation) |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for r in found:
        numbers = (
            [r.said or "-", "", ""] if math.isnan(r.loss) else [f"{x:.4g}" for x in (r.loss, r.regret, r.violation)]
        )
        lines.append(f"| {r.model} | {r.algorithm} | {r.rounds} | {r.kind} | {' | '.join(numbers)} | {r.guarantee} |")
    return "\n".join(lines)


def exponent_table(found: list[tuple[str, str, list[Row]]], horizons: list[int]) -> str:
    ends = " ".join(f"T = {T}," for T in horizons).rstrip(",")
    lines = [
        f"| algorithm | settings | average regret at {ends} | exponent | average violation | exponent |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, kind, rs in found:
        columns = []
        for values in ([r.regret for r in rs], [r.violation for r in rs]):
            columns += [", ".join(f"{v:.3g}" for v in values), slope(values, horizons)]
        lines.append(f"| {name} | {kind} | {' | '.join(columns)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", default="1000,10000,100000")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--kinds", default=",".join(KINDS), help="of the settings in the large table")
    parser.add_argument("--seconds", type=float, default=20.0, help="of one run; longer ones are left out")
    parser.add_argument("--fitted", default="1000,10000,100000", help="horizons of the exponents")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    horizons, fitted = ([int(T) for T in text.split(",") if T] for text in (options.rounds, options.fitted))
    of_exponents = exponent_table(list(exponents(fitted, options.seconds)), fitted) if fitted else ""
    print(of_exponents, flush=True)
    found = []
    models, kinds = ([w for w in text.split(",") if w] for text in (options.models, options.kinds))
    for row in rows(models, horizons, kinds, options.seconds):
        print(row, flush=True)
        found.append(row)
    if options.write:
        words = PAGE.read_text(encoding="utf-8").split("<!-- tables -->")[0]
        PAGE.write_text(f"{words}<!-- tables -->\n\n{of_exponents}\n\n{table(found)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
