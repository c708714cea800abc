"""Facts measured on data: variations, path length, the constants over the range that the data covers, and what contradicts it.

Data is a mapping from streams to arrays with the round first. What is measured holds for these rounds; it is no promise for others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Canonical, StreamRange
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.phrasing import number, plural
from oco.compiler.prover.ranges.cells import NotCovered, over_cells
from oco.compiler.prover.terms.entry import entry
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.dsl.build import call
from oco.dsl.diagnostics import fail
from oco.dsl.expressions import Expr, Kind, Name, names, rewrite
from oco.dsl.intervals import Interval, point
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
Rounds = Mapping[str, Floats]
CHUNK = 20_000  # numbers of the widest stream in one pass
BEFORE = " of the round before"


@dataclass(frozen=True, eq=False)
class Observed:
    """The rounds that were given: arrays with the round first, and the best decision of each round where somebody found it."""

    streams: Rounds
    rounds: int
    best: Rounds | None = None


def observed(problem: Canonical, data: Rounds, best: Rounds | None = None) -> Observed:
    """The given arrays, by the streams of the model."""
    streams = {s.name: np.asarray(data[s.name]) for s in problem.streams if s.name in data}
    for s in problem.streams:
        if s.name in streams and streams[s.name].shape[1:] != s.shape:
            given = f"rounds of shape {list(streams[s.name].shape[1:])}"
            raise fail(
                "OCO823",
                f"the data for `{s.name}` has {given}, and the stream has shape {list(s.shape)}",
                s.stream.span,
            )
    rounds = min((len(v) for v in streams.values()), default=0)
    return Observed({n: v[:rounds] for n, v in streams.items()}, rounds, best)


def variation_facts(setting: ProofContext, seen: Observed) -> Iterator[Fact]:
    """variation.gradient, variation.constraint and path_length with the exponents V_g and V_x."""
    c = setting.canonical
    squares = _summed_squares(setting, _changes_of_gradient(setting))
    gradients = _over_rounds(setting, seen, squares)
    if gradients is not None:
        words = "the sum of the largest squared changes of the loss's gradient"
        yield _measured("variation.gradient", np.cumsum(gradients), seen, words)
    if c.inequalities:
        changes = [_change(setting, entry(g.expr, at)) for g in c.inequalities for at in np.ndindex(*g.shape)]
        result = _over_rounds(setting, seen, _summed_squares(setting, changes))
        if result is not None:
            totals = np.cumsum(np.sqrt(np.maximum(result, 0.0)))
            yield _measured("variation.constraint", totals, seen, "the sum of the largest changes of the constraints")
            yield _exponent("V_g", float(totals[-1]), seen, "variation.constraint")
    if seen.best is not None:
        steps = sum(
            np.sum(np.diff(np.asarray(v, dtype=np.float64), axis=0).reshape(seen.rounds - 1, -1) ** 2, axis=1)
            for v in seen.best.values()
        )
        lengths = np.cumsum(np.sqrt(steps))
        yield _measured("path_length", lengths, seen, "the sum of the distances between successive best decisions")
        yield _exponent("V_x", float(lengths[-1]), seen, "path_length")


def _measured(key: str, totals: Floats, seen: Observed, words: str) -> Fact:
    """The last of the running sums, one a round from the second on."""
    value = float(totals[-1])
    claim = f"{words} over {plural(seen.rounds, 'round')} of data is {number(value)}"
    why = Step(ProofRule.MEASURED, claim, value, (), None, totals)
    return Fact(key, value, Status.MEASURED, why)


def _exponent(key: str, value: float, seen: Observed, of: str) -> Fact:
    """The log_T exponent: value = T ** exponent, at least 0."""
    exponent = max(0.0, math.log(value) / math.log(seen.rounds)) if value > 0 and seen.rounds > 1 else 0.0
    why = Step(
        ProofRule.MEASURED, f"{of} is T ** {number(exponent)} over {plural(seen.rounds, 'round')} of data", exponent
    )
    return Fact(key, exponent, Status.MEASURED, why)


# ---- changes from one round to the next, at their largest over the domain


def _before(expr: Expr) -> Expr:
    """The expression with the streams, and the number, of the round before."""

    def renamed(node: Expr) -> Expr:
        if isinstance(node, Name) and node.kind is Kind.ROUND:
            return call("sub", node, 1.0)
        if isinstance(node, Name) and node.kind is Kind.STREAM:
            return replace(node, name=node.name + BEFORE)
        return node

    return rewrite(expr, renamed)


def _change(setting: ProofContext, expr: Expr) -> Expr:
    """The change from the round before, collected so that what does not change is gone."""
    return setting.simplify(call("sub", expr, _before(expr)))


def _changes_of_gradient(setting: ProofContext) -> list[Expr]:
    slopes = gradient(setting.simplify(setting.canonical.objective), list(setting.decisions))
    return [_change(setting, g) for g in slopes.values()]


def _summed_squares(setting: ProofContext, changes: list[Expr]) -> Expr:
    total: Expr = call("sum_squares", changes[0])
    for change in changes[1:]:
        total = call("add", total, call("sum_squares", change))
    return setting.simplify(total)


def _over_rounds(setting: ProofContext, seen: Observed, expr: Expr) -> Floats | None:
    """The supremum over the domain for each pair of successive rounds, shape (rounds - 1,); None where it cannot be bounded."""
    used = {n.removesuffix(BEFORE) for n in names(expr, Kind.STREAM)}
    if not used <= set(seen.streams) or seen.rounds < 2:
        return None
    width = max([1, *(int(np.prod(seen.streams[n].shape[1:])) for n in used)])
    step = max(1, CHUNK // width)
    results: list[Floats] = []
    for start in range(0, seen.rounds - 1, step):
        stop = min(start + step, seen.rounds - 1)
        cells: dict[str, Interval] = {"t": point(np.arange(start + 2.0, stop + 2.0))}
        for name in used:
            now, then = seen.streams[name][start + 1 : stop + 1], seen.streams[name][start:stop]
            cells[name], cells[name + BEFORE] = point(now.astype(np.float64)), point(then.astype(np.float64))
        try:
            tops = over_cells(expr, setting.box, cells, stop - start).hi
        except NotCovered:
            return None
        results.append(np.broadcast_to(tops, (stop - start,)))
    result = np.concatenate(results)
    return result if np.isfinite(result).all() else None


# ---- the range that the data covers


def covered(problem: Canonical, seen: Observed, rounds: Floats | None = None) -> Canonical:
    """The problem with each stream confined to the hull of its data (of the marked rounds), means from data where none is known."""

    def narrowed(s: StreamRange) -> StreamRange:
        if s.name not in seen.streams:
            return s
        values = np.asarray(seen.streams[s.name], dtype=np.float64)
        kept = values if rounds is None else values[rounds]
        return replace(s, lower=np.asarray(kept.min(axis=0)), upper=np.asarray(kept.max(axis=0)))

    return replace(problem, streams=tuple(narrowed(s) for s in problem.streams))
