"""Sums of a certificate over the step IR: what a round adds to them, in the user's units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from oco.compiler.algorithms.memory import Memory
from oco.compiler.certificates.form import CertificateForm, Curvature
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Liftable, Value
from oco.compiler.lowering.points import Point, Rows
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.structure import separable_over_box
from oco.compiler.proximal.penalty import penalized_step
from oco.dsl.dims import known
from oco.dsl.expressions import Expr

LOSS, CONSTANT, SLOPE, CURVE, SIZE = "sum_loss", "sum_constant", "sum_slope", "sum_curve", "sum_size"
WORST, MEAN, BROKEN = "worst_data", "sum_data", "broken_rounds"
ROW_CONSTANT, ROW_SLOPES, ROW_SIZE = "sum_row_constant", "sum_row_slopes", "sum_row_size"
WHOLE_CONSTANT, WHOLE_SLOPE, WHOLE_SIZE = "sum_whole_constant", "sum_whole_slope", "sum_whole_size"
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
    WHOLE_CONSTANT: "the row constants with multipliers of each round: what the round broke, and the learner's own",
    WHOLE_SLOPE: "the row slopes with these multipliers",
    WHOLE_SIZE: "magnitudes of these terms",
}
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
        return {name: self.t.zeros(shape) if shape else 0.0 for name, shape in self.shapes.items()}

    def after(
        self, state: Mapping[str, Value], x: Point, seen: Mapping[str, Value], own: Value | None
    ) -> dict[str, Value]:
        """Sums after a round of the decision x and the data `seen`, from those before it.

        own  the learner's multiplier of each entry of the rows, (n,), where it has them
        """
        t, f = self.t, self.form
        p = Problem(t, self.task, seen, state["round"])
        v, bounds = flat(t, x), self.bounds
        t.note("sums of the certificate")
        loss, slope = p.loss(x), flat(t, p.gradient(x))
        result, size = {LOSS: state[LOSS] + loss}, 2.0 * abs(loss) + abs(slope) @ bounds
        constant = loss - slope @ v
        if f.curvature is not Curvature.NONE:
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
        if f.counted:
            result[BROKEN] = state[BROKEN] + t.to_float(p.values([c.expr for c in f.counted], x) > 0.0)
        return result | (self._rows(state, p, x, v, own) if f.row_count else {})

    def _rows(
        self, state: Mapping[str, Value], p: Problem, x: Point, v: Value, own: Value | None
    ) -> dict[str, Value]:
        """Sums of the linearisations of the rows."""
        t, f = self.t, self.form
        g, slopes = p.values(f.rows, x), matrix(t, p.slopes_of(f.rows, x))
        constant, size = g - slopes @ v, abs(g) + abs(slopes) @ self.bounds
        result = dict[str, Value]()
        if f.keeps_rows:
            result[ROW_CONSTANT] = state[ROW_CONSTANT] + constant
            result[ROW_SLOPES] = state[ROW_SLOPES] + slopes
            result[ROW_SIZE] = state[ROW_SIZE] + size
        if f.each:
            each = t.constant(np.isin(np.arange(f.row_count), f.each).astype(np.float64), "each", "in each round")
            broken = t.maximum(g, 0.0)
            weights = t.stack(broken, broken if own is None else t.maximum(own, 0.0)) * each
            result[WHOLE_CONSTANT] = state[WHOLE_CONSTANT] + weights @ constant
            result[WHOLE_SLOPE] = state[WHOLE_SLOPE] + weights @ slopes
            result[WHOLE_SIZE] = state[WHOLE_SIZE] + weights @ size
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
        if self.form.curvature is Curvature.DIAGONAL:
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

    def loss_at(self, state: Mapping[str, Value], y: Value) -> tuple[Value, Value]:
        """k + <s, y> + <y, H y> / 2 and its gradient (d,)."""
        k, s = state[CONSTANT], state[SLOPE]
        if CURVE not in state:
            return k + s @ y, s
        Hy = curved(state[CURVE], y)
        return k + (s + 0.5 * Hy) @ y, s + Hy

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

        for name, memory, data in (
            (WORST, f.worst, state.get(WORST)),
            (MEAN, f.mean, state[MEAN] / rounds if MEAN in state else None),
        ):
            if memory is not None:
                g, rows = self._remembered(memory, data, y)
                add(g, rows, abs(g) + abs(rows) @ self.bounds)
        if WHOLE_CONSTANT in state:
            add(state[WHOLE_CONSTANT] + state[WHOLE_SLOPE] @ y, state[WHOLE_SLOPE], state[WHOLE_SIZE])
        if ROW_CONSTANT in state:
            add(state[ROW_CONSTANT] + state[ROW_SLOPES] @ y, state[ROW_SLOPES], state[ROW_SIZE])
        if not values:
            return None
        return joined(t, values), joined(t, slopes), joined(t, sizes)

    @property
    def bends_by_entry(self) -> bool:
        """True where all constraints are a memory's, sums of functions of single entries over a box: a step with them is exact."""
        f = self.form
        if f.worst is None or f.mean is not None or f.row_count:
            return False
        structure, _ = f.worst.canonical.structure
        return separable_over_box(structure, self.task.domains)

    def bent_step(self, state: Mapping[str, Value], rounds: Value, y: Value, c: Value, alpha: Value) -> Value:
        """argmin over the domain and its constraints of <c, u> + alpha |u - y|^2, where `bends_by_entry`."""
        assert self.form.worst is not None
        t, memory = self.t, self.form.worst
        p = self._problem(memory, state.get(WORST))
        x = self.point(y)
        g = p.constraints(x)
        norms = t.sqrt(p.constraint_gradients(x).squared_norms())
        caps = LARGE * t.sqrt(c @ c) / t.maximum(norms, TINY)
        return flat(t, penalized_step(p, x, self.point(c), alpha, caps, g))

    def _problem(self, memory: Memory, data: Value | None) -> Problem:
        """The constraints of a memory with these data."""
        seen, start = dict[str, Value](), 0
        for name, expr, size in zip(memory.names, memory.observed, memory.sizes):
            assert data is not None
            seen[name] = self.t.reshape(data[start : start + size], known(expr.shape))
            start += size
        structure, _ = memory.canonical.structure
        task = replace(self.task, canonical=memory.canonical, structure=structure)
        return Problem(self.t, task, seen, self.t.lift(1))

    def _remembered(self, memory: Memory, data: Value | None, y: Value) -> tuple[Value, Value]:
        """Values and gradients at y of the constraints of a memory."""
        p = self._problem(memory, data)
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

    @property
    def free(self) -> int:
        """Number of constraints of `constraints_at` whose multipliers may have any sign."""
        return self.form.free if self.form.keeps_rows else 0


def shapes_of(f: CertificateForm) -> dict[str, tuple[int, ...]]:
    """Shape of each sum of a form, by its field of the state."""
    d = f.problem.size
    shapes: dict[str, tuple[int, ...]] = {LOSS: (), CONSTANT: (), SLOPE: (d,), SIZE: ()}
    if f.curvature is not Curvature.NONE:
        shapes[CURVE] = (d,) if f.curvature is Curvature.DIAGONAL else (d, d)
    shapes |= {name: (sum(m.sizes),) for name, m in ((WORST, f.worst), (MEAN, f.mean)) if m and sum(m.sizes)}
    if count := f.row_count:
        if f.keeps_rows:
            shapes |= {ROW_CONSTANT: (count,), ROW_SLOPES: (count, d), ROW_SIZE: (count,)}
        if f.each:
            shapes |= {WHOLE_CONSTANT: (SCHEDULES,), WHOLE_SLOPE: (SCHEDULES, d), WHOLE_SIZE: (SCHEDULES,)}
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
