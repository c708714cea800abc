"""Facts of a model by key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from oco.compiler.prover.fact import Fact
from oco.compiler.prover.ledger import facts_data, ledger_text
from oco.dsl.contained import self_contained
from oco.dsl.diagnostics import Diagnostic
from oco.dsl.records import dataclass
from oco.dsl.text.printer import print_model

VERSION = 1
"""Version of the layout of `Facts.as_data`."""


@dataclass(frozen=True)
class Facts(Mapping[str, Fact]):
    """The ledger: an immutable value, of which every fact is there from the start. A key of the catalogue that nothing is known about
    has status `unknown`.

    warnings  of all derivations, each once
    effort    that of the searches
    again     proves them anew from the text, name and effort, as another process does; None for facts of data
    """

    model: Any
    items_by_key: Mapping[str, Fact]
    warnings: tuple[Diagnostic, ...] = ()
    effort: float = 1.0
    again: Callable[[str, str, float], Facts] | None = None

    def __getitem__(self, key: str) -> Fact:
        return self.items_by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_by_key)

    def __len__(self) -> int:
        return len(self.items_by_key)

    def value(self, key: str, default: Any = None) -> Any:
        """The value where it may be relied on, else `default`."""
        fact = self.get(key)
        return fact.value if fact is not None and fact.known else default

    def as_data(self) -> dict[str, Any]:
        """Facts as JSON values, version 1: the model's name, facts by key, numbered steps, warnings."""
        warnings = [d.as_data() for d in self.warnings]
        return {"version": VERSION, "model": self.model.name, **facts_data(self), "warnings": warnings}

    def __copy__(self) -> Facts:
        return self

    def __deepcopy__(self, memo: Any) -> Facts:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Text of the model, and the function that proves the facts again."""
        if self.again is None:
            raise TypeError("facts of data stay in their process: `as_data()` has them as JSON values")
        return self.again, (print_model(self_contained(self.model)), self.model.name, self.effort)

    def __str__(self) -> str:
        return ledger_text(self)

    def __repr__(self) -> str:
        return f"Facts({self.model.name})"
