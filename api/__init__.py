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

from oco.domains import DOMAIN_CONSTRUCTORS, Domain
from oco.dsl.builder import ModelBuilder as Model
from oco.dsl.diagnostics import Diagnostic, OcoError
from oco.dsl.load import load, parse
from oco.dsl.terms import DISTRIBUTION_FUNCTIONS, FUNCTIONS, file
from oco.pipeline import check, compile, load_trace, open, restore, tune

__version__ = "0.1.0"

_WORDS: dict[str, Any] = {**FUNCTIONS, **DOMAIN_CONSTRUCTORS, **DISTRIBUTION_FUNCTIONS}

__all__ = [
    "Diagnostic",
    "Domain",
    "Model",
    "OcoError",
    "check",
    "compile",
    "file",
    "load",
    "load_trace",
    "open",
    "parse",
    "restore",
    "tune",
    *sorted(_WORDS),
]


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext oco`: cells that begin with `%%oco NAME` are models."""
    from oco.magics import load

    load(ipython)


def __getattr__(name: str) -> Any:
    try:
        return _WORDS[name]
    except KeyError:
        raise AttributeError(f"module 'oco' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *_WORDS})
