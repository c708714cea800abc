"""Capped simplex: 0 <= x <= cap, sum x = s."""

from __future__ import annotations

from typing import Any, ClassVar

from oco.compiler.domains.arguments import written
from oco.compiler.domains.box_sum import BoxSum
from oco.dsl.records import dataclass


@dataclass(frozen=True, eq=False)
class CappedSimplex(BoxSum):
    """{ 0 <= x <= cap : sum x = s }: a simplex in which no entry takes more than its cap."""

    kind: ClassVar[str] = "capped_simplex"
    lengths = ("lo", "hi", "total")

    def __str__(self) -> str:
        total = "" if self.total == 1 else f", {written(self.total)}"
        return f"capped_simplex({written(self.hi)}{total})"


def capped_simplex(shape: tuple[int, ...], cap: Any, s: float = 1.0) -> CappedSimplex:
    """Set { 0 <= x <= cap, sum(x) = s }; `cap` is a number or an array of `shape`."""
    return CappedSimplex(shape, 0.0, cap, s)  # type: ignore[arg-type]
