"""Statistics of a stream over the rounds before, and entries of forecasts, for predictions: `last(price)` and `ahead(next_price)` stand as
names that are known before the decision."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from oco.dsl.diagnostics import fail
from oco.dsl.dims import Shape
from oco.dsl.expressions import Constant, Expr, Kind, Name
from oco.dsl.limits import MOST_ENTRIES
from oco.dsl.records import dataclass
from oco.dsl.source import Span

STATISTICS: Mapping[str, str] = {
    "last": "last(price)",
    "mean": "mean(price, 24)",
    "ewma": "ewma(price, 0.1)",
    "season": "season(price, 24)",
    "ahead": "ahead(next_price)",
}
"""Statistics of the rounds before, and the forecast of a round, each with an example."""
ALONE = ("last", "ahead")
"""Kinds that take a name and no number."""
_WRITTEN = re.compile(r"(last|mean|ewma|season|ahead)\((\w+)(?:, ([0-9.e+-]+))?\)")


@dataclass(frozen=True)
class Statistic:
    """Statistic of a stream: `last`, `mean` and `season` of so many rounds, `ewma` with this rate; `ahead` the entry of a context, along
    its first axis, for the round that is predicted: 0 for the round itself, k for k rounds later.
    """

    kind: str
    stream: str
    number: float = 1.0

    def shape(self, of: Shape) -> Shape:
        """Shape, from that of the stream."""
        return of[1:] if self.kind == "ahead" else of


def statistic(kind: str, args: Sequence[Expr], span: Span | None) -> Name:
    """Name `mean(price, 24)` of a statistic. Raises OCO220 where the arguments are none of such a statistic."""
    form = f"write `{STATISTICS[kind]}`"
    if not args or not isinstance(args[0], Name) or args[0].kind is not Kind.STREAM or len(args) > 2:
        raise fail("OCO220", f"`{kind}` takes the name of a stream here", span, form)
    of, number = args[0], args[1] if len(args) == 2 else None
    if (kind in ALONE) != (number is None):
        raise fail(
            "OCO220", f"`{kind}` takes {'one argument' if kind in ALONE else 'a stream and a number'}", span, form
        )
    if kind == "ahead" and not of.shape:
        hint = f"give `{of.name}` an axis for these rounds: `context {of.name}[24] in ...`"
        raise fail("OCO220", f"`{of.name}` is one number, and has no entries for the rounds to come", span, hint)
    if number is None:
        return Name(f"{kind}({of.name})", Kind.STREAM, shape=Statistic(kind, of.name).shape(of.shape), span=span)
    value = float(number.value.array) if isinstance(number, Constant) and number.shape == () else float("nan")
    if kind == "ewma" and not 0 < value <= 1:
        raise fail("OCO220", "the rate of `ewma` is a number above 0 and at most 1", number.span or span, form)
    most = MOST_ENTRIES // max(1, math.prod(n for n in of.shape if isinstance(n, int)))  # values that the state keeps
    if kind != "ewma" and not (1 <= value <= most and value == int(value)):
        message = f"`{kind}` looks back a number of rounds from 1 to {most:,}"
        raise fail("OCO220", message, number.span or span, form)
    text = f"{value!r}" if kind == "ewma" else str(int(value))
    return Name(f"{kind}({of.name}, {text})", Kind.STREAM, shape=of.shape, span=span)


def statistic_of(name: str) -> Statistic | None:
    """Statistic that a name writes; None for any other name."""
    if (match := _WRITTEN.fullmatch(name)) is None:
        return None
    kind, stream, number = match.groups()
    return Statistic(kind, stream, float(number or 1))
