"""From inequalities and equalities as given to a full-dimensional polyhedron of size about one that holds 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oco.compiler.domains.analytic import Centre, cheap_to_solve, interior_point, largest_ball
from oco.compiler.domains.exact import EPS
from oco.compiler.domains.hull import hull, stated_ends
from oco.compiler.domains.inside import BALL, OPEN, Inside, inside, moving, solutions
from oco.compiler.domains.norms import Floats
from oco.compiler.domains.polyhedron_feasibility import nearest, refuted
from oco.compiler.domains.polyhedron_vertices import corners
from oco.compiler.domains.programs import MOST_STEPS, Steps
from oco.compiler.domains.reduced import LIKE_WIDTHS, Reduced
from oco.compiler.domains.rows import UnitRows, narrower, stated_bounds
from oco.dsl.diagnostics import fail

MOST_UNITS = 4
"""Most times that the size of a set is computed, each time in units of the last one."""

WIDEST = 1e60
"""By how much units of entries differ at most."""

SHRUNK = 1e-4
"""A set whose size is less than this part of the units in which it was found is looked at again in smaller ones."""


def reduce_polyhedron(
    A: Floats,
    b: Floats,
    E: Floats,
    f: Floats,
    name: str,
    ends: tuple[Floats, Floats] | None = None,
    within: tuple[Floats, Floats] | None = None,
    steps: int = MOST_STEPS,
) -> Reduced:
    """The reduction of { x : A x <= b, E x = f }; an error where the set is empty or unbounded.

    ends    the least and the greatest value of each entry, where they are known: else each takes a linear program
    within  bounds of each entry that are known besides
    steps   what linear programs may take; sets that take more get bounds instead of ends, by the analytic centre
    """
    rows = UnitRows.of(A, b, E, f, name, within)
    if ends is not None:
        return _reduced(rows, np.stack(ends) / rows.unit, False)
    if np.isfinite(rows.known).all() and not _of_size_one(rows.known):
        rows = rows.about(*_units(rows, rows.known)[:2])
    purse, share = Steps(steps), steps / MOST_STEPS
    cheap = cheap_to_solve(len(rows.A), rows.size, share)
    unknown = int(np.count_nonzero(~np.isfinite(stated_bounds(A, b))))
    if cheap and (unknown + 4) * rows.program.expected > steps and (result := _outlined(rows, share)):
        return result
    for _ in range(MOST_UNITS):
        rows, begun, met = _begun(rows, purse)
        left = int(np.count_nonzero(~met)) + 1
        if cheap and left * rows.program.expected > purse.left and (result := _outlined(rows, share)):
            return result
        rows, box, loose = _box(rows, begun, met, purse)
        centre, scale, fixed = _units(rows, box)
        if np.all(fixed | (scale >= SHRUNK * rows.scale)):
            break
        rows = _anchored(rows).about(centre, scale)
    return _reduced(rows, box, loose)


def _of_size_one(box: Floats) -> bool:
    """True if the tolerances of linear programs mean something in every entry: its width is about one, and so is its distance from 0."""
    wide = np.maximum((box[1] - box[0]) / 2, 0.0)
    free = wide > 0
    return bool(np.all(wide[free] >= 1 / LIKE_WIDTHS)) and bool(np.max(np.abs(box)) <= LIKE_WIDTHS)


def _units(rows: UnitRows, box: Floats) -> tuple[Floats, Floats, Floats]:
    """The middle of a box (2, n), the units of its entries, and which entries it fixes but for rounding.

    The units are half the widths, or the largest one for all where they are alike; fixed entries take the largest one. An entry that
    others narrow to less than rounding of their rows moves it is fixed; one whose own bounds are as narrow is not.
    """
    lower, upper = box[0], np.maximum(box[0], box[1])
    centre, half = lower / 2 + upper / 2, upper / 2 - lower / 2
    narrowed = half < (rows.known[1] / 2 - rows.known[0] / 2) / 2
    fixed = (half <= 2 * EPS * np.abs(centre)) | (narrowed & (half <= rows.rounding_shift(centre)))
    largest = float(np.max(half, where=~fixed, initial=0.0))
    if fixed.all():
        return centre, np.full(len(centre), float(np.max(np.abs(centre))) or 1.0), fixed
    like_widths = np.min(half, where=~fixed, initial=np.inf) >= largest / LIKE_WIDTHS
    return centre, np.where(fixed | like_widths, largest, np.maximum(half, largest / WIDEST)), fixed


def _anchored(rows: UnitRows) -> UnitRows:
    """With a point of the set; an error where it is empty."""
    return rows if rows.anchor is not None else nearest(rows, Steps(BALL))


def _begun(rows: UnitRows, steps: Steps) -> tuple[UnitRows, Floats, Floats]:
    """The bounds of y that rows state, and which of them are met."""
    begun = stated_ends(rows, steps)
    if begun is not None:
        return rows, *begun
    if rows.anchor is not None:
        raise rows.too_thin()
    return _begun(_anchored(rows), steps)


def _box(rows: UnitRows, begun: Floats, met: Floats, steps: Steps) -> tuple[UnitRows, Floats, bool]:
    """Bounds of x (2, n) that hold, and whether some need not be attained."""
    result = hull(rows, begun, met, rows.down(rows.known), steps)
    if result is None:
        rows, begun, met = _begun(_anchored(rows), steps)
        return _box(rows, begun, met, steps)
    bounds, loose = result
    box = narrower(np.where(met & np.isfinite(rows.known), rows.known, rows.outwards(bounds)), rows.known)
    if rows.against is not None and refuted(rows, rows.against, rows.up(bounds * (1 + SHRUNK))):
        raise rows.empty()
    return rows, box, loose


def _reduced(rows: UnitRows, box: Floats, loose: bool) -> Reduced:
    """In units of the smallest box around the set."""
    centre, scale, fixed = _units(rows, box)
    rows, result = inside(rows.about(centre, scale), fixed)
    if not result.Z.shape[1]:
        return Reduced.point(rows.up(result.point) * rows.unit)
    return _placed(rows, result.point, 1.0, result, box * rows.unit, loose)


def _outlined(rows: UnitRows, share: float) -> Reduced | None:
    """With bounds instead of ends, and a ball within that is not a largest one; None where the set is flat or empty."""
    n = rows.size
    result, *_, level = moving(rows, solutions(rows, np.zeros(n, dtype=bool), np.zeros(n)))
    G, h, Z = result.G, result.h, result.Z
    inner = interior_point(G, h) if len(G) and Z.shape[1] and level >= -OPEN else None
    if inner is None or np.min(h - G @ inner) <= OPEN:
        return None
    centre = Centre.of(G, h, inner)
    if centre is None:
        message = f"no bounds were found for {rows.name} of {rows.count:,} rows over {n:,} entries"
        raise fail("OCO418", message, hint="state bounds of the entries: `with x >= lo, x <= hi`")
    above, below = np.split(centre.greatest(np.concatenate([Z.T, -Z.T], axis=1), share), 2)
    bounds = narrower(np.stack([result.origin - below, result.origin + above]), rows.down(rows.known))
    result = replace(result, w=largest_ball(G, h, centre.w))
    if not rows.keeps(result.point):
        return None
    size = float(np.max(bounds[1] - bounds[0])) / 2
    ends = narrower(rows.outwards(bounds), rows.known) * rows.unit
    scaled = replace(result, h=h / size, w=result.w / size)
    return _placed(rows, result.point, size, scaled, ends, True)


def _placed(rows: UnitRows, point: Floats, size: float, result: Inside, hull: Floats, loose: bool) -> Reduced:
    """About the point y, in `size` times the units of the rows; `result` is in these units already."""
    n, scale = rows.size, rows.scale * (size * rows.unit)
    near = np.sqrt(n) * 2 + 1
    h = result.h - result.G @ result.w
    G, h = _distinct(result.G[h <= near], h[h <= near])
    normal = result.normal
    if np.any(scale != scale[0]) and len(normal):
        normal = np.linalg.qr((normal * (scale.min() / scale)).T)[0].T
    return Reduced(rows.up(point) * rows.unit, scale, result.Z, G, h, corners(G, h), hull, normal, loose)


def _distinct(G: Floats, h: Floats) -> tuple[Floats, Floats]:
    """Without repeated rows; of parallel ones the tightest stays."""
    rounded = np.round(G, 12)
    order = np.lexsort((h, *rounded.T))
    first = np.append(True, np.any(rounded[order[1:]] != rounded[order[:-1]], axis=1))
    kept = np.sort(order[first])
    return G[kept], h[kept]
