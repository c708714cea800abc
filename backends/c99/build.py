"""Build of C sources into shared libraries, with the system's compiler, cached by the source's hash."""

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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from oco.backends.c99.cache import ELSEWHERE, Folder, cache_folder, libraries
from oco.backends.c99.flags import FLAGS, FUSED, quick
from oco.backends.c99.fleet_source import FleetSource
from oco.backends.c99.glue import glue
from oco.backends.c99.module import CSource
from oco.dsl.diagnostics import InternalError, OcoError, fail
from oco.dsl.writing import reason_of

ANY_ALIGNMENT = "-Wa,-muse-unaligned-vector-move"
"""Flag of the GNU assembler for x86: GCC 12 puts some arrays on the stack where its own aligned moves of vectors fault."""

INSTALL = "install gcc or clang, or `pip install ziglang`"


@cache
def compiler() -> tuple[str, ...]:
    """Command of a C compiler: $CC, the system's, or the one in the package `ziglang`. Raises OcoError where there is
    none.
    """
    if named := os.environ.get("CC"):
        first, *options = named.split()
        return (os.path.abspath(first) if os.sep in first else first, *options)
    for name in ("cc", "gcc", "clang"):
        if result := shutil.which(name):
            return (os.path.abspath(result),)
    if find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise fail("OCO733", "no C compiler is found", hint=INSTALL)


def has_compiler() -> bool:
    """True where C can be compiled here."""
    try:
        return bool(compiler())
    except OcoError:
        return False


def library(source: CSource, optimized: bool = True) -> ctypes.CDLL:
    """Shared library of a source with its glue, built if it is not in the cache; compiled faster where it is not to be optimized."""
    folder, name = _cached(
        source.name,
        {f"{source.name}.h": source.header, f"{source.name}.c": source.code + glue(source)},
        source.interface.arithmetic.fused,
        flags=FLAGS if optimized or source.interface.arithmetic.fused else quick(FLAGS),
    )
    return folder.load(name)


def fleet_library(source: FleetSource) -> ctypes.CDLL:
    """Shared library of a fleet, built if it is not in the cache."""
    folder, name = _cached(f"{source.name}-fleet", {f"{source.name}_fleet.c": source.code})
    return folder.load(name)


@cache
def bets_library() -> ctypes.CDLL:
    """Shared library of `bets.c`, built if it is not in the cache. Products and sums are fused: nothing asks for the same bits twice."""
    folder, name = _cached("bets", {"bets.c": _shipped("bets.c")}, fused=True)
    return folder.load(name)


def _shipped(file: str) -> str:
    """Text of a C file of this package."""
    return files("oco.backends.c99").joinpath(file).read_text(encoding="utf-8")


@cache
def stepper() -> Any:
    """Class `Stepper` of the extension module that drives learners quickly; None where Python's headers, or NumPy's library of
    distributions, are absent.
    """
    include, distributions = sysconfig.get_paths()["include"], Path(np.__file__).parent / "random/lib/libnpyrandom.a"
    if not (Path(include) / "Python.h").exists() or not distributions.exists():
        return None
    text = _shipped("stepper.c")
    options = (f"-I{include}", f"-I{np.get_include()}")
    folder, name = _cached(
        f"stepper-{sys.implementation.cache_tag}", {"stepper.c": text}, False, options, (str(distributions),)
    )
    spec = spec_from_file_location("oco_stepper", folder.path / name)
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Stepper


def _cached(
    name: str,
    sources: Mapping[str, str],
    fused: bool = False,
    options: Sequence[str] = (),
    archives: Sequence[str] = (),
    flags: Sequence[str] | None = None,
) -> tuple[Folder, str]:
    """Folder and name of a shared library, built if it is not complete in the cache: in a folder of its own, then moved
    into place.
    """
    command = (*compiler(), *(FLAGS if flags is None else flags), *([FUSED] if fused else []), *options)
    parts = [
        *command,
        *archives,
        ANY_ALIGNMENT,
        np.__version__,
        _processor(),
        *(part for item in sources.items() for part in item),
    ]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    target = f"{name}-{key[:32]}.so"
    folder = libraries()
    if folder.refusal(target) is None:
        return folder, target
    try:
        with folder.workplace() as workplace:
            made = _built(command, sources, archives, workplace)
            with open(made, "rb") as file:
                os.fchmod(file.fileno(), 0o700)
                os.fsync(file.fileno())
            if (refusal := folder.refusal(f"{workplace.name}/{made.name}")) is not None:
                raise fail("OCO733", f"what was compiled cannot be loaded: {refusal}", hint=ELSEWHERE)
            os.replace(made, folder.path / target)
    except OSError as error:
        raise fail(
            "OCO903", f"{cache_folder() / target} cannot be written: {reason_of(error)}", hint=ELSEWHERE
        ) from None
    return folder, target


@cache
def _processor() -> str:
    """Text that distinguishes processors sharing a cache: code for one may use instructions that another lacks."""
    results = [platform.machine(), platform.processor()]
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        results += islice((line for line in lines if line.startswith(("flags", "Features", "isa"))), 1)
    return " ".join(results)


@cache
def _workarounds(command: tuple[str, ...]) -> tuple[str, ...]:
    """Flags against bugs of compilers, where this one knows them."""
    probe = [*command, ANY_ALIGNMENT, "-c", "-x", "c", os.devnull, "-o", os.devnull]
    with suppress(OSError):
        if subprocess.run(probe, capture_output=True).returncode == 0:
            return (ANY_ALIGNMENT,)
    return ()


_OTHER = 'name another in the environment variable CC, or take backend = "numpy"'


_SOURCE_ERROR = re.compile(r"\.[ch]:\d+(:\d+)?: (fatal )?error:")
"""Messages with a place in the source are errors of the source; others are problems of the compiler or its disk."""


def _built(command: Sequence[str], sources: Mapping[str, str], archives: Sequence[str], folder: Path) -> Path:
    """Library made of the sources, with what they use of static libraries. The compiler works in the folder by relative names: a path by
    descriptor is valid in this process only.
    """
    for file, text in sources.items():
        (folder / file).write_text(text, encoding="utf-8")
    inputs = [*_workarounds(compiler()), *(file for file in sources if file.endswith(".c")), *archives]
    try:
        done = subprocess.run([*command, *inputs, "-o", "made.so", "-lm"], capture_output=True, text=True, cwd=folder)
    except OSError as error:
        raise fail("OCO733", f"the C compiler {command[0]} cannot be run: {error.strerror}", hint=_OTHER) from None
    if done.returncode and _SOURCE_ERROR.search(done.stderr):
        raise InternalError(f"the C compiler {command[0]} refused the emitted source: {done.stderr[:2000]}")
    made = folder / "made.so"
    if done.returncode or not made.exists():
        message = done.stderr.strip()[-300:] or f"it ended with status {done.returncode}"
        raise fail("OCO733", f"the C compiler {command[0]} does not work here: {message}", hint=_OTHER)
    return made
