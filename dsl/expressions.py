"""Expressions of the language, with their shapes: the one tree that every later stage reads.

Nodes are immutable and compare by structure; spans do not count. Trees may share nodes (a `let` is one node however
often it is used), so walks over them identify visited nodes by identity: see `walk` and `rewrite`. So do `==` and `hash`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from oco.dsl.dims import Shape
from oco.dsl.records import dataclass
from oco.dsl.source import Span


class Kind(StrEnum):
    """Kind of a name."""

    PARAM = "param"
    DECISION = "decision"
    STREAM = "stream"
    LET = "let"
    ROUND = "round"
    HORIZON = "horizon"


@dataclass(frozen=True, eq=False)
class FrozenArray:
    """Read-only array that compares by its entries."""

    array: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        array = self.array
        if array.size > 1 and not any(array.strides):  # one number for all entries is kept as one number
            object.__setattr__(self, "array", np.broadcast_to(array.flat[0], array.shape))
            return
        array = np.array(array, order="C")
        array.setflags(write=False)
        object.__setattr__(self, "array", array)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FrozenArray):
            return NotImplemented
        a, b = self.array, other.array
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()

    def __hash__(self) -> int:
        return hash((self.array.shape, str(self.array.dtype), self.array.tobytes()))


@dataclass(frozen=True, eq=False, repr=False)
class Expr:
    """Node: its shape, a flag for integer entries, and its place in the text."""

    shape: Shape = field(kw_only=True, default=())
    integer: bool = field(kw_only=True, default=False)
    span: Span | None = field(kw_only=True, default=None, compare=False, repr=False)

    @property
    def children(self) -> tuple[Expr, ...]:
        """Subexpressions in order."""
        return ()

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        """Copy of the node over other children."""
        return self

    def __eq__(self, other: object) -> bool:
        """True for equal structures, whatever their spans and whichever nodes are shared; in time linear in the nodes."""
        if self is other:
            return True
        if not isinstance(other, Expr):
            return NotImplemented
        return hash(self) == hash(other) and equal_structure(self, other)

    def __hash__(self) -> int:
        return self._hash

    def __getstate__(self) -> dict[str, Any]:
        """Fields alone: hashes of texts differ from process to process."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def _hash(self) -> int:
        """Hash of the structure, kept in every node, so that a shared one is hashed once; without recursion."""
        if not all("_hash" in vars(child) for child in self.children):
            for node in walk(self):
                if node is not self:
                    hash(node)
        return hash((self._own, *(child._hash for child in self.children)))

    @property
    def _own(self) -> tuple[Any, ...]:
        """Class, and the fields that compare, with only the class or the number of subexpressions in their places."""
        values = (getattr(self, each.name) for each in fields(self) if each.compare)
        return (type(self), *(_without_nodes(value) for value in values))

    def __repr__(self) -> str:
        """Classes and fields; a shared node once, as Lisp prints one: `#1=...` where it first stands, `#1#` thereafter."""
        uses = Counter(id(child) for node in walk(self) for child in node.children)
        labels: dict[int, int] = {}
        texts: list[str] = []
        rest: list[str | Expr] = [self]
        while rest:
            part = rest.pop()
            if isinstance(part, str):
                texts.append(part)
                continue
            if part.children and uses[id(part)] > 1:
                if id(part) in labels:
                    texts.append(f"#{labels[id(part)]}#")
                    continue
                labels[id(part)] = len(labels) + 1
                texts.append(f"#{labels[id(part)]}=")
            rest.extend(reversed(part._written()))
        return "".join(texts)

    def _written(self) -> list[str | Expr]:
        """Texts and expressions that make up what is printed of the node."""
        parts: list[str | Expr] = []
        for name in (each.name for each in fields(self) if each.repr):
            value = getattr(self, name)
            parts.append(f"{', ' if parts else ''}{name}=")
            if isinstance(value, tuple) and any(isinstance(item, Expr) for item in value):
                inner = [piece for item in value for piece in (", ", item)][1:]
                parts += ["(", *inner, ",)" if len(value) == 1 else ")"]
            else:
                parts.append(value if isinstance(value, Expr) else repr(value))
        return [f"{type(self).__name__}(", *parts, ")"]

    @cached_property
    def below(self) -> tuple[Expr, ...]:
        """Every other node of it once, children before parents; kept, for expressions that are evaluated again and again."""
        return tuple(walk(self))[:-1]

    @cached_property
    def _within(self) -> tuple[tuple[Name, ...], Counter[str], int]:
        """Names used, in order of first use; number of nodes of each atom, "" for all other nodes; entries of calls."""
        results: dict[tuple[str, Kind], Name] = {}
        count: Counter[str] = Counter()
        numbers = 0
        for node in walk(self):
            count[node.atom if isinstance(node, Call) else ""] += 1
            if isinstance(node, Name):
                results.setdefault((node.name, node.kind), node)
            elif isinstance(node, Call):
                numbers += math.prod(n for n in node.shape if isinstance(n, int))
        return tuple(results.values()), count, numbers


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Expr):
    """Number or array of numbers (int64 or float64)."""

    value: FrozenArray


@dataclass(frozen=True, eq=False, repr=False)
class Name(Expr):
    """Param, decision, stream or let by its name, the round `t`, or the horizon `T`."""

    name: str
    kind: Kind


@dataclass(frozen=True, eq=False, repr=False)
class Call(Expr):
    """Atom (`atoms.ATOMS[atom]`, operators among them) applied to arguments. Options are fixed numbers such as `axis`."""

    atom: str
    args: tuple[Expr, ...]
    options: tuple[tuple[str, int | float], ...] = ()

    def option(self, name: str) -> int | float | None:
        """Value of an option; None where it was not given."""
        return dict(self.options).get(name)

    @property
    def children(self) -> tuple[Expr, ...]:
        """Arguments."""
        return self.args

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        return replace(self, args=children)


@dataclass(frozen=True, eq=False, repr=False)
class Slice(Expr):
    """Slice `start:stop` in an index; None is the end of the axis. Half-open, step one."""

    start: Expr | None = None
    stop: Expr | None = None

    @property
    def children(self) -> tuple[Expr, ...]:
        """Ends that are given."""
        return tuple(e for e in (self.start, self.stop) if e is not None)

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        rest = iter(children)
        return replace(
            self,
            start=next(rest) if self.start is not None else None,
            stop=next(rest) if self.stop is not None else None,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Index(Expr):
    """Index `base[items]`: numbers, slices, and arrays of integers, which pair as in NumPy."""

    base: Expr
    items: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        """Base, then the items."""
        return (self.base, *self.items)

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        return replace(self, base=children[0], items=children[1:])


@dataclass(frozen=True, eq=False, repr=False)
class Array(Expr):
    """Array `[a, b, c]` where some entry is not a plain number (those are a `Constant`)."""

    items: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        """Entries along the first axis."""
        return self.items

    def with_children(self, children: tuple[Expr, ...]) -> Expr:
        return replace(self, items=children)


@dataclass(frozen=True, eq=False, repr=False)
class File(Expr):
    """Reference `file("x.csv")` to data beside the model file. Allowed only as the value of a param or an index; `column` names one
    column of it.
    """

    path: str
    column: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class EntryNames(Expr):
    """Names of entries of an index, `[NYC, WEST]`, as the value of a param of their numbers. Allowed nowhere else."""

    names: tuple[str, ...]


def constant(value: float | int | np.ndarray[Any, Any], span: Span | None = None) -> Constant:
    """Constant: integers stay int64, everything else is float64."""
    array = np.asarray(value)
    array = array.astype(np.int64 if array.dtype.kind in "iub" else np.float64)
    return Constant(FrozenArray(array), shape=tuple(array.shape), integer=array.dtype.kind == "i", span=span)


def uniform(value: float, shape: tuple[int, ...], span: Span | None = None) -> Constant:
    """Constant of this shape with equal entries, stored as one number."""
    return Constant(FrozenArray(np.broadcast_to(np.float64(value), shape)), shape=shape, span=span)


def walk(root: Expr, known: Container[int] = ()) -> Iterator[Expr]:
    """Iterate over every node once, children before parents. Shared nodes are visited once; depth is not limited by
    Python's stack.

    known  ids of nodes to leave out, with nodes that are reachable only through them
    """
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen and id(node) not in known:
            seen.add(id(node))
            children = node.children
            if not children:
                yield node
                continue
            stack.append((node, True))
            for child in reversed(children):
                stack.append((child, False))


def equal_structure(first: Expr, second: Expr) -> bool:
    """True where two expressions have the same structure: their nodes are numbered, equal ones alike, children before parents."""
    numbers: dict[tuple[Any, ...], int] = {}
    of_node: dict[int, int] = {}
    for root in (first, second):
        for node in walk(root, of_node):
            key = (node._own, *(of_node[id(child)] for child in node.children))
            of_node[id(node)] = numbers.setdefault(key, len(numbers))
    return of_node[id(first)] == of_node[id(second)]


def _without_nodes(value: Any) -> Any:
    """Value of a field, or the class of a node in it, or the number of nodes."""
    if isinstance(value, Expr):
        return Expr
    return len(value) if isinstance(value, tuple) and value and isinstance(value[0], Expr) else value


def rewrite(root: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """Rebuild bottom-up: `f` gets each node over its rewritten children. Sharing is kept."""
    return rewrite_all((root,), f)[0]


def rewrite_all(roots: Sequence[Expr], f: Callable[[Expr], Expr]) -> tuple[Expr, ...]:
    """Rebuild expressions as `rewrite` does one; nodes that they share are shared afterwards."""
    done: dict[int, Expr] = {}
    for root in roots:
        for node in walk(root, done):
            children = tuple(done[id(c)] for c in node.children)
            same = all(a is b for a, b in zip(children, node.children))
            done[id(node)] = f(node if same else node.with_children(children))
    return tuple(done[id(root)] for root in roots)


def names(root: Expr, kind: Kind | None = None) -> list[str]:
    """Names used, in order of first use, of one kind or of all."""
    return list(dict.fromkeys(n.name for n in root._within[0] if kind is None or n.kind is kind))


def changes(root: Expr) -> bool:
    """True where a value may change from round to round: a stream occurs, or the round."""
    return any(n.kind in (Kind.STREAM, Kind.ROUND) for n in root._within[0])


def parts(root: Expr) -> Mapping[str, int]:
    """Number of nodes of each atom, shared ones counted once; "" is for all nodes that are not calls."""
    return root._within[1]


def entries(root: Expr) -> int:
    """Total number of entries of the calls, shared ones counted once; lengths that a param names are left out."""
    return root._within[2]


def written_out(node: Expr, lets: Mapping[str, Expr]) -> Expr:
    """Value of an abbreviation in its place, its own abbreviations written out; any other node as it is."""
    if isinstance(node, Name) and node.kind is Kind.LET and node.name in lets:
        return rewrite(lets[node.name], lambda e: written_out(e, lets))
    return node
