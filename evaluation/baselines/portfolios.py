"""Rules for portfolios: a loss -log <r_t, x> over a simplex, recognised by that structure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.degrees import degree
from oco.dsl.atoms import form_of, forms
from oco.dsl.expressions import Call, Expr
from oco.dsl.records import dataclass
from oco.evaluation.baselines.base import Game, RuleUnavailable, apart_from
from oco.evaluation.baselines.predictions import Last, predicted
from oco.evaluation.baselines.resolve import Resolving
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.comparators.of_expressions import implicit

Array = np.ndarray[Any, Any]

SUM_WEIGHT = 1e4  # of the equation sum(x) = 1 in a least squares problem, against rows of norm one


def wealth(problem: Canonical) -> Expr | None:
    """Expression u of a loss -log(u) that is affine in one decision on a simplex; None where the loss is another."""
    if len(problem.blocks) != 1 or not problem.blocks[0].domain.is_simplex:
        return None
    node = problem.objective
    if not (isinstance(node, Call) and form_of(node) is forms.NEGATIVE):
        return None
    inner = node.args[0]
    if not (
        isinstance(inner, Call)
        and form_of(inner) is forms.LOGARITHM
        and degree(inner.args[0], (problem.blocks[0].name,)) == 1
    ):
        return None
    return inner.args[0]


def relatives(game: Game) -> Array:
    """Relatives r (T, n) with u_t(x) = <r_t, x>. Raises RuleUnavailable where u_t has a constant, or a relative is not positive."""
    of = wealth(game.problem)
    assert of is not None
    table: RoundArrays = game.table
    rows = table.everything
    values, slopes = implicit(table, of).jet(np.zeros((len(rows), table.size)), rows)
    r = np.broadcast_to(slopes[:, 0], (len(rows), table.size))
    if np.any(values != 0) or not np.all(r > 0):
        raise RuleUnavailable("the wealth is not a positive combination of the decision's entries")
    return np.asarray(r)


class Portfolio(ABC):
    """Rule that decides from the relatives of the rounds before; the nearest decision that the constraints as predicted
    allow is taken where there are some.
    """

    words: str
    within: bool

    @property
    def name(self) -> str:
        """Rule in words."""
        return f"{self.words}, nearest within the constraints as predicted" if self.within else self.words

    def decide(self, game: Game) -> Array:
        """Decisions of all rounds (T, n)."""
        total = float(game.problem.blocks[0].domain.support(np.ones(game.problem.blocks[0].shape)))
        game.meter.count_steps(game.rounds)
        x = total * self.shares(relatives(game))
        return nearest(game, x) if self.within else x

    @abstractmethod
    def shares(self, r: Array) -> Array:
        """Shares (T, n) that sum to one; row t from the rows of r before t."""


@dataclass(frozen=True)
class UniformPortfolio(Portfolio):
    """Equal shares in all rounds."""

    within: bool = False
    words = "uniform rebalancing"

    def shares(self, r: Array) -> Array:
        """Equal shares (T, n)."""
        return np.full(r.shape, 1.0 / r.shape[1])


@dataclass(frozen=True)
class BuyAndHold(Portfolio):
    """Equal shares in the first round, and no trade after it."""

    within: bool = False
    words = "buy and hold"

    def shares(self, r: Array) -> Array:
        """Shares of what the first purchase has become (T, n)."""
        grown = np.cumsum(np.log(r), axis=0)[:-1]
        grown = np.concatenate([np.zeros((1, r.shape[1])), grown])
        held = np.exp(grown - grown.max(axis=1, keepdims=True))
        return np.asarray(held / held.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class ExponentiatedGradientPortfolio(Portfolio):
    """Shares x <- x exp(eta r / <r, x>), normalised (Helmbold, Schapire, Singer & Warmuth 1998)."""

    within: bool = False
    eta: float = 0.05
    words = "EG with rate 0.05"

    def shares(self, r: Array) -> Array:
        """Shares (T, n)."""
        x = np.full(r.shape, 1.0 / r.shape[1])
        for t in range(1, len(r)):
            grown = x[t - 1] * np.exp(self.eta * r[t - 1] / (r[t - 1] @ x[t - 1]))
            x[t] = grown / grown.sum()
        return x


@dataclass(frozen=True)
class NewtonSteps(Portfolio):
    """Online Newton step of Agarwal, Hazan, Kale & Schapire 2006, section 3, with beta = 1, delta = 1/8 and eta = 0, which
    they use in their experiments: the projection of delta A^-1 b in the norm of A = I + sum g g', b = 2 sum g,
    g = r / <r, x>.
    """

    within: bool = False
    words = "online Newton steps (ONS)"

    def shares(self, r: Array) -> Array:
        """Shares (T, n)."""
        rounds, n = r.shape
        x, A, b = np.full((rounds, n), 1.0 / n), np.eye(n), np.zeros(n)
        for t in range(1, rounds):
            g = r[t - 1] / (r[t - 1] @ x[t - 1])
            A += np.outer(g, g)
            b += 2.0 * g
            x[t] = nearest_in_norm(A, np.linalg.solve(A, b) / 8.0)
        return x


def nearest_in_norm(A: Array, y: Array) -> Array:
    """Point x of the simplex with the least (x - y)' A (x - y), for a positive definite A (n, n): nonnegative least
    squares with the sum as a heavy equation.
    """
    from scipy.optimize import nnls

    root = np.linalg.cholesky(A / np.linalg.norm(A, 2)).T
    rows = np.vstack([root, np.full((1, len(y)), SUM_WEIGHT)])
    x = nnls(rows, np.append(root @ y, SUM_WEIGHT))[0]
    return np.asarray(x / x.sum())


def nearest(game: Game, x: Array) -> Array:
    """Decisions nearest to x (T, n) that satisfy each round's constraints with stated means and last values."""
    problem, data = game.problem, predicted(game, Last())
    objective, targets = apart_from(problem, data, x)
    own = replace(problem, objective=objective, streams=(*problem.streams, *targets))
    of = Resolving(replace(game, problem=own), data)
    return of.solved(of.zeros())
