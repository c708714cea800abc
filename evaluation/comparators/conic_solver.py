"""Solution of the conic program of `conic.py` by Clarabel, with a bound that is proved without it."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from oco.compiler.prover.feasibility.solver import into_domain, solve
from oco.dsl.records import dataclass
from oco.evaluation.comparators.certificate import Certified
from oco.evaluation.comparators.conic import ConicProgram, NormBound

Array = np.ndarray[Any, Any]

TOLERANCE = 1e-12  # of Clarabel: slopes of nonlinear functions are as near to those at the optimum as the root of this
CLOSE = 1e-8  # of the size of the loss: a gap that needs no more work


@dataclass(frozen=True, eq=False)
class Answer:
    """Point with its bound, and the multipliers of each of the program's `limits`."""

    certified: Certified
    multipliers: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Duals:
    """Multipliers of limits and equations, and the matrices W of each family of norms (K, m, n)."""

    limits: tuple[Array, ...]
    equations: Array
    norms: tuple[Array, ...]


def solve_conic(p: ConicProgram, until: float) -> Answer | float | None:
    """Best z with a bound that does not rely on the solver, before the time `until`.

    Returns inf where the solver reports infeasibility, None where it reports nothing.

    Slopes at a point other than the optimum do not fit the multipliers of the optimum. Where the gap stays open, the
    program linearized at the point is solved as well; its multipliers fit, and its minimum is a lower bound for this
    program.
    """
    result = _solved(p, until)
    if not isinstance(result, Answer) or not p.nonlinear or perf_counter() > until:
        return result
    c = result.certified
    if c.f[0] - c.bound[0] <= CLOSE * max(abs(c.f[0]), c.size[0]) or not np.isfinite(c.f[0]):
        return result
    other = _solved(p.tangent(c.x[0]), until)
    if not isinstance(other, Answer):
        return result
    return replace(result, certified=replace(c, bound=np.maximum(c.bound, other.certified.bound)))


def _solved(p: ConicProgram, until: float) -> Answer | float | None:
    import cvxpy as cp

    width, middle = p.width, 0.5 * (p.lower + p.upper)
    size = float(np.abs(p.objective(middle)[1] * width).max(initial=0.0))
    size = size if np.isfinite(size) and size > 0 else 1.0
    y = cp.Variable(len(p.lower))
    z = cp.multiply(width, y) + p.lower
    factors = [1.0 / limits.function.changes(middle, width) for limits in p.limits]
    below = [cp.multiply(factor, limits.function.in_cvxpy(z)) <= 0 for limits, factor in zip(p.limits, factors)]
    scale = p.equations.changes(middle, width)
    equal = cp.multiply(1.0 / scale, p.equations.in_cvxpy(z)) == 0
    norms = [_norm(cp, bounded, z, width) for bounded in p.norms]
    inside = [
        constraint
        for block, place in p.region.parts()
        for constraint in block.domain.constraints(cp, cp.reshape(z[place], block.shape, order="C"))
    ]
    objective = cp.Minimize(_objective(cp, p, z, size))
    rest = [y[p.common :] >= 0, *(c for result in norms for c in result.constraints)]
    try:
        best = solve(objective, [*below, equal, *rest, *inside], max(until - perf_counter(), 0.1), TOLERANCE)
    except cp.error.DCPError:
        return None
    if best is None or np.isinf(best):
        return best
    duals = Duals(
        tuple(
            size * limits.ratio * factor * np.maximum(b.dual_value, 0.0)
            for limits, factor, b in zip(p.limits, factors, below)
        ),
        size * np.asarray(equal.dual_value) / scale,
        tuple(size * result.dual() for result in norms),
    )
    return certified(p, _repaired(p, np.clip(z.value, p.lower, p.upper)), size, duals)


def _objective(cp: Any, p: ConicProgram, z: Any, size: float) -> Any:
    values, vectors = np.linalg.eigh(p.square)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    nonlinear = cp.sum_squares((root[values > 0] / np.sqrt(size)) @ z[: p.common]) / 2 if np.any(values > 0) else 0.0
    loss = 0.0 if p.loss is None else p.loss.in_cvxpy(z)[0] * (p.space.rounds.count / size)
    return nonlinear + (p.linear / size) @ z + loss


@dataclass(frozen=True, eq=False)
class _Norm:
    """CVXPY constraints for a family of norms. The multipliers of the first are those of the matrices over `scale`,
    with a sign.
    """

    bounded: NormBound
    constraints: list[Any]
    scale: float

    def dual(self) -> Array:
        """Matrices W (K, m, n)."""
        b, first = self.bounded, self.constraints[0]
        if b.norm.second_order:
            return np.asarray(-first.dual_value[1].T.reshape(b.count, *b.shape) / self.scale)
        return np.asarray(first.dual_value).reshape(b.count, *b.shape) / self.scale


def _norm(cp: Any, b: NormBound, z: Any, width: Array) -> _Norm:
    scale = float(b.inner.changes(0 * width, width).max(initial=0.0)) or 1.0
    u, s = (b.inner.matrix @ z + b.inner.constant) / scale, z[b.places] / scale
    entries = b.shape[0] * b.shape[1]
    if b.norm.second_order:
        return _Norm(b, [cp.SOC(s, cp.reshape(u, (entries, b.count), order="F"))], scale)
    v = cp.Variable(entries * b.count)
    matrices = [cp.reshape(v[k * entries : (k + 1) * entries], b.shape, order="C") for k in range(b.count)]
    return _Norm(b, [u == v, *(b.norm.cvxpy(cp, m) <= s[k] for k, m in enumerate(matrices))], scale)


def _repaired(p: ConicProgram, z: Array) -> Array:
    """Decision projected onto its set, where bounds and equalities alone do not keep it there."""
    if p.region.complete:
        return z
    parts = p.region.parts()
    inside = into_domain(p.region.blocks, {b.name: z[place].reshape(b.shape) for b, place in parts})
    return np.concatenate([*(inside[b.name].ravel() for b, _ in parts), z[p.common :]])


def certified(p: ConicProgram, z: Array, size: float, duals: Duals) -> Answer:
    """Point z with the lower bound that these multipliers prove; `size` is the scale for judging the gap."""
    with np.errstate(all="ignore"):
        value, slope = p.objective(z)
        lagrangian, worst = value, [0.0]
        pairs = [(limits.function, w) for limits, w in zip(p.limits, duals.limits)]
        for function, weights in (*pairs, (p.equations, duals.equations)):
            at = function.at(z)
            lagrangian += float(weights @ at)
            slope += function.pulled(z, weights)
            off = np.abs(at) if function is p.equations else at
            worst.append(float((off / function.changes(z, p.width)).max(initial=0.0)))
        for bounded, w in zip(p.norms, duals.norms):
            tau = bounded.norm.dual(w)
            lagrangian += float(np.vdot(w, bounded.at(z)) - tau @ z[bounded.places])
            np.subtract.at(slope, bounded.places, tau)
            slope += bounded.inner.matrix.T @ w.ravel()
            worst.append(float((bounded.violation(z) / p.width[bounded.places]).max(initial=0.0)))
        bound = lagrangian + p.least(slope) - float(slope @ z)
    known, none = bool(np.isfinite(bound)), np.zeros((1, 0))
    result = Certified(
        z[None],
        np.array([value]),
        np.array([bound if known else -np.inf]),
        none,
        none,
        np.array([max(worst) if np.all(np.isfinite(worst)) else np.inf]),
        np.array([size]),
    )
    return Answer(result, duals.limits)
