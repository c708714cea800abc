"""Conic programs that are too large for an interior-point method, by the first-order method: a smooth loss with norms and
largest pieces of affine functions, under affine constraints and over the set of decisions.

    minimize f(x) + sum_k tau_k |U_k x + u_k| + sum_j tau_j max_i (a_ij x + b_ij)   subject to   G x <= g, E x = e, x in X

The multipliers of the pieces of one maximum are nonnegative and add up to tau_j, or to at most tau_j where 0 is a piece.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from oco.dsl.records import dataclass
from oco.evaluation.comparators.affine_rows import AffineRows
from oco.evaluation.comparators.conic import ConicProgram, NormBound
from oco.evaluation.comparators.conic_solver import Answer, Duals, certified
from oco.evaluation.comparators.first_order import Local, solve_split
from oco.evaluation.comparators.region import Region

Array = np.ndarray[Any, Any]

STEEP = 0.01  # of the largest weight over the largest value: the least first penalty
LITTLE = 1e-3  # of the change of the objective by its slope: the scale of gaps where the objective is about zero
DENSE = 0.25  # share of entries from which on a matrix is multiplied faster with its zeros
FIRM = 0.1  # times the slope of the objective over the width of the set: the first penalty on limits and equations
STIFF = 5.0  # times the curvature of q along the functions: the first penalty


@dataclass(frozen=True, eq=False)
class _Maxima:
    """Rows of pieces, grouped: `members` (J, I) are the rows of each maximum, padded by -1; `variables` (J,) bound them."""

    rows: AffineRows
    variables: Array
    members: Array

    @classmethod
    def of(cls, parts: list[AffineRows], size: int) -> _Maxima | None:
        """Maxima that the definitions of `parts` describe, over `size` variables; None where they nest."""
        rows = AffineRows.stacked(parts, parts[0].matrix.shape[1] if parts else size)
        others = sp.csr_array(rows.matrix[:, size:])
        if np.any(np.diff(others.indptr) != 1) or not np.all(np.abs(others.data) == 1.0):
            return None
        owner = others.indices.astype(np.int64) + size
        variables, group, counts = np.unique(owner, return_inverse=True, return_counts=True)
        order = np.argsort(group, kind="stable")
        within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        members = np.full((len(counts), counts.max(initial=1)), -1)
        members[group[order], within] = order
        return cls(AffineRows(sp.csr_array(rows.matrix[:, :size]), rows.constant), variables, members)

    def padded(self, y: Array) -> Array:
        """Entries (m,) by maximum (J, I), with -inf for what is not there."""
        return np.where(self.members >= 0, np.append(y, 0.0)[self.members], -np.inf)

    def onto(self, y: Array, total: Array, most: Array) -> Array:
        """Nearest y (m,) whose entries are nonnegative and add up to `total` (J,), or to less where `most` (J,) is True."""
        values = self.padded(y)
        falling = -np.sort(-values, axis=1)
        sums = np.cumsum(np.where(np.isfinite(falling), falling, 0.0), axis=1)
        levels = np.where(np.isfinite(falling), (sums - total[:, None]) / np.arange(1, values.shape[1] + 1), -np.inf)
        level = levels.max(axis=1, initial=-np.inf)
        level = np.where(most, np.maximum(level, 0.0), level)
        near = np.maximum(values - level[:, None], 0.0)
        result, there = np.empty_like(y), self.members >= 0
        result[self.members[there]] = near[there]
        return result


@dataclass(frozen=True, eq=False)
class Kinked:
    """Program in this form, over the first `region.size` of its variables; the others bound norms and maxima."""

    program: ConicProgram
    region: Region
    maxima: _Maxima
    limits: AffineRows

    @cached_property
    def kinks(self) -> AffineRows:
        """Rows of norms and maxima."""
        n = self.region.size
        parts = [AffineRows(b.inner.matrix[:, :n], b.inner.constant) for b in self.program.norms]
        return AffineRows.stacked([*parts, self.maxima.rows], n)

    @cached_property
    def bounds(self) -> AffineRows:
        """Rows of limits and equations."""
        return AffineRows.stacked([self.limits, self.program.equations], len(self.program.lower))

    @cached_property
    def units(self) -> Array:
        """Units of limits and equations, in which the penalty balances the slope of the objective."""
        x = self.region.project(self.region.start)
        values, width = self.kinks.at(x), self.region.diagonal
        pull = self.kinks.pulled(x, self._onto(self.penalty * values))
        slope = float(np.linalg.norm(self._smooth(x)[1] + pull)) or 1.0
        lengths = spla.norm(self.bounds.matrix, axis=1) if len(self.bounds.constant) else np.zeros(0)
        return np.asarray(np.where(lengths > 0, lengths, 1.0) * np.sqrt(self.penalty * width / (FIRM * slope)))

    @cached_property
    def changes(self) -> Array:
        """Changes of limits and equations over the bounds of the variables, in their units."""
        return np.asarray(self.bounds.changes(self.program.lower, self.program.width) / self.units)

    @cached_property
    def jacobian(self) -> Any:
        """Matrix (m, n) of kinks, then of limits and equations in their units; sparse where few entries are not zero."""
        scaled = sp.diags_array(1.0 / self.units) @ self.bounds.matrix[:, : self.region.size]
        rows = sp.csr_array(sp.vstack([self.kinks.matrix, scaled]))
        return rows.toarray() if rows.nnz > DENSE * np.prod(rows.shape) else rows

    @cached_property
    def constant(self) -> Array:
        """Constants (m,) of the rows of `jacobian`."""
        return np.concatenate([self.kinks.constant, self.bounds.constant / self.units])

    @cached_property
    def square(self) -> Any:
        """Hessian (n, n) of the quadratic part of the objective."""
        n = self.region.size
        return sp.csr_array(self.program.square[:n, :n])

    @cached_property
    def totals(self) -> Array:
        """Weights tau of the maxima (J,)."""
        return np.asarray(np.abs(self.program.linear[self.maxima.variables]))

    @cached_property
    def at_most(self) -> Array:
        """True for each maximum with the piece 0, which its variable has as lower bound (J,)."""
        variables = self.maxima.variables
        return np.asarray((self.program.lower[variables] == 0.0) & (self.program.linear[variables] >= 0))

    @cached_property
    def size(self) -> float:
        """Scale of the objective, to which tolerances refer: its size at a point of the region."""
        start = self.at(self.region.project(self.region.start))
        return max(abs(self.measured(start)[0]), LITTLE * self.program_size)

    @cached_property
    def program_size(self) -> float:
        """Change of the objective over the bounds of the variables, those of norms included, by its slope."""
        p = self.program
        return float(np.abs(p.objective(0.5 * (p.lower + p.upper))[1] * p.width).max(initial=0.0)) or 1.0

    @cached_property
    def penalty(self) -> float:
        """First penalty on the rows of `jacobian`, from the curvature of the objective along them and the weights of the kinks."""
        lengths, values = abs(self.kinks.matrix), np.abs(self.kinks.at(self.region.project(self.region.start)))
        length = float(lengths.sum(axis=0).max() * lengths.sum(axis=1).max()) or 1.0
        curved = float(abs(self.square).sum(axis=0).max(initial=0.0)) / length
        weights = np.concatenate([self.totals, *(self.weights(b) for b in self.program.norms)])
        steep = STEEP * float(weights.max()) / (float(values.max(initial=0.0)) or 1.0)
        return STIFF * max(curved, steep) or 1.0

    def weights(self, b: NormBound) -> Array:
        """Weights tau of a family of norms."""
        return np.asarray(self.program.linear[b.places])

    def parts(self, y: Array) -> tuple[list[Array], Array, Array, Array]:
        """Entries (m,) as matrices (K, m, n) of each family of norms, of the pieces, of limits and of equations."""
        families = [b.inner for b in self.program.norms]
        ends = np.cumsum([len(r.constant) for r in (*families, self.maxima.rows, self.limits)])
        *first, pieces, limits, equations = np.split(y, ends)
        return [p.reshape(b.count, *b.shape) for b, p in zip(self.program.norms, first)], pieces, limits, equations

    def at(self, x: Array) -> Local:
        """Smooth part and rows at x (n,), with derivatives."""
        f, df = self._smooth(x)
        return Local(f, df, self.jacobian @ x + self.constant, self.jacobian)

    def _smooth(self, x: Array) -> tuple[float, Array]:
        """Value and gradient of the objective without norms and maxima."""
        curved, linear = self.square @ x, self.program.linear[: self.region.size]
        f, df = self.program.constant + float((curved / 2 + linear) @ x), curved + linear
        if (loss := self.program.loss) is None:
            return f, df
        z, times = self.padded(x), np.full(1, float(self.program.space.rounds.count))
        with np.errstate(all="ignore"):
            return f + float(times @ loss.at(z)), df + loss.pulled(z, times)[: self.region.size]

    def onto(self, y: Array) -> Array:
        """Multipliers nearest to y (m,): in the dual balls of the kinks, not negative for limits, free for equations."""
        count = len(self.limits.constant)
        kinks, limits, equations = np.split(y, np.array([0, count]) + len(self.kinks.constant))
        return np.concatenate([self._onto(kinks), np.maximum(limits, 0.0), equations])

    def _onto(self, y: Array) -> Array:
        """Nearest multipliers of norms and maxima."""
        norms, pieces, *_ = self.parts(y)
        near = [b.norm.onto_dual_ball(w, self.weights(b)).ravel() for b, w in zip(self.program.norms, norms)]
        return np.concatenate([*near, self.maxima.onto(pieces, self.totals, self.at_most)])

    def measured(self, here: Local) -> tuple[float, float]:
        """Value of the objective, and the largest violation of a limit or an equation over its change."""
        norms, pieces, limits, equations = self.parts(here.v)
        off = np.concatenate([limits, np.abs(equations)]) / self.changes
        value = here.f + sum(float(self.weights(b) @ b.norm.value(v)) for b, v in zip(self.program.norms, norms))
        return value + float(self.totals @ self._largest(pieces)), float(off.max(initial=0.0))

    def _largest(self, pieces: Array) -> Array:
        largest = self.maxima.padded(pieces).max(axis=1, initial=-np.inf)
        return np.asarray(np.where(self.at_most, np.maximum(largest, 0.0), largest))

    def drawn_in(self, x: Array) -> Array:
        """Point between x and the start that satisfies the limits, by their convexity; x where the start breaks one."""
        start = self.region.project(self.region.start)
        here, there = (self.limits.at(self.padded(point)) for point in (x, start))
        if len(self.program.equations.constant) or np.any((here > 0) & (there >= 0)):
            return x
        broken = here > 0
        share = float((here[broken] / (here[broken] - there[broken])).max(initial=0.0))
        return np.asarray(x + share * (start - x))

    def padded(self, x: Array) -> Array:
        """Point x with zeros for the other variables."""
        return np.concatenate([x, np.zeros(len(self.program.lower) - len(x))])

    def whole(self, x: Array) -> Array:
        """Point x with the variables of norms and maxima equal to these."""
        z = self.padded(x)
        norms, pieces, *_ = self.parts(self.at(x).v)
        for b, v in zip(self.program.norms, norms):
            z[b.places] = b.norm.value(v)
        variables = self.maxima.variables
        z[variables] = np.where(self.program.linear[variables] >= 0, 1.0, -1.0) * self._largest(pieces)
        return z

    def solved(self, until: float) -> Answer:
        """Best point with its bound, before the time `until`."""
        p, result = self.program, solve_split(self, until)
        norms, pieces, limits, equations = self.parts(result.multipliers)
        first = len(limits)
        rows = np.concatenate([limits / self.units[:first], pieces])
        ends = np.cumsum([len(x.function.at(p.lower)) for x in p.limits])[:-1]
        each = tuple(np.split(rows, ends)) if p.limits else ()
        duals = Duals(each, equations / self.units[first:], tuple(norms))
        answer = certified(p, self.whole(self.drawn_in(result.x)), self.program_size, duals)
        bound = np.maximum(answer.certified.bound, result.bound)
        return replace(answer, certified=replace(answer.certified, bound=bound))


def kinked_program(p: ConicProgram, region: Region) -> Kinked | None:
    """Program over the decisions of `region`; None where it is of another form."""
    size, rows = region.size, [x.function for x in p.limits if isinstance(x.function, AffineRows)]
    refused = any(not b.domain.is_cheap("project") for b in region.blocks)
    own = {b.name for b in region.blocks}
    if refused or len(rows) < len(p.limits) or (p.loss and not p.loss.decisions <= own):
        return None
    first = sum(x.origin is not None for x in p.limits)
    limits, parts = AffineRows.stacked(rows[:first], len(p.lower)), rows[first:]
    maxima, affine = _Maxima.of(parts, size), [limits, p.equations, *(b.inner for b in p.norms)]
    if maxima is None or p.square[size:].any() or any(r.matrix[:, size:].nnz for r in affine):
        return None
    owners = np.concatenate([maxima.variables, *(b.places for b in p.norms)])
    if not len(owners) or len(np.unique(owners)) < len(owners) or len(owners) < len(p.lower) - size:
        return None
    rising = all(np.all(p.linear[b.places] >= 0) for b in p.norms)
    pull = AffineRows.stacked(parts, len(p.lower)).matrix[:, size:] @ p.linear[size:]
    return Kinked(p, region, maxima, limits) if rising and np.all(pull <= 0) else None
