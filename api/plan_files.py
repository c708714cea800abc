"""Files of a plan that run elsewhere, each made once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oco.backends.capabilities import EXACT
from oco.backends.registry import backend as find_backend
from oco.backends.registry import built_files, parts_of, precision_called, registered, standalone_files

if TYPE_CHECKING:
    from oco.plan import Plan

Made = dict[tuple[str | None, ...], dict[str, Any]]
"""Texts by file name, by backend and precision, by a backend and "in parts", or by backend, precision and target."""


def texts(plan: Plan, made: Made, backend: str | None, precision: str | None) -> dict[str, str]:
    """Texts of the files by name; without a precision, of that of the plan where the backend has it. Raises what `Plan.files` raises."""
    name = find_backend(backend or plan.target).name
    own = plan.precision if plan.precision in registered(name).precisions else None
    key = name, precision or own
    if key not in made:
        made[key] = standalone_files(name, plan.program, plan.contract, key[1])
    return dict(made[key])


def placed(
    plan: Plan, made: Made, path: Path, backend: str | None, precision: str | None, target: str | None
) -> Mapping[Path, str | bytes]:
    """Contents of the files that `Plan.write` puts at `path`, by their places. Raises what `Plan.write` raises of them."""
    if target is not None:
        key = backend, precision or plan.precision, target
        if key not in made:
            made[key] = built_files(backend, plan.program, plan.contract, target, key[1])
        return {path / file: content for file, content in made[key].items()}
    parted = registered(name := find_backend(backend or plan.target).name).parts and not path.suffix
    in_parts = parted and precision_called(precision) in (None, EXACT)
    files = _in_parts(plan, made, name) if in_parts else texts(plan, made, name, precision)
    return dict.fromkeys([path], *files.values()) if len(files) == 1 else {path / f: files[f] for f in files}


def _in_parts(plan: Plan, made: Made, backend: str) -> dict[str, str]:
    """Texts of the modules of a backend that writes its one module in parts."""
    key = backend, "in parts"
    if key not in made:
        made[key] = parts_of(backend, plan.program, plan.contract)
    return made[key]
