"""The syntax tree: statements as they stand in the file, names not yet looked up. Made by `parser.py`, read by `resolver.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from oco.dsl.atoms import ATOMS, forms
from oco.dsl.source import Source, Span


@dataclass(frozen=True)
class Node:
    span: Span = field(kw_only=True, compare=False, repr=False)


# Expressions. Operators are calls of the atom of that name: `a - b` is Call("sub", (a, b)), `X.T` is Call("transpose", (X,)).


@dataclass(frozen=True)
class Number(Node):
    value: float | int


@dataclass(frozen=True)
class Text(Node):
    """A quoted string; only `file("...")` takes one."""

    value: str


@dataclass(frozen=True)
class Identifier(Node):
    name: str


@dataclass(frozen=True)
class Call(Node):
    """`name(args, key = value)`; `operator` is how it was written when it was not a call (`-`, `@`, `.T`, `..`), else ""."""

    name: str
    args: tuple[Expression, ...]
    options: tuple[tuple[str, Expression], ...] = ()
    operator: str = ""


@dataclass(frozen=True)
class Slice(Node):
    start: Expression | None
    stop: Expression | None


@dataclass(frozen=True)
class Subscript(Node):
    base: Expression
    items: tuple[Expression | Slice, ...]


@dataclass(frozen=True)
class ArrayLiteral(Node):
    items: tuple[Expression, ...]


Expression = Number | Text | Identifier | Call | Subscript | ArrayLiteral


def sum_of(node: Call) -> tuple[Expression, list[Call]]:
    """The first term of a chain of + and -, and its operators from the left, whose second arguments are the other terms."""
    links: list[Call] = []
    first: Expression = node
    while isinstance(first, Call) and first.operator and ATOMS[first.name].form in (forms.SUM, forms.DIFFERENCE):
        links.append(first)
        first = first.args[0]
    return first, links[::-1]


def walk(root: Expression) -> Iterator[Expression]:
    """An expression and all parts of it that are expressions, from the left."""
    stack: list[Expression] = [root]
    while stack:
        node = stack.pop()
        yield node
        match node:
            case Call(args=args, options=options):
                stack += [*(value for _, value in reversed(options)), *reversed(args)]
            case ArrayLiteral(items=items):
                stack += reversed(items)
            case Subscript(base=base, items=places):
                ends = [
                    e for i in places for e in ((i.start, i.stop) if isinstance(i, Slice) else (i,)) if e is not None
                ]
                stack += [*reversed(ends), base]


# Statements.


@dataclass(frozen=True)
class ModelStatement(Node):
    name: Identifier


@dataclass(frozen=True)
class HorizonStatement(Node):
    """`horizon T = rounds`, or `horizon T unknown` (rounds None)."""

    rounds: Expression | None


@dataclass(frozen=True)
class ParamStatement(Node):
    name: Identifier
    dims: tuple[Expression, ...]
    bounds: tuple[Expression, Expression] | None
    integer: bool
    value: Expression | None


@dataclass(frozen=True)
class CutClause(Node):
    """`left relation right` after `with`: what narrows a domain."""

    left: Expression
    relation: str
    right: Expression


@dataclass(frozen=True)
class DecisionStatement(Node):
    """`decision x[shape] in kind(args) with cuts`; `domain` is a Call (no arguments for a bare `simplex`)."""

    name: Identifier
    dims: tuple[Expression, ...]
    domain: Call
    cuts: tuple[CutClause, ...] = ()


@dataclass(frozen=True)
class StreamStatement(Node):
    """`integer` tells `in 0..k-1` from `in [lo, hi]`; `distribution` is a Call."""

    name: Identifier
    dims: tuple[Expression, ...]
    bounds: tuple[Expression, Expression] | None
    integer: bool
    iid: bool
    mean: Expression | None
    distribution: Call | None


@dataclass(frozen=True)
class LetStatement(Node):
    name: Identifier
    value: Expression


@dataclass(frozen=True)
class MinimizeStatement(Node):
    objective: Expression


@dataclass(frozen=True)
class ConstraintStatement(Node):
    """One labelled line under `subject to`; `timing` is "each round", "on average" or "" when not said."""

    label: Identifier
    left: Expression
    relation: str
    right: Expression
    timing: str


@dataclass(frozen=True)
class SubjectToStatement(Node):
    """The words `subject to`; the constraints that follow are statements of their own."""


@dataclass(frozen=True)
class MeasureStatement(Node):
    measure: str


@dataclass(frozen=True)
class FeedbackStatement(Node):
    feedback: str


@dataclass(frozen=True)
class AssumeStatement(Node):
    """`key` is dotted: `constraints.service.lipschitz.l2`."""

    key: str
    relation: str
    value: Expression


@dataclass(frozen=True)
class UsingStatement(Node):
    """`using coldq with epsilon = 0.5`; settings keep the text of their formulas."""

    algorithm: str | None
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class UnreadableStatement(Node):
    """A statement with a mistake that has been reported: `word` begins it ("constraint" for a labelled line, "" when that is not
    known), `name` is what it would have declared. It stands here so that nobody reports what follows from the mistake."""

    word: str
    name: Identifier | None


Statement = (
    ModelStatement
    | HorizonStatement
    | ParamStatement
    | DecisionStatement
    | StreamStatement
    | LetStatement
    | MinimizeStatement
    | SubjectToStatement
    | ConstraintStatement
    | MeasureStatement
    | FeedbackStatement
    | AssumeStatement
    | UsingStatement
    | UnreadableStatement
)


@dataclass(frozen=True)
class File:
    """A whole file: the statements that could be read, in order."""

    source: Source
    statements: tuple[Statement, ...]
