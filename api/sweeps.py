"""Sweeps: one model, many algorithms, settings and seeds, on all cores or on a cluster."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import canonical
from oco.compiler.selection.choice import named
from oco.compiler.selection.modes import Mode
from oco.compiler.selection.request import AlgorithmRequest
from oco.dsl.builder import ModelBuilder
from oco.dsl.contained import self_contained
from oco.dsl.diagnostics import fail
from oco.dsl.load import parse
from oco.dsl.model import Model
from oco.dsl.records import dataclass
from oco.dsl.settings import SETTINGS, UNITS
from oco.dsl.text.printer import print_model
from oco.dsl.writing import make_folder
from oco.evaluation.comparators import ComparatorBudget
from oco.evaluation.data import Data, load_data, share
from oco.evaluation.engines import Automatic
from oco.evaluation.report.trace import Trace
from oco.evaluation.sweep import Engine, Job, Outcome, jobs_of
from oco.evaluation.sweep import sweep as run_all
from oco.pipeline import compile
from oco.plan import Plan

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Runner:
    """Runs a job in any process: the model is text, the data are files that all processes map, or arrays."""

    text: str
    folder: Path
    rounds: int
    backend: str | None = None
    budget: ComparatorBudget | None = None
    tradeoff: float = 1.0
    effort: float = 1.0
    given: Mapping[str, Array] | None = None

    def __call__(self, job: Job) -> Trace:
        settings = tuple(sorted(job.settings.items()))
        plan = _plan(self.text, job.algorithm, settings, self.rounds, self.backend, self.tradeoff, self.effort)
        arrays = self.arrays()
        drawn = tuple(s for s in plan.canonical.revealed if s.name not in arrays)
        data = Data(plan.canonical, self.rounds, MappingProxyType(dict(arrays)), drawn, job.seed)
        return plan.run(data, seed=job.seed, keep="last", budget=self.budget)

    def arrays(self) -> Mapping[str, Array]:
        """Arrays of the data, mapped into memory where they come from files."""
        if self.given is not None:
            return self.given
        return {path.stem: np.load(path, mmap_mode="r") for path in sorted(self.folder.glob("*.npy"))}

    def over(self, arrays: Mapping[str, Array]) -> Runner:
        """Runner over arrays that are already in memory."""
        return replace(self, given=arrays)


@lru_cache(maxsize=64)
def _plan(
    text: str,
    algorithm: str,
    settings: tuple[tuple[str, str], ...],
    rounds: int,
    backend: str | None,
    tradeoff: float,
    effort: float,
) -> Plan:
    """Plan of a job; a process compiles each of its plans once."""
    options: dict[str, Any] = {"settings": dict(settings)} if settings else {}
    model = parse(text, name="the model, as it is printed")
    plan = compile(model, algorithm, backend=backend, tradeoff=tradeoff, effort=effort, **options)
    return plan.for_rounds(rounds)


def jobs_for(
    algorithms: Sequence[str], seeds: Sequence[int], grid: Mapping[str, Sequence[str]] | None = None
) -> list[Job]:
    """Jobs for every combination; an algorithm that lacks a setting of the grid runs once for all values of it.

    Raises OCO701 where there is no such algorithm, OCO702 where none of the algorithms has the setting.
    """
    grid = grid or {}
    for name in algorithms:
        named(name)
    takes = {a: {n: v for n, v in grid.items() if n == UNITS or n in SETTINGS.get(a, grid)} for a in algorithms}
    for name in grid:
        if not any(name in taken for taken in takes.values()):
            AlgorithmRequest(given={name: ""}).check_names(None)
            raise fail("OCO702", f"none of {', '.join(algorithms)} has a setting `{name}`")
    return [job for a in algorithms for job in jobs_of([a], seeds, takes[a])]


def table_for(
    model: Model,
    data: Data,
    algorithms: Sequence[str | None],
    seeds: Sequence[int],
    grid: Mapping[str, Sequence[str]] | None = None,
    tradeoff: float = 1.0,
    effort: float = 1.0,
) -> list[Job]:
    """Jobs of a table, each once. None stands for the algorithm that is chosen, as for a single run with the first
    seed.
    """
    names, extra = list(algorithms), {}
    if None in names:
        options: dict[str, Any] = {"settings": {name: values[0] for name, values in grid.items()}} if grid else {}
        source = data if data.given else None
        plan = compile(model, None, tradeoff=tradeoff, data=source, seed=seeds[0], effort=effort, **options)
        names = [plan.algorithm if name is None else name for name in names]
        extra = {plan.algorithm: {UNITS: "free"}} if plan.mode is Mode.UNIT_FREE else {}
    jobs = jobs_for(list(filter(None, names)), seeds, grid)
    jobs = [replace(job, settings={**job.settings, **extra.get(job.algorithm, {})}) for job in jobs]
    return list({job.key: job for job in jobs}.values())


def sweep(
    model: Model | ModelBuilder,
    data: Any = None,
    algorithms: Sequence[str | None] = (None,),
    seeds: int | Sequence[int] = 1,
    grid: Mapping[str, Sequence[str]] | None = None,
    rounds: int | None = None,
    folder: str | Path | None = None,
    engine: Engine | None = None,
    backend: str | None = None,
    budget: ComparatorBudget | None = None,
    tradeoff: float = 1.0,
    effort: float = 1.0,
    progress: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """Run every combination of algorithms, settings and seeds; `oco.evaluation.sweep.to_dataset` makes one table of the
    outcomes.

    data      as for `plan.run`: read once, shared by all processes
    seeds     a number n for 0, ..., n - 1, or the seeds themselves
    grid      values to try of each setting: {"epsilon": ["0.1", "0.5"]}
    folder    keeps outcomes, so that an interrupted sweep of the same model and data continues where it stopped
    engine    runs the jobs: by default in this process, or where they take long in processes on all cores of this machine
    budget    of time and memory for the comparators of each run
    tradeoff  weight of violation against regret in choosing the algorithm and its settings
    effort    as for `oco.compile`
    """
    built = model.build() if isinstance(model, ModelBuilder) else model
    loaded = load_data(canonical(built), data, rounds=rounds)
    seeds = range(seeds) if isinstance(seeds, int) else seeds
    jobs = table_for(built, loaded, algorithms, seeds, grid, tradeoff, effort)
    options: dict[str, Any] = {"backend": backend, "budget": budget, "tradeoff": tradeoff, "effort": effort}
    return run_table(built, loaded, jobs, folder, engine, progress, **options)


def run_table(
    model: Model,
    data: Data,
    jobs: Sequence[Job],
    folder: str | Path | None = None,
    engine: Engine | None = None,
    progress: Callable[[Outcome], None] | None = None,
    **options: Any,
) -> list[Outcome]:
    """Run these jobs; `options` holds backend, budget, tradeoff and effort for all of them."""
    text = print_model(self_contained(model))
    kept = None if folder is None else outcomes_folder(folder, model, data, options)
    if kept is not None:
        make_folder(kept)
    with tempfile.TemporaryDirectory(prefix="oco_sweep_") as place:
        share(data, Path(place))
        runner = Runner(text, Path(place), data.rounds, **options)
        return run_all(jobs, runner, engine or Automatic(), kept, progress)


def outcomes_folder(folder: str | Path, model: Model, data: Data, options: Mapping[str, Any]) -> Path:
    """Folder for the outcomes of this model over this data, with this backend, budget and tradeoff, within a shared
    folder.
    """
    return Path(folder) / _digest(print_model(self_contained(model)), data, options)


def _digest(text: str, data: Data, options: Mapping[str, Any]) -> str:
    """Digest of all that determines the results of a job, besides the job itself; keeps outcomes of other tables apart."""
    result = hashlib.sha256(f"{text}\0{data.rounds}\0{sorted(options.items())}".encode())
    for name, array in sorted(data.given.items()):
        result.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return result.hexdigest()[:16]
