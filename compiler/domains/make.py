"""From a domain as written to the set: checks the arguments by the language's table, then builds the class of its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.domains import DOMAINS
from oco.dsl.evaluate import evaluate
from oco.dsl.statements import DomainSpec

if TYPE_CHECKING:
    from oco.compiler.domains.base import Domain
from oco.compiler.domains.programs import MOST_STEPS


def maker(kind: str) -> Callable[..., Domain]:
    """Maker of domains of a kind: `(shape, **arguments)`, named as the parameters of the kind in `dsl.domains.DOMAINS`.

    It stands in the module of the kind's name, imported when a model has the kind: the function of that name, or else the class.
    """
    module = vars(import_module(f"oco.compiler.domains.{kind}"))
    classes = (c for c in module.values() if isinstance(c, type) and vars(c).get("kind") == kind)
    make: Callable[..., Domain] = module.get(kind) or next(classes)
    return make


def domain(kind: str, shape: tuple[int, ...], *args: Any, steps: int = MOST_STEPS) -> Domain:
    """The domain of a kind for decisions of `shape`: `domain("box", (3,), 0, 1)`.

    steps  what linear programs may take that find the size of a polytope
    """
    row = DOMAINS[kind]
    given = {name: np.asarray(value) for name, value in zip(row.parameters, args)}
    complaint = row.shapes(shape, {name: value.shape for name, value in given.items()}) or row.values(shape, given)
    if complaint is not None:
        raise fail(complaint.code, complaint.message, hint=complaint.hint)
    return maker(kind)(shape, **given, **({"steps": steps} if kind == "polytope" else {}))


def make_domain(spec: DomainSpec, shape: tuple[int, ...], values: Mapping[str, Any], steps: int = MOST_STEPS) -> Domain:
    """The domain that `spec` writes, for decisions of `shape`; `values` are the arrays of the params by name."""
    try:
        return domain(spec.kind, shape, *(evaluate(arg, values) for arg in spec.args), steps=steps)
    except OcoError as error:
        raise OcoError(*(replace(d, span=d.span or spec.span) for d in error.diagnostics)) from None
