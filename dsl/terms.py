"""Objects of the builder's names and functions: expressions with operators, comparisons, domains and distributions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np

from oco.dsl import build
from oco.dsl.along import NAMED, OVER, applied_along
from oco.dsl.axes import expression_axes
from oco.dsl.caller import caller_span
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.dsl.expressions import Expr, File, Slice
from oco.dsl.given_numbers import constant_of
from oco.dsl.habits import OF_TERM, Suggesting, no_relation, not_numbers
from oco.dsl.numpy_functions import ARITHMETIC, RELATIONS, TURNED, not_on_terms
from oco.dsl.records import dataclass
from oco.dsl.scope import Scope
from oco.dsl.source import Span
from oco.dsl.statements import Distribution, DomainSpec, Relation
from oco.dsl.suggest import did_you_mean
from oco.dsl.text.printer import print_expr

Operand: TypeAlias = "Term | float | np.ndarray[Any, Any] | Sequence[Any]"
"""Part of an expression: a Term, a number, an array, or nested lists of them."""


class Term(Suggesting):
    """Expression of a model under construction. Numbers and arrays may stand on either side of its operators."""

    _known_as, _lines = "an expression", OF_TERM

    __pandas_priority__ = 5000
    """Tables of pandas leave operators with expressions to these."""

    def __init__(self, expr: Expr, scope: Scope | None = None) -> None:
        self.expr = expr
        self.scope = scope

    @property
    def shape(self) -> tuple[Any, ...]:
        """Shape; dimensions may be symbolic."""
        return self.expr.shape

    @property
    def T(self) -> Term:
        """Transpose."""
        return apply("transpose", self)

    def sum(
        self,
        axis: int | None = None,
        dtype: None = None,
        out: None = None,
        over: Term | str | None = None,
        by: Term | None = None,
    ) -> Term:
        """Sum of the entries, or along an axis, over an index, or by the groups that a param gives."""
        return self._along("sum", axis=axis, over=over, by=by)

    def mean(
        self, axis: int | None = None, dtype: None = None, out: None = None, over: Term | str | None = None
    ) -> Term:
        """Mean of the entries, or along an axis or over an index."""
        return self._along("mean", axis=axis, over=over)

    def max(
        self, axis: int | None = None, dtype: None = None, out: None = None, over: Term | str | None = None
    ) -> Term:
        """Largest entry, or largest along an axis or over an index."""
        return self._along("max", axis=axis, over=over)

    def min(
        self, axis: int | None = None, dtype: None = None, out: None = None, over: Term | str | None = None
    ) -> Term:
        """Smallest entry, or smallest along an axis or over an index."""
        return self._along("min", axis=axis, over=over)

    # `np.sum(x)` calls `x.sum(axis=None, dtype=None, out=None)`.
    def _along(self, atom: str, **options: Any) -> Term:
        return apply(atom, self, **{name: value for name, value in options.items() if value is not None})

    def __repr__(self) -> str:
        return print_expr(self.expr)

    def __add__(self, other: Operand) -> Term:
        return apply("add", self, other)

    def __radd__(self, other: Operand) -> Term:
        return apply("add", other, self)

    def __sub__(self, other: Operand) -> Term:
        return apply("sub", self, other)

    def __rsub__(self, other: Operand) -> Term:
        return apply("sub", other, self)

    def __mul__(self, other: Operand) -> Term:
        return apply("mul", self, other)

    def __rmul__(self, other: Operand) -> Term:
        return apply("mul", other, self)

    def __truediv__(self, other: Operand) -> Term:
        return apply("div", self, other)

    def __rtruediv__(self, other: Operand) -> Term:
        return apply("div", other, self)

    def __mod__(self, other: Operand) -> Term:
        return apply("mod", self, other)

    def __rmod__(self, other: Operand) -> Term:
        return apply("mod", other, self)

    def __pow__(self, other: Operand) -> Term:
        return apply("pow", self, other)

    def __rpow__(self, other: Operand) -> Term:
        return apply("pow", other, self)

    def __matmul__(self, other: Operand) -> Term:
        return apply("matmul", self, other)

    def __rmatmul__(self, other: Operand) -> Term:
        return apply("matmul", other, self)

    def __neg__(self) -> Term:
        return apply("minus", self)

    def __pos__(self) -> Term:
        return self

    def __abs__(self) -> Term:
        return apply("abs", self)

    def __getitem__(self, items: Any) -> Term:
        span = caller_span()
        chosen = items if isinstance(items, tuple) else (items,)
        if any(isinstance(i, str) for i in chosen):
            chosen = self._by_name(chosen, span)
        terms = [_item(i, span) for i in chosen]
        scope = common_scope([self, *(t for pair in terms for t in pair[1])], span)
        return Term(resolved(build.index(self.expr, tuple(expr for expr, _ in terms), span), scope), scope)

    def _by_name(self, chosen: tuple[Any, ...], span: Span | None) -> tuple[Any, ...]:
        """Items with numbers in the place of names. Raises OCO327 for one that the axis does not have."""
        axes = () if self.scope is None else expression_axes(self.expr, self.scope.declared, self.scope.indexes)
        named = (*axes, *(None,) * len(chosen))
        for item, axis in zip(chosen, named):
            if isinstance(item, str) and axis is None:
                hint = 'count its entries from 0, as in `x[0]`; named ones are those of `zone = m.index("zone", ["NYC", "WEST"])`'
                raise fail("OCO327", f"this axis has no names, so that {item!r} is none of its entries", span, hint)
        return tuple(
            axis.place(i, "this axis", span) if isinstance(i, str) and axis is not None else i
            for i, axis in zip(chosen, named)
        )

    def __setitem__(self, items: Any, value: object) -> NoReturn:
        hint = (
            "fix a decision by a constraint, `m.subject_to(x[0] == 1, each_round=True)`; a learner chooses its values"
        )
        raise fail("OCO524", "an entry of an expression cannot be set", caller_span(), hint)

    def __len__(self) -> int:
        if not self.shape or not isinstance(self.shape[0], int):
            raise TypeError(f"{self!r} is one number, or its size is not known yet: it has no entries to go through")
        return self.shape[0]

    def __iter__(self) -> Iterator[Term]:
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Array of objects, an entry of the expression each. Raises OCO524 where another package asks for numbers."""
        error = not_numbers()
        if error is not None:
            raise error
        shape = self.shape if all(isinstance(d, int) for d in self.shape) else ()
        entries = np.empty(shape, dtype=object)
        for place in np.ndindex(*shape):
            entries[place] = self[place] if place else self
        return entries

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Term | Comparison:
        """Implement `array @ term` and the like, which NumPy delegates here."""
        name = ufunc.__name__
        if method == "__call__" and not options and name in ARITHMETIC:
            return apply(ARITHMETIC[name], *inputs)
        if method == "__call__" and not options and name in RELATIONS:
            left, right = inputs
            turned = RELATIONS[name] if isinstance(left, Term) else TURNED[RELATIONS[name]]
            return Comparison.of(self, Relation(turned), right if isinstance(left, Term) else left)
        if name in ("less", "greater"):
            return self < 0 if name == "less" else self > 0
        raise not_on_terms(name, method, caller_span())

    def __float__(self) -> float:
        hint = "write oco.log and the like in place of the functions of math"
        raise fail("OCO523", "an expression of a model is no number yet", caller_span(), hint)

    def __le__(self, other: Operand) -> Comparison:
        return Comparison.of(self, Relation.LE, other)

    def __ge__(self, other: Operand) -> Comparison:
        return Comparison.of(self, Relation.GE, other)

    def __eq__(self, other: object) -> Comparison:  # type: ignore[override]
        return Comparison.of(self, Relation.EQ, cast("Operand", other))

    def __ne__(self, other: object) -> NoReturn:
        raise no_relation("!=")

    def __lt__(self, other: Operand) -> NoReturn:
        raise no_relation("<")

    def __gt__(self, other: Operand) -> NoReturn:
        raise no_relation(">")

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        words = "an expression of a model is neither true nor false: it has no value yet"
        raise fail("OCO523", words, caller_span(), "write oco.pos, oco.maximum or oco.minimum in place of `if`")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Comparison `left <= right` and the like, an argument of `subject_to`."""

    left: Term
    relation: Relation
    right: Term
    span: Span | None

    @staticmethod
    def of(left: Term, relation: Relation, right: Operand) -> Comparison:
        """Comparison of a term with an operand."""
        span = caller_span()
        other = term(right, span)
        common_scope([left, other], span)
        return Comparison(left, relation, other, span)

    def __bool__(self) -> NoReturn:
        raise self._without_value()

    def __and__(self, other: object) -> NoReturn:
        raise self._without_value()

    __or__ = __rand__ = __ror__ = __and__

    def _without_value(self) -> OcoError:
        hint = "give `lo <= x <= hi` as two constraints; `and`, `&` and `if` cannot join them"
        return fail(
            "OCO523", "a constraint is neither true nor false: its decisions have no value yet", self.span, hint
        )

    def __repr__(self) -> str:
        return f"{self.left!r} {self.relation} {self.right!r}"


@dataclass(frozen=True)
class DomainTerm:
    """Domain in the builder: `oco.box(0, 1)`."""

    spec: DomainSpec
    scope: Scope | None = None

    def rounded(self) -> DomainTerm:
        """Domain among whose extreme points decisions are drawn: `oco.simplex().rounded()`."""
        return replace(self, spec=replace(self.spec, rounded=True))


@dataclass(frozen=True)
class DistributionTerm:
    """Distribution in the builder: `oco.poisson(2500)`."""

    spec: Distribution
    scope: Scope | None = None


def term(value: Operand, span: Span | None) -> Term:
    """Term from a number, an array, a list with terms in it, or a term."""
    if isinstance(value, Term):
        return value
    if isinstance(value, Comparison):
        raise fail("OCO524", "a constraint cannot stand inside an expression", span, "give it to `subject_to`")
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    if isinstance(value, (list, tuple)) and _holds_terms(value):
        items = [term(v, span) for v in value]
        scope = common_scope(items, span)
        return Term(resolved(build.array(tuple(i.expr for i in items), span), scope), scope)
    return Term(constant_of(value, span))


def _holds_terms(value: Any) -> bool:
    return isinstance(value, (Term, Comparison)) or (isinstance(value, (list, tuple)) and any(map(_holds_terms, value)))


def common_scope(terms: list[Term], span: Span | None) -> Scope | None:
    """Scope of the one model that all terms belong to; None for terms made of numbers alone."""
    scopes: list[Scope] = []
    for t in terms:
        if t.scope is not None and not any(t.scope is s for s in scopes):
            scopes.append(t.scope)
    if len(scopes) > 1:
        raise fail(
            "OCO525", "this expression mixes the names of two models", span, "declare what it needs in one of them"
        )
    return scopes[0] if scopes else None


def resolved(expr: Expr, scope: Scope | None) -> Expr:
    """Expression resolved in a scope; unchanged without one."""
    return expr if scope is None else scope.resolved(expr)


def apply(atom: str, *operands: Operand, **options: Any) -> Term:
    """Apply an atom or operator of the language."""
    span = caller_span()
    terms = [term(o, span) for o in operands]
    scope = common_scope([*terms, *(v for v in options.values() if isinstance(v, Term))], span)
    named = {n: _named(n, options.pop(n), scope, span) for n in NAMED if n in options}
    for name, value in options.items():
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float, np.integer, np.floating))
            or name in ("span", "shape")
        ):
            raise fail("OCO304", f"{atom} takes no option {name}={value!r}", span)
    numbers = {n: v.item() if isinstance(v, np.generic) else v for n, v in options.items()}
    called = applied_along(atom, tuple(t.expr for t in terms), {**numbers, **named}, scope or Scope(), span)
    return Term(resolved(called, scope), scope)


def _named(option: str, value: Any, scope: Scope | None, span: Span | None) -> Expr:
    """Expression of an option that takes one; an index may be given by its name."""
    if isinstance(value, str) and option == OVER:
        declared = {} if scope is None else scope.declared
        if scope is None or value not in declared:
            hint = did_you_mean(value, declared, 'declare it: `m.index("zone", [...])`')
            raise fail("OCO551", f"there is no index `{value}`", span, hint)
        return scope.name(value, span)
    return term(value, span).expr


def _item(item: Any, span: Span | None) -> tuple[Expr, list[Term]]:
    """Item of an index: a number, an array of integers, a term, or a slice of step one."""
    if not isinstance(item, slice):
        if item is Ellipsis or item is None:
            raise fail("OCO310", "indices are integers, arrays of them, or slices", span)
        result = term(item, span)
        return result.expr, [result]
    if item.step not in (None, 1):
        raise fail("OCO313", "a slice has step one", span)
    ends = [None if e is None else term(e, span) for e in (item.start, item.stop)]
    exprs = [None if e is None else e.expr for e in ends]
    return Slice(exprs[0], exprs[1], span=span), [e for e in ends if e is not None]


def file(path: str, column: str = "") -> Term:
    """Data from a file beside the model, as the value of a param or an index.

    path    of a csv, npy, npz, json or parquet file, relative to the folder of the model
    column  one column of a table; by default all of them

    Raises OcoError when the model is built, where the file is not there or has no such numbers.
    """
    return Term(File(str(path), column, span=caller_span()))


def wrong_argument(what: str, wanted: str, given: Any, span: Span | None, hint: str = "") -> OcoError:
    """Error for an argument of the builder that has the wrong type; `hint` is the line to write."""
    if callable(given) and getattr(given, "__name__", "") in (*DOMAINS, *DISTRIBUTIONS):
        name = given.__name__
        row = DOMAINS[name] if name in DOMAINS else DISTRIBUTIONS[name]
        hint = f"call it: `oco.{row.signature}`"
        return fail("OCO526", f"{what} is {wanted}; here it is the function oco.{name} itself", span, hint)
    shown = repr(given)
    message = shown if len(shown) <= 40 and " at 0x" not in shown else f"a {type(given).__name__}"
    return fail("OCO526", f"{what} is {wanted}; here it is {message}", span, hint)
