"""Budget: lo <= x <= hi with a given total."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from oco.compiler.domains.arguments import written
from oco.compiler.domains.box_sum import BoxSum
from oco.compiler.domains.properties import EntrySum
from oco.dsl.records import dataclass


@dataclass(frozen=True, eq=False)
class Budget(BoxSum):
    """{ lo <= x <= hi : sum x = total }."""

    kind: ClassVar[str] = "budget"
    lengths = ("lo", "hi", "total")

    @property
    def entry_sum(self) -> EntrySum:
        return EntrySum("", float(self.support(np.ones(self.shape))))

    def __str__(self) -> str:
        return f"budget({written(self.lo)}, {written(self.hi)}, {written(self.total)})"
