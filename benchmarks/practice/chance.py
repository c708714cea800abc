"""Block bootstrap of the rounds: what of a difference between two runs over the same rounds may be chance.

Rounds next to each other are alike, so that stretches of `BLOCK` rounds are drawn with replacement, the first round following the last
(circular blocks: Politis & Romano 1992). The best of many rules would often cost less than a default that none of them beats in the long
run: the reality check of White 2000 asks how often, with differences in their own standard deviations as in Hansen 2005.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

BLOCK = 20
"""Rounds of a block: of daily data a month."""
RESAMPLES = 4000
"""Resampled runs, of which 100 lie beyond each end of the interval."""
LEVEL = 0.95
"""Level of the intervals."""


@dataclass(frozen=True)
class Saving:
    """Total by which a rule costs less than the default over the scored rounds, and the ends of its interval."""

    name: str
    saved: float
    low: float
    high: float

    @property
    def beyond_chance(self) -> bool:
        """True where all of the interval is above 0."""
        return self.low > 0


@dataclass(frozen=True)
class Chance:
    """Savings of rules that dominate, those with the highest intervals first.

    p_value  how often the best of all rules, if none of them were better than the default, would save as many of its standard deviations
    """

    savings: tuple[Saving, ...]
    p_value: float


def chance(own: Array, rules: Mapping[str, Array], shown: set[str], seed: int = 0) -> Chance:
    """Savings of the rules that are `shown`, with the p-value of the best of all.

    own    costs of the default, round by round (T,)
    rules  those of each rule (T,)
    """
    names = list(rules)
    apart = own[:, None] - np.stack([rules[n] for n in names], axis=1)
    saved, drawn = apart.sum(axis=0), resampled(apart, np.random.default_rng(seed))
    ends = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    spread = drawn.std(axis=0)
    spread = np.where(spread > 0, spread, np.inf)
    best, by_chance = (saved / spread).max(), ((drawn - saved) / spread).max(axis=1)
    lines = [Saving(n, *map(float, x)) for n, *x in zip(names, saved, *ends) if n in shown]
    return Chance(tuple(sorted(lines, key=lambda s: -s.low)), float((by_chance >= best).mean()))


def resampled(values: Array, rng: np.random.Generator) -> Array:
    """Sums of values (T, K) over resampled runs of T rounds, (RESAMPLES, K): whole blocks, and the beginning of one more."""
    rounds = len(values)
    block = min(BLOCK, rounds)
    count, rest = divmod(rounds, block)
    starts = rng.integers(0, rounds, (RESAMPLES, count + 1))
    ends = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(np.concatenate([values, values[:block]]), axis=0)])
    whole = ends[block : block + rounds] - ends[:rounds]
    part = ends[rest : rest + rounds] - ends[:rounds]
    result: Array = part[starts[:, -1]]
    for column in starts[:, :-1].T:
        result = result + whole[column]
    return result
