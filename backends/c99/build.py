"""Building: C source to a shared library, with the system's compiler, kept in a cache by the source's hash."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from oco.backends.c99.fleet_source import FleetSource
from oco.backends.c99.glue import glue
from oco.backends.c99.module import Source
from oco.dsl.diagnostics import InternalError, OcoError, fail
from oco.dsl.writing import make_folder, reason_of

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
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "oco"
    try:
        return Path.home() / ".cache" / "oco"
    except RuntimeError:
        raise fail("OCO903", "compiled learners have no folder: this user has no home", hint=_ELSEWHERE) from None


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
    """A shared library, built if it is not whole in the cache: in a folder of its own, then moved into place."""
    command = (*compiler(), *FLAGS, *options)
    parts = [*command, np.__version__, _processor(), *(part for item in sources.items() for part in item)]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    target = cache_folder() / f"{name}-{key[:32]}.so"
    if _refusal(target) is None:
        return target
    make_folder(target.parent)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as folder:
            made = _built(command, sources, Path(folder))
            if (refusal := _refusal(made)) is not None:
                raise fail("OCO733", f"what was compiled cannot be loaded: {refusal}", hint=_ELSEWHERE)
            with open(made, "rb") as file:
                os.fsync(file.fileno())
            os.replace(made, target)
    except OSError as error:
        raise fail("OCO903", f"{target} cannot be written: {reason_of(error)}", hint=_ELSEWHERE) from None
    return target


def _refusal(path: Path) -> str | None:
    """Why a library cannot be loaded, as where it is not there or not whole; None where it can."""
    try:
        ctypes.CDLL(str(path))
    except OSError as error:
        return str(error)
    return None


@cache
def _processor() -> str:
    """What tells processors apart that share a cache: code for one may use instructions that another lacks."""
    found = [platform.machine(), platform.processor()]
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        found += islice((line for line in lines if line.startswith(("flags", "Features", "isa"))), 1)
    return " ".join(found)


_ELSEWHERE = "make room, or name another folder for compiled learners in the environment variable XDG_CACHE_HOME"
_OTHER = 'name another in the environment variable CC, or take backend = "numpy"'


_SOURCE_ERROR = re.compile(r"\.[ch]:\d+(:\d+)?: (fatal )?error:")
"""What is wrong with the source has a place there; the rest is wrong with the compiler or its disk."""


def _built(command: Sequence[str], sources: Mapping[str, str], folder: Path) -> Path:
    for file, text in sources.items():
        (folder / file).write_text(text, encoding="utf-8")
    made = folder / "made.so"
    inputs = [str(folder / file) for file in sources if file.endswith(".c")]
    try:
        done = subprocess.run([*command, *inputs, "-o", str(made), "-lm"], capture_output=True, text=True)
    except OSError as error:
        raise fail("OCO733", f"the C compiler {command[0]} cannot be run: {error.strerror}", hint=_OTHER) from None
    if done.returncode and _SOURCE_ERROR.search(done.stderr):
        raise InternalError(f"the C compiler {command[0]} refused the emitted source: {done.stderr[:2000]}")
    if done.returncode or not made.exists():
        said = done.stderr.strip()[-300:] or f"it ended with status {done.returncode}"
        raise fail("OCO733", f"the C compiler {command[0]} does not work here: {said}", hint=_OTHER)
    return made
