"""Constraints on average where the law of what enters is known: the mean of each stream stands for the stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oco.dsl.expressions import Expr, Name, walk
from oco.evaluation.comparators.functions import Rounds
from oco.evaluation.comparators.structure import degree_in


def expected(rounds: Rounds, expr: Expr) -> Rounds:
    """The rounds over which the mean of `expr` is its expectation given what has no known law.

    Streams are independent across names and entries, so a function that is affine in each of them has its expectation at their
    means. A stream that enters in any other way keeps its values: the mean is then that of the rounds.
    """
    known = {
        s.name: np.broadcast_to(s.mean, s.shape)
        for s in rounds.problem.streams
        if s.mean is not None and s.law is not None and _present(expr, s.name) and degree_in(expr, s.name) <= 1
    }
    if not known:
        return rounds
    kept = {name: values for name, values in rounds.streams.items() if name not in known}
    reduced = replace(rounds, streams=kept)
    if not reduced.enters(expr):
        return replace(rounds, streams={n: v[None] for n, v in known.items()}, numbers=rounds.numbers[:1])
    spread = {name: np.broadcast_to(mean, (rounds.count, *mean.shape)) for name, mean in known.items()}
    return replace(rounds, streams=kept | spread)


def _present(expr: Expr, name: str) -> bool:
    return any(isinstance(n, Name) and n.name == name for n in walk(expr))
