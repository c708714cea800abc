"""From a domain as written to the domain: evaluates the arguments and checks what they mean together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oco.compiler.domains.ball import Ball
from oco.compiler.domains.base import Domain
from oco.compiler.domains.box import Box
from oco.compiler.domains.simplex import Simplex
from oco.dsl.diagnostics import InternalError, OcoError
from oco.dsl.model import DomainSpec


@dataclass(frozen=True)
class DomainKind:
    """A row of the table: the class, and the names of its arguments in the order of the language."""

    make: type[Domain]
    arguments: tuple[str, ...]


KINDS: dict[str, DomainKind] = {
    "box": DomainKind(Box, ("lo", "hi")),
    "ball": DomainKind(Ball, ("r",)),
    "simplex": DomainKind(Simplex, ("s",)),
}


def domain(kind: str, shape: tuple[int, ...], *args: Any) -> Domain:
    """The domain of a kind for decisions of `shape`: `domain("box", (3,), 0, 1)`."""
    if kind not in KINDS:
        raise InternalError(f"no domain of kind {kind!r}")
    row = KINDS[kind]
    return row.make(shape, **dict(zip(row.arguments, args)))


def make_domain(spec: DomainSpec, shape: tuple[int, ...], values: Mapping[str, Any]) -> Domain:
    """The domain that `spec` writes, for decisions of `shape`; `values` are the arrays of the params by name."""
    from oco.dsl.evaluate import evaluate

    args = [np.asarray(evaluate(arg, values)) for arg in spec.args]
    try:
        return domain(spec.kind, shape, *args)
    except OcoError as error:
        raise OcoError(*(replace(d, span=d.span or spec.span) for d in error.diagnostics)) from None
