"""Building: C source to a shared library, with the system's compiler, kept in a cache by the source's hash."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from oco.backends.c99.module import Source
from oco.dsl.diagnostics import InternalError, fail

FLAGS = ("-std=c99", "-O3", "-march=native", "-fPIC", "-shared")
"""No -ffast-math: sums keep their order, and NaN and infinities their meaning."""


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


def cache_folder() -> Path:
    """Where compiled learners are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "oco"


def library(source: Source) -> Path:
    """The shared library of a source, built if it is not in the cache."""
    command = compiler()
    key = hashlib.sha256("\0".join([*command, *FLAGS, source.name, source.header, source.code]).encode()).hexdigest()
    target = cache_folder() / f"{source.name}-{key[:32]}.so"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as folder:
            made = _built(source, command, Path(folder))
            os.replace(made, target)
    return target


def _built(source: Source, command: tuple[str, ...], folder: Path) -> Path:
    (folder / f"{source.name}.h").write_text(source.header, encoding="utf-8")
    file, made = folder / f"{source.name}.c", folder / "learner.so"
    file.write_text(source.code, encoding="utf-8")
    done = subprocess.run([*command, *FLAGS, str(file), "-o", str(made), "-lm"], capture_output=True, text=True)
    if done.returncode:
        raise InternalError(f"the C compiler {command[0]} refused the emitted source: {done.stderr[:2000]}")
    return made
