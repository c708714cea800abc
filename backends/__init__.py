"""Backends by name."""

from oco.backends.capabilities import CompileTime, Registered, Speed

BACKENDS = {
    "numpy": Registered(
        "oco.backends.python.backend:NumpyBackend",
        "NumPy",
        Speed(a_round=1e-4, operation=5e-7, number=7e-8, addition=4e-10, slow=2e-9, draw=1.5e-8),
        linear_algebra=True,
        parts=True,
    ),
    "c": Registered(
        "oco.backends.c99.backend:CBackend",
        "C",
        Speed(
            compiling=CompileTime(start=0.2, operation=8e-4, unrolled=5.5e-3),
            hastily=CompileTime(start=0.15, operation=4e-4, unrolled=1.4e-3),
            a_round=1e-7,
            operation=7e-10,
            number=7e-10,
            addition=4e-11,
            slow=2e-9,
            draw=1e-8,
        ),
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

Speeds fit what rounds and compilers took of a processor's time on the models of `examples/` (`docs/speed.md`).
"""
