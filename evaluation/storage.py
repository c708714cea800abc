"""Traces as datasets and files. NetCDF and Zarr hold everything needed to read a trace back, find comparators and
replay the run.
"""

from __future__ import annotations

import hashlib
import json
import platform
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.problem.canonical import entry_labels
from oco.dsl.contained import self_contained
from oco.dsl.diagnostics import fail
from oco.dsl.extras import require_package
from oco.dsl.labels import Axes, Axis
from oco.dsl.text.printer import print_model
from oco.dsl.writing import replacing
from oco.evaluation.measured_run import MeasuredRun

if TYPE_CHECKING:
    from xarray import Dataset

Array = np.ndarray[Any, Any]

VERSION = 1
STREAM_BYTES = 256 << 20  # streams larger than this are not stored with a trace


def to_dataset(trace: MeasuredRun) -> Dataset:
    """Dataset with dims round, constraint, equality, dual, and for the axes of a decision those of their indexes with the names as
    coordinates, else `NAME_0`, `NAME_1`, ... The coordinate `time` has the times of the rounds, where the data tell them.
    """
    require_package("xarray", "a dataset of a trace")
    import xarray

    record, rounds = trace.record, np.arange(1, trace.rounds + 1)
    variables: dict[str, Any] = {
        "loss": (("round",), record.loss),
        "constraints": (("round", "constraint"), record.constraints),
        "equalities": (("round", "equality"), record.equalities),
        "duals": (("round", "dual"), record.duals),
    }
    for name, values in record.decisions.items():
        axes = _axes(name, values, 1, trace.problem.axes.get(name, ()))
        variables[f"decision.{name}"] = (("kept", *axes), values)
    for measure, curve in trace.promise.curves.items():
        variables[f"guarantee.{measure}"] = (("round",), curve)
    for kind, comparator in trace.known_comparators.items():
        if comparator.losses is not None:
            variables[f"comparator.{kind}.loss"] = (("round",), comparator.losses)
    coordinates = {
        "round": rounds,
        "kept": trace.kept,
        "constraint": list(trace.labels),
        "equality": list(trace.equality_labels),
    }
    coordinates |= {
        a.index: list(a.names) for axes in trace.problem.axes.values() for a in axes if a is not None and _is_dim(a)
    }
    if trace.data.times is not None:
        coordinates["time"] = ("round", trace.data.times[: trace.rounds])
    return xarray.Dataset(variables, coordinates, {"manifest": json.dumps(manifest(trace))})


def manifest(trace: MeasuredRun) -> dict[str, Any]:
    """Origin of the trace as JSON values: model and its hash, facts, plan, settings, seeds, versions."""
    promise = trace.promise
    model = print_model(self_contained(trace.problem.model))
    return {
        "version": VERSION,
        **(trace.origin.versions or versions()),
        "backend": trace.backend,
        "model": model,
        "model_sha256": hashlib.sha256(model.encode()).hexdigest(),
        "facts": dict(trace.origin.facts),
        "recipe": dict(trace.origin.recipe),
        "algorithm": promise.algorithm,
        "settings": dict(promise.settings),
        "theorem": promise.theorem,
        "withheld": promise.withheld,
        "rates": dict(promise.rates),
        "vacuous": list(promise.vacuous),
        "trivial": dict(promise.trivial),
        "measures": dict(promise.measures),
        "values": dict(promise.values),
        "multiplied": list(promise.multiplied),
        "conditions": [[c.key, c.words] for c in promise.conditions],
        "scales": None if promise.scales is None else promise.scales.tolist(),
        "seed": trace.seed,
        "seconds": trace.seconds,
        "notes": list(trace.notes),
        "warnings": list(trace.warnings),
        "drawn": [s.name for s in trace.data.drawn],
        "data_seed": trace.data.seed,
        "data_skipped": trace.data.skipped,
    }


def versions() -> dict[str, str]:
    """Versions of the software and the machine, which determine the last bits of a run."""
    return {
        "oco": metadata.version("ocolang"),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def save(trace: MeasuredRun, path: Path) -> None:
    """Write `.nc` or `.zarr` (all of it) or `.parquet` (a table of the rounds, for other tools), completely or not at
    all.
    """
    writers = {".nc": _write_netcdf, ".zarr": _write_zarr, ".parquet": _write_table}
    if path.suffix not in writers:
        kind = path.suffix or "a file without a kind"
        raise fail("OCO833", f"a trace is not written as {kind}", hint="name it .nc, .zarr or .parquet")
    with replacing(path) as neighbour:
        writers[path.suffix](trace, neighbour)


def _whole(trace: MeasuredRun) -> Dataset:
    """Dataset with the given data, start and draws: all that a run needs besides its manifest."""
    dataset = to_dataset(trace)
    if sum(a.nbytes for a in trace.data.given.values()) <= STREAM_BYTES:
        for name, array in trace.data.given.items():
            axes = _axes(name, array, 1, trace.problem.axes.get(name, ()))
            dataset[f"stream.{name}"] = (("round", *axes), array[: trace.rounds])
    for name, array in trace.origin.start.items():
        dataset[f"start.{name}"] = (_axes(name, array, 0), array)
    for name, array in trace.origin.draws.items():
        dataset[f"draws.{name}"] = ((f"draw_{name}", *_axes(name, array, 1)), array)
    return dataset


def _write_netcdf(trace: MeasuredRun, path: Path) -> None:
    require_package("h5netcdf", "writing NetCDF")
    _whole(trace).to_netcdf(path, engine="h5netcdf")


def _write_zarr(trace: MeasuredRun, path: Path) -> None:
    if find_spec("zarr") is None:
        raise fail("OCO833", "writing Zarr needs zarr", hint="pip install ocolang[zarr], or write .nc")
    _whole(trace).to_zarr(path, mode="w", zarr_format=2, consolidated=True)


def _is_dim(axis: Axis) -> bool:
    """True where an index can name a dimension: others have names of their own."""
    return axis.index not in ("round", "kept", "constraint", "equality", "dual", "time")


def _axes(name: str, array: Array, first: int, axes: Axes = ()) -> tuple[str, ...]:
    """Names for the axes of an array from `first` on: of their indexes, each once, and numbered ones for the others."""
    dims: list[str] = []
    for k, axis in enumerate(axes or (None,) * (array.ndim - first)):
        named = axis is not None and _is_dim(axis) and axis.index not in dims
        dims.append(axis.index if axis is not None and named else f"{name}_{k}")
    return tuple(dims)


def _write_table(trace: MeasuredRun, path: Path) -> None:
    """One row a round: round, loss, constraints, equalities, and the decisions where all were kept."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise fail(
            "OCO833", "writing Parquet needs pyarrow", hint="pip install ocolang[parquet], or write .nc"
        ) from None
    table = pyarrow.table(table_of(trace), metadata={"manifest": json.dumps(manifest(trace))})
    pyarrow.parquet.write_table(table, path)


def table_of(trace: MeasuredRun) -> dict[str, Array]:
    """Columns (T,) by name: round, loss, constraints, equalities, duals, and the decisions where all were kept."""
    columns: dict[str, Array] = {"round": np.arange(1, trace.rounds + 1)}
    columns |= {} if trace.data.times is None else {"time": trace.data.times[: trace.rounds]}
    columns |= {"loss": trace.loss}
    columns |= {f"constraint.{n}": trace.constraints[:, i] for i, n in enumerate(trace.labels)}
    columns |= {f"equality.{n}": trace.equalities[:, i] for i, n in enumerate(trace.equality_labels)}
    columns |= {f"dual[{i}]": trace.duals[:, i] for i in range(trace.duals.shape[1])}
    if len(trace.kept) == trace.rounds:
        for name, values in trace.record.decisions.items():
            flat = values.reshape(len(values), -1)
            labels = entry_labels(name, values.shape[1:], trace.problem.axes.get(name, ()))
            columns |= {label: flat[:, i] for i, label in enumerate(labels)}
    return columns
