"""Tuning of a theorem's free constants: successive halving on the first part of a stretch of data, judged on what comes after it.

Data of rounds are a time series: nothing is shuffled, every run begins at the start of its part, and the part on which the result is
judged is read only when the search has ended.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from time import perf_counter
from typing import Protocol

import numpy as np

from oco.compiler.theory.theorems import Free, Situation
from oco.dsl.diagnostics import OcoError, fail
from oco.evaluation.data import Data
from oco.evaluation.measured_run import MeasuredRun
from oco.evaluation.pilot import score

SEARCHED = 0.6
"""Share of the rounds that the search may see."""
CANDIDATES = 45
KEPT = 3
"""One candidate in KEPT goes on to a stretch KEPT times as long."""
SPREAD = math.log(1000.0)
"""Largest distance of a constant from its start, in log."""
FAR = math.log(1e6)
"""Largest distance of two constants that compensate for each other, in log."""
LEAST_ROUNDS = 20
SEARCH_TIME = 0.7
"""Share of the time after which the search begins no trial; the rest is for the rounds held out."""
TRIES = 4
"""Number of draws for each sample wanted, since theorems refuse some."""


Numbers = Mapping[str, float]
Run = Callable[[Numbers, Data, int], MeasuredRun]


class Tunable(Protocol):
    """Plan whose free constants may be chosen."""

    def trial(self, rounds: int, runs: int) -> Run:
        """Function that runs the plan over so many rounds with any values of the constants; `runs` is the expected
        number of calls.
        """


@dataclass(frozen=True)
class Tried:
    """Constants with their cost per round on the searched part and, where they were judged, on the part after it."""

    name: str
    numbers: Mapping[str, float]
    searched: float
    rounds: int
    held_out: float | None = None


@dataclass(frozen=True)
class Tuning:
    """Trials in the order of the search. `split` is the first round (from 0) of the part held out.

    winner  the best of the search
    cut     number of trials that the time did not suffice for
    best    the constants chosen: the winner, or the `reference` (the optimal constants) where that cost no more on the
            rounds held out
    """

    tried: tuple[Tried, ...]
    reference: str
    split: int
    rounds: int
    seed: int
    cut: int = 0

    @property
    def winner(self) -> Tried:
        """Best trial of the search."""
        return self.tried[0]

    @property
    def best(self) -> Tried:
        """Trial that is chosen, by its cost on the rounds held out."""
        kept = next(t for t in self.tried if t.name == self.reference)
        return kept if _held_out(kept) <= _held_out(self.winner) else self.winner

    def __str__(self) -> str:
        """Explanation of the choice."""
        left = f" ({self.cut} trials were left out: the time was over)" if self.cut else ""
        if self.winner.name == self.reference:
            return f"the search found nothing better than the {self.reference} constants{left}"
        kept = next(t for t in self.tried if t.name == self.reference)
        costs = f"{_held_out(self.winner):.6g} a round, with the {self.reference} ones {_held_out(kept):.6g}"
        end = "so they are taken" if self.best is self.winner else "so those are kept"
        return f"on the rounds held out the constants that the search found cost {costs}: {end}{left}"


def _held_out(t: Tried) -> float:
    return math.inf if t.held_out is None else t.held_out


def tune(
    plan: Tunable,
    free: tuple[Free, ...],
    starts: Mapping[str, Numbers],
    data: Data,
    s: Situation,
    weight: float = 1.0,
    seed: int = 0,
    allowed: Callable[[Numbers], bool] = lambda numbers: True,
    seconds: float = math.inf,
) -> Tuning:
    """Search the constants around `starts` (by name: the paper's, the optimal ones), reproducibly from the seed where the time suffices.

    The rounds held out then decide between the winner of the search and the last of the starts, and nothing else.

    allowed  True where the theorem holds with these constants; others are not tried
    seconds  time that it may take: the starts are tried in any case, and what was left out is counted

    Raises OcoError where the data is too short to be split.
    """
    split = searched(data)
    if split < LEAST_ROUNDS:
        raise fail("OCO710", f"{data.rounds} rounds are too few to tune on and to judge", hint="give 40 or more")
    rng, until = np.random.default_rng(seed), perf_counter() + SEARCH_TIME * seconds
    alive = {**starts, **_samples(free, starts, rng, allowed)}
    past = data.first(split)
    rungs = max(1, round(math.log(len(alive), KEPT)))
    scored: dict[str, Tried] = {}
    cut = 0
    for rung in range(rungs):
        rounds = max(LEAST_ROUNDS, split // KEPT ** (rungs - 1 - rung))
        if scored and perf_counter() > until:
            cut += len(alive)
            break
        costs = _costs(plan, alive, past.first(rounds), s, weight, seed, until, 1 if scored else len(starts))
        results = [Tried(n, x, costs[n], rounds) for n, x in alive.items() if n in costs]
        cut += len(alive) - len(results)
        scored |= {t.name: t for t in results}
        ranked = sorted(results, key=lambda t: (t.searched, t.name))
        kept = ranked[: max(KEPT, len(ranked) // KEPT)]
        alive = {t.name: t.numbers for t in kept}
        if rung + 1 < rungs:
            alive |= _children(free, kept[:KEPT], SPREAD / 4 ** (rung + 1), rng, allowed)
    order = sorted(scored.values(), key=lambda t: (-t.rounds, t.searched, t.name))
    judged = [t for t in order if t.rounds == split or t is order[0] or t.name in starts]
    future = data.after(split)
    costs = _costs(plan, {t.name: t.numbers for t in judged}, future, s, weight, seed)
    held = [replace(t, held_out=costs[t.name]) for t in judged]
    tried = (*held, *(t for t in order if t not in judged))
    return Tuning(tried, list(starts)[-1], split, data.rounds, seed, cut)


def _samples(
    free: tuple[Free, ...],
    starts: Mapping[str, Numbers],
    rng: np.random.Generator,
    allowed: Callable[[Numbers], bool],
) -> dict[str, dict[str, float]]:
    """Random constants around each start in turn, uniform in log, within their ranges, where the theorem allows them.

    Theorems often need a product of two constants to be small: every other sample moves two of them far, one up and the
    other down.
    """
    centres = list(starts.values())
    results: dict[str, dict[str, float]] = {}
    for k in range(TRIES * CANDIDATES):
        centre = centres[k % len(centres)]
        drawn = {f.name: _near(f, centre.get(f.name, 1.0), rng) for f in free}
        if len(free) > 1 and k // len(centres) % 2:
            drawn = _traded(free, centre, rng)
        if len(results) < CANDIDATES - len(centres) and allowed(drawn):
            results[f"sample {len(results) + 1}"] = drawn
    return results


def _traded(free: tuple[Free, ...], centre: Numbers, rng: np.random.Generator) -> dict[str, float]:
    """Constants near a start, with one of them far up and another equally far down."""
    up, down = (int(i) for i in rng.permutation(len(free))[:2])
    by = math.exp(float(rng.uniform(0, FAR)))
    moved = {f.name: centre.get(f.name, 1.0) * {up: by, down: 1 / by}.get(k, 1.0) for k, f in enumerate(free)}
    return {f.name: _near(f, moved[f.name], rng, SPREAD / 4) for f in free}


def _children(
    free: tuple[Free, ...],
    parents: list[Tried],
    spread: float,
    rng: np.random.Generator,
    allowed: Callable[[Numbers], bool],
) -> dict[str, dict[str, float]]:
    """Constants near the best ones so far."""
    results = {}
    for parent in parents:
        for k in range(KEPT):
            drawn = {f.name: _near(f, parent.numbers.get(f.name, 1.0), rng, spread) for f in free}
            if allowed(drawn):
                results[f"{parent.name}.{k + 1}"] = drawn
    return results


def _near(f: Free, centre: float, rng: np.random.Generator, spread: float = SPREAD) -> float:
    drawn = centre * math.exp(float(rng.uniform(-spread, spread)))
    if f.kind == "value" and spread == SPREAD:
        drawn = float(rng.uniform(f.low, f.high))
    if f.kind == "count":  # few different ones, as each makes a program of its own
        drawn = 2.0 ** round(math.log2(drawn))
    return float(f"{min(max(drawn, f.low), f.high):.4g}")


def _costs(
    plan: Tunable,
    candidates: Mapping[str, Numbers],
    data: Data,
    s: Situation,
    weight: float,
    seed: int,
    until: float = math.inf,
    least: int = 0,
) -> dict[str, float]:
    """Cost per round of each trial's constants, by name; infinite where a setting has no value or a decision is not
    finite. The first `least` are tried in any case, the others while it is earlier than `until`.
    """
    run = plan.trial(data.rounds, len(candidates))

    def cost(numbers: Numbers) -> float:
        try:
            trace = run(numbers, data, seed)
        except OcoError:
            return math.inf
        result = score(trace, s, weight)[2]
        return result if math.isfinite(result) else math.inf

    tried = takewhile(lambda k: k[0] < least or perf_counter() <= until, enumerate(candidates.items()))
    return {name: cost(numbers) for _, (name, numbers) in tried}


def searched(data: Data) -> int:
    """Number of leading rounds that a choice of algorithm or settings may see; at least one."""
    return max(1, int(SEARCHED * data.rounds))
