"""Traces as datasets and files. A NetCDF file holds all that is needed to read the trace back and to find its comparators."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.canonical import canonical
from oco.dsl.contained import self_contained
from oco.dsl.diagnostics import fail
from oco.dsl.load import parse
from oco.dsl.text.printer import print_model
from oco.evaluation.data import Data
from oco.evaluation.trace import Origin, Promise, Record, Trace

if TYPE_CHECKING:
    from xarray import Dataset

Array = np.ndarray[Any, Any]

VERSION = 1
STREAM_BYTES = 256 << 20  # streams larger than this are not stored with a trace


def to_dataset(trace: Trace) -> Dataset:
    """Dims: round, constraint, equality, dual, and `NAME_0`, `NAME_1`, ... for the axes of a decision."""
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
    """What made the trace: model, algorithm, settings, seed, versions."""
    promise = trace.promise
    return {
        "version": VERSION,
        "oco": metadata.version("ocolang"),
        "numpy": np.__version__,
        "model": print_model(self_contained(trace.problem.model)),
        "recipe": dict(trace.origin.recipe),
        "algorithm": promise.algorithm,
        "settings": dict(promise.settings),
        "theorem": promise.theorem,
        "rates": dict(promise.rates),
        "vacuous": list(promise.vacuous),
        "measures": dict(promise.measures),
        "scales": None if promise.scales is None else promise.scales.tolist(),
        "seed": trace.seed,
        "seconds": trace.seconds,
        "notes": list(trace.notes),
        "warnings": list(trace.warnings),
        "drawn": [s.name for s in trace.data.drawn],
        "data_seed": trace.data.seed,
    }


def save(trace: Trace, path: Path) -> None:
    """Write `.nc` (whole) or `.parquet` (a table of the rounds, for other tools)."""
    if path.suffix == ".nc":
        dataset = to_dataset(trace)
        given = sum(a.nbytes for a in trace.data.given.values())
        if given <= STREAM_BYTES:
            for name, array in trace.data.given.items():
                dataset[f"stream.{name}"] = (("round", *_axes(name, array, 1)), array[: trace.rounds])
        for name, array in trace.origin.start.items():
            dataset[f"start.{name}"] = (_axes(name, array, 0), array)
        for name, array in trace.origin.draws.items():
            dataset[f"draws.{name}"] = ((f"draw_{name}", *_axes(name, array, 1)), array)
        dataset.to_netcdf(path, engine="h5netcdf")
    elif path.suffix == ".parquet":
        _save_table(trace, path)
    else:
        raise fail(
            "OCO833",
            f"a trace is not written as {path.suffix or 'a file without a kind'}",
            hint="name it .nc or .parquet",
        )


def load_trace(path: str | Path) -> Trace:
    """Read back what `save` wrote as NetCDF."""
    import xarray

    path = Path(path)
    try:
        with xarray.open_dataset(path, engine="h5netcdf") as opened:
            dataset = opened.load()
        told = json.loads(dataset.attrs["manifest"])
    except (OSError, KeyError, ValueError) as error:
        raise fail("OCO833", f"{path} is not a trace: {error}") from error
    if told.get("version") != VERSION:
        raise fail("OCO833", f"{path} was written by another version of oco ({told.get('oco')})")
    return _trace_of(dataset, told, path)


def _trace_of(dataset: Dataset, told: dict[str, Any], path: Path) -> Trace:
    def named(prefix: str) -> dict[str, Array]:
        return {
            str(k).removeprefix(prefix): v.to_numpy() for k, v in dataset.data_vars.items() if str(k).startswith(prefix)
        }

    problem = canonical(parse(told["model"], name=str(path)))
    given = MappingProxyType(named("stream."))
    drawn = tuple(s for s in problem.streams if s.name in told["drawn"])
    data = Data(problem, dataset.sizes["round"], given, drawn, told["data_seed"])
    record = Record(
        dataset["loss"].to_numpy(),
        dataset["constraints"].to_numpy(),
        dataset["equalities"].to_numpy(),
        dataset["duals"].to_numpy(),
        named("decision."),
        dataset["kept"].to_numpy() - 1,
        told["seconds"],
    )
    scales = None if told["scales"] is None else np.asarray(told["scales"])
    words = (told["algorithm"], told["settings"], told["theorem"])
    promise = Promise(*words, named("guarantee."), told["rates"], tuple(told["vacuous"]), scales, told["measures"])
    origin = Origin(told["seed"], told["recipe"], named("start."), named("draws."))
    notes, warnings = tuple(told["notes"]), tuple(told["warnings"])
    return Trace(problem, data, record, promise, origin=origin, notes=notes, warnings=warnings)


def _axes(name: str, array: Array, first: int) -> tuple[str, ...]:
    """Names for the axes of an array from `first` on."""
    return tuple(f"{name}_{k}" for k in range(array.ndim - first))


def _save_table(trace: Trace, path: Path) -> None:
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
