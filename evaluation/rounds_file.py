"""Rounds of a run as a CSV file that emitted modules read: streams that were drawn, and missing values that were filled, included."""

from __future__ import annotations

import csv
from pathlib import Path

from oco.compiler.problem.canonical import entry_labels
from oco.evaluation.data import Data


def write_rounds(data: Data, path: str | Path) -> None:
    """Write every round with a column for each entry of each stream (`price[0]`, `price[NYC]`), as decimals that read back bit for bit."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow([label for s in data.problem.revealed for label in entry_labels(s.name, s.shape, s.axes)])
        for _, part in data.blocks():
            columns = [part[s.name].reshape(len(part[s.name]), -1) for s in data.problem.revealed]
            rows.writerows(zip(*(column.tolist() for whole in columns for column in whole.T), strict=True))


def is_complete(data: Data, source: Path, on_missing: str) -> bool:
    """True where a module can read the source itself: a CSV file with a value of each stream in each round."""
    return source.suffix.lower() == ".csv" and not data.drawn and on_missing == "error"
