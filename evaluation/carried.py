"""Measured runs in another process: plain parts, and the run that they make."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from oco.compiler.problem.canonical import canonical
from oco.dsl.contained import self_contained
from oco.dsl.load import parse
from oco.dsl.text.printer import print_model
from oco.evaluation.data import Data

if TYPE_CHECKING:
    from oco.evaluation.measured_run import MeasuredRun


def parts_of(run: MeasuredRun) -> dict[str, Any]:
    """Parts of a run that any process can read: the text of its model, arrays, words. Comparators are computed again."""
    data, promise, record, origin = run.data, run.promise, run.record, run.origin
    plain: dict[str, Any] = {name: dict(getattr(origin, name)) for name in ("recipe", "start", "draws", "facts")}
    return {
        "model": print_model(self_contained(run.problem.model)),
        "name": run.problem.name,
        "given": dict(data.given),
        "drawn": [s.name for s in data.drawn],
        "data": {"rounds": data.rounds, "seed": data.seed, "notes": data.notes, "skipped": data.skipped},
        "record": replace(record, decisions=dict(record.decisions)),
        "promise": replace(promise, curves=dict(promise.curves), settings=dict(promise.settings)),
        "origin": replace(origin, **plain),
        "notes": run.notes,
        "warnings": run.warnings,
        "budget": run.budget,
        "certificate": run.own_certificate,
    }


def run_of(kind: type[MeasuredRun], parts: dict[str, Any]) -> MeasuredRun:
    """Run of these parts."""
    problem = canonical(parse(parts["model"], name=parts["name"]))
    drawn = tuple(s for s in problem.streams if s.name in parts["drawn"])
    data = Data(problem, given=MappingProxyType(parts["given"]), drawn=drawn, **parts["data"])
    more = {name: parts[name] for name in ("origin", "notes", "warnings", "budget", "certificate")}
    return kind(problem, data, parts["record"], parts["promise"], **more)
