"""Minimizer of a penalized step for given multipliers, as the dual of the step sees it."""

from __future__ import annotations

from typing import Protocol

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows, Structured
from oco.compiler.proximal.entry_bounds import EntryBounds

MAX_STEPS = 200  # of a search for a point or for multipliers, after which it ends with those that it has
HALVINGS = 60  # after which an interval, or a step, is at rounding


class Response(Protocol):
    """x(lambda) and what the dual needs of it. A track is the points that travel from one lambda to the next; its last one is x.

    `parts` are the values that a response is made of, `words` their names, `over` makes one of the same values in another function;
    `bounds` are rows that it obeys at their price by itself, so that they have no multiplier. `ends` are points between whose slopes of the
    constraints, entry by entry, those of every decision lie; None where no such points are known.
    """

    parts: tuple[Structured, ...]
    words: tuple[str, ...]
    bounds: EntryBounds | None
    y: Point
    c: Point
    alpha: Value

    @property
    def ends(self) -> tuple[Point, Point] | None:
        """Points between whose slopes all lie."""

    def over(self, *parts: Structured) -> Response:
        """Response of the same form from other values."""

    def start(self) -> list[Point]:
        """Track at multipliers 0."""

    def at(self, multipliers: Value, near: list[Point]) -> list[Point]:
        """Track at multipliers lambda, shape (N,), from a track near it."""

    def constraints(self, x: Point) -> Value:
        """Values of the constraints at x, shape (N,)."""

    def slopes(self, x: Point) -> Rows:
        """grad g_n(x), N rows."""
        ...

    def curvature(self, multipliers: Value, track: list[Point]) -> Value:
        """-D'', shape (N, N)."""
        ...
