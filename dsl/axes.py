"""Axes of expressions: which of them an index names, by the rules for shapes with indexes in the place of lengths."""

from __future__ import annotations

from collections.abc import Mapping

from oco.dsl import build
from oco.dsl.diagnostics import InternalError, OcoError
from oco.dsl.dims import Shape
from oco.dsl.expressions import Array, Call, Expr, Index, Kind, Name, rewrite
from oco.dsl.labels import Axes, axes_in, axes_of, symbolic
from oco.dsl.previous import decision_of
from oco.dsl.statements import Decision, Let, Param, Stream
from oco.dsl.statistics import statistic_of

Declared = Mapping[str, Param | Decision | Stream | Let]
Indexes = Mapping[str, tuple[str, ...]]


def expression_axes(expr: Expr, declared: Declared, indexes: Indexes) -> Axes:
    """Axes of an expression; empty where none has names, or where axes of several indexes meet."""
    return axes_in(axis_lengths(expr, declared, indexes), indexes) if indexes and expr.shape else ()


def axis_lengths(expr: Expr, declared: Declared, indexes: Indexes) -> Shape:
    """Shape of an expression with indexes in the place of the lengths of axes that they name."""
    try:
        return _AxisSymbols(declared, indexes).of(expr).shape
    except (OcoError, InternalError):  # an index and a number of entries meet, say: nothing is named
        return expr.shape


class _AxisSymbols:
    """Expressions with indexes as lengths; abbreviations are worked out once."""

    def __init__(self, declared: Declared, indexes: Indexes) -> None:
        self._declared, self._indexes = declared, indexes
        self._lets: dict[str, Expr] = {}

    def of(self, expr: Expr) -> Expr:
        return rewrite(expr, self._node)

    def _node(self, node: Expr) -> Expr:
        match node:
            case Name(name=name, kind=kind) if kind not in (Kind.ROUND, Kind.HORIZON):
                statistic = statistic_of(name)
                if statistic is not None:
                    of = self._named(node, self._declared[statistic.stream])
                    return Name(name, kind, shape=statistic.shape(of.shape))
                return self._named(node, self._declared[decision_of(name) or name])
            case Call(atom=atom, args=args, options=options):
                return build.applied(atom, args, options, node.span)
            case Index(base=base, items=items):
                return build.index(base, items, node.span)
            case Array(items=items):
                return build.array(items, node.span)
        return node

    def _named(self, node: Name, declaration: Param | Decision | Stream | Let) -> Expr:
        if not isinstance(declaration, Let):
            axes = axes_of(declaration.dims, self._indexes)
            return Name(node.name, node.kind, shape=symbolic(declaration.shape, axes), integer=node.integer)
        if node.name not in self._lets:
            self._lets[node.name] = self.of(declaration.value)
        shape = self._lets[node.name].shape
        return Name(node.name, node.kind, shape=shape, integer=node.integer)
