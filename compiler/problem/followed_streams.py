"""Streams that multiply decisions in a constraint in a share of the rounds, as they are predicted.

What a mix of machines, suppliers or assets does hangs on which of them are relied on: at a fixed value of the streams the constraint
would not tell them apart. It is met at what is predicted of them instead: as the model states, as the one context of their shape says, or
an average a <- a + max(r, 1/t) (s_t - a) of the rounds before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from oco.compiler.problem.calculus import vector_jacobian
from oco.compiler.problem.kept_values import kept_range, round_of
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl.build import call
from oco.dsl.expressions import Expr, Kind, Name, names, rewrite

FORGETS = 0.1
"""Least rate at which averages forget: they are of some ten rounds."""


@dataclass(frozen=True)
class Followed:
    """Predictions of streams that multiply decisions, and what rounds leave to the next for them.

    predictions  of each stream, within its range
    ranges       averages that are kept
    stated       streams whose predictions the model states, or a context is
    """

    predictions: Mapping[str, Expr]
    ranges: tuple[StreamRange, ...] = field(repr=False)
    stated: tuple[str, ...] = ()

    def within(self, expr: Expr) -> Expr:
        """Expression with predictions in the place of these streams."""

        def predicted(node: Expr) -> Expr:
            return self.predictions.get(node.name, node) if isinstance(node, Name) else node

        return rewrite(expr, predicted)


def multiplying(expr: Expr, decisions: Iterable[str], streams: Iterable[str]) -> tuple[str, ...]:
    """Streams on which the slope of an expression towards the decisions hangs."""
    weights = Name("_weights", Kind.STREAM, shape=expr.shape)
    slopes = vector_jacobian(expr, weights, decisions).values()
    used = {n for g in slopes for n in names(g, Kind.STREAM)}
    return tuple(n for n in streams if n in used)


def followed_streams(
    label: str, streams: Mapping[str, StreamRange], stated: Mapping[str, Expr], taken: Iterable[str], turns: int
) -> Followed:
    """Predictions of streams for the constraint `label`: the stated ones, averages of the others.

    taken  names that no kept value has
    turns  learners that take turns where feedback is late, each with averages of its own
    """
    predictions, kept, used = dict[str, Expr](), list[StreamRange](), set(taken)
    for name, s in streams.items():
        if name in stated:
            low, high = (np.broadcast_to(end, s.shape) for end in (s.lower, s.upper))
            predictions[name] = call("maximum", call("minimum", stated[name], high), low)
            continue
        own = f"average_{name}_{label}"
        while own in used:
            own += "_"
        used.add(own)
        average = Name(own, Kind.STREAM, shape=s.shape)
        now = call("add", Name(name, Kind.STREAM, shape=s.shape, integer=s.integer), 0.0)
        rate = call("maximum", FORGETS, call("div", 1.0, round_of(turns)))
        following = call("add", average, call("mul", rate, call("sub", now, average)))
        first = np.broadcast_to((s.lower + s.upper) / 2 if s.mean is None else s.mean, s.shape)
        kept.append(kept_range(average, following, first, (s.lower, s.upper)))
        predictions[name] = average
    return Followed(predictions, tuple(kept), tuple(n for n in streams if n in stated))
