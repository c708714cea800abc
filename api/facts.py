"""Facts as a user holds them: values of the compiler that show themselves in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Self

from oco.compiler.prover import fact, facts
from oco.dsl.records import dataclass
from oco.dsl.shown import shown_as_text
from oco.evaluation.report.derivation_page import derivation_html, derivation_latex
from oco.evaluation.report.facts_page import facts_html, facts_latex


@dataclass(frozen=True, repr=False)
class Fact(fact.Fact):
    """Value of a fact (number, bool, array or None), its status, and the derivation that proves it."""

    @classmethod
    def of(cls, known: fact.Fact) -> Self:
        """Fact of the compiler, to be shown."""
        return cls(**{f.name: getattr(known, f.name) for f in fields(fact.Fact)})

    _repr_pretty_ = shown_as_text

    def _repr_html_(self) -> str:
        return derivation_html(self.key, self.value, self.status, self.grade, self.why)

    def _repr_latex_(self) -> str:
        return derivation_latex(self.key, self.value, self.status, self.why)


@dataclass(frozen=True, repr=False)
class Facts(facts.Facts):
    """Facts of a model by key: `facts["loss.lipschitz.l2"]` has a value, a status and a reason. Keys of the catalogue of
    which nothing is known are there, with status `unknown`; another key raises KeyError. `warnings` are those of all
    derivations, each once.
    """

    @classmethod
    def of(cls, known: facts.Facts) -> Self:
        """Facts of the compiler, to be shown."""
        return cls(**{f.name: getattr(known, f.name) for f in fields(facts.Facts)})

    def __getitem__(self, key: str) -> Fact:
        return Fact.of(super().__getitem__(key))

    def __reduce__(self) -> tuple[Any, ...]:
        return proved_again, super().__reduce__()

    _repr_pretty_ = shown_as_text

    def _repr_html_(self) -> str:
        return facts_html(self, self.warnings)

    def _repr_latex_(self) -> str:
        return facts_latex(self)


def proved_again(check: Callable[..., facts.Facts], model: tuple[Any, ...]) -> Facts:
    """Facts that another process proves anew from the text of the model."""
    return Facts.of(check(*model))
