"""Slopes that are more than the rounding of their terms, for steps in units of the slopes that came.

AdaGrad's step D g / sqrt(2 sum |g|^2) has no units: where the sum of the slopes so far is rounding, as 0.3 - 0.1 * 3 is, it takes a step of
the size of D in the direction of the last digits, in which the order of a sum decides. A slope therefore counts as 0 where
|g| <= ROUNDING ||g|_+|, the size of its terms (`ir/term_sizes`): that is relative to what the round adds up, and not to declared ranges,
which may be any number of times as wide as what comes.

Theorems stand. A round whose slope counts as 0 moves nothing and adds nothing to S. By convexity its regret is at most |g| D, and it leaves
the bound c G sqrt(2 (T - n)) of the T - n others: with n such rounds the sum is at most c G sqrt(2 T) as long as |g| D sqrt(2 T) <= c G,
for sqrt(2 T) - sqrt(2 (T - n)) >= n / sqrt(2 T). With c >= D and terms of the size of G this holds for T up to 1 / (2 ROUNDING^2); with
terms of another size |g| D is within what arithmetic makes of the round in any case.
"""

from __future__ import annotations

from oco.compiler.ir.term_sizes import term_sizes
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point

ROUNDING = 1e-13
"""Share of the size of its terms up to which a sum is rounding: some hundred times the error of one operation."""


def significant(t: Tracer, slope: Point) -> Point:
    """The slope, or 0 where it is rounding."""
    return beside_terms(t, slope)[0]


def beside_terms(t: Tracer, slope: Point) -> tuple[Point, Value]:
    """The slope, or 0 where it is rounding, and the squared size of its terms; slopes of matrices kept as factors are taken as they are."""
    square = slope.squared_norm()
    if not all(isinstance(b, Value) for b in slope.blocks):
        return slope, square
    sizes = [term_sizes(t, b) for b in slope.blocks]
    if all(s is None for s in sizes):
        return slope, square
    parts = zip(slope.blocks, sizes, strict=True)
    terms = t.name("terms", Point(tuple(b if s is None else s for b, s in parts)).squared_norm())
    counts = t.name("counts", square > ROUNDING**2 * terms)
    return slope.map(lambda b: t.where(counts, b, 0.0)), terms


def significant_entries(t: Tracer, v: Value) -> Value:
    """The array with 0 for each entry that is rounding."""
    sizes = term_sizes(t, v)
    return v if sizes is None else t.where(abs(v) > ROUNDING * sizes, v, 0.0)
