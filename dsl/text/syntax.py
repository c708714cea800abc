"""Syntax tree: statements as written, names not yet looked up. Made by `parser.py`, read by `resolver.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, fields
from typing import Any

from oco.dsl.atoms import ATOMS, forms
from oco.dsl.records import dataclass
from oco.dsl.source import Source, Span


@dataclass(frozen=True)
class Node:
    """Node with its span."""

    span: Span = field(kw_only=True, compare=False, repr=False)


# Expressions. Operators are calls of the atom of that name: `a - b` is Call("sub", (a, b)), `X.T` is Call("transpose", (X,)).


@dataclass(frozen=True)
class Number(Node):
    """Number as written."""

    value: float | int


@dataclass(frozen=True)
class QuotedString(Node):
    """Quoted string; only `file("...")` takes one."""

    value: str


@dataclass(frozen=True)
class Identifier(Node):
    """Name as written."""

    name: str


@dataclass(frozen=True)
class Call(Node):
    """Call `name(args, key = value)`; `operator` is its written form where it was not a call (`-`, `@`, `.T`, `..`),
    else "".
    """

    name: str
    args: tuple[Expression, ...]
    options: tuple[tuple[str, Expression], ...] = ()
    operator: str = ""


@dataclass(frozen=True)
class Slice(Node):
    """Slice `start:stop` in an index."""

    start: Expression | None
    stop: Expression | None


@dataclass(frozen=True)
class GroupItem(Node):
    """Choice of the entries of a group in an index, `plant in at[z]`, in a family of constraints."""

    variable: Identifier
    group: Expression


@dataclass(frozen=True)
class Subscript(Node):
    """Index `base[items]`."""

    base: Expression
    items: tuple[Item, ...]


@dataclass(frozen=True)
class ArrayLiteral(Node):
    """Array `[a, b, c]`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class ValueSet(Node):
    """Set of values `{-1, 1}`, which stands after `in` of a stream."""

    items: tuple[Expression, ...]


Expression = Number | QuotedString | Identifier | Call | Subscript | ArrayLiteral | ValueSet
Item = Expression | Slice | GroupItem


def sum_of(node: Call) -> tuple[Expression, list[Call]]:
    """First term of a chain of + and -, and its operators from the left, whose second arguments are the other terms."""
    links: list[Call] = []
    first: Expression = node
    while isinstance(first, Call) and first.operator and ATOMS[first.name].form in (forms.SUM, forms.DIFFERENCE):
        links.append(first)
        first = first.args[0]
    return first, links[::-1]


def walk(root: Expression) -> Iterator[Expression]:
    """Expression and all its subexpressions, from the left."""
    stack: list[Expression] = [root]
    while stack:
        node = stack.pop()
        yield node
        match node:
            case Call(args=args, options=options):
                stack += [*(value for _, value in reversed(options)), *reversed(args)]
            case ArrayLiteral(items=items) | ValueSet(items=items):
                stack += reversed(items)
            case Subscript(base=base, items=places):
                stack += [*reversed([e for i in places for e in _parts_of(i) if e is not None]), base]


def _parts_of(item: Item) -> tuple[Expression | None, ...]:
    match item:
        case Slice(start=start, stop=stop):
            return start, stop
        case GroupItem(group=group):
            return (group,)
    return (item,)


# Statements.


@dataclass(frozen=True)
class ModelStatement(Node):
    """Statement `model name`."""

    name: Identifier


@dataclass(frozen=True)
class HorizonStatement(Node):
    """Statement `horizon T = rounds`, or `horizon T unknown` (rounds None)."""

    rounds: Expression | None


@dataclass(frozen=True)
class IndexStatement(Node):
    """Statement `index name = [a, b]` or `index name = file(...)`; `names` are those in the text, None where there are none."""

    name: Identifier
    names: tuple[str, ...] | None = None
    file: Call | None = None
    dims: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class ParamStatement(Node):
    """Statement `param name[dims] in bounds = value`; `integer` distinguishes `in a..b` from `in [lo, hi]`."""

    name: Identifier
    dims: tuple[Expression, ...]
    bounds: tuple[Expression, Expression] | None
    integer: bool
    value: Expression | None


@dataclass(frozen=True)
class CutClause(Node):
    """Clause `left relation right` after `with`, which narrows a domain."""

    left: Expression
    relation: str
    right: Expression


@dataclass(frozen=True)
class DecisionStatement(Node):
    """Statement `decision x[shape] in kind(args) with cuts`; `domain` is a Call (no arguments for a bare `simplex`)."""

    name: Identifier
    dims: tuple[Expression, ...]
    domain: Call
    cuts: tuple[CutClause, ...] = ()
    rounded: bool = False


@dataclass(frozen=True)
class StreamStatement(Node):
    """Statement `stream`; `integer` distinguishes `in 0..k-1` from `in [lo, hi]`; `distribution` is a Call;
    `values` are those of a set, ascending; `known` is True for the statement `context`.
    """

    name: Identifier
    dims: tuple[Expression, ...]
    bounds: tuple[Expression, Expression] | None
    integer: bool
    iid: bool
    mean: Expression | None
    distribution: Call | None
    values: tuple[float, ...] = ()
    known: bool = False


@dataclass(frozen=True)
class StateStatement(Node):
    """Statement `state name[dims] = following in bounds start first`."""

    name: Identifier
    dims: tuple[Expression, ...]
    following: Expression
    bounds: tuple[Expression, Expression]
    first: Expression


@dataclass(frozen=True)
class PredictStatement(Node):
    """Statement `predict name = value`."""

    name: Identifier
    value: Expression


@dataclass(frozen=True)
class LetStatement(Node):
    """Statement `let name = value`."""

    name: Identifier
    value: Expression


@dataclass(frozen=True)
class MinimizeStatement(Node):
    """Statement `minimize objective`, or `maximize objective`."""

    objective: Expression
    maximized: bool = False


@dataclass(frozen=True)
class ConstraintStatement(Node):
    """Labelled line under `subject to`; `timing` is that of the model, or "" when omitted, as `penalty` may be. Of a
    family over an index, `cap[z in zone]`, `family` has the variable and the index.
    """

    label: Identifier
    left: Expression
    relation: str
    right: Expression
    timing: str
    penalty: Expression | None = None
    percent: float | None = None
    family: tuple[Identifier, Identifier] | None = None


@dataclass(frozen=True)
class SubjectToStatement(Node):
    """Words `subject to`; the constraints that follow are statements of their own."""


@dataclass(frozen=True)
class MeasureStatement(Node):
    """Statement `measure static regret` or `measure dynamic regret`."""

    measure: str


@dataclass(frozen=True)
class FeedbackStatement(Node):
    """Statement `feedback` with `full`, `gradient`, `two_point` or `bandit`, perhaps `delayed` by a number of rounds."""

    feedback: str
    delay: Expression | None = None


@dataclass(frozen=True)
class AssumeStatement(Node):
    """Statement `assume`; `key` is dotted: `constraints.service.lipschitz.l2`. Without a bound both others are None."""

    key: str
    relation: str | None
    value: Expression | None


@dataclass(frozen=True)
class UsingStatement(Node):
    """Statement `using coldq with epsilon = 0.5`; settings keep the text of their formulas."""

    algorithm: str | None
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class UnreadableStatement(Node):
    """Statement with a mistake that has been reported.

    `word` begins it ("constraint" for a labelled line, "" when that is not known), `name` is the name that it would
    have declared. It is kept so that consequences of the mistake are not reported.
    """

    word: str
    name: Identifier | None


Statement = (
    ModelStatement
    | HorizonStatement
    | IndexStatement
    | ParamStatement
    | DecisionStatement
    | StreamStatement
    | StateStatement
    | PredictStatement
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
class SourceFile:
    """Complete file: the statements that could be read, in order."""

    source: Source
    statements: tuple[Statement, ...]


def identifiers(root: Node) -> Iterator[Identifier]:
    """Names within a node of the tree, each where it stands, in no order."""
    stack: list[Any] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Identifier):
            yield node
        elif isinstance(node, Node):
            stack += [getattr(node, part.name) for part in fields(node) if part.name != "span"]
        elif isinstance(node, tuple):
            stack += node
