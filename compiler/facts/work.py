"""How much a check may search. What is counted are steps, not seconds: facts are the same on every machine, however busy it is."""

from __future__ import annotations

from collections.abc import Sequence

from oco.dsl.enclose import HEAVY
from oco.dsl.expressions import Expr, entries, parts

MOST_STEPS = 40_000
"""Parts of expressions that searches for suprema evaluate in one model, all in all: about a tenth of a second. The examples take 9,000."""
MOST_SOUGHT = 60_000
"""The same of searches for a feasible decision: the examples take 21,000."""
MOST_SOLVED = 1_000
"""Parts of what is handed to a solver, each counted for every 500 numbers of the decision: a fifth of a second. The examples take 42."""
MOST_BENT = 60_000
"""The same of second derivatives of terms: the examples take 2,000."""
MOST_PAIRED = 100_000
"""The same of searches for witnesses against convexity."""
MOST_BRANCHED = 150_000
"""The same of branch and bound, of which a few thousand cells are evaluated."""
MOST_STRETCHED = 600_000
"""Entries of matrices whose singular values are taken: some tenths of a second, and two as large as are ever written out."""
MOST_WRITTEN = 6_000
"""Parts of Hessians that are written out, each counted for every row: half a second. The examples take 300."""
MOST_CELLS = 300_000
"""Numbers at which second derivatives are evaluated over cells, counted for each part. The examples take none."""
MOST_ATTAINED = 20_000
"""Parts of second derivatives, each counted for every sweep over places: a fifth of a second. The examples take 4,000."""
MOST_SUPPORTED = 25_000
"""Steps of support functions, a step about ten microseconds."""

VAST = 1_000
"""Entries of arrays that take a solver one step more."""
FEW = 500
"""Numbers of a decision over which a part takes a solver one step."""
MOST_RANGED = 8_000_000
"""Entries of ranges that are not all the same: half a second, and 128 MB. Past it an array has one range for all its entries."""


def effort(expr: Expr) -> int:
    """Steps that the range of an expression takes, shared parts counted once."""
    return sum(HEAVY.get(atom, 1) * count for atom, count in parts(expr).items())


def handed(exprs: Sequence[Expr], size: int) -> int:
    """Steps that a solver is counted for, over decisions of `size` numbers."""
    return sum(effort(e) + entries(e) // VAST for e in exprs) * (1 + size // FEW)


class Work:
    """What is left to spend. Searches that tighten what is proved anyhow end when it is gone."""

    def __init__(self, steps: int = MOST_STEPS) -> None:
        self.left = steps

    def spend(self, steps: int) -> bool:
        """Take steps; False where there were none left."""
        allowed = self.left > 0
        self.left -= steps
        return allowed

    def afford(self, steps: int) -> bool:
        """Take steps where there are so many left: for one search that takes long."""
        allowed = self.left >= steps
        self.left -= steps if allowed else 0
        return allowed
