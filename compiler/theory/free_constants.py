"""Constants that a theorem leaves free."""

from __future__ import annotations

from oco.compiler.theory.settings import Default
from oco.dsl.records import dataclass


@dataclass(frozen=True)
class Free:
    """A constant that a theorem leaves free, as a setting of its own choosing: `paper` takes the default, `optimal` the best in a range.

    kind    "factor": the default's formula times a number; "count": the same, rounded to an integer, at least 1; "value": the
            number itself
    powers  where the bounds are sums of these powers of the number (beside a constant), so that the least sum has a closed form
    """

    name: str
    low: float = 1e-6
    high: float = 1e6
    kind: str = "factor"
    powers: tuple[int, int] | None = None

    def formula(self, default: Default, number: float | str) -> str | float:
        """The setting where this constant is `number`."""
        if self.kind == "value":
            return number
        grown = f"{number} * ({default.formula})"
        return grown if self.kind == "factor" else f"max(1, floor({grown} + 1/2))"
