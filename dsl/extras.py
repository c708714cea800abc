"""Packages that only some functions need: the extras of the distribution that hold them, and errors that name these."""

from __future__ import annotations

from importlib.util import find_spec

from oco.dsl.diagnostics import fail

EXTRAS = {
    "matplotlib": "plots",
    "xarray": "traces",
    "h5netcdf": "traces",
    "h5py": "traces",
    "pandas": "traces",
    "plotly": "interactive",
    "pyarrow": "parquet",
    "fsspec": "cluster",
    "pygls": "editor",
    "uvicorn": "serve",
    "jax": "jax",
}
"""Extra that installs a package."""
LARGE = frozenset({"cluster", "jax"})
"""Extras that `all` leaves out for their size."""


def require_package(package: str, what: str) -> None:
    """Check that a package of an extra is installed. Raises OCO911 where it is not; `what` is the function that needs it, in words."""
    if find_spec(package) is None:
        extra = EXTRAS[package]
        hint = f"pip install 'ocolang[{extra}]'" + ("" if extra in LARGE else ", or 'ocolang[all]' for all extras")
        raise fail("OCO911", f"{what} needs {package}, which the extra `{extra}` installs", hint=hint)
