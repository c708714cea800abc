"""Backends by name."""

from oco.backends.capabilities import Registered, Speed

BACKENDS = {
    "numpy": Registered(
        "oco.backends.python.backend:NumpyBackend",
        "NumPy",
        Speed(operation=1e-6, entry=1e-9),
        linear_algebra=True,
        parts=True,
    ),
    "c": Registered(
        "oco.backends.c99.backend:CBackend",
        "C",
        Speed(start=0.3, line=0.004, entry=1e-9),
        whole_runs=True,
        growth=True,
        precisions=("exact", "fast", "float32"),
        learners_have=("exact", "fast"),
        targets=("wasm",),
    ),
    "jax": Registered(
        "oco.backends.xla.backend:JaxBackend",
        "JAX",
        linear_algebra=True,
        whole_runs=True,
        gradients=True,
    ),
}
"""Registry of the backends, a row each; the first is the default.

Seconds for each operation of NumPy are those on small arrays.
"""
