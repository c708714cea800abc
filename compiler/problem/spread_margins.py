"""Margins that depend on the decision through the streams that multiply it: a mix of assets, suppliers or machines errs as the mix is.

Let e(x) = g(x; s) - g(x; p) be the error of a constraint at x, with the streams s and their predictions p, and e that at recent decisions.
The best linear prediction of e(x) by e is E[e(x) e] e / E[e^2], and its usual size

    u(x) = E[e(x) e] / sqrt(E[e^2])

is that of e at recent decisions, and affine in x where g is. The margin is z u(x), with z the quantile of e / u. For a portfolio w with
covariances S, recently at x, it is z (S x)' w / sqrt(x' S x): the tangent at x of the value at risk z sqrt(w' S w), with the parts of
Euler's allocation (Tasche, Risk contributions and performance measurement, 1999). E is taken over about the last hundred rounds, but
for the first, whose predictions come from no data. Slopes of the entries of a stream that differ by no more than noise are replaced by
their mean, so that decisions do not follow noise.
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
"""Least rate of the averages of products."""
LEAST = 0.5
"""Least u by which an error is divided, in usual sizes of errors at recent decisions: far from these the tangent is below the size, and a
few errors there would decide the quantile."""
SURELY = 2.0
"""Factor of the variance that noise gives to slopes above which the slopes of entries count as different."""
MOST_SIZES = 100.0
"""Largest z."""


@dataclass(frozen=True)
class Spread:
    """Usual size u(x) of the error of a predicted constraint at a decision.

    size      u(x), over the decision
    errors    e / u of the round, over the decision and the streams
    rounding  added to margins, since decisions at which no stream has an effect meet the constraint with equality
    ranges    averages that are kept
    """

    size: Expr
    errors: Expr
    rounding: float
    ranges: tuple[StreamRange, ...] = field(repr=False)

    def of_round(self, round_: Expr) -> Expr:
        """Expression of u(x) in a round; 1 in the first rounds, with too few errors for a quantile."""
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
    usual     the same, with usual values of what comes after the decision and is not followed
    missed    e, over the decision and the streams
    streams   those that are followed, by name
    margins   of the constraint, which keep the averages under their names
    rounding  added to them
    """
    predicted = call(
        "maximum", call("sub", margins.round, 1.0), 1.0
    )  # rounds whose predictions come from data: not the first
    rate, ranges = call("maximum", FORGETTING, call("div", 1.0, predicted)), list[StreamRange]()

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
    least = call("maximum", own, call("mul", LEAST, size))
    unit = call(
        "add", call("mul", begun, least), call("mul", one_minus(begun), call("maximum", call("abs", missed), TINY))
    )
    own = call("add", call("mul", begun, own), one_minus(begun))
    return Spread(own, call("div", missed, unit), rounding, tuple(ranges))


def _shrunk(slopes: Expr, entries: float, noise: Expr) -> Expr:
    """Slopes of the entries of a stream; their mean where they differ by no more than those of like entries do by chance.

    noise  variance of a slope where entries are independent and alike
    """
    mean = call("div", call("sum", slopes), entries)
    apart = call("sub", slopes, mean)
    between = call("div", call("sum_squares", apart), entries)
    surely = call("_positive", call("sub", between, call("mul", SURELY, noise)))
    return call("add", mean, call("mul", surely, apart))
