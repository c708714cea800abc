"""Result of a check of a model file, as values that pass between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from oco.dsl.records import dataclass


@dataclass(frozen=True)
class ShownFact:
    """Fact in words: its value, its status, and the first line of its derivation."""

    value: str
    grade: str
    why: str = ""


@dataclass(frozen=True)
class Checked:
    """Result of a check.

    diagnostics  as `Diagnostic.as_data` gives them: mistakes, or warnings of a model that is right
    shapes       of the declared names, in words; empty where the model could not be made
    facts        by key; empty where the model is wrong
    ranges       of the names of expressions (`let`), in words, as far as they are known
    """

    diagnostics: tuple[Mapping[str, Any], ...] = ()
    shapes: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, ShownFact] = field(default_factory=dict)
    ranges: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Checked:
        """Result that another process sent."""
        facts = {key: ShownFact(**fact) for key, fact in data["facts"].items()}
        return cls(tuple(data["diagnostics"]), data["shapes"], facts, data["ranges"])


def folder_of(path: str) -> str | None:
    """Folder of a file on this machine; None for a document that has not been saved."""
    return str(Path(path).resolve().parent) if path else None
