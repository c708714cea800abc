"""Budget: lo <= x <= hi with a given total."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from oco.compiler.domains.arguments import written
from oco.compiler.domains.box_sum import BoxSum


@dataclass(frozen=True, eq=False)
class Budget(BoxSum):
    """{ lo <= x <= hi : sum x = total }."""

    kind: ClassVar[str] = "budget"
    lengths = ("lo", "hi", "total")

    def __str__(self) -> str:
        return f"budget({written(self.lo)}, {written(self.hi)}, {written(self.total)})"
