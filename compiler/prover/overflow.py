"""Functions that overflow doubles at decisions and stream values that the model allows, each with such a place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Inequality, StreamRange
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.phrasing import coordinates, say
from oco.compiler.prover.suprema.lower_bound import LARGEST_ENTRIES, vertex
from oco.dsl.build import call
from oco.dsl.diagnostics import Diagnostic, Severity
from oco.dsl.evaluate import Evaluation
from oco.dsl.expressions import Expr, Slice, entries, names
from oco.dsl.source import Span

Floats = np.ndarray[Any, Any]
Place = Mapping[str, Floats]
WITHIN = 0.999
"""Share of the way from the centre to an end where functions are evaluated: many have poles at the boundary alone."""


def overflows(setting: ProofContext, facts: Mapping[str, Fact]) -> Iterator[Diagnostic]:
    """A warning for each function whose value or squared norm of the gradient is infinite at a place that was tried.

    Only functions whose size or Lipschitz constant is not bounded by the facts are evaluated: the others stay finite.
    """
    canonical = setting.canonical
    functions = [("loss", "the loss", canonical.objective, canonical.objective.span)]
    for c in canonical.constraints:
        name = c.origin if isinstance(c, Inequality) else c.label
        functions.append((f"constraints.{c.label}", f"`{name}`", c.expr, c.span))
    for prefix, words, expr, span in functions:
        unbounded = any(_unknown(facts.get(f"{prefix}.{kind}")) for kind in ("bound", "lipschitz.l2"))
        if unbounded and entries(expr) <= LARGEST_ENTRIES:
            yield from _overflow(setting, words, expr, span)


def _unknown(fact: Fact | None) -> bool:
    return fact is None or fact.value is None or not np.isfinite(fact.value)


def _overflow(setting: ProofContext, words: str, expr: Expr, span: Span | None) -> Iterator[Diagnostic]:
    hint = (
        "narrow the domain or the ranges of the streams, or write it in units in which its values are of moderate size"
    )
    places = list(_places(setting))
    at = next((p for p in places if np.isinf(_value(expr, p)).any()), None)
    if at is not None:
        node = _first_infinite(expr, at)
        message = f"{words} overflows: {say(node)} is beyond 1.8e308 {_where(expr, at)}"
        yield Diagnostic("OCO613", message, node.span or span, hint, Severity.WARNING)
        return
    slopes = gradient(call("sum", expr) if expr.shape else expr, list(setting.decisions))
    squared = [call("sum_squares", g) for g in slopes.values()]
    at = next((p for p in places if any(np.isinf(_value(g, p)) for g in squared)), None)
    if at is not None:
        message = f"the gradient of {words} overflows: its squared norm is beyond 1.8e308 {_where(expr, at)}"
        yield Diagnostic("OCO613", message, span, hint, Severity.WARNING)


def _value(expr: Expr, place: Place) -> Floats:
    return Evaluation(expr)(place, float(place["t"]))


def _first_infinite(expr: Expr, place: Place) -> Expr:
    """The first part that is infinite there while everything that it is made of is finite."""
    evaluation = Evaluation(expr)
    values = evaluation.values(place, float(place["t"]))
    return next(n for n in evaluation.nodes if not isinstance(n, Slice) and np.isinf(values[id(n)]).any())


def _places(setting: ProofContext) -> Iterator[Place]:
    """The centre with streams in the middle; then all entries up and all down, in the last round."""
    centre = {b.name: np.asarray(b.domain.centre()) for b in setting.canonical.blocks}
    for sign in (0, 1, -1):
        place = {"t": np.asarray(float(setting.canonical.horizon or 1))}
        for name, middle in centre.items():
            far = (
                vertex(setting.blocks[name].domain, np.full(middle.shape, float(sign)), setting.search)
                if sign
                else middle
            )
            place[name] = middle + WITHIN * (far - middle)
        yield place | {s.name: _revealed(s, sign) for s in setting.canonical.streams}


def _revealed(stream: StreamRange, sign: int) -> Floats:
    """A value in the middle of the range or towards an end; where it has no such end, a number of size one within it."""
    with np.errstate(invalid="ignore", over="ignore"):
        middle = stream.lower / 2 + stream.upper / 2
        value = middle + sign * WITHIN * (stream.upper / 2 - stream.lower / 2)
    if stream.integer:
        value = np.ceil(value) if sign < 0 else np.floor(value)
    one = np.clip(float(sign), stream.lower, stream.upper)
    return np.broadcast_to(np.where(np.isfinite(value), value, one), stream.shape)


def _where(expr: Expr, place: Place) -> str:
    shown = ", ".join(f"{n} = {coordinates(place[n])}" for n in names(expr) if n in place)
    return f"at {shown}" if shown else "at every decision"
