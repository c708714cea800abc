"""Dead reckoning: what a learner notices of itself, at few rounds, and says once.

Looked at in rounds 64, 128, 256, ... and never within generated code: whether bounds that were declared or proved hold and are of the
right size, whether the decisions have left the start, whether multipliers move while constraints are broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

FIRST = 64
WIDE = 100.0
"""A bound so many times what was seen is too wide."""
STILL = 1e-3
"""A decision that is nearer to the start, in diameters, has not left it."""
SLACK = 1e-9
DUALS = ("Q", "H", "lam", "lambda_", "q")
"""The letters of queues and multipliers in the papers."""


@dataclass(frozen=True, eq=False)
class Constants:
    """What a plan rests on, in the model's units: bounds of |f| and of each |g_n| (inf: none), and the diameter of the domain."""

    loss: float = np.inf
    constraints: Array = field(default_factory=lambda: np.zeros(0))
    labels: tuple[str, ...] = ()
    diameter: float = np.inf


def looked_at(round: int) -> bool:
    """Whether this is a round at which a learner looks at itself."""
    return round >= FIRST and round & (round - 1) == 0


@dataclass
class Reckoning:
    """What was seen so far. `tell` hears each sentence once."""

    constants: Constants
    tell: Callable[[str], None]
    start: Array | None = None
    seen_loss: float = 0.0
    seen_constraints: Array = field(default_factory=lambda: np.zeros(0))
    broken: bool = False
    duals: Mapping[str, Array] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)

    def see(self, loss: float, constraints: Array) -> None:
        """Values of a round, or the largest sizes of several."""
        self.seen_loss = max(self.seen_loss, abs(loss))
        sizes = np.abs(constraints)
        self.seen_constraints = np.maximum(self.seen_constraints, sizes) if self.seen_constraints.size else sizes
        self.broken = self.broken or bool((constraints > 0).any())

    def look(self, round: int, decision: Array, duals: Mapping[str, Array]) -> None:
        """Say what is wrong after `round` rounds, at this decision and with these multipliers."""
        self.start = decision if self.start is None else self.start
        for kind, sentence in self._wrong(round, decision, duals):
            if kind not in self.said:
                self.said.add(kind)
                self.tell(sentence)
        self.duals, self.broken = {n: np.array(v) for n, v in duals.items()}, False

    def _wrong(self, round: int, decision: Array, duals: Mapping[str, Array]) -> Iterator[tuple[str, str]]:
        yield from self._bounds(round)
        assert self.start is not None
        moved = float(np.linalg.norm(decision - self.start)) / self.constants.diameter
        if round >= 4 * FIRST and moved < STILL:
            yield (
                "still",
                f"after {round} rounds the decision has not left the start (it moved {moved:.1g} of the domain's diameter): "
                'its steps are too small; try settings="optimal", or `oco tune`',
            )
        for name, value in duals.items():
            before = self.duals.get(name)
            if self.broken and before is not None and np.any(value) and np.array_equal(before, value):
                yield (
                    f"saturated {name}",
                    f"from round {round // 2} to {round} {name} did not change although constraints were broken: at a bound of "
                    "its own a multiplier acts as a fixed penalty; try another `--tradeoff`, or `oco tune`",
                )

    def _bounds(self, round: int) -> Iterator[tuple[str, str]]:
        bounds = zip(
            ("the loss", *self.constants.labels),
            (self.constants.loss, *self.constants.constraints),
            (self.seen_loss, *self.seen_constraints),
        )
        for name, bound, seen in bounds:
            if seen > bound * (1 + SLACK):
                yield (
                    f"broken {name}",
                    f"|{name}| reached {seen:.6g}, and its bound is {bound:.6g}: the guarantee does not hold; correct what the model "
                    "states or assumes",
                )
            elif round >= 4 * FIRST and np.isfinite(bound) and 0 < WIDE * seen < bound:
                yield (
                    f"wide {name}",
                    f"after {round} rounds |{name}| was at most {seen:.4g}, and its bound is {bound:.4g}, more than {WIDE:g} times as "
                    "much: settings made for it are too careful; state narrower bounds of the streams, or `oco tune`",
                )
