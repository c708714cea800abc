"""Sweeps: algorithms, settings and seeds in a table of runs, on all cores, resumable; one failure stops no other run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, field, replace
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from oco.dsl.diagnostics import OcoError, unforeseen
from oco.dsl.extras import require_package
from oco.dsl.records import dataclass
from oco.dsl.writing import write_text
from oco.evaluation.measured_run import MeasuredRun, RegretKind
from oco.evaluation.summary import summarize

if TYPE_CHECKING:
    from xarray import Dataset

Array = np.ndarray[Any, Any]

CURVE_POINTS = 400  # rounds of a curve that are kept of each run
ROUNDING = 1e-11  # of the values subtracted: sums over many rounds differ by that much with the order of their terms


@dataclass(frozen=True)
class Job:
    """Job of a sweep. Jobs with the same seed see the same data, so that their results can be compared pair by pair."""

    algorithm: str
    seed: int
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Algorithm with its settings, without the seed."""
        record = ", ".join(f"{k} = {v}" for k, v in self.settings.items())
        return f"{self.algorithm} ({record})" if record else self.algorithm

    @property
    def key(self) -> str:
        """Name that depends on the content of the job alone."""
        record = json.dumps([self.algorithm, self.seed, sorted(self.settings.items())])
        return hashlib.sha256(record.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Outcome:
    """Result of a job: its numbers and curves, or the error in words; `seconds` is its duration, 0 where it is read
    from a file.
    """

    job: Job
    numbers: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    rounds: tuple[int, ...] = ()
    error: str = ""
    seconds: float = 0.0


Execute = Callable[[Job], MeasuredRun]


@runtime_checkable
class SharesArrays(Protocol):
    """Runner of jobs over shared arrays."""

    def arrays(self) -> Mapping[str, Array]:
        """Arrays by name."""
        ...

    def over(self, arrays: Mapping[str, Array]) -> Execute:
        """Runner over copies of the arrays that another machine can reach."""
        ...


Engine = Callable[[Callable[[Job], Outcome], Sequence[Job]], Iterable[Outcome]]


def jobs_of(
    algorithms: Sequence[str], seeds: Iterable[int], grid: Mapping[str, Sequence[str]] | None = None
) -> list[Job]:
    """Jobs for every combination; `grid` gives the values to try of each setting."""
    names = list(grid or {})
    settings = [dict(zip(names, values)) for values in product(*(list((grid or {})[n]) for n in names))]
    return [Job(a, s, g) for a, g, s in product(algorithms, settings, list(seeds))]


@dataclass(frozen=True)
class Work:
    """Task that runs a job and condenses its trace. It is sent to other processes, so `execute` is a function that can
    be imported.
    """

    execute: Execute

    def __call__(self, job: Job) -> Outcome:
        began = perf_counter()
        try:
            result = outcome_of(job, self.execute(job))
        except Exception as error:  # whatever it is: one run that fails stops no other
            result = Outcome(job, error=reason(error))
        return replace(result, seconds=perf_counter() - began)


def reason(error: Exception) -> str:
    """Message of a failure: that of an OcoError, or the one for a bug; of the system its kind and its text. A remote error gives that of
    its cause.
    """
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception):
        return reason(cause)
    if isinstance(error, OSError):
        return f"{type(error).__name__}: {str(error).strip()}"
    return str(error if isinstance(error, OcoError) else unforeseen(error, "this run"))


def outcome_of(job: Job, trace: MeasuredRun) -> Outcome:
    """Numbers of a run, with its curves at some hundred rounds."""
    result = summarize(trace)
    numbers: dict[str, float] = {"loss": result.loss, "rounds_per_second": result.rounds_per_second}
    numbers |= {f"{r.kind}_regret": r.value for r in result.regret if r.value is not None}
    numbers |= {f"{v.kind}_violation": v.scaled for v in result.totals}
    numbers |= {f"{kind}_violation.{v.label}": getattr(v, kind) for v in result.violation for kind in ("hard", "soft")}
    numbers |= {f"equality_violation.{e.label}": e.violation for e in result.equality}
    picked = np.unique(np.linspace(1, trace.rounds, CURVE_POINTS).astype(np.int64))
    curves: dict[str, Array] = {"loss": np.cumsum(trace.loss)}
    kinds: tuple[RegretKind, ...] = ("static", "dynamic")
    curves |= {f"{k}_regret": trace.regret(k) for k in kinds if trace.comparator(k).losses is not None}
    if trace.labels:
        curves |= {
            "hard_violation": trace.violation("hard", "scaled"),
            "soft_violation": trace.violation("soft", "scaled"),
        }
    if trace.equality_labels:
        curves["equality_violation"] = trace.equality_violation("scaled")
        numbers["equality_violation"] = float(curves["equality_violation"][-1])
    kept = {name: tuple(map(float, curve[picked - 1])) for name, curve in curves.items()}
    return Outcome(job, numbers, kept, tuple(map(int, picked)))


def sweep(
    jobs: Sequence[Job],
    execute: Execute,
    engine: Engine,
    folder: Path | None = None,
    progress: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """Run the jobs that are not yet done; outcomes come in the order of the jobs.

    With a `folder` every outcome is written there on completion, and one that is already there is read instead of run
    again.
    """
    done = _finished(jobs, folder)
    for outcome in done.values():
        if progress is not None:
            progress(outcome)
    for outcome in engine(Work(execute), [j for j in jobs if j.key not in done]):
        done[outcome.job.key] = outcome
        if folder is not None and not outcome.error:
            folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / f"{outcome.job.key}.json", json.dumps(asdict(outcome)))
        if progress is not None:
            progress(outcome)
    return [done[j.key] for j in jobs]


def _finished(jobs: Sequence[Job], folder: Path | None) -> dict[str, Outcome]:
    """Outcomes of an earlier sweep; a job whose file cannot be read is run again."""
    results: dict[str, Outcome] = {}
    for job in jobs if folder is not None else ():
        path = folder / f"{job.key}.json" if folder is not None else Path()
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            curves = {name: tuple(values) for name, values in record["curves"].items()}
            results[job.key] = Outcome(job, record["numbers"], curves, tuple(record["rounds"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return results


# What comes out.


def to_dataset(outcomes: Sequence[Outcome]) -> Dataset:
    """Dataset of all outcomes with dims algorithm, seed and round; nan where a run failed or has no such number."""
    require_package("xarray", "a table of runs")
    import xarray

    labels = list(dict.fromkeys(o.job.label for o in outcomes))
    seeds = sorted({o.job.seed for o in outcomes})
    rounds = next((o.rounds for o in outcomes if o.rounds), ())
    numbers = sorted({name for o in outcomes for name in o.numbers})
    curves = sorted({name for o in outcomes for name in o.curves})
    variables: dict[str, Any] = {
        n: (("algorithm", "seed"), np.full((len(labels), len(seeds)), np.nan)) for n in numbers
    }
    shape = (len(labels), len(seeds), len(rounds))
    variables |= {f"curve.{n}": (("algorithm", "seed", "round"), np.full(shape, np.nan)) for n in curves}
    for o in outcomes:
        place = labels.index(o.job.label), seeds.index(o.job.seed)
        for name, value in o.numbers.items():
            variables[name][1][place] = value
        for name, values in o.curves.items():
            variables[f"curve.{name}"][1][place] = values
    return xarray.Dataset(variables, {"algorithm": labels, "seed": seeds, "round": list(rounds)})


MEASURES = ("loss", "static_regret", "dynamic_regret", "hard_violation", "soft_violation", "equality_violation")


@dataclass(frozen=True)
class Row:
    """Result of one algorithm in one measure: mean and deviation over the seeds, and those of the difference from the
    first algorithm.

    `compared` is False for the first one itself. Violations are sums over the constraints, each in units of its scale.
    """

    label: str
    measure: str
    mean: float | None
    deviation: float | None
    difference: float | None
    difference_deviation: float | None
    runs: int
    compared: bool


def compared(dataset: Dataset, measures: Sequence[str] = MEASURES) -> list[Row]:
    """Rows paired by seed: the deviation of a difference is that of the differences, not of the runs. Differences due
    to rounding are 0.
    """
    rows = []
    for measure in measures:
        if measure not in dataset:
            continue
        values = dataset[measure].to_numpy()
        sums = [values, dataset["loss"].to_numpy()] if measure.endswith("regret") and "loss" in dataset else [values]
        sizes = np.nanmax(np.abs(sums), axis=(0, 2), initial=0.0)
        for place, (label, own) in enumerate(zip(dataset["algorithm"].to_numpy(), values)):
            gap = _spread(own - values[0], max(sizes[place], sizes[0]))
            rows.append(
                Row(str(label), measure, *_spread(own, sizes[place]), *gap, int(np.isfinite(own).sum()), place > 0)
            )
    return rows


def _spread(values: Array, size: float) -> tuple[float | None, float | None]:
    """Mean and deviation of the known values; the deviation is None for a single run, 0 where it is mere rounding."""
    known = values[np.isfinite(values)]
    results = [float(known.mean()) if len(known) else None, float(known.std(ddof=1)) if len(known) > 1 else None]
    mean, deviation = (0.0 if v is not None and abs(v) <= ROUNDING * size else v for v in results)
    return mean, deviation
