"""Stated predictions: `predict price = ...`, made of what is known before a round and of statistics of the rounds before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from oco.dsl.diagnostics import fail
from oco.dsl.expressions import Expr, Kind, Name, walk
from oco.dsl.previous import decision_of
from oco.dsl.scope import Scope
from oco.dsl.source import Span
from oco.dsl.statements import Let, Prediction, Stream
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
    looks = forecasts_in(value)
    if not isinstance(own, Stream) or own.first is not None or (own.known and not looks):
        what = "is known before the decision" if isinstance(own, Stream) else "is no stream"
        hint = "predict a `stream`, or of a context the rounds to come: `ahead(next_load)`"
        raise fail("OCO219", f"`{stream}` {what}, so nothing is predicted of it", at, hint)
    if value.shape not in ((), own.shape):
        raise fail("OCO219", f"the prediction has another shape than `{stream}`", value.span or at, "match the shapes")
    for name in looks:
        if not (isinstance(of := declared.get(name), Stream) and of.known and of.first is None):
            message = f"`{name}` is no context: what is known of rounds to come is given before the decision"
            raise fail("OCO220", message, value.span or at, f"declare it as `context {name}[24] in ...`")
    if (late := _late(value, declared)) is not None:
        hint = f"use contexts, `prev(x)` and `{STATISTICS['last'].replace('price', stream)}`, or another statistic"
        message = f"`{late.name}` is not known before the round that it would predict"
        raise fail("OCO220", message, late.span or at, hint)
    return Prediction(stream, value, at)


def forecasts_in(value: Expr) -> tuple[str, ...]:
    """Names of the contexts whose entries a prediction takes for the rounds to come."""
    used = [statistic_of(n.name) for n in walk(value) if isinstance(n, Name)]
    return tuple(dict.fromkeys(s.stream for s in used if s is not None and s.kind == "ahead"))


def _late(value: Expr, declared: Mapping[str, Any]) -> Name | None:
    """Name in an expression that is not known before a round, itself or by what it abbreviates; None where there is none."""
    for node in walk(value):
        if not isinstance(node, Name):
            continue
        own = declared.get(node.name)
        if isinstance(own, Let) and _late(own.value, declared) is not None:
            return node
        early = statistic_of(node.name) is not None or (isinstance(own, Stream) and own.known) or decision_of(node.name)
        if node.kind is Kind.DECISION or (node.kind is Kind.STREAM and not early):
            return node
    return None
