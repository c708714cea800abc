"""One thread of linear algebra for a command: the matrices of models are small, and more threads mostly wait for each other."""

from __future__ import annotations

import os

VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that BLAS libraries read as they are loaded."""


def one_thread() -> None:
    """Limit libraries of linear algebra that are loaded from now on, NumPy's too, and child processes to one thread.

    Whoever has set one of the variables decides otherwise.
    """
    if not any(name in os.environ for name in VARIABLES):
        os.environ.update(dict.fromkeys(VARIABLES, "1"))
