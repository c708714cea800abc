"""Proofs that no decision satisfies the constraints: a nonnegative combination of them that is positive everywhere.

For convex g_n and weights l_n >= 0 the function L = sum l_n g_n lies above its tangent at any point, so
min over X of L >= L(z) + min over X of <grad L(z), x - z>. A positive right side proves that no x has g(x) <= 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from oco.compiler.calculus import gradient
from oco.compiler.facts.enclosure import Enclosure
from oco.compiler.facts.entry import entry
from oco.compiler.facts.scenario import Scenario, stream_gradient
from oco.compiler.facts.solver import decision_variables, into_domain, solve, values, within_reach
from oco.compiler.facts.support import support
from oco.compiler.facts.types import Step, Witness
from oco.compiler.facts.words import number
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, Kind, names
from oco.dsl.intervals import Interval, interval, point

Floats = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Impossible:
    """The proof: weights of the constraints and the stream values for which no decision fits. `one_round`: all in the same round."""

    step: Step
    witness: Witness
    one_round: bool


def impossible(scenario: Scenario) -> Impossible | None:
    """Look for the proof with the solver's multipliers; None where there is none or none is found."""
    import cvxpy as cp

    canonical = scenario.setting.canonical
    if not canonical.inequalities or not within_reach(canonical.blocks):
        return None
    variables, domain = decision_variables(canonical.blocks)
    entries = [(c, at) for c in canonical.inequalities for at in np.ndindex(*c.shape)]
    found = [scenario.twins(c.expr, variables) for c in canonical.inequalities]
    if any(f is None for f in found):
        return None
    excess = cp.Variable()
    rows = [g <= excess for f in found if f is not None for g in f]
    least = solve(cp.Minimize(excess), [*domain, *rows])
    if least is None or least <= 0 or not np.isfinite(least):
        return None
    weights = np.maximum([float(np.sum(r.dual_value)) for r in rows], 0.0)
    z = into_domain(canonical.blocks, values(variables))
    total, slopes, streams = _combination(scenario, entries, weights, z)
    lowest = total.least
    for b in canonical.blocks:
        slope = slopes[b.name]
        lowest -= (slope * point(z[b.name])).sum().greatest + support(b.domain, -slope)
    if not lowest > 0:
        return None
    labels = sorted(
        {c.label for (c, _), w in zip(entries, weights) if w > 1e-6},
        key=[c.label for c in canonical.inequalities].index,
    )
    together = " and ".join(labels) + (" cannot hold together" if len(labels) > 1 else " cannot hold")
    words = f"{together} {scenario.words}: the best decision misses by at least {number(lowest / max(weights.sum(), 1e-300))}"
    same = len({_frozen(s) for s, w in zip(streams, weights) if w > 1e-6}) <= 1
    witness = Witness(streams[int(np.argmax(weights))], lowest, words)
    return Impossible(Step("tangent bound", words, lowest, (), None, (weights, z, tuple(streams))), witness, same)


def _combination(
    scenario: Scenario, entries: list[tuple[Any, tuple[int, ...]]], weights: Floats, z: Mapping[str, Floats]
) -> tuple[Interval, dict[str, Interval], list[dict[str, Floats]]]:
    """Value and gradient at z of the weighted sum, each constraint at its worst stream values there."""
    blocks = scenario.setting.canonical.blocks
    total, streams = interval(0.0, 0.0, ()), []
    slopes = {b.name: interval(0.0, 0.0, b.shape) for b in blocks}
    for (c, at), weight in zip(entries, weights):
        g = scenario.setting.simplify(entry(c.expr, at))
        worst = _worst_streams(scenario, g, z)
        streams.append(worst)
        if weight == 0:
            continue
        box = {**scenario.setting.box, **{n: point(v) for n, v in z.items()}, **{n: point(v) for n, v in worst.items()}}
        ranges, factor = Enclosure(box), point(float(weight))
        total = total + factor * ranges(g)
        for name, slope in gradient(g, [b.name for b in blocks]).items():
            slopes[name] = slopes[name] + factor * ranges(slope).broadcast(slopes[name].shape)
    return total, slopes, streams


def _worst_streams(scenario: Scenario, g: Expr, z: Mapping[str, Floats]) -> dict[str, Floats]:
    """The corner of the streams' box towards which g grows at z."""
    free = names(g, Kind.STREAM)
    ends = {n: scenario.streams[n].expanded() for n in free}
    middle = {n: lo / 2 + hi / 2 for n, (lo, hi) in ends.items()}
    found = {}
    for name, slope in stream_gradient(g, free).items():
        value = np.broadcast_to(evaluate(slope, {**middle, **z}, 1.0), known(scenario.setting.streams[name].shape))
        found[name] = np.where(value >= 0, ends[name][1], ends[name][0])
    return found


def _frozen(streams: Mapping[str, Floats]) -> tuple[tuple[str, bytes], ...]:
    return tuple((n, v.tobytes()) for n, v in sorted(streams.items()))
