"""Long sums of like terms, as one term over vectors: x[0] * a[0] + x[1] * a[1] + ... is x @ a.

Programs that write models write such sums. As vectors they are proved and run array by array, as if a person had written them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from oco.dsl.atoms import form_of, forms, is_entrywise
from oco.dsl.build import applied, call, index
from oco.dsl.chains import PLAIN, Signed, balanced, is_sum
from oco.dsl.expressions import Call, Constant, Expr, Index, Kind, Name, Slice, constant, walk
from oco.dsl.source import Span

MOST_TERMS = 20_000
"""Limit on the terms of the sums of a model that are looked at."""

LEAST = 8
"""The fewest terms that are put together."""

Key = tuple[object, ...]
Slot = Constant | Index
"""Slot in which like terms differ: a number, or an entry at known places."""

Member = tuple[Expr, list[Slot]]
"""A term and its slots."""

DEEPEST = 50
"""Number of levels up to which a term is looked at."""


class LikeTerms:
    """Puts like terms together in the expressions of one model; what the expressions share they go on sharing.

    Sums of more than `MOST_TERMS` terms in all stay as they are.
    """

    def __init__(self) -> None:
        self._left = MOST_TERMS
        self._sizes: dict[int, int] = {}
        self._done: dict[int, Expr] = {}
        self._kept: list[Expr] = []  # an id names a node only while the node lives

    def __call__(self, root: Expr) -> Expr:
        """Put the like terms of every long sum of numbers together; the value is the same to rounding."""
        self._kept.append(root)
        for node in walk(root, self._sizes):
            self._sizes[id(node)] = sum(self._sizes[id(c)] for c in node.children) if _adds(node) else 1
        terms: dict[int, list[Signed]] = {}
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if ready:
                whole = _total(terms[id(node)], self._done, node) if id(node) in terms else _over(node, self._done)
                self._done[id(node)] = whole
            elif id(node) not in self._done:
                below = node.children
                if PLAIN < self._sizes[id(node)] <= self._left:
                    self._left -= self._sizes[id(node)]
                    terms[id(node)] = _terms(node)
                    below = tuple(term for _, term in terms[id(node)])
                stack += [(node, True), *((child, False) for child in below)]
        return self._done[id(root)]


def _adds(node: Expr) -> bool:
    return is_sum(node) and node.shape == ()


def _over(node: Expr, done: Mapping[int, Expr]) -> Expr:
    children = tuple(done[id(c)] for c in node.children)
    return node if all(a is b for a, b in zip(children, node.children)) else node.with_children(children)


def _terms(node: Expr) -> list[Signed]:
    """All that a sum adds up, from the left."""
    results: list[Signed] = []
    stack: list[Signed] = [(False, node)]
    while stack:
        minus, top = stack.pop()
        if _adds(top):
            left, right = top.children
            turned = form_of(top) is forms.DIFFERENCE
            stack += [(minus != turned, right), (minus, left)]
        else:
            results.append((minus, top))
    return results


def _total(terms: list[Signed], done: Mapping[int, Expr], node: Expr) -> Expr:
    """The sum of the terms, each group of like ones as one."""
    groups: dict[tuple[bool, Key], list[Member]] = {}
    for number, (minus, old) in enumerate(terms):
        term, slots = done[id(old)], list[Slot]()
        key = like_term_key(term, slots) or ("apart", number)
        groups.setdefault((minus, key), []).append((term, slots))
    parts: list[Signed] = []
    for (minus, _), result in groups.items():
        for members in _groups(result):
            few = len(members) < LEAST
            parts += [(minus, term) for term, _ in members] if few else [(minus, _whole(members, node.span))]
    return _added(parts, node.span)


def _groups(members: list[Member]) -> Iterable[list[Member]]:
    """Alike terms apart by the entries of decisions in them: all with the same ones, or none with one that another has, as in a vector."""
    entries = [
        tuple((k, _places(s)) for k, s in enumerate(slots) if isinstance(s, Index) and not _is_data(s.base))
        for _, slots in members
    ]
    groups: dict[object, list[Member]] = {}
    same = LEAST * len(set(entries)) <= len(members)
    used: dict[object, int] = {}
    for member, at in zip(members, entries):
        turn = max((used.get(a, 0) for a in at), default=0)
        used |= dict.fromkeys(at, turn + 1)
        groups.setdefault(at if same else turn, []).append(member)
    return groups.values()


def _added(parts: list[Signed], span: Span | None) -> Expr:
    """The first term of a sum is never subtracted."""
    (_, total), *rest = sorted(parts, key=lambda part: part[0])
    for minus, part in rest:
        total = applied("sub" if minus else "add", (total, part), span=span)
    return balanced(total)


def like_term_key(term: Expr, slots: list[Slot], level: int = 0) -> Key | None:
    """Key that like terms share; None for what cannot be one entry of a vector. The places where they may differ go to `slots`."""
    if term.shape != () or level > DEEPEST:
        return None
    match term:
        case Constant():
            slots.append(term)
            return ("number", term.integer)
        case Name(name=name):
            return ("name", name)
        case Index(base=base, items=items) if all(isinstance(i, Constant) and i.shape == () for i in items):
            slots.append(term)
            return ("entry", base.name if isinstance(base, Name) else id(base))
        case Call(atom=atom, args=args, options=()) if is_entrywise(term):
            keys = [("fixed", a) if _is_fixed(a, term) else like_term_key(a, slots, level + 1) for a in args]
            return None if None in keys else (atom, *keys)
    return None


def _is_fixed(arg: Expr, call: Expr) -> bool:
    """True if like terms share this argument: a number does not differ but in sums, products and quotients."""
    return isinstance(arg, Constant) and form_of(call) not in (forms.SUM, forms.DIFFERENCE, forms.TIMES, forms.QUOTIENT)


def _is_data(base: Expr) -> bool:
    return isinstance(base, Name) and base.kind is not Kind.DECISION


def _places(entry: Index) -> tuple[int, ...]:
    """The integers in an index."""
    return tuple(int(i.value.array) for i in entry.items if isinstance(i, Constant))


def as_vector(members: list[Member]) -> Expr:
    """The terms as entries of a vector; a number where they are all the same."""
    return _vector(members[0][0], zip(*(slots for _, slots in members)))


def _whole(members: list[Member], span: Span | None) -> Expr:
    """The sum of like terms: an inner product, a sum of entries, or a multiple where they are all the same."""
    vector = as_vector(members)
    if vector.shape == ():
        return call("mul", len(members), vector, span=span)
    if (
        isinstance(vector, Call)
        and form_of(vector) is forms.TIMES
        and all(a.shape == vector.shape for a in vector.args)
    ):
        return call("matmul", *vector.args, span=span)
    return call("sum", vector, span=span)


def _vector(term: Expr, columns: Iterator[tuple[Slot, ...]]) -> Expr:
    """The term with what stands in each slot of all its likes, as vectors; a number where they all have the same."""
    match term:
        case Constant():
            values = [s.value.array.item() for s in next(columns) if isinstance(s, Constant)]
            return term if len(set(values)) == 1 else constant(np.array(values), term.span)
        case Index(base=base):
            return _entries(base, np.array([_places(s) for s in next(columns) if isinstance(s, Index)]), term)
        case Call(atom=atom, args=args):
            parts = (a if _is_fixed(a, term) else _vector(a, columns) for a in args)
            return applied(atom, tuple(parts), span=term.span)
    return term


def _entries(base: Expr, places: np.ndarray[Any, Any], term: Expr) -> Expr:
    """The entries of the base at these places, a row each."""
    varying = [k for k, column in enumerate(places.T) if (column != column[0]).any()]
    items: list[Expr] = [constant(int(column[0])) for column in places.T]
    for k in varying:
        first, last = int(places[0, k]), int(places[-1, k])
        row = len(varying) == 1 and np.array_equal(places[:, k], np.arange(first, first + len(places)))
        if row and base.shape == (len(places),):
            return base
        items[k] = Slice(constant(first), constant(last + 1)) if row else constant(places[:, k])
    return index(base, tuple(items), term.span)
