"""Constraints on average where the distribution of the data is known: the mean of each stream replaces the stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.degrees import degree_in
from oco.dsl.expressions import Expr, Kind, Name, constant, rewrite, walk
from oco.dsl.statements import Timing


def in_expectation(problem: Canonical) -> Canonical:
    """Problem whose means over the rounds are expectations given the streams without a known distribution.

    Streams are independent across names and entries, so a function that is affine in each of them has its expectation
    at their means. A stream that enters in any other way keeps its values: the mean is then that of the rounds.
    """
    means = {
        s.name: np.broadcast_to(s.mean, s.shape)
        for s in problem.streams
        if s.mean is not None and s.distribution is not None
    }

    def expected(expr: Expr) -> Expr:
        names = [n for n in walk(expr) if isinstance(n, Name) and n.kind is Kind.STREAM and n.name in means]
        affine = {n.name for n in names if degree_in(expr, n.name) <= 1}
        return rewrite(expr, lambda n: constant(means[n.name]) if isinstance(n, Name) and n.name in affine else n)

    inequalities = tuple(
        replace(c, expr=expected(c.expr)) if c.timing is Timing.ON_AVERAGE else c for c in problem.inequalities
    )
    return replace(
        problem,
        inequalities=inequalities,
        equalities=tuple(replace(c, expr=expected(c.expr)) for c in problem.equalities),
    )
