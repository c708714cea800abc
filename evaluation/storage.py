"""Traces as datasets and files. NetCDF and Zarr hold everything needed to read a trace back, find comparators and
replay the run.
"""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import replace
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.canonical import canonical
from oco.dsl.contained import self_contained
from oco.dsl.diagnostics import fail
from oco.dsl.limits import MOST_ROUNDS
from oco.dsl.load import parse
from oco.dsl.readers.quota import Quota, TooMuch
from oco.dsl.text.printer import print_model
from oco.dsl.writing import replacing
from oco.evaluation.data import Data
from oco.evaluation.stored_sizes import check_netcdf, check_zarr
from oco.evaluation.trace import Origin, Promise, Record, Trace

if TYPE_CHECKING:
    from xarray import Dataset

Array = np.ndarray[Any, Any]

VERSION = 1
STREAM_BYTES = 256 << 20  # streams larger than this are not stored with a trace


def to_dataset(trace: Trace) -> Dataset:
    """Dataset with dims round, constraint, equality, dual, and `NAME_0`, `NAME_1`, ... for the axes of a decision."""
    import xarray

    record, rounds = trace.record, np.arange(1, trace.rounds + 1)
    variables: dict[str, Any] = {
        "loss": (("round",), record.loss),
        "constraints": (("round", "constraint"), record.constraints),
        "equalities": (("round", "equality"), record.equalities),
        "duals": (("round", "dual"), record.duals),
    }
    for name, values in record.decisions.items():
        axes = tuple(f"{name}_{k}" for k in range(values.ndim - 1))
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
    return xarray.Dataset(variables, coordinates, {"manifest": json.dumps(manifest(trace))})


def manifest(trace: Trace) -> dict[str, Any]:
    """Origin of the trace as JSON values: model and its hash, facts, plan, settings, seeds, versions."""
    promise = trace.promise
    model = print_model(self_contained(trace.problem.model))
    return {
        "version": VERSION,
        **(trace.origin.versions or versions()),
        "backend": trace.origin.backend,
        "model": model,
        "model_sha256": hashlib.sha256(model.encode()).hexdigest(),
        "facts": dict(trace.origin.facts),
        "recipe": dict(trace.origin.recipe),
        "algorithm": promise.algorithm,
        "settings": dict(promise.settings),
        "theorem": promise.theorem,
        "rates": dict(promise.rates),
        "vacuous": list(promise.vacuous),
        "measures": dict(promise.measures),
        "values": dict(promise.values),
        "multiplied": list(promise.multiplied),
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


def save(trace: Trace, path: Path) -> None:
    """Write `.nc` or `.zarr` (all of it) or `.parquet` (a table of the rounds, for other tools), completely or not at
    all.
    """
    writers = {".nc": _write_netcdf, ".zarr": _write_zarr, ".parquet": _write_table}
    if path.suffix not in writers:
        kind = path.suffix or "a file without a kind"
        raise fail("OCO833", f"a trace is not written as {kind}", hint="name it .nc, .zarr or .parquet")
    with replacing(path) as neighbour:
        writers[path.suffix](trace, neighbour)


def _whole(trace: Trace) -> Dataset:
    """Dataset with the given data, start and draws: all that a run needs besides its manifest."""
    dataset = to_dataset(trace)
    if sum(a.nbytes for a in trace.data.given.values()) <= STREAM_BYTES:
        for name, array in trace.data.given.items():
            dataset[f"stream.{name}"] = (("round", *_axes(name, array, 1)), array[: trace.rounds])
    for name, array in trace.origin.start.items():
        dataset[f"start.{name}"] = (_axes(name, array, 0), array)
    for name, array in trace.origin.draws.items():
        dataset[f"draws.{name}"] = ((f"draw_{name}", *_axes(name, array, 1)), array)
    return dataset


def _write_netcdf(trace: Trace, path: Path) -> None:
    _whole(trace).to_netcdf(path, engine="h5netcdf")


def _write_zarr(trace: Trace, path: Path) -> None:
    if find_spec("zarr") is None:
        raise fail("OCO833", "writing Zarr needs zarr", hint="pip install ocolang[zarr], or write .nc")
    _whole(trace).to_zarr(path, mode="w", zarr_format=2, consolidated=True)


def load_trace(path: str | Path) -> Trace:
    """Read back what `save` wrote as NetCDF or Zarr."""
    import xarray

    path = Path(path)
    if not path.exists():
        raise fail(
            "OCO833", f"there is no file {path}", hint="give the path of a trace.nc or trace.zarr that a run wrote"
        )
    stored: dict[str, Any] = {"engine": "h5netcdf"}
    try:
        quota = Quota(MOST_ROUNDS)
        if path.suffix == ".zarr":
            check_zarr(path, quota)
            stored = {"engine": "zarr", "zarr_format": 2, "consolidated": True}
        else:
            check_netcdf(path, quota)
        with xarray.open_dataset(path, decode_times=False, **stored) as opened:
            dataset = opened.load()
        saved = json.loads(dataset.attrs["manifest"])
    except TooMuch as error:
        raise fail("OCO834", f"{path} is too large: {error}", hint=error.hint) from None
    except (OSError, KeyError, TypeError, RuntimeError, ValueError, MemoryError) as error:
        raise fail("OCO833", f"{path} is not a trace: {error}") from error
    if not isinstance(saved, dict):
        raise fail("OCO833", f"{path} is not a trace: its manifest is none")
    if saved.get("version") != VERSION:
        raise fail("OCO833", f"{path} was written by another version of oco ({saved.get('oco')})")
    if hashlib.sha256(saved["model"].encode()).hexdigest() != saved["model_sha256"]:
        raise fail("OCO833", f"{path} has been changed: its model is not the one that its hash is of")
    return _trace_of(dataset, saved, path)


def _trace_of(dataset: Dataset, saved: dict[str, Any], path: Path) -> Trace:
    def named(prefix: str) -> dict[str, Array]:
        return {
            str(k).removeprefix(prefix): v.to_numpy() for k, v in dataset.data_vars.items() if str(k).startswith(prefix)
        }

    problem = canonical(parse(saved["model"], name=str(path)))
    given = MappingProxyType(named("stream."))
    drawn = tuple(s for s in problem.streams if s.name in saved["drawn"])
    from_round = saved.get("data_skipped", 0)
    data = Data(problem, dataset.sizes["round"], given, drawn, saved["data_seed"], skipped=from_round)
    record = Record(
        dataset["loss"].to_numpy(),
        dataset["constraints"].to_numpy(),
        dataset["equalities"].to_numpy(),
        dataset["duals"].to_numpy(),
        named("decision."),
        dataset["kept"].to_numpy() - 1,
        saved["seconds"],
    )
    scales = None if saved["scales"] is None else np.asarray(saved["scales"])
    words = (saved["algorithm"], saved["settings"], saved["theorem"])
    promise = Promise(*words, named("guarantee."), saved["rates"], tuple(saved["vacuous"]), scales, saved["measures"])
    promise = replace(promise, values=saved.get("values", {}), multiplied=tuple(saved.get("multiplied", ())))
    origin = Origin(saved["seed"], saved["recipe"], named("start."), named("draws."), saved["backend"], saved["facts"])
    origin = replace(origin, versions={name: saved[name] for name in versions()})
    notes, warnings = tuple(saved["notes"]), tuple(saved["warnings"])
    return Trace(problem, data, record, promise, origin=origin, notes=notes, warnings=warnings)


def _axes(name: str, array: Array, first: int) -> tuple[str, ...]:
    """Names for the axes of an array from `first` on."""
    return tuple(f"{name}_{k}" for k in range(array.ndim - first))


def _write_table(trace: Trace, path: Path) -> None:
    """One row a round: round, loss, constraints, equalities, and the decisions where all were kept."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise fail(
            "OCO833", "writing Parquet needs pyarrow", hint="pip install ocolang[parquet], or write .nc"
        ) from None
    columns: dict[str, Array] = {"round": np.arange(1, trace.rounds + 1), "loss": trace.loss}
    columns |= {f"constraint.{n}": trace.constraints[:, i] for i, n in enumerate(trace.labels)}
    columns |= {f"equality.{n}": trace.equalities[:, i] for i, n in enumerate(trace.equality_labels)}
    columns |= {f"dual[{i}]": trace.duals[:, i] for i in range(trace.duals.shape[1])}
    if len(trace.kept) == trace.rounds:
        for name, values in trace.record.decisions.items():
            flat = values.reshape(len(values), -1)
            places = np.ndindex(*values.shape[1:]) if values.ndim > 1 else [()]
            columns |= {_entry(name, place): flat[:, i] for i, place in enumerate(places)}
    pyarrow.parquet.write_table(pyarrow.table(columns, metadata={"manifest": json.dumps(manifest(trace))}), path)


def _entry(name: str, place: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, place))}]" if place else name
