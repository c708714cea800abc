"""Problems of which a certificate takes a lower bound (`least_loss.Summed`): all rounds together, from their sums, and one round alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from oco.compiler.algorithms.memory import Memory
from oco.compiler.certificates.curved_sums import curved
from oco.compiler.certificates.form import CertificateForm, HessianForm, apart, nonlinear_problem, stream_slopes
from oco.compiler.certificates.sums import (
    CONSTANT,
    CURVE,
    KINKS,
    MEAN,
    POOL_CONSTANT,
    POOL_SCORE,
    POOL_SLOPE,
    ROW_CONSTANT,
    ROW_SIZE,
    ROW_SLOPES,
    SIZE,
    SLOPE,
    STREAM_SIZES,
    STREAMS,
    WHOLE_CONSTANT,
    WHOLE_SIZE,
    WHOLE_SLOPE,
    WORST,
    CertificateSums,
    joined,
    matrix,
    point_of,
)
from oco.compiler.domains import Domain
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.canonical import Canonical, Equality, Inequality
from oco.compiler.problem.structure import Structure, is_affine
from oco.compiler.proximal.penalty import penalized_step
from oco.dsl import algebra
from oco.dsl.dims import known
from oco.dsl.expressions import Expr
from oco.dsl.magnitudes import TINY
from oco.dsl.records import dataclass
from oco.dsl.statements import Timing

LARGE = 1e6
"""Greatest multiplier of an exact step, in slopes of the loss over slopes of the constraint."""


@dataclass(frozen=True, eq=False)
class AllRounds:
    """Sum of the losses of so many rounds, and all that is known of a fixed decision, from the sums in a state."""

    sums: CertificateSums
    state: Mapping[str, Value]
    rounds: Value

    @property
    def t(self) -> Tracer:
        """Tracer of the sums."""
        return self.sums.t

    @property
    def form(self) -> CertificateForm:
        """Form of the sums."""
        return self.sums.form

    @property
    def spec(self) -> TraceSpec:
        """Specification of the trace of the sums."""
        return self.sums.spec

    @cached_property
    def domain(self) -> Domain:
        """Domain of the decisions, flattened."""
        return self.form.domain

    @property
    def bounds(self) -> Value:
        """Greatest magnitude of each entry of a decision, (d,)."""
        return self.sums.bounds

    @property
    def curved(self) -> bool:
        """True where losses are kept at the means of the streams."""
        return self.form.curvature is HessianForm.MEAN

    @property
    def steady(self) -> bool:
        """True where kinks of losses are summed, or the curvature of exp-concave ones."""
        return bool(self.form.kinks) or self.form.curvature is HessianForm.EXP_CONCAVE

    def curvature(self) -> Value | None:
        """Upper bound of the curvature of the loss; None where none is known."""
        t, parts = self.t, list[Value]()
        if CURVE in self.state:
            H = self.state[CURVE]
            parts.append(t.max(abs(H)) if H.ndim == 1 else t.max(t.sum(abs(H), axis=1)))
        if KINKS in self.state:
            parts.append(self.sums.kinked.curvature(self.state[KINKS][0]))
        return sum(parts[1:], parts[0]) if parts else None

    def loss_at(self, y: Value) -> tuple[Value, Value, Value]:
        """F(y), its gradient (d,) and the magnitude of its terms."""
        value, slope, size = self._smooth_at(y)
        if KINKS not in self.state:
            return value, slope, size
        kinked, own = self.sums.kinked.at(self.state[KINKS][0], self.state[KINKS][1], y)
        return value + kinked, slope + own, size

    def _smooth_at(self, y: Value) -> tuple[Value, Value, Value]:
        """Value, gradient and magnitude of the losses without their kinks."""
        state, rounds = self.state, self.rounds
        if self.form.curvature is HessianForm.MEAN:
            p, x, objective = self._at_means(), point_of(self.t, self.form.problem, y), (self.form.rest.objective,)
            value, slope = p.values(objective, x)[0], p.gradient(x).flat()
            size = abs(value) + abs(slope) @ self.bounds + self._stream_sizes(p, objective, x)[0] / rounds
            return rounds * value, rounds * slope, rounds * size + state[SIZE]
        k, s, size = state[CONSTANT], state[SLOPE], state[SIZE]
        if CURVE not in state:
            return k + s @ y, s, size
        Hy = curved(state[CURVE], y)
        return k + (s + 0.5 * Hy) @ y, s + Hy, size

    def most_loss(self) -> Value:
        """Upper bound of F over the domain; infinite where F is no sum of its own."""
        if self.form.curvature is HessianForm.MEAN:
            return self.t.lift(np.inf)
        state = self.state
        most = state[CONSTANT] + abs(state[SLOPE]) @ self.bounds
        if KINKS in state:
            most = most + self.sums.kinked.most(state[KINKS][0], state[KINKS][1])
        return most + curved(abs(state[CURVE]), self.bounds) @ self.bounds if CURVE in state else most

    def _at_means(self) -> Problem:
        """Problem of a round whose streams are at their means."""
        seen, start = dict[str, Value](), 0
        for s in self.form.averaged:
            size = math.prod(s.shape)
            seen[s.name] = self.t.reshape(self.state[STREAMS][start : start + size] / self.rounds, s.shape)
            start += size
        return Problem(self.t, self.sums.rest, seen, self.t.lift(1))

    def _stream_sizes(self, p: Problem, exprs: Sequence[Expr], x: Point) -> Value:
        """Sums over the rounds of the magnitudes of the terms in which streams enter functions at x, entry by entry (n,)."""
        t, parts = self.t, list[Value]()
        for e in exprs:
            slopes, count = stream_slopes(e), math.prod(known(e.shape))
            total, start = t.zeros((count,)), 0
            for s in self.form.averaged:
                size = math.prod(s.shape)
                if s.name in slopes:
                    own = algebra.broadcast(slopes[s.name], (*known(e.shape), *s.shape))
                    entries = t.reshape(p.values([own], x), (count, size))
                    total = total + abs(entries) @ self.state[STREAM_SIZES][start : start + size]
                start += size
            parts.append(total)
        return joined(t, parts)

    def constraints_at(self, y: Value) -> tuple[Value, Value, Value] | None:
        """Values (n,), gradients (n, d) and magnitudes (n,) at y of all that is known of a fixed decision; None where that is nothing.

        Those with multipliers of any sign come last.
        """
        t, f, state, rounds = self.t, self.form, self.state, self.rounds
        values, slopes, sizes = list[Value](), list[Value](), list[Value]()

        def add(g: Value, rows: Value, size: Value) -> None:
            values.append(g)
            slopes.append(rows)
            sizes.append(size)

        for memory, data in (
            (f.worst, state.get(WORST)),
            (f.mean, state[MEAN] / rounds if MEAN in state else None),
        ):
            if memory is not None:
                g, rows = self._remembered(memory, data, y)
                add(g, rows, abs(g) + abs(rows) @ self.bounds)
        if WHOLE_CONSTANT in state:
            add(state[WHOLE_CONSTANT] + state[WHOLE_SLOPE] @ y, state[WHOLE_SLOPE], state[WHOLE_SIZE])
        if POOL_SCORE in state:
            rows = state[POOL_SLOPE]
            add(state[POOL_CONSTANT] + rows @ y, rows, abs(state[POOL_CONSTANT]) + abs(rows) @ self.bounds)
        for equal in (False, True):
            if own := [c.expr for c in f.means if isinstance(c, Equality) is equal]:
                p, x = self._at_means(), point_of(self.t, self.form.problem, y)
                g, rows = p.values(own, x), matrix(t, p.slopes_of(own, x))
                add(g, rows, abs(g) + abs(rows) @ self.bounds + self._stream_sizes(p, own, x) / rounds)
            if (part := self._part(equal)) and ROW_CONSTANT in state:
                rows = state[ROW_SLOPES][part]
                add(state[ROW_CONSTANT][part] + rows @ y, rows, state[ROW_SIZE][part])
        if not values:
            return None
        return joined(t, values), joined(t, slopes), joined(t, sizes)

    def nonlinear_step(self, y: Value, c: Value, alpha: Value) -> Value | None:
        """argmin over the domain and its constraints of <c, u> + alpha |u - y|^2, where the form has a `nonlinear` problem."""
        f, t, state, rounds = self.form, self.t, self.state, self.rounds
        if f.nonlinear is None:
            return None
        seen = dict(self._at_means().seen)
        if f.worst is not None:
            seen |= self._data(f.worst, state.get(WORST))
        if f.mean is not None:
            data = state[MEAN] / rounds if MEAN in state else None
            seen |= {apart(name): v for name, v in self._data(f.mean, data).items()}
        return _exact_step(t, f.nonlinear, self.spec, seen, y, c, alpha, t.lift(1))

    def _data(self, memory: Memory, data: Value | None) -> dict[str, Value]:
        """Data of a memory by the streams of its constraints."""
        seen, start = dict[str, Value](), 0
        for name, expr, size in zip(memory.names, memory.observed, memory.sizes):
            assert data is not None
            seen[name] = self.t.reshape(data[start : start + size], known(expr.shape))
            start += size
        return seen

    def _remembered(self, memory: Memory, data: Value | None, y: Value) -> tuple[Value, Value]:
        """Values and gradients at y of the constraints of a memory."""
        p = Problem(self.t, replace(self.spec, canonical=memory.canonical), self._data(memory, data), self.t.lift(1))
        exprs: Sequence[Expr] = [c.expr for c in memory.canonical.inequalities]
        x = point_of(self.t, self.form.problem, y)
        return p.values(exprs, x), matrix(self.t, p.slopes_of(exprs, x))

    def _part(self, equal: bool) -> slice | None:
        """Entries of the rows that are equalities, or inequalities; None where there are none."""
        first, count = sum(c.size for c in self.form.rows if isinstance(c, Inequality)), self.form.row_count
        start, stop = (first, count) if equal else (0, first)
        return slice(start, stop) if stop > start else None

    @property
    def free(self) -> int:
        """Number of constraints of `constraints_at` whose multipliers may have any sign."""
        kept = (*self.form.means, *(self.form.rows if self.form.keeps_rows else ()))
        return sum(c.size for c in kept if isinstance(c, Equality))


class OneRound:
    """Loss of one round, and its constraints in each round, over the problem `p` of the round in the user's units."""

    def __init__(self, sums: CertificateSums, p: Problem) -> None:
        self.sums, self.p, self.t = sums, p, sums.t
        self.problem = sums.form.problem
        self.domain, self.bounds, self.free, self.steady = sums.form.domain, sums.bounds, 0, False
        self.exprs = [c.expr for c in self.problem.inequalities if c.timing is Timing.EACH_ROUND]
        self.nonlinear = nonlinear_problem(self.problem, self.exprs)
        self.curved = not is_affine(self.problem.objective, tuple(b.name for b in self.problem.blocks))

    def loss_at(self, y: Value) -> tuple[Value, Value, Value]:
        """Loss, gradient and magnitude at y."""
        x = point_of(self.t, self.problem, y)
        value, slope = self.p.loss(x), self.p.gradient(x).flat()
        return value, slope, 2.0 * abs(value) + abs(slope) @ self.bounds

    def constraints_at(self, y: Value) -> tuple[Value, Value, Value] | None:
        """Values, slopes and magnitudes at y of the constraints in each round."""
        if not self.exprs:
            return None
        x = point_of(self.t, self.problem, y)
        g, rows = self.p.values(self.exprs, x), matrix(self.t, self.p.slopes_of(self.exprs, x))
        return g, rows, abs(g) + abs(rows) @ self.bounds

    def most_loss(self) -> Value:
        """Upper bound of an affine loss over the domain; infinite for others."""
        if self.curved:
            return self.t.lift(np.inf)
        zero = self.t.zeros((self.problem.size,))
        value, slope, _ = self.loss_at(zero)
        return value + abs(slope) @ self.bounds

    def curvature(self) -> Value | None:
        """None: the curvature of a round is not bounded."""
        return None

    def nonlinear_step(self, y: Value, c: Value, alpha: Value) -> Value | None:
        """Exact step, where the constraints are sums of functions of single entries over a box."""
        if self.nonlinear is None:
            return None
        return _exact_step(self.t, self.nonlinear, self.sums.spec, self.p.seen, y, c, alpha, self.p.round)


def _exact_step(
    t: Tracer,
    problem: Canonical,
    spec: TraceSpec,
    seen: Mapping[str, Value],
    y: Value,
    c: Value,
    alpha: Value,
    now: Value | None,
) -> Value:
    """argmin of <c, u> + alpha |u - y|^2 over the domain and the constraints of a separable problem."""
    p = Problem(t, replace(spec, canonical=problem, structure=Structure.SEPARABLE), seen, now)
    x = point_of(t, problem, y)
    norms = t.sqrt(p.constraint_gradients(x).squared_norms())
    caps = LARGE * t.sqrt(c @ c) / t.maximum(norms, TINY)
    return penalized_step(p, x, point_of(t, problem, c), alpha, caps, p.constraints(x)).flat()
