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

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oco.domains import Domain
    from oco.dsl.builder import ModelBuilder as Model
    from oco.dsl.diagnostics import Diagnostic, OcoError
    from oco.dsl.load import load, parse
    from oco.dsl.terms import file
    from oco.fleets.cluster import ClusterFleet
    from oco.guarded import Untrusted, untrusted
    from oco.pipeline import alert, check, compile, load_trace, migrate, open, restore, restore_fleet, tune
    from oco.words import *  # noqa: F403
    from oco.words import __all__ as _words

    __all__ = [
        "ClusterFleet",
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
        "restore_fleet",
        "tune",
        "untrusted",
        *_words,
    ]

__version__ = "0.1.0"

PLACES = {
    "ClusterFleet": "oco.fleets.cluster",
    "Diagnostic": "oco.dsl.diagnostics",
    "Domain": "oco.domains",
    "Model": "oco.dsl.builder:ModelBuilder",
    "OcoError": "oco.dsl.diagnostics",
    "Untrusted": "oco.guarded",
    "alert": "oco.pipeline",
    "check": "oco.pipeline",
    "compile": "oco.pipeline",
    "file": "oco.dsl.terms",
    "load": "oco.dsl.load",
    "load_trace": "oco.pipeline",
    "migrate": "oco.pipeline",
    "open": "oco.pipeline",
    "parse": "oco.dsl.load",
    "restore": "oco.pipeline",
    "restore_fleet": "oco.pipeline",
    "tune": "oco.pipeline",
    "untrusted": "oco.guarded",
}
"""Module of each public name beside the words of the language, and where it differs the name there. A module is imported when one of its
names is first used: `oco --help` needs none of them."""


def load_ipython_extension(ipython: Any) -> None:
    """Entry point of `%load_ext oco`: makes cells that begin with `%%oco NAME` models."""
    from oco.magics import load as load_cells

    load_cells(ipython)


def __getattr__(name: str) -> Any:
    value = _public(name)
    globals()[name] = value
    return value


def _public(name: str) -> Any:
    """Value of a public name, of which the module is imported."""
    if name in PLACES:
        module, _, own = PLACES[name].partition(":")
        return getattr(import_module(module), own or name)
    if name.startswith("_") and name != "__all__":
        raise AttributeError(f"module 'oco' has no attribute {name!r}")
    words = import_module("oco.words")
    public = [*PLACES, *words.__all__]
    if name == "__all__":
        return public
    if name in public:
        return getattr(words, name)
    from oco.dsl.habits import OF_PACKAGE, no_such_name

    raise no_such_name("oco", name, OF_PACKAGE, public)


def __dir__() -> list[str]:
    return sorted([*_public("__all__"), "__version__"])
