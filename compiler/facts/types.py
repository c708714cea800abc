"""Facts: what is known about a model, how surely, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from oco.dsl.diagnostics import Diagnostic, contained
from oco.dsl.shown import shown_as_text
from oco.dsl.source import Span


class Status(StrEnum):
    PROVED = "proved"
    MEASURED = "measured"
    DECLARED = "declared"
    UNKNOWN = "unknown"
    REFUTED = "refuted"


@dataclass(frozen=True)
class Step:
    """One line of a derivation: by `rule`, from `premises`, it follows that `claim` (words), with `value` where it is a number.

    `words` are the claim, or a function that puts it into words when somebody reads it. `span` is the part of the model that the
    step is about, `subject` the expression (or what else the rule needs to be replayed). Steps form a DAG; a premise may be shared.
    """

    rule: str
    words: str | Callable[[], str] = field(compare=False)
    value: Any = None
    premises: tuple[Step, ...] = ()
    span: Span | None = field(default=None, compare=False)
    subject: Any = field(default=None, compare=False, repr=False)

    @cached_property
    def claim(self) -> str:
        return self.words if isinstance(self.words, str) else self.words()

    def __repr__(self) -> str:
        return f"Step({self.rule!r}, {self.claim!r})"


@dataclass(frozen=True)
class Witness:
    """Where a claim fails: decisions and stream values by name, and the excess there (its units are those of the claim)."""

    values: Mapping[str, Any]
    violation: float
    words: str


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
        """Whether the value may be relied on: proved, declared or measured."""
        return self.status in (Status.PROVED, Status.DECLARED, Status.MEASURED)

    def __str__(self) -> str:
        from oco.compiler.facts.ledger import derivation_text

        return derivation_text(self)

    def __repr__(self) -> str:
        return f"Fact({self.key!r}, {self.value!r}, {self.status.value})"

    _repr_pretty_ = shown_as_text

    def _repr_html_(self) -> str:
        from oco.compiler.facts.notebook import fact_html

        return fact_html(self)

    def _repr_latex_(self) -> str:
        from oco.compiler.facts.notebook import fact_latex

        return fact_latex(self)


@dataclass(frozen=True, eq=False)
class Deferred:
    """Facts that need a solver: found together, at the first question for one of them."""

    keys: tuple[str, ...]
    find: Callable[[], tuple[Mapping[str, Fact], tuple[Diagnostic, ...]]]

    @cached_property
    def found(self) -> tuple[Mapping[str, Fact], tuple[Diagnostic, ...]]:
        with contained("checking"):
            return self.find()


@dataclass(frozen=True)
class Facts(Mapping[str, Fact]):
    """The ledger. A key of the catalogue that nothing is known about is there, with status `unknown`.

    `items_by_key` are known from the start; those of `deferred` are worked out when somebody asks. `effort` is that of the searches.
    """

    model: Any
    items_by_key: Mapping[str, Fact]
    noticed: tuple[Diagnostic, ...] = ()
    deferred: tuple[Deferred, ...] = ()
    effort: float = 1.0

    def __getitem__(self, key: str) -> Fact:
        for later in self.deferred:
            if key in later.keys:
                return later.found[0][key]
        return self.items_by_key[key]

    def __iter__(self) -> Iterator[str]:
        late = [key for later in self.deferred for key in later.keys]
        return iter([*(k for k in self.items_by_key if k not in late), *late])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What is worth a second look, each once."""
        return tuple(dict.fromkeys((*self.noticed, *(w for later in self.deferred for w in later.found[1]))))

    def value(self, key: str, default: Any = None) -> Any:
        """The value where it may be relied on, else `default`."""
        fact = self.get(key)
        return fact.value if fact is not None and fact.known else default

    def __str__(self) -> str:
        from oco.compiler.facts.ledger import ledger_text

        return ledger_text(self)

    def __repr__(self) -> str:
        return f"Facts({self.model.name})"

    _repr_pretty_ = shown_as_text

    def _repr_html_(self) -> str:
        from oco.compiler.facts.notebook import facts_html

        return facts_html(self)

    def _repr_latex_(self) -> str:
        from oco.compiler.facts.notebook import facts_latex

        return facts_latex(self)
