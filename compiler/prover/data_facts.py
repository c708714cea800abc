"""The ledger once data is there: measured facts beside the proved ones, and an error for each thing that the data contradicts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from oco.compiler.problem.canonical import Assumed, Canonical, Equality, Inequality, entry_labels
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.data_checks import contradictions, outliers, wide_bounds
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.feasibility.scenario import mean
from oco.compiler.prover.feasibility.slater import slater_point
from oco.compiler.prover.function import ScalarFunction
from oco.compiler.prover.measured import Observed, covered, variation_facts
from oco.compiler.prover.phrasing import coordinates, number, plural
from oco.compiler.prover.ranges.cells import NotCovered, over_cells
from oco.compiler.prover.terms.entry import entry
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.compiler.prover.vector import MOST_ENTRIES
from oco.dsl.build import call
from oco.dsl.diagnostics import Diagnostic
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, Kind, names
from oco.dsl.fact_keys import of_the_whole
from oco.dsl.intervals import point
from oco.dsl.statements import Relation, Timing

CONFIDENCE = 0.95
MOST_ROUNDS = 5000  # that are looked at one by one
CONSTANTS = ("bound", "lipschitz.l2", "lipschitz.l1")


def with_data(setting: ProofContext, known: dict[str, Fact], seen: Observed) -> Iterator[Diagnostic]:
    """Add what the data says to `known`; yield what is wrong or worth a word."""
    wrong = list(contradictions(setting, seen))
    yield from wrong
    if wrong or seen.rounds == 0:
        return
    rounds = Step(ProofRule.DATA, f"{plural(seen.rounds, 'round')} of data", seen.rounds)
    known["data.rounds"] = Fact("data.rounds", seen.rounds, Status.MEASURED, rounds)
    for fact in variation_facts(setting, seen):
        yield from _placed(setting.canonical, known, fact)
    for fact in _constants(setting, seen):
        known[fact.key] = fact
        plain = fact.key.removeprefix("data.")
        if known.get(plain, fact).status is Status.UNKNOWN:
            known[plain] = replace(fact, key=plain)
    for assumption in setting.canonical.assumptions:
        yield from _refuted_by_a_round(setting, seen, assumption)
    yield from wide_bounds(setting, seen)
    yield from outliers(setting, seen)


def _placed(problem: Canonical, known: dict[str, Fact], fact: Fact) -> Iterator[Diagnostic]:
    """A measured fact in its place: a declaration that it contradicts is an error, one that it respects stays."""
    before = known.get(fact.key)
    if before is None or before.status is not Status.DECLARED:
        known[fact.key] = fact
        return
    known[f"data.{fact.key}"] = replace(fact, key=f"data.{fact.key}")
    assumption = next(a for a in problem.assumptions if a.key == fact.key)
    if assumption.relation is Relation.LE and fact.value > assumption.value:
        total = fact.why.subject if fact.why is not None else None
        passed = "" if total is None else f", passed in round {int(np.argmax(total > assumption.value)) + 2}"
        message = f"in the data it is {number(fact.value)}{passed}"
        message = f"`{fact.key}` <= {number(assumption.value)} is assumed, and {message}"
        yield Diagnostic("OCO622", message, assumption.span, "correct the number, or look at the data")


# ---- constants over the range of the data


def _constants(setting: ProofContext, seen: Observed) -> Iterator[Fact]:
    """The constants of loss and constraints with the streams confined to the hull of the data."""
    narrow = ProofContext(covered(setting.canonical, seen), setting.budget)
    words = f"with the streams in the range of {plural(seen.rounds, 'round')} of data"
    for prefix, expr in functions(narrow.canonical):
        for fact in ScalarFunction(
            narrow, expr, prefix, prefix.removeprefix("constraints.").replace("loss", "the loss")
        ).facts():
            if fact.key.removeprefix(f"{prefix}.") in CONSTANTS and fact.value is not None:
                why = Step(
                    ProofRule.RANGE_OF_THE_DATA,
                    f"{words}: {number(fact.value)}",
                    fact.value,
                    (fact.why,) if fact.why else (),
                )
                yield Fact(f"data.{fact.key}", fact.value, Status.MEASURED, why, loose=fact.loose)


def functions(problem: Canonical) -> Iterator[tuple[str, Expr]]:
    """The prefix of the facts of each scalar function, and the function."""
    yield "loss", problem.objective
    for c in (c for c in problem.constraints if c.size <= MOST_ENTRIES):
        for at, label in zip(np.ndindex(*c.shape), entry_labels(c.label, c.shape)):
            yield f"constraints.{label}", entry(c.expr, at)


# ---- assumptions that a round refutes


def _refuted_by_a_round(setting: ProofContext, seen: Observed, assumption: Assumed) -> Iterator[Diagnostic]:
    """An upper bound that some round breaks at the centre of the domain, or at its lower or upper end."""
    kind = next((k for k in CONSTANTS if assumption.key.endswith(f".{k}")), None)
    if kind is None or assumption.relation is not Relation.LE:
        return
    about = assumption.key.removesuffix(f".{kind}")
    entries = [(p, e) for p, e in functions(setting.canonical) if about in (p, of_the_whole(p))]
    results = [v for p, e in entries if (v := _per_round(setting, seen, e, kind, p)) is not None]
    values = np.max(results, axis=0) if results else np.zeros(1)
    if not np.max(values) > assumption.value * (1 + 1e-9):
        return
    worst = int(np.argmax(values))
    assumed = f"`{assumption.key}` <= {number(assumption.value)} is assumed"
    message = f"{assumed}, and round {worst + 1} of the data reaches {number(float(values[worst]))}"
    yield Diagnostic("OCO622", message, assumption.span, "correct the number, or look at that round")


def _per_round(setting: ProofContext, seen: Observed, expr: Expr, kind: str, prefix: str) -> np.ndarray | None:
    """Values of |f| or of a norm of its gradient that each round reaches."""
    f = ScalarFunction(setting, expr, prefix, prefix)
    measured = [call("abs", f.expr)]
    if kind != "bound":
        slopes = list(f.gradients[0].values())
        measured = [
            call("norm2" if kind.endswith("l2") else "norm_inf", g) if g.shape else call("abs", g) for g in slopes
        ]
    cells = {n: point(np.asarray(v, dtype=np.float64)) for n, v in seen.streams.items()}
    best: np.ndarray | None = None
    for place in ("centre", "lower", "upper"):
        x = {
            b.name: b.domain.centre() if place == "centre" else getattr(b.domain, place)
            for b in setting.canonical.blocks
        }
        if not all(b.domain.contains(x[b.name]) for b in setting.canonical.blocks):
            continue
        box = {**setting.box, **{n: point(v) for n, v in x.items()}}
        for e in measured:
            try:
                reached = np.broadcast_to(over_cells(setting.simplify(e), box, cells, seen.rounds).lo, (seen.rounds,))
            except NotCovered:
                if seen.rounds > MOST_ROUNDS or not names(e, Kind.STREAM) or set(names(e, Kind.STREAM)) - set(cells):
                    return None
                reached = _one_by_one(e, x, seen)
            best = reached if best is None else np.maximum(best, reached)
    return best


def _one_by_one(expr: Expr, x: Mapping[str, np.ndarray], seen: Observed) -> np.ndarray:
    """The values of a number in each round."""
    rounds = ({n: v[k] for n, v in seen.streams.items()} for k in range(seen.rounds))
    return np.array([float(evaluate(expr, {**x, **values}, k + 1.0)) for k, values in enumerate(rounds)])


# ---- Slater margin in the sample mean


def measured_margin(setting: ProofContext, seen: Observed) -> list[Fact]:
    """slater.margin and slater.point from the sample means of iid streams, less what Hoeffding's inequality allows for chance.

    With probability `CONFIDENCE`, E g_n(x) <= mean of g_n(x) + (range of g_n) sqrt(ln(N / (1 - CONFIDENCE)) / (2 T)) for all n.
    """
    problem = setting.canonical
    unknown = {s.name for s in problem.streams if s.stream.iid and s.mean is None and s.name in seen.streams}
    if not unknown or problem.equalities or any(c.timing is Timing.EACH_ROUND for c in problem.inequalities):
        return []
    streams = tuple(
        replace(s, mean=np.asarray(seen.streams[s.name], dtype=np.float64).mean(axis=0)) if s.name in unknown else s
        for s in problem.streams
    )
    sampled = ProofContext(replace(problem, streams=streams), setting.budget)
    scenario = mean(sampled)
    result = None if scenario is None else slater_point(scenario)
    if scenario is None or result is None:
        return []
    count = sum(c.size for c in problem.inequalities)
    chance = math.sqrt(math.log(count / (1 - CONFIDENCE)) / (2 * seen.rounds))
    margin = math.inf
    for c in problem.inequalities:
        margin = min(margin, -scenario.worst(c.expr, result.x).greatest - _width(setting, c) * chance)
    if not margin > 0:
        return []
    where = ", ".join(f"{n} = {coordinates(v)}" for n, v in result.x.items())
    words = (
        f"every inequality has {number(margin)} to spare in the mean at {where}, with {CONFIDENCE:.0%} confidence "
        f"from {plural(seen.rounds, 'round')} of data (Hoeffding)"
    )
    why = Step(ProofRule.SAMPLE_MEAN, words, margin, (result.step,))
    value = next(iter(result.x.values())) if len(result.x) == 1 else dict(result.x)
    return [Fact("slater.margin", margin, Status.MEASURED, why), Fact("slater.point", value, Status.MEASURED, why)]


def _width(setting: ProofContext, c: Inequality | Equality) -> float:
    """The widest range of values of an entry of a constraint."""
    results = setting.ranges(setting.simplify(c.expr))
    return float(np.max(results.hi - results.lo))
