"""Previous decisions in expressions: over streams of their own, or as the decision itself where none moves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from oco.compiler.problem.parts import DecisionBlock
from oco.compiler.problem.sublevel import has_nearest_point
from oco.dsl.diagnostics import fail
from oco.dsl.expressions import Expr, Kind, Name, changes, names, rewrite, walk
from oco.dsl.model import Model
from oco.dsl.previous import WORD, decision_of


def stream_of(decision: str, exprs: Iterable[Expr], taken: Collection[str]) -> Iterator[tuple[str, str]]:
    """Name `prev(x)` of a decision and that of its stream, which is none of those taken, where expressions use it."""
    name, own = f"{WORD}({decision})", f"{WORD}_{decision}"
    while own in taken:
        own += "_"
    if any(name in names(e, Kind.STREAM) for e in exprs):
        yield name, own


def is_known(model: Model, expr: Expr, before: Collection[str], blocks: Sequence[DecisionBlock]) -> bool:
    """True for an expression that changes with the rounds, over contexts or streams of `before`, and that has a nearest point."""
    known, used = {s.name for s in model.streams if s.known} | set(before), set(names(expr, Kind.STREAM))
    return changes(expr) and used <= known and has_nearest_point(expr, blocks)


def of_previous(expr: Expr, streams: Mapping[str, str]) -> Expr:
    """Expression with each `prev(x)` as its stream."""

    def renamed(node: Expr) -> Expr:
        if isinstance(node, Name) and node.name in streams:
            return Name(streams[node.name], Kind.STREAM, shape=node.shape, span=node.span)
        return node

    return rewrite(expr, renamed)


def standing_still(expr: Expr) -> Expr:
    """Expression with each `prev(x)` as x."""

    def still(node: Expr) -> Expr:
        if isinstance(node, Name) and (x := decision_of(node.name)):
            return Name(x, Kind.DECISION, shape=node.shape, span=node.span)
        return node

    return rewrite(expr, still)


def refuse_previous(expr: Expr) -> None:
    """Raise OCO217 where an expression holds a previous decision."""
    for node in walk(expr):
        if isinstance(node, Name) and decision_of(node.name):
            message = f"`{node.name}` stands outside the constraints that the decision of each round meets exactly"
            raise fail("OCO217", message, node.span)
