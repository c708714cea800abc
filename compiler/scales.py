"""The units of a problem: x = origin + radius u, f = loss f', g_n = inequalities_n g_n', h_m = equalities_m h_m'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oco.compiler.domains import Domain

Floats = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Scales:
    """`origins` has an array (or a number) for each decision; `inequalities` (N,) and `equalities` (M,) one unit for each entry."""

    origins: tuple[Floats, ...]
    radius: float
    loss: float
    inequalities: Floats
    equalities: Floats

    def domains(self, domains: Sequence[Domain]) -> tuple[Domain, ...]:
        """The sets that u lies in."""
        return tuple(d.in_units(o, self.radius) for d, o in zip(domains, self.origins, strict=True))


def literal(blocks: int, inequalities: int, equalities: int) -> Scales:
    """The user's own units: u is x."""
    none = tuple(np.zeros(()) for _ in range(blocks))
    return Scales(none, 1.0, 1.0, np.ones(inequalities), np.ones(equalities))
