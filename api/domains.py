"""Domains as objects that can be used alone, with NumPy arrays. `m.decision("x", 3, domain=...)` takes the same
objects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.dsl.functions import DOMAIN_FUNCTIONS
from oco.dsl.records import dataclass
from oco.dsl.terms import DomainTerm, Operand

if TYPE_CHECKING:
    from oco.compiler.domains import Domain as ConvexSet

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Domain(DomainTerm):
    """Set of arrays whose shape is that of the argument of its methods: `oco.simplex().project([0.2, 1.3])`."""

    _sets: dict[tuple[int, ...], ConvexSet] = field(default_factory=dict, compare=False, repr=False)

    def of_shape(self, shape: tuple[int, ...]) -> ConvexSet:
        """Set of arrays of one shape, with its diameter, radii, support function and so on."""
        from oco.compiler.domains import make_domain

        if shape not in self._sets:
            values = {} if self.scope is None else self.scope.values
            self._sets[shape] = make_domain(self.spec, shape, values)
        return self._sets[shape]

    def project(self, v: Any) -> Array:
        """Euclidean projection of `v` onto the set. Raises OcoError for another shape, and for entries that are not finite."""
        array = np.asarray(v, dtype=np.float64)
        return self.of_shape(array.shape).project_array(array)

    def lmo(self, c: Any) -> Array:
        """Minimizer of <c, x> over the set, of the shape of c (linear minimization oracle); ties are always broken the
        same way. Raises OCO413 for entries that are not finite.
        """
        array = np.asarray(c, dtype=np.float64)
        return self.of_shape(array.shape).lmo_array(array)

    def contains(self, x: Any, tolerance: float = 1e-9) -> bool:
        """True where `x` lies in the set, up to `tolerance` times the set's own scale. Raises OcoError for a shape that no such set has."""
        array = np.asarray(x, dtype=np.float64)
        return self.of_shape(array.shape).contains(array, tolerance)


def _constructor(make: Callable[..., DomainTerm]) -> Callable[..., Domain]:
    @wraps(make)  # which carries the signature over, too
    def constructor(*operands: Operand, **options: Operand) -> Domain:
        made = make(*operands, **options)
        return Domain(made.spec, made.scope)

    return constructor


DOMAIN_CONSTRUCTORS: dict[str, Callable[..., Domain]] = {n: _constructor(f) for n, f in DOMAIN_FUNCTIONS.items()}
