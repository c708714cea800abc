"""The table of docs/guarantees.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.guarantees.attacks import Worst, attacked
from benchmarks.guarantees.cases import Case, cases
from oco.dsl.writing import write_text

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guarantees.md"
MARK = "<!-- tables: written by `python -m benchmarks.guarantees --write` -->"
HEAD = "| algorithm | shape | regret | by | violation | by |\n| --- | --- | --- | --- | --- | --- |"


def cell(worst: Worst) -> str:
    if worst.share is None:
        return "- | "
    error = f" ± {worst.error:.1g}" if worst.error else ""
    beyond = " **exceeded**" if worst.share - 3 * worst.error > 1 else ""
    return f"{worst.share:.2g}{error}{beyond} | {worst.attack}"


def row(c: Case, worst: Mapping[str, Worst]) -> str:
    return f"| {c.algorithm} | {c.shape} | {cell(worst['regret'])} | {cell(worst['violation'])} |"


def rows_of(algorithm: str, seeds: int, kept: Mapping[tuple[str, str], str]) -> list[str]:
    """Rows of an algorithm: those that are kept, by algorithm and shape, as they are."""
    return [kept.get((c.algorithm, c.shape)) or row(c, attacked(c, seeds)) for c in cases(algorithm)]


def rows_of_page() -> dict[tuple[str, str], str]:
    """Rows of the page, by algorithm and shape."""
    rows = PAGE.read_text(encoding="utf-8").split(HEAD)[1].strip().splitlines()
    return {(algorithm.strip(), shape.strip()): r for r in rows for _, algorithm, shape, *_ in [r.split("|")]}


def write_page(rows: Sequence[str]) -> None:
    words = PAGE.read_text(encoding="utf-8").split(MARK)[0]
    write_text(PAGE, f"{words}{MARK}\n\n" + "\n".join([HEAD, *rows]) + "\n")
