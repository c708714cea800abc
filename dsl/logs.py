"""Loggers of this package, below the one called `oco`: quiet until a program gives that one, or the root, a handler."""

from __future__ import annotations

import logging


def logger(module: str) -> logging.Logger:
    """Logger of a module; without a handler of the program's own nothing is written, warnings neither."""
    top = logging.getLogger("oco")
    if not any(isinstance(handler, logging.NullHandler) for handler in top.handlers):
        top.addHandler(logging.NullHandler())
    return logging.getLogger(module)
