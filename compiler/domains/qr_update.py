"""Rows of a matrix that come and go, with what is needed to project on their common null space, over the step IR.

At most d rows N stand in d slots. Q is orthonormal: its columns in used slots span the rows, the others the null space. `inverse` is the
transposed pseudo-inverse of N, zero in empty slots. A row that comes or goes is a reflection of Q and a rank-one change of `inverse`.
"""

from __future__ import annotations

from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value


def enter(t: Tracer, Q: Value, inverse: Value, part: Value, z: Value, row: Value, slot: Value) -> tuple[Value, Value]:
    """Q and `inverse` with one more row in the empty `slot`.

    z = Q part is the row's part in the null space, `row` is `inverse` times it. N^+ of the larger N has z / |z|^2 in the place of the
    slot, and loses that times `row` in the others (Greville, SIAM Rev. 2, 1960).
    """
    at_slot = t.to_float(t.iota(part.size) == slot)
    return _reflected(t, Q, part, z, slot), inverse - t.outer(row - at_slot, z / t.sum(part * part))


def leave(t: Tracer, Q: Value, inverse: Value, rows: Value, used: Value, slot: Value) -> tuple[Value, Value]:
    """Q and `inverse` without the row in `slot`; `rows` is N, `used` says which slots are."""
    at_slot = t.to_float(t.iota(used.size) == slot)
    # The column of N^+ to be projected out, made orthogonal to the other rows where rounding has left a part.
    y = t.gather(inverse, slot)
    y = y - (rows @ y - at_slot) @ inverse
    part = t.where(used, y @ Q, 0.0)
    others = inverse - t.outer(inverse @ y / t.sum(y * y), y)
    return _reflected(t, Q, part, Q @ part, slot), t.put(others, t.zeros(y.shape), slot)


def _reflected(t: Tracer, Q: Value, part: Value, image: Value, slot: Value) -> Value:
    """Q reflected so that its column `slot` is plus or minus the direction of `image` = Q part (Householder)."""
    first = t.gather(part, slot)
    length = t.sqrt(t.sum(part * part)) * t.where(first > 0.0, -1.0, 1.0)
    normal = t.put(part, first - length, slot)
    moved = image - length * t.gather(Q.T, slot)
    return Q - t.outer(moved * (2.0 / t.sum(normal * normal)), normal)
