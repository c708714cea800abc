"""Results of an experiment: a table, a figure and which claims held, as a page of docs/papers/ and on the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from oco.dsl.writing import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = Path(__file__).parent.parent.parent / "docs" / "papers"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, whether it held here, and the numbers that say so."""

    words: str
    held: bool
    numbers: str


@dataclass(frozen=True, eq=False)
class Report:
    """An experiment that was run.

    setup   paragraphs: what was run, and where the paper leaves something open
    columns, rows  the table, cells as text
    """

    name: str
    title: str
    source: str
    setup: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    claims: Sequence[Claim]
    figure: Figure
    notes: Sequence[str] = ()

    @property
    def table(self) -> str:
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    @property
    def markdown(self) -> str:
        verdicts = [f"* {'Held' if c.held else '**Did not hold**'}: {c.words} {c.numbers}" for c in self.claims]
        parts = [
            f"# {self.title}",
            f"{self.source}. `python -m benchmarks.papers {self.name}` makes this page.",
            *self.setup,
            self.table,
            f"![{self.title}]({self.name}.png)",
            "## Claims of the paper",
            "\n".join(verdicts),
        ]
        if self.notes:
            parts += ["## Seen beside it", "\n".join(f"* {note}" for note in self.notes)]
        return "\n\n".join(parts) + "\n"

    def write(self) -> None:
        """The page and its figure into docs/papers/; the table and the claims to the terminal."""
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.figure.savefig(FOLDER / f"{self.name}.png", dpi=110)
        write_text(FOLDER / f"{self.name}.md", self.markdown)
        print(f"{self.title}\n\n{self.table}\n")
        for claim in self.claims:
            print(f"{'held' if claim.held else 'DID NOT HOLD'}: {claim.words} {claim.numbers}")
        print(f"\nWritten to {FOLDER / self.name}.md and .png.")


def number(value: float | None) -> str:
    """Four digits that mean something."""
    if value is None or not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    return f"{value:.4g}" if abs(value) >= 1e5 or abs(value) < 1e-2 else f"{value:,.4g}"


def spread(mean: float, deviation: float) -> str:
    """A mean over seeds with its standard deviation."""
    return f"{number(mean)} ± {deviation:.2g}"
