"""Conic programs that are too large for an interior-point method: a quadratic and norms of affine functions over a set,
by the first-order method.

    minimize q(x) + sum_k tau_k |U_k x + u_k|   subject to   x in X
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from oco.evaluation.comparators.conic import Bounded, Program
from oco.evaluation.comparators.conic_solver import Answer, Duals, certified
from oco.evaluation.comparators.first_order import Local, solve_split
from oco.evaluation.comparators.region import Region

Array = np.ndarray[Any, Any]

STEEP = (
    0.01  # of the largest weight of a norm over the width of the set: the least curvature that a penalty is made for
)
STIFF = 5.0  # times the curvature of q along the U_k: the first penalty


@dataclass(frozen=True, eq=False)
class _Norms:
    """Program in this form; the variables that bound the norms follow from the others."""

    program: Program

    @property
    def fits(self) -> bool:
        """True where the program is of this form."""
        p = self.program
        if p.loss is not None or p.limits or len(p.equations.constant) or not p.norms or p.common < len(p.lower):
            return False
        refused = any("project" in b.domain.refusals for b in p.region.blocks)
        if refused or len(np.unique(self.places)) < len(self.places):
            return False
        alone = not p.square[self.places].any() and not self.stacked[:, self.places].nnz
        return alone and bool(np.all(p.linear[self.places] >= 0))

    @property
    def region(self) -> Region:
        return self.program.region

    @cached_property
    def places(self) -> Array:
        return np.concatenate([b.places for b in self.program.norms])

    @cached_property
    def stacked(self) -> Any:
        return sp.csr_array(sp.vstack([b.inner.matrix for b in self.program.norms]))

    @cached_property
    def square(self) -> Any:
        return sp.csr_array(self.program.square)

    @cached_property
    def constant(self) -> Array:
        return np.concatenate([b.inner.constant for b in self.program.norms])

    @cached_property
    def linear(self) -> Array:
        linear = self.program.linear.copy()
        linear[self.places] = 0.0
        return linear

    @cached_property
    def size(self) -> float:
        start = self.at(self.region.project(self.region.start))
        return min(self.program_size, abs(self.measured(start)[0])) or 1.0

    @cached_property
    def program_size(self) -> float:
        """Change of the objective over the bounds of the variables, the norms' own included, by its slope."""
        p = self.program
        return float(np.abs(p.objective(0.5 * (p.lower + p.upper))[1] * p.width).max(initial=0.0)) or 1.0

    @cached_property
    def penalty(self) -> float:
        p, lengths = self.program, abs(self.stacked)
        length = float(lengths.sum(axis=0).max() * lengths.sum(axis=1).max())
        steep = STEEP * float(p.linear[self.places].max()) / max(float(p.width.max()), 1e-300)
        return STIFF * max(float(abs(self.square).sum(axis=0).max(initial=0.0)), steep) / length

    def weights(self, b: Bounded) -> Array:
        """Numbers tau of a family of norms."""
        return np.asarray(self.program.linear[b.places])

    def matrices(self, y: Array) -> list[Array]:
        """Entries (m,) as matrices (K, m, n) of each family."""
        ends = np.cumsum([len(b.inner.constant) for b in self.program.norms])[:-1]
        return [part.reshape(b.count, *b.shape) for b, part in zip(self.program.norms, np.split(y, ends))]

    def at(self, x: Array) -> Local:
        bend = self.square @ x
        f = self.program.constant + float((bend / 2 + self.linear) @ x)
        return Local(f, bend + self.linear, self.stacked @ x + self.constant, self.stacked)

    def onto(self, y: Array) -> Array:
        pairs = zip(self.program.norms, self.matrices(y))
        return np.concatenate([b.norm.onto_dual_ball(part, self.weights(b)).ravel() for b, part in pairs])

    def measured(self, here: Local) -> tuple[float, float]:
        pairs = zip(self.program.norms, self.matrices(here.v))
        return here.f + sum(float(self.weights(b) @ b.norm.value(part)) for b, part in pairs), 0.0

    def whole(self, x: Array) -> Array:
        """Point x with the variables of the norms equal to the norms."""
        z = x.copy()
        for b in self.program.norms:
            z[b.places] = b.norm.value(b.at(x))
        return z


def solve_norms(p: Program, until: float) -> Answer | None:
    """Best point with its bound, before the time `until`; None where the program is of another form."""
    problem = _Norms(p)
    if not problem.fits:
        return None
    result = solve_split(problem, until)
    duals = Duals((), np.zeros(0), tuple(problem.matrices(result.multipliers)))
    return certified(p, problem.whole(result.x), problem.program_size, duals)
