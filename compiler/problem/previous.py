"""Previous decisions in expressions: over streams of their own, or as the decision itself where none moves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from oco.compiler.problem.parts import DecisionBlock
from oco.compiler.problem.stream_ranges import StreamRange
from oco.compiler.problem.sublevel import has_nearest_point
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms
from oco.dsl.diagnostics import fail
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Call, Constant, Expr, Kind, Name, changes, constant, names, rewrite, walk
from oco.dsl.model import Model
from oco.dsl.previous import WORD, decision_of
from oco.dsl.statements import Feedback, Stream, Timing


def stream_of(decision: str, exprs: Iterable[Expr], taken: Collection[str]) -> Iterator[tuple[str, str]]:
    """Name `prev(x)` of a decision and that of its stream, which is none of those taken, where expressions use it."""
    name, own = f"{WORD}({decision})", f"{WORD}_{decision}"
    while own in taken:
        own += "_"
    if any(name in names(e, Kind.STREAM) for e in exprs):
        yield name, own


def previous_streams(blocks: Sequence[DecisionBlock], exprs: Sequence[Expr], model: Model) -> dict[str, StreamRange]:
    """Streams of the previous decisions that expressions use, by their name in these; each lies where its decision does."""
    results = dict[str, StreamRange]()
    for b in blocks:
        for name, own in stream_of(b.name, exprs, set(model.table())):
            stream = Stream(own, (), b.shape, None, previous=b.name)
            results[name] = StreamRange(own, b.shape, b.domain.lower, b.domain.upper, False, stream)
    return results


def is_known(
    streams: Sequence[StreamRange], expr: Expr, before: Collection[str], blocks: Sequence[DecisionBlock]
) -> bool:
    """True for an expression that changes with the rounds, over contexts or streams of `before`, and that has a nearest point."""
    known, used = {s.name for s in streams if s.stream.known} | set(before), set(names(expr, Kind.STREAM))
    return changes(expr) and used <= known and has_nearest_point(expr, blocks)


def of_previous(expr: Expr, streams: Mapping[str, str]) -> Expr:
    """Expression with each `prev(x)` as its stream."""

    def renamed(node: Expr) -> Expr:
        if isinstance(node, Name) and node.name in streams:
            return Name(streams[node.name], Kind.STREAM, shape=node.shape, span=node.span)
        return node

    return rewrite(expr, renamed)


def standing_still(expr: Expr) -> Expr:
    """Expression with each `prev(x)` as x; differences of equal parts are zero."""

    def still(node: Expr) -> Expr:
        if isinstance(node, Name) and (x := decision_of(node.name)):
            return Name(x, Kind.DECISION, shape=node.shape, span=node.span)
        return _without_zeros(node) if isinstance(node, Call) else node

    return rewrite(expr, still)


def _without_zeros(node: Call) -> Expr:
    """Zero where a call is the difference of equal parts or a product with zero; a sum without its zeros."""
    match form_of(node), node.children:
        case forms.DIFFERENCE, (a, b) if a == b:
            return _zero(node)
        case forms.Bilinear(), (a, b) if _is_zero(a) or _is_zero(b):
            return _zero(node)
        case forms.SUM, (a, b) if _is_zero(a) or _is_zero(b):
            return algebra.add(a, b)
    if not all(map(_is_zero, node.children)):
        return node
    with np.errstate(all="ignore"):
        value = np.asarray(evaluate(node, {}))
    return constant(value, node.span) if np.isfinite(value).all() else node


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Constant) and not expr.value.array.any()


def _zero(node: Expr) -> Expr:
    return constant(np.zeros(known(node.shape)), node.span)


def moving_loss(model: Model, loss: Expr, streams: Mapping[str, str]) -> Expr | None:
    """Loss over the streams of previous decisions; None where it has none. Raises OCO217 where rounds do not reveal it as a function."""
    moving = of_previous(loss, streams)
    if moving is loss:
        return None
    if model.feedback is not Feedback.FULL:
        refuse_previous(
            loss,
            where=f"in the loss, of which `feedback {model.feedback}` reveals no function",
            fix="write `feedback full`",
        )
    return moving


def refuse_previous(
    *exprs: Expr,
    where: str = "outside the loss and the constraints that the decision of each round meets exactly",
    fix: str = "",
) -> None:
    """Raise OCO217 where one of the expressions holds a previous decision."""
    for node in (node for expr in exprs for node in walk(expr)):
        if isinstance(node, Name) and decision_of(node.name):
            raise fail("OCO217", f"`{node.name}` stands {where}", node.span, fix)


def refuse_elsewhere(exprs: Iterable[Expr], inequalities: Iterable[tuple[Expr, Timing]]) -> None:
    """Raise OCO217 where expressions, or inequalities that the decision of a round does not meet exactly, hold a previous decision."""
    for expr, timing in inequalities:
        if timing is Timing.ON_AVERAGE:
            refuse_previous(
                expr, where="in a constraint on average", fix="write `each round` behind it: it is met exactly then"
            )
        refuse_previous(expr)
    refuse_previous(*exprs)
