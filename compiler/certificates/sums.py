"""Sums of a certificate over the step IR: what a round adds to them, in the user's units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from oco.compiler.algorithms.memory import Memory
from oco.compiler.certificates.form import CertificateForm, HessianForm, apart, stream_slopes
from oco.compiler.ir.program import DType
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Liftable, Value
from oco.compiler.lowering.points import Point, Rows
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.canonical import Equality, Inequality, StreamRange
from oco.compiler.problem.structure import Structure
from oco.compiler.proximal.penalty import penalized_step
from oco.dsl import algebra
from oco.dsl.dims import known
from oco.dsl.expressions import Expr

LOSS, CONSTANT, SLOPE, CURVE, SIZE = "sum_loss", "sum_constant", "sum_slope", "sum_curve", "sum_size"
WORST, MEAN, BROKEN = "worst_data", "sum_data", "broken_rounds"
ROW_CONSTANT, ROW_SLOPES, ROW_SIZE = "sum_row_constant", "sum_row_slopes", "sum_row_size"
STREAMS, STREAM_SIZES = "sum_streams", "sum_stream_sizes"
WHOLE_CONSTANT, WHOLE_SLOPE, WHOLE_SIZE = "sum_whole_constant", "sum_whole_slope", "sum_whole_size"
POOL_SCORE, POOL_CONSTANT, POOL_SLOPE = "pool_score", "pool_constant", "pool_slope"
SYMBOLS = {
    LOSS: "sum of f_t(x_t), for the certificate like all below",
    CONSTANT: "k of sum_t f_t(u) >= k + <s, u> + <u, H u> / 2",
    SLOPE: "s of it",
    CURVE: "H of it",
    SIZE: "sum of the magnitudes of its terms",
    WORST: "greatest values of the data of constraints in each round",
    MEAN: "sums of the data of constraints on average",
    BROKEN: "number of rounds in which each constraint was broken",
    ROW_CONSTANT: "sum of g_t(x_t) - <grad g_t(x_t), x_t>",
    ROW_SLOPES: "sum of grad g_t(x_t), a row an entry",
    ROW_SIZE: "sum of the magnitudes of these terms",
    STREAMS: "sums of the streams that enter a function which is affine in them",
    STREAM_SIZES: "sums of their magnitudes",
    POOL_SCORE: "how far the rounds of the pool were broken, over the length of their slopes",
    POOL_CONSTANT: "g_t(x_t) - <grad g_t(x_t), x_t> in these rounds",
    POOL_SLOPE: "grad g_t(x_t) in these rounds, a row each",
    WHOLE_CONSTANT: "the row constants with multipliers of each round: what the round broke, and the learner's own",
    WHOLE_SLOPE: "the row slopes with these multipliers",
    WHOLE_SIZE: "magnitudes of these terms",
}
UNSEEN = -1e300
"""Score of a place of the pool that no round has taken: its row is 0 <= 0."""
LARGE, TINY = 1e6, 1e-290
"""Greatest multiplier of an exact step, in slopes of the loss over slopes of the constraint."""
SCHEDULES = 2
"""Schedules of multipliers that differ from round to round: what the round broke, and the learner's own."""


@dataclass(frozen=True, eq=False)
class CertificateSums:
    """Fields of the state that a certificate is made of, and their update, traced with the round."""

    t: Tracer
    form: CertificateForm
    task: TraceSpec

    @classmethod
    def of(cls, t: Tracer, form: CertificateForm, task: TraceSpec) -> CertificateSums:
        """Sums of a form, for the problem of a task, which may be in other units."""
        standing = replace(task, canonical=form.problem, scales=None, restarts=None, rooms=())
        return cls(t, form, standing)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each field."""
        return shapes_of(self.form)

    def start(self) -> dict[str, Liftable]:
        """Sums before the first round, all zero."""
        zeros = {name: self.t.zeros(shape) if shape else 0.0 for name, shape in self.shapes.items()}
        unseen = {POOL_SCORE: self.t.full(UNSEEN, self.shapes[POOL_SCORE])} if POOL_SCORE in zeros else {}
        return {**zeros, **unseen}

    def after(
        self, state: Mapping[str, Value], x: Point, seen: Mapping[str, Value], own: Value | None
    ) -> dict[str, Value]:
        """Sums after a round of the decision x and the data `seen`, from those before it.

        own  the learner's multiplier of each entry of the constraints in each round, (n,), where it has them
        """
        t, f = self.t, self.form
        p = Problem(t, self.task, seen, state["round"])
        v, bounds = flat(t, x), self.bounds
        t.note("sums of the certificate")
        loss, slope = p.loss(x), flat(t, p.gradient(x))
        result, size = {LOSS: state[LOSS] + loss}, 2.0 * abs(loss) + abs(slope) @ bounds
        constant = loss - slope @ v
        if self.form.curved:
            H = self._hessian(p, x)
            Hv = curved(H, v)
            slope, constant = slope - Hv, constant + 0.5 * (Hv @ v)
            size = size + curved(abs(H), bounds) @ bounds
            result[CURVE] = state[CURVE] + H
        result |= {CONSTANT: state[CONSTANT] + constant, SLOPE: state[SLOPE] + slope, SIZE: state[SIZE] + size}
        if WORST in state and f.worst:
            data = p.values(f.worst.observed, x)
            first = t.eq(state["round"], 1)
            result[WORST] = t.where(first, data, t.maximum(state[WORST], data))
        if MEAN in state and f.mean:
            result[MEAN] = state[MEAN] + p.values(f.mean.observed, x)
        if STREAMS in state:
            data = joined(t, [self._stream(p, s) for s in f.averaged])
            result |= {STREAMS: state[STREAMS] + data, STREAM_SIZES: state[STREAM_SIZES] + abs(data)}
        if f.counted:
            result[BROKEN] = state[BROKEN] + t.to_float(p.values([c.expr for c in f.counted], x) > 0.0)
        if ROW_CONSTANT in state:
            constant, slopes, size = self._linearised(p, f.rows, x, v)[1:]
            result[ROW_CONSTANT] = state[ROW_CONSTANT] + constant
            result[ROW_SLOPES] = state[ROW_SLOPES] + slopes
            result[ROW_SIZE] = state[ROW_SIZE] + size
        return result | (self._each(state, p, x, v, own) if f.each else {})

    def _stream(self, p: Problem, stream: StreamRange) -> Value:
        value = p.seen[stream.name]
        flattened = self.t.reshape(value, (math.prod(stream.shape),))
        return flattened if flattened.dtype is DType.FLOAT else self.t.to_float(flattened)

    def _linearised(
        self, p: Problem, constraints: Sequence[Inequality | Equality], x: Point, v: Value
    ) -> tuple[Value, Value, Value, Value]:
        """Values at x of all entries (n,), constants (n,) and slopes (n, d) of their linearisations, and the terms' magnitudes (n,)."""
        exprs = [c.expr for c in constraints]
        g, slopes = p.values(exprs, x), matrix(self.t, p.slopes_of(exprs, x))
        return g, g - slopes @ v, slopes, abs(g) + abs(slopes) @ self.bounds

    def _each(self, state: Mapping[str, Value], p: Problem, x: Point, v: Value, own: Value | None) -> dict[str, Value]:
        """Sums and pool of the constraints that may have multipliers of their own in each round."""
        t = self.t
        g, constant, slopes, size = self._linearised(p, self.form.each, x, v)
        broken = t.maximum(g, 0.0)
        weights = t.stack(broken, broken if own is None else t.maximum(own, 0.0))
        result = {
            WHOLE_CONSTANT: state[WHOLE_CONSTANT] + weights @ constant,
            WHOLE_SLOPE: state[WHOLE_SLOPE] + weights @ slopes,
            WHOLE_SIZE: state[WHOLE_SIZE] + weights @ size,
        }
        if POOL_SCORE in state:
            t.note("the round enters the pool in the place of the one that was broken least")
            scores = g / t.maximum(t.sqrt(t.sum(slopes * slopes, axis=1)), TINY)
            entry, score, pool = t.argmax(scores), t.max(scores), state[POOL_SCORE]
            place = t.argmin(pool)
            enters = score > t.min(pool)
            result[POOL_SCORE] = t.where(enters, t.put(pool, score, place), pool)
            constants, rows = state[POOL_CONSTANT], state[POOL_SLOPE]
            result[POOL_CONSTANT] = t.where(enters, t.put(constants, constant[entry], place), constants)
            result[POOL_SLOPE] = t.where(enters, t.put(rows, slopes[entry], place), rows)
        return result

    @property
    def bounds(self) -> Value:
        """Greatest magnitude of each entry of a decision, (d,)."""
        parts = [np.maximum(abs(b.domain.lower), abs(b.domain.upper)) for b in self.form.problem.blocks]
        entries = [np.broadcast_to(part, b.shape).ravel() for part, b in zip(parts, self.form.problem.blocks)]
        return self.t.constant(np.concatenate(entries), "reach", "greatest magnitude of each entry of a decision")

    def _hessian(self, p: Problem, x: Point) -> Value:
        """Hessian of the round's loss: (d,) or (d, d)."""
        t, d, blocks = self.t, self.form.problem.size, self.form.problem.blocks
        entries = p.values(self.form.hessian, x)
        if self.form.curvature is HessianForm.DIAGONAL:
            return entries
        sizes, start, bands = [b.domain.size for b in blocks], 0, list[Value]()
        for m in sizes:
            row = list[Value]()
            for n in sizes:
                row.append(t.reshape(entries[start : start + m * n], (m, n)))
                start += m * n
            bands.append(row[0] if len(row) == 1 else t.concat(*row, axis=1))
        return t.reshape(bands[0] if len(bands) == 1 else t.concat(*bands), (d, d))

    # The summed problem, at a point.

    def loss_at(self, state: Mapping[str, Value], rounds: Value, y: Value) -> tuple[Value, Value, Value]:
        """F(y), its gradient (d,) and the magnitude of its terms."""
        if self.form.curvature is HessianForm.MEAN:
            p, x, objective = self._at_means(state, rounds), self.point(y), (self.form.problem.objective,)
            value, slope = p.values(objective, x)[0], flat(self.t, p.gradient(x))
            size = abs(value) + abs(slope) @ self.bounds + self._stream_sizes(p, objective, state, x)[0] / rounds
            return rounds * value, rounds * slope, rounds * size + state[SIZE]
        k, s, size = state[CONSTANT], state[SLOPE], state[SIZE]
        if CURVE not in state:
            return k + s @ y, s, size
        Hy = curved(state[CURVE], y)
        return k + (s + 0.5 * Hy) @ y, s + Hy, size

    def most_loss(self, state: Mapping[str, Value]) -> Value:
        """Upper bound of F over the domain; infinite where F is no sum of its own."""
        if self.form.curvature is HessianForm.MEAN:
            return self.t.lift(np.inf)
        most = state[CONSTANT] + abs(state[SLOPE]) @ self.bounds
        return most + curved(abs(state[CURVE]), self.bounds) @ self.bounds if CURVE in state else most

    def _at_means(self, state: Mapping[str, Value], rounds: Value) -> Problem:
        """Problem of a round whose streams are at their means."""
        seen, start = dict[str, Value](), 0
        for s in self.form.averaged:
            size = math.prod(s.shape)
            seen[s.name] = self.t.reshape(state[STREAMS][start : start + size] / rounds, s.shape)
            start += size
        return Problem(self.t, self.task, seen, self.t.lift(1))

    def _stream_sizes(self, p: Problem, exprs: Sequence[Expr], state: Mapping[str, Value], x: Point) -> Value:
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
                    total = total + abs(entries) @ state[STREAM_SIZES][start : start + size]
                start += size
            parts.append(total)
        return joined(t, parts)

    def constraints_at(self, state: Mapping[str, Value], rounds: Value, y: Value) -> tuple[Value, Value, Value] | None:
        """Values (n,), gradients (n, d) and magnitudes (n,) at y of all that is known of a fixed decision; None where that is nothing.

        Those with multipliers of any sign come last.
        """
        t, f = self.t, self.form
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
                p, x = self._at_means(state, rounds), self.point(y)
                g, rows = p.values(own, x), matrix(t, p.slopes_of(own, x))
                add(g, rows, abs(g) + abs(rows) @ self.bounds + self._stream_sizes(p, own, state, x) / rounds)
            if (part := self._part(equal)) and ROW_CONSTANT in state:
                rows = state[ROW_SLOPES][part]
                add(state[ROW_CONSTANT][part] + rows @ y, rows, state[ROW_SIZE][part])
        if not values:
            return None
        return joined(t, values), joined(t, slopes), joined(t, sizes)

    def bent_step(self, state: Mapping[str, Value], rounds: Value, y: Value, c: Value, alpha: Value) -> Value:
        """argmin over the domain and its constraints of <c, u> + alpha |u - y|^2, where the form has a `bent` problem."""
        f, t = self.form, self.t
        assert f.bent is not None
        seen = dict(self._at_means(state, rounds).seen)
        if f.worst is not None:
            seen |= self._data(f.worst, state.get(WORST))
        if f.mean is not None:
            data = state[MEAN] / rounds if MEAN in state else None
            seen |= {apart(name): v for name, v in self._data(f.mean, data).items()}
        task = replace(self.task, canonical=f.bent, structure=Structure.SEPARABLE)
        p, x = Problem(t, task, seen, t.lift(1)), self.point(y)
        norms = t.sqrt(p.constraint_gradients(x).squared_norms())
        caps = LARGE * t.sqrt(c @ c) / t.maximum(norms, TINY)
        return flat(t, penalized_step(p, x, self.point(c), alpha, caps, p.constraints(x)))

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
        p = Problem(self.t, replace(self.task, canonical=memory.canonical), self._data(memory, data), self.t.lift(1))
        exprs: Sequence[Expr] = [c.expr for c in memory.canonical.inequalities]
        x = self.point(y)
        return p.values(exprs, x), matrix(self.t, p.slopes_of(exprs, x))

    def point(self, y: Value) -> Point:
        """Decisions from a vector of all their entries."""
        parts, start = list[Value](), 0
        for b in self.form.problem.blocks:
            parts.append(self.t.reshape(y[start : start + b.domain.size], b.shape))
            start += b.domain.size
        return Point(tuple(parts))

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


def shapes_of(f: CertificateForm) -> dict[str, tuple[int, ...]]:
    """Shape of each sum of a form, by its field of the state."""
    d = f.problem.size
    shapes: dict[str, tuple[int, ...]] = {LOSS: (), CONSTANT: (), SLOPE: (d,), SIZE: ()}
    if f.curved:
        shapes[CURVE] = (d,) if f.curvature is HessianForm.DIAGONAL else (d, d)
    shapes |= {name: (sum(m.sizes),) for name, m in ((WORST, f.worst), (MEAN, f.mean)) if m and sum(m.sizes)}
    if f.averaged:
        count = sum(math.prod(s.shape) for s in f.averaged)
        shapes |= {STREAMS: (count,), STREAM_SIZES: (count,)}
    if f.rows and f.keeps_rows:
        count = f.row_count
        shapes |= {ROW_CONSTANT: (count,), ROW_SLOPES: (count, d), ROW_SIZE: (count,)}
    if f.each:
        shapes |= {WHOLE_CONSTANT: (SCHEDULES,), WHOLE_SLOPE: (SCHEDULES, d), WHOLE_SIZE: (SCHEDULES,)}
    if f.pooled:
        shapes |= {POOL_SCORE: (f.pooled,), POOL_CONSTANT: (f.pooled,), POOL_SLOPE: (f.pooled, d)}
    if f.counted:
        shapes[BROKEN] = (sum(c.size for c in f.counted),)
    return shapes


def flat(t: Tracer, x: Point) -> Value:
    """Entries of a point in one vector."""
    return joined(t, [t.reshape(b, (b.size,)) for b in x.blocks])


def matrix(t: Tracer, rows: Rows) -> Value:
    """Rows as a matrix (n, d)."""
    return joined(t, [t.reshape(m, (m.shape[0], m.size // m.shape[0])) for m in rows.blocks], axis=1)


def curved(H: Value, v: Value) -> Value:
    """H v, for a Hessian that is its diagonal (d,) or a matrix."""
    return H * v if H.ndim == 1 else H @ v


def joined(t: Tracer, parts: Sequence[Value], axis: int = 0) -> Value:
    """Parts one after another; the only one as it is."""
    return parts[0] if len(parts) == 1 else t.concat(*parts, axis=axis)
