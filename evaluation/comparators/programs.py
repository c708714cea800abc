"""Batches of smooth convex programs: the interface for the solver of comparators, and their scaling.

    minimize f_b(x)   subject to   g_b(x) <= 0,  A_b x = c_b,  lower <= x <= upper,      b = 1..B, x in R^n

One batch is all rounds of a run (dynamic comparator) or a single program whose functions are sums over rounds (static).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np

from oco.dsl.records import dataclass

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Jet:
    """Values and first derivatives at a point: f (B,), g (B, M), df (B, n), jacobian (B, M, n)."""

    f: Array
    g: Array
    df: Array
    jacobian: Array


class Programs(Protocol):
    """Batch of programs. `rows` selects the members of the batch to evaluate; x has one row for each of them."""

    @property
    def count(self) -> int:
        """Number of programs B."""
        ...

    @property
    def size(self) -> int:
        """Number of variables n."""
        ...

    @property
    def lower(self) -> Array:
        """Lower bounds (n,)."""

    @property
    def upper(self) -> Array:
        """Upper bounds (n,)."""

    def equalities(self, rows: Array) -> tuple[Array, Array]:
        """Matrices A (B, k, n) and right-hand sides c (B, k)."""
        ...

    def jet(self, x: Array, rows: Array) -> Jet:
        """Values and first derivatives at x (B, n)."""

    def hessian(self, x: Array, multipliers: Array, rows: Array) -> Array:
        """Hessian of f + sum_m multipliers_m g_m: (B, n, n), or its diagonal (B, n)."""
        ...


@dataclass(frozen=True, eq=False)
class Scaled:
    """Programs in y = (x - lower) / (upper - lower) over the entries that are free, with gradients of size one.

    Rows of the equalities are scaled to norm one. `weight_f` (B,) and `weight_g` (B, M) multiply f and g.
    """

    base: Programs
    free: Array
    weight_f: Array
    weight_g: Array

    @property
    def count(self) -> int:
        """Number of programs B."""
        return self.base.count

    @property
    def size(self) -> int:
        """Number of free variables."""
        return len(self.free)

    @property
    def lower(self) -> Array:
        """Lower bounds, all 0."""
        return np.zeros(self.size)

    @property
    def upper(self) -> Array:
        """Upper bounds, all 1."""
        return np.ones(self.size)

    @property
    def width(self) -> Array:
        """Distance between the bounds of each free variable."""
        return np.asarray((self.base.upper - self.base.lower)[self.free])

    def _freed(self, slopes: Array) -> Array:
        """Entries of the free variables; without a copy where all are free."""
        return slopes if len(self.free) == self.base.size else slopes[..., self.free]

    def _derivatives_of_fixed_entries(self) -> AbstractContextManager[object]:
        """Context for derivatives that may be infinite where an entry is fixed, and are left out there."""
        return nullcontext() if len(self.free) == self.base.size else np.errstate(invalid="ignore")

    def outward(self, y: Array) -> Array:
        """Points x from y."""
        x = np.repeat(self.base.lower[None], len(y), axis=0)
        x[:, self.free] += y * self.width
        return x

    def inward(self, x: Array) -> Array:
        """Points y from x."""
        return (x - self.base.lower)[:, self.free] / self.width

    def equalities(self, rows: Array) -> tuple[Array, Array]:
        """Matrices and right-hand sides in y, with rows of norm one."""
        matrix, right = self.base.equalities(rows)
        reduced = matrix[:, :, self.free] * self.width
        rest = right - matrix @ self.base.lower
        norm = np.linalg.norm(reduced, axis=2)
        scale = np.where(norm > 0, norm, 1.0)
        return reduced / scale[:, :, None], rest / scale

    def jet(self, x: Array, rows: Array) -> Jet:
        """Values and first derivatives in y of the scaled functions."""
        with self._derivatives_of_fixed_entries():
            jet = self.base.jet(self.outward(x), rows)
        wf, wg = self.weight_f[rows], self.weight_g[rows]
        df = self._freed(jet.df) * self.width * wf[:, None]
        jacobian = self._freed(jet.jacobian) * self.width
        jacobian *= wg[:, :, None]
        return Jet(jet.f * wf, jet.g * wg, df, jacobian)

    def hessian(self, x: Array, multipliers: Array, rows: Array) -> Array:
        """Hessian of the Lagrangian in y, for multipliers of the scaled functions."""
        wf = self.weight_f[rows]
        inner = multipliers * self.weight_g[rows] / wf[:, None]
        with self._derivatives_of_fixed_entries():
            hessian = self.base.hessian(self.outward(x), inner, rows)
        if hessian.ndim == 2:
            return np.asarray(hessian[:, self.free] * self.width**2 * wf[:, None])
        if len(self.free) < self.base.size:
            hessian = hessian[:, self.free[:, None], self.free]
        in_y = hessian * np.multiply.outer(self.width, self.width)
        in_y *= wf[:, None, None]
        return np.asarray(in_y)


def scaled(base: Programs, start: Array) -> Scaled:
    """Scale programs by their derivatives at `start` (B, n)."""
    free = np.flatnonzero(base.upper > base.lower)
    width = (base.upper - base.lower)[free]
    with np.errstate(invalid="ignore"):  # by fixed entries, which are left out
        jet = base.jet(start, np.arange(base.count))
    slope = np.abs(jet.df[:, free] * width).max(axis=1, initial=0.0)
    slopes = np.abs(jet.jacobian[:, :, free] * width).max(axis=2, initial=0.0)
    return Scaled(base, free, 1.0 / _positive(slope), 1.0 / _positive(np.where(slopes > 0, slopes, np.abs(jet.g))))


def _positive(size: Array) -> Array:
    return np.where(np.isfinite(size) & (size > 1e-300), size, 1.0)
