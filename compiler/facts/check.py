"""`check(model)`: the ledger of everything that is known about a model, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from oco.compiler.canonical import Canonical, Equality, Inequality, canonical, entry_labels
from oco.compiler.facts import feasible
from oco.compiler.facts.assumed import declared
from oco.compiler.facts.complaints import complaints
from oco.compiler.facts.data_facts import measured_margin, with_data
from oco.compiler.facts.domain import domain_facts
from oco.compiler.facts.entry import entry
from oco.compiler.facts.function import Function
from oco.compiler.facts.measured import Observed, Rounds, observed
from oco.compiler.facts.notices import heard, notices
from oco.compiler.facts.setting import Setting
from oco.compiler.facts.structure_facts import oracle_facts
from oco.compiler.facts.types import Deferred, Fact, Facts, Status, Step
from oco.compiler.facts.vector import MOST_ENTRIES, worst_of_many
from oco.compiler.facts.words import number
from oco.dsl.diagnostics import Diagnostic, Findings
from oco.dsl.fact_keys import catalogue
from oco.dsl.model import Model


def check(model: Model, data: Rounds | None = None, best: Rounds | None = None) -> Facts:
    """Every fact of the catalogue for this model: proved where a derivation is found, else unknown.

    data  arrays by stream, the round first: adds measured facts, and errors for what the data contradicts
    best  the best decision of each round of that data, by name, from which the path length is measured

    Raises OcoError with everything that is wrong: functions that are not convex or not defined, assumptions that cannot hold.
    """
    problem = canonical(model)
    setting = Setting(problem)
    seen = None if data is None else observed(problem, data, best)
    known, found = _worked_out(setting), Findings()
    found.add(complaints(setting, known))
    found.add(notices(setting))
    labels = tuple(c.label for c in problem.constraints)
    for key in catalogue(labels):
        known.setdefault(key, Fact(key, None, Status.UNKNOWN))
    found.add(_declare(problem, known, frozenset(known) - frozenset(feasible.KEYS)))
    if seen is not None:
        found.add(with_data(setting, known, seen))
    found.raise_if_any()
    return Facts(model, known, heard(found.items), (Deferred(feasible.KEYS, lambda: _solved(setting, seen)),))


def _worked_out(setting: Setting) -> dict[str, Fact]:
    """The facts that need no solver. Raises OcoError with every function that may be undefined."""
    problem, found = setting.canonical, Findings()
    known = {f.key: f for f in (*domain_facts(problem), *oracle_facts(setting))}
    with found.guard():
        setting.ranges.must_be_defined(problem.objective)
        known |= {f.key: f for f in Function(setting, problem.objective, "loss", "the loss").facts()}
    for c in problem.constraints:
        with found.guard():
            setting.ranges.must_be_defined(c.expr)
            known |= {f.key: f for f in constraint_facts(setting, c)}
    found.raise_if_any()
    return known


def _solved(setting: Setting, seen: Observed | None) -> tuple[Mapping[str, Fact], tuple[Diagnostic, ...]]:
    """The facts that need a solver, with what is measured and assumed of them."""
    facts, warnings = feasible.Feasibility(setting).find()
    known, found = dict(facts), Findings()
    if seen is not None and known["slater.margin"].status is Status.UNKNOWN:
        known |= {f.key: f for f in measured_margin(setting, seen)}
    found.add(warnings)
    found.add(_declare(setting.canonical, known, frozenset(known)))
    found.raise_if_any()
    return known, heard(found.items)


def _declare(problem: Canonical, known: dict[str, Fact], keys: frozenset[str]) -> list[Diagnostic]:
    """Put the assumptions about `keys` into `known`; what there is to say about them."""
    said: list[Diagnostic] = []
    for a in problem.assumptions:
        if a.key in keys:
            known[a.key], about = declared(a, known[a.key], {})
            said += [] if about is None else [about]
    return said


def constraint_facts(setting: Setting, c: Inequality | Equality) -> Iterator[Fact]:
    """The facts of each entry, and for a vector those of its worst entry under the label itself."""
    if c.size > MOST_ENTRIES:
        yield from worst_of_many(setting, c)
        return
    entries: list[Mapping[str, Fact]] = []
    for at, label in zip(np.ndindex(*c.shape), entry_labels(c.label, c.shape)):
        prefix = f"constraints.{label}"
        found = list(Function(setting, entry(c.expr, at), prefix, label).facts())
        entries.append({f.key.removeprefix(prefix): f for f in found})
        yield from found
    if c.shape:
        for kind in entries[0]:
            yield _worst(f"constraints.{c.label}{kind}", [e[kind] for e in entries])


def _worst(key: str, entries: list[Fact]) -> Fact:
    """What holds of every entry."""
    statuses = [f.status for f in entries]
    premises = tuple(f.why for f in entries if f.why is not None)
    refuted = next((f for f in entries if f.status is Status.REFUTED), None)
    if refuted is not None:
        return Fact(key, refuted.value, Status.REFUTED, refuted.why, refuted.cite, witness=refuted.witness)
    if Status.UNKNOWN in statuses:
        return Fact(key, None, Status.UNKNOWN)
    if isinstance(entries[0].value, str):
        words = " or ".join(dict.fromkeys(f.value for f in entries))
        return Fact(key, words, Status.PROVED, Step("every entry", f"its entries are {words}", words))
    pick: Callable[[list[Any]], Any] = (
        all if key.endswith(".convex") else min if key.endswith((".strong_convexity.l2", ".lower")) else max
    )
    value = pick([f.value for f in entries])
    loose = any(f.loose for f in entries if f.value == value)
    words = "it holds for every entry" if isinstance(value, bool) else f"of the worst entry: {number(value)}"
    return Fact(key, value, Status.PROVED, Step("every entry", words, value, premises), loose=loose)
