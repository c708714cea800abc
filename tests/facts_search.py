"""A search for large values of what facts bound: many starts side by side, steps to the extreme point of a linearisation by differences.

Gradients come from the calculus of expressions, second derivatives from differences of gradients; nothing of the prover is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from facts_oracle import Oracle

from oco.compiler.problem.calculus import gradient
from oco.dsl.expressions import Expr

Floats = np.ndarray[Any, Any]
Places = dict[str, Floats]
Score = Callable[[Mapping[str, Floats], int], Floats]
SHARES = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)
SLOPE, DERIVATIVE_STEPS, INSIDE = (
    1e-4,
    1e-5,
    1e-4,
)  # steps of differences; how far towards the middle second derivatives are taken
NORMS = ("bound", "lipschitz.l2", "lipschitz.l1")
SECOND = ("smoothness.l2", "strong_convexity.l2")


class Search:
    """Places of one model, climbed side by side."""

    def __init__(self, oracle: Oracle, seed: int = 0) -> None:
        self.oracle = oracle
        self.rng = np.random.default_rng(seed)
        self.domains = {b.name: b.domain for b in oracle.canonical.blocks}
        self.ends = {
            s.name: tuple(np.broadcast_to(np.clip(end, -1e6, 1e6), s.shape) for end in (s.lower, s.upper))
            for s in oracle.canonical.streams
        }
        self.moving = [*self.domains, *(s.name for s in oracle.canonical.streams if not s.integer)]

    def largest(self, score: Score, starts: int = 16, steps: int = 8) -> float:
        """The largest finite score that is met."""
        places = self._starts(8 * starts)
        values = _finite(score(places, 8 * starts))
        order = np.argsort(-values)[:starts]
        places, best = {n: v[order] for n, v in places.items()}, values[order]
        for _ in range(steps):
            trials = self._trials(places, self._targets(places, score))
            joined = {n: np.concatenate([t[n] for t in trials]) for n in places}
            found = _finite(score(joined, starts * len(trials))).reshape(len(trials), starts)
            pick = found.argmax(0)
            better = np.flatnonzero(found[pick, np.arange(starts)] > best)
            for k in better:
                best[k] = found[pick[k], k]
                for n in places:
                    places[n][k] = trials[pick[k]][n][k]
            if not len(better):
                break
        return float(best.max())

    def _starts(self, count: int) -> Places:
        """Draws, some with streams at one end or nearest to 0, and decisions in the middle or extreme along all entries or one."""
        places = {n: np.array(v) for n, v in self.oracle.draws(count).items()}
        for k in range(count):
            if k % 3 == 0:
                for n, (lo, hi) in self.ends.items():
                    places[n][k] = (np.clip(0, lo, hi), hi, lo)[k // 3 % 3]
            for n, d in self.domains.items():
                towards = np.zeros(d.shape)
                if k % 4 == 0:
                    places[n][k] = d.centre()
                elif k % 4 == 1:
                    towards[...] = 1.0 if k // 4 % 2 else -1.0
                    places[n][k] = self._extreme(n, towards, places[n][k])
                elif k % 4 == 2:
                    towards.flat[self.rng.integers(towards.size)] = self.rng.choice([-1.0, 1.0])
                    places[n][k] = self._extreme(n, towards, places[n][k])
        return places

    def _extreme(self, name: str, slope: Floats, here: Floats) -> Floats:
        if name in self.ends:
            lo, hi = self.ends[name]
            return np.where(slope > 0, hi, np.where(slope < 0, lo, here))
        d = self.domains[name]
        if d.kind == "box":
            return np.where(slope > 0, d.upper, np.where(slope < 0, d.lower, here))
        return np.asarray(d.lmo_array(-slope)) if np.any(slope) else here

    def _targets(self, places: Places, score: Score) -> Places:
        """The extreme places of the linearisations."""
        count, sizes = len(next(iter(places.values()))), {n: places[n][0].size for n in self.moving}
        copies = 1 + sum(sizes.values())
        spread = {n: np.repeat(v, copies, axis=0) for n, v in places.items()}
        at = 1
        for n in self.moving:
            flat = spread[n].reshape(count, copies, sizes[n])
            for j in range(sizes[n]):
                flat[:, at, j] += SLOPE
                at += 1
            spread[n] = flat.reshape(spread[n].shape)
        with np.errstate(all="ignore"):
            values = score(spread, count * copies).reshape(count, copies)
            slopes = np.nan_to_num((values[:, 1:] - values[:, :1]) / SLOPE, nan=0.0, posinf=0.0, neginf=0.0)
        found, at = {n: v.copy() for n, v in places.items()}, 0
        for n in self.moving:
            part = slopes[:, at : at + sizes[n]]
            at += sizes[n]
            for k in range(count):
                found[n][k] = self._extreme(n, part[k].reshape(places[n].shape[1:]), places[n][k])
        return found

    def _trials(self, places: Places, targets: Places) -> list[Places]:
        """Points on the way, of all names and of one, and exchanges with other draws."""
        found = [{n: v + s * (targets[n] - v) if n in self.moving else v for n, v in places.items()} for s in SHARES]
        for n in self.moving if len(self.moving) > 1 else ():
            found += [{**places, n: places[n] + s * (targets[n] - places[n])} for s in SHARES[:3]]
        for _ in range(4):
            others, n = self._starts(len(next(iter(places.values())))), str(self.rng.choice(list(places)))
            mixed = self.rng.random(places[n].shape) < 0.3 if n in self.ends else np.ones(places[n].shape, dtype=bool)
            share = 1.0 if n in self.ends else float(self.rng.choice([1.0, 0.3]))
            moved = places[n] + share * (others[n] - places[n])
            found.append({**places, n: np.where(mixed, moved, places[n]).astype(places[n].dtype)})
        return found


def _finite(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, -np.inf)


class Attained:
    """The largest values that are found of |f|, of the norms of its gradient, of |H v| and of -v' H v, by the key of the fact."""

    def __init__(self, oracle: Oracle, expr: Expr) -> None:
        self.oracle, self.expr = oracle, expr
        self.slopes = gradient(expr, oracle.blocks)
        self.shapes = {b.name: b.shape for b in oracle.canonical.blocks}
        self.middles = {b.name: b.domain.centre() for b in oracle.canonical.blocks}
        self.directions = self._directions()

    def _directions(self) -> Floats:
        """An orthonormal basis of the directions in which the domain extends, in columns."""
        hulls = [b.domain.affine_hull()[0].reshape(-1, b.domain.size) for b in self.oracle.canonical.blocks]
        size, start, rows = sum(h.shape[1] for h in hulls), 0, []
        for h in hulls:
            rows.append(np.pad(h, ((0, 0), (start, size - start - h.shape[1]))))
            start += h.shape[1]
        _, values, vectors = np.linalg.svd(np.concatenate(rows))
        return np.asarray(vectors[int(np.sum(values > 1e-9)) :].T)

    def score(self, key: str) -> Score:
        if key in NORMS:
            return lambda places, count: self.oracle.measure_all(self.expr, self.slopes, places, count)[key]
        return lambda places, count: self._second(places, count)[SECOND.index(key)]

    def _gradients(self, places: Mapping[str, Floats], count: int) -> Floats:
        return self.oracle.gradients(self.slopes, places, count)

    def _second(self, places: Mapping[str, Floats], count: int) -> tuple[Floats, Floats]:
        """|H v| and -v' H v at places a little inside the domain, for the v where each is largest; -inf across a jump of the gradient."""
        inside = {n: v if n not in self.middles else v + INSIDE * (self.middles[n] - v) for n, v in places.items()}
        columns = []
        for d in self.directions.T:
            ends = [self._gradients(self._moved(inside, sign * DERIVATIVE_STEPS * d), count) for sign in (1, -1)]
            columns.append((ends[0] - ends[1]) / (2 * DERIVATIVE_STEPS))
        product = np.stack(columns, axis=2)
        fine = np.isfinite(product).all(axis=(1, 2))
        product = np.where(fine[:, None, None], product, 0.0)
        inner = self.directions.T @ product
        skew = np.abs(inner - inner.transpose(0, 2, 1)).max(axis=(1, 2))
        fine &= skew <= 1e-3 * np.maximum(1.0, np.abs(inner).max(axis=(1, 2)))
        size = np.linalg.norm(product, 2, axis=(1, 2))
        least = np.linalg.eigvalsh((inner + inner.transpose(0, 2, 1)) / 2)[:, 0]
        return np.where(fine, size, -np.inf), np.where(fine, -least, -np.inf)

    def _moved(self, places: Mapping[str, Floats], move: Floats) -> Places:
        found, start = dict(places), 0
        for n, shape in self.shapes.items():
            size = int(np.prod(shape, dtype=int))
            found[n] = places[n] + move[start : start + size].reshape(shape)
            start += size
        return found
