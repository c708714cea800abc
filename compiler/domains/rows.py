"""Inequalities and equalities with rows of norm one, and linear programs over them, counted."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from oco.compiler.domains.base import Halfspaces
from oco.compiler.domains.exact import EPS, magnitudes, slacks
from oco.compiler.domains.norms import Floats
from oco.compiler.domains.programs import LinearPrograms
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.limits import MOST_ROW_NUMBERS
from oco.dsl.magnitudes import HUGE
from oco.dsl.records import dataclass
from oco.dsl.source import Span

KEPT = 1e-10
"""By how much a point of the set may break a row, in units of the set's size."""


@dataclass(frozen=True, eq=False)
class UnitRows:
    """{ centre + scale y : A y <= b, E y = f }, the rows of norm one; `name` is what messages call it.

    `given` are the rows as they were given, but for powers of two: x is in units of `unit`, the largest coefficient of a row at least 1
    and less than 2. `known` are bounds of x (2, n) that rows of one entry state or that are known besides, infinite where there are none.
    `lengths` are what rows of `given` had as norms in the coordinates y. `anchor` is a point x that counts as one of the set: rows that
    rounding lets it break are moved to it. `against` are the multipliers of `given`, equalities as two inequalities, that say most
    against any other.
    """

    A: Floats
    b: Floats
    E: Floats
    f: Floats
    name: str
    centre: Floats
    scale: Floats
    lengths: tuple[Floats, Floats]
    given: Halfspaces
    unit: float
    known: Floats
    anchor: Floats | None = None
    against: Floats | None = None

    @classmethod
    def of(
        cls, A: Floats, b: Floats, E: Floats, f: Floats, name: str, within: tuple[Floats, Floats] | None = None
    ) -> UnitRows:
        """Without rows that say nothing, about 0; `within` are bounds of the entries. An error where they do not fit into memory."""
        n = A.shape[1]
        check_rows(len(A) + len(E), n, name)
        (A, b), (E, f) = _within_two(A, b), _within_two(E, f)
        largest = float(max(np.max(np.abs(b), initial=0.0), np.max(np.abs(f), initial=0.0)))
        power = int(np.frexp(largest)[1]) - 1 if largest else 0
        given = Halfspaces(A, np.ldexp(b, -power), E, np.ldexp(f, -power))
        unit, none = float(np.ldexp(1.0, power)), np.zeros(0)
        known = stated_bounds(*both_ways(given))
        if within is not None:
            known = narrower(known, np.stack(within) / unit)
        rows = cls(A, none, E, none, name, np.zeros(n), np.ones(n), (none, none), given, unit, known)
        return rows.about(np.zeros(n), np.ones(n))

    @property
    def size(self) -> int:
        """Number of entries of x."""
        return int(self.A.shape[1])

    @property
    def count(self) -> int:
        """Number of rows, inequalities and equalities."""
        return len(self.A) + len(self.E)

    @cached_property
    def program(self) -> LinearPrograms:
        """Linear programs over the set, in the coordinates y."""
        return LinearPrograms(self.A, self.b, self.E, self.f)

    def about(self, centre: Floats, scale: Floats) -> UnitRows:
        """Rows of the set in the coordinates (x - centre) / scale."""
        g, anchor = self.given, self.anchor
        (A, along), (E, across) = _unit_rows(g.A, scale), _unit_rows(g.E, scale)
        b, f = slacks(g.A, g.b, centre) / along, slacks(g.E, g.f, centre) / across
        if anchor is not None:
            y = (anchor - centre) / scale
            b, f = np.maximum(b, A @ y), E @ y
        return replace(self, A=A, b=b, E=E, f=f, centre=centre, scale=scale, lengths=(along, across))

    def anchored(self, anchor: Floats, against: Floats) -> UnitRows:
        """Rows of the set with the point x = `anchor`."""
        return replace(self, anchor=anchor, against=against).about(self.centre, self.scale)

    def down(self, x: Floats) -> Floats:
        """y of points x, or of bounds of them (2, n)."""
        return np.asarray((x - self.centre) / self.scale)

    def up(self, y: Floats) -> Floats:
        """x of points y."""
        return np.asarray(self.centre + self.scale * y)

    def outwards(self, y: Floats) -> Floats:
        """Bounds of x (2, n) from those of y, not narrower for rounding."""
        x = self.up(y)
        if not np.any(self.centre) and np.all(self.scale == 1):
            return x
        rounding = 2 * EPS * (np.abs(self.centre) + np.abs(self.scale * y))
        return np.asarray(x + np.array([[-1.0], [1.0]]) * rounding)

    def broken(self, x: Floats) -> tuple[float, bool]:
        """By how much x breaks the worst of the rows as given, in the coordinates y; and whether rounded data may do so."""
        g, (along, across) = self.given, self.lengths
        over = np.append(-slacks(g.A, g.b, x) / along, np.abs(slacks(g.E, g.f, x)) / across)
        rounding = np.append(magnitudes(g.A, g.b, x) / along, magnitudes(g.E, g.f, x) / across)
        return max(float(np.max(over, initial=0.0)), 0.0), bool(np.all(over <= 2 * EPS * rounding))

    def rounding_shift(self, x: Floats) -> Floats:
        """Distance that rounding of a row of several entries moves each entry near x (n,): the least of the rows, 0 without any."""
        A, b = both_ways(self.given)
        several = np.count_nonzero(A, axis=1) > 1
        A, rounding = np.abs(A[several]), 2 * EPS * magnitudes(A[several], b[several], x)
        moved = np.divide(rounding[:, None], A, out=np.full(A.shape, np.inf), where=A > 0)
        least = np.min(moved, axis=0, initial=np.inf)
        return np.where(np.isfinite(least), least, 0.0)

    def keeps(self, y: Floats) -> bool:
        """True if y breaks no row by more than `KEPT`, or than data may be rounded."""
        left, rounding = self.broken(self.up(y))
        return rounding or left <= KEPT

    def empty(self) -> OcoError:
        """Error (OCO410) for rows that contradict each other."""
        message = f"{self.name} is empty: its inequalities contradict each other"
        return fail("OCO410", message, hint="loosen a row, or leave one out")

    def too_thin(self) -> OcoError:
        """Error (OCO410) for rows that no point satisfies in double precision."""
        message = f"{self.name} is empty, or holds no point that doubles can represent"
        why = "none was found that satisfies its rows to 1e-9 of its size"
        return fail(
            "OCO410", f"{message}: {why}", hint="loosen a row, or write the entries or sums that are fixed as `==`"
        )


BOUNDS_INSTEAD = "state bounds of the entries by `box(lower, upper)`, and use fewer rows"


def check_rows(count: int, size: int, name: str, span: Span | None = None, hint: str = BOUNDS_INSTEAD) -> None:
    """Raises OcoError (OCO805) where so many rows of so many entries do not fit into memory; `hint` is the way out."""
    if count * size > MOST_ROW_NUMBERS:
        message = f"{name} has {count:,} rows over {size:,} entries: at most {MOST_ROW_NUMBERS:,} numbers of rows fit into memory"
        raise fail("OCO805", message, span, hint)


def stated_bounds(A: Floats, b: Floats) -> Floats:
    """Lower and upper bounds of single entries among the rows (2, n), infinite where none is stated."""
    stated = np.stack([np.full(A.shape[1], -np.inf), np.full(A.shape[1], np.inf)])
    alone = np.flatnonzero(np.count_nonzero(A, axis=1) == 1)
    places = np.argmax(A[alone] != 0, axis=1)
    weights = A[alone, places]
    ends, above = b[alone] / weights, weights > 0
    np.minimum.at(stated[1], places[above], ends[above])
    np.maximum.at(stated[0], places[~above], ends[~above])
    return stated


def narrower(a: Floats, b: Floats) -> Floats:
    """The narrower ones of two lists of bounds (2, n)."""
    return np.stack([np.maximum(a[0], b[0]), np.minimum(a[1], b[1])])


def both_ways(rows: Halfspaces) -> tuple[Floats, Floats]:
    """A and b of all rows, equalities as two inequalities each, after the others."""
    return np.concatenate([rows.A, rows.E, -rows.E]), np.concatenate([rows.b, rows.f, -rows.f])


def _within_two(A: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Rows times powers of two, so that their largest coefficients are within 1 and 2; without those that say nothing."""
    largest = np.max(np.abs(A), axis=1, initial=0.0)
    kept = largest > 0
    power = np.frexp(largest[kept])[1] - 1
    with np.errstate(over="ignore", under="ignore"):
        right = np.ldexp(b[kept], -power)
    # right sides beyond say nothing that doubles could keep to
    return np.ldexp(A[kept], -power[:, None]), np.clip(right, -HUGE, HUGE)


def _unit_rows(A: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Rows of norm one in the coordinates x / scale, and their norms before."""
    largest = float(np.max(scale))
    scaled = A * (scale / largest)
    norms = np.linalg.norm(scaled, axis=1)
    return scaled / norms[:, None], norms * largest
