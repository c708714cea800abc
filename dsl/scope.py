"""Scope of declared names, and the consequences of params' values for shapes and indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from oco.dsl.atoms import shapes
from oco.dsl.atoms.expression_names import describe
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.dims import Dim, Shape, SymbolicDim, show, substitute
from oco.dsl.expressions import Expr, Index, Kind, Name, names, walk
from oco.dsl.limits import MOST_FIXED, Made
from oco.dsl.previous import decision_of, previous
from oco.dsl.ranges import check_index, whole_range
from oco.dsl.readers.quota import Quota
from oco.dsl.records import dataclass
from oco.dsl.source import Span
from oco.dsl.statements import Decision, Let, Param, Stream
from oco.dsl.statistics import statistic_of
from oco.dsl.text.words import LATER_WORDS, STATEMENT_WORDS

Declaration = Param | Decision | Stream | Let
Array = np.ndarray[Any, Any]

OBSERVED_WORDS: tuple[str, ...] = ("round", "loss", "second_loss", "gradient", "constraints", "constraint_gradients")


def kind_of(declaration: Declaration) -> Kind:
    """Kind of the name that a declaration introduces."""
    match declaration:
        case Param():
            return Kind.PARAM
        case Decision():
            return Kind.DECISION
        case Stream():
            return Kind.STREAM
        case Let():
            return Kind.LET


@dataclass
class Scope:
    """Scope that grows while a model is put together.

    given     values of params from the caller
    values    known values of params
    kinds     kinds of the names on which each abbreviation depends
    extremes  least and greatest value of each abbreviation, as far as integer declarations bound it
    sizes     values of the params that may stand in a shape
    made      count of numbers from formulas of fixed data
    read      numbers read from files
    quota     memory that the files take
    horizon   number of rounds, where it is known
    indexes   names along the axes that an index gives the length of
    """

    folder: Path | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    declared: dict[str, Declaration] = field(default_factory=dict)
    values: dict[str, Array] = field(default_factory=dict)
    labels: dict[str, Span | None] = field(default_factory=dict)
    kinds: dict[str, frozenset[Kind]] = field(default_factory=dict)
    extremes: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    made: Made = field(default_factory=Made)
    read: int = 0
    quota: Quota = field(default_factory=lambda: Quota(MOST_FIXED))
    horizon: int | None = None
    indexes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def learn(self, name: str, value: Array) -> None:
        """Record the value of a param."""
        self.values[name] = value
        if value.shape == () and value == np.floor(value) and abs(value) < 2**62:
            self.sizes[name] = int(value)

    def name(self, name: str, span: Span | None = None) -> Name:
        """Use of a declared name as an expression."""
        if x := decision_of(name):
            return previous(self.name(x), span)
        if (s := statistic_of(name)) is not None:
            return Name(name, Kind.STREAM, shape=s.shape(self.name(s.stream).shape), span=span)
        declaration = self.declared[name]
        match declaration:
            case Let(value=value):
                return Name(name, Kind.LET, shape=value.shape, integer=value.integer, span=span)
            case Decision(shape=shape):
                return Name(name, Kind.DECISION, shape=shape, span=span)
            case _:
                return Name(name, kind_of(declaration), shape=declaration.shape, integer=declaration.integer, span=span)

    def resolved(self, expr: Expr) -> Expr:
        """Expression with the dimensions that the values of params give, checked."""
        if isinstance(expr, Index):
            check_index(expr, self)
        if any(isinstance(d, SymbolicDim) for d in expr.shape):
            shape = self.known_shape(expr.shape)
            for dim in shape:
                if isinstance(dim, int) and dim < 1:
                    raise fail(
                        "OCO308", f"{describe(expr)} has shape {show(shape)}: a length must be at least 1", expr.span
                    )
            expr = replace(expr, shape=shape)
        return expr

    def known_shape(self, shape: Shape) -> Shape:
        """Shape with known params inserted."""
        return tuple(substitute(d, self.sizes) for d in shape)

    def dim(self, expr: Expr, role: str) -> Dim:
        """Declared length: an integer from 1 on, or a polynomial in params whose value is not known yet."""
        check_fixed(expr, role)
        dim = shapes.size(expr, role)
        if isinstance(dim, int):
            return dim
        for name in names(expr, Kind.PARAM):
            value = self.values.get(name)
            if value is not None and name not in self.sizes:
                raise fail("OCO307", f"{role} must be an integer; `{name}` is {value}", expr.span)
        dim = substitute(dim, self.sizes)
        if isinstance(dim, int) and dim < 1:
            raise fail("OCO308", f"{role} must be at least 1; {describe(expr)} is {dim}", expr.span)
        return dim

    def declare(self, declaration: Declaration) -> None:
        """Add a declaration."""
        self.declared[declaration.name] = declaration
        if isinstance(declaration, Let):
            self.kinds[declaration.name] = self.kinds_in(declaration.value)
            self.extremes[declaration.name] = whole_range(declaration.value, self)

    def kinds_in(self, expr: Expr) -> frozenset[Kind]:
        """Kinds of the names on which an expression depends, also through abbreviations."""
        used = [e for e in walk(expr) if isinstance(e, Name)]
        return frozenset().union(*(self.kinds.get(e.name, frozenset({e.kind})) for e in used))


def check_new_name(scope: Scope, name: str, kind: Kind, span: Span | None) -> None:
    """Check that `name` may be declared as a `kind` here. Raises OcoError (OCO20x)."""
    check_reserved(name, span)
    if name in OBSERVED_WORDS and kind is Kind.STREAM:
        raise fail(
            "OCO205",
            f"`{name}` cannot name a stream: `observe({name}=...)` has a meaning of its own",
            span,
            f"another name, `{name}_t` say",
        )
    if name in scope.declared:
        first = scope.declared[name]
        raise declared_already(name, kind_of(first), first.span, span)


def declared_already(name: str, kind: Kind, first: Span | None, span: Span | None) -> OcoError:
    """Error for a second declaration of a name."""
    article = "an" if kind is Kind.LET else "a"
    word = "abbreviation" if kind is Kind.LET else kind
    where = f", on line {first.line}" if first is not None else ""
    return fail("OCO203", f"`{name}` is declared already, as {article} {word}{where}", span, "give it another name")


def check_new_label(scope: Scope, label: str, span: Span | None) -> None:
    """Check that a constraint may be called `label`. Raises OCO205 or OCO209."""
    check_reserved(label, span)
    if label in OBSERVED_WORDS:
        raise fail(
            "OCO205", f"`{label}` cannot be a label: it names a part of the feedback", span, f"`{label}_limit`, say"
        )
    if label in scope.labels:
        first = scope.labels[label]
        where = f", on line {first.line}" if first is not None else ""
        raise fail("OCO209", f"there is a constraint `{label}` already{where}", span, "give this one another label")


def check_reserved(name: str, span: Span | None) -> None:
    """Check that a name means nothing in the language. Raises OCO205."""
    if name == "t":
        raise fail("OCO205", "`t` is the round; nothing else can be called that", span, "another name, `time` say")
    if name == "T":
        raise fail("OCO205", "`T` is the horizon; nothing else can be called that", span, "another name, `total` say")
    if name in STATEMENT_WORDS:
        raise fail("OCO205", f"`{name}` begins a statement and cannot be a name", span, f"`{name}_`, say")
    if name in LATER_WORDS:
        raise fail("OCO205", f"`{name}` is reserved for {LATER_WORDS[name]}", span, "give it another name")


def check_fixed(expr: Expr, role: str) -> None:
    """Check that `expr` is made of numbers and params alone, so that it is known before the first round."""
    for kind, words in (
        (Kind.STREAM, "is a stream, known only round by round"),
        (Kind.DECISION, "is a decision"),
        (Kind.LET, "is an abbreviation made by `let`"),
        (Kind.ROUND, "is the round"),
        (Kind.HORIZON, "is the horizon"),
    ):
        for name in names(expr, kind):
            hint = {
                Kind.LET: f"write it as a param: `param {name} = ...`",
                Kind.HORIZON: "declare `param rounds = ...`, and write `horizon T = rounds`",
            }.get(kind, "use numbers and params")
            raise fail("OCO320", f"{role} is made of numbers and params; `{name}` {words}", _where(expr, name), hint)


def _where(expr: Expr, name: str) -> Span | None:
    return next((e.span for e in walk(expr) if isinstance(e, Name) and e.name == name), expr.span)
