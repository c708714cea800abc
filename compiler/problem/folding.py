"""Folding: params replaced by their values, abbreviations by what they stand for, and whatever is then constant evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from oco.compiler.problem.cuts import Sets
from oco.compiler.problem.vectorize import LikeTerms
from oco.dsl.diagnostics import InternalError, fail
from oco.dsl.dims import SymbolicDim
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Call, Constant, Expr, FrozenArray, Index, Kind, Name, Slice, constant, names, rewrite
from oco.dsl.labels import Axes, axes_of, indexes_of
from oco.dsl.limits import LONGEST, Made, Sizes, numbers
from oco.dsl.model import Model
from oco.dsl.ranges import Fixed, check_index
from oco.dsl.source import Span
from oco.dsl.statements import Param

Floats = np.ndarray[Any, Any]


class Folding:
    """Expressions of a model over numbers, decisions, streams and the round `t`."""

    def __init__(self, model: Model, seasons: tuple[int, ...] = ()) -> None:
        self.model, self.seasons = model, seasons
        self.params: Mapping[str, Param] = {p.name: p for p in model.params}
        self.values = {p.name: p.data for p in model.params if p.data is not None}
        self.lets = {let.name: let.value for let in model.lets}
        self.declared, self.rounds = model.table(), model.horizon.rounds
        self.indexes = indexes_of(model.params)
        self.data: dict[str, FrozenArray] = {}
        self.done: dict[str, Expr] = {}
        self.worked_out: dict[object, tuple[Expr, FrozenArray]] = {}
        self.sizes = Sizes()
        self.made, self.sets = Made(), Sets()
        self.together = LikeTerms()
        self.reads_horizon = False

    def fold(self, expr: Expr) -> Expr:
        """Expression with every part evaluated that no decision, stream or round enters."""
        return self.together(self._written(expr))

    def _written(self, expr: Expr) -> Expr:
        """With lets and params put in, as it was written."""
        written = rewrite(expr, self._node)
        self.sizes.check(written, expr.span)
        return written

    def array(self, expr: Expr) -> Floats:
        """Value of an expression that must be known before the first round."""
        folded = self.fold(expr)
        if not isinstance(folded, Constant):
            raise InternalError("a bound or an argument of a domain depends on the round's data")
        return folded.value.array

    def axes(self, dims: tuple[Expr, ...]) -> Axes:
        """Axes of a declaration with these dimensions."""
        return axes_of(dims, self.indexes)

    def number(self, expr: Expr, what: str) -> float:
        """Value of an expression that must be one number known before the first round. Raises OCO654."""
        value = self.array(expr)
        if value.shape:
            raise fail("OCO654", f"`{what}` is bounded by one number; here it has shape {list(value.shape)}", expr.span)
        return float(value)

    @property
    def horizon(self) -> int | None:
        """Number of rounds, for a part of the problem that depends on it; None where it is unknown."""
        self.reads_horizon = True
        return self.stated_horizon

    @cached_property
    def stated_horizon(self) -> int | None:
        """Number of rounds that the model states; None where it is unknown."""
        rounds = self.rounds
        return None if rounds is None else _horizon(self.fold(rounds))

    def _rounds(self, span: Span | None) -> int:
        if (rounds := self.horizon) is None:
            hint = "state the horizon, `horizon T = 1000` say, or a param in place of T"
            raise fail("OCO212", "the horizon is unknown, and stands in an expression", span, hint)
        return rounds

    def shape(self, shape: tuple[Any, ...], span: Span | None) -> tuple[int, ...]:
        """Shape with numbers for the params in it. Raises OcoError where one has no value."""
        for dim in shape:
            if isinstance(dim, SymbolicDim):
                raise _no_value(dim.terms[0][0][0], span)
        return tuple(int(d) for d in shape)

    def _node(self, node: Expr) -> Expr:
        if isinstance(node, Name) and node.kind is Kind.PARAM:
            return self._param(node)
        if isinstance(node, Name) and node.kind is Kind.LET:
            self._fold_let(node.name)
            return self.done[node.name]
        if isinstance(node, Name) and node.kind is Kind.HORIZON:
            return constant(self._rounds(node.span), node.span)
        if isinstance(node, Index) and any(names(i, Kind.ROUND) for i in node.items):
            check_index(node, Fixed(self.declared, self.horizon or LONGEST))
        if isinstance(node, (Constant, Name, Slice)) or not all(_is_constant(c) for c in node.children):
            return node
        data = self._worked_out(node)
        return Constant(data, shape=data.array.shape, integer=node.integer, span=node.span)

    def _worked_out(self, node: Expr) -> FrozenArray:
        """The value of a part without decisions and streams; parts with the same arguments share one array."""
        own: object = id(node)
        if isinstance(node, Call):
            own = (
                node.atom,
                node.options,
                node.shape,
                *(id(a.value if isinstance(a, Constant) else a) for a in node.args),
            )
        if own not in self.worked_out:
            self.made.add(numbers(node), "this part of the model", node.span)
            value = np.asarray(evaluate(node, {}))
            if not np.isfinite(value).all():
                raise fail(
                    "OCO807",
                    "this part of the model is not a finite number",
                    node.span,
                    "look for a division by zero or a huge power",
                )
            self.worked_out[own] = node, constant(value).value
        return self.worked_out[own][1]

    def _fold_let(self, name: str) -> None:
        """A let after those that it uses, however long the chain of them is."""
        waiting = [] if name in self.done else [name]
        while waiting:
            used = [n for n in names(self.lets[waiting[-1]], Kind.LET) if n not in self.done]
            waiting += used
            if not used:
                last = waiting.pop()
                self.done[last] = self._written(self.lets[last])

    def _param(self, node: Name) -> Expr:
        param = self.params[node.name]
        if param.data is None:
            raise _no_value(node.name, node.span)
        if node.name not in self.data:
            self.data[node.name] = constant(param.data).value
        data = self.data[node.name]
        return Constant(data, shape=tuple(data.array.shape), integer=param.integer or node.integer, span=node.span)


def _is_constant(node: Expr) -> bool:
    return isinstance(node, Constant) or (isinstance(node, Slice) and all(_is_constant(c) for c in node.children))


def _no_value(name: str, span: Span | None) -> Exception:
    return fail(
        "OCO216", f"the param `{name}` has no value", span, f"give one: --param {name}=..., or params={{{name!r}: ...}}"
    )


def _horizon(rounds: Expr) -> int:
    if not isinstance(rounds, Constant) or rounds.shape != ():
        raise fail("OCO323", "the horizon is one integer", rounds.span)
    value = float(rounds.value.array)
    if value < 1 or value != int(value):
        raise fail(
            "OCO323", f"the horizon is an integer number of rounds, at least 1; here it is {value:g}", rounds.span
        )
    return int(value)
