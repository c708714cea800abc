"""Models as typed values: what the generator makes, the evaluator reads, the shrinker cuts down, and text is printed from.

Expressions know the typed expression of the language that they print as (`Node.expr`), for its shape and for the tables of atoms.
Values come from `meaning.py`, which knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
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


# Statements. Fields that hold nodes, alone or in tuples, are found by `parts`, so that a new statement takes part in everything.


@dataclass(frozen=True, eq=False)
class Comparison:
    left: Node
    relation: str
    right: Node

    @property
    def text(self) -> str:
        return f"{self.left.text} {self.relation} {self.right.text}"


@dataclass(frozen=True, eq=False)
class Set:
    """A domain: its arguments, by name where `keyword`, and what narrows it."""

    kind: str
    args: Mapping[str, Node]
    keyword: bool = False
    cuts: tuple[Comparison, ...] = ()

    @property
    def text(self) -> str:
        args = ", ".join(f"{name} = {a.text}" if self.keyword else a.text for name, a in self.args.items())
        cuts = f" with {', '.join(c.text for c in self.cuts)}" if self.cuts else ""
        return f"{self.kind}({args}){cuts}" if self.args else f"{self.kind}{cuts}"


@dataclass(frozen=True, eq=False)
class Distribution:
    kind: str
    args: tuple[Node, ...]
    options: Mapping[str, Node] = field(default_factory=dict)

    @property
    def text(self) -> str:
        args = [*(a.text for a in self.args), *(f"{k} = {v.text}" for k, v in self.options.items())]
        return f"{self.kind}({', '.join(args)})"


class Statement:
    """A line of a model."""

    @property
    def text(self) -> str:
        raise NotImplementedError

    @property
    def word(self) -> str:
        """The word of the language that begins it."""
        return type(self).__name__.lower()


class Declaration(Statement):
    """A statement that declares a name of a shape."""

    name: str
    dims: tuple[Node, ...]
    integer: bool

    @property
    def shape(self) -> Shape:
        return self.of

    of: Shape

    @property
    def declared(self) -> str:
        return f"{self.name}[{', '.join(d.text for d in self.dims)}]" if self.dims else self.name

    def ref(self) -> Ref:
        return Ref(self.name, Kind(self.word), self.of, self.integer)


@dataclass(frozen=True, eq=False)
class Horizon(Statement):
    rounds: int | None

    @property
    def text(self) -> str:
        return "horizon T unknown" if self.rounds is None else f"horizon T = {self.rounds}"


@dataclass(frozen=True, eq=False)
class Param(Declaration):
    """`given` is the value of a param that the file leaves open."""

    name: str
    dims: tuple[Node, ...]
    of: Shape
    value: Node | None
    bounds: tuple[Node, Node] | None = None
    integer: bool = False
    given: Array | None = None

    @property
    def text(self) -> str:
        joined = "{}..{}" if self.integer else "[{}, {}]"
        bounds = "" if self.bounds is None else " in " + joined.format(*(b.text for b in self.bounds))
        return f"param {self.declared}{bounds}{'' if self.value is None else f' = {self.value.text}'}"


@dataclass(frozen=True, eq=False)
class Decision(Declaration):
    name: str
    dims: tuple[Node, ...]
    of: Shape
    set: Set
    integer: bool = False

    @property
    def text(self) -> str:
        return f"decision {self.declared} in {self.set.text}"


@dataclass(frozen=True, eq=False)
class Stream(Declaration):
    """`integer`: bounds are written lo..hi. `values`: all that an entry may be, in place of bounds. `known`: a context."""

    name: str
    dims: tuple[Node, ...]
    of: Shape
    bounds: tuple[Node, Node] | None
    integer: bool = False
    iid: bool = False
    mean: Node | None = None
    distribution: Distribution | None = None
    values: tuple[float | int, ...] = ()
    known: bool = False

    @property
    def text(self) -> str:
        joined = "{}..{}" if self.integer else "[{}, {}]"
        clauses = [] if self.distribution is None else [f"~ {self.distribution.text}"]
        clauses += [] if self.bounds is None else ["in " + joined.format(*(b.text for b in self.bounds))]
        clauses += [f"in {{{', '.join(map(number_text, self.values))}}}"] if self.values else []
        clauses += ["iid" + (f" mean = {self.mean.text}" if self.mean is not None else "")] if self.iid else []
        return " ".join([f"{'context' if self.known else 'stream'} {self.declared}", *clauses])


@dataclass(frozen=True, eq=False)
class Let(Statement):
    name: str
    value: Node

    @property
    def text(self) -> str:
        return f"let {self.name} = {self.value.text}"

    def ref(self) -> Ref:
        return Ref(self.name, Kind.LET, self.value.shape, bool(self.value.expr.integer))


@dataclass(frozen=True, eq=False)
class Minimize(Statement):
    value: Node

    @property
    def text(self) -> str:
        return f"minimize {self.value.text}"


@dataclass(frozen=True, eq=False)
class Constraint(Statement):
    label: str
    comparison: Comparison
    timing: str = ""

    word = "subject"

    @property
    def text(self) -> str:
        return f"    {self.label}: {self.comparison.text}{f'  {self.timing}' if self.timing else ''}"


@dataclass(frozen=True, eq=False)
class Measure(Statement):
    kind: str

    @property
    def text(self) -> str:
        return f"measure {self.kind} regret"


@dataclass(frozen=True, eq=False)
class Feedback(Statement):
    kind: str

    @property
    def text(self) -> str:
        return f"feedback {self.kind}"


@dataclass(frozen=True, eq=False)
class Assume(Statement):
    """A bound, or with no value a fact that holds."""

    key: str
    relation: str = ""
    value: Node | None = None

    @property
    def text(self) -> str:
        return f"assume {self.key}" + ("" if self.value is None else f" {self.relation} {self.value.text}")


@dataclass(frozen=True, eq=False)
class Using(Statement):
    algorithm: str
    settings: Mapping[str, str]

    @property
    def text(self) -> str:
        given = ", ".join(f"{k} = {v}" for k, v in self.settings.items())
        return " ".join(["using", *([self.algorithm] if self.algorithm else []), *([f"with {given}"] if given else [])])


@dataclass(frozen=True, eq=False)
class Tree:
    """A whole model: statements in the order of the text."""

    statements: tuple[Statement, ...]
    name: str = "m"

    def of(self, kind: type[Any]) -> list[Any]:
        return [s for s in self.statements if isinstance(s, kind)]

    def first(self, kind: type[Any]) -> Any:
        return next(iter(self.of(kind)), None)

    def and_(self, *statements: Statement) -> Tree:
        return replace(self, statements=(*self.statements, *statements))

    @property
    def text(self) -> str:
        lines, subject = [f"model {self.name}"], False
        for s in self.statements:
            if s.word == "subject" and not subject:
                lines.append("subject to")
            subject = s.word == "subject"
            lines.append(s.text)
        return "\n".join(lines) + "\n"

    @property
    def given(self) -> dict[str, Array]:
        """Values of the params that the text leaves open."""
        return {p.name: p.given for p in self.of(Param) if p.given is not None}

    @property
    def horizon(self) -> int | None:
        return next((s.rounds for s in self.of(Horizon)), None)


def nodes_of(thing: Any) -> Iterator[Node]:
    """The outermost nodes in a statement, or in a part of one."""
    if isinstance(thing, Node):
        yield thing
    elif isinstance(thing, tuple):
        for item in thing:
            yield from nodes_of(item)
    elif isinstance(thing, Mapping):
        yield from nodes_of(tuple(thing.values()))
    elif hasattr(thing, "__dataclass_fields__"):
        for f in fields(thing):
            yield from nodes_of(getattr(thing, f.name))


def mapped(thing: Any, f: Callable[[Node], Node]) -> Any:
    """A statement, or a part of one, with `f` of its outermost nodes in their places."""
    if isinstance(thing, Node):
        return f(thing)
    if isinstance(thing, tuple):
        return tuple(mapped(item, f) for item in thing)
    if isinstance(thing, Mapping):
        return {k: mapped(v, f) for k, v in thing.items()}
    if hasattr(thing, "__dataclass_fields__"):
        found = {g.name: mapped(getattr(thing, g.name), f) for g in fields(thing)}
        same = all(found[g.name] is getattr(thing, g.name) for g in fields(thing))
        return thing if same else replace(thing, **found)
    return thing


def names_in(thing: Any) -> set[str]:
    """The names that a statement, a node or a part uses."""
    return {n.name for top in nodes_of(thing) for n in walk(top) if isinstance(n, Ref)}
