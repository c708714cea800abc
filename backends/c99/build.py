"""Building: C source to a shared library, with the system's compiler, kept in a cache by the source's hash."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from oco.backends.c99.fleet_source import FleetSource
from oco.backends.c99.glue import glue
from oco.backends.c99.module import Source
from oco.dsl.diagnostics import InternalError, OcoError, fail

FLAGS = ("-std=c99", "-O3", "-march=native", "-fno-math-errno", "-fPIC", "-shared")
"""No -ffast-math: sums keep their order, and NaN and infinities their meaning. Nobody reads errno, and roots vectorize without it."""


@cache
def compiler() -> tuple[str, ...]:
    """The command of a C compiler: $CC, the system's, or the one in the package `ziglang`."""
    if named := os.environ.get("CC"):
        return tuple(named.split())
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return (found,)
    if find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise fail("OCO733", "no C compiler is found", hint="install gcc or clang, or `pip install ziglang`")


def has_compiler() -> bool:
    """Whether C can be compiled here."""
    try:
        return bool(compiler())
    except OcoError:
        return False


def cache_folder() -> Path:
    """Where compiled learners are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "oco"


def library(source: Source) -> Path:
    """The shared library of a source with its glue, built if it is not in the cache."""
    return _cached(source.name, {f"{source.name}.h": source.header, f"{source.name}.c": source.code + glue(source)}, ())


def fleet_library(source: FleetSource) -> Path:
    """The shared library of a fleet, built if it is not in the cache."""
    return _cached(f"{source.name}-fleet", {f"{source.name}_fleet.c": source.code}, ())


@cache
def stepper() -> Any:
    """The class `Stepper` of the extension module that drives learners quickly; None where Python's headers are not there."""
    include = sysconfig.get_paths()["include"]
    if not (Path(include) / "Python.h").exists():
        return None
    text = files("oco.backends.c99").joinpath("stepper.c").read_text(encoding="utf-8")
    options = (f"-I{include}", f"-I{np.get_include()}")
    path = _cached(f"stepper-{sys.implementation.cache_tag}", {"stepper.c": text}, options)
    spec = spec_from_file_location("oco_stepper", path)
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Stepper


def _cached(name: str, sources: Mapping[str, str], options: Sequence[str]) -> Path:
    """A shared library, built if it is not in the cache: in a folder of its own, then moved into place."""
    command = (*compiler(), *FLAGS, *options)
    parts = [*command, np.__version__, *(part for item in sources.items() for part in item)]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    target = cache_folder() / f"{name}-{key[:32]}.so"
    if not target.exists():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise fail("OCO903", f"{target.parent} cannot be made: {(error.strerror or str(error)).lower()}") from None
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as folder:
            os.replace(_built(command, sources, Path(folder)), target)
    return target


_OTHER = 'name another in the environment variable CC, or take backend = "numpy"'


def _built(command: Sequence[str], sources: Mapping[str, str], folder: Path) -> Path:
    for file, text in sources.items():
        (folder / file).write_text(text, encoding="utf-8")
    made = folder / "made.so"
    inputs = [str(folder / file) for file in sources if file.endswith(".c")]
    try:
        done = subprocess.run([*command, *inputs, "-o", str(made), "-lm"], capture_output=True, text=True)
    except OSError as error:
        raise fail("OCO733", f"the C compiler {command[0]} cannot be run: {error.strerror}", hint=_OTHER) from None
    if done.returncode and "error:" in done.stderr:
        raise InternalError(f"the C compiler {command[0]} refused the emitted source: {done.stderr[:2000]}")
    if done.returncode or not made.exists():
        said = done.stderr.strip()[-300:] or f"it ended with status {done.returncode}"
        raise fail("OCO733", f"the C compiler {command[0]} does not work here: {said}", hint=_OTHER)
    return made
