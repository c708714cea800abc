"""Model as written, checked for names and shapes, immutable. It is the interface between the language and the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from oco.dsl.axes import expression_axes
from oco.dsl.build import call
from oco.dsl.expressions import constant
from oco.dsl.labels import Axes, axes_of, indexes_of
from oco.dsl.records import dataclass
from oco.dsl.shown import shown_as_text
from oco.dsl.statements import Decision, Horizon, Let, Param, Statements, Stream
from oco.dsl.text.printer import print_model


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Model(Statements):
    """Complete model, which shows itself as text, and in a notebook as HTML and LaTeX."""

    def table(self) -> Mapping[str, Param | Decision | Stream | Let]:
        """Declarations by name."""
        declared: list[Param | Decision | Stream | Let] = [*self.params, *self.decisions, *self.streams, *self.lets]
        return {d.name: d for d in declared}

    def axes(self, name: str) -> Axes:
        """Names of the entries of a declaration, by axis; empty where none has names."""
        declared = self.table()[name]
        return () if isinstance(declared, Let) else axes_of(declared.dims, indexes_of(self.params))

    def axes_of_constraint(self, label: str) -> Axes:
        """Names of the entries of a constraint, by axis; empty where none has names."""
        indexes = indexes_of(self.params)
        if not indexes:
            return ()
        c = next(c for c in self.constraints if c.label == label)
        return expression_axes(call("sub", c.left, c.right), self.table(), indexes)

    def with_horizon(self, rounds: int | None) -> Model:
        """Model for so many rounds; None for an unknown number."""
        return replace(self, horizon=Horizon(None if rounds is None else constant(rounds), self.horizon.span))

    @cached_property
    def _text(self) -> str:
        return print_model(self)

    def to_oco(self) -> str:
        """Text of the model as a file of the language; `oco.parse` of it gives an equal model."""
        return self._text

    def __str__(self) -> str:
        return self.to_oco()

    def __repr__(self) -> str:
        return f"<model {self.name}>"

    _repr_pretty_ = shown_as_text

    def _repr_html_(self) -> str:
        from oco.dsl.text.notebook import model_html

        return model_html(self)

    def _repr_latex_(self) -> str:
        from oco.dsl.text.latex import model_latex

        return model_latex(self)
