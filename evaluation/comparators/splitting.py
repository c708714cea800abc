"""Conic programs that are too large for an interior-point method: a quadratic and norms of affine functions over a set,
split.

    minimize q(x) + sum_k tau_k |U_k x + u_k|   subject to   x in X

by steps on x along the gradient and onto X, and on the W_k onto the balls |W_k|_* <= tau_k of the dual norm (Condat
2013, "A primal-dual splitting method for convex optimization", Algorithm 3.1; Vu 2013). The W_k give the bound of
`conic.py`, which holds for any of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from oco.evaluation.comparators.conic import Bounded, Program
from oco.evaluation.comparators.conic_solver import CLOSE, Answer, Duals, certified

Array = np.ndarray[Any, Any]

EVERY = 25  # steps between two bounds
STEEP = 0.01  # of the largest weight of a norm over the width of the set: the least curvature that steps are made for


@dataclass(frozen=True, eq=False)
class _Split:
    """Program as a quadratic, norms with weights, and a set; the variables that bound the norms follow from the others."""

    program: Program

    @cached_property
    def places(self) -> Array:
        return np.concatenate([b.places for b in self.program.norms])

    @property
    def fits(self) -> bool:
        """True where the program is of this form."""
        p = self.program
        if p.loss is not None or p.limits or len(p.equations.constant) or not p.norms or p.common < len(p.lower):
            return False
        if any("project" in b.domain.refusals for b in p.region.blocks) or len(np.unique(self.places)) < len(
            self.places
        ):
            return False
        alone = not p.square[self.places].any() and not self.stacked[:, self.places].nnz
        return alone and bool(np.all(p.linear[self.places] >= 0))

    @cached_property
    def stacked(self) -> Any:
        return sp.csr_array(sp.vstack([b.inner.matrix for b in self.program.norms]))

    @cached_property
    def square(self) -> Any:
        return sp.csr_array(self.program.square)

    def weights(self, b: Bounded) -> Array:
        return np.asarray(self.program.linear[b.places])

    def whole(self, x: Array) -> Array:
        """Point x with the variables of the norms equal to the norms."""
        z = x.copy()
        for b in self.program.norms:
            z[b.places] = b.norm.value(b.at(x))
        return z


def split(p: Program, until: float) -> Answer | None:
    """Best point with the best bound, before the time `until`; None where the program is of another form."""
    s = _Split(p)
    if not s.fits:
        return None
    size = float(np.abs(p.objective(0.5 * (p.lower + p.upper))[1] * p.width).max(initial=0.0)) or 1.0
    bend, length = float(abs(s.square).sum(axis=0).max(initial=0.0)), _squared_norm(s.stacked)
    steep = STEEP * float(p.linear[s.places].max()) / max(float(p.width.max()), 1e-300)
    dual_step = max(bend, steep) / (2 * length)
    step = 1.0 / (bend / 2 + dual_step * length)
    x = p.region.project(0.5 * (p.lower + p.upper))
    w = [np.zeros((b.count, *b.shape)) for b in p.norms]
    best: Answer | None = None
    for k in count(1):
        slope = s.square @ x + p.linear
        slope[s.places] = 0.0
        pulled = sum(b.inner.matrix.T @ v.ravel() for b, v in zip(p.norms, w))
        new = p.region.project(x - step * (slope + pulled))
        ahead = 2 * new - x
        w = [b.norm.onto_dual_ball(v + dual_step * b.at(ahead), s.weights(b)) for b, v in zip(p.norms, w)]
        x, late = new, perf_counter() > until
        if late or k % EVERY == 0:
            best = _better(best, certified(p, s.whole(x), size, Duals((), np.zeros(0), tuple(w))))
            c = best.certified
            if late or c.f[0] - c.bound[0] <= CLOSE * abs(c.f[0]):
                break
    return best


def _squared_norm(matrix: Any) -> float:
    """Upper bound on the square of the largest singular value."""
    size = abs(matrix)
    return float(size.sum(axis=0).max() * size.sum(axis=1).max())


def _better(best: Answer | None, new: Answer) -> Answer:
    """Point of lower cost with the higher bound."""
    if best is None:
        return new
    kept = best if best.certified.f[0] <= new.certified.f[0] else new
    bound = np.maximum(best.certified.bound, new.certified.bound)
    return replace(kept, certified=replace(kept.certified, bound=bound))
