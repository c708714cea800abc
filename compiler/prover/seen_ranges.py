"""Largest that decisions could have differed by in rounds of data: of the loss from its least to its most, of each constraint above 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.measured import CHUNK, Floats, Observed, Rounds, observed
from oco.compiler.prover.ranges.cells import NotCovered, over_cells
from oco.dsl.dims import known
from oco.dsl.expressions import Expr
from oco.dsl.intervals import Interval, point
from oco.dsl.records import dataclass
from oco.dsl.spill import release

LOOKED_AT = 4096
"""Rounds whose ranges are worked out, spread evenly where there are more: a tenth of a millisecond each."""


@dataclass(frozen=True, eq=False)
class SeenRanges:
    """Means over rounds of data, or over `LOOKED_AT` of them, bounded over the hull of the domain: of sup f_t - inf f_t, and of sup [g_t]_+
    for each entry of the inequalities (N,) and of sup |h_t| of the equalities (M,). None where they cannot be bounded.
    """

    loss: float | None
    inequalities: Floats | None
    equalities: Floats | None


def seen_ranges(problem: Canonical, data: Rounds) -> SeenRanges:
    """Ranges in rounds of data; what no data gives counts at its declared range."""
    seen, setting = observed(problem, data), ProofContext(problem)
    loss = _mean(setting, seen, [problem.objective], lambda x: x.hi - x.lo)
    above = _mean(setting, seen, [c.expr for c in problem.inequalities], lambda x: np.maximum(x.hi, 0.0))
    apart = _mean(setting, seen, [c.expr for c in problem.equalities], lambda x: np.maximum(abs(x.hi), abs(x.lo)))
    return SeenRanges(None if loss is None else float(loss[0]), above, apart)


def _mean(setting: ProofContext, seen: Observed, exprs: list[Expr], of: Callable[[Interval], Floats]) -> Floats | None:
    """Mean over the rounds of a function of the range of each entry, of all expressions together; None where one is not bounded."""
    parts = [np.zeros(0), *(_mean_of(setting, seen, e, of) for e in exprs)]
    return None if any(p is None for p in parts) else np.concatenate([p for p in parts if p is not None])


def _mean_of(setting: ProofContext, seen: Observed, expr: Expr, of: Callable[[Interval], Floats]) -> Floats | None:
    width = max([1, *(int(np.prod(v.shape[1:])) for v in seen.streams.values())])
    size, step = int(np.prod(known(expr.shape), dtype=np.int64)), max(1, CHUNK // width)
    total, places = np.zeros(size), np.linspace(0, seen.rounds - 1, min(seen.rounds, LOOKED_AT)).astype(np.int64)
    for start in range(0, len(places), step):
        part = places[start : start + step]
        count = len(part)
        cells = {name: point(v[part].astype(np.float64)) for name, v in seen.streams.items()}
        cells["t"] = point(part + 1.0)
        try:
            results = of(over_cells(expr, setting.box, cells, count))
        except NotCovered:
            return None
        for values in seen.streams.values():
            release(values[: part[-1]])
        total += np.broadcast_to(results, (count, *known(expr.shape))).reshape(count, size).sum(axis=0)
    return total / len(places) if len(places) and np.isfinite(total).all() else None
