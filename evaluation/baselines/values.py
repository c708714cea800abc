"""Rules that see what a learner sees where feedback is values: those of the loss and of the constraints at what was played.

A value counts its violations at the prices of the trade. Rules that see more are marked where they are played beside such a learner.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.dsl.records import dataclass
from oco.evaluation.baselines.base import DecisionRule, Game, RuleUnavailable, stacked
from oco.evaluation.comparators.region import Region, region

Array = np.ndarray[Any, Any]

SEED = 0
"""Seed of what rules draw: the same rules are played on every machine."""
MARK = " (it sees the data)"


def sees_more(name: str) -> bool:
    """True for the name of a rule that sees more of a round than the feedback reveals."""
    return name.endswith(MARK)


@dataclass(frozen=True)
class SeesMore:
    """Rule that sees more of a round than the feedback reveals, which its name says."""

    rule: DecisionRule

    @property
    def name(self) -> str:
        """Rule in words."""
        return f"{self.rule.name}{MARK}"

    def decide(self, game: Game) -> Array:
        """Decisions of all rounds (T, n)."""
        return self.rule.decide(game)


class Values:
    """Rounds of a game from which a rule asks for values alone, with the domain that it decides in."""

    def __init__(self, game: Game) -> None:
        problem = game.problem
        if not all(b.domain.is_cheap("project") for b in problem.blocks):
            raise RuleUnavailable("the domain has no cheap projection")
        game.meter.count_steps(game.rounds)
        self.game, self.place = game, region(problem)
        self.centre = np.concatenate([b.domain.centre().ravel() for b in problem.blocks])
        bounds = [(b.domain.lower.ravel(), b.domain.upper.ravel()) for b in problem.blocks]
        self.half = np.concatenate([(upper - lower) / 2 for lower, upper in bounds])

    def at(self, t: int, x: Array) -> float:
        """Value of a decision x (n,) in round t (from 0), with its violations at their prices."""
        table, problem = self.game.table.one(t), self.game.problem
        row = x[None]
        g = np.maximum(stacked(table, [c.expr for c in problem.inequalities], row), 0.0)
        h = np.abs(stacked(table, [c.expr for c in problem.equalities], row))
        loss = table.at_each(problem.objective, row)
        return float(np.ravel(loss)[0] + self.game.trade.prices @ np.concatenate([g, h], axis=1)[0])

    def nearest(self, x: Array) -> Array:
        """Nearest decision of the domain."""
        return nearest(self.place, x)


def nearest(place: Region, x: Array) -> Array:
    """Nearest point of a domain to x (n,)."""
    return np.clip(x, place.lower, place.upper) if all(b.domain.is_box for b in place.blocks) else place.project(x)


@dataclass(frozen=True)
class SimultaneousPerturbation:
    """Rule that plays y + c_k D and y - c_k D in turn, D of random signs, and steps by their difference.

    Spall 1998 (IEEE Transactions on Aerospace and Electronic Systems 34), section III: c_k = c / (k + 1)^0.101 and
    a_k = a / (k + 1 + A)^0.602 with A a tenth of the steps, and a such that the first steps move entries by about `first`.

    width  c, in half-widths of the domain
    first  length of the first steps in an entry, in half-widths
    warm   pairs whose differences set a
    """

    width: float = 0.1
    first: float = 0.1
    warm: int = 5

    name = "simultaneous perturbation: differences of values in turn"

    def decide(self, game: Game) -> Array:
        """Decisions of all rounds (T, n)."""
        rounds, rng = Values(game), np.random.default_rng(SEED)
        y, half, x = rounds.centre.copy(), rounds.half, np.tile(rounds.centre, (game.rounds, 1))
        stable, sizes, gain = 0.05 * game.rounds, [], 0.0
        for k in range(game.rounds // 2):
            signs, c = rng.choice([-1.0, 1.0], len(y)), self.width / (k + 1) ** 0.101
            x[2 * k], x[2 * k + 1] = rounds.nearest(y + c * half * signs), rounds.nearest(y - c * half * signs)
            difference = rounds.at(2 * k, x[2 * k]) - rounds.at(2 * k + 1, x[2 * k + 1])
            slope = difference / (2 * c) * signs
            if k < self.warm:
                sizes.append(float(np.abs(slope).mean()))
                gain = self.first * (stable + 1) ** 0.602 / max(float(np.mean(sizes)), np.finfo(float).tiny)
            else:
                y = rounds.nearest(y - gain / (k + 1 + stable) ** 0.602 * half * slope)
        x[2 * (game.rounds // 2) :] = y
        return x


@dataclass(frozen=True)
class EpsilonGreedy:
    """Rule that plays the decision with the least mean of values, and with probability epsilon one drawn of the others.

    The decisions are the centre of the domain and those half way to its ends, entry by entry, each tried once at first.
    """

    epsilon: float = 0.1

    @property
    def name(self) -> str:
        """Rule in words."""
        return f"least mean value of a few decisions, others in {self.epsilon:.0%} of the rounds"

    def decide(self, game: Game) -> Array:
        """Decisions of all rounds (T, n)."""
        rounds, rng = Values(game), np.random.default_rng(SEED)
        moves = np.diag(rounds.half / 2)
        arms = np.array([rounds.nearest(rounds.centre + m) for m in (np.zeros_like(rounds.half), *moves, *-moves)])
        sums, counts = np.zeros(len(arms)), np.zeros(len(arms))
        played = np.zeros(game.rounds, dtype=np.int64)
        for t in range(game.rounds):
            best = int(np.argmin(np.where(counts > 0, sums / np.maximum(counts, 1.0), -np.inf)))
            explores = counts.all() and rng.random() < self.epsilon
            played[t] = rng.integers(len(arms)) if explores else best
            sums[played[t]] += rounds.at(t, arms[played[t]])
            counts[played[t]] += 1
        return arms[played]


def rules_of_values() -> list[DecisionRule]:
    """Rules that see values alone."""
    return [SimultaneousPerturbation(), EpsilonGreedy()]
