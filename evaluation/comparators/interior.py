"""Primal-dual interior-point method for a whole batch of smooth convex programs at once, in NumPy.

Mehrotra's predictor and corrector on the perturbed optimality conditions with slacks, from an infeasible start (Nocedal
& Wright, Numerical Optimization, chapters 14 and 19). Every array carries the batch first; members that are done leave
the batch. The result is judged by a dual bound elsewhere (`certificate.py`): nothing here has to be trusted.
"""

from __future__ import annotations

from dataclasses import fields, replace
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from oco.dsl.records import dataclass
from oco.evaluation.comparators.kkt import Newton
from oco.evaluation.comparators.products import applied, pulled
from oco.evaluation.comparators.programs import Jet, Programs

Array = np.ndarray[Any, Any]
Parts = TypeVar("Parts", Jet, "Iterate", "Residual")

TOLERANCE = 1e-11  # of the optimality conditions, in scaled units
ITERATIONS = 120  # Newton's steps after which the interval that is known is given: 20 to 40 are usual
TO_BOUNDARY = 0.995  # the share of the way to the boundary that a step may go
LEAST_GAP = 1e-15  # distance to a bound, in scaled units
HALVINGS = 12
TRIES = 3  # halvings that are tried in one call
KEPT = 1e-4  # of the infeasibility, below which the products of slacks and multipliers do not go: else they close first
AGAIN = 1e-4  # products of slacks and multipliers from which an iterate of other programs goes on
STALL = 30  # iterations without progress after which a member is given up


@dataclass(frozen=True, eq=False)
class Iterate:
    """Point and multipliers: x (B, n), s (B, M) slacks of g, lam (B, M), z (B, n) of lower, w (B, n) of upper, nu (B,
    k).
    """

    x: Array
    s: Array
    lam: Array
    z: Array
    w: Array
    nu: Array

    def take(self, rows: Array) -> Iterate:
        """Iterate of some members."""
        return take(self, rows)

    def moved(self, step: Iterate, length: Array) -> Iterate:
        """Iterate after a step of the given length for each member."""
        changed = {f.name: getattr(self, f.name) + length[:, None] * getattr(step, f.name) for f in fields(self)}
        return Iterate(**changed)


@dataclass(frozen=True, eq=False)
class Residual:
    """Residuals of the optimality conditions: dual (B, n), primal (B, M), equalities (B, k), mu (B,)."""

    dual: Array
    primal: Array
    equal: Array
    mu: Array

    @property
    def infeasible(self) -> Array:
        """Largest entry of each member besides mu (B,)."""
        dual, primal, equal = (
            np.maximum.reduce(np.abs(p), axis=1, initial=0.0) for p in (self.dual, self.primal, self.equal)
        )
        return np.asarray(np.maximum(np.maximum(dual, primal), equal))

    @property
    def size(self) -> Array:
        """Largest entry of each member (B,)."""
        return np.maximum(self.infeasible, np.abs(self.mu))


@dataclass(frozen=True, eq=False)
class Solution:
    """Last iterate of each member with the size of its residual."""

    point: Iterate
    residual: Array
    converged: Array


@dataclass(frozen=True, eq=False)
class InteriorState:
    """State of the members that are still open: iterate, derivatives there, equalities A x = c, and the residual."""

    v: Iterate
    jet: Jet
    matrix: Array
    right: Array
    residual: Residual

    def take(self, rows: Array) -> InteriorState:
        """State of some members."""
        return InteriorState(
            self.v.take(rows), take(self.jet, rows), self.matrix[rows], self.right[rows], take(self.residual, rows)
        )


def solve(
    programs: Programs, start: Array | Iterate, tolerance: float = TOLERANCE, enough: float = 0.0, until: float = np.inf
) -> Solution:
    """Solve every member from `start` (B, n), which lies strictly between the bounds, or from iterates of similar
    programs.

    A member is done when its optimality conditions hold up to `tolerance`, or its dual bound is within `enough` of its
    value; all end at the time `until`.
    """
    rows = np.arange(programs.count)
    here = _again(programs, start, rows) if isinstance(start, Iterate) else _first(programs, start, rows)
    best, best_size = here.v, np.full(programs.count, np.inf)
    least_mu, since = np.full(programs.count, np.inf), np.zeros(programs.count, dtype=np.int64)
    for _ in range(ITERATIONS):
        size, mu = here.residual.size, here.residual.mu
        progress = (size < 0.9 * best_size[rows]) | (mu < 0.9 * least_mu[rows])
        since[rows] = np.where(progress, 0, since[rows] + 1)
        close = _gap(here) <= enough if enough else np.zeros(len(rows), dtype=bool)
        improved = np.flatnonzero((size < best_size[rows]) | close)
        best = store(best, rows[improved], here.v.take(improved))
        best_size[rows[improved]] = size[improved]
        least_mu[rows] = np.minimum(least_mu[rows], mu)
        going = np.flatnonzero((size > tolerance) & ~close & (since[rows] < STALL) & np.isfinite(size))
        if not len(going) or perf_counter() > until:
            break
        if len(going) < len(rows):
            rows, here = rows[going], here.take(going)
        here = _advance(programs, here, _direction(programs, here, rows), rows)
    return Solution(best, best_size, best_size <= 10 * tolerance)


def _gap(here: InteriorState) -> Array:
    """Value less the dual bound over the box [0, 1]^n of scaled programs, or the largest violation (B,)."""
    v, r = here.v, here.residual
    slope = r.dual + v.z - v.w
    gain = np.maximum(slope * v.x, slope * (v.x - 1.0)).sum(axis=1) - (v.lam * here.jet.g).sum(axis=1)
    off = here.matrix @ v.x[:, :, None]
    gain -= (v.nu * (off[:, :, 0] - here.right)).sum(axis=1)
    broken = np.maximum(here.jet.g.max(axis=1, initial=0.0), np.abs(r.equal).max(axis=1, initial=0.0))
    return np.asarray(np.maximum(np.abs(gain), broken))


def _first(programs: Programs, start: Array, rows: Array) -> InteriorState:
    """Slacks and multipliers of size one: the programs are scaled so that this is their natural size."""
    jet = programs.jet(start, rows)
    matrix, right = programs.equalities(rows)
    slack = np.maximum(-jet.g, 0.1)
    ones = np.ones_like(start)
    v = Iterate(start, slack, np.ones_like(slack), ones, ones.copy(), np.zeros(matrix.shape[:2]))
    return InteriorState(v, jet, matrix, right, _residual(jet, v, matrix, right, programs))


def _again(programs: Programs, before: Iterate, rows: Array) -> InteriorState:
    """Point and multipliers of an iterate of similar programs, with the slacks that constraints have there."""
    jet = programs.jet(before.x, rows)
    matrix, right = programs.equalities(rows)
    low, high = _gaps(programs, before.x)
    products = np.concatenate([low * before.z, high * before.w], axis=1)
    mu = np.maximum(products.sum(axis=1, keepdims=True) / max(1, products.shape[1]), AGAIN)
    slack = np.maximum(-jet.g, mu)
    v = replace(before, s=slack, lam=mu / slack, z=np.maximum(before.z, mu / low), w=np.maximum(before.w, mu / high))
    return InteriorState(v, jet, matrix, right, _residual(jet, v, matrix, right, programs))


def _residual(jet: Jet, v: Iterate, matrix: Array, right: Array, programs: Programs) -> Residual:
    pull = pulled(jet.jacobian, v.lam) + pulled(matrix, v.nu)
    equal = applied(matrix, v.x) - right
    return Residual(jet.df + pull - v.z + v.w, jet.g + v.s, equal, _mu(v, programs))


def _mu(v: Iterate, programs: Programs) -> Array:
    """Mean of the products of slacks and multipliers."""
    low, high = _gaps(programs, v.x)
    products = (v.s * v.lam).sum(axis=1) + (low * v.z).sum(axis=1) + (high * v.w).sum(axis=1)
    return np.asarray(products / max(1, v.s.shape[1] + 2 * v.x.shape[1]))


def _direction(programs: Programs, here: InteriorState, rows: Array) -> Iterate:
    """Predictor, then a corrector that centres by the length of the predictor step and compensates for its curvature."""
    v, r = here.v, here.residual
    low, high = _gaps(programs, v.x)
    hessian = programs.hessian(v.x, v.lam, rows)
    newton = Newton(hessian, v.z / low + v.w / high, here.jet.jacobian, v.s / v.lam, here.matrix)
    products = (v.s * v.lam, low * v.z, high * v.w)
    affine = _newton_step(newton, v, r, low, high, (-products[0], -products[1], -products[2]))
    trial_mu = _mu(v.moved(affine, _step_length(v, affine, low, high, 1.0)), programs)
    mu = np.maximum(r.mu, 1e-300)
    floor = np.minimum(mu, KEPT * r.infeasible)
    target = np.maximum(np.clip(trial_mu / mu, 0.0, 1.0) ** 3 * mu, floor)[:, None]
    corrected = (
        target - products[0] - affine.s * affine.lam,
        target - products[1] - affine.x * affine.z,
        target - products[2] + affine.x * affine.w,
    )
    return _newton_step(newton, v, r, low, high, corrected)


def _gaps(programs: Programs, x: Array) -> tuple[Array, Array]:
    """Distances to the bounds, kept above the size of rounding errors."""
    return np.maximum(x - programs.lower, LEAST_GAP), np.maximum(programs.upper - x, LEAST_GAP)


def _newton_step(
    newton: Newton, v: Iterate, r: Residual, low: Array, high: Array, complementarity: tuple[Array, Array, Array]
) -> Iterate:
    """Eliminate slacks and the multipliers of the bounds, solve, and substitute back.

    `complementarity` are the right-hand sides of s dlam + lam ds, of low dz + z dx and of high dw - w dx.
    """
    cs, cz, cw = complementarity
    dual = -r.dual + cz / low - cw / high
    primal = -r.primal - cs / v.lam
    dx, dlam, dnu = newton.solve(dual, primal, -r.equal)
    ds = -r.primal - applied(newton.jacobian, dx)
    return Iterate(dx, ds, dlam, (cz - v.z * dx) / low, (cw + v.w * dx) / high, dnu)


def _step_length(v: Iterate, d: Iterate, low: Array, high: Array, share: float) -> Array:
    """Longest step up to 1 after which slacks and multipliers keep 1 - share of themselves."""
    fastest = np.zeros(len(v.x))
    for value, change in ((v.s, d.s), (v.lam, d.lam), (v.z, d.z), (v.w, d.w), (low, d.x), (high, -d.x)):
        fastest = np.maximum(fastest, np.maximum.reduce(-change / value, axis=1, initial=0.0))
    return np.where(fastest > share, share / np.maximum(fastest, 1e-300), 1.0)


def _advance(programs: Programs, here: InteriorState, step: Iterate, rows: Array) -> InteriorState:
    """Take the step, halved for the members whose optimality conditions would get much worse."""
    length = _step_length(here.v, step, *_gaps(programs, here.v.x), TO_BOUNDARY)
    before = here.residual.size
    reached = _stand(programs, here, step, length, rows)
    for tried in range(0, HALVINGS, TRIES):
        size = reached.residual.size
        bad = np.flatnonzero(~np.isfinite(size) | (size > 2 * before))
        if not len(bad):
            break
        several = np.repeat(bad, TRIES)
        lengths = (length[bad, None] * 0.5 ** np.arange(tried + 1, tried + TRIES + 1)).ravel()
        parts = _stand(programs, here.take(several), step.take(several), lengths, rows[several])
        sizes = parts.residual.size.reshape(-1, TRIES)
        good = np.isfinite(sizes) & (sizes <= 2 * before[bad, None])
        first = np.where(good.any(axis=1), good.argmax(axis=1), TRIES - 1)
        reached = _merge(reached, bad, parts.take(np.arange(len(bad)) * TRIES + first))
    return reached


def _stand(programs: Programs, here: InteriorState, step: Iterate, length: Array, rows: Array) -> InteriorState:
    v = here.v.moved(step, length)
    with np.errstate(all="ignore"):
        jet = programs.jet(v.x, rows)
        return InteriorState(v, jet, here.matrix, here.right, _residual(jet, v, here.matrix, here.right, programs))


def take(parts: Parts, rows: Array) -> Parts:
    """Record restricted to some members of the batch."""
    return replace(parts, **{f.name: getattr(parts, f.name)[rows] for f in fields(parts)})


def store(members: Parts, rows: Array, part: Parts) -> Parts:
    """Array `members` with the entries of `rows` replaced by `part`."""
    merged = {f.name: getattr(members, f.name).copy() for f in fields(members)}
    for name, array in merged.items():
        array[rows] = getattr(part, name)
    return replace(members, **merged)


def _merge(stand: InteriorState, rows: Array, part: InteriorState) -> InteriorState:
    return replace(
        stand,
        v=store(stand.v, rows, part.v),
        jet=store(stand.jet, rows, part.jet),
        residual=store(stand.residual, rows, part.residual),
    )
