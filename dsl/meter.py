"""How much work a check or a compile may take in all.

It is counted where it is done, in steps of about a microsecond, and not by the clock: a model is refused on every machine or on none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.source import Span

MOST = 14_000_000
"""Steps of one check or one compile. The examples take at most 80,000 and 1,050,000."""

MOST_READ = MOST / 2
"""Steps of the reading of a text."""

WAYS_OUT = (
    "write many alike terms as one over a vector, `sum(s * square(x - k))`, and many constraints as one, `A @ x <= b`; "
    "or allow more: `oco --effort 4 compile ...`, `with oco.effort(4):`"
)


EIGENVALUES, FACTOR = 3e-4, 3e-5
"""Steps that the eigenvalues and the Cholesky factor of a matrix take, times the cube of its order."""


class Meter:
    """Steps that were taken, of those that may be."""

    def __init__(self, most: float, span: Span | None) -> None:
        self.most, self.taken, self.span = most, 0.0, span

    @property
    def exceeded(self) -> bool:
        return self.taken > self.most


_METER: ContextVar[Meter | None] = ContextVar("meter", default=None)
_EFFORT: ContextVar[float] = ContextVar("effort", default=1.0)


@contextmanager
def effort(times: float) -> Iterator[None]:
    """Let models that are checked, compiled or restored within take `times` as much work: one second and a half for each, about.

    Raises OcoError (OCO526) where `times` is not a positive number.
    """
    if isinstance(times, bool) or not isinstance(times, int | float) or not 0 < times < math.inf:
        raise fail("OCO526", f"an effort is a positive number, not {times!r:.60}", hint="1 is what is usual")
    token = _EFFORT.set(float(times))
    try:
        yield
    finally:
        _EFFORT.reset(token)


def allowed(steps: float) -> float:
    """What a limit of so many steps is at the effort that is wanted."""
    return steps * _EFFORT.get()


def charge(steps: float) -> None:
    """Count work that is about to be done. Raises OcoError (OCO132) where a meter runs and has no steps left."""
    meter = _METER.get()
    if meter is not None:
        meter.taken += steps
        if meter.exceeded:
            raise _too_much(meter)


@contextmanager
def metered(span: Span | None = None, most: float = MOST) -> Iterator[Meter]:
    """Count what is done within. A meter that runs already goes on, with its own limit and place.

    Raises OcoError (OCO132) at the end where the steps were exceeded and whoever caught that went on.
    """
    running = _METER.get()
    if running is not None:
        yield running
        return
    meter = Meter(allowed(most), span)
    token = _METER.set(meter)
    try:
        yield meter
    finally:
        _METER.reset(token)
        if meter.exceeded:
            raise _too_much(meter)


def _too_much(meter: Meter) -> OcoError:
    said = f"the model takes more than {meter.most:,.0f} steps to reason about"
    return fail("OCO132", said, meter.span, WAYS_OUT)
