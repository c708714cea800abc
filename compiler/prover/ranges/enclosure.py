"""Ranges of expressions: every node of the tree over a box of names, in one pass, each node once.

A node's range has the node's shape but costs only what its ends need: a box with one bound for a million entries is two numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from oco.compiler.prover.phrasing import Phrases, say, span_of_values
from oco.compiler.prover.types import ProofRule, Step
from oco.dsl.atoms import ATOMS
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.dims import known
from oco.dsl.enclose import enclose_node
from oco.dsl.expressions import Call, Constant, Expr, Index, Kind, Name, Slice, walk
from oco.dsl.intervals import Interval, interval, point

Box = Mapping[str, Interval]
MOST_RANGES = 2 * 10**7
"""Entries of arrays that have a range each in one enclosure, all nodes together: 320 MB. Past it an array has one range for all entries."""

FEW = 1000
"""Entries of an array that are not counted."""
Refinement = Callable[[Expr, Interval, "Enclosure"], tuple[Interval, Step | None]]


def compact(values: Any) -> np.ndarray[Any, Any]:
    """Shorten each axis along which the array only repeats itself to length 1; one number where all entries are equal."""
    array = np.asarray(values)
    if array.size > 1 and not any(array.strides):
        return np.asarray(array.flat[0])
    first = array.flat[:8]
    if array.size > 1 and bool(np.all(first == first[0])) and bool(np.all(array == first[0])):
        return np.asarray(array.flat[0])
    return array[
        tuple(slice(0, 1) if stride == 0 and n > 1 else slice(None) for stride, n in zip(array.strides, array.shape))
    ]


def entries(lower: Any, upper: Any, shape: tuple[int, ...]) -> Interval:
    """The box between two arrays that broadcast to `shape`."""
    return interval(compact(lower), compact(upper), shape)


class Enclosure:
    """The range of every expression over one box.

    refine  may narrow a node's range, with the step that says why, or that the search gave up
    """

    def __init__(self, box: Box, refine: Refinement | None = None) -> None:
        self.box = box
        self._refine = refine
        self._entries = 0  # of arrays that have a range each
        self._known: dict[int, tuple[Expr, Interval]] = {}
        self._narrowed: dict[int, Step] = {}
        self._ended: dict[int, Step] = {}  # where the refinement gave up
        self._steps: dict[int, Step] = {}
        self._undefined: dict[int, OcoError] = {}
        self._phrases = Phrases()

    def __call__(self, expr: Expr) -> Interval:
        result = self._known.get(id(expr))
        if result is not None:
            return result[1]
        for node in walk(expr, self._known):
            value = self._node(node)
            if self._refine is not None and isinstance(node, (Call, Index)):
                value, step = self._refine(node, value, self)
                if step is not None:
                    (self._ended if step.rule == ProofRule.NOT_SEARCHED else self._narrowed)[id(node)] = step
            self._known[id(node)] = (node, value)
        return self._known[id(expr)][1]

    def must_be_defined(self, expr: Expr) -> None:
        """Raise where a part of what the user wrote may be undefined. A derivative that is not defined is merely unbounded."""
        self(expr)
        for node in walk(expr):
            if id(node) in self._undefined:
                raise self._undefined[id(node)]

    def _node(self, node: Expr) -> Interval:
        children = tuple(self._known[id(c)][1] for c in node.children if not isinstance(c, Slice))
        if isinstance(node, Slice):
            return point(0)
        if isinstance(node, Call):
            row = ATOMS[node.atom]
            words = row.allowed(node, *children) if row.allowed is not None else ""
            if words:
                message = f"{say(node)} may be undefined: {words}"
                ended = (self._ended[id(n)].claim for n in walk(node) if id(n) in self._ended)
                hint = "; ".join((_undefined_hint(node.args, children), *islice(ended, 1)))
                self._undefined[id(node)] = fail("OCO504", message, node.span, hint)
                return interval(-math.inf, math.inf, known(node.shape))
        return enclose_node(node, self._fitting(node, children), self.box)

    def _fitting(self, node: Expr, children: tuple[Interval, ...]) -> tuple[Interval, ...]:
        """The ranges of the children; one for all entries of each where theirs or the node's own do not fit into memory."""
        sizes = [max(c.lo.size, c.hi.size) for c in children]
        numbers = max(min(math.prod(known(node.shape)), math.prod(sizes)), *sizes, 0)
        if numbers < FEW or self._entries + numbers <= MOST_RANGES:
            self._entries += numbers if numbers >= FEW else 0
            return children
        return tuple(interval(c.least, c.greatest, c.shape) for c in children)

    def step(self, expr: Expr) -> Step:
        """Derivation of the range of `expr`: one step a node, shared as the expression shares its nodes."""
        self(expr)
        for node in walk(expr, self._steps):
            if not isinstance(node, Slice):
                self._steps[id(node)] = self._say(node)
        return self._steps[id(expr)]

    def _say(self, node: Expr) -> Step:
        narrowed = self._narrowed.get(id(node))
        if narrowed is not None:
            return narrowed
        value = self._known[id(node)][1]

        def claim() -> str:
            return f"{self._phrases.say(node)} lies in {span_of_values(value)}"

        if isinstance(node, Constant):
            return Step(ProofRule.CONSTANT, claim, value, (), node.span, node)
        if isinstance(node, Name):
            return Step(ProofRule.DECLARED_RANGE, claim, value, (), node.span, node)
        premises = tuple(
            self._steps[id(c)] for c in node.children if not isinstance(c, (Slice, Constant)) and id(c) in self._steps
        )
        return Step(ProofRule.INTERVAL, claim, value, premises, node.span, node)


def _undefined_hint(args: tuple[Expr, ...], ranges: tuple[Interval, ...]) -> str:
    """Hint that names the ranges of the arguments; for a decision that ends at 0, a domain that does not."""
    message = [f"{say(a)} lies in {span_of_values(r)}" for a, r in zip(args, ranges) if not isinstance(a, Constant)]
    for a, r in zip(args, ranges):
        if isinstance(a, Name) and a.kind is Kind.DECISION and r.least == 0:
            message.append(f"`with {a.name} >= 1e-3` after its domain keeps it away from 0")
    return "; ".join(message)
