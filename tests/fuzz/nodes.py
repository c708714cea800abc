"""Expressions as typed values. They know the typed expression of the language that they print as (`Node.expr`), for its shape and
for the tables of atoms. Values come from `meaning.py`, which knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from oco.dsl import build
from oco.dsl.atoms import ATOMS
from oco.dsl.expressions import Expr, Kind, Name, Slice, constant

Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]
CALL, POWER, MINUS, ADD = 6, 5, 4, 2
"""Precedences of grammar/language.md: postfix operators and calls, powers, the sign, sums."""


class Node:
    """An expression. Nodes compare by identity; a shared node is one node."""

    @property
    def expr(self) -> Any:
        """The typed expression of the language. Raises OcoError where the parts do not fit."""
        raise NotImplementedError

    @property
    def shape(self) -> Shape:
        return tuple(self.expr.shape)

    @property
    def children(self) -> tuple[Node, ...]:
        return ()

    def over(self, children: tuple[Node, ...]) -> Node:
        """The node over other children."""
        return self

    @property
    def written(self) -> tuple[str, int]:
        """Text and precedence."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        return self.written[0]

    def within(self, least: int) -> str:
        """Text, in brackets where it binds looser than `least`."""
        text, precedence = self.written
        return f"({text})" if precedence < least else text


def number_text(value: float | int) -> str:
    return repr(value if isinstance(value, int) else float(value))


@dataclass(frozen=True, eq=False)
class Number(Node):
    value: float | int

    @cached_property
    def expr(self) -> Expr:
        return constant(self.value)

    @property
    def written(self) -> tuple[str, int]:
        return number_text(self.value), MINUS if np.signbit(self.value) else CALL


@dataclass(frozen=True, eq=False)
class Literal(Node):
    """An array of numbers; integers where its dtype is."""

    value: Array

    @cached_property
    def expr(self) -> Expr:
        return constant(self.value)

    @property
    def written(self) -> tuple[str, int]:
        return str(self.value.tolist()), CALL


@dataclass(frozen=True, eq=False)
class Ref(Node):
    """A name: a param, decision, stream or let, the round t or the horizon T."""

    name: str
    kind: Kind
    of: Shape = ()
    integer: bool = False

    @cached_property
    def expr(self) -> Expr:
        return Name(self.name, self.kind, shape=self.of, integer=self.integer)

    @property
    def written(self) -> tuple[str, int]:
        return self.name, CALL


def before(x: Ref) -> Ref:
    """The decision x of the round before."""
    return Ref(f"prev({x.name})", Kind.STREAM, x.of)


@dataclass(frozen=True, eq=False)
class Apply(Node):
    """An atom of the language. `named`: its last argument is written by its name, as in power(x, p = 2)."""

    atom: str
    args: tuple[Node, ...]
    options: tuple[tuple[str, int], ...] = ()
    named: bool = False

    @cached_property
    def expr(self) -> Expr:
        return build.applied(self.atom, tuple(a.expr for a in self.args), self.options)

    @property
    def children(self) -> tuple[Node, ...]:
        return self.args

    def over(self, children: tuple[Node, ...]) -> Node:
        return replace(self, args=children)

    @property
    def written(self) -> tuple[str, int]:
        row, args = ATOMS[self.atom], self.args
        if not row.operator:
            texts = [a.text for a in args]
            if self.named and len(args) > 1:
                texts[-1] = f"{row.by_name[len(args) - 2]} = {texts[-1]}"
            return f"{self.atom}({', '.join([*texts, *(f'{k} = {v}' for k, v in self.options)])})", CALL
        own = row.precedence
        if len(args) == 1:
            return (f"{_base(args[0])}.T" if row.operator == ".T" else f"{row.operator}{args[0].within(own)}"), own
        if own == POWER:
            return f"{args[0].within(CALL)} {row.operator} {args[1].within(MINUS)}", own
        if own < ADD:
            return f"{args[0].within(ADD)}{row.operator}{args[1].within(ADD)}", own
        return f"{args[0].within(own)} {row.operator} {args[1].within(own + 1)}", own


def _base(node: Node) -> str:
    """Text that stands before `.T` or `[`: a number in brackets, for its point would join."""
    return f"({node.text})" if isinstance(node, Number) else node.within(CALL)


@dataclass(frozen=True, eq=False)
class Stack(Node):
    """[a, b, c]"""

    items: tuple[Node, ...]

    @cached_property
    def expr(self) -> Expr:
        return build.array(tuple(i.expr for i in self.items))

    @property
    def children(self) -> tuple[Node, ...]:
        return self.items

    def over(self, children: tuple[Node, ...]) -> Node:
        return replace(self, items=children)

    @property
    def written(self) -> tuple[str, int]:
        return f"[{', '.join(i.text for i in self.items)}]", CALL


@dataclass(frozen=True)
class Part:
    """start:stop in an index."""

    start: int | None
    stop: int | None

    @property
    def text(self) -> str:
        return f"{'' if self.start is None else self.start}:{'' if self.stop is None else self.stop}"


@dataclass(frozen=True, eq=False)
class At(Node):
    """base[items]"""

    base: Node
    items: tuple[Node | Part, ...]

    @cached_property
    def expr(self) -> Expr:
        ends = lambda p: [None if e is None else constant(e) for e in (p.start, p.stop)]  # noqa: E731
        items = tuple(Slice(*ends(i)) if isinstance(i, Part) else i.expr for i in self.items)
        return build.index(self.base.expr, items)

    @property
    def children(self) -> tuple[Node, ...]:
        return self.base, *(i for i in self.items if isinstance(i, Node))

    def over(self, children: tuple[Node, ...]) -> Node:
        rest = iter(children[1:])
        return replace(
            self, base=children[0], items=tuple(i if isinstance(i, Part) else next(rest) for i in self.items)
        )

    @property
    def written(self) -> tuple[str, int]:
        return f"{_base(self.base)}[{', '.join(i.text for i in self.items)}]", CALL


def walk(node: Node) -> Iterator[Node]:
    """The node and all under it."""
    yield node
    for child in node.children:
        yield from walk(child)


def rebuilt(node: Node, f: Callable[[Node], Node]) -> Node:
    """Bottom-up: `f` gets each node over its rebuilt children."""
    children = tuple(rebuilt(c, f) for c in node.children)
    same = all(a is b for a, b in zip(children, node.children))
    return f(node if same else node.over(children))
