"""Gradient rules: projected gradient with a fixed penalty, and gradient steps on the Lagrangian with multipliers that rise
where a constraint is broken. Their numbers are chosen on the first rounds, all choices being tried side by side there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import field
from itertools import product
from typing import Any, ClassVar

import numpy as np

from oco.dsl.records import dataclass
from oco.evaluation.baselines.base import Game, Played, RuleUnavailable
from oco.evaluation.comparators.functions import OfRounds, RoundArrays
from oco.evaluation.comparators.of_expressions import implicit
from oco.evaluation.comparators.region import Region, region

Array = np.ndarray[Any, Any]

BLOCK = 1 << 24  # numbers of the coefficients that are held at once
STEP_FACTORS = (0.03, 0.1, 0.3, 1.0, 3.0)  # factors of the step that are tried in hindsight
RATES = (0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(eq=False)
class Choices:
    """State of K choices of the numbers, played side by side: points (K, n), sums of squared slopes, multipliers."""

    steps: Array
    rates: Array
    x: Array
    squares: Array
    y: Array
    largest: Array
    played: list[Array] = field(default_factory=list)
    costs: list[tuple[Array, Array]] = field(default_factory=list)

    def only(self, k: int) -> Choices:
        """One of the choices alone, where it stands."""
        kept = slice(k, k + 1)
        return Choices(
            self.steps[kept],
            self.rates[kept],
            self.x[kept].copy(),
            self.squares[kept].copy(),
            self.y[kept].copy(),
            self.largest[kept].copy(),
        )


@dataclass(frozen=True)
class Gradients(ABC):
    """Rule x <- P(x - c D / sqrt(2 sum |s|^2) s), for a slope s of the loss and the constraints at the last decision.

    The steps are those of AdaGrad with one number (Streeter & McMahan 2010): they need no bound of the slopes. With c = 1
    the regret of a convex loss is at most sqrt(2) D sqrt(sum |s|^2) (their Theorem 2).

    steps  values of c to choose from
    rates  numbers that the weights of constraints are multiplied with, to choose from
    """

    words: ClassVar[tuple[str, str]]
    """Rule in words, and the numbers that it chooses on the first rounds where there are several."""
    steps: Sequence[float] = STEP_FACTORS
    rates: Sequence[float] = RATES

    @property
    def name(self) -> str:
        """Rule in words."""
        head, numbers = self.words
        return f"{head}{numbers} tuned on the first fifth" if len(self.steps) * len(self.rates) > 1 else head

    @abstractmethod
    def weights(self, choices: Choices, g: Array, h: Array, prices: Array) -> Array:
        """Weights (K, N + M) of the constraints' slopes, from their values g (K, N) and h (K, M); may move multipliers."""

    def decide(self, game: Game) -> Array:
        """Decisions of all rounds (T, n)."""
        rates = self.rates if game.problem.constraints else (1.0,)
        grid = np.array(list(product(self.steps, rates)))
        if not all(b.domain.is_cheap("project") for b in game.problem.blocks):
            raise RuleUnavailable("the domain has no cheap projection")
        place = region(game.problem)
        count, m = len(grid), sum(c.size for c in game.problem.constraints)
        start = np.concatenate([b.domain.centre().ravel() for b in game.problem.blocks])
        diameter = float(np.sqrt(sum(b.domain.diameter() ** 2 for b in game.problem.blocks)))
        middle = len(grid) // 2
        zero = np.zeros((count, m))
        all_of_them = Choices(grid[:, 0], grid[:, 1], np.tile(start, (count, 1)), np.zeros(count), zero, zero.copy())
        decided: list[Array] = []
        choices, first = all_of_them, game.first
        game.meter.count_steps(game.rounds)
        for t, (functions, row) in enumerate(_rounds(game)):
            if t == first:
                choices = choices.only(_cheapest(choices, game))
            decided.append(choices.x[min(middle, len(choices.x) - 1)].copy())
            self._step(choices, functions, row, place, diameter, game.trade.prices, remember=t < first)
        return np.array(decided)

    def _step(
        self,
        choices: Choices,
        functions: list[list[OfRounds]],
        row: int,
        place: Region,
        diameter: float,
        prices: Array,
        remember: bool,
    ) -> None:
        rows = np.full(len(choices.x), row)
        values, slopes = zip(*(_jets(part, choices.x, rows) for part in functions))
        loss, g, h = values
        if remember:
            choices.costs.append((loss[:, 0], np.concatenate([g, h], axis=1)))
        weights = self.weights(choices, g, h, prices)
        total = slopes[0][:, 0] + np.einsum("km,kmn->kn", weights, np.concatenate(slopes[1:], axis=1))
        total = np.nan_to_num(total)
        choices.squares += (total**2).sum(axis=1)
        size = diameter * choices.steps / np.sqrt(2 * np.where(choices.squares > 0, choices.squares, 1.0))
        choices.x = _projected(place, choices.x - size[:, None] * total)


class FixedPenalty(Gradients):
    """Weights are prices of the trade times a number, where a constraint is broken."""

    words = "projected gradient", ", penalty and step"

    def weights(self, choices: Choices, g: Array, h: Array, prices: Array) -> Array:
        """Penalties (K, N + M)."""
        signs = np.concatenate([(g > 0).astype(float), np.sign(h)], axis=1)
        return np.asarray(choices.rates[:, None] * prices * signs)


class DualAscent(Gradients):
    """Weights are multipliers, which move by the constraints' values in units of the largest seen."""

    words = "gradient on the Lagrangian with dual ascent", ", steps"

    def weights(self, choices: Choices, g: Array, h: Array, prices: Array) -> Array:
        """Multipliers (K, N + M) after the round."""
        values = np.concatenate([g, h], axis=1)
        choices.largest = np.maximum(choices.largest, np.abs(values))
        unit = np.where(choices.largest > 0, choices.largest, 1.0)
        choices.y = choices.y + choices.rates[:, None] * 0.1 * prices * values / unit
        choices.y[:, : g.shape[1]] = np.maximum(choices.y[:, : g.shape[1]], 0.0)
        return choices.y


def _rounds(game: Game) -> Any:
    """Iterate over the rounds: functions of the loss, the inequalities and the equalities, and the row of the round."""
    problem = game.problem
    width = problem.size * (1 + sum(c.size for c in problem.constraints))
    length = max(1, BLOCK // max(1, width))
    for a in range(0, game.rounds, length):
        streams = {name: v[a : a + length] for name, v in game.streams.items()}
        numbers = np.arange(a, min(a + length, game.rounds)) + 1
        table = RoundArrays.of(problem, streams, numbers)
        exprs = ([problem.objective], [c.expr for c in problem.inequalities], [c.expr for c in problem.equalities])
        functions = [[implicit(table, e) for e in part] for part in exprs]
        for row in range(len(numbers)):
            yield functions, row


def _jets(functions: list[OfRounds], x: Array, rows: Array) -> tuple[Array, Array]:
    """Values (K, m) and slopes (K, m, n) of several functions in one round, at K points."""
    parts = [f.jet(x, rows) for f in functions]
    empty = (np.zeros((len(x), 0)), np.zeros((len(x), 0, x.shape[1])))
    values = [empty[0], *(np.broadcast_to(v, (len(x), v.shape[1])) for v, _ in parts)]
    slopes = [empty[1], *(np.broadcast_to(s, (len(x), *s.shape[1:])) for _, s in parts)]
    return np.concatenate(values, axis=1), np.concatenate(slopes, axis=1)


def _projected(place: Region, x: Array) -> Array:
    """Nearest points of the domain (K, n)."""
    if all(b.domain.is_box for b in place.blocks):
        return np.clip(x, place.lower, place.upper)
    return np.array([place.project(row) for row in x])


def _cheapest(choices: Choices, game: Game) -> int:
    """Choice that cost least in the rounds so far."""
    n = sum(c.size for c in game.problem.inequalities)
    loss, values = (np.array(part) for part in zip(*choices.costs))
    scores = [
        game.trade.score(Played("", {}, loss[:, k], values[:, k, :n], values[:, k, n:]))[2]
        for k in range(len(choices.x))
    ]
    return int(np.nanargmin(scores)) if np.isfinite(scores).any() else 0
