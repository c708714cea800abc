"""Euclidean norms of array expressions by structure: where the square root of a sum of squared entry bounds forgets too much."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.facts.enclosure import Enclosure
from oco.compiler.facts.spectrum import matrix_norm
from oco.compiler.facts.sums import ADDITIVE
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Constant, Expr, Kind, Name, Slice
from oco.dsl.intervals import Interval, interval

if TYPE_CHECKING:
    from oco.compiler.facts.setting import Setting


class Norms:
    """Upper bounds of Euclidean norms, each node once. The parts of a node must have ranges already."""

    def __init__(self, setting: Setting, ranges: Enclosure) -> None:
        self.setting = setting
        self.ranges = ranges
        self._known: dict[int, tuple[Expr, float]] = {}

    def __call__(self, node: Expr) -> float:
        """An upper bound of the Euclidean norm of all entries of `node`."""
        for part in self._sums(node):  # the innermost first: long sums nest too deep to recurse
            if id(part) not in self._known:
                by_entries = self.ranges(part).square().sum().sqrt().greatest
                self._known[id(part)] = (part, min(by_entries, self._rules(part)))
        return self._known[id(node)][1]

    def _sums(self, node: Expr) -> list[Expr]:
        """The node after what it adds up, and so on for what are sums among these."""
        order, stack = [], [node]
        while stack:
            part = stack.pop()
            if id(part) not in self._known:
                order.append(part)
                stack += part.children if isinstance(part, Call) and part.atom in ADDITIVE else ()
        return order[::-1]

    def _rules(self, node: Expr) -> float:
        ranges = self.ranges
        match node:
            case Name(name=name, kind=Kind.DECISION) if name in self.setting.blocks:
                return self.setting.blocks[name].domain.radius * (1 + 2**-50)
            case Call(atom="_peak" | "_softmax" | "_unit") if node.option("axis") is None:
                return 1.0
            case Call(atom="minus" | "transpose" | "_reshape", args=(base,)):
                return self(base)
            case Call(atom="_broadcast", args=(base,)):
                copies = math.prod(known(node.shape)) / max(1, math.prod(known(base.shape)))
                return _up(self(base) * math.sqrt(copies))
            case Call(atom="add" | "sub", args=(left, right)) if left.shape == right.shape:
                return _up(self(left) + self(right))
            case Call(atom="mul", args=(left, right)):
                options = [(left, right)] if right.shape == node.shape else []
                options += [(right, left)] if left.shape == node.shape else []
                return min((_up(float(ranges(a).magnitude.max()) * self(b)) for a, b in options), default=math.inf)
            case Call(atom="div", args=(left, right)) if left.shape == node.shape:
                least = ranges(right).abs().least
                return _up(self(left) / least) if least > 0 else math.inf
            case Call(atom="matmul", args=(left, right)):
                return min(_up(self._matrix(left) * self(right)), _up(self._matrix(right) * self(left)))
            case Call(atom="_scatter", args=(values, *items)):
                if all(isinstance(i, (Slice, Constant)) for i in items):
                    return math.inf
                # Several values may fall on one entry, where they add up.
                return ranges(values).abs().sum().greatest
        return math.inf

    def _matrix(self, node: Expr) -> float:
        """The operator norm of a matrix, or of a vector as one row."""
        a = self.ranges(node)
        return matrix_norm(a if len(a.shape) == 2 else a.reshape((1, a.size)), self.setting.search)


def _up(value: float) -> float:
    return float(np.nextafter(value * (1 + 2**-51), np.inf)) if value else 0.0


def squared(norm: float) -> Interval:
    """All squares of norms up to this one."""
    return interval(0.0, norm).square()
