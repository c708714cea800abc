"""Sums of a certificate over the step IR: what a round adds to them, in the user's units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from oco.compiler.certificates.curved_sums import curved, exp_concave_expansion
from oco.compiler.certificates.form import CertificateForm, HessianForm
from oco.compiler.certificates.kinked_losses import PARTS, KinkedSums
from oco.compiler.ir.program import DType
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.canonical import Canonical, Equality, Inequality, StreamRange
from oco.compiler.theory.scales import Scales
from oco.dsl.records import dataclass

LOSS, CONSTANT, INNER, SIZE = "certificate_loss", "certificate_constant", "certificate_inner", "certificate_size"
SLOPE, CURVE = "sum_slope", "sum_curve"
WORST, MEAN, BROKEN = "worst_data", "sum_data", "certificate_broken"
ROW_CONSTANT, ROW_SLOPES, ROW_SIZE = "sum_row_constant", "sum_row_slopes", "sum_row_size"
STREAMS, STREAM_SIZES = "sum_streams", "sum_stream_sizes"
WHOLE_CONSTANT, WHOLE_SLOPE, WHOLE_SIZE = "sum_whole_constant", "sum_whole_slope", "sum_whole_size"
DYNAMIC, IMPOSSIBLE = "sum_dynamic", "impossible_rounds"
POOL_SCORE, POOL_CONSTANT, POOL_SLOPE = "pool_score", "pool_constant", "pool_slope"
SUMS, POOL, KINKS = "certificate_sums", "certificate_pool", "certificate_kinks"
SYMBOLS = {
    LOSS: "losses for the certificate, summed; of affine losses that are counted from a point, the losses at that point",
    INNER: "inner products of the slopes of affine losses with the rule's decision, for the certificate, summed",
    CONSTANT: "constants of what losses are at least, for the certificate, summed",
    SIZE: "magnitudes of the terms of losses, for the certificate, summed",
    BROKEN: "number of rounds in which the constraint was broken, for the certificate",
    SUMS: "sums over the rounds for the certificate: what is known of losses and constraints",
    WORST: "greatest values of the data of constraints in each round, for the certificate",
    POOL: "rounds that were broken most, for the certificate: how far over the length of the slopes, constant and slopes, a row each",
    KINKS: "weights and weighted offsets of the kinks of losses, for the certificate, summed by entries and parts of their ranges",
    CURVE: "curvature of exp-concave losses, for the certificate, summed",
    DYNAMIC: "regret to the best decision of each round, at most",
    IMPOSSIBLE: "number of rounds that no decision satisfies",
}
UNSEEN = -1e300
"""Score of a place of the pool that no round has taken: its row is 0 <= 0."""
TINY = 1e-290
PASSES = 3.0
"""Terms of which an affine loss that is counted from c is made: at c, what c and u add to it."""
SCHEDULES = 2
"""Schedules of multipliers that differ from round to round: what the round broke, and the learner's own."""


@dataclass(frozen=True, eq=False)
class CertificateSums:
    """Fields of the state that a certificate is made of, and their update, traced with the round.

    scales  units of the rule, where a decision is x = c + R u but for rounding, u the rule's own: an affine loss is then
            f(c) + R <slope, u>, so that x is not computed for its sums; None: losses are taken at x
    """

    t: Tracer
    form: CertificateForm
    spec: TraceSpec
    scales: Scales | None = None

    @classmethod
    def of(cls, t: Tracer, form: CertificateForm, spec: TraceSpec) -> CertificateSums:
        """Sums of a form, for the problem of `spec`, which may be in other units."""
        standing = replace(spec, canonical=form.problem, scales=None, restarts=None, low_rank_layouts=())
        return cls(t, form, standing)

    @cached_property
    def rest(self) -> TraceSpec:
        """Specification of the problem without the kinks of its loss that are summed apart."""
        return replace(self.spec, canonical=self.form.rest)

    @cached_property
    def kinked(self) -> KinkedSums:
        """Sums of these kinks."""
        return KinkedSums(self.t, self.form.kinks, self.bounds)

    def counted_from(self, scales: Scales | None) -> CertificateSums:
        """Sums whose losses are counted from the point c of the rule's units, where they are affine."""
        f = self.form
        affine = f.exact and f.curvature is HessianForm.NONE
        return replace(self, scales=scales) if affine else self

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each field of the state: a number is one of its own, since adding numbers costs least."""
        f, width = self.form, self.form.problem.size
        shapes: dict[str, tuple[int, ...]] = {name: () for name, shape in self.parts.items() if not shape}
        shapes[SUMS] = (sum(math.prod(shape) for shape in self.parts.values() if shape),)
        shapes |= {KINKS: (2, len(self.kinked.columns), PARTS)} if f.kinks else {}
        shapes |= {CURVE: (width, width)} if f.curvature is HessianForm.EXP_CONCAVE else {}
        worst = {WORST: (self._worst,) if self._worst > 1 else ()} if self._worst else {}
        return shapes | worst | ({POOL: (f.pooled, width + 2)} if f.pooled else {})

    @property
    def _worst(self) -> int:
        """Number of data of which the worst are kept."""
        return sum(self.form.worst.sizes) if self.form.worst else 0

    @cached_property
    def parts(self) -> dict[str, tuple[int, ...]]:
        """Shape of each sum; the arrays stand in `SUMS` in this order."""
        shapes = shapes_of(self.form)
        if self.scales is not None:
            del shapes[CONSTANT]
            shapes[INNER] = ()
            if self.form.homogeneous:
                del shapes[LOSS]
        return shapes

    def start(self) -> dict[str, Value]:
        """Fields before the first round: zeros, worst data below all others, and a pool that every round enters."""
        t, fields = self.t, {name: self.t.zeros(shape) for name, shape in self.shapes.items()}
        if WORST in fields:
            fields[WORST] = t.full(UNSEEN, self.shapes[WORST])
        if POOL in fields:
            fields[POOL] = t.put(fields[POOL], UNSEEN, t.iota(self.form.pooled), 0)
        return fields

    def unpacked(self, state: Mapping[str, Value], rounds: Value) -> dict[str, Value]:
        """All that the fields hold of so many rounds, by name, and what is the same in each of them."""
        result, start = dict[str, Value](), 0
        for name, shape in self.parts.items():
            size = math.prod(shape)
            result[name] = self.t.reshape(state[SUMS][start : start + size], shape) if shape else state[name]
            start += size if shape else 0
        if self.scales is not None:
            result |= self._affine_losses(result)
        if self.form.steady_hessian:
            H = self._hessian(Problem(self.t, self.rest, {}, None), point_of(self.t, self.form.problem, self.bounds))
            result[CURVE] = rounds * H
            result[SIZE] = result[SIZE] + rounds * (curved(abs(H), self.bounds) @ self.bounds)
        result |= {name: state[name] for name in (KINKS, CURVE) if name in state}
        if WORST in state:
            worst = self.t.reshape(state[WORST], (self._worst,))
            result[WORST] = self.t.where(worst > UNSEEN, worst, 0.0)
        if POOL in state:
            pool = state[POOL]
            result |= {POOL_SCORE: pool[:, 0], POOL_CONSTANT: pool[:, 1], POOL_SLOPE: pool[:, 2:]}
        return result

    def _origin(self) -> Value:
        """Point c of the rule's units, (d,)."""
        assert self.scales is not None
        parts = zip(self.scales.origins, self.form.problem.blocks, strict=True)
        entries = [np.broadcast_to(origin, b.shape).ravel() for origin, b in parts]
        return self.t.constant(np.concatenate(entries), "counted_from", "decision from which losses are counted")

    def _affine_losses(self, sums: Mapping[str, Value]) -> dict[str, Value]:
        """Sums of the losses, of their constants and of their magnitudes, of those that are counted from c."""
        assert self.scales is not None
        linear = sums[SLOPE] @ self._origin()
        at_origin = sums.get(LOSS, linear)
        loss = at_origin + float(self.scales.radius) * sums[INNER]
        return {LOSS: loss, CONSTANT: at_origin - linear, SIZE: PASSES * sums[SIZE]}

    def of_round(self, p: Problem, x: Point, own: Value | None, u: Point | None = None) -> dict[str, Value]:
        """Terms of a round with the decision x, by field: numbers and `SUMS` of them are added up.

        own  the learner's multiplier of each entry of the constraints in each round, (n,), where it has them
        u    the decision in the rule's units, where losses are counted from a point of them
        """
        t, f = self.t, self.form
        v = x.flat()
        if self.scales is not None and u is not None:
            result = self._affine(p, u)
            return self._whole(result | self._constraints(p, x, v, own))
        q, result = Problem(t, self.rest, p.seen, p.round), {LOSS: p.loss(x)}
        size = abs(result[LOSS])
        if f.kinks:
            result[KINKS], kinked = self.kinked.of_round(p, x, v)
            size = size + kinked
        terms, smooth = self._quadratic(q) if f.quadratic else self._smooth(q, x, v)
        result |= {**terms, SIZE: size + smooth}
        return self._whole(result | self._constraints(p, x, v, own))

    def _quadratic(self, p: Problem) -> tuple[dict[str, Value], Value]:
        """Terms of a quadratic loss, which are its value and gradient at 0 and its Hessian where that changes, and their magnitude."""
        zero = point_of(self.t, self.form.problem, self.t.zeros((self.form.problem.size,)))
        loss, slope = p.loss(zero), p.gradient(zero).flat()
        result, size = {CONSTANT: loss, SLOPE: slope}, abs(loss) + abs(slope) @ self.bounds
        if not self.form.steady_hessian:
            result[CURVE] = self._hessian(p, zero)
            size = size + curved(abs(result[CURVE]), self.bounds) @ self.bounds
        return result, size

    def _smooth(self, p: Problem, x: Point, v: Value) -> tuple[dict[str, Value], Value]:
        """Terms of a loss that is linearised at x, with its curvature where it is exp-concave, and their magnitude."""
        f, loss, slope = self.form, p.loss(x), p.gradient(x).flat()
        size = abs(loss) + abs(slope) @ self.bounds
        if f.curvature is HessianForm.MEAN:
            return {}, size
        if f.curvature is not HessianForm.EXP_CONCAVE:
            return {CONSTANT: loss - slope @ v, SLOPE: slope}, size
        part = matrix(self.t, p.slopes_of([f.nonlinear_loss], x))[0]
        e = exp_concave_expansion(self.t, f.domain, f.theta, loss, slope, part, v, self.bounds)
        return {CONSTANT: e.constant, SLOPE: e.slope, CURVE: e.H}, size + e.size

    def _affine(self, p: Problem, u: Point) -> dict[str, Value]:
        """Terms of an affine loss, counted from c."""
        c = point_of(self.t, self.form.problem, self._origin())
        slope = p.gradient(c).flat()
        result, size = {INNER: slope @ u.flat(), SLOPE: slope}, abs(slope) @ self.bounds
        if LOSS in self.parts:
            result[LOSS] = p.loss(c)
            size = abs(result[LOSS]) + size
        return {**result, SIZE: size}

    def _constraints(self, p: Problem, x: Point, v: Value, own: Value | None) -> dict[str, Value]:
        """Terms of all else than the loss."""
        t, f, result = self.t, self.form, dict[str, Value]()
        if f.worst and f.worst.observed:
            result[WORST] = t.reshape(p.values(f.worst.observed, x), self.shapes[WORST])
        if f.mean and f.mean.observed:
            result[MEAN] = p.values(f.mean.observed, x)
        if f.averaged:
            data = joined(t, [self._stream(p, s) for s in f.averaged])
            result |= {STREAMS: data, STREAM_SIZES: abs(data)}
        if f.counted:
            g = t.reshape(p.values([c.expr for c in f.counted], x), self.parts[BROKEN])
            result[BROKEN] = t.to_float(g > 0.0)
        if f.rows and f.keeps_rows:
            _, result[ROW_CONSTANT], result[ROW_SLOPES], result[ROW_SIZE] = self._linearised(p, f.rows, x, v)
        if f.each:
            result |= self._each(p, x, v, own)
        return result

    def _whole(self, terms: dict[str, Value]) -> dict[str, Value]:
        """Terms by field, from those by sum."""
        arrays = {name: shape for name, shape in self.parts.items() if shape}
        rows = [self.t.reshape(terms[name], (math.prod(shape),)) for name, shape in arrays.items()]
        return {SUMS: joined(self.t, rows), **{name: v for name, v in terms.items() if name not in arrays}}

    @cached_property
    def _numbers(self) -> tuple[str, ...]:
        """Sums that are numbers."""
        return tuple(name for name, shape in self.parts.items() if not shape)

    def after(self, state: Mapping[str, Value], terms: Mapping[str, Value]) -> dict[str, Value]:
        """Fields after the terms of one round, from those before it."""
        t = self.t
        result = {name: state[name] + terms[name] for name in (*self._numbers, SUMS)}
        if CURVE in terms:
            result[CURVE] = state[CURVE] + terms[CURVE]
        if KINKS in terms:
            result[KINKS] = self.kinked.added(state[KINKS], terms[KINKS])
        if WORST in terms:
            result[WORST] = t.maximum(state[WORST], terms[WORST])
        if POOL in terms:
            t.note("the round enters the pool in the place of the one that was broken least")
            result[POOL] = self._entered(state[POOL], terms[POOL])
        return result

    def after_many(
        self, state: Mapping[str, Value], terms: Mapping[str, Value], meant: Value | None
    ) -> dict[str, Value]:
        """Fields after the terms of many rounds, which have these as their last axis; `meant`: the rounds that count, None for all."""
        t = self.t

        def kept(value: Value, instead: float) -> Value:
            return value if meant is None else t.where(meant, value, instead)

        result = {name: state[name] + t.sum(kept(terms[name], 0.0)) for name in self._numbers}
        result[SUMS] = state[SUMS] + t.sum(kept(terms[SUMS], 0.0), axis=1)
        if KINKS in terms:
            result[KINKS] = self.kinked.added_many(state[KINKS], kept(terms[KINKS][:2], 0.0), terms[KINKS][2])
        if WORST in terms:
            result[WORST] = t.maximum(state[WORST], t.max(kept(terms[WORST], UNSEEN), axis=len(self.shapes[WORST])))
        if POOL in terms:
            scores = kept(terms[POOL][0], UNSEEN)
            t.note("the rounds that were broken most stay in the pool")
            enters = t.max(scores) > t.min(state[POOL][:, 0])
            (result[POOL],) = t.if_(
                enters, lambda: [self._most_broken(state[POOL], scores, terms[POOL])], lambda: [state[POOL]]
            )
        return result

    def _most_broken(self, pool: Value, scores: Value, entering: Value) -> Value:
        """Pool of the most broken among those of a pool and others, which have these scores and are columns."""
        t = self.t
        order = t.argsort(t.concat(pool[:, 0], scores))
        return t.gather(t.concat(pool, t.transpose(entering)), order[scores.size :])

    def _entered(self, pool: Value, row: Value) -> Value:
        """Pool with a round in the place of the one that was broken least, if that was broken less."""
        t, place = self.t, self.t.argmin(pool[:, 0])
        least = t.gather(pool, place)
        return t.put(pool, t.where(row[0] > least[0], row, least), place)

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

    def _each(self, p: Problem, x: Point, v: Value, own: Value | None) -> dict[str, Value]:
        """Terms of the constraints that may have multipliers of their own in each round: weighed, and the most broken for the pool."""
        t = self.t
        g, constant, slopes, size = self._linearised(p, self.form.each, x, v)
        broken = t.maximum(g, 0.0)
        weights = t.stack(broken, broken if own is None else t.maximum(own, 0.0))
        result = {WHOLE_CONSTANT: weights @ constant, WHOLE_SLOPE: weights @ slopes, WHOLE_SIZE: weights @ size}
        if self.form.pooled:
            scores = t.minimum(g / t.maximum(t.sqrt(t.sum(slopes * slopes, axis=1)), TINY), -UNSEEN)
            entry = t.argmax(scores) if scores.size > 1 else t.lift(0)
            numbers = t.stack(t.gather(scores, entry), t.gather(constant, entry))
            result[POOL] = t.concat(numbers, t.gather(slopes, entry))
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
    """Shape of each sum of a form, by name."""
    d = f.problem.size
    shapes: dict[str, tuple[int, ...]] = {LOSS: (), SIZE: ()}
    if f.curvature is not HessianForm.MEAN:
        shapes |= {CONSTANT: (), SLOPE: (d,)}
    if f.quadratic and not f.steady_hessian:
        shapes[CURVE] = (d,) if f.curvature is HessianForm.DIAGONAL else (d, d)
    if f.mean and f.mean.observed:
        shapes[MEAN] = (sum(f.mean.sizes),)
    if f.averaged:
        count = sum(math.prod(s.shape) for s in f.averaged)
        shapes |= {STREAMS: (count,), STREAM_SIZES: (count,)}
    if f.rows and f.keeps_rows:
        count = f.row_count
        shapes |= {ROW_CONSTANT: (count,), ROW_SLOPES: (count, d), ROW_SIZE: (count,)}
    if f.each:
        shapes |= {WHOLE_CONSTANT: (SCHEDULES,), WHOLE_SLOPE: (SCHEDULES, d), WHOLE_SIZE: (SCHEDULES,)}
    if f.counted:
        count = sum(c.size for c in f.counted)
        shapes[BROKEN] = (count,) if count > 1 else ()
    return shapes


def point_of(t: Tracer, problem: Canonical, y: Value) -> Point:
    """Decisions from a vector of all their entries."""
    parts, start = list[Value](), 0
    for b in problem.blocks:
        parts.append(t.reshape(y[start : start + b.domain.size], b.shape))
        start += b.domain.size
    return Point(tuple(parts))


def matrix(t: Tracer, rows: Rows) -> Value:
    """Rows as a matrix (n, d)."""
    return joined(t, [t.reshape(m, (m.shape[0], m.size // m.shape[0])) for m in rows.blocks], axis=1)


def joined(t: Tracer, parts: Sequence[Value], axis: int = 0) -> Value:
    """Parts one after another; the only one as it is."""
    return parts[0] if len(parts) == 1 else t.concat(*parts, axis=axis)
