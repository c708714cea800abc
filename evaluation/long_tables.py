"""Long tables: a row for each name of an index in each round, which become a row a round with a column for each name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from oco.compiler.problem.canonical import StreamRange
from oco.dsl.diagnostics import fail
from oco.dsl.labels import Axis, listed
from oco.dsl.suggest import did_you_mean
from oco.evaluation.table import Array, Table

StreamMap = Mapping[str, str | Sequence[str]]
ROUND = "round"
"""Column that numbers the rounds of a table without times."""


def widened(table: Table, streams: Sequence[StreamRange], mapping: StreamMap | None) -> tuple[Table, StreamMap]:
    """Table with a row a round, and what is left of the mapping; both as they are where the table has no column of an index's names.

    The column is one that the mapping gives to the index (`zone=Name`), that is called as the index, or that holds all its names. A round
    is what has one time; without times what `round` numbers; without either the k-th rows of all names are round k.
    Raises OCO835.
    """
    given = dict(mapping or {})
    axes = {a.index: a for s in streams for a in s.axes if a is not None}
    keys = {index: given.pop(index) for index in axes if index in given}
    for axis in axes.values():
        key = _key(table, axis, keys.get(axis.index))
        if key is not None:
            return _Pivot(table, axis, key).wide(streams, given)
    return table, given


def _key(table: Table, axis: Axis, named: str | Sequence[str] | None) -> str | None:
    if named is not None:
        column = named if isinstance(named, str) else named[0]
        if column not in table.arrays:
            hint = did_you_mean(column, table.arrays, f"its columns are {listed(table.arrays)}")
            raise fail("OCO824", f"{table.name} has no column `{column}`, with the names of `{axis.index}`", hint=hint)
        return column
    called = next((c for c in table.arrays if c.lower() == axis.index.lower() and table.arrays[c].ndim == 1), None)
    if called is not None:
        return called
    return next((c for c, cells in table.texts.items() if set(axis.names) <= set(cells.values())), None)


class _Pivot:
    """Rows of a long table by round and name: `rows` (rounds, names) holds their numbers, -1 where there is none."""

    def __init__(self, table: Table, axis: Axis, key: str) -> None:
        self.table, self.axis, self.key = table, axis, key
        names = self._names()
        self.counted = ROUND if not table.times and ROUND in table.arrays else ""
        rounds, count = self._rounds(names)
        self.rows = np.full((count, len(axis.names)), -1)
        for row, (t, j) in enumerate(zip(rounds, names)):
            if self.rows[t, j] >= 0:
                message = f"{table.name}, {table.where(row)}: a second row for `{axis.names[j]}` in round {t + 1}"
                raise fail("OCO835", message, hint="keep one row for each name in a round")
            self.rows[t, j] = row
        self.first = np.array([r[r >= 0].min() for r in self.rows], dtype=np.int64)

    def _names(self) -> list[int]:
        """Place of each row's name in the index."""
        cells, texts = self.table.arrays[self.key], self.table.texts.get(self.key, {})
        there = [texts.get(k) or _as_text(cells[k]) for k in range(len(cells))]
        unknown = [n for n in dict.fromkeys(there) if n not in self.axis.names]
        missing = [n for n in self.axis.names if n not in set(there)]
        if unknown or missing:
            parts = [f"has no {listed(missing)}"] if missing else []
            parts += [f"has {listed(unknown)}, which the index `{self.axis.index}` does not have"] if unknown else []
            message = f"column `{self.key}` of {self.table.name} {' and '.join(parts)}"
            hint = did_you_mean(unknown[0], missing, "") if unknown and missing else ""
            raise fail("OCO835", message, hint=hint or "add the names to the index, or leave out their rows")
        places = {name: j for j, name in enumerate(self.axis.names)}
        return [places[name] for name in there]

    def _rounds(self, names: Sequence[int]) -> tuple[list[int], int]:
        """Round of each row, from 0 in the order in which they come, and their number."""
        marks = next(iter(self.table.times.values()), None)
        marks = self.table.arrays[self.counted] if marks is None and self.counted else marks
        if marks is not None:
            order: dict[object, int] = {}
            rounds = [order.setdefault(mark, len(order)) for mark in marks[: len(names)].tolist()]
            return rounds, len(order)
        seen = [0] * len(self.axis.names)
        rounds = []
        for j in names:
            rounds.append(seen[j])
            seen[j] += 1
        return rounds, max(seen, default=0)

    def wide(self, streams: Sequence[StreamRange], given: dict[str, str | Sequence[str]]) -> tuple[Table, StreamMap]:
        """Table with a row a round: a column for each name where a stream has the axis, else one with what all rows of a round share."""
        arrays: dict[str, Array] = {}
        texts: dict[str, dict[int, str]] = {}
        taken = {self.key, self.counted}
        for s in streams:
            column = given.get(s.name, s.name)
            column = column if isinstance(column, str) else column[0] if len(column) == 1 else ""
            if column not in self.table.arrays or column in (self.key, self.counted):
                continue
            taken.add(column)
            given.pop(s.name, None)
            if s.axes == (self.axis,):
                for j, name in enumerate(self.axis.names):
                    arrays[f"{s.name}[{name}]"] = self._cells(column, self.rows[:, j])
                    texts[f"{s.name}[{name}]"] = self._texts(column, self.rows[:, j])
            else:
                arrays[s.name] = self._shared(column)
                texts[s.name] = self._texts(column, self.first)
        for column in self.table.arrays:
            if column not in taken:
                arrays[column] = self._cells(column, self.first)
        times = {name: cells[self.first] for name, cells in self.table.times.items()}
        numbers = np.arange(1, len(self.table.arrays[self.key]) + 1)
        numbers = numbers if self.table.row_numbers is None else self.table.row_numbers
        kept = {name: cells for name, cells in texts.items() if cells}
        return replace(self.table, arrays=arrays, texts=kept, times=times, row_numbers=numbers[self.first]), given

    def _cells(self, column: str, rows: Array) -> Array:
        """Cells of a column in these rows; NaN where there is no row."""
        cells = self.table.arrays[column]
        return cells[rows] if (rows >= 0).all() else np.where(rows >= 0, cells[rows], np.nan)

    def _texts(self, column: str, rows: Array) -> dict[int, str]:
        own = self.table.texts.get(column, {})
        return {t: own[row] for t, row in enumerate(rows.tolist()) if row in own} if own else {}

    def _shared(self, column: str) -> Array:
        """Value that all rows of a round have. Raises OCO835 where they differ."""
        cells = self.table.arrays[column]
        first = cells[self.first]
        for j in range(self.rows.shape[1]):
            own = self._cells(column, self.rows[:, j])
            other = np.flatnonzero(~((own == first) | np.isnan(own) | np.isnan(first)))
            if len(other):
                row = int(self.rows[other[0], j])
                message = (
                    f"{self.table.name}, {self.table.where(row)}: `{column}` is {cells[row]:g}, elsewhere in the round "
                )
                message += f"{first[other[0]]:g}, and the stream has one number a round"
                raise fail("OCO835", message, hint=f"declare it with the index: `{column}[{self.axis.index}]`")
        return first


def _as_text(cell: float) -> str:
    return str(int(cell)) if np.isfinite(cell) and float(cell).is_integer() else str(cell)
