"""Missing values (NaN) in data: filled with the last value before, or their rounds left out, where the caller asks for
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from oco.dsl.diagnostics import fail
from oco.evaluation.table import Array, Table

SHOWN = 3  # places that a note names


def checked(on_missing: str) -> str:
    """Validate the word for treating missing values. Raises OCO826."""
    if on_missing not in ("error", "hold", "skip"):
        hint = 'it is "error", "hold" or "skip"'
        raise fail("OCO826", f"`{on_missing}` is no way to treat missing values", hint=hint)
    return on_missing


def repaired(table: Table, on_missing: str, used: Sequence[str]) -> tuple[Table, tuple[str, ...]]:
    """Table with missing values filled or left out in the columns in use, as far as possible, with notes on what was
    done.
    """
    if checked(on_missing) == "error":
        return table, ()
    entries = {n: np.asarray(np.isnan(table.arrays[n])) for n in used}
    for name in entries.keys() & table.texts.keys():
        entries[name][[place // table.width(name) for place in table.texts[name]]] = False
    missing = {n: np.asarray(gone.reshape(len(gone), -1).any(axis=1)) for n, gone in entries.items()}
    if on_missing == "hold":
        arrays = {n: _held(table.arrays[n], entries[n]) for n, gone in missing.items() if gone.any()}
        filled = {n: int(np.count_nonzero(gone & (np.cumsum(~gone) > 0))) for n, gone in missing.items()}
        parts = [f"`{n}` {count}" for n, count in filled.items() if count]
        message = f"missing values that hold the last one before: {', '.join(parts[:SHOWN])}{_more(parts)}"
        return replace(table, arrays={**table.arrays, **arrays}), (message,) if parts else ()
    keep = (
        ~np.any([gone[: table.rounds] for gone in missing.values()], axis=0) if missing else np.ones(table.rounds, bool)
    )
    if keep.all():
        return table, ()
    lost = [table.where(int(row)) for row in np.flatnonzero(~keep)[: SHOWN + 1]]
    message = f"{np.count_nonzero(~keep)} of {table.rounds} rounds left out, which lack values: {', '.join(lost[:SHOWN])}{_more(lost)}"
    numbers = np.arange(1, table.rounds + 1) if table.row_numbers is None else table.row_numbers
    kept = {n: a[: table.rounds][keep] for n, a in table.arrays.items()}
    texts = {n: _moved(cells, keep, table.width(n)) for n, cells in table.texts.items()}
    times = {n: cells[: table.rounds][keep] for n, cells in table.times.items()}
    left = replace(table, arrays=kept, texts=texts, times=times, row_numbers=numbers[: table.rounds][keep])
    return left, (message,)


class RepairedRounds:
    """Rounds of an iterator, repaired one by one; `notes` then says what was done."""

    def __init__(self, rounds: Iterable[Mapping[str, Array]], on_missing: str) -> None:
        self._rounds = rounds
        self._how = checked(on_missing)
        self._last: dict[str, Array] = {}
        self._fixed = 0

    def __iter__(self) -> Iterator[dict[str, Array]]:
        if self._how == "error":
            yield from map(dict, self._rounds)
            return
        for values in self._rounds:
            results = dict(values)
            if self._how != "error":
                gone = {n: np.isnan(v) for n, v in results.items() if v.dtype.kind == "f"}
                short = [n for n, m in gone.items() if m.any()]
                self._fixed += bool(short)
                if short and self._how == "skip":
                    continue
                results |= {n: np.where(gone[n], self._last[n], results[n]) for n in short if n in self._last}
                self._last = {n: results[n] for n in gone}
            yield results

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the rounds that were left out or filled."""
        done = {"skip": "left out, which lacked values", "hold": "filled with the last values before"}
        rounds = "1 round" if self._fixed == 1 else f"{self._fixed} rounds"
        return (f"{rounds} {done[self._how]}",) if self._fixed else ()


def _more(named: Sequence[str]) -> str:
    return ", ..." if len(named) > SHOWN else ""


def _moved(cells: Mapping[int, str], keep: Array, width: int) -> dict[int, str]:
    """Places of cells after rows that are not kept have been removed."""
    row = np.cumsum(keep) - 1
    return {int(row[p // width]) * width + p % width: text for p, text in cells.items() if keep[p // width]}


def _held(array: Array, missing: Array) -> Array:
    """Array (rounds, ...) with each missing entry at the last value before it, where there is one."""
    rounds = np.arange(len(array)).reshape(-1, *[1] * (array.ndim - 1))
    last = np.maximum.accumulate(np.where(missing, -1, rounds), axis=0)
    return np.where(last >= 0, np.take_along_axis(array, np.maximum(last, 0), axis=0), array)
