"""Ranges of integer expressions, and the check that indices are positions of their axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol

import numpy as np

from oco.dsl.atoms.expression_names import describe
from oco.dsl.atoms.index import axis_words, slice_ends
from oco.dsl.diagnostics import fail
from oco.dsl.dims import Dim, substitute
from oco.dsl.expressions import Call, Constant, Expr, Index, Kind, Name, Slice, names, walk
from oco.dsl.records import dataclass
from oco.dsl.statements import Param, Stream

Range = tuple[int, int]


class Known(Protocol):
    """Declarations, and the values of the params that have one."""

    @property
    def declared(self) -> Mapping[str, Any]:
        """Declarations by name."""

    @property
    def values(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """Known values of params."""

    @property
    def extremes(self) -> Mapping[str, Range | None]:
        """Least and greatest value of each abbreviation, None where unknown."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Values of the params that may stand in a shape."""

    @property
    def horizon(self) -> int | None:
        """Number of rounds; None where it is not known."""


@dataclass(frozen=True)
class Fixed:
    """Known values once params and abbreviations have been put in: declarations, and the horizon."""

    declared: Mapping[str, Any]
    horizon: int
    values: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    extremes: Mapping[str, Range | None] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def whole_range(expr: Expr, known: Known) -> Range | None:
    """Least and greatest value of an integer expression by the declarations; None where they do not bound it."""
    results: dict[int, Range | None] = {}
    for node in walk(expr):
        results[id(node)] = _node_range(node, results, known)
    return results[id(expr)]


def _node_range(node: Expr, results: dict[int, Range | None], known: Known) -> Range | None:
    if not node.integer:
        return None
    match node:
        case Constant(value=value):
            return int(value.array.min()), int(value.array.max())
        case Name(name=name, kind=Kind.PARAM) if name in known.values:
            return int(known.values[name].min()), int(known.values[name].max())
        case Name(name=name, kind=Kind.PARAM | Kind.STREAM):
            return _declared_range(known.declared[name], known)
        case Name(name=name, kind=Kind.LET):
            return known.extremes.get(name)
        case Name(kind=Kind.ROUND) if known.horizon is not None:
            return 1, known.horizon
        case Name(kind=Kind.HORIZON) if known.horizon is not None:
            return known.horizon, known.horizon
        case Call(atom=atom, args=args):
            ranges = [r for a in args if (r := results[id(a)]) is not None]
            return _combined(atom, ranges) if len(ranges) == len(args) else None
    return None


def _declared_range(declaration: Param | Stream, known: Known) -> Range | None:
    if declaration.bounds is None or not declaration.integer:
        return None
    low, high = (whole_range(b, known) for b in declaration.bounds)
    return None if low is None or high is None else (low[0], high[1])


def _combined(atom: str, ranges: list[Range]) -> Range | None:
    match atom, ranges:
        case "add", [(a, b), (c, d)]:
            return a + c, b + d
        case "sub", [(a, b), (c, d)]:
            return a - d, b - c
        case "mul", [(a, b), (c, d)]:
            corners = (a * c, a * d, b * c, b * d)
            return min(corners), max(corners)
        case "mod", [(a, b), (c, d)] if c > 0:
            return (a % c, b % c) if c == d and a // c == b // c else (0, d - 1)
        case "minus", [(a, b)]:
            return -b, -a
        case "range", [(a, _), (_, d)]:
            return a, d
        case "repeat", [r, _]:
            return r
    return None


def check_index(expr: Index, known: Known) -> None:
    """Check that the positions of the items exist, by known values and declared ranges. Raises OCO312 or OCO313."""
    sizes = known.sizes
    for axis, (item, length) in enumerate(zip(expr.items, expr.base.shape)):
        dim = substitute(length, sizes)
        if isinstance(item, Slice):
            _check_slice(expr, item, axis, dim, sizes)
            continue
        result = whole_range(item, known)
        if result is None or isinstance(item, Constant):
            continue
        low, high = result
        last = dim - 1 if isinstance(dim, int) else None
        if low < 0 or (last is not None and high > last):
            outside = low if low < 0 else high
            verb = "is" if low == high else "holds" if _is_known(item, known) else "can be"
            raise fail(
                "OCO312",
                f"{describe(item, 'this index')} {verb} {outside}, outside 0..{last if last is not None else f'{dim} - 1'}",
                item.span,
                f"{axis_words(expr.base, dim, axis)}{_round_words(expr.base, item, dim)}",
            )


def _round_words(base: Expr, item: Expr, dim: Dim) -> str:
    """End of a hint about an index by the round, which counts from 1."""
    if not names(item, Kind.ROUND):
        return ""
    if names(base, Kind.DECISION):
        name = describe(base, "x").strip("`")
        return (
            f"; an index picks an entry of the decision of this round, and that of the round before is `prev({name})`"
        )
    return f"; rounds count from 1: `(t - 1) % {dim}` begins again after {dim} rounds"


def _is_known(item: Expr, known: Known) -> bool:
    return isinstance(item, Name) and item.name in known.values


def _check_slice(expr: Index, item: Slice, axis: int, dim: Dim, sizes: Mapping[str, int]) -> None:
    start, stop = (substitute(d, sizes) for d in slice_ends(item, dim))
    empty = isinstance(start, int) and isinstance(stop, int) and stop <= start
    outside = isinstance(stop, int) and isinstance(dim, int) and stop > dim
    if empty or outside or (isinstance(start, int) and start < 0):
        raise fail(
            "OCO313",
            f"the slice {start}:{stop} is empty" if empty else f"the slice {start}:{stop} does not lie in 0:{dim}",
            item.span,
            axis_words(expr.base, dim, axis),
        )
