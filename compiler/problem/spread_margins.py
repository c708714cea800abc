"""Margins that are spread over the streams that multiply decisions, so that each decision has its own.

What a mix of assets, suppliers or machines misses hangs on the mix: with e(x) = g(x; s) - g(x; p) what the streams s were off the predicted
p, the best linear prediction of e(x) by the e that decisions of late had is E[e(x) e] e / E[e^2]. Its usual size

    u(x) = E[e(x) e] / sqrt(E[e^2])

is that of e at these decisions, and affine in x where g is, as the margin z u(x) is with z the quantile of e / u: of a portfolio with
covariances S at x it is z (S x)' w / sqrt(x' S x), the tangent of the value at risk z sqrt(w' S w), and its parts are those of Euler's
allocation (Tasche, Risk contributions and performance measurement, 1999). Averages of the last hundred rounds or so stand for E. Entries
of a stream that these do not tell apart for sure count alike: decisions would run after noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from oco.compiler.problem.followed_streams import Followed
from oco.compiler.problem.kept_values import kept_range, one_minus
from oco.compiler.problem.margin_predictions import Margins
from oco.compiler.problem.margin_predictors import LEAST_ERRORS
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl import algebra
from oco.dsl.build import call
from oco.dsl.expressions import Expr, Kind, Name, rewrite
from oco.dsl.magnitudes import TINY
from oco.dsl.records import dataclass

FORGETTING = 0.01
"""Least rate at which averages of products forget."""
LEAST = 0.5
"""Part of the size of errors at usual decisions that u is at least where errors are measured in it: far from these the tangent is below the
size, and few such errors would decide the quantile."""
SURELY = 2.0
"""Times the variance that noise gives to slopes, of averages with this rate, above which that of the entries has to be."""
MOST_SIZES = 100.0
"""Largest z."""


@dataclass(frozen=True)
class Spread:
    """Usual size u(x) of what a constraint misses at a decision.

    size    u(x), over the decision
    errors  e / u of the round, over the decision and the streams
    rounding added to margins, for decisions at which no stream counts meet the constraint with equality
    ranges  averages that are kept
    """

    size: Expr
    errors: Expr
    rounding: float
    ranges: tuple[StreamRange, ...] = field(repr=False)

    def of_round(self, round_: Expr) -> Expr:
        """u(x), and 1 in the rounds before there are errors enough for a quantile."""
        ready = call("_positive", call("sub", round_, 3 + LEAST_ERRORS - 0.5))
        return call("add", call("mul", ready, self.size), one_minus(ready))


def spread_over(
    followed: Followed,
    measured: Expr,
    usual: Expr,
    missed: Expr,
    streams: Mapping[str, StreamRange],
    margins: Margins,
    rounding: float,
) -> Spread:
    """Spread of a constraint g of one entry.

    measured  g(x; s)
    usual     the same, with what comes after the decision and is not followed at usual values
    missed    e, over the decision and the streams
    streams   those that are followed, by name
    margins   of the constraint, which keep the averages under their names
    rounding  added to them
    """
    rate, ranges = call("maximum", FORGETTING, call("div", 1.0, margins.round)), list[StreamRange]()

    def average(name: str, shape: tuple[int, ...], now: Expr) -> Name:
        own = margins.value(name, shape)
        following = call("add", own, call("mul", rate, call("sub", now, own)))
        ranges.append(kept_range(own, algebra.broadcast(following, shape)))
        return own

    square = average("square", (), call("square", missed))
    others = call("sub", missed, call("sub", measured, followed.within(measured)))
    beside = average("beside", (), call("mul", missed, others))
    size, stressed = call("sqrt", call("maximum", square, TINY)), dict[str, Expr]()
    for place, (name, p) in enumerate(followed.predictions.items()):
        s = streams[name]
        off = call("sub", Name(name, Kind.STREAM, shape=s.shape, integer=s.integer), p)
        together = average(f"together_{place}", s.shape, call("mul", missed, off))
        entries = float(np.prod(s.shape, dtype=np.int64))
        noise = average(f"off_{place}", (), call("div", call("sum_squares", off), entries))
        slopes = call("div", together, size)
        stressed[name] = call("add", p, _shrunk(slopes, entries, call("mul", rate, noise)))

    def at(node: Expr) -> Expr:
        return stressed.get(node.name, node) if isinstance(node, Name) else node

    own = call("add", call("sub", rewrite(usual, at), followed.within(usual)), call("div", beside, size))
    begun = call("_positive", call("sub", square, TINY))
    own = call("add", call("mul", begun, own), one_minus(begun))
    return Spread(own, call("div", missed, call("maximum", own, call("mul", LEAST, size))), rounding, tuple(ranges))


def _shrunk(slopes: Expr, entries: float, noise: Expr) -> Expr:
    """Slopes of the entries of a stream, and their mean unless they differ by more than those of like entries do by chance.

    noise  variance of a slope where entries are independent and alike
    """
    mean = call("div", call("sum", slopes), entries)
    apart = call("sub", slopes, mean)
    between = call("div", call("sum_squares", apart), entries)
    surely = call("_positive", call("sub", between, call("mul", SURELY, noise)))
    return call("add", mean, call("mul", surely, apart))
