"""Polytope: A x <= b, bounded."""

from __future__ import annotations

from typing import ClassVar

from oco.compiler.domains.arguments import written
from oco.compiler.domains.polyhedron import Polyhedron
from oco.dsl.records import dataclass


@dataclass(frozen=True, eq=False)
class Polytope(Polyhedron):
    """{ x : A x <= b }."""

    kind: ClassVar[str] = "polytope"
    lengths = ("b",)

    def __str__(self) -> str:
        return f"polytope({written(self.A)}, {written(self.b)})"
