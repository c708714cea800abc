"""The constraints without their streams: in the worst case over every value, or in the mean where the distribution is known.

`worst(x)` bounds each constraint at a decision rigorously; `program(...)` says the same to CVXPY, to find good decisions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Equality, StreamRange
from oco.compiler.problem.cvxpy_form import to_cvxpy
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.curvature.composition import FLAT_KINDS, Curvatures
from oco.compiler.prover.ranges.enclosure import Enclosure, compact, entries
from oco.compiler.prover.search_budget import Allowance, size
from oco.compiler.prover.terms.entry import entry
from oco.compiler.prover.terms.leaves import entrywise
from oco.compiler.prover.terms.piecewise import dominant
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, Index, Kind, Name, changes, names, rewrite, walk
from oco.dsl.intervals import Interval, interval
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
SHARE = 1 / 3  # of the steps of a budget, those for feasibility
RANGE = 20  # steps that the range of a part takes
CVXPY_STEPS, PART = 300, 200  # steps that an entry takes that is spelled out to CVXPY, and more for each of its parts
MOST_SEPARATE = 1 << 20  # entries of a decision that have a range each
MEAN_SLACK = 1e-9  # the means of distributions that are not stated are computed to better than this, relative


def _at(x: Floats) -> Interval:
    """The entries of a decision; of a large one that does not repeat itself all between the least and the greatest."""
    few = compact(x)
    if few.size > MOST_SEPARATE:
        return interval(float(few.min()), float(few.max()), x.shape)
    return entries(few, few, x.shape)


@dataclass(frozen=True, eq=False)
class Scenario:
    """Ranges of the streams: `words` says whether they are worst-case or mean; `averaged` are the streams held at their mean.

    Searches for decisions and for proofs that there are none take from `search`.
    """

    setting: ProofContext
    words: str
    streams: Mapping[str, Interval]
    search: Allowance
    averaged: frozenset[str] = frozenset()

    @property
    def bounded(self) -> bool:
        """True if every stream of a constraint has finite ends."""
        c = self.setting.canonical
        used = {n for g in c.constraints for n in names(g.expr, Kind.STREAM)}
        return all(self.streams[n].bounded for n in used)

    def worst(self, expr: Expr, x: Mapping[str, Floats]) -> Interval:
        """The range of an expression at the decision `x`."""
        simple, ranges = self.setting.simplify(expr), Enclosure(self._box(x))
        result = ranges(simple)
        if result.greatest <= 0:
            return result
        piece = dominant(simple, ranges)
        again = result if piece is simple else ranges(self.setting.simplify(piece))
        return again if again.greatest < result.greatest else result

    def cost(self, exprs: Iterable[Expr]) -> int:
        """Steps that the ranges of expressions at one decision take."""
        return RANGE * sum(map(size, exprs))

    def _box(self, x: Mapping[str, Floats]) -> dict[str, Interval]:
        return {**self.setting.box, **self.streams, **{n: _at(np.asarray(v)) for n, v in x.items()}}

    def in_cvxpy(self, expr: Expr, variables: Mapping[str, Any]) -> list[Any] | None:
        """CVXPY expressions that are at least the entries at every stream value: one for all entries together where each has streams of
        its own, or none; else one an entry.

        None where there is no such form, or no steps are left.
        """
        parts = self.spelled_out(expr)
        return None if parts is None else self.cvxpy_forms(parts, variables)

    def spelled_out(self, expr: Expr) -> list[Expr] | None:
        """Expressions that are written out for a program: that of all entries together where each has streams of its own, or none; else
        one an entry. None where no steps are left.
        """
        whole = _apart(expr)
        entries = 1 if whole else math.prod(known(expr.shape))
        if not self.search.take((CVXPY_STEPS + PART * size(expr)) * entries):
            return None
        parts = [expr] if whole else [entry(expr, at) for at in np.ndindex(*known(expr.shape))]
        return [self.setting.simplify(g) for g in parts]

    def cvxpy_forms(self, parts: Iterable[Expr], variables: Mapping[str, Any]) -> list[Any] | None:
        """CVXPY expressions that are at least the parts at every stream value; None where one has no such form."""
        import cvxpy as cp

        results: list[Any] = []
        for g in parts:
            cvxpy_form = self._in_cvxpy(cp, g, variables)
            if cvxpy_form is None or not cvxpy_form.is_convex():
                return None
            results.append(cvxpy_form)
        return results

    def rows(self, parts: Iterable[Expr]) -> tuple[Floats, Floats] | None:
        """Coefficients, a row for each entry of the parts, and constants of functions affine in the decisions that are at least these
        entries at every stream value; None where a part has no such form.
        """
        blocks, t = self.setting.canonical.blocks, self._last_round()
        centre = {b.name: b.domain.centre() for b in blocks}
        flat = np.concatenate([np.ravel(v) for v in centre.values()])
        matrices: list[Floats] = []
        constants: list[Floats] = []
        for g in parts:
            worst = self._worst_ends(g) if self.setting.curvatures(g) in FLAT_KINDS else None
            if worst is None or any(names(slope, Kind.DECISION) for _, slope in worst[1]):
                return None
            env, shape, count = {**worst[0], **centre}, known(g.shape), math.prod(known(g.shape))
            slopes = jacobian(g, list(centre))
            matrices.append(
                np.hstack(
                    [
                        np.broadcast_to(evaluate(slopes[b.name], env, t), (*shape, *b.shape)).reshape(count, -1)
                        for b in blocks
                    ]
                )
            )
            sizes = [radius * np.abs(evaluate(slope, env, t)) for radius, slope in worst[1]]
            value = evaluate(g, env, t) + sum(v if shape else np.sum(v) for v in sizes)
            constants.append(np.broadcast_to(value, shape).reshape(count) - matrices[-1] @ flat)
        return np.concatenate(matrices), np.concatenate(constants)

    def _in_cvxpy(self, cp: Any, g: Expr, variables: Mapping[str, Any]) -> Any:
        """g at the worst end of each stream in which it is monotone, plus the radius times |dg/ds| where it is linear.

        The entries of an array have each their own entry of a stream.
        """
        worst = self._worst_ends(g)
        if worst is None:
            return None
        env, spread = worst
        cvxpy_form = to_cvxpy(g, variables, env, self._last_round())
        for radius, slope in spread:
            change = to_cvxpy(slope, variables, env, self._last_round())
            if g.shape:
                cvxpy_form = cvxpy_form + cp.multiply(radius, cp.abs(change))
                continue
            counted = np.flatnonzero(radius)  # a row of a matrix: the other entries would be variables of the solver
            if len(counted) < radius.size and known(slope.shape) == radius.shape:
                radius, change = radius.ravel()[counted], cp.vec(change, order="C")[counted]
            cvxpy_form = cvxpy_form + cp.sum(cp.multiply(radius, cp.abs(change)))
        return cvxpy_form

    def _worst_ends(self, g: Expr) -> tuple[dict[str, Floats], list[tuple[Floats, Expr]]] | None:
        """The worst end of each stream in which g is monotone, the middle of those in which it is linear, and for these their radius
        and dg/ds; None where it is neither.
        """
        box = {**self.setting.box, **self.streams}
        ranges = Enclosure(box, self.setting.refiner)
        env: dict[str, Floats] = {}
        spread: list[tuple[Floats, Expr]] = []
        free = names(g, Kind.STREAM)
        if indexed_by_data(g):
            return None
        linear = Curvatures(ranges, frozenset(free))(g) in FLAT_KINDS
        for name, slope in (stream_gradient(call("sum", g) if g.shape else g, free) if free else {}).items():
            slope = self.setting.simplify(slope)
            low, high = ranges(slope).broadcast(self.setting.streams[name].shape).expanded()
            lo, hi = box[name].expanded()
            mixed = (low < 0) & (high > 0) & (lo < hi)
            if mixed.any() and not linear:
                return None
            env[name] = np.where(mixed, lo / 2 + hi / 2, np.where(low >= 0, hi, lo))
            if mixed.any():
                spread.append((np.where(mixed, hi / 2 - lo / 2, 0.0), slope))
        return env, spread

    def _last_round(self) -> float:
        return float(self.setting.canonical.horizon or 1)


def indexed_by_data(expr: Expr) -> bool:
    """True if an index in the expression changes with the round or its data: no value of these stands for all others."""
    return any(changes(item) for n in walk(expr) if isinstance(n, Index) for item in n.items)


def _apart(expr: Expr) -> bool:
    """True if no two entries share an entry of a stream:
    it is entrywise in streams of its own shape, and in what has none."""
    split = entrywise(expr, lambda n: isinstance(n, Name) or not names(n, Kind.STREAM))
    moving = [leaf for leaf in split.leaves.values() if names(leaf, Kind.STREAM)]
    return all(isinstance(leaf, Name) and leaf.shape == split.shape for leaf in moving)


def stream_gradient(expr: Expr, streams: list[str]) -> dict[str, Expr]:
    """The gradient of a scalar towards each of the streams, as if they were decisions."""

    def kind(node: Expr, wanted: Kind, of: Kind) -> Expr:
        if isinstance(node, Name) and node.kind is of and node.name in streams:
            return Name(node.name, wanted, shape=node.shape)
        return node

    turned = rewrite(expr, lambda n: kind(n, Kind.DECISION, Kind.STREAM))
    result = gradient(turned, streams)
    return {name: rewrite(g, lambda n: kind(n, Kind.STREAM, Kind.DECISION)) for name, g in result.items()}


def worst_streams(scenario: Scenario, g: Expr, z: Mapping[str, Floats]) -> dict[str, Floats]:
    """The corner of the streams' box towards which g grows at z."""
    free = names(g, Kind.STREAM)
    ends = {n: scenario.streams[n].expanded() for n in free}
    middle = {n: lo / 2 + hi / 2 for n, (lo, hi) in ends.items()}
    results = {}
    for name, slope in stream_gradient(g, free).items():
        value = np.broadcast_to(evaluate(slope, {**middle, **z}, 1.0), known(scenario.setting.streams[name].shape))
        results[name] = np.where(value >= 0, ends[name][1], ends[name][0])
    return results


def robust(setting: ProofContext, search: Allowance | None = None) -> Scenario:
    """Every value that the streams may take; without an allowance it takes its share of the budget."""
    ranges = {n: setting.box[n] for n in setting.streams}
    entered = any(names(c.expr, Kind.STREAM) for c in setting.canonical.constraints)
    search = search or setting.budget.allowance(SHARE)
    return Scenario(setting, "for every value of the streams" if entered else "in any round", ranges, search)


def mean(setting: ProofContext, search: Allowance | None = None) -> Scenario | None:
    """Streams of known mean at their mean, the others at every value; None where the mean of a constraint is not that of its streams.

    An equality that changes with the round has no one mean.
    """
    means = {n: s for n, s in setting.streams.items() if s.mean is not None}
    canonical = setting.canonical
    for g in canonical.constraints:
        changes = isinstance(g, Equality) and names(setting.simplify(g.expr), Kind.ROUND)
        if changes or not _averages(setting, g.expr, means):
            return None
    ranges = {n: _mean_range(s) if n in means else setting.box[n] for n, s in setting.streams.items()}
    used = {n for g in canonical.constraints for n in names(g.expr, Kind.STREAM)}
    words = "in the mean" if used <= set(means) else "in the mean, whatever the streams of unknown distribution reveal"
    search = search or setting.budget.allowance(SHARE)
    words = words if used & set(means) else robust(setting, search).words
    return Scenario(setting, words, ranges, search, frozenset(means))


def _averages(setting: ProofContext, expr: Expr, means: Mapping[str, StreamRange]) -> bool:
    """True if E expr is expr at the mean:
    affine in each averaged stream, and no two of them dependent on each other."""
    used = [n for n in names(expr, Kind.STREAM) if n in means]
    simple = setting.simplify(expr)
    if any(Curvatures(setting.ranges, frozenset({n}))(simple) not in FLAT_KINDS for n in used):
        return False
    dependent = [n for n in used if means[n].distribution is None]
    return len(dependent) < 2 or Curvatures(setting.ranges, frozenset(dependent))(simple) in FLAT_KINDS


def _mean_range(stream: StreamRange) -> Interval:
    mean = np.asarray(compact(stream.mean))
    finite = np.isfinite(mean)  # others overflow, and lie anywhere in the range
    stated = stream.distribution is None or stream.distribution.stated_mean is not None
    slack = np.where(finite, np.abs(mean) * (0.0 if stated else MEAN_SLACK), np.inf)
    mean = np.where(finite, mean, 0.0)
    return entries(
        np.maximum(mean - slack, compact(stream.lower)), np.minimum(mean + slack, compact(stream.upper)), stream.shape
    )


def at_mean(expr: Expr, scenario: Scenario, x: Mapping[str, Floats]) -> Floats:
    """The value at a decision with every stream in the middle of its range."""
    with np.errstate(invalid="ignore"):  # a range without ends has no middle
        env = {n: (r.expanded()[0] + r.expanded()[1]) / 2 for n, r in scenario.streams.items()}
    return evaluate(expr, {**env, **x}, 1.0)
