"""Rounding errors of the constraints at the minimizer of a penalized step (see `penalty`)."""

from __future__ import annotations

import math
from functools import reduce
from operator import add

import numpy as np

from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.proximal.affine_response import AffineResponse
from oco.compiler.proximal.response import Response

NOISE = Tolerance(1e-14)
"""Rounding error of g(x), as a share of what it is made of."""
FEW_ROWS = 4
"""Rows, the same in each turn, up to which products of all pairs cost less than two products with a vector in each."""


def beyond_rounding(p: Problem, response: Response, lam: Value, g: Value, x: Point, most: Value | None) -> Value:
    """g(x), shape (N,), with 0 in the place of what is no more than rounding, worked out where an entry is no more than `most`."""
    t = p.tracer

    def compared() -> Value:
        return t.where(abs(g) <= NOISE * rounded(p, response, lam, x), 0.0, g)

    return compared() if most is None else t.if_(t.all(abs(g) > most), lambda: g, compared)[0]


def rounded(p: Problem, response: Response, lam: Value, x: Point) -> Value:
    """Sum of the sizes of the terms that g(x) is rounded in, shape (N,): entry by entry where projections are, else by norms."""
    t, rows, c = p.tracer, response.slopes(x), response.c
    double = t.word("twice_alpha", 2.0 * response.alpha)
    if p.domain.is_entrywise:
        sizes = rows.map(abs)
        largest = p.domain.of_bounds(lambda lo, hi: np.maximum(abs(lo), abs(hi)), full=True)
        slope = c.map(abs) if response.bounds is None else c.map(abs) + response.bounds.slopes
        few = lam.shape[0] <= FEW_ROWS and isinstance(response, AffineResponse)
        if few or lam.shape[0] == 1:
            return sizes.apply(largest + slope / double) + (sizes.gram(sizes) / double) @ lam
        largest_move = largest + (slope + sizes.combine(lam)) / double
        return sizes.apply(largest_move.map(lambda b: t.word("reach", b)))
    norms = t.name("sizes", t.sqrt(rows.squared_norms()))
    diameter = math.sqrt(sum(d.diameter("l2") ** 2 for d in p.domain.domains))
    return (diameter + (t.sqrt(c.squared_norm()) + t.sum(lam * norms)) / double) * norms


def most_rounded(p: Problem, response: Response, Q: Value) -> Value | None:
    """Most that rounding of g can be at any decision and multipliers up to Q, shape (N,): `rounded` with the steepest slope in each entry.
    None where the steepest slopes are not known.
    """
    t, ends = p.tracer, response.ends
    if ends is None or not p.domain.is_entrywise:
        return None
    steepest = reduce(t.maximum, [response.slopes(x).dual_norms("l1") for x in ends])
    largest = sum(float(np.maximum(abs(d.lower), abs(d.upper)).sum()) for d in p.domain.domains)
    size = sum(b.size for b in response.y.blocks)
    pull = reduce(add, [t.sum(abs(b)) for b in response.c.blocks])
    reach = largest + (pull + float(size) * t.sum(steepest * Q)) / (2.0 * response.alpha)
    return t.name("most", NOISE * (steepest * reach))
