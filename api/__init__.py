"""oco: a modeling language and compiler for online decisions under constraints.

    import oco
    model = oco.load("job_scheduling.oco")
    plan = oco.compile(model)
    learner = plan.learner(seed=0)
    x = learner.decide()
    feedback = learner.observe(price=price, jobs=jobs)

The functions of the language (`oco.sum`, `oco.log`, ...), its domains (`oco.box`, `oco.simplex`, ...) and its distributions
(`oco.poisson`, `oco.uniform`, ...) are here under their own names, for models that are written with `oco.Model`.
"""

from __future__ import annotations

from typing import Any

from oco.domains import Domain
from oco.dsl.builder import ModelBuilder as Model
from oco.dsl.diagnostics import Diagnostic, OcoError
from oco.dsl.habits import OF_PACKAGE, no_such_name
from oco.dsl.load import load, parse
from oco.dsl.terms import file
from oco.guarded import Untrusted, untrusted
from oco.magics import load as _load_cells
from oco.pipeline import alert, check, compile, load_trace, migrate, open, restore, tune
from oco.words import *  # noqa: F403
from oco.words import __all__ as _words

__version__ = "0.1.0"

__all__ = [
    "Diagnostic",
    "Domain",
    "Model",
    "OcoError",
    "Untrusted",
    "alert",
    "check",
    "compile",
    "file",
    "load",
    "load_trace",
    "migrate",
    "open",
    "parse",
    "restore",
    "tune",
    "untrusted",
    *_words,
]


def load_ipython_extension(ipython: Any) -> None:
    """Entry point of `%load_ext oco`: makes cells that begin with `%%oco NAME` models."""
    _load_cells(ipython)


def __getattr__(name: str) -> Any:
    if name in OF_PACKAGE or not name.startswith("_"):
        raise no_such_name("oco", name, OF_PACKAGE, __all__)
    raise AttributeError(f"module 'oco' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
