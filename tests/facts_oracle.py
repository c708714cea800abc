"""Bounds of functions by sampling and by adversarial search: what a proved number must never fall below.

A sample counts by the lower end of its own interval evaluation, so that rounding cannot break a sound bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Canonical, DecisionBlock, canonical, entry_labels
from oco.compiler.prover.terms.entry import entry
from oco.dsl.enclose import enclose
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr
from oco.dsl.intervals import point
from oco.dsl.model import Model
from oco.evaluation.batch import RoundArray, evaluate_rounds, values_of

Floats = np.ndarray[Any, Any]
Point = Mapping[str, Floats]
CHUNK = 1000


@dataclass
class Attained:
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

    def draws(self, count: int) -> dict[str, Floats]:
        """Decisions and stream values for `count` places, the place first; corners and extreme points more often than not."""
        found: dict[str, Floats] = {}
        for b in self.canonical.blocks:
            inside = np.array(b.domain.sample(self.rng, count))
            for k in range(count if b.domain.kind in ("box", "simplex", "nuclear_ball") else min(count, 60)):
                if self.rng.random() < 0.7:
                    inside[k] = self._extreme(b)
            found[b.name] = inside
        for s in self.canonical.streams:
            lo, hi = np.maximum(s.lower, -1e6), np.minimum(s.upper, 1e6)
            size = (count, *s.shape)
            mode = self.rng.random((count,) + (1,) * len(s.shape))
            corner, same = self.rng.integers(0, 2, size), self.rng.integers(0, 2, mode.shape)
            share = np.where(mode < 0.5, corner, np.where(mode < 0.7, same, self.rng.random(size)))
            value = lo + share * (hi - lo)
            found[s.name] = np.round(value).astype(np.int64) if s.integer else value
        return found

    def _extreme(self, b: DecisionBlock) -> Floats:
        slope = self.rng.normal(size=b.shape)
        if b.domain.kind == "box":
            return np.where(slope > 0, b.domain.upper, b.domain.lower)
        if b.domain.kind == "nuclear_ball":  # extreme points are of rank one
            u, v = self.rng.normal(size=b.shape[0]), self.rng.normal(size=b.shape[1])
            return b.domain.radius * np.outer(u / np.linalg.norm(u), v / np.linalg.norm(v))
        return b.domain.lmo_array(slope)

    def draw(self) -> dict[str, Floats]:
        return {n: v[0] for n, v in self.draws(1).items()}

    def measure_all(self, expr: Expr, slopes: Mapping[str, Expr], places: Point, count: int) -> dict[str, Floats]:
        """|f| and the norms of its gradient in floating point, at all places."""
        env = {n: RoundArray(np.asarray(v)) for n, v in places.items()}
        ones = np.ones(count)
        found = {"bound": np.abs(values_of(evaluate_rounds(expr, env, count, ones), count))}
        whole = self.gradients(slopes, places, count)
        return found | {"lipschitz.l2": np.linalg.norm(whole, axis=1), "lipschitz.l1": np.abs(whole).max(axis=1)}

    def gradients(self, slopes: Mapping[str, Expr], places: Point, count: int) -> Floats:
        """The gradient at all places, shape (places, entries of all decisions)."""
        env, ones, parts = {n: RoundArray(np.asarray(v)) for n, v in places.items()}, np.ones(count), []
        for n, g in slopes.items():
            shape = np.shape(places[n])
            value = values_of(evaluate_rounds(g, env, count, ones), count)
            value = value.reshape(count, *value.shape[1:], *(1,) * (len(shape) - value.ndim))
            parts.append(np.broadcast_to(value, shape).reshape(count, -1))
        return np.concatenate(parts, axis=1)

    def measure(self, expr: Expr, slopes: Mapping[str, Expr], place: Point) -> dict[str, float]:
        lifted = {n: np.asarray(v)[None] for n, v in place.items()}
        return {what: float(v[0]) for what, v in self.measure_all(expr, slopes, lifted, 1).items()}

    def rigorous(self, expr: Expr, slopes: Mapping[str, Expr], place: Point) -> dict[str, float]:
        """Lower ends of interval evaluations of it."""
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

    def sample(self, expr: Expr, count: int) -> Attained:
        """The largest rigorous values among `count` draws."""
        slopes = gradient(expr, self.blocks)
        best = Attained()
        for _ in range(0, count, CHUNK):
            places = self.draws(CHUNK)
            for what, values in self.measure_all(expr, slopes, places, CHUNK).items():
                k = int(np.argmax(values))
                best.note(what, float(values[k]), {n: v[k] for n, v in places.items()})
        found = Attained()
        for what, place in best.places.items():
            found.note(what, self.rigorous(expr, slopes, place)[what], place)
        return found

    def optimize(self, expr: Expr, what: str, starts: int = 2, evaluations: int = 120) -> tuple[float, Point]:
        """SciPy's Powell search over decisions and real streams at once; decisions are brought back into their domains."""
        slopes = gradient(expr, self.blocks)
        best = -np.inf, self.draw()
        for _ in range(starts):
            start = self.draw()
            real = [n for n, v in start.items() if np.asarray(v).dtype.kind == "f"]
            sizes = [np.size(start[n]) for n in real]

            def place_of(z: Floats, start: Point = start, real: list[str] = real, sizes: list[int] = sizes) -> Point:
                parts = np.split(z, np.cumsum(sizes)[:-1])
                return {**start, **{n: self._inside(n, p.reshape(np.shape(start[n]))) for n, p in zip(real, parts)}}

            z = np.concatenate([np.ravel(start[n]) for n in real])
            found = minimize(
                lambda z: -self.measure(expr, slopes, place_of(z))[what],
                z,
                method="Powell",
                options={"maxfev": evaluations},
            )
            place = place_of(found.x)
            value = self.rigorous(expr, slopes, place)[what]
            best = max(best, (value, place), key=lambda pair: pair[0])
        return best

    def _inside(self, name: str, value: Floats) -> Floats:
        for b in self.canonical.blocks:
            if b.name == name:
                return b.domain.project_array(value)
        s = next(s for s in self.canonical.streams if s.name == name)
        return np.clip(value, s.lower, s.upper)

    def change_of_gradient(self, expr: Expr) -> tuple[float, float]:
        """|grad f(x) - grad f(y)| / |x - y| and <grad f(x) - grad f(y), x - y> / |x - y|^2 at a random pair."""
        slopes = gradient(expr, self.blocks)
        first, second = self.draw(), self.draw()
        second |= {n: v for n, v in first.items() if n not in self.blocks}

        def at(place: Point) -> Floats:
            return np.concatenate(
                [np.broadcast_to(evaluate(g, place, 1.0), np.shape(place[n])).ravel() for n, g in slopes.items()]
            )

        gap = np.concatenate([(first[n] - second[n]).ravel() for n in self.blocks])
        moved = at(first) - at(second)
        size = float(np.linalg.norm(gap))
        return (float(np.linalg.norm(moved)) / size, float(moved @ gap) / size**2) if size > 1e-9 else (0.0, np.inf)

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
