"""Learners in WebAssembly: the emitted C, compiled by zig for wasm32-wasi. The module imports nothing, so any host runs it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from oco.backends.c99.flags import portable
from oco.backends.c99.javascript import binding, called
from oco.backends.c99.module import CSource
from oco.dsl.diagnostics import fail
from oco.dsl.writing import reason_of

STACK = 1 << 20
"""Bytes of the stack of a module: far more than arrays on it take (`LARGEST_ON_STACK`), and only those that are used are touched."""
_INSTALL = "`pip install ziglang` installs one"


def webassembly(source: CSource) -> dict[str, str | bytes]:
    """Module, ES module with its types, and package by file name. Raises OcoError: OCO691 where nothing here compiles for
    WebAssembly, OCO692 where the compiler fails.
    """
    return {f"{source.name}.wasm": compiled_module(source), **binding(source)}


def zig() -> tuple[str, ...]:
    """Command of zig: that of the package `ziglang`, or the system's. Raises OCO691 where there is none."""
    if find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang")
    if result := shutil.which("zig"):
        return (result,)
    raise fail("OCO691", "no compiler for WebAssembly is found", hint=f"{_INSTALL}; `--backend c` writes the source")


def compiled_module(source: CSource) -> bytes:
    """Module of WebAssembly with the functions that the binding calls, and its memory. Raises what `webassembly` raises."""
    exports = [f"-Wl,--export={name}" for name in (*called(source), "__heap_base")]
    linking = ["-mexec-model=reactor", f"-Wl,-z,stack-size={STACK}", "-Wl,--strip-all", *exports]
    with tempfile.TemporaryDirectory() as folder:
        for file, text in {f"{source.name}.c": source.code, f"{source.name}.h": source.header}.items():
            Path(folder, file).write_text(text, encoding="utf-8")
        command = [
            *zig(),
            "cc",
            "--target=wasm32-wasi",
            *portable(source.interface.arithmetic.fused),
            "-w",
            *linking,
            f"{source.name}.c",
        ]
        return _built(command, Path(folder))


def _built(command: Sequence[str], folder: Path) -> bytes:
    """Module that a command makes in a folder."""
    made = folder / "made.wasm"
    try:
        done = subprocess.run([*command, "-o", made.name, "-lm"], capture_output=True, text=True, cwd=folder)
    except OSError as error:
        raise fail("OCO692", f"{command[0]} cannot be run: {reason_of(error)}", hint=_INSTALL) from None
    if done.returncode or not made.exists():
        message = done.stderr.strip()[-300:] or f"it ended with status {done.returncode}"
        raise fail("OCO692", f"zig does not compile for WebAssembly here: {message}", hint=_INSTALL)
    return made.read_bytes()
