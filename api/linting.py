"""Lint: style and likely mistakes of model files, as warnings with codes and, where there is one, the edit that repairs them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.check import check_canonical
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.mixed_units import mixed_units
from oco.compiler.prover.search_budget import SearchBudget
from oco.compiler.selection.horizons import short_horizon
from oco.compiler.selection.modes import Mode
from oco.compiler.selection.plan import explain_choice
from oco.dsl.diagnostics import Diagnostic, OcoError, contained
from oco.dsl.lint.text_rules import TEXT_RULES, apart, fixed, lint_text
from oco.dsl.load import parse
from oco.dsl.model import Model
from oco.dsl.records import dataclass
from oco.dsl.source import Source
from oco.dsl.suppression import without_allowed
from oco.evaluation.comparators.base import ComparatorBudget
from oco.evaluation.data import load_data
from oco.evaluation.spare_limits import spare_limits

COMPARATOR_SECONDS = 10.0
"""Time of each of the best decisions of the data."""


class Reads(StrEnum):
    """Parts of a model that a rule reads, and with them what it costs."""

    TEXT = "the text"
    FACTS = "facts"
    PLAN = "guarantees"
    DATA = "data"


RULES: dict[str, Reads] = {
    **dict.fromkeys(("OCO601", "OCO602", "OCO603", "OCO604", "OCO605"), Reads.FACTS),
    **dict.fromkeys(("OCO606", "OCO607"), Reads.DATA),
    **dict.fromkeys(("OCO610", "OCO611", "OCO613", "OCO614", "OCO615", "OCO617"), Reads.FACTS),
    **dict.fromkeys(TEXT_RULES, Reads.TEXT),
    "OCO634": Reads.FACTS,
    "OCO635": Reads.PLAN,
    "OCO636": Reads.DATA,
}
"""Codes that lint gives, with what their rules read. Those below OCO630 are the warnings of `oco check`."""


@dataclass(frozen=True)
class ModelText:
    """Text of a model with what it is read with: values of params, the folder of its data files."""

    source: Source
    params: dict[str, Any]
    folder: Path | None = None

    def model(self) -> Model:
        """Model of the text. Raises OcoError with all mistakes."""
        return parse(self.source.text, self.params, self.source.name, self.folder)

    def with_text(self, text: str) -> ModelText:
        """Other text in its place."""
        return ModelText(Source(self.source.name, text), self.params, self.folder)


def lint(
    written: ModelText, codes: Iterable[str] = tuple(RULES), data: Any = None, effort: float = 1.0
) -> tuple[Diagnostic, ...]:
    """Warnings of the rules of these codes about a text, in its order, each once.

    data    rounds: a file, arrays by stream, a table; without them the rules that read data give nothing
    effort  multiplies the number of steps that the proofs may take

    Raises OcoError where the model is wrong, or data contradict it.
    """
    wanted, model = frozenset(codes), written.model()
    results = list(lint_text(written.source, model, wanted))
    if any(RULES[code] is not Reads.TEXT for code in wanted):
        with contained("linting this model"):
            results += without_allowed(_deeper(model, wanted, data, effort))
    kept = dict.fromkeys(d for d in results if d.code in wanted)
    return tuple(sorted(kept, key=lambda d: (d.span.start if d.span else -1, d.code)))


def _deeper(model: Model, wanted: frozenset[str], source: Any, effort: float) -> Iterable[Diagnostic]:
    """Warnings of the rules that read facts, guarantees or data."""
    problem = canonical(model)
    data = None if source is None else load_data(problem, source)
    seen = None if data is None else {s.name: data.array(s.name) for s in problem.streams}
    choice = explain_choice(problem, Mode.LEAST, effort=effort) if "OCO635" in wanted else None
    if choice is None or seen is not None:
        yield from check_canonical(model, problem, seen, budget=SearchBudget(effort)).warnings
    if choice is not None:
        yield from choice.situation.facts.warnings
        yield from short_horizon(choice)
    if "OCO634" in wanted:
        yield from mixed_units(ProofContext(problem))
    if "OCO636" in wanted and data is not None:
        yield from spare_limits(problem, data, ComparatorBudget(seconds=COMPARATOR_SECONDS))


def repaired(written: ModelText, codes: Iterable[str] = tuple(RULES)) -> tuple[ModelText, int]:
    """Text after the fixes of all its warnings, and how many warnings were fixed. A fix after which the text is no model is left out.

    The text is linted anew after fixes, since one that leaves a name out may leave another without a use. Each makes it shorter, so that
    they end.

    Raises OcoError where the model is wrong.
    """
    wanted, count, improved = frozenset(codes), 0, True
    while improved:
        warnings, improved = apart(lint_text(written.source, written.model(), wanted)), False
        for chosen in (warnings, *([d] for d in warnings)):
            changed = written.with_text(fixed(written.source.text, chosen))
            if len(changed.source.text) < len(written.source.text) and _is_model(changed):
                written, count, improved = changed, count + len(chosen), True
                break
    return written, count


def _is_model(written: ModelText) -> bool:
    try:
        written.model()
    except OcoError:
        return False
    return True
