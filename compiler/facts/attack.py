"""Claims attacked: decisions and stream values that try to break a range, a supremum, a curvature, a margin.

Part of the replay (`verify.py`), and like it without the prover's code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

import numpy as np

from oco.compiler.canonical import Canonical, entry_labels
from oco.compiler.facts.types import Step
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Call, Expr, names, walk

Array = np.ndarray[Any, Any]
Place = dict[str, Array]
TOLERANCE = 1e-9
PLACES = 120


class Outcome(StrEnum):
    """Worked out again, attacked without success, taken as stated, or found wrong."""

    REPLAYED = "replayed"
    TESTED = "tested"
    STATED = "stated"
    FAILED = "failed"


Verdict = tuple[Outcome, str]


class Attack:
    """Places where claims are tried, and the claims that can only be tried."""

    def __init__(self, problem: Canonical, rng: np.random.Generator) -> None:
        self.problem = problem
        self.rng = rng
        self.decisions = [b.name for b in problem.blocks]
        self.places = [self._place() for _ in range(PLACES)]
        self.functions = dict(self._functions())

    # ---- places

    def _place(self) -> Place:
        """A decision and stream values, corners more often than not."""
        place: Place = {"t": np.asarray(1.0)}
        for b in self.problem.blocks:
            place[b.name] = np.asarray(b.domain.sample(self.rng, 1)[0])
            if b.domain.kind == "box" and self.rng.random() < 0.6:
                place[b.name] = np.where(self.rng.random(b.shape) < 0.5, b.domain.lower, b.domain.upper)
        for s in self.problem.streams:
            lo, hi = np.maximum(s.lower, -1e9), np.minimum(s.upper, 1e9)
            share = self.rng.random(s.shape)
            share = np.round(share) if self.rng.random() < 0.6 else share
            value = lo + share * (hi - lo)
            place[s.name] = np.round(value) if s.integer else value
        return place

    def _value(self, expr: Expr, place: Place) -> Array:
        return evaluate(expr, place, float(place["t"]))

    def _functions(self) -> Iterator[tuple[str, Callable[[Place], float]]]:
        yield "loss", self._entry(self.problem.objective, ())
        for c in self.problem.constraints:
            for at, label in zip(np.ndindex(*c.shape), entry_labels(c.label, c.shape)):
                yield f"constraints.{label}", self._entry(c.expr, at)

    def _entry(self, expr: Expr, at: tuple[int, ...]) -> Callable[[Place], float]:
        return lambda p: float(self._value(expr, p)[at])

    # ---- ranges and suprema

    def _within_samples(self, step: Step) -> Verdict:
        """Values at the places lie in the range."""
        node, ends = step.subject, step.value
        if not isinstance(node, Expr) or not hasattr(ends, "lo"):
            return Outcome.STATED, ""
        for p in self.places:
            value = self._value(node, p)
            slack = TOLERANCE * np.maximum(1.0, np.abs(value))
            if np.any(value < ends.lo - slack) or np.any(value > ends.hi + slack):
                return Outcome.FAILED, "a value outside the range was found"
        return Outcome.TESTED, ""

    def _supremum(self, step: Step) -> Verdict:
        """Places, and climbs from the best of them, stay below the bound."""
        if not isinstance(step.subject, Expr) or step.subject.shape != ():
            return Outcome.STATED, ""
        values = [float(self._value(step.subject, p)) for p in self.places]
        best = self.places[int(np.nanargmax(values))]
        top = self._climbed(step.subject, best, float(np.nanmax(values)))
        slack = TOLERANCE * max(1.0, abs(top))
        return (Outcome.TESTED, "") if top <= step.value + slack else (Outcome.FAILED, f"the value {top:g} was found")

    def _climbed(self, expr: Expr, start: Place, value: float) -> float:
        """Exchange one name at a time, wholly or in some entries, with that of another place."""
        place = start
        used = [n for n in names(expr) if n != "t"]
        for _ in range(60):
            name = str(self.rng.choice(used))
            other = self.places[int(self.rng.integers(PLACES))][name]
            if name not in self.decisions and np.ndim(other):
                other = np.where(self.rng.random(np.shape(other)) < 0.3, other, place[name])
            trial = {**place, name: other}
            reached = float(self._value(expr, trial))
            if reached > value:
                place, value = trial, reached
        return value

    # ---- calculus

    def _rewrite(self, step: Step) -> Verdict:
        before, after = step.subject
        for p in self.places[:40]:
            a, b = self._value(before, p), self._value(after, p)
            scale = max(1.0, float(np.max(np.abs(a[np.isfinite(a)]), initial=0.0)))
            if not np.allclose(a, b, rtol=1e-8, atol=1e-8 * scale, equal_nan=True):
                return Outcome.FAILED, "the two differ at a decision and stream values that were tried"
        return Outcome.TESTED, ""

    def _gradient(self, step: Step) -> Verdict:
        """Directional derivatives by central differences."""
        function, slopes = step.subject
        if any(p.rule != "rewrite" for p in step.premises) or "a piece" in step.claim:
            return Outcome.STATED, ""
        for p in self.places[:12]:
            centre = {b.name: (p[b.name] + b.domain.centre()) / 2 for b in self.problem.blocks}
            move = {n: self.rng.normal(size=np.shape(v)) for n, v in centre.items()}
            size = 1e-6 * max(1.0, *(float(np.abs(v).max()) for v in centre.values()))
            ends = [
                float(self._value(function, {**p, **{n: centre[n] + s * size * move[n] for n in move}}))
                for s in (1, -1)
            ]
            along = sum(
                float(np.sum(np.broadcast_to(self._value(slopes[n], {**p, **centre}), np.shape(move[n])) * move[n]))
                for n in move
            )
            slack = 1e-3 * max(1.0, abs(along)) + 1e-6 * max(map(abs, ends)) / size * 1e-3
            if (
                np.isfinite(ends).all()
                and abs((ends[0] - ends[1]) / (2 * size) - along) > slack
                and not _kinked(function)
            ):
                return Outcome.FAILED, "a difference quotient disagrees"
        return Outcome.TESTED, ""

    def _curvature(self, step: Step) -> Verdict:
        """Values halfway between two decisions against the mean of the two."""
        if step.value not in ("convex", "concave", "affine") or not isinstance(step.subject, Expr):
            return Outcome.STATED, ""
        signs = {"convex": (1,), "concave": (-1,), "affine": (1, -1)}[step.value]
        for p, q in zip(self.places, self.places[1:]):
            x = {n: p[n] for n in self.decisions}
            y = {n: q[n] for n in self.decisions}
            ends = [self._value(step.subject, {**p, **v}) for v in (x, y)]
            middle = self._value(step.subject, {**p, **{n: x[n] / 2 + y[n] / 2 for n in x}})
            bulge = middle - (ends[0] / 2 + ends[1] / 2)
            slack = 1e-9 * np.maximum(1.0, np.maximum(np.abs(ends[0]), np.abs(ends[1])))
            if any(np.any(s * bulge > slack) for s in signs):
                return Outcome.FAILED, "two decisions were found between which it bends the other way"
        return Outcome.TESTED, ""

    def _bent(self, step: Step) -> Verdict:
        """Second differences lie between the eigenvalues."""
        least, most = step.value
        for p, q in zip(self.places[:40], self.places[1:]):
            x, y = ({n: v[n] for n in self.decisions} for v in (p, q))
            gap = sum(float(np.sum((x[n] - y[n]) ** 2)) for n in x)
            if gap < 1e-12:
                continue
            ends = [float(self._value(step.subject, {**p, **v})) for v in (x, y)]
            middle = float(self._value(step.subject, {**p, **{n: x[n] / 2 + y[n] / 2 for n in x}}))
            rate = 4 * (ends[0] + ends[1] - 2 * middle) / gap
            slack = 1e-6 * max(1.0, abs(rate)) + 1e-12 * max(map(abs, (*ends, middle))) / gap
            if rate < least - slack or rate > most + slack:
                return Outcome.FAILED, f"a second difference of {rate:g} was found"
        return Outcome.TESTED, ""

    # ---- domain and feasibility

    def _domain(self, step: Step) -> Verdict:
        """Distances and norms of sampled points stay below what is claimed."""
        key, block = step.subject
        points = np.concatenate([block.domain.sample(self.rng, 60), [p[block.name] for p in self.places]]).reshape(
            180, -1
        )
        gaps = points[:90] - points[90:]
        seen = {
            "domain.diameter.l2": np.linalg.norm(gaps, axis=1).max(),
            "domain.diameter.l1": np.abs(gaps).sum(1).max(),
            "domain.radius": np.linalg.norm(points, axis=1).max(),
        }.get(key)
        if seen is None:
            return Outcome.STATED, ""
        holds = float(seen) <= step.value * (1 + TOLERANCE)
        return (Outcome.TESTED, "") if holds else (Outcome.FAILED, f"{float(seen):g} was found")

    def _at_a_point(self, step: Step) -> Verdict:
        expr, x, streams = step.subject
        for p in self.places:
            place = {**p, **{n: np.clip(p[n], r.lo, r.hi) for n, r in streams.items()}, **x}
            if np.any(self._value(expr, place) > step.value + TOLERANCE * max(1.0, abs(step.value))):
                return Outcome.FAILED, "stream values were found at which it is larger"
        return Outcome.TESTED, ""

    def _interior(self, step: Step) -> Verdict:
        """The point is in the domain, and the equalities hold there with the streams at their means."""
        x = step.subject
        if not isinstance(x, dict):
            return Outcome.STATED, ""
        means = {s.name: np.asarray(s.mean) for s in self.problem.streams if s.mean is not None}
        inside = all(
            b.domain.contains(x[b.name]) and b.domain.interior_margin(x[b.name]) > 0 for b in self.problem.blocks
        )
        for c in self.problem.equalities:
            value = np.abs(self._value(c.expr, {**self.places[0], **means, **x}))
            scale = max(float(np.abs(self._value(c.expr, {**p, **means})).max()) for p in self.places[:20])
            if np.any(value > 1e-6 * max(scale, 1e-300)):
                return Outcome.FAILED, "an equality does not hold there in the mean"
        return (Outcome.TESTED, "") if inside else (Outcome.FAILED, "the point is not inside the domain")

    def _nowhere(self, step: Step) -> Verdict:
        """The weighted sum of the constraints is positive at every decision tried."""
        rows, weights, _, streams = step.subject
        for p in self.places:
            total = 0.0
            for row, weight, values in zip(rows, weights, streams):
                total += float(weight) * float(self._value(row.expr, {**p, **values}))
            if total < 0:
                return Outcome.FAILED, "a decision was found at which the combination is negative"
        return Outcome.TESTED, ""


def _kinked(expr: Expr) -> bool:
    kinks = (
        "abs",
        "max",
        "min",
        "maximum",
        "minimum",
        "norm1",
        "norm2",
        "norm_inf",
        "pos",
        "neg",
        "hinge",
        "huber",
        "sigma_max",
        "nuclear_norm",
    )
    return any(isinstance(n, Call) and n.atom in kinks for n in walk(expr))
