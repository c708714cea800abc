"""Sums of a certificate over the step IR: what a round adds to them, in the user's units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from oco.compiler.certificates.form import CertificateForm, HessianForm
from oco.compiler.ir.program import DType
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Liftable, Value
from oco.compiler.lowering.points import Point, Rows
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.canonical import Equality, Inequality, StreamRange

LOSS, CONSTANT, SLOPE, CURVE, SIZE = "sum_loss", "sum_constant", "sum_slope", "sum_curve", "sum_size"
WORST, MEAN, BROKEN = "worst_data", "sum_data", "broken_rounds"
ROW_CONSTANT, ROW_SLOPES, ROW_SIZE = "sum_row_constant", "sum_row_slopes", "sum_row_size"
STREAMS, STREAM_SIZES = "sum_streams", "sum_stream_sizes"
WHOLE_CONSTANT, WHOLE_SLOPE, WHOLE_SIZE = "sum_whole_constant", "sum_whole_slope", "sum_whole_size"
DYNAMIC, IMPOSSIBLE = "sum_dynamic", "impossible_rounds"
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
    DYNAMIC: "regret to the best decision of each round, at most",
    IMPOSSIBLE: "number of rounds that no decision satisfies",
    POOL_SCORE: "how far the rounds of the pool were broken, over the length of their slopes",
    POOL_CONSTANT: "g_t(x_t) - <grad g_t(x_t), x_t> in these rounds",
    POOL_SLOPE: "grad g_t(x_t) in these rounds, a row each",
    WHOLE_CONSTANT: "the row constants with multipliers of each round: what the round broke, and the learner's own",
    WHOLE_SLOPE: "the row slopes with these multipliers",
    WHOLE_SIZE: "magnitudes of these terms",
}
UNSEEN = -1e300
"""Score of a place of the pool that no round has taken: its row is 0 <= 0."""
TINY = 1e-290
SCHEDULES = 2
"""Schedules of multipliers that differ from round to round: what the round broke, and the learner's own."""


@dataclass(frozen=True, eq=False)
class CertificateSums:
    """Fields of the state that a certificate is made of, and their update, traced with the round."""

    t: Tracer
    form: CertificateForm
    spec: TraceSpec

    @classmethod
    def of(cls, t: Tracer, form: CertificateForm, spec: TraceSpec) -> CertificateSums:
        """Sums of a form, for the problem of `spec`, which may be in other units."""
        standing = replace(spec, canonical=form.problem, scales=None, restarts=None, low_rank_layouts=())
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
        p = Problem(t, self.spec, seen, state["round"])
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
            scores = t.minimum(g / t.maximum(t.sqrt(t.sum(slopes * slopes, axis=1)), TINY), -UNSEEN)
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
