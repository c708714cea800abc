"""Terms of sums that are alike but for the streams in them, worked out together: as one array with an axis more, of which each is a row.

The mean of a loss over samples of its data is such a sum, and so is a piecewise linear function of the level of a store, with a term a
kink; within each other they have some sixty terms. Every row is worked out as the term alone is, and the sum adds the rows up as it adds
the terms, so that its value is the same bit for bit. Equations are those of one term, and two for each other one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from oco.compiler.ir.program import Type
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.dsl.atoms import ATOMS, form_of, forms, is_entrywise
from oco.dsl.chains import is_sum
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Constant, Expr, Kind, Name, names, walk

LEAST = 6
"""Fewest terms that are put together."""
FEWEST_CALLS = 3
"""Calls of a term from which on an array with a row for each takes fewer equations."""
HIGHEST = 64
"""Height of a term up to which it is put together with others: as deep a stack Python surely has."""

Nodes = np.ndarray[Any, Any]
"""Array of alike expressions: their values together have its axes before their own."""


class AlikeTerms:
    """Values of the alike terms of sums, by the id of the term, over one environment.

    env     values of names, those of streams among them
    values  of nodes by id, to which those of alike terms are added; what they share is worked out by `plain`
    """

    def __init__(self, t: Tracer, env: Mapping[str, Any], values: dict[int, Any], plain: Callable[[Expr], Any]) -> None:
        self.t, self.values, self.plain = t, values, plain
        self.numbers = _Numbers(_common_types(env))
        self.done: dict[tuple[Any, ...], Any] = {}

    def work_out(self, root: Expr) -> None:
        """Add the values of the alike terms of all sums in an expression."""
        if not self.numbers.types or len(self.numbers.streams(root)) < LEAST:
            return
        self.numbers.add(root)
        open_, seen = [root], set[int]()
        while open_:
            node = open_.pop()
            if id(node) in seen or id(node) in self.values:
                continue
            seen.add(id(node))
            open_ += [term.item() for term in self._add_rows(_array([node], ()))] if is_sum(node) else node.children

    def of(self, nodes: Nodes) -> Any:
        """Value of alike expressions together: that of one where all are the same."""
        if (key := _key(nodes)) not in self.done:
            apart = self._apart(nodes)
            self.done[key] = self.plain(apart.flat[0]) if apart.size == 1 else self._together(apart)
        return self.done[key]

    def _together(self, nodes: Nodes) -> Value:
        """Value of expressions that differ along every axis longer than 1, with these axes before its own."""
        first, lead = nodes.flat[0], nodes.ndim
        if isinstance(first, Name):
            stacked = self.t.stack(*map(self.plain, nodes.flat))
            return self.t.reshape(stacked, (*nodes.shape, *known(first.shape)))
        if is_sum(first):
            self._add_rows(nodes)
        columns = [_array([node.children[k] for node in nodes.flat], nodes.shape) for k in range(len(first.children))]
        args = [self._aligned(column, len(first.shape)) for column in columns]
        shape, own = known(first.shape), form_of(first)
        if own is forms.TOTAL:
            flat = self.t.reshape(args[0], (*args[0].shape[:lead], prod(args[0].shape[lead:])))
            return self.t.sum(flat, axis=lead)
        if isinstance(own, forms.Stretched):
            return self.t.broadcast(args[0], (*args[0].shape[:lead], *shape))
        if isinstance(own, forms.Reshaped):
            return self.t.reshape(args[0], (*args[0].shape[:lead], *shape))
        return self.t.lift(ATOMS[first.atom].lower(self.t, first, *args))

    def _aligned(self, nodes: Nodes, rank: int) -> Any:
        """Value of arguments, their own axes as many as those of the call, so that they stand beside those of others."""
        value, own = self.of(nodes), len(nodes.flat[0].shape)
        if rank <= own or not isinstance(value, Value) or value.ndim == own:
            return value
        return self.t.reshape(value, (*value.shape[: nodes.ndim], *(1,) * (rank - own), *value.shape[nodes.ndim :]))

    def _add_rows(self, nodes: Nodes) -> list[Nodes]:
        """Work out the terms of alike sums that are alike among themselves, too; all terms of the sums."""
        terms = [_array(column, nodes.shape) for column in zip(*self._terms(list(nodes.flat)), strict=True)]
        for own in self._groups(terms):
            together = self.of(np.stack(own))
            for row, term in enumerate(own):
                if not term.shape:
                    self.values[id(term.item())] = together[row]
                else:
                    self.done[_key(term)] = together[row]
        return terms

    def _terms(self, sums: Sequence[Expr]) -> list[list[Expr]]:
        """All that each of some alike sums adds up, from the left; a sum within it stays whole where many are alike."""
        within = {self.numbers.same[id(n)]: self.numbers.alike[id(n)] for n in _sums(sums[0])}
        whole = {number for number, count in Counter(within.values()).items() if count >= LEAST}
        return [list(self._added(node, whole)) for node in sums]

    def _added(self, top: Expr, whole: Collection[int]) -> Iterator[Expr]:
        open_ = [top]
        while open_:
            node = open_.pop()
            if is_sum(node) and (node is top or self.numbers.alike[id(node)] not in whole):
                open_ += reversed(node.children)
            else:
                yield node

    def _groups(self, terms: Sequence[Nodes]) -> Iterator[list[Nodes]]:
        """Terms that are alike and not all the same, where they are many and not yet worked out."""
        groups: dict[int, dict[int, Nodes]] = {}
        for term in terms:
            first = term.flat[0]
            if id(first) not in self.values and _key(term) not in self.done and self.numbers.gains(first):
                groups.setdefault(self.numbers.alike[id(first)], {}).setdefault(self.numbers.same[id(first)], term)
        for own in groups.values():
            if len(own) >= LEAST:  # in the order of their streams, so that other groups of as many have the same arrays
                yield sorted(own.values(), key=lambda term: self.numbers.streams(term.flat[0]))

    def _apart(self, nodes: Nodes) -> Nodes:
        """Nodes with an axis of length 1 in the place of each along which they are the same."""
        numbers = np.array([self.numbers.same[id(node)] for node in nodes.flat]).reshape(nodes.shape)
        for axis in range(nodes.ndim):
            if (numbers == numbers.take([0], axis)).all():
                numbers, nodes = numbers.take([0], axis), nodes.take([0], axis)
        return nodes


class _Numbers:
    """Numbers of expressions: those that are the same have one, and those that are alike but for the streams in them.

    types  of the streams by name: those of one type may stand for each other
    """

    def __init__(self, types: Mapping[str, Type]) -> None:
        self.types = types
        self.places = {name: k for k, name in enumerate(types)}
        self.same: dict[int, int] = {}
        self.alike: dict[int, int] = {}
        self.calls: dict[int, int] = {}
        self.height: dict[int, int] = {}
        self.keys: dict[tuple[Any, ...], int] = {}

    def add(self, root: Expr) -> None:
        """Number the nodes of an expression."""
        for node in walk(root, self.same):
            own, children = id(node), [id(c) for c in node.children]
            self.same[own] = self._number("same", *self._of(node), *(self.same[c] for c in children))
            self.alike[own] = self._alike(node, children)
            self.calls[own] = min(isinstance(node, Call) + sum(self.calls[c] for c in children), FEWEST_CALLS)
            self.height[own] = 1 + max((self.height[c] for c in children), default=0)

    def gains(self, term: Expr) -> bool:
        """True for a term of which an array with a row for each takes fewer equations, of a height that one is made for."""
        return self.calls[id(term)] >= FEWEST_CALLS and self.height[id(term)] <= HIGHEST

    def streams(self, term: Expr) -> list[int]:
        """Places of the streams of a term among those that may stand for each other."""
        return [self.places[name] for name in names(term, Kind.STREAM) if name in self.places]

    def _alike(self, node: Expr, children: Sequence[int]) -> int:
        if isinstance(node, Name) and node.kind is Kind.STREAM and node.name in self.types:
            return self._number("stream", self.types[node.name])
        if isinstance(node, Call) and not node.options and (is_entrywise(node) or _moves(node)):
            return self._number("alike", node.atom, node.shape, *(self.alike[c] for c in children))
        return self._number("one", self.same[id(node)])

    def _of(self, node: Expr) -> tuple[Any, ...]:
        match node:
            case Name(kind=kind, name=name):
                return kind, name
            case Call(atom=atom, options=options, shape=shape):
                return atom, options, shape
            case Constant(value=value, integer=integer) if node.shape == ():
                return integer, value.array.tobytes()
        return (id(node),)

    def _number(self, *key: Any) -> int:
        return self.keys.setdefault(key, len(self.keys))


def _common_types(env: Mapping[str, Any]) -> dict[str, Type]:
    """Types of the values by name, those that fewer than `LEAST` have left out; none beside values that are no arrays."""
    if not all(isinstance(v, Value) for v in env.values()):
        return {}
    counts = Counter(v.type for v in env.values())
    return {n: v.type for n, v in env.items() if counts[v.type] >= LEAST}


def _moves(call: Call) -> bool:
    """True for the sum of all entries, and for entries in another shape."""
    own = form_of(call)
    return own is forms.TOTAL or isinstance(own, forms.Stretched | forms.Reshaped)


def _sums(top: Expr) -> Iterator[Expr]:
    """Sum, and the sums within it of which it is made."""
    open_ = [top]
    while open_:
        node = open_.pop()
        yield node
        open_ += filter(is_sum, node.children)


def _key(nodes: Nodes) -> tuple[Any, ...]:
    return (nodes.shape, *map(id, nodes.flat))


def _array(nodes: Sequence[Expr], shape: tuple[int, ...] | None = None) -> Nodes:
    """Array of these expressions: `np.array` would look into them."""
    result = np.empty(len(nodes), dtype=object)
    for k, node in enumerate(nodes):
        result[k] = node
    return result if shape is None else result.reshape(shape)
