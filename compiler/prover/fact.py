"""Fact about a model: its value, its status and its derivation."""

from __future__ import annotations

from typing import Any

from oco.compiler.prover.derivation import step_lines, value_text, witness_lines
from oco.compiler.prover.types import Status, Step, Witness
from oco.dsl.records import dataclass


@dataclass(frozen=True)
class Fact:
    """A value (number, bool, array or None), its status and reason. `loose`: sound, but not known to be within 5% of the best."""

    key: str
    value: Any
    status: Status
    why: Step | None = None
    cite: str = ""
    loose: bool = False
    witness: Witness | None = None

    @property
    def known(self) -> bool:
        """True if the value may be relied on: proved, declared or measured."""
        return self.status in (Status.PROVED, Status.DECLARED, Status.MEASURED)

    @property
    def grade(self) -> str:
        """Status in words, with a note where the value is loose."""
        return f"{self.status}{', loose' if self.loose else ''}"

    def __str__(self) -> str:
        """Value, source and derivation, each step under the one that uses it."""
        lines = [f"{self.key}: {value_text(self.value)}, {self.grade}", *([self.cite] if self.cite else [])]
        lines += ["Nothing is known about it."] if self.why is None else ["", *step_lines(self.why, 0, set())]
        lines += [] if self.witness is None else ["", *witness_lines(self.witness)]
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return f"Fact({self.key!r}, {self.value!r}, {self.status.value})"
