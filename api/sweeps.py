"""Sweeps: one model, many algorithms, settings and seeds, on all cores or on a cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oco.dsl.builder import ModelBuilder
from oco.dsl.load import parse
from oco.dsl.model import Model
from oco.dsl.text.printer import print_model

if TYPE_CHECKING:
    from oco.evaluation.sweep import Engine, Job, Outcome
    from oco.evaluation.trace import Trace
    from oco.plan import Plan


@dataclass(frozen=True)
class Runner:
    """Runs a job in whatever process it is called in: the model as text, the data as files that all processes share."""

    text: str
    folder: Path
    rounds: int
    backend: str | None = None

    def __call__(self, job: Job) -> Trace:
        from oco.evaluation.data import shared

        plan = _plan(self.text, job.algorithm, tuple(sorted(job.settings.items())), self.rounds, self.backend)
        return plan.run(shared(plan.canonical, self.folder, self.rounds, job.seed), seed=job.seed)


@lru_cache(maxsize=64)
def _plan(
    text: str, algorithm: str | None, settings: tuple[tuple[str, str], ...], rounds: int, backend: str | None
) -> Plan:
    """A process compiles each of its plans once."""
    from oco.pipeline import compile

    plan = compile(parse(text), algorithm, dict(settings) or "paper", backend)
    return plan if plan.horizon in (None, rounds) else plan.with_horizon(rounds)


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
    progress: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """Run every combination of algorithms, settings and seeds; `oco.evaluation.sweep.to_dataset` makes one table of the outcomes.

    data      as for `plan.run`: read once, shared by all processes
    seeds     a number n for 0, ..., n - 1, or the seeds themselves
    grid      values to try of each setting: {"epsilon": ["0.1", "0.5"]}
    folder    keeps outcomes, so that an interrupted sweep goes on where it stopped
    engine    where runs happen: by default processes on all cores of this machine
    """
    from oco.compiler.canonical import canonical
    from oco.dsl.contained import self_contained
    from oco.evaluation.data import load_data, share
    from oco.evaluation.sweep import Processes, jobs_of
    from oco.evaluation.sweep import sweep as run_all

    built = model.build() if isinstance(model, ModelBuilder) else model
    loaded = load_data(canonical(built), data, rounds=rounds)
    jobs = jobs_of(algorithms, range(seeds) if isinstance(seeds, int) else seeds, grid)
    with tempfile.TemporaryDirectory(prefix="oco_sweep_") as place:
        share(loaded, Path(place))
        runner = Runner(print_model(self_contained(built)), Path(place), loaded.rounds, backend)
        return run_all(jobs, runner, engine or Processes(), None if folder is None else Path(folder), progress)
