"""What a check found of a model file, as values that pass between processes, and the process that checks."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from oco.dsl.diagnostics import Diagnostic, OcoError


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
    """

    diagnostics: tuple[Mapping[str, Any], ...] = ()
    shapes: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, ShownFact] = field(default_factory=dict)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Checked:
        """Result that another process sent."""
        facts = {key: ShownFact(**fact) for key, fact in data["facts"].items()}
        return cls(tuple(data["diagnostics"]), data["shapes"], facts)


def checked(text: str, name: str, folder: str | None) -> Checked:
    """Check a model; data files are looked for in `folder`."""
    from oco.compiler.prover.check import check
    from oco.dsl.load import parse
    from oco.dsl.model import Model

    def words(diagnostics: tuple[Diagnostic, ...]) -> tuple[Mapping[str, Any], ...]:
        return tuple(d.as_data() for d in diagnostics)

    def shapes(model: Model) -> dict[str, str]:
        from oco.dsl.dims import show

        lets = {let.name: show(let.value.shape) for let in model.lets}
        declared = (*model.params, *model.decisions, *model.streams)
        return {d.name: show(d.shape) for d in declared} | lets

    try:
        model = parse(text, name=name, folder=folder)
    except OcoError as error:
        return Checked(words(error.diagnostics))
    try:
        facts = check(model)
    except OcoError as error:
        return Checked(words(error.diagnostics), shapes(model))
    return Checked(words(tuple(facts.warnings)), shapes(model), {key: _shown(facts[key]) for key in facts})


def _shown(fact: Any) -> ShownFact:
    from oco.compiler.prover.derivation import step_lines, value_text

    why = "" if fact.why is None else next(iter(step_lines(fact.why, 0, set()))).strip()
    return ShownFact(value_text(fact.value), fact.grade, why)


def main() -> None:
    """Answer checks on standard input, a line of JSON each, on standard output; the argument is the limit on memory, in bytes."""
    from oco.guarded import limit

    with suppress(ImportError):  # not every system has limits on processes
        limit(math.inf, int(sys.argv[1]))
    for line in sys.stdin:
        print(json.dumps(asdict(checked(**json.loads(line)))), flush=True)


def folder_of(path: str) -> str | None:
    """Folder of a file on this machine; None for a document that has not been saved."""
    return str(Path(path).resolve().parent) if path else None


if __name__ == "__main__":
    main()
