"""Ascent of multipliers within [0, Q]: each as far as its own bound where the dual rises enough that way, else all as far as the first one.

Bertsekas, SIAM J. Control Optim. 20, 1982.
"""

from __future__ import annotations

from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.dsl.magnitudes import TINY

RISES = 0.5
"""Share of the slope along the common cut of a step that cutting each multiplier alone has to keep."""
LEAST_SHARE = 0.2
"""Least common cut that is compared with: where a multiplier next to its bound cuts all to nothing, any rise would count as enough."""


def cut_ascent(t: Tracer, g: Value, newton: Value, room: Value, promise: Value) -> Value:
    """Newton's step, (N,), within the room that each multiplier has in its direction; g is the dual's slope, `promise` <g, newton>."""

    def cut() -> tuple[Value]:
        shares = t.name("shares", abs(room) / t.maximum(abs(newton), TINY))
        rests = t.word("rests", t.eq(newton, 0.0))
        share = t.word("share", t.minimum(t.min(t.where(rests, 1.0, shares)), 1.0))
        step = t.where(rests, 0.0, t.word("cut", t.where(shares <= share, room, share * newton)))
        if newton.size > 1:
            t.note("each multiplier as far as its own bound, where the dual rises enough that way")
            each = t.name("each", t.where(shares <= 1.0, room, newton))
            each = t.where(rests, 0.0, each)
            least = t.maximum(t.sum(g * step), t.maximum(share, LEAST_SHARE) * promise)
            step = t.where(t.sum(g * each) >= RISES * least, each, step)
        return (step,)

    beyond = t.word("beyond", t.any(abs(newton) > abs(room)))
    return t.name("step", t.if_(beyond, cut, lambda: (newton,))[0])
