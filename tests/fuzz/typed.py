"""Models as typed values: what the generator makes, the evaluator reads, the shrinker cuts down, and text is printed from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from fuzz.nodes import Apply, Array, Node, Ref, Shape, number_text, walk

from oco.dsl.expressions import Kind

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
class Index(Declaration):
    """Names of the entries of an axis; as a number it is how many there are."""

    name: str
    labels: tuple[str, ...]
    dims: tuple[Node, ...] = ()
    of: Shape = ()
    integer: bool = True

    @property
    def text(self) -> str:
        return f"index {self.name} = [{', '.join(self.labels)}]"

    def ref(self) -> Ref:
        return Ref(self.name, Kind.PARAM, (), True)


@dataclass(frozen=True, eq=False)
class State(Declaration):
    """Value that a round leaves to the next: `following`, cut to the bounds; in round 1 `first`."""

    name: str
    dims: tuple[Node, ...]
    of: Shape
    following: Node
    bounds: tuple[Node, Node]
    first: Node
    integer: bool = False

    @property
    def text(self) -> str:
        low, high = (b.text for b in self.bounds)
        return f"state {self.declared} = {self.following.text} in [{low}, {high}] start {self.first.text}"

    def ref(self) -> Ref:
        return Ref(self.name, Kind.STREAM, self.of)


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
    """The loss; `maximized` where it is written as a gain, its negative."""

    value: Node
    maximized: bool = False

    @property
    def text(self) -> str:
        return f"maximize {Apply('minus', (self.value,)).text}" if self.maximized else f"minimize {self.value.text}"


@dataclass(frozen=True, eq=False)
class Predict(Statement):
    """Prediction of a stream by a name like `last(c)`."""

    stream: Ref
    value: Node

    @property
    def text(self) -> str:
        return f"predict {self.stream.name} = {self.value.text}"


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
    delay: int | None = None

    @property
    def text(self) -> str:
        return f"feedback {self.kind}" + ("" if self.delay is None else f" delayed {self.delay}")


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
