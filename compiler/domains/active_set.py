"""Nearest point of a polyhedron { w : G w <= h } with unit rows, by a dual active-set method over the step IR."""

from __future__ import annotations

import numpy as np

from oco.compiler.domains.norms import Floats
from oco.compiler.domains.qr_update import enter, leave
from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.trace import Tracer, Values
from oco.compiler.ir.value import Value

DEPENDENT = Tolerance(1e-20)
"""A row whose part orthogonal to the active rows has a smaller squared norm counts as dependent on them."""

FEASIBLE = Tolerance(1e-14)
"""Violations up to this many units of h count as none."""


def nearest_point(t: Tracer, v: Value, G: Floats, h: Floats, units: Floats | None = None) -> Value:
    """argmin |w - v|_2 subject to G w <= h, for a set of size about one that holds 0.

    `units` (m,) are what violations are multiplied by where the rows have sizes of their own. Far points lose digits, by as much as they
    are far; projecting the result again brings it to the set (few repeats, as a rule none).
    """
    rows = t.constant(G, "G", "rows of the inequalities G w <= h, of norm one")
    right = t.constant(h, "h", "right sides of G w <= h")
    measure = 1.0 if units is None else t.constant(units, "units", "by what violations of the rows are multiplied")

    def outside(w: Value, repeats: Value) -> Value:
        return t.and_(t.max(_violation(w, rows, right, measure)) > Tolerance(1e-13), repeats < 40)

    def project_again(w: Value, repeats: Value) -> tuple[Value, Value]:
        return _project_once(t, w, rows, right, measure), repeats + 1

    return t.while_(outside, project_again, (v, t.lift(0)))[0]


def _project_once(t: Tracer, v: Value, G: Value, h: Value, measure: Value | float) -> Value:
    """Goldfarb & Idnani, Math. Program. 27 (1983), for the identity Hessian; `measure` is that of violations.

    The active rows stand in at most d slots, `chosen` with multipliers `u`. A violated row p gets the multiplier `u_p`, which grows until
    its violation is gone (p becomes active) or the multiplier of an active row is used up (that row is dropped).
    """
    m, d = G.shape
    last = 50 * (m + d)

    def not_converged(violation: Value, *state: Value) -> Value:
        *_, waits, passes = state
        return t.and_(t.or_(waits, t.max(violation) > FEASIBLE), passes < last)

    def step(violation: Value, w: Value, chosen: Value, active: Value, u: Value, *state: Value) -> Values:
        Q, inverse, p, u_p, waits, passes = state
        p = t.where(waits, p, t.argmax(violation))
        u_p = t.where(waits, u_p, 0.0)
        g = t.gather(G, p)
        r = inverse @ g
        part = t.where(active, 0.0, g @ Q)
        z, zz = Q @ part, t.sum(part * part)
        blocked = t.and_(active, r > 0.0)
        ratios = t.where(blocked, u / t.where(blocked, r, 1.0), np.inf)
        t_drop = t.min(ratios)
        independent = zz > DEPENDENT
        broken = t.gather(violation, p)
        broken = broken / t.gather(measure, p) if isinstance(measure, Value) else broken
        t_full = t.where(independent, broken / t.where(independent, zz, 1.0), np.inf)
        length = t.minimum(t_drop, t_full)
        stuck = t.not_(t.isfinite(length))
        length = t.where(stuck, 0.0, length)
        w = t.where(independent, w - length * z, w)
        u, u_p = t.maximum(u - length * r, 0.0), u_p + length
        full = t.and_(t_full <= t_drop, t.not_(stuck))
        slot = t.where(full, t.argmin(t.to_int(active)), t.argmin(ratios))
        Q, inverse = t.if_(
            full,
            lambda: enter(t, Q, inverse, part, z, r, slot),
            lambda: t.if_(
                stuck,
                lambda: (Q, inverse),
                lambda: leave(t, Q, inverse, _active_rows(t, G, chosen, active), active, slot),
            ),
        )
        chosen = t.where(full, t.put(chosen, p, slot), chosen)
        u = t.put(u, t.where(full, u_p, 0.0), slot)
        active = t.where(stuck, active, t.put(active, full, slot))
        passes = t.where(stuck, last, passes + 1)
        return _violation(w, G, h, measure), w, chosen, active, u, Q, inverse, p, u_p, t.not_(full), passes

    slots = (t.to_int(t.zeros((d,))), t.full(False, (d,)), t.zeros((d,)))
    idle = (t.lift(0), t.lift(0.0), t.lift(False), t.lift(0))
    start = (_violation(v, G, h, measure), v, *slots, t.eye(d), t.zeros((d, d)), *idle)
    _, w, chosen, active, _, _, inverse, *_ = t.while_(not_converged, step, start)
    # Onto the face of the active rows: each time removes what rounding along the way has left.
    N, edge = _active_rows(t, G, chosen, active), t.gather(h, chosen)
    for _ in range(2):
        w = w - t.where(active, N @ w - edge, 0.0) @ inverse
    return w


def _active_rows(t: Tracer, G: Value, chosen: Value, active: Value) -> Value:
    """The active rows, zero where a slot is empty."""
    return t.gather(G, chosen) * t.reshape(t.to_float(active), (active.size, 1))


def _violation(w: Value, G: Value, h: Value, measure: Value | float) -> Value:
    """By how much w breaks each row."""
    return (G @ w - h) * measure if isinstance(measure, Value) else G @ w - h
