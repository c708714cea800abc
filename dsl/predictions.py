"""Stated predictions: `predict price = ...`, made of what is known before a round and of statistics of the rounds before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from oco.dsl.diagnostics import fail
from oco.dsl.expressions import Expr, Kind, Name, names, walk
from oco.dsl.previous import decision_of
from oco.dsl.scope import Scope
from oco.dsl.source import Span
from oco.dsl.statements import Prediction, Stream
from oco.dsl.statistics import STATISTICS, statistic_of


class Declared(Protocol):
    """Model under construction: its scope, and what is predicted so far."""

    scope: Scope
    predictions: list[Prediction]


def prediction(model: Declared, stream: str, value: Expr, at: Span | None) -> Prediction:
    """Prediction of a stream, checked. Raises OCO219 for what has none, or one already, OCO220 for one that is not known in time."""
    declared = model.scope.declared
    if any(p.stream == stream for p in model.predictions):
        raise fail("OCO219", f"`{stream}` is predicted already", at, "join the two in one line")
    own = declared.get(stream)
    if not isinstance(own, Stream) or own.known:
        what = "is known before the decision" if isinstance(own, Stream) else "is no stream"
        raise fail("OCO219", f"`{stream}` {what}, so nothing is predicted of it", at, "predict a `stream`")
    if value.shape not in ((), own.shape):
        raise fail("OCO219", f"the prediction has another shape than `{stream}`", value.span or at, "match the shapes")
    for node in walk(value):
        if not isinstance(node, Name):
            continue
        late = node.kind is Kind.DECISION or (node.kind is Kind.STREAM and not _is_early(node.name, declared))
        if late or (node.kind is Kind.LET and _reads_late(declared[node.name].value, declared)):
            hint = f"use contexts and `{STATISTICS['last'].replace('price', stream)}`, or another statistic"
            raise fail(
                "OCO220", f"`{node.name}` is not known before the round that it would predict", node.span or at, hint
            )
    return Prediction(stream, value, at)


def _is_early(name: str, declared: Mapping[str, Any]) -> bool:
    return statistic_of(name) is not None or bool(getattr(declared.get(name), "known", False))


def _reads_late(value: Expr, declared: Mapping[str, Any]) -> bool:
    streams = (n for n in names(value, Kind.STREAM) if not decision_of(n))
    lets = (declared[n].value for n in names(value, Kind.LET))
    late = bool(names(value, Kind.DECISION)) or any(not _is_early(n, declared) for n in streams)
    return late or any(_reads_late(v, declared) for v in lets)
