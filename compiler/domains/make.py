"""From a domain as written to the set: checks the arguments by the language's table, then builds the class of its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.domains.ball import Ball
from oco.compiler.domains.base import Domain
from oco.compiler.domains.birkhoff import Birkhoff
from oco.compiler.domains.box import Box
from oco.compiler.domains.budget import Budget
from oco.compiler.domains.capped_simplex import capped_simplex
from oco.compiler.domains.ellipsoid import Ellipsoid
from oco.compiler.domains.flow import flow
from oco.compiler.domains.group_ball import GroupBall
from oco.compiler.domains.l1_ball import L1Ball
from oco.compiler.domains.nonneg_ball import NonnegBall
from oco.compiler.domains.nuclear_ball import NuclearBall
from oco.compiler.domains.polytope import Polytope
from oco.compiler.domains.simplex import Simplex
from oco.compiler.domains.spectrahedron import Spectrahedron
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.domains import DOMAINS
from oco.dsl.evaluate import evaluate
from oco.dsl.model import DomainSpec

KINDS: dict[str, Callable[..., Domain]] = {
    "ball": Ball,
    "birkhoff": Birkhoff,
    "box": Box,
    "budget": Budget,
    "capped_simplex": capped_simplex,
    "ellipsoid": Ellipsoid,
    "flow": flow,
    "group_ball": GroupBall,
    "l1_ball": L1Ball,
    "nonneg_ball": NonnegBall,
    "nuclear_ball": NuclearBall,
    "polytope": Polytope,
    "simplex": Simplex,
    "spectrahedron": Spectrahedron,
}
"""What makes each kind: `(shape, **arguments)`, named as the parameters of the kind in `dsl.domains.DOMAINS`."""


def domain(kind: str, shape: tuple[int, ...], *args: Any) -> Domain:
    """The domain of a kind for decisions of `shape`: `domain("box", (3,), 0, 1)`."""
    row = DOMAINS[kind]
    given = {name: np.asarray(value) for name, value in zip(row.parameters, args)}
    complaint = row.shapes(shape, {name: value.shape for name, value in given.items()}) or row.values(shape, given)
    if complaint is not None:
        raise fail(complaint.code, complaint.message, hint=complaint.hint)
    return KINDS[kind](shape, **given)


def make_domain(spec: DomainSpec, shape: tuple[int, ...], values: Mapping[str, Any]) -> Domain:
    """The domain that `spec` writes, for decisions of `shape`; `values` are the arrays of the params by name."""
    try:
        return domain(spec.kind, shape, *(evaluate(arg, values) for arg in spec.args))
    except OcoError as error:
        raise OcoError(*(replace(d, span=d.span or spec.span) for d in error.diagnostics)) from None
