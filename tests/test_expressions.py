"""Equality and hashes of expressions: by structure, in time linear in the nodes, against a literal comparison of small trees."""

from __future__ import annotations

import copy
from dataclasses import fields, replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oco.dsl.expressions import Array, Call, EntryNames, Expr, File, Index, Kind, Name, Slice, constant, uniform
from oco.dsl.source import Source, Span

X, ONE = Name("x", Kind.DECISION, shape=(3,)), constant(1)


def doubled(levels: int, last: Expr = X) -> Expr:
    """Expression whose node is used twice at each level: 2^levels leaves when it is written out."""
    for _ in range(levels):
        last = Call("mul", (last, last), shape=(3,))
    return last


def literal(a: Any, b: Any) -> bool:
    """Comparison of the fields, node by node, with every shared node compared as often as it is used."""
    if isinstance(a, Expr):
        return type(a) is type(b) and all(
            literal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a) if f.compare
        )
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(literal, a, b))
    return bool(a == b)


EACH = [
    X,
    replace(X, kind=Kind.STREAM),
    replace(X, shape=(2,)),
    replace(X, integer=True),
    constant(1.0),
    constant(1),
    constant([1.0, 1.0]),
    constant([1.0, 2.0]),
    Slice(),
    Slice(ONE, None),
    Slice(None, ONE),
    Slice(ONE, ONE),
    Index(X, (ONE,)),
    Index(X, (Slice(), ONE)),
    Index(Index(X, (Slice(),)), (ONE,)),
    Array((X, X)),
    Array((X,)),
    Call("sum", (X,)),
    Call("sum", (X,), (("axis", 0),)),
    Call("sum", (X,), (("axis", 1),)),
    Call("max", (X,)),
    Call("add", (X, ONE)),
    Call("add", (ONE, X)),
    File("a.csv"),
    File("a.csv", "b"),
    EntryNames(("a", "b")),
    EntryNames(("a",)),
    Call("mul", (Call("mul", (X, ONE)), X)),
    Call("mul", (X, Call("mul", (ONE, X)))),
]


@pytest.mark.parametrize("levels", [40, 180])
def test_shared_nodes_are_compared_once(levels: int) -> None:
    """Written out it has 2^40 leaves and more; equal where another is made alike, unequal where a leaf differs."""
    one, other, differs = doubled(levels), doubled(levels), doubled(levels, replace(X, name="y"))
    assert one is not other and one == other and hash(one) == hash(other)
    assert one != differs and one != doubled(levels - 1)


def test_deep_expressions_compare() -> None:
    """Far beyond Python's stack, hashed from the top and from the bottom."""
    one, other = doubled(5_000), doubled(5_000)
    assert hash(one.children[0].children[0]) == hash(other.children[0].children[0])
    assert one == other and len({one, other}) == 1


def test_structure_decides() -> None:
    """Each of these differs from the others and equals what is made of the same parts, whose spans do not count."""
    span = Span(Source("", ""), 0, 0)
    again = [replace(node, span=span).with_children(tuple(replace(c) for c in node.children)) for node in EACH]
    for (i, a), (j, b) in product(enumerate(EACH), enumerate(again)):
        assert (a == b) == (i == j) == literal(a, b)
    assert [hash(a) for a in EACH] == [hash(b) for b in again] and X != "x"


def test_sharing_does_not_count() -> None:
    assert uniform(2.0, (3,)) == constant([2.0, 2.0, 2.0])
    apart = Call("mul", (doubled(3), doubled(3)), shape=(3,))
    assert apart == doubled(4) and hash(apart) == hash(doubled(4))


def test_copies_keep_no_hash() -> None:
    """Hashes of texts differ from process to process, so that nothing sent to another takes one along."""
    node = doubled(3)
    assert hash(node) and "_hash" in vars(node)
    again = copy.copy(node)
    assert set(vars(again)) == {f.name for f in fields(node)} and again == node


@st.composite
def graphs(draw: st.DrawFn) -> Expr:
    """Expression over a few leaves whose nodes take any of those before as arguments."""
    nodes: list[Expr] = [X, replace(X, name="y"), ONE]
    for _ in range(draw(st.integers(1, 5))):
        args = tuple(draw(st.sampled_from(nodes)) for _ in range(draw(st.integers(1, 2))))
        nodes.append(draw(st.sampled_from([Call("add", args), Array(args), Index(args[0], args), Slice(args[0])])))
    return nodes[-1]


@given(graphs(), graphs())
def test_graphs_compare_as_their_trees(a: Expr, b: Expr) -> None:
    assert (a == b) == literal(a, b)
    assert a != b or hash(a) == hash(b)
