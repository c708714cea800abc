"""Bounds of functions by sampling and by adversarial search: what a proved number must never fall below.

A sample counts by the lower end of its own interval evaluation, so that rounding cannot break a sound bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from oco.compiler.calculus import gradient
from oco.compiler.canonical import Canonical, canonical, entry_labels
from oco.compiler.facts.entry import entry
from oco.dsl.enclose import enclose
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr
from oco.dsl.intervals import point
from oco.dsl.model import Model

Floats = np.ndarray[Any, Any]
Point = Mapping[str, Floats]


@dataclass
class Reached:
    """The largest values seen of |f|, |grad f|_2 and |grad f|_inf, with where."""

    values: dict[str, float] = field(default_factory=dict)
    places: dict[str, Point] = field(default_factory=dict)

    def note(self, what: str, value: float, place: Point) -> None:
        if value > self.values.get(what, -np.inf):
            self.values[what], self.places[what] = value, place


class Oracle:
    """Draws decisions and stream values of a model, and evaluates its functions there."""

    def __init__(self, model: Model, seed: int = 0) -> None:
        self.canonical: Canonical = canonical(model)
        self.rng = np.random.default_rng(seed)
        self.blocks = [b.name for b in self.canonical.blocks]

    def functions(self) -> Iterator[tuple[str, Expr]]:
        """The prefix of the facts of each scalar function, and the function."""
        yield "loss", self.canonical.objective
        for c in self.canonical.constraints:
            for at, label in zip(np.ndindex(*c.shape), entry_labels(c.label, c.shape)):
                yield f"constraints.{label}", entry(c.expr, at)

    def draw(self) -> dict[str, Floats]:
        """A decision and stream values; corners and extreme points more often than not."""
        found: dict[str, Floats] = {}
        for b in self.canonical.blocks:
            inside = b.domain.sample(self.rng, 1)[0]
            corner = "lmo" not in b.domain.refusals and b.domain.size <= 2500 and self.rng.random() < 0.7
            found[b.name] = b.domain.lmo_array(self.rng.normal(size=b.shape)) if corner else inside
        for s in self.canonical.streams:
            lo = np.broadcast_to(np.maximum(s.lower, -1e6), s.shape)
            hi = np.broadcast_to(np.minimum(s.upper, 1e6), s.shape)
            share = self.rng.random(s.shape)
            mode = self.rng.random()
            share = np.round(share) if mode < 0.5 else np.full(s.shape, np.round(self.rng.random())) if mode < 0.7 else share
            value = lo + share * (hi - lo)
            found[s.name] = np.round(value) if s.integer else value
        return found

    def measure(self, expr: Expr, slopes: Mapping[str, Expr], place: Point) -> dict[str, float]:
        """|f| and the norms of its gradient in floating point."""
        env = dict(place)
        found = {"bound": abs(float(evaluate(expr, env, 1.0)))}
        parts = [np.broadcast_to(evaluate(g, env, 1.0), np.shape(place[n])).ravel() for n, g in slopes.items()]
        whole = np.concatenate(parts)
        found["lipschitz.l2"] = float(np.linalg.norm(whole))
        found["lipschitz.l1"] = float(np.abs(whole).max())
        return found

    def rigorous(self, expr: Expr, slopes: Mapping[str, Expr], place: Point) -> dict[str, float]:
        """The same as lower ends of interval evaluations."""
        box = {n: point(v) for n, v in place.items()} | {"t": point(1.0)}
        found = {"bound": enclose(expr, box).abs().least}
        squares, largest = 0.0, 0.0
        for n, g in slopes.items():
            sizes = enclose(g, box).broadcast(np.shape(place[n])).abs()
            squares += sizes.square().sum().least
            largest = max(largest, float(np.max(sizes.lo)))
        found["lipschitz.l2"] = float(np.sqrt(squares)) * (1 - 1e-15)
        found["lipschitz.l1"] = largest
        return found

    def sample(self, expr: Expr, rounds: int) -> Reached:
        """The largest rigorous values among `rounds` draws."""
        slopes = gradient(expr, self.blocks)
        best = Reached()
        for _ in range(rounds):
            place = self.draw()
            for what, value in self.measure(expr, slopes, place).items():
                best.note(what, value, place)
        found = Reached()
        for what, place in best.places.items():
            found.note(what, self.rigorous(expr, slopes, place)[what], place)
        return found

    def climb(self, expr: Expr, what: str, start: Point, steps: int) -> tuple[float, Point]:
        """Adversarial search: move one stream or the decision at a time to an end or a random place, and keep what helps."""
        slopes = gradient(expr, self.blocks)
        place, value = dict(start), self.measure(expr, slopes, start)[what]
        for _ in range(steps):
            other = self.draw()
            trial = dict(place)
            name = str(self.rng.choice(list(place)))
            is_stream = name not in self.blocks
            if is_stream and np.ndim(place[name]) > 0 and self.rng.random() < 0.7:
                mask = self.rng.random(np.shape(place[name])) < self.rng.choice([0.1, 0.5])
                trial[name] = np.where(mask, other[name], place[name])
            elif self.rng.random() < 0.3 and not is_stream:
                trial[name] = (np.asarray(place[name]) + other[name]) / 2
            else:
                trial[name] = other[name]
            reached = self.measure(expr, slopes, trial)[what]
            if reached > value:
                place, value = trial, reached
        return self.rigorous(expr, slopes, place)[what], place
