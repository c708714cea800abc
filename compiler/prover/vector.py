"""Constraints with very many entries: the facts of the worst entry, from ranges of all entries at once."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Equality, Inequality
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.curvature.composition import CONVEX_KINDS, FLAT_KINDS
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.function import bounded
from oco.compiler.prover.phrasing import number, plural
from oco.compiler.prover.structure_facts import structure_fact
from oco.compiler.prover.terms.kinks import differentiable
from oco.compiler.prover.terms.leaves import entrywise
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, Kind, Name
from oco.dsl.intervals import Interval, interval

MOST_ENTRIES = 128  # vector constraints have facts for each entry, as long as they are no more in all
USUAL_SLOPES = 4_000_000
"""Numbers of a matrix of slopes, with a row for each entry of constraints, up to which it is taken at the usual effort."""


def worst_of_many(setting: ProofContext, c: Inequality | Equality) -> Iterator[Fact]:
    """The facts of `constraints.LABEL` for the worst of its entries; entries have no facts of their own."""
    prefix, expr = f"constraints.{c.label}", setting.simplify(c.expr)
    words = f"the worst of {plural(c.size, 'entry')}"
    kind = setting.curvatures(expr)
    proved = kind in CONVEX_KINDS
    yield Fact(
        f"{prefix}.convex", proved or None, Status.PROVED if proved else Status.UNKNOWN, setting.curvatures.step(expr)
    )
    results = setting.ranges(expr)
    step = setting.ranges.step(expr)
    for name, value in (
        ("bound", float(np.max(results.magnitude))),
        ("upper", results.greatest),
        ("lower", results.least),
    ):
        yield bounded(
            f"{prefix}.{name}", value, Step(ProofRule.EVERY_ENTRY, f"{words}: {number(value)}", value, (step,))
        )
    slopes = _slopes(setting, expr)
    for key, measure in (("lipschitz.l2", _longest_row), ("lipschitz.l1", _largest_slope)):
        value = np.inf if slopes is None else measure(slopes)
        largest = Step(ProofRule.EVERY_ENTRY, f"{words}: {number(value)}", value)
        yield bounded(f"{prefix}.{key}", value, largest if slopes else setting.search.ended(f"`{prefix}.{key}`", None))
    flat = kind in FLAT_KINDS and differentiable(setting, expr)
    curvature = 0.0 if flat else _largest_curvature(setting, expr)
    why = "every entry is affine" if flat else f"{words}: {number(curvature)}"
    smooth = Step(ProofRule.EVERY_ENTRY, why if curvature < np.inf else "nothing bounds the second derivatives")
    yield bounded(f"{prefix}.smoothness.l2", curvature, smooth, flat)
    yield structure_fact(setting, expr, prefix, f"each of {plural(c.size, 'entry')}")
    status = Status.PROVED if proved else Status.UNKNOWN
    yield Fact(
        f"{prefix}.strong_convexity.l2",
        0.0,
        status,
        Step(ProofRule.EVERY_ENTRY, "no entry need be strongly convex", 0.0),
        loose=proved and not flat,
    )


def _slopes(setting: ProofContext, expr: Expr) -> list[Interval] | None:
    """Ranges of the slopes: one row an entry, shape (entries, slopes); a single column where each entry has one slope."""
    own, shape = _entry_by_entry(setting, expr), known(expr.shape)
    if own is not None:
        return [_column(setting, g, shape) for g in gradient(call("sum", expr), own).values()]
    if not setting.search.fits(math.prod(shape) * setting.canonical.size, USUAL_SLOPES):
        return None
    results = []
    for name, slope in jacobian(expr, [b.name for b in setting.canonical.blocks]).items():
        full = (*shape, *setting.blocks[name].shape)
        lo, hi = setting.ranges(setting.simplify(slope)).broadcast(full).expanded()
        rows = int(np.prod(shape))
        results.append(interval(lo.reshape(rows, -1), hi.reshape(rows, -1)))
    return results


def _entry_by_entry(setting: ProofContext, expr: Expr) -> list[str] | None:
    """Names of the decisions of which each entry takes its own entries alone; None where it takes others."""
    split = entrywise(expr, lambda n: not setting.depends(n) or isinstance(n, Name))
    moving = [leaf for leaf in split.leaves.values() if setting.depends(leaf)]
    own = [leaf.name for leaf in moving if isinstance(leaf, Name) and leaf.kind is Kind.DECISION]
    same = len(own) == len(moving) and all(leaf.shape == split.shape for leaf in moving)
    return own if same else None


def _largest_curvature(setting: ProofContext, expr: Expr) -> float:
    """Largest second derivative where each entry is a smooth function of one entry of one decision; infinite elsewhere."""
    own = _entry_by_entry(setting, expr)
    if own is None or len(own) != 1 or not setting.hessians.smooth(expr):
        return np.inf
    (slope,) = gradient(call("sum", expr), own).values()
    (curvature,) = gradient(call("sum", setting.simplify(slope)), own).values()
    return float(np.max(setting.ranges(setting.simplify(curvature)).magnitude))


def _column(setting: ProofContext, slope: Expr, shape: tuple[int, ...]) -> Interval:
    """One slope an entry; a single row where all have the same range."""
    results = setting.ranges(setting.simplify(slope)).broadcast(shape)
    if results.lo.size == 1 and results.hi.size == 1:
        return interval(results.lo.reshape(1, 1), results.hi.reshape(1, 1))
    lo, hi = results.expanded()
    return interval(lo.reshape(-1, 1), hi.reshape(-1, 1))


def _longest_row(slopes: list[Interval]) -> float:
    total = interval(0.0, 0.0)
    for part in slopes:
        total = total + part.square().sum(1)
    return float(np.max(total.sqrt().hi))


def _largest_slope(slopes: list[Interval]) -> float:
    return max(float(np.max(part.magnitude)) for part in slopes)
