"""Euclidean norms of array expressions by structure: where the square root of a sum of squared entry bounds forgets too much."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.prover.curvature.spectrum import matrix_norm
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.compiler.prover.terms.summands import is_sum
from oco.dsl.atoms import form_of, forms
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Constant, Expr, Kind, Name, Slice
from oco.dsl.intervals import Interval, interval

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext


class Norms:
    """Upper bounds of Euclidean norms, each node once. The parts of a node must have ranges already."""

    def __init__(self, setting: ProofContext, ranges: Enclosure) -> None:
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
                stack += part.children if is_sum(part) else ()
        return order[::-1]

    def _rules(self, node: Expr) -> float:
        ranges = self.ranges
        if isinstance(node, Name) and node.kind is Kind.DECISION and node.name in self.setting.blocks:
            return self.setting.blocks[node.name].domain.radius * (1 + 2**-50)
        match form_of(node), node.children:
            case forms.UnitVector(), _ if isinstance(node, Call) and node.option("axis") is None:
                return 1.0
            case forms.NEGATIVE | forms.TRANSPOSE | forms.Reshaped(), (base,):
                return self(base)
            case forms.Stretched(), (base,):
                copies = math.prod(known(node.shape)) / max(1, math.prod(known(base.shape)))
                return _up(self(base) * math.sqrt(copies))
            case forms.Signed(), (left, right) if left.shape == right.shape:
                return _up(self(left) + self(right))
            case forms.TIMES, (left, right):
                options = [(left, right)] if right.shape == node.shape else []
                options += [(right, left)] if left.shape == node.shape else []
                return min((_up(float(ranges(a).magnitude.max()) * self(b)) for a, b in options), default=math.inf)
            case forms.QUOTIENT, (left, right) if left.shape == node.shape:
                least = ranges(right).abs().least
                return _up(self(left) / least) if least > 0 else math.inf
            case forms.MATRIX_PRODUCT, (left, right):
                return min(_up(self._matrix(left) * self(right)), _up(self._matrix(right) * self(left)))
            case forms.Scattered(), (values, *items):
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
