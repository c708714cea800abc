"""Emitted text, executed in this process with 64-bit numbers, whatever the process has set for JAX elsewhere."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from oco.backends.base import Arrays
from oco.backends.python.intake import finite

Array = np.ndarray[Any, Any]


def executed(source: str, name: str) -> Mapping[str, Callable[..., Any]]:
    """Functions of a rule's text, by name, not compiled yet."""
    place = f"<oco: {name}, jax>"
    linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)  # a traceback can show it
    namespace: dict[str, Any] = {}
    with jax.enable_x64(True):
        exec(compile(source, place, "exec"), namespace)
    return namespace


def in_64_bits(function: Callable[..., Any]) -> Callable[..., Any]:
    """Function that runs with 64-bit numbers, and gives what it gives as arrays of NumPy."""

    def run(*values: Any) -> Any:
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, function(*values))

    return run


def compiled(function: Callable[..., Any]) -> Callable[..., Arrays]:
    """Function of NumPy arrays, compiled on its first call; numbers of its results are numbers."""
    run = in_64_bits(jax.jit(function))
    return lambda *values: tuple(a[()] for a in run(*values))


def watched(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Arrays]:
    """Compiled function whose results, of these names, are checked: it raises NotFinite where they are not finite."""
    run = compiled(function)

    def looked_at(*values: Any) -> Arrays:
        with np.errstate(all="ignore"):
            results: Arrays = finite(names, run(*values))
        return results

    return looked_at
