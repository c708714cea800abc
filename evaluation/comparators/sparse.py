"""Static comparators in which every round has variables for its kinks: one sparse program over all rounds, solved by Clarabel.

For losses of degree two at most and constraints that are affine but for lengths, over z = (x, s_1, ..., s_T):

    minimize x' P x / 2 + q z   subject to   A z <= b,  E z = e,  |U_k z + u_k|_2 <= z_k,  x in X.

The bound is that of `certificate.py`: multipliers of any sign error only make it smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from oco.compiler.facts.solver import solve
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, Name, walk
from oco.dsl.model import Timing
from oco.evaluation.comparators.base import Budget, Comparator, Prefixes
from oco.evaluation.comparators.certificate import Certified
from oco.evaluation.comparators.fixed import FEASIBLE, Setting, comparator_of
from oco.evaluation.comparators.functions import ALL, Rounds
from oco.evaluation.comparators.lift import Lifted, lift
from oco.evaluation.comparators.make import implicit
from oco.evaluation.comparators.region import Region, region
from oco.evaluation.comparators.structure import degree

Array = np.ndarray[Any, Any]
Others = Callable[[Rounds, Array, Budget], Prefixes]

CHUNK = 1 << 22  # numbers of a dense Jacobian that are held at once
METHOD = "Clarabel, one sparse program"
BYTES = 400  # of memory for each coefficient, in the solver and before it


@dataclass(frozen=True, eq=False)
class Rows:
    """matrix z + constant, a sparse block of affine functions."""

    matrix: Any
    constant: Array

    @classmethod
    def stacked(cls, parts: list[Rows], size: int) -> Rows:
        if not parts:
            return cls(sp.csr_array((0, size)), np.zeros(0))
        return cls(sp.vstack([p.matrix for p in parts], format="csr"), np.concatenate([p.constant for p in parts]))

    def at(self, z: Array) -> Array:
        return np.asarray(self.matrix @ z + self.constant)

    def to_size_one(self, width: Array) -> Rows:
        """Each row divided by the most that it changes in an entry of z between its bounds."""
        change = abs(self.matrix) @ sp.diags_array(width)
        largest = change.max(axis=1).toarray().ravel() if change.nnz else np.zeros(len(self.constant))
        scale = 1.0 / np.where(largest > 0, largest, np.maximum(np.abs(self.constant), 1.0))
        return Rows(sp.diags_array(scale) @ self.matrix, scale * self.constant)


@dataclass(frozen=True, eq=False)
class Lengths:
    """|u_k|_2 <= z[places_k], u_k the rows k * entries, ..., (k + 1) * entries - 1."""

    places: Array
    inner: Rows
    entries: int


@dataclass(frozen=True, eq=False)
class Program:
    """The program above; `lower` and `upper` enclose z."""

    square: Array
    linear: Array
    constant: float
    inequalities: Rows
    equations: Rows
    lengths: tuple[Lengths, ...]
    region: Region
    lower: Array
    upper: Array

    @property
    def common(self) -> int:
        return self.region.size

    def least(self, slope: Array) -> float:
        """min <c, z> over the set of x and the bounds of the others."""
        tail, n = slope[self.common :], self.common
        rest = np.minimum(tail * self.lower[n:], tail * self.upper[n:]).sum()
        return float(self.region.least(slope[None, :n])[0] + rest)


@dataclass(frozen=True, eq=False)
class _Builder:
    """Functions of (x, s_t) as rows over z. `rounds` are those of the lifted problem."""

    rounds: Rounds
    own: int
    names: frozenset[str] = field(default_factory=frozenset)

    @property
    def common(self) -> int:
        return self.rounds.size - self.own

    @property
    def size(self) -> int:
        return self.common + self.own * self.rounds.count

    def has_own(self, expr: Expr) -> bool:
        return any(isinstance(n, Name) and n.name in self.names for n in walk(expr))

    def each(self, expr: Expr) -> Rows:
        """Its entries, in every round where the rounds differ and else once."""
        rounds = self.rounds
        found = implicit(rounds, expr)
        count = rounds.count if rounds.enters(expr) or self.has_own(expr) else 1
        step = max(1, CHUNK // (found.entries * rounds.size))
        origin = np.zeros((1, rounds.size))
        parts = [self._rows(found.jet(origin, np.arange(a, min(a + step, count))), a) for a in range(0, count, step)]
        return Rows.stacked(parts, self.size)

    def _rows(self, jet: tuple[Array, Array], first: int) -> Rows:
        values, slopes = jet
        t, k, column = np.nonzero(slopes)
        entries = slopes.shape[1]
        place = np.where(column < self.common, column, column + (t + first) * self.own)
        shape = (values.size, self.size)
        return Rows(sp.csr_array((slopes[t, k, column], (t * entries + k, place)), shape=shape), values.ravel())

    def mean(self, expr: Expr) -> Rows:
        """Its mean over the rounds."""
        rows = self.each(expr)
        entries = int(np.prod(known(expr.shape), dtype=np.int64))
        count = len(rows.constant) // entries
        averaging = sp.kron(np.full((1, count), 1.0 / count), sp.eye_array(entries), format="csr")
        return Rows(averaging @ rows.matrix, averaging @ rows.constant)

    def square(self, expr: Expr) -> Array | None:
        """The Hessian of the sum over the rounds in x; None where it is not constant, or bends in a round's own variables."""
        order = degree(expr, self.rounds.variables)
        if order <= 1:
            return np.zeros((self.common, self.common))
        if order > 2:
            return None
        origin, every = np.zeros((1, self.rounds.size)), self.rounds.everything
        found = implicit(self.rounds, expr).added_hessian(origin, np.ones((len(every), 1)), every, ALL)[0]
        whole = np.diag(found) if found.ndim == 1 else found
        return None if np.any(whole[self.common :]) else np.asarray(whole[: self.common, : self.common])


def program(lifted: Lifted, rounds: Rounds, region: Region) -> Program | None:
    """The sparse program over all of `rounds`, which are the lifted problem's; None where something is not of its form.

    `region` is the set of the decisions and of the variables that all rounds share.
    """
    problem, own = lifted.problem, rounds.size - region.size
    build = _Builder(rounds, own, frozenset(lifted.each_round))
    affine = [d.expr for d in lifted.definitions if d.origin not in lifted.lengths]
    constraints = [c.expr for c in problem.constraints]
    square = build.square(problem.objective)
    if square is None or any(degree(e, rounds.variables) > 1 for e in (*affine, *constraints)):
        return None
    loss = build.each(problem.objective)
    times = rounds.count / len(loss.constant)
    tail = [b.domain for b in problem.blocks if b.name in lifted.each_round]
    lower, upper = (
        np.concatenate([end, np.tile(np.concatenate([getattr(d, name).ravel() for d in tail]), rounds.count)])
        for end, name in ((region.lower, "lower"), (region.upper, "upper"))
    )
    limits = [build.mean(c.expr) if c.timing is Timing.ON_AVERAGE else build.each(c.expr) for c in problem.inequalities]
    return Program(
        square,
        times * np.asarray(loss.matrix.sum(axis=0)).ravel(),
        times * float(loss.constant.sum()),
        Rows.stacked([*limits, *map(build.each, affine)], build.size),
        Rows.stacked([build.mean(c.expr) for c in problem.equalities], build.size),
        tuple(_lengths(build, name, u) for name, u in lifted.lengths.items()),
        region,
        lower,
        upper,
    )


def _lengths(build: _Builder, name: str, u: Expr) -> Lengths:
    inner = build.each(u)
    entries = int(np.prod(known(u.shape), dtype=np.int64))
    first = build.rounds.places[name].start
    cones = np.arange(len(inner.constant) // entries)
    return Lengths(first + cones * build.own if first >= build.common else np.array([first]), inner, entries)


def solve_sparse(p: Program, seconds: float) -> Certified | None:
    """The best z with a bound that needs no trust in the solver; None where it found none in time."""
    import cvxpy as cp

    width = p.upper - p.lower
    size = float(np.abs(p.linear * width).max(initial=0.0)) or 1.0
    limits, equations = p.inequalities.to_size_one(width), p.equations.to_size_one(width)
    y = cp.Variable(len(p.lower))
    z = cp.multiply(width, y) + p.lower
    values, vectors = np.linalg.eigh(p.square)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    bent = cp.sum_squares((root[values > 0] / np.sqrt(size)) @ z[: p.common]) / 2 if np.any(values > 0) else 0.0
    below = limits.matrix @ z + limits.constant <= 0
    equal = equations.matrix @ z + equations.constant == 0
    cones = [cp.SOC(z[c.places], cp.reshape(_at(c.inner, z), (c.entries, len(c.places)), order="F")) for c in p.lengths]
    inside = [
        constraint
        for block, place in p.region.parts()
        for constraint in block.domain.constraints(cp, cp.reshape(z[place], block.shape, order="C"))
    ]
    objective = cp.Minimize(bent + (p.linear / size) @ z)
    best = solve(objective, [below, equal, y[p.common :] >= 0, *cones, *inside], max(seconds, 0.1))
    if best is None or np.isinf(best):
        return None
    point = np.clip(z.value, p.lower, p.upper)
    lam, nu = size * np.maximum(below.dual_value, 0.0), size * np.asarray(equal.dual_value)
    return _certified(
        p, point, size, (limits, lam), (equations, nu), [size * np.asarray(c.dual_value[1]) for c in cones]
    )


def _at(rows: Rows, z: Any) -> Any:
    return rows.matrix @ z + rows.constant


def _certified(
    p: Program, z: Array, size: float, limits: tuple[Rows, Array], equations: tuple[Rows, Array], turned: list[Array]
) -> Certified:
    x = z[: p.common]
    bend = p.square @ x
    value = p.constant + p.linear @ z + bend @ x / 2
    slope = p.linear.copy()
    slope[: p.common] += bend
    lagrangian, worst = value, [0.0]
    for rows, weights in (limits, equations):
        at = rows.at(z)
        lagrangian += weights @ at
        slope += rows.matrix.T @ weights
        worst.append(float((at if rows is limits[0] else np.abs(at)).max(initial=0.0)))
    for cone, w in zip(p.lengths, turned):
        u = cone.inner.at(z)
        flat, tau = w.ravel(order="F"), np.linalg.norm(w.reshape(cone.entries, -1), axis=0)
        lagrangian -= tau @ z[cone.places] + flat @ u
        np.subtract.at(slope, cone.places, tau)
        slope -= cone.inner.matrix.T @ flat
        excess = np.linalg.norm(u.reshape(-1, cone.entries), axis=1) - z[cone.places]
        worst.append(float((excess / (p.upper - p.lower)[cone.places]).max(initial=0.0)))
    bound = lagrangian + p.least(slope) - slope @ z
    return Certified(
        z[None],
        np.array([value]),
        np.array([bound]),
        np.zeros((1, 0)),
        np.zeros((1, 0)),
        np.array([max(worst)]),
        np.array([size]),
    )


def sparse_static(rounds: Rounds, budget: Budget) -> Comparator | None:
    """The best decision for all rounds; None where the problem is not of this form, or was not solved within the budget."""
    began = perf_counter()
    lifted = lift(rounds) if region(rounds.problem).complete else None
    if lifted is None:
        return None
    shared = tuple(b for b in lifted.problem.blocks if b.name not in lifted.each_round)
    place = region(replace(lifted.problem, blocks=shared))
    made = program(lifted, Rounds.of(lifted.problem, rounds.streams, rounds.numbers), place)
    if made is None or BYTES * made.inequalities.matrix.nnz > budget.memory:
        return None
    found = solve_sparse(made, budget.seconds - (perf_counter() - began))
    if found is None or found.near[0] > FEASIBLE:
        return None
    setting = Setting(rounds, place, rounds, np.array([rounds.count]))
    return comparator_of(setting, found, began, METHOD)


def sparse_prefixes(rounds: Rounds, ends: Array, budget: Budget, others: Others) -> Prefixes:
    """The same for the first `ends` rounds, the longest first; `others` finds those that are not solved so."""
    began = perf_counter()
    found: dict[int, Comparator | None] = {}
    for end in map(int, ends[::-1]):
        left = Budget(budget.seconds - (perf_counter() - began), budget.memory)
        found[end] = sparse_static(rounds.first(end), left) if left.seconds > 0 else None
        if found[end] is None and len(found) == 1:
            break
    left = Budget(budget.seconds - (perf_counter() - began), budget.memory)
    solved = [c for end in ends if (c := found.get(int(end))) is not None]
    open_ = np.array([end for end in ends if found.get(int(end)) is None], dtype=np.int64)
    if not solved:
        return others(rounds, ends, left)
    rest = others(rounds.first(int(open_[-1])), open_, left) if len(open_) else None
    return _merged(ends, solved, rest, perf_counter() - began)


def _merged(ends: Array, solved: list[Comparator], rest: Prefixes | None, seconds: float) -> Prefixes:
    """Prefixes of which some were solved on their own, those that `rest` does not have."""
    own = np.ones(len(ends), dtype=bool) if rest is None else ~np.isin(ends, rest.rounds)

    def both(mine: list[Any], theirs: Any) -> Array:
        whole = np.empty((len(ends), *np.shape(mine[0])))
        whole[own] = mine
        if rest is not None:
            whole[~own] = theirs
        return whole

    others = iter(rest.status if rest else ())
    mine = iter(c.status for c in solved)
    names = [n for n in solved[0].decision if rest is None or n in rest.decision]
    return Prefixes(
        ends,
        both([c.value for c in solved], rest and rest.value),
        both([c.bound for c in solved], rest and rest.bound),
        tuple(next(mine if o else others) for o in own),
        {n: both([c.decision[n] for c in solved], rest and rest.decision[n]) for n in names},
        METHOD if rest is None else f"{METHOD}; {rest.method}",
        seconds,
    )
