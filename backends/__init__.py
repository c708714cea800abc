"""Backends by name."""

BACKENDS = {
    "numpy": "oco.backends.python.backend:NumpyBackend",
    "c": "oco.backends.c99.backend:CBackend",
}
"""Modules and classes of the backends; a module is imported on first use. The first is the default."""
