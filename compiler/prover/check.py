"""`check(model)`: the ledger of everything that is known about a model, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical, Equality, Inequality, canonical, entry_labels
from oco.compiler.prover.assumed import declared
from oco.compiler.prover.complaints import complaints
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.curvature.exp_concavity import exp_concavity
from oco.compiler.prover.data_facts import measured_margin, with_data
from oco.compiler.prover.domain import domain_facts
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.feasibility import feasible
from oco.compiler.prover.function import ScalarFunction
from oco.compiler.prover.measured import Observed, Rounds, observed
from oco.compiler.prover.move_costs import move_facts
from oco.compiler.prover.notices import notices
from oco.compiler.prover.overflow import overflows
from oco.compiler.prover.phrasing import number
from oco.compiler.prover.search_budget import USUAL, SearchBudget
from oco.compiler.prover.structure_facts import oracle_facts
from oco.compiler.prover.terms.entry import entry
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.compiler.prover.vector import MOST_ENTRIES, worst_of_many
from oco.dsl.diagnostics import Diagnostic, Findings
from oco.dsl.fact_keys import catalogue
from oco.dsl.load import parse
from oco.dsl.model import Model
from oco.dsl.suppression import without_allowed


def check(
    model: Model, data: Rounds | None = None, best: Rounds | None = None, *, budget: SearchBudget = USUAL
) -> Facts:
    """Every fact of the catalogue for this model: proved where a derivation is found, else unknown.

    data    arrays by stream, the round first: adds measured facts, and errors for what the data contradicts
    best    the best decision of each round of that data, by name, from which the path length is measured
    budget  what the searches of the proofs may take

    Raises OcoError with everything that is wrong: functions that are not convex or not defined, assumptions that cannot hold.
    """
    return check_canonical(model, canonical(model), data, best, budget=budget)


def check_canonical(
    model: Model,
    problem: Canonical,
    data: Rounds | None = None,
    best: Rounds | None = None,
    *,
    budget: SearchBudget = USUAL,
) -> Facts:
    """`check` of a model of which the canonical problem is known."""
    setting = ProofContext(problem, budget)
    seen = None if data is None else observed(problem, data, best)
    functions = _functions(setting)
    known, result = _convexities(setting, functions), Findings()
    result.add(complaints(setting, known))
    result.raise_if_any()
    known |= {f.key: f for f in _worked_out(setting, functions)}
    result.add(notices(setting))
    result.add(overflows(setting, known))
    labels = tuple(c.label for c in problem.constraints)
    for key in catalogue(labels):
        known.setdefault(key, Fact(key, None, Status.UNKNOWN))
    attained = (
        {k: v for fs in functions.values() for f in fs for k, v in f.attained.items()} if problem.assumptions else {}
    )
    result.add(_declare(problem, known, frozenset(known) - frozenset(feasible.KEYS), attained))
    if seen is not None:
        result.add(with_data(setting, known, seen))
    result.raise_if_any()
    solved, warnings = _solved(setting, seen)
    facts = {key: fact for key, fact in known.items() if key not in solved} | solved
    warnings = tuple(dict.fromkeys((*without_allowed(result.items), *warnings)))
    return Facts(model, facts, warnings, budget.effort, checked_again if seen is None else None)


def checked_again(text: str, name: str, effort: float) -> Facts:
    """Facts of a model's text, the same as those that another process had."""
    return check(parse(text, name=name), budget=SearchBudget(effort))


LOSS = "loss"
Functions = Mapping[str, list[ScalarFunction]]


def _functions(setting: ProofContext) -> Functions:
    """The loss under "loss", and the entries of each constraint under its label; none beyond `MOST_ENTRIES`."""
    problem = setting.canonical
    results = {LOSS: [ScalarFunction(setting, problem.objective, "loss", "the loss")]}
    left = MOST_ENTRIES
    for c in problem.constraints:
        own = c.size <= (left if c.shape else MOST_ENTRIES)
        left -= c.size if own else 0
        places = zip(np.ndindex(*c.shape), entry_labels(c.label, c.shape)) if own else ()
        results[c.label] = [
            ScalarFunction(setting, entry(c.expr, at), f"constraints.{label}", label) for at, label in places
        ]
    return results


def _convexities(setting: ProofContext, functions: Functions) -> dict[str, Fact]:
    """Facts on the convexity of each function. Raises OcoError with every expression that may be undefined."""
    result, problem = Findings(), setting.canonical
    known: dict[str, Fact] = {}
    for label, expr in ((LOSS, problem.objective), *((c.label, c.expr) for c in problem.constraints)):
        with result.guard():
            setting.ranges.must_be_defined(expr)
            known |= {f.convexity.key: f.convexity for f in functions[label]}
    result.raise_if_any()
    for c in problem.constraints:
        if not functions[c.label]:
            fact = next(worst_of_many(setting, c))
            known[fact.key] = fact
        elif c.shape:
            key = f"constraints.{c.label}.convex"
            known[key] = _worst(key, [f.convexity for f in functions[c.label]])
    return known


def _worked_out(setting: ProofContext, functions: Functions) -> Iterator[Fact]:
    """The facts that need no solver."""
    yield from domain_facts(setting.canonical)
    yield from oracle_facts(setting)
    of_loss = {f.key: f for f in functions[LOSS][0].facts()}
    yield from of_loss.values()
    yield exp_concavity(setting, of_loss)
    yield from move_facts(setting.canonical, setting.budget)
    for c in setting.canonical.constraints:
        yield from constraint_facts(setting, c, functions[c.label])


def _solved(setting: ProofContext, seen: Observed | None) -> tuple[dict[str, Fact], tuple[Diagnostic, ...]]:
    """Facts that may need a solver, in the order of their keys, with what is measured and assumed of them."""
    facts, warnings = feasible.Feasibility(setting).find()
    known, results = dict(facts), Findings()
    if seen is not None and known["slater.margin"].status in (Status.UNKNOWN, Status.CONDITION):
        known |= {f.key: f for f in measured_margin(setting, seen)}
    results.add(warnings)
    results.add(_declare(setting.canonical, known, frozenset(known), {}))
    results.raise_if_any()
    known |= {f.key: f for f in _of_common(known)}
    return {key: known[key] for key in feasible.KEYS}, without_allowed(results.items)


def _of_common(known: Mapping[str, Fact]) -> Iterator[Fact]:
    """Facts that follow from an assumption that one decision serves every round."""
    common = known["feasible.common"]
    if common.status is not Status.DECLARED or not common.value or common.why is None:
        return
    for key in ("feasible.each_round", "feasible.mean"):
        if not known[key].known:
            why = Step(ProofRule.COMMON_POINT, "one decision serves every round", True, (common.why,))
            yield Fact(key, True, Status.DECLARED, why)


def _declare(
    problem: Canonical, known: dict[str, Fact], keys: frozenset[str], attained: Mapping[str, float]
) -> list[Diagnostic]:
    """Put the assumptions about `keys` into `known`; what there is to say about them."""
    message: list[Diagnostic] = []
    attained = {**attained, **dict(_attained_sizes(problem, known))} if problem.assumptions else attained
    for a in problem.assumptions:
        if a.key in keys:
            known[a.key], about = declared(a, known[a.key], attained)
            message += [] if about is None else [about]
    return message


def _attained_sizes(problem: Canonical, known: Mapping[str, Fact]) -> Iterator[tuple[str, float]]:
    """Sizes of the domain that are not only bounds: some decisions are as far apart, or as far out."""
    loose = {f"domain.{size}" for b in problem.blocks for size in b.domain.bounds_only}
    for key in ("domain.diameter.l2", "domain.diameter.l1", "domain.radius"):
        if key in known and key not in loose and known[key].status is Status.PROVED:
            yield key, known[key].value


def constraint_facts(setting: ProofContext, c: Inequality | Equality, entries: list[ScalarFunction]) -> Iterator[Fact]:
    """The facts of each entry, and for a vector those of its worst entry under the label itself."""
    if not entries:
        yield from worst_of_many(setting, c)
        return
    results: list[Mapping[str, Fact]] = []
    for f in entries:
        facts = list(f.facts())
        results.append({fact.key.removeprefix(f.prefix): fact for fact in facts})
        yield from facts
    if c.shape:
        for kind in results[0]:
            yield _worst(f"constraints.{c.label}{kind}", [e[kind] for e in results])


def _worst(key: str, entries: list[Fact]) -> Fact:
    """Combine the facts of all entries into one that holds of every entry."""
    statuses = [f.status for f in entries]
    premises = tuple(f.why for f in entries if f.why is not None)
    refuted = next((f for f in entries if f.status is Status.REFUTED), None)
    if refuted is not None:
        return Fact(key, refuted.value, Status.REFUTED, refuted.why, refuted.cite, witness=refuted.witness)
    if Status.UNKNOWN in statuses:
        unknown = (f.why for f in entries if f.status is Status.UNKNOWN)
        ended = (why for why in unknown if why is not None and why.rule == ProofRule.NOT_SEARCHED)
        return Fact(key, None, Status.UNKNOWN, next(ended, None))
    if isinstance(entries[0].value, str):
        words = " or ".join(dict.fromkeys(f.value for f in entries))
        return Fact(key, words, Status.PROVED, Step(ProofRule.EVERY_ENTRY, f"its entries are {words}", words))
    pick: Callable[[list[Any]], Any] = (
        all if key.endswith(".convex") else min if key.endswith((".strong_convexity.l2", ".lower")) else max
    )
    value = pick([f.value for f in entries])
    loose = any(f.loose for f in entries if f.value == value)
    words = "it holds for every entry" if isinstance(value, bool) else f"of the worst entry: {number(value)}"
    return Fact(key, value, Status.PROVED, Step(ProofRule.EVERY_ENTRY, words, value, premises), loose=loose)
