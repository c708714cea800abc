"""One thread of linear algebra for a command: the matrices of models are small, and more threads mostly wait for each other."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that BLAS libraries read as they are loaded."""
SETTERS = (
    "scipy_openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads",
    "openblas_set_num_threads64_",
    "openblas_set_num_threads",
)
"""Names of the function that sets the threads, by the build of OpenBLAS."""


def one_thread() -> None:
    """Limit the OpenBLAS that NumPy came with, libraries that are loaded from now on, and child processes to one thread.

    Whoever has set one of the variables decides otherwise.
    """
    if any(name in os.environ for name in VARIABLES):
        return
    os.environ.update(dict.fromkeys(VARIABLES, "1"))
    for path in _libraries():
        library = ctypes.CDLL(str(path))
        for name in SETTERS:
            if hasattr(library, name):
                getattr(library, name)(1)


def _libraries() -> Iterator[Path]:
    """Files of OpenBLAS in NumPy's wheels, which are loaded already; none where it uses the system's."""
    package = Path(np.__file__).parent
    for folder in (package.with_name("numpy.libs"), package / ".dylibs"):
        yield from folder.glob("*openblas*")
