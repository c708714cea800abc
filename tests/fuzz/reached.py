"""Curvature that functions of a model at random do reach: second differences of values by the independent evaluator, and climbing.

(f(x + h v) - 2 f(x) + f(x - h v)) / h^2 is an average of the second derivative along a unit vector v, so that where the segment lies in the
domain no Lipschitz constant of the gradient is below its size. A gradient changes across the affine hull of the domain as well: |H v| is
taken by differences of four values, a step beside the domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from fuzz.attack import Env
from fuzz.case import Case, Function
from fuzz.nodes import Array

INWARD = 1e-3
"""Share by which places are moved towards the inner centre, where nothing else is given; steps are half of that share of the inner
radius."""
POWERS = 4
"""Power iterations where there are more directions than `WHOLE`."""
ROUNDING = 1e2 * float(np.finfo(np.longdouble).eps)
"""Share of the largest number in the making of a value that values in extended precision may be off by."""
WHOLE = 8
"""Directions of the domain up to which a whole Hessian is taken by differences."""


@dataclass(frozen=True, eq=False)
class Spot:
    """A decision with room around it, a round's streams, the round, and a direction of length 1."""

    x: Env
    streams: Env
    t: float
    v: Array


class Curved:
    """Second differences of one function of a case along the domain."""

    def __init__(self, case: Case, f: Function, inward: float) -> None:
        self.case, self.f, self.blocks, self.inward = case, f, case.problem.blocks, inward
        self.step = inward / 2 * min(b.domain.inner_radius for b in self.blocks)
        self.basis = _basis(case)

    def at(self, spot: Spot, share: float, v: Array) -> tuple[np.longdouble, float]:
        """The value some steps along v, and the size of the numbers that it was worked out from."""
        move, k, env = np.longdouble(share) * np.longdouble(self.step) * v, 0, dict(spot.streams)
        for b in self.blocks:
            env[b.name] = spot.x[b.name] + move[k : k + b.domain.size].reshape(b.shape)
            k += b.domain.size
        return self.f(env, spot.t), self.f.largest

    def second(self, spot: Spot, v: Array) -> float:
        """|v' H v|, averaged over the segment and less what rounding may add; 0 where values are not finite."""
        values = [self.at(spot, share, v) for share in (-1.0, 0.0, 1.0)]
        size = max(s for _, s in values)
        bend = abs(values[0][0] - 2 * values[1][0] + values[2][0]) - ROUNDING * size
        result = float(bend / np.longdouble(self.step) ** 2)
        return max(0.0, result) if np.isfinite(result) else 0.0

    def whole(self, spot: Spot) -> float:
        """The largest |H v| over directions v of the domain, entries averaged over squares along and across; 0 where one is not finite."""
        if len(self.basis) <= WHOLE:
            columns = np.array([self.image(spot, v) for v in self.basis])
            return float(np.linalg.norm(columns, 2)) if np.isfinite(columns).all() else 0.0
        best, v = 0.0, spot.v
        for _ in range(POWERS):
            image = self.image(spot, v)
            along = self.basis.T @ (self.basis @ image)
            if not np.isfinite(image).all() or not np.any(along):
                break
            best, v = max(best, float(np.linalg.norm(image))), along / np.linalg.norm(along)
        return best

    def image(self, spot: Spot, v: Array) -> Array:
        """H v, entry by entry."""
        return np.array([self._mixed(spot, v, e) for e in np.eye(len(v))], dtype=np.float64)

    def _mixed(self, spot: Spot, v: Array, e: Array) -> np.longdouble:
        """e' H v by differences of four values; 0 where rounding may be all of it."""
        corners = [
            (sign, self.at(spot, 0.5, a * v + b * e))
            for a, b, sign in ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
        ]
        bend = sum(sign * value for sign, (value, _) in corners)
        size = max(size for _, (_, size) in corners)
        return bend / np.longdouble(self.step) ** 2 if abs(bend) > 4 * ROUNDING * size else np.longdouble(0.0)

    def steepest(self, spot: Spot) -> Spot:
        """The spot with the direction of the largest second derivative: of the whole Hessian, or the best single one."""
        rows, n = self.basis, len(self.basis)
        if n > WHOLE:
            return max((Spot(spot.x, spot.streams, spot.t, v) for v in rows), key=lambda s: self.second(s, s.v))
        middle = self.at(spot, 0.0, rows[0])[0]
        single = [[self.at(spot, sign, v)[0] for sign in (-1.0, 1.0)] for v in rows]
        hessian = np.zeros((n, n))
        for i in range(n):
            hessian[i, i] = single[i][0] - 2 * middle + single[i][1]
            for j in range(i):
                both = [self.at(spot, sign, rows[i] + rows[j])[0] for sign in (-1.0, 1.0)]
                whole = both[0] - 2 * middle + both[1]
                own = sum(single[k][0] - 2 * middle + single[k][1] for k in (i, j))
                hessian[i, j] = hessian[j, i] = (whole - own) / 2
        if not np.isfinite(hessian).all():
            return spot
        values, vectors = np.linalg.eigh(hessian)
        v = vectors[:, np.argmax(np.abs(values))] @ rows
        return Spot(spot.x, spot.streams, spot.t, v / np.linalg.norm(v))

    def uphill(self, spot: Spot, rng: np.random.Generator) -> Spot:
        """The spot with the decision, or a part of the way to it, at which the linearization of the second difference is largest."""
        here, moved, k = self.second(spot, spot.v), {}, 0
        share = np.longdouble(rng.choice((1.0, 1.0, 0.5, 0.1)))
        slopes = np.array([self.second(self.shifted(spot, e), spot.v) - here for e in np.eye(len(spot.v))])
        for b in self.blocks:
            slope = slopes[k : k + b.domain.size].reshape(b.shape)
            k += b.domain.size
            moved[b.name] = spot.x[b.name]
            if np.any(slope):
                moved[b.name] = spot.x[b.name] + share * (b.domain.lmo_array(-slope) - spot.x[b.name])
        return Spot(moved_in(self.case, moved, self.inward), spot.streams, spot.t, spot.v)

    def shifted(self, spot: Spot, direction: Array) -> Spot:
        """The spot half a step along a direction of any entries: for slopes, not for bounds."""
        x, k = {}, 0
        for b in self.blocks:
            part = direction[k : k + b.domain.size].reshape(b.shape)
            x[b.name], k = spot.x[b.name] + np.longdouble(self.step) / 2 * part, k + b.domain.size
        return Spot(x, spot.streams, spot.t, spot.v)


def _basis(case: Case) -> Array:
    """Orthonormal directions along which the domain extends, in rows."""
    parts = []
    for b in case.problem.blocks:
        along = np.stack([np.ravel(b.domain.tangent(e.reshape(b.shape))) for e in np.eye(b.domain.size)])
        u, s, _ = np.linalg.svd(along.T)
        parts.append(u[:, s > 1e-9].T)
    total = sum(p.shape[1] for p in parts)
    rows, k = [], 0
    for p in parts:
        for row in p:
            whole = np.zeros(total)
            whole[k : k + p.shape[1]] = row
            rows.append(whole)
        k += p.shape[1]
    return np.array(rows)


def moved_in(case: Case, x: Mapping[str, Array], share: float) -> Env:
    """A decision moved towards the inner centres, so that it has room around it."""
    centres = {b.name: np.asarray(b.domain.inner_centre, dtype=np.longdouble) for b in case.problem.blocks}
    return {n: v + np.longdouble(share) * (centres[n] - v) for n, v in x.items()}


def curvature(case: Case, f: Function, starts: int = 12, steps: int = 24, inward: float = INWARD) -> float | None:
    """The largest second difference that starts and climbing come to; None where the domain has no room for differences."""
    if not case.problem.blocks or min(b.domain.inner_radius for b in case.problem.blocks) <= 1e-6:
        return None
    rng, curved = case.rng(6), Curved(case, f, inward)
    if not len(curved.basis):
        return None

    def spot() -> Spot:
        v = rng.normal(size=len(curved.basis)) @ curved.basis
        t = float(rng.choice(case.rounds))
        return Spot(moved_in(case, case.decisions(rng), inward), case.streams(rng), t, v / np.linalg.norm(v))

    spots = sorted((spot() for _ in range(starts)), key=lambda s: -curved.second(s, s.v))
    best, value = spots[0], curved.second(spots[0], spots[0].v)
    for s in spots[:4]:
        trial = curved.steepest(s)
        if (reached := curved.second(trial, trial.v)) > value:
            best, value = trial, reached
    for k in range(steps):
        trial = curved.uphill(best, rng) if k % 4 == 1 else _moved(best, spot(), rng)
        if k % 4 == 3:
            trial = curved.steepest(trial)
        if (reached := curved.second(trial, trial.v)) > value:
            best, value = trial, reached
    last = curved.steepest(best)
    if curved.second(last, last.v) >= value:
        best, value = last, curved.second(last, last.v)
    if len(curved.basis) == len(best.v) <= WHOLE:
        return value
    return max(value, curved.whole(best))


def _moved(spot: Spot, other: Spot, rng: np.random.Generator) -> Spot:
    """The spot with some of the decision, of a stream or of the round of another."""
    draw = rng.random()
    if draw < 0.4 or not spot.streams:
        share = float(rng.choice((1.0, 0.3)))
        x = {n: spot.x[n] + np.longdouble(share) * (other.x[n] - spot.x[n]) for n in spot.x}
        return Spot(x, spot.streams, spot.t, spot.v)
    if draw < 0.9:
        name = str(rng.choice(list(spot.streams)))
        mask = rng.random(np.shape(spot.streams[name])) < rng.choice((0.3, 1.0))
        streams = {**spot.streams, name: np.where(mask, other.streams[name], spot.streams[name])}
        return Spot(spot.x, streams, spot.t, spot.v)
    return Spot(spot.x, spot.streams, other.t, spot.v)
