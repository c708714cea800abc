"""Extreme points drawn with a given mean, over the step IR: what rounds fractional decisions without changing them on average."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from oco.compiler.domains.norms import Floats

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer
    from oco.compiler.ir.value import Value

SUPPORT = 1e-9
"""Entries up to this are zero but for rounding."""


class Shaped(Protocol):
    """Set of arrays of one shape, as far as drawing an extreme point needs it."""

    @property
    def size(self) -> int:
        """Number of entries."""
        ...

    def flat(self, t: Tracer, x: Value) -> Value:
        """Entries as one vector."""
        ...

    def shaped(self, t: Tracer, v: Value) -> Value:
        """Vector in the shape of the set."""
        ...

    def lmo(self, t: Tracer, c: Value) -> Value:
        """Extreme point that minimises <c, x>."""
        ...


def decomposed(t: Tracer, domain: Shaped, x: Value, u: Value) -> Value:
    """Extreme point with mean x, for u uniform on [0, 1): x is taken apart into extreme points, one of which u picks by its weight.

    In a polytope with extreme points of entries 0 and 1 the remainder of x has one within its support, which linear minimisation finds;
    its weight is the least of its entries there, so that each one found ends an entry (Birkhoff 1946 for permutations).
    """

    def undecided(rest: Value, u: Value, vertex: Value, weight: Value, count: Value) -> Value:
        return t.and_(t.and_(u >= weight, t.max(rest) > SUPPORT), count < domain.size)

    def next_one(rest: Value, u: Value, vertex: Value, weight: Value, count: Value) -> tuple[Value, ...]:
        rest = rest - weight * vertex
        following, share = within(rest)
        over = t.max(rest) > SUPPORT
        return rest, u - weight, t.where(over, following, vertex), t.where(over, share, weight), count + 1

    def within(rest: Value) -> tuple[Value, Value]:
        cost = t.where(rest > SUPPORT, 0.0, 1.0)
        vertex = domain.flat(t, domain.lmo(t, domain.shaped(t, cost)))
        return vertex, t.min(t.where(vertex > 0.5, rest, 1.0))

    flat = domain.flat(t, x)
    result = t.while_(undecided, next_one, (flat, u[0], *within(flat), t.lift(0)))[2]
    return domain.shaped(t, t.where(result > 0.5, 1.0, 0.0))


def systematic(t: Tracer, domain: Shaped, x: Value, u: Value, total: float) -> Value:
    """`total` entries that are 1, entry i with probability x_i, for u uniform on [0, 1) and sum x = total (Madow, Ann. Math. Statist. 20,
    1949): those whose share of the line from 0 to the total holds one of the points u, u + 1, u + 2, ...
    """
    n = domain.size
    if n == 1:
        return domain.shaped(t, t.full(total, (1,)))
    inner = t.cumsum(t.maximum(domain.flat(t, x), 0.0))[: n - 1]
    ends, starts = t.concat(inner, t.full(total, (1,))), t.concat(t.zeros((1,)), inner)
    return domain.shaped(t, t.to_float(t.floor(ends - u[0]) > t.floor(starts - u[0])))


def not_whole(domain: Shaped, lower: Floats, upper: Floats, total: float | None = None) -> str:
    """Why bounds, or the sum of the entries, keep extreme points from having entries 0 and 1 alone; "" where they do not."""
    if bool((lower != 0).any() or (upper != 1).any()):
        return f"{domain} has extreme points whose entries are not 0 and 1: its bounds are others"
    if total is not None and (total != int(total) or total < 1):
        return f"{domain} has extreme points whose entries are not 0 and 1: they add up to {total:g}"
    return ""
