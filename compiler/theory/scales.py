"""The units of a problem: x = origin + radius u, f = loss f', g_n = inequalities_n g_n', h_m = equalities_m h_m'."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oco.compiler.domains import Domain, in_units
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Scales:
    """`origins` has an array (or a number) for each decision; `inequalities` (N,) and `equalities` (M,) one unit for each entry."""

    origins: tuple[Floats, ...]
    radius: float
    loss: float
    inequalities: Floats
    equalities: Floats

    def dual(self, equality: bool, multiplier: bool, vector: bool) -> Floats:
        """Factors that bring a queue to the user's units, an entry a constraint: g_n for a sum of g_n, loss / g_n for a multiplier of g_n.

        One number for the worst constraint has a unit where all constraints share theirs; else it stays in that of the problem in u.
        """
        own = self.equalities if equality else self.inequalities
        if not vector:
            own = own[:1] if own.size and bool((own == own[0]).all()) else np.ones(1)
            own = own.reshape(())
        return np.asarray(self.loss / own if multiplier else own)

    def domains(self, domains: Sequence[Domain]) -> tuple[Domain, ...]:
        """The sets that u lies in."""
        return tuple(in_units(d, o, self.radius) for d, o in zip(domains, self.origins, strict=True))


def literal(blocks: int, inequalities: int, equalities: int) -> Scales:
    """The user's own units: u is x."""
    none = tuple(np.zeros(()) for _ in range(blocks))
    return Scales(none, 1.0, 1.0, np.ones(inequalities), np.ones(equalities))
