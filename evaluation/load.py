"""Traces read back from NetCDF and Zarr."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.problem.canonical import canonical
from oco.compiler.theory.guarantees import Condition
from oco.dsl.diagnostics import fail
from oco.dsl.extras import require_package
from oco.dsl.limits import MOST_ROUNDS
from oco.dsl.load import parse
from oco.dsl.readers.quota import Quota, QuotaExceeded
from oco.evaluation.data import Data
from oco.evaluation.measured_run import MeasuredRun, Origin, Promise, Record
from oco.evaluation.storage import VERSION, versions
from oco.evaluation.stored_sizes import check_netcdf, check_zarr

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

Array = np.ndarray[Any, Any]


def load_trace(path: str | Path) -> MeasuredRun:
    """Read back what `save` wrote as NetCDF or Zarr."""
    require_package("xarray", "reading a trace")
    require_package("h5netcdf", "reading a trace")
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
    except QuotaExceeded as error:
        raise fail("OCO834", f"{path} is too large: {error}", hint=error.hint) from None
    except (OSError, KeyError, TypeError, RuntimeError, ValueError, MemoryError) as error:
        hint = "give the path of a trace.nc or trace.zarr that `oco run --out` or `trace.save` wrote"
        reason = "it cannot be opened as one" if isinstance(error, OSError) else error
        raise fail("OCO833", f"{path} is not a trace: {reason}", hint=hint) from error
    if not isinstance(saved, dict):
        raise fail("OCO833", f"{path} is not a trace: its manifest is none")
    if saved.get("version") != VERSION:
        raise fail("OCO833", f"{path} was written by another version of oco ({saved.get('oco')})")
    if hashlib.sha256(saved["model"].encode()).hexdigest() != saved["model_sha256"]:
        raise fail("OCO833", f"{path} has been changed: its model is not the one that its hash is of")
    return _trace_of(dataset, saved, path)


def _trace_of(dataset: Dataset, saved: dict[str, Any], path: Path) -> MeasuredRun:
    def named(prefix: str) -> dict[str, Array]:
        return {
            str(k).removeprefix(prefix): v.to_numpy() for k, v in dataset.data_vars.items() if str(k).startswith(prefix)
        }

    problem = canonical(parse(saved["model"], name=str(path)))
    given = MappingProxyType(named("stream."))
    drawn = tuple(s for s in problem.streams if s.name in saved["drawn"])
    from_round = saved.get("data_skipped", 0)
    times = _times(dataset["time"]) if "time" in dataset.coords else None
    data = Data(problem, dataset.sizes["round"], given, drawn, saved["data_seed"], skipped=from_round, times=times)
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
    conditions = tuple(Condition(*pair) for pair in saved.get("conditions", ()))
    promise = replace(
        promise, conditions=conditions, trivial=saved.get("trivial", {}), withheld=saved.get("withheld", "")
    )
    origin = Origin(saved["seed"], saved["recipe"], named("start."), named("draws."), saved["backend"], saved["facts"])
    origin = replace(origin, versions={name: saved[name] for name in versions()})
    notes, warnings = tuple(saved["notes"]), tuple(saved["warnings"])
    return MeasuredRun(problem, data, record, promise, origin=origin, notes=notes, warnings=warnings)


def _times(stored: DataArray) -> Array:
    """Times of the rounds, stored as numbers of a unit from a beginning."""
    import xarray

    decoded = xarray.decode_cf(xarray.Dataset({"time": ("round", stored.to_numpy(), stored.attrs)}))
    return np.asarray(decoded["time"].to_numpy().astype("datetime64[s]"))
