"""Directions in which expressions depend on a stream, by composition of monotone functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl.atoms import ATOMS
from oco.dsl.atoms.base import Monotone
from oco.dsl.expressions import Array, Call, Expr, Index, Kind, Name, Slice, constant, rewrite, walk
from oco.dsl.intervals import Interval


def direction(expr: Expr, stream: str, ranges: Callable[[Expr], Interval]) -> int | None:
    """1 where every entry of the expression is nondecreasing in every entry of the stream over the ranges, -1 nonincreasing, 0 both; None
    where composition shows neither."""
    results: dict[int, int | None] = {}
    for node in walk(expr):
        parts = [results[id(c)] for c in node.children]
        match node:
            case Name(name=name, kind=Kind.STREAM):
                results[id(node)] = int(name == stream)
            case Call(atom=atom) if any(d != 0 for d in parts):
                signs = ATOMS[atom].monotone(node, *(ranges(c) for c in node.children))
                results[id(node)] = _joined([_composed(d, m) for d, m in zip(parts, signs)])
            case Index() if any(d != 0 for d in parts[1:]):
                results[id(node)] = None
            case Slice() if any(d != 0 for d in parts):
                results[id(node)] = None
            case Call() | Index() | Array() | Slice():
                results[id(node)] = _joined(parts)
            case _:
                results[id(node)] = 0
    return results[id(expr)]


def at_worst(expr: Expr, streams: Iterable[StreamRange], ranges: Callable[[Expr], Interval]) -> Expr | StreamRange:
    """Expression with each stream at the end of its range at which every entry is largest, or the first stream that has no such end, or an
    infinite one.
    """
    ends: dict[str, Expr] = {}

    def ended(node: Expr) -> Expr:
        return ends.get(node.name, node) if isinstance(node, Name) and node.kind is Kind.STREAM else node

    for s in streams:
        up = direction(expr, s.name, ranges)
        end = None if up is None else np.broadcast_to(s.upper if up >= 0 else s.lower, s.shape)
        if end is None or not np.isfinite(end).all():
            return s
        ends[s.name] = constant(end.astype(np.int64) if s.integer else np.array(end))
    return rewrite(expr, ended)


def _composed(inner: int | None, outer: Monotone) -> int | None:
    if inner == 0:
        return 0
    sign = {Monotone.UP: 1, Monotone.DOWN: -1}.get(outer)
    return None if inner is None or sign is None else inner * sign


def _joined(parts: list[int | None]) -> int | None:
    kinds = set(parts) - {0}
    return 0 if not kinds else kinds.pop() if len(kinds) == 1 else None
