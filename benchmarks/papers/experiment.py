"""An experiment of a paper, and the data that some of them read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.papers.report import Report

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
EXAMPLES = ROOT / "examples"
SHARED = ROOT.parent / "shared" / "data"


class Missing(Exception):
    """Data that the project may not ship is not where it is looked for."""


@dataclass(frozen=True)
class Experiment:
    """`run` takes the minutes that it may last, where it lasts as long as it may."""

    name: str
    title: str
    run: Callable[[float], Report]


def shared(name: str) -> Path:
    """A file of the data that is read by path and never shipped."""
    path = SHARED / name
    if not path.exists():
        raise Missing(str(path))
    return path
