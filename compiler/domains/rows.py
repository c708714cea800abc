"""Inequalities and equalities with rows of norm one, and linear programs over them, counted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.compiler.domains.programs import Program
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.limits import MOST_ROW_NUMBERS


@dataclass(frozen=True, eq=False)
class Rows:
    """{ x : A x <= b, E x = f }, the rows of norm one; `name` is what messages call it."""

    A: Floats
    b: Floats
    E: Floats
    f: Floats
    name: str

    @classmethod
    def of(cls, A: Floats, b: Floats, E: Floats, f: Floats, name: str) -> Rows:
        """Without rows that say nothing. An error where they do not fit into memory."""
        check_rows(len(A) + len(E), A.shape[1], name)
        return cls(*_unit_rows(A, b), *_unit_rows(E, f), name)

    @property
    def size(self) -> int:
        return int(self.A.shape[1])

    @property
    def count(self) -> int:
        return len(self.A) + len(self.E)

    @property
    def unit(self) -> float:
        """The size of the right sides; 1 where all are 0."""
        return float(max(np.max(np.abs(self.b), initial=0.0), np.max(np.abs(self.f), initial=0.0))) or 1.0

    @cached_property
    def program(self) -> Program:
        """Linear programs over the set."""
        return Program(self.A, self.b, self.E, self.f)

    def about(self, centre: Floats | float, size: float) -> Rows:
        """The same for (x - centre) / size."""
        moved = np.broadcast_to(np.asarray(centre, dtype=np.float64), (self.size,))
        return Rows(self.A, (self.b - self.A @ moved) / size, self.E, (self.f - self.E @ moved) / size, self.name)

    def empty(self) -> OcoError:
        return fail("OCO410", f"{self.name} is empty: its inequalities contradict each other")


def check_rows(count: int, size: int, name: str) -> None:
    """Raises OcoError (OCO805) where so many rows of so many entries do not fit into memory."""
    if count * size > MOST_ROW_NUMBERS:
        message = f"{name} has {count:,} rows over {size:,} entries: at most {MOST_ROW_NUMBERS:,} numbers of rows fit into memory"
        raise fail("OCO805", message, hint="state bounds of the entries by `box(lower, upper)`, and use fewer rows")


def _unit_rows(A: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Rows of norm one, without those that say nothing."""
    largest = np.max(np.abs(A), axis=1, initial=0.0)
    kept = largest > 0
    A, b = A[kept] / largest[kept, None], b[kept] / largest[kept]
    length = np.linalg.norm(A, axis=1)
    A /= length[:, None]
    return A, b / length
