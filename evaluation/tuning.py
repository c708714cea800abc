"""Tuning of settings: successive halving on the first part of a stretch of data, judged on what comes after it.

Data of rounds are a time series: nothing is shuffled, and the part on which the result is judged is read only when the search has ended.
What is judged is the steady state: every run begins at round 1, as the run that settings are for will; a trial of the search costs what
its second half costs, and the rounds held out are the end of one run over all rounds. Settings under which a constraint on average without
a penalty is broken there, whatever was saved before, come after all others (`Trade.grows`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from itertools import takewhile
from time import perf_counter
from typing import Protocol

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.theory.theorems import Free, Situation
from oco.dsl.diagnostics import InternalError, OcoError, fail
from oco.dsl.records import dataclass
from oco.evaluation.by_chance import block_differences, gain_by_chance
from oco.evaluation.cost import PartOfRounds, SteadyCost, Trade
from oco.evaluation.data import FEWEST_ROUNDS, Data
from oco.evaluation.measured_run import MeasuredRun

SEARCHED = 0.6
"""Share of the rounds that the search may see."""
CANDIDATES, EACH = 45, 24
"""Candidates of a search: the second number for each constant, the first at most."""
KEPT = 3
"""One candidate in KEPT goes on to a longer stretch."""
SHORTEST = 1 / 3
"""Share of the searched rounds that the first trials run: in fewer they would not come to rest."""
SPREAD = math.log(1000.0)
"""Largest distance of a constant from its start, in log."""
FAR = math.log(1e6)
"""Largest distance of two constants that compensate for each other, in log."""
SEARCH_TIME = 0.7
"""Share of the time after which the search begins no trial; the rest is for the rounds held out."""
TRIES = 4
"""Number of draws for each sample wanted, since theorems refuse some."""


Numbers = Mapping[str, float]
Run = Callable[[Numbers, Data, int], MeasuredRun]
TradeOn = Callable[[Canonical], Trade]
"""Trade between loss and violation for runs of a problem, whose constraints may stand in another order than those of another plan."""
NEVER = SteadyCost(math.inf)
"""Cost of what cannot run."""


class Tunable(Protocol):
    """Plan whose free constants may be chosen."""

    def trial(self, rounds: int, runs: int) -> Run:
        """Function that runs the plan over so many rounds with any values of the constants; `runs` is the expected
        number of calls.
        """


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """Plan, the constants that its theorem leaves free, and values of them to begin with, by name; the last are the plan's own.

    allowed  True where the theorem holds with these constants; others are not tried
    """

    plan: Tunable
    free: tuple[Free, ...]
    starts: Mapping[str, Numbers]
    allowed: Callable[[Numbers], bool] = lambda numbers: True

    @property
    def own(self) -> str:
        """Name of the plan's own constants."""
        return list(self.starts)[-1]


@dataclass(frozen=True)
class TriedConstants:
    """Constants with their costs a round in the searched part and, where they were judged, in the part after it.

    space     name of the settings that the constants belong to
    searched  in units of the trade, as `held_out`; `grows` and `held` are `SteadyCost.grows` and all of the cost held out
    each      costs of the rounds held out, one by one
    """

    name: str
    numbers: Mapping[str, float]
    searched: float
    rounds: int
    held_out: float | None = None
    grows: bool = False
    held: SteadyCost = NEVER
    space: str = ""
    each: tuple[float, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Tuning:
    """Trials in the order of the search. `split` is the first round (from 0) of the part held out.

    reference  name of the default: what is taken without tuning
    winner     the best of the search
    cut        number of trials that the time did not suffice for
    best       the trial that is chosen: the winner, or the default where that costs no more on the rounds held out, what chance may
               gain there (`by_chance`) aside
    """

    tried: tuple[TriedConstants, ...]
    reference: str
    split: int
    rounds: int
    seed: int
    cut: int = 0

    @property
    def winner(self) -> TriedConstants:
        """Best trial of the search."""
        return self.tried[0]

    @property
    def default(self) -> TriedConstants:
        """Trial of what is taken without tuning."""
        return next(t for t in self.tried if t.name == self.reference)

    @property
    def best(self) -> TriedConstants:
        """Trial that is chosen, by its cost on the rounds held out."""
        ours, default = self.winner.held, self.default.held
        if ours.grows != default.grows:
            return self.default if ours.grows else self.winner
        if not math.isfinite(default.value):
            return self.winner if math.isfinite(ours.value) else self.default
        return self.winner if ours.value < default.value - self.by_chance else self.default

    @property
    def by_chance(self) -> float:
        """Cost a round by which the winner may come before the default in the rounds held out by chance (`gain_by_chance`)."""
        return gain_by_chance(block_differences(self.winner.each, self.default.each))

    @property
    def gained(self) -> float:
        """Cost a round that the choice saves on the rounds held out, in units of the trade; never negative where no violation grows."""
        return 0.0 if self.best is self.default else self.default.held.value - self.best.held.value

    def __str__(self) -> str:
        """Explanation of the choice."""
        left = f" ({self.cut} trials were left out: the time was over)" if self.cut else ""
        if self.winner.name == self.reference:
            return f"the search found nothing better than the {self.reference} settings{left}"
        ours, default = self.winner.held, self.default.held
        costs = f"{ours.value:.6g} a round, with the {self.reference} ones {default.value:.6g}"
        loss = f"loss {ours.own_loss:.6g} and {default.own_loss:.6g}, violation {ours.own_violation:.4g} and {default.own_violation:.4g}"
        return f"on the rounds held out the settings that the search found cost {costs} ({loss}{self._growth()}), {self._end()}{left}"

    def _end(self) -> str:
        """Clause on what is taken, and why."""
        if self.best is self.winner:
            return f"so they are taken: {self._gain()}"
        less = self.winner.held.order < self.default.held.order
        chance = f", for chance alone may show up to {self.by_chance:.2g} a round" if less else ""
        return f"so those are kept: nothing is gained{chance}"

    def _gain(self) -> str:
        if self.default.held.grows > self.winner.held.grows:
            return "no violation grows"
        share = self.gained / abs(self.default.held.value) if self.default.held.value else math.inf
        return f"{share:.1%} is gained" if math.isfinite(share) else f"{self.gained:.4g} a round is gained"

    def _growth(self) -> str:
        """Clause on violation that does not end."""
        of = {"these": self.winner, f"the {self.reference} ones": self.default}
        growing = [whose for whose, t in of.items() if t.held.grows]
        return f"; with {' and '.join(growing)} a violation grows to the end" if growing else ""


def tune(
    spaces: Mapping[str, SearchSpace],
    data: Data,
    s: Situation,
    weight: float = 1.0,
    seed: int = 0,
    seconds: float = math.inf,
) -> Tuning:
    """Search settings, reproducibly from the seed where the time suffices: first which of the `spaces` costs least with its
    own constants, then its constants around their starts.

    The rounds held out then decide between the winner of the search and the first space's own constants, and nothing else.

    spaces   by name, the default first; names of starts differ between spaces
    seconds  time that it may take: the first space's starts are tried in any case, and what was left out is counted

    Raises OcoError where the data is too short to be split.
    """
    split = split_of(data)
    trade = partial(Trade.of, s, weight)
    search = _Search(trade, data.first(split), seed, perf_counter() + SEARCH_TIME * seconds)
    first = next(iter(spaces))
    chosen = search.best_space(spaces) if len(spaces) > 1 else first
    search.halving(chosen, spaces[chosen])
    order = sorted(search.scored.values(), key=tried_order)
    reference = spaces[first].own
    if reference not in search.scored:
        raise InternalError(f"the default `{reference}` was not tried")
    judged = [t for t in order if t is order[0] or t.name == reference or t.name in spaces[chosen].starts]
    held = [held_out(t, spaces[t.space], data, split, trade, seed, len(judged)) for t in judged]
    tried = (*held, *(t for t in order if t not in judged))
    return Tuning(tried, reference, split, data.rounds, seed, search.cut)


def tried_order(t: TriedConstants) -> tuple[int, bool, float, str]:
    """Key by which trials of a search are ordered, the best first."""
    return -t.rounds, t.grows, t.searched, t.name


def split_of(data: Data) -> int:
    """First round (from 0) that a search holds out. Raises OCO710 where the data is too short to be split."""
    split = searched(data)
    if split < FEWEST_ROUNDS:
        raise fail("OCO710", f"{data.rounds} rounds are too few to tune on and to judge", hint="give 40 or more")
    return split


def held_out(
    t: TriedConstants, space: SearchSpace, data: Data, split: int, trade: TradeOn, seed: int, runs: int
) -> TriedConstants:
    """Trial with its cost in the rounds held out, of a run over all rounds."""
    made = _ran(space.plan.trial(data.rounds, runs), t.numbers, data, seed)
    if made is None:
        return replace(t, held_out=NEVER.value, held=NEVER)
    own = trade(made.problem)
    cost, each = _finite(own.steady(made, split)), tuple(own.each(PartOfRounds.of(made, split)).tolist())
    return replace(t, held_out=cost.value, held=cost, each=each)


class _Search:
    """State of a search on the first part of the data: trials by name, and the number of those that were left out."""

    def __init__(self, trade: TradeOn, past: Data, seed: int, until: float) -> None:
        self.trade, self.past, self.seed, self.until = trade, past, seed, until
        self.rng = np.random.default_rng(seed)
        self.scored: dict[str, TriedConstants] = {}
        self.cut = 0

    def best_space(self, spaces: Mapping[str, SearchSpace]) -> str:
        """Name of the space whose own constants cost least on the whole searched part; the first is tried in any case."""
        for name, space in spaces.items():
            own = {space.own: space.starts[space.own]}
            self._try(name, space, own, self.past.rounds, 0 if self.scored else 1)
        return min(self.scored.values(), key=lambda t: (t.grows, t.searched)).space

    def halving(self, name: str, space: SearchSpace) -> None:
        """Successive halving over the constants of a space."""
        drawn = _samples(space.free, space.starts, self.rng, space.allowed) if space.free else {}
        alive = {**space.starts, **drawn}
        rungs = max(1, round(math.log(len(alive), KEPT))) if len(alive) > 1 else 1
        for rung in range(rungs):
            share = SHORTEST + (1 - SHORTEST) * (rung / (rungs - 1) if rungs > 1 else 1.0)
            rounds = max(FEWEST_ROUNDS, round(share * self.past.rounds))
            if rung and perf_counter() > self.until:
                self.cut += len(alive)
                break
            results = self._try(name, space, alive, rounds, len(space.starts) if not rung else 1)
            ranked = sorted(results, key=lambda t: (t.grows, t.searched, t.name))
            kept = ranked[: max(KEPT, len(ranked) // KEPT)]
            alive = {t.name: t.numbers for t in kept}
            if rung + 1 < rungs:
                alive |= _children(space.free, kept[:KEPT], SPREAD / 4 ** (rung + 1), self.rng, space.allowed)

    def _try(
        self, name: str, space: SearchSpace, trials: Mapping[str, Numbers], rounds: int, least: int
    ) -> list[TriedConstants]:
        """Results of trials over the first rounds. The first `least` are made in any case, the others while there is time."""
        run, data = space.plan.trial(rounds, len(trials)), self.past.first(rounds)
        made = takewhile(lambda k: k[0] < least or perf_counter() <= self.until, enumerate(trials.items()))
        costs = {n: _cost(run, x, data, self.trade, self.seed) for _, (n, x) in made}
        self.cut += len(trials) - len(costs)
        results = [TriedConstants(n, trials[n], c.value, rounds, None, c.grows, NEVER, name) for n, c in costs.items()]
        longer = {n for n, t in self.scored.items() if t.rounds > rounds}
        self.scored |= {t.name: t for t in results if t.name not in longer}
        return results


def _cost(run: Run, numbers: Numbers, data: Data, trade: TradeOn, seed: int) -> SteadyCost:
    """Cost of constants in the steady state; infinite where a setting has no value or a decision is not finite."""
    made = _ran(run, numbers, data, seed)
    return NEVER if made is None else _finite(trade(made.problem).steady(made))


def _ran(run: Run, numbers: Numbers, data: Data, seed: int) -> MeasuredRun | None:
    try:
        return run(numbers, data, seed)
    except OcoError:
        return None


def _finite(cost: SteadyCost) -> SteadyCost:
    return cost if math.isfinite(cost.value) else NEVER


def _samples(
    free: tuple[Free, ...],
    starts: Mapping[str, Numbers],
    rng: np.random.Generator,
    allowed: Callable[[Numbers], bool],
) -> dict[str, dict[str, float]]:
    """Random constants around each start in turn, uniform in log, within their ranges, where the theorem allows them, none twice.

    Theorems often need a product of two constants to be small: every other sample moves two of them far, one up and the
    other down.
    """
    centres = list(starts.values())
    wanted = min(CANDIDATES, EACH * len(free)) - len(centres)
    results: dict[str, dict[str, float]] = {}
    for k in range(TRIES * CANDIDATES):
        centre = centres[k % len(centres)]
        drawn = {f.name: _near(f, centre.get(f.name, 1.0), rng) for f in free}
        if len(free) > 1 and k // len(centres) % 2:
            drawn = _traded(free, centre, rng)
        if len(results) < wanted and drawn not in (*centres, *results.values()) and allowed(drawn):
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
    parents: list[TriedConstants],
    spread: float,
    rng: np.random.Generator,
    allowed: Callable[[Numbers], bool],
) -> dict[str, dict[str, float]]:
    """Constants near the best ones so far, none twice."""
    results: dict[str, dict[str, float]] = {}
    for parent in parents:
        for k in range(KEPT):
            drawn = {f.name: _near(f, parent.numbers.get(f.name, 1.0), rng, spread) for f in free}
            if drawn not in (*(p.numbers for p in parents), *results.values()) and allowed(drawn):
                results[f"{parent.name}.{k + 1}"] = drawn
    return results


def _near(f: Free, centre: float, rng: np.random.Generator, spread: float = SPREAD) -> float:
    drawn = centre * math.exp(float(rng.uniform(-spread, spread)))
    if f.kind == "value" and spread == SPREAD:
        drawn = float(rng.uniform(f.low, f.high))
    if f.kind == "count":  # few different ones, as each makes a program of its own
        drawn = 2.0 ** round(math.log2(drawn))
    return float(f"{min(max(drawn, f.low), f.high):.4g}")


def searched(data: Data) -> int:
    """Number of leading rounds that a choice of algorithm or settings may see; at least one."""
    return max(1, int(SEARCHED * data.rounds))
