"""Projection-free methods as parts of another one: what an oracle of Lee, Ho-Nguyen & Lee 2023 (Definition 3) is.

An oracle plays a block of K rounds on convex functions h_1, ..., h_K that are D-Lipschitz and L-smooth, and promises

    E[sum_k h_k(x_k) - h_k(x)] <= (C_1 D + C_2 L) K^alpha        for every x in X.

Erratum 10: it begins anew at each block, from the decision reached, and is given the block's own constants, (1 + sum_n lambda^n) D and L.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Protocol

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Draw, Problem, TraceSpec
from oco.compiler.lowering.rule import State
from oco.compiler.theory.settings import Default
from oco.compiler.theory.theorems import Free, Situation
from oco.dsl.records import dataclass


class OracleStep(Protocol):
    """Step of an oracle at the end of a block's k-th round, and the state that it keeps in the block.

    `gradient` is that of h_k, at any point; `weight` is 1 + sum_n lambda^n.
    """

    def begin(self, p: Problem, x: Point) -> State: ...

    def step(
        self, p: Problem, state: State, k: Value, gradient: Callable[[Point], Point], weight: Value
    ) -> tuple[Point, State]: ...


def _no_draws(spec: TraceSpec) -> tuple[Draw, ...]:
    return ()


@dataclass(frozen=True)
class Oracle:
    """One row of Table 2 of Lee, Ho-Nguyen & Lee.

    alpha        the exponent of its regret
    settings     what it adds to the settings of Algorithm 1, C_1 and C_2 among them, as formulas in R, D, L and K
    regret       its regret in a block of K rounds, from the values of the settings
    smooth       whether it asks for smooth functions; `stochastic`: for losses that are independent draws, seen as functions
    why          its promise in words
    cost         linear minimisations a round, in words
    frank_wolfe  as for an algorithm: it adds up linear minimisers and gradients alone
    grows        whether its memory grows with the number of rounds
    on_request   whether it is used only where the user names it: it asks for more of a round than the others
    """

    name: str
    rule: OracleStep
    cite: str
    alpha: Fraction
    settings: Callable[[Situation], Mapping[str, Default]]
    regret: Callable[[Situation, Mapping[str, float]], float]
    why: str
    cost: str
    smooth: bool = False
    stochastic: bool = False
    free: tuple[Free, ...] = ()
    symbols: tuple[tuple[str, str], ...] = ()
    draws: Callable[[TraceSpec], tuple[Draw, ...]] = _no_draws
    on_request: bool = False
    frank_wolfe: bool = False
    grows: bool = False

    @property
    def block_exponent(self) -> Fraction:
        """K = T to this power, 1 / (3 - 2 alpha) of (3)."""
        return 1 / (3 - 2 * self.alpha)

    @property
    def largest_beta(self) -> Fraction:
        """(1 - alpha) / (3 - 2 alpha)."""
        return (1 - self.alpha) * self.block_exponent
