"""The least and the greatest value of each entry over a polyhedron, by linear programs."""

from __future__ import annotations

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.compiler.domains.programs import Steps
from oco.compiler.domains.rows import UnitRows, stated_bounds
from oco.dsl.diagnostics import fail

EMPTY, EITHER = 2, 4
"""Status codes of SciPy for programs without a point, and for those without one or without a least value."""


def stated_ends(rows: UnitRows, steps: Steps) -> tuple[Floats, Floats] | None:
    """The bounds of entries that rows state (2, n), and which of them are met. None where a program finds no point."""
    result = rows.program.solve(np.zeros(rows.size), steps)
    if result is not None and result.status == EMPTY:
        return None
    bounds = stated_bounds(rows.A, rows.b)
    return bounds, _met(bounds, rows, steps)


def hull(rows: UnitRows, stated: Floats, met: Floats, within: Floats, steps: Steps) -> tuple[Floats, bool] | None:
    """Least and greatest value of each entry (2, n), and whether some are bounds alone. None where a program finds no point.

    Where the steps are over, what a row states is a bound, or what is known before (`within`); where neither is, the program is solved
    without a limit.
    """
    A, E, bounds = rows.A, rows.E, stated.copy()
    loose, places, slopes, multipliers = False, [], [], []
    # Ends that no row states come first: the others have a bound.
    for row, i in sorted(zip(*np.nonzero(~met)), key=lambda at: (bool(np.isfinite(bounds[tuple(at)])), *at)):
        sign = 1.0 - 2.0 * row
        slope = sign * (np.arange(rows.size) == i)
        result = rows.program.solve(slope, steps)
        if result is not None and result.status in (EMPTY, EITHER) and rows.anchor is None:
            return None
        if result is None or result.status != 0:
            known = (max, min)[row](bounds[row, i], within[row, i])
            if np.isfinite(known):
                bounds[row, i], loose = known, True
                continue
        if result is None:
            result = rows.program.solve(slope)
        if result.status in (EMPTY, EITHER) and rows.anchor is None:
            return None
        if result.status != 0:
            side = "small" if row == 0 else "large"
            message = f"{rows.name} is unbounded: entry {i} can be arbitrarily {side}"
            raise fail("OCO418", message, hint="add bounds on every entry")
        bounds[row, i] = sign * result.fun
        places.append((row, i))
        slopes.append(slope)
        multipliers.append(np.append(np.minimum(result.ineqlin.marginals, 0.0), result.eqlin.marginals))
    if slopes:
        # By duality, c x >= lam b + nu f + (c - lam A - nu E) x for lam <= 0: below the least value whatever the solver rounds.
        duals, rest = np.array(multipliers), 2 * np.abs(bounds).max(axis=0)
        slack = np.abs(np.array(slopes) - duals @ np.concatenate([A, E])) @ rest
        least = duals @ np.append(rows.b, rows.f) - slack
        at = tuple(np.array(places).T)
        bounds[at] = np.where(at[0] == 0, least, -least)
    return bounds, loose


def _met(stated: Floats, rows: UnitRows, steps: Steps) -> Floats:
    """For which stated bounds there is a vertex. Programs for all that are left find some at once, as long as one finds any."""
    met = np.zeros(stated.shape, dtype=bool)
    for row, sign in enumerate((1.0, -1.0)):
        while np.any(left := np.isfinite(stated[row]) & ~met[row]):
            result = rows.program.solve(sign * left, steps)
            if result is None or result.status != 0:
                break
            met |= result.x == stated
            if not np.any(left & met[row]):
                break
    return met
