"""Attacks on a guarantee: sequences at random, an adversary that sees each decision, and greedy climbs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.guarantees.cases import Array, Case, Share, Streams, together
from oco.evaluation.batch import RoundArray

STEPS, SEEDS = 200, 8
VERTICES = 12
"""Random vertices of the streams' ranges that the adversary tries in each round, beside the lowest and the highest."""


def vertices(c: Case, rng: np.random.Generator) -> list[dict[str, Array]]:
    """Vertices of the streams' ranges: all lowest, all highest, others at random."""
    drawn = c.random(rng, VERTICES)
    ends = [
        {s.name: np.broadcast_to(e, s.shape) for s in c.plan.canonical.streams for e in [getattr(s, end)]}
        for end in ("lower", "upper")
    ]
    return ends + [{n: v[i] for n, v in drawn.items()} for i in range(VERTICES)]


def rivals(c: Case, rng: np.random.Generator, count: int = 12) -> list[tuple[Array, ...]]:
    """Fixed decisions that the adversary compares with: vertices of the domain where it has few, else points at random."""
    blocks = []
    for b in c.plan.canonical.blocks:
        corners = b.domain.vertices()
        some = b.domain.sample(rng, count) if corners is None else corners[rng.integers(0, len(corners), count)]
        blocks.append(np.reshape(some, (count, *b.shape)))
    return list(zip(*blocks))


def adversary(c: Case, aim: str, seed: int) -> Streams:
    """Stream values at vertices, chosen in each round after the decision, or where it waits for contexts, for what it would be.

    aim  "regret": the largest loss beyond that of the fixed decision which has lost least so far; "violation": the largest sum of
         constraints, ties by the loss; "both": their sum
    """
    rng = np.random.default_rng([7, seed])
    run, points = c.started(seed), rivals(c, rng)
    fixed = [RoundArray(np.array(block)) for block in zip(*points)]
    lost, rows = np.zeros(len(points)), []
    for t in range(1, c.rounds + 1):
        tried = vertices(c, rng)
        values, now = together(tried), c.asked(run, tried)
        loss, g = c.losses(now, values, t, len(tried)), c.constraints(now, values, t, len(tried))
        ahead, broken = loss - c.losses(points[int(np.argmin(lost))], values, t, len(tried)), g.sum(axis=1)
        worth = {"regret": ahead, "violation": broken + 1e-3 * ahead, "both": ahead + broken}[aim]
        worst = int(np.argmax(np.where(np.isnan(worth), -np.inf, worth)))
        lost += c.losses(fixed, tried[worst], t, len(points))
        c.feed(run, tried[worst], float(loss[worst]), g[worst], t)
        rows.append(tried[worst])
    return {n: np.array([r[n] for r in rows]) for n in rows[0]}


def mutated(c: Case, streams: Streams, rng: np.random.Generator) -> Streams:
    """Streams with other vertices in a block of rounds, for a round each or one for all."""
    start, length = rng.integers(c.rounds), int(rng.choice([1, 2, 4, 8, 16]))
    fresh = c.random(rng, c.rounds)
    if rng.random() < 0.5:
        fresh = {n: np.broadcast_to(v[0], v.shape) for n, v in fresh.items()}
    name, one = str(rng.choice(sorted(streams))), rng.random() < 0.5
    inside = (np.arange(c.rounds) >= start) & (np.arange(c.rounds) < start + length)
    return {
        n: np.where(inside.reshape(-1, *(1,) * (v.ndim - 1)), fresh[n], v) if n == name or not one else v
        for n, v in streams.items()
    }


def climbed(c: Case, measure: str, begin: Streams, steps: int, runs: int) -> Streams:
    """Greedy climb of the share of regret or violation from a sequence."""
    rng, best = np.random.default_rng(11), begin
    value = getattr(c.share([(best, s) for s in range(runs)]), measure)
    for _ in range(steps if value is not None else 0):
        other = mutated(c, best, rng)
        if (reached := getattr(c.share([(other, s) for s in range(runs)]), measure)) >= value:
            best, value = other, reached
    return best


@dataclass(frozen=True)
class Worst:
    """Largest share of a measure on a case, its standard error, and the attack that reached it; `share` None: nothing is promised."""

    share: float | None = None
    error: float = 0.0
    attack: str = ""


def attacked(c: Case, seeds: int = SEEDS, steps: int = STEPS) -> dict[str, Worst]:
    """Largest shares of regret and violation. Means are taken over fresh draws, never over those a sequence was chosen on."""
    fresh = range(1000, 1000 + (seeds if c.averaged else 1))
    shares: list[tuple[str, Share]] = []
    made: dict[str, Streams] = {}
    if not c.free:
        drawn = [(c.random(np.random.default_rng([5, s])), s) for s in range(4 * seeds)]
        shares += [("random", c.share(drawn))] if c.averaged else [("random", c.share([run])) for run in drawn]
    else:
        made = {f"random {s}": c.random(np.random.default_rng([5, s])) for s in range(seeds)}
        made |= {
            f"adversary {aim} {s}": adversary(c, aim, s) for aim, s in product(("regret", "violation", "both"), (0, 1))
        }
        shares = [(name.rsplit(" ", 1)[0], c.share([(s, k) for k in fresh])) for name, s in made.items()]
    results = {m: _worst(shares, m) for m in ("regret", "violation")}
    for measure, best in results.items():
        if c.free and best.share is not None:
            top = max(range(len(shares)), key=lambda i: getattr(shares[i][1], measure))
            sequence = climbed(c, measure, list(made.values())[top], steps, 2 if c.averaged else 1)
            results[measure] = _worst([*shares, ("climb", c.share([(sequence, k) for k in fresh]))], measure)
    return results


def _worst(shares: Sequence[tuple[str, Share]], measure: str) -> Worst:
    attack, share = max(shares, key=lambda s: getattr(s[1], measure) if getattr(s[1], measure) is not None else -np.inf)
    return Worst(getattr(share, measure), getattr(share, f"{measure}_error"), attack)
