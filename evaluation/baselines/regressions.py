"""Rule for regressions: losses that are quadratic in the decision, with data in their second derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from oco.compiler.algorithms.curvature_steps import curved_through_data
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.degrees import degree
from oco.dsl.records import dataclass
from oco.evaluation.baselines.base import Game, RuleUnavailable
from oco.evaluation.comparators.functions import QuadraticRounds
from oco.evaluation.comparators.of_expressions import functions
from oco.evaluation.comparators.region import region

Array = np.ndarray[Any, Any]

RIDGE = 1e-3  # of the mean curvature of the first loss; Haykin, Adaptive Filter Theory, takes at most 0.01 of the features' variance
MEMORIES = (0.98, 1.0)
NUMBERS = 1 << 26  # of all second derivatives, which are held at once


def is_regression(problem: Canonical) -> bool:
    """True where the loss is quadratic in the decisions and data multiply them in its squares."""
    return degree(problem.objective, tuple(b.name for b in problem.blocks)) == 2 and curved_through_data(problem)


@dataclass(frozen=True)
class RecursiveLeastSquares:
    """Minimizer of sum_s rho^(t-s) f_s(x) + rho^t r |x - x_1|^2 / 2, projected onto the domain, x_1 its centre and r small."""

    forgetting: float = MEMORIES[0]

    @property
    def name(self) -> str:
        """Rule in words."""
        return "recursive least squares" + (f", forgetting {self.forgetting:g}" if self.forgetting < 1 else "")

    def decide(self, game: Game) -> Array:
        """Decisions of all rounds (T, n)."""
        game.meter.count_steps(game.rounds)
        if game.rounds * game.problem.size**2 > NUMBERS:
            raise RuleUnavailable("the second derivatives of all rounds take too much memory")
        f = functions(game.table, game.problem.objective)
        assert isinstance(f, QuadraticRounds) and f.square is not None
        n = game.problem.size
        slopes = np.broadcast_to(f.linear[:, 0], (game.rounds, n))
        squares = f.square[:, 0, :, None] * np.eye(n) if f.diagonal else f.square[:, 0]
        squares = np.broadcast_to(squares, (game.rounds, n, n))
        place = region(game.problem)
        start = np.concatenate([b.domain.centre().ravel() for b in game.problem.blocks])
        x, A, b = np.tile(start, (game.rounds, 1)), np.zeros((n, n)), np.zeros(n)
        for t in range(1, game.rounds):
            if not A.any():
                ridge = RIDGE * np.trace(squares[t - 1]) / n
                A, b = ridge * np.eye(n), ridge * start
            A = self.forgetting * A + squares[t - 1]
            b = self.forgetting * b - slopes[t - 1]
            if A.any():
                x[t] = place.project(np.linalg.lstsq(A, b, rcond=None)[0])
        return x


def regression_rules(problem: Canonical) -> tuple[RecursiveLeastSquares, ...]:
    """Rules for a regression; none for another problem."""
    return tuple(map(RecursiveLeastSquares, MEMORIES)) if is_regression(problem) else ()
