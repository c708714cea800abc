"""Numbers by the round in a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.problem.by_round import over_like_rounds

Floats = np.ndarray[Any, Any]


class RoundTable:
    """Table by the round (`compiler.problem.by_round`), (P, *shape), of which one row alone is for all rounds.

    shape  that of a row in the program, where it is another one
    """

    def __init__(self, t: Tracer, tables: Sequence[Floats], name: str, shape: tuple[int, ...] | None = None) -> None:
        """Rows of all tables next to each other along their first axis."""
        table = np.concatenate(over_like_rounds(tables), axis=1)
        self.t, self.rounds, self.shape = t, len(table), table.shape[1:] if shape is None else shape
        if self.rounds == 1:
            self.rows = t.reshape(t.constant(table[0], name), self.shape)
        else:
            self.rows = t.constant(table, f"{name}_by_round", f"{name} in each round of a cycle")

    def of(self, round_: Value) -> Value:
        """Row of the round with a number."""
        return self.rows if self.rounds == 1 else self.t.reshape(self.rows[(round_ - 1) % self.rounds], self.shape)
