"""Domains as objects of their own: NumPy in, NumPy out. The same objects stand in `m.decision("x", 3, domain=...)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.dsl.functions import DOMAIN_FUNCTIONS
from oco.dsl.terms import DomainTerm, Operand

if TYPE_CHECKING:
    from oco.compiler.domains import Domain as ConvexSet

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Domain(DomainTerm):
    """A set of arrays; the shape is that of the argument of its methods: `oco.simplex().project([0.2, 1.3])`."""

    _sets: dict[tuple[int, ...], ConvexSet] = field(default_factory=dict, compare=False, repr=False)

    def of_shape(self, shape: tuple[int, ...]) -> ConvexSet:
        """The set of arrays of one shape, with its diameter, radii, support function and the rest."""
        from oco.compiler.domains import make_domain

        if shape not in self._sets:
            values = {} if self.scope is None else self.scope.values
            self._sets[shape] = make_domain(self.spec, shape, values)
        return self._sets[shape]

    def project(self, v: Any) -> Array:
        """The point of the set nearest to `v` in the Euclidean norm. Raises OcoError where the set has no projection."""
        array = np.asarray(v, dtype=np.float64)
        return self.of_shape(array.shape).project_array(array)

    def lmo(self, c: Any) -> Array:
        """A point of the set that minimizes <c, x>; among several always the same one."""
        array = np.asarray(c, dtype=np.float64)
        return self.of_shape(array.shape).lmo_array(array)

    def contains(self, x: Any, tolerance: float = 1e-9) -> bool:
        """Whether `x` lies in the set, up to `tolerance` times the set's own scale."""
        array = np.asarray(x, dtype=np.float64)
        return self.of_shape(array.shape).contains(array, tolerance)


def _constructor(make: Callable[..., DomainTerm]) -> Callable[..., Domain]:
    @wraps(make)  # which carries the signature over, too
    def constructor(*operands: Operand, **options: Operand) -> Domain:
        made = make(*operands, **options)
        return Domain(made.spec, made.scope)

    return constructor


DOMAIN_CONSTRUCTORS: dict[str, Callable[..., Domain]] = {n: _constructor(f) for n, f in DOMAIN_FUNCTIONS.items()}
