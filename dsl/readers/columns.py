"""Columns of a csv file with a header, as texts: names, and numbers that stand beside names."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from oco.dsl.limits import MOST_NUMBERS
from oco.dsl.readers.decimals import decimal, lines_of
from oco.dsl.readers.quota import Quota, QuotaExceeded

CELL = 80
"""Approximate bytes of a text in memory."""


def read_columns(path: Path, quota: Quota) -> dict[str, list[str]]:
    """Cells of each column by its header. Raises ValueError where the file has no header or is not rectangular."""
    with path.open(newline="", encoding="utf-8-sig") as stream:
        rows = (row for row in csv.reader(lines_of(stream), strict=True) if row)
        header = [cell.strip() for cell in next(rows, [])]
        if not header or all(decimal(cell) is not None for cell in header):
            raise ValueError("it has no header with the names of its columns")
        if len(set(header)) < len(header):
            raise ValueError("two of its columns have one name")
        columns: list[list[str]] = [[] for _ in header]
        for number, row in enumerate(rows, start=2):
            if len(row) != len(header):
                raise ValueError(f"row {number} has {len(row)} cells, the header {len(header)}")
            quota.add(CELL * len(row))
            if number * len(row) > MOST_NUMBERS:
                raise QuotaExceeded(f"it holds more than {MOST_NUMBERS:,} cells")
            for column, cell in zip(columns, row):
                column.append(cell.strip())
    return dict(zip(header, columns))


def numbers(name: str, cells: list[str]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Cells of a column as numbers. Raises ValueError for one that is no finite number."""
    values = [decimal(cell) for cell in cells]
    for row, (cell, value) in enumerate(zip(cells, values), start=2):
        if value is None or not np.isfinite(value):
            raise ValueError(f"row {row}, column {name} is {cell[:30]!r}, not a finite number")
    return np.array(values, dtype=np.float64)
