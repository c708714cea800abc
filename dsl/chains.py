"""Long sums: a chain of + and - with many terms is kept as a balanced tree, so that its depth grows with the logarithm
of their number.

Text and builder both write a chain as it is read, nested to the left. Up to `PLAIN` terms it stays so. A longer one is
halved repeatedly: the left half has the odd term, and a half behind a minus flips its own signs, so that a - b - c - d
is (a - b) - (c + d).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from oco.dsl.atoms import form_of, forms
from oco.dsl.build import applied
from oco.dsl.expressions import Expr, walk

PLAIN = 64
"""Largest number of terms of a chain that stays nested to the left."""

Signed = tuple[bool, Expr]
"""Term of a sum, after a flag that is True where it is subtracted."""


def levels(terms: int) -> int:
    """Greatest depth of the terms of a long chain."""
    return (terms - 1).bit_length()


def is_sum(node: Expr) -> bool:
    """True for a sum or difference."""
    return form_of(node) in (forms.SUM, forms.DIFFERENCE)


def counts(root: Expr) -> dict[int, int]:
    """Number of terms of each sum under `root`, read along its left arguments, by its `id`."""
    results: dict[int, int] = {}
    for node in walk(root):
        if is_sum(node):
            results[id(node)] = 1 + results.get(id(node.children[0]), 1)
    return results


def maximal_sums(root: Expr) -> set[int]:
    """Ids of the nodes that are not merely the beginning of a longer sum."""
    return {id(root)} | {id(c) for n in walk(root) for c in (n.children[1:] if is_sum(n) else n.children)}


def balanced(root: Expr) -> Expr:
    """Expression of equal value with every long chain as a balanced tree; `root` itself where there is none."""
    terms = counts(root)
    if all(count <= PLAIN for count in terms.values()):
        return root
    tops = maximal_sums(root)
    done: dict[int, Expr] = {}
    for node in walk(root):
        if terms.get(id(node), 0) > PLAIN:
            if id(node) in tops:
                done[id(node)] = halved(node, done)
            continue
        children = tuple(done[id(c)] for c in node.children)
        same = all(a is b for a, b in zip(children, node.children))
        done[id(node)] = node if same else node.with_children(children)
    return done[id(root)]


def halved(top: Expr, done: Mapping[int, Expr] = MappingProxyType({})) -> Expr:
    """Long chain as a balanced tree over its terms, or over their replacements in `done`."""
    links: list[Expr] = []
    first = top
    while is_sum(first):
        links.append(first)
        first = first.children[0]
    links.reverse()  # links[k - 1] ends with term k
    terms = [done.get(id(term), term) for term in (first, *(link.children[1] for link in links))]
    minus = [False, *(form_of(link) is forms.DIFFERENCE for link in links)]

    def part(start: int, end: int) -> Expr:
        if end - start == 1:
            return terms[start]
        middle = (start + end + 1) // 2
        span = links[end - 2].span
        if start and (begins := terms[start].span) is not None:
            span = begins.to(terms[end - 1].span)
        atom = "add" if minus[start] == minus[middle] else "sub"
        return applied(atom, (part(start, middle), part(middle, end)), span=span)

    return part(0, len(terms))


class Chains:
    """Long sums as they are read, of nodes that are visited from the leaves on.

    A bracketed sum among the terms may let a tree be read as one of more terms, whose text would come back as another tree; so the longest
    reading is taken all of whose terms come back as they are.
    """

    def __init__(self) -> None:
        self._widths: dict[int, int] = {}
        self._links: dict[int, int] = {}
        self._lost: set[int] = set()

    def terms(self, node: Expr) -> list[Signed] | None:
        """Terms of the long chain of which this node is the balanced tree; None where it is not one."""
        widest = self._widths[id(node)] = self._width(node)
        links = self._links[id(node)] = 1 + self._links.get(id(node.children[0]), 0) if is_sum(node) else 0
        readings = (self._reading(node, size) for size in range(widest, PLAIN, -1))
        chain = next((reading for reading in readings if reading is not None), None)
        if chain is None and (links >= PLAIN or any(id(c) in self._lost for c in node.children)):
            self._lost.add(id(node))
        return chain

    def _width(self, node: Expr) -> int:
        """Largest number of terms of which this node could be the balanced tree; 1 where it is no sum."""
        if not is_sum(node):
            return 1
        left, right = (self._widths.get(id(c), 1) for c in node.children)
        return min(2 * left, 2 * right + 1)

    def _reading(self, node: Expr, terms: int) -> list[Signed] | None:
        """Terms of the balanced tree over so many; None where their text is read as another tree."""
        results: list[Signed] = []
        stack = [(node, terms, False)]
        while stack:
            top, size, minus = stack.pop()
            if size == 1:
                if id(top) in self._lost or (not results and is_sum(top)):
                    return None
                results.append((minus, top))
                continue
            left, right = top.children
            turned = form_of(top) is forms.DIFFERENCE
            stack += [(right, size // 2, minus != turned), (left, size - size // 2, minus)]
        return results
