"""Suprema that are decided at vertices: of a function convex in each decision and each stream, over vertices of their sets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.prover.curvature.composition import CONVEX_KINDS, Curvatures
from oco.compiler.prover.ranges.cells import CELL, over_cells
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.compiler.prover.search_budget import size
from oco.compiler.prover.suprema.lower_bound import slopes_of
from oco.compiler.prover.terms.kinks import continuous
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, Kind, names, walk
from oco.dsl.intervals import Interval
from oco.dsl.magnitudes import SMALLEST
from oco.dsl.rounded_numbers import LARGEST

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext

MOST_CORNERS = 4096  # corners at which a function is evaluated, side by side in one array
MOST_PROBLEMS = 64  # corners that each make a problem of their own: rows of a program, a decision, a quadratic form
BRANCH = 15_000  # steps that branch and bound takes for each part of the expression
FEW = 10  # entries of an array that take no longer than one


def corner_sup(setting: ProofContext, expr: Expr) -> float | None:
    """The supremum over vertices of what fits in `MOST_CORNERS` combinations, and ranges of the rest; None where no name qualifies."""
    ranges = Enclosure(setting.box, setting.refiner)
    lists: dict[str, np.ndarray] = {}
    count = 1
    for name in sorted(names(expr), key=lambda n: n not in setting.decisions):
        points = _vertices(setting, name)
        if points is None or count * len(points) > MOST_CORNERS:
            continue
        if Curvatures(ranges, frozenset({name}))(expr) in CONVEX_KINDS:
            lists[name], count = points, count * len(points)
    if not lists or count == 1:
        return None
    numbers = max(setting.box[n].lo.size for n in names(expr))
    if not setting.search.take(CELL * count * numbers * size(expr)):
        return None
    return float(np.max(over_cells(expr, setting.box, _combined(lists, count), count).hi))


def stream_box_corners(setting: ProofContext, streams: list[str], most: int) -> list[dict[str, np.ndarray]] | None:
    """Every combination of corners of these streams; None where there are more than `most`."""
    results: list[dict[str, np.ndarray]] = [{}]
    for name in streams:
        points = _vertices(setting, name)
        if points is None or len(results) * len(points) > most:
            return None
        results = [{**f, name: p} for f in results for p in points]
    return results


def stream_corners(setting: ProofContext, expr: Expr, most: int) -> tuple[dict[str, Interval], int] | None:
    """The corners of all its streams as cells, where `expr` is convex in each of them; None where it is not, or has too many."""
    lists: dict[str, np.ndarray] = {}
    count = 1
    for name in names(expr, Kind.STREAM):
        points = _vertices(setting, name)
        if points is None or count * len(points) > most:
            return None
        if Curvatures(setting.ranges, frozenset({name}))(expr) not in CONVEX_KINDS:
            return None
        lists[name], count = points, count * len(points)
    return _combined(lists, count), count


def _vertices(setting: ProofContext, name: str) -> np.ndarray | None:
    """The vertices of a decision's domain, or the corners of a stream's box; None where there are too many."""
    if name in setting.blocks:
        return setting.blocks[name].domain.vertices()
    if name not in setting.streams or not setting.box[name].bounded:
        return None
    if setting.box[name].lo.size == setting.box[name].hi.size == 1 and setting.box[name].size > math.log2(MOST_CORNERS):
        return None
    lo, hi = (end.ravel() for end in setting.box[name].expanded())
    free = np.flatnonzero(lo < hi)
    if len(free) > math.log2(MOST_CORNERS):
        return None
    bits = (np.arange(2 ** len(free))[:, None] >> np.arange(len(free))) & 1
    corners = np.tile(lo, (2 ** len(free), 1))
    corners[:, free] = np.where(bits, hi[free], lo[free])
    return corners.reshape(-1, *setting.streams[name].shape)


def _combined(lists: Mapping[str, np.ndarray], count: int) -> dict[str, Interval]:
    """Every combination, as cells of single points."""
    results: dict[str, Interval] = {}
    inner = count
    for name, points in lists.items():
        inner //= len(points)
        rows = np.tile(np.repeat(np.arange(len(points)), inner), count // (inner * len(points)))
        chosen = points[rows].astype(np.float64)
        results[name] = Interval(chosen, chosen, chosen.shape)
    return results


def branch_sup(setting: ProofContext, expr: Expr, enough: float, most_cells: int = 3000) -> float | None:
    """Branch and bound over all coordinates where they are few: ranges and mean value forms on cells, the widest side halved.

    Stops when the bound is at most `enough`, the cells are used up, or some value is beyond doubles, so that no bound is finite; the bound
    is sound whenever it stops.
    """
    used = [n for n in names(expr) if n in setting.blocks or n in setting.streams]
    if not used or sum(setting.box[n].size for n in used) > 8 or not all(setting.box[n].bounded for n in used):
        return None
    largest = max(math.prod(known(n.shape)) for n in walk(expr))
    if not setting.search.take(BRANCH * size(expr) * max(1, largest // FEW)):
        return None
    shapes = {n: known(setting.box[n].shape) for n in used}
    slopes = slopes_of(expr, used) if continuous(expr) else {}
    lo = np.concatenate([setting.box[n].expanded()[0].ravel() for n in used])[None]
    hi = np.concatenate([setting.box[n].expanded()[1].ravel() for n in used])[None]
    width = np.maximum(hi[0] - lo[0], SMALLEST)
    done = -math.inf
    evaluated = 0
    while True:
        tops, reached = _tops(setting, expr, slopes, shapes, lo, hi)
        if reached >= LARGEST:
            return math.inf
        evaluated += len(lo)
        done = max(done, float(np.max(tops[tops <= enough], initial=-math.inf)))
        lo, hi, tops = lo[tops > enough], hi[tops > enough], tops[tops > enough]
        if not len(lo) or evaluated + 2 * len(lo) > most_cells:
            return max(done, float(np.max(tops, initial=-math.inf)))
        side = np.argmax((hi - lo) / width, axis=1)
        rows = np.arange(len(lo))
        middle = lo[rows, side] / 2 + hi[rows, side] / 2
        lower, upper = lo.copy(), hi.copy()
        upper[rows, side] = middle
        lower[rows, side] = middle
        lo, hi = np.concatenate([lo, lower]), np.concatenate([upper, hi])


def _tops(
    setting: ProofContext,
    expr: Expr,
    slopes: Mapping[str, Expr],
    shapes: Mapping[str, tuple[int, ...]],
    lo: np.ndarray,
    hi: np.ndarray,
) -> tuple[np.ndarray, float]:
    """An upper bound on each cell, and a value that is reached at a middle of them."""
    count = len(lo)
    cells = _named(shapes, lo, hi)
    middle = np.clip(lo / 2 + hi / 2, lo, hi)
    middles = _named(shapes, middle, middle)
    natural = over_cells(expr, setting.box, cells, count)
    if not slopes:
        return np.broadcast_to(natural.hi, (count,)), -math.inf
    form = over_cells(expr, setting.box, middles, count)
    reached = float(np.max(form.lo))
    for name, slope in slopes.items():
        part = over_cells(slope, setting.box, cells, count) * (cells[name] - middles[name])
        while len(part.shape) > 1:
            part = part.sum(len(part.shape) - 1)
        form = form + part
    return np.broadcast_to(np.minimum(natural.hi, form.hi), (count,)), reached


def _named(shapes: Mapping[str, tuple[int, ...]], lo: np.ndarray, hi: np.ndarray) -> dict[str, Interval]:
    result, at = {}, 0
    for name, shape in shapes.items():
        size = math.prod(shape)
        full = (len(lo), *shape)
        result[name] = Interval(lo[:, at : at + size].reshape(full), hi[:, at : at + size].reshape(full), full)
        at += size
    return result
