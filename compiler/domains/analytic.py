"""Points within a polyhedron G w <= h and bounds of linear functions over it, by Newton's method on the logarithmic barrier.

The number of steps is bounded and so is what each takes, m d^2 multiplications: large polyhedra take their time in matrix products, where
linear programs take it in pivots. What is found are points within and bounds that hold, not a largest ball and not the least bounds.
"""

from __future__ import annotations

import math

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.dsl.records import dataclass

MOST_SQUARES = 200_000_000
"""Multiplications that a step of Newton's method may take."""

MOST_PRODUCTS = 4_000_000_000
"""Multiplications that the bounds of a set may take."""

HANDLED = 120
"""Multiplications of a round for each multiplier, beside matrix products."""

FEWEST, MOST = 8, 500
"""Rounds in which bounds are improved."""

LONGEST = 60
"""Steps of Newton's method to a centre."""

FAR = 1e6
"""Distance from 0, in units of the right sides, up to which an interior point is sought."""

BLOCK = 500_000
"""Multipliers that are improved at once."""


def cheap_to_solve(rows: int, dimension: int, share: float = 1.0) -> bool:
    """True if Newton's method on so many rows can be afforded with a share of what a model may take."""
    return rows * dimension**2 <= share * MOST_SQUARES


def interior_point(G: Floats, h: Floats) -> Floats | None:
    """A point with G w < h, from the ball of the greatest radius up to 1 that fits; None where none does."""
    m, d = G.shape
    if np.min(h) > 0:
        return np.zeros(d)
    M, b = np.vstack([np.column_stack([G, np.ones(m)]), np.append(np.zeros(d), 1.0)]), np.append(h, 1.0)
    z = np.append(np.zeros(d), float(np.min(h)) - 1.0)
    ridge = np.append(np.full(d, FAR**-2), 0.0)
    weight = 1.0 / max(1.0, -z[-1])
    for _ in range(LONGEST):
        slope = np.append(np.zeros(d), weight)
        z, decrement = _step(M, b, z, slope, ridge)
        if z[-1] > 0 and np.min(h - G @ z[:-1]) > 0:
            return z[:-1]
        if decrement < 0.5:
            if weight > 1e11:
                return None
            weight *= 10
    return None


def largest_ball(G: Floats, h: Floats, w: Floats) -> Floats:
    """From a point within, the centre of a ball whose radius is about a largest one's: at most a fifth less where the steps suffice."""
    m, d = G.shape
    M, z = np.column_stack([G, np.ones(m)]), np.append(w, float(np.min(h - G @ w)) / 2)
    weight = 1 / z[-1]
    for _ in range(LONGEST // 3):
        z, decrement = _step(M, h, z, np.append(np.zeros(d), weight))
        if decrement < 1:
            if m / weight < z[-1] / 5:
                break
            weight *= 4
    return max((w, z[:-1]), key=lambda x: float(np.min(h - G @ x)))


@dataclass(frozen=True, eq=False)
class Centre:
    """The analytic centre w of { G w <= h }, which makes the product of the `slack` greatest.

    `factor` is the lower triangular one of the Hessian G' S^-2 G there.
    """

    G: Floats
    h: Floats
    w: Floats
    slack: Floats
    factor: Floats

    @classmethod
    def of(cls, G: Floats, h: Floats, w: Floats) -> Centre | None:
        """From a point within. None where Newton's method finds none: the set is unbounded, or so long that it might as well be."""
        none = np.zeros(G.shape[1])
        for _ in range(LONGEST):
            w, decrement = _step(G, h, w, none)
            if not math.isfinite(decrement):
                return None
            if decrement < 1e-7:
                slack = h - G @ w
                factor = _factor(G / slack[:, None], None)
                return None if factor is None else cls(G, h, w, slack, factor)
        return None

    @property
    def spread(self) -> Floats:
        """Bound on the distance of the entries of an interior point from those of w: m times those of Dikin's ellipsoid.

        Boyd & Vandenberghe, Convex Optimization, section 8.5.3.
        """
        inverse = np.linalg.inv(self.factor)
        return np.asarray(len(self.h) * np.sqrt(np.sum(inverse**2, axis=0)))

    def greatest(self, C: Floats, share: float = 1.0) -> Floats:
        """Upper bounds of max <c, w> over the set, for the columns c of C of shape (d, k); with a share of what a model may take."""
        m, d = self.G.shape
        rounds = min(max(int(share * MOST_PRODUCTS) // (m * C.shape[1] * (2 * d + HANDLED)), FEWEST), MOST)
        each = max(1, BLOCK // m)
        from scipy.linalg import solve_triangular

        # Orthonormal columns that span those of S^-1 G, to which multipliers of S^-1 G have given products.
        Q = solve_triangular(self.factor, (self.G / self.slack[:, None]).T, lower=True).T
        target = solve_triangular(self.factor, C, lower=True)
        far = np.abs(self.w) + self.spread
        results = []
        for start in range(0, C.shape[1], each):
            mine = slice(start, start + each)
            multipliers = _improved(Q, target[:, mine], rounds) / self.slack[:, None]
            # By duality, <c, w> <= <lam, h> + <c - G' lam, w> for lam >= 0: an upper bound whatever was rounded.
            results.append(multipliers.T @ self.h + np.abs(C[:, mine] - self.G.T @ multipliers).T @ far)
        return np.concatenate(results)


def _improved(Q: Floats, target: Floats, rounds: int) -> Floats:
    """Multipliers mu >= 0 with Q' mu = target, a column each, of nearly the least sums.

    Ones are orthogonal to Q at the analytic centre, so whatever meets the equations becomes a multiplier when its least entry is added to
    all. Between such multipliers and those that are not negative the method of Douglas and Rachford goes to and fro (Eckstein &
    Bertsekas, Math. Prog. 55, 1992), overrelaxed by 1.6.
    """
    m = len(Q)
    x = Q @ target
    best, least = x, m * np.max(-x, axis=0)
    pull = np.maximum(least, np.finfo(float).tiny) / (10 * m)
    z, u = np.maximum(x, 0.0), np.zeros_like(x)
    for k in range(1, rounds + 1):
        v = z - u
        x = v - Q @ (Q.T @ v - target)
        if k % 8 == 0 or k == rounds:
            cost = x.sum(axis=0) + m * np.maximum(np.max(-x, axis=0), 0.0)
            better = cost < least
            best, least = np.where(better, x, best), np.where(better, cost, least)
        u += 1.6 * x - 0.6 * z
        z = np.maximum(u - pull, 0.0)
        u -= z
    return np.asarray(np.maximum(best + np.maximum(np.max(-best, axis=0), 0.0), 0.0))


def _step(M: Floats, b: Floats, z: Floats, slope: Floats, ridge: Floats | None = None) -> tuple[Floats, float]:
    """A step of Newton's method on -slope z - sum log(b - M z) + z' diag(ridge) z / 2, and how far it was from the least value.

    An infinite decrement says that the function falls without end, as far as rounding tells.
    """
    B = M / (b - M @ z)[:, None]
    factor = _factor(B, ridge)
    if factor is None:
        return z, math.inf
    from scipy.linalg import cho_solve

    g = B.sum(axis=0) - slope + (0.0 if ridge is None else ridge * z)
    direction = -cho_solve((factor, True), g)
    decrement = math.sqrt(max(float(-g @ direction), 0.0))
    if not np.isfinite(direction).all():
        return z, math.inf
    moved = z + _length(B @ direction, float(slope @ direction), decrement) * direction
    return (moved, decrement) if np.min(b - M @ moved) > 0 else (z, math.inf)


def _length(rates: Floats, gain: float, decrement: float) -> float:
    """Step length: 1 near the minimum, else about the least value along the line,
    by Newton's method within the set."""
    end = 1 / float(np.max(rates)) if np.max(rates) > 0 else math.inf
    if decrement < 0.25:
        return min(1.0, 0.9 * end)
    a = 1 / (1 + decrement)
    for _ in range(20):
        shares = rates / (1 - a * rates)
        change = (float(shares.sum()) - gain) / float(shares @ shares)
        a = min(max(a - change, a / 4), a + 0.9 * (end - a) if math.isfinite(end) else 10 * a)
        if abs(change) < 0.1 * a:
            break
    return a


def _factor(B: Floats, ridge: Floats | None) -> Floats | None:
    """The lower triangular factor of B' B with the ridge on its diagonal; None where rounding leaves it none."""
    H = B.T @ B
    if ridge is not None:
        H[np.diag_indices_from(H)] += ridge
    try:
        return np.asarray(np.linalg.cholesky(H))
    except np.linalg.LinAlgError:
        return None
