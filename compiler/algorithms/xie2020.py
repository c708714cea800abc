"""Xie, Shen, Zhang, Wang & Qian 2020, "Efficient projection-free online methods with stochastic recursive gradient": ORGFW.

    d_t = grad h_t(x_t) + (1 - rho_t) (d_{t-1} - grad h_t(x_{t-1})),   v_t = argmin <d_t, x>,   x_{t+1} = x_t + eta_t (v_t - x_t)

with rho_t = eta_t = 1/(t + 1), for functions that are independent draws of one distribution, D-Lipschitz and L-smooth, with mean h.

Regret in K rounds, in expectation (the paper's is with high probability, with a logarithm). With e_t^2 = E|d_t - grad h(x_t)|^2, a
martingale gives (t + 1)^2 e_t^2 <= t^2 e_{t-1}^2 + (D + L R)^2 from e_1 <= D, and one Frank-Wolfe step with t + 1 times the gap
delta_t = E h(x_t) - h(x) gives

    (t + 1) delta_{t+1} <= t delta_t + R e_t + L R^2 / (2 (t + 1)),       delta_1 <= D R.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache

import numpy as np

from oco.compiler.algorithms.oracles import Oracle
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, point
from oco.compiler.theory.schedule import Rounds, Schedule
from oco.compiler.theory.settings import Default
from oco.compiler.theory.theorems import Situation


class RecursiveGradient:
    """orgfw. x_before is x_{t-1}, of the same block; its gradient there is that of this round's function."""

    def begin(self, p: Problem, x: Point) -> State:
        return {"x_before": x, "estimate": 0.0 * x}

    def step(
        self, p: Problem, state: State, k: Value, gradient: Callable[[Point], Point], weight: Value
    ) -> tuple[Point, State]:
        t, x = p.tracer, point(state, "x")
        p.note("rho_t = eta_t = 1/(t + 1), t counted in the block")
        rho = t.name("rho", 1.0 / (k + 1.0))
        p.note("d_t = grad h_t(x_t) + (1 - rho) (d_{t-1} - grad h_t(x_{t-1})), d_1 = grad h_1(x_1)")
        kept = t.where(k > 1.0, 1.0 - rho, 0.0)
        change = point(state, "estimate") - gradient(point(state, "x_before"))
        estimate = (gradient(x) + kept * change).named(t, "estimate")
        v = p.domain.lmo(estimate).named(t, "v")
        return x + rho * (v - x), {"x_before": x, "estimate": estimate}


def _settings(s: Situation) -> Mapping[str, Default]:
    # The least constants with regret <= (C_1 D + C_2 L) sqrt(K) for every K, from the recursion above.
    return {
        "C_1": Default("4 * R", "of D in the regret (Xie et al. 2020, in expectation)"),
        "C_2": Default("4.05 * R**2", "of L in the regret (Xie et al. 2020, in expectation)"),
    }


def _regret(s: Situation, v: Mapping[str, float]) -> float:
    return _regret_of(v["R"], v["D"], v["L"], max(round(v["K"]), 1))


@lru_cache(maxsize=256)
def _regret_of(R: float, D: float, L: float, K: int) -> float:
    t = Rounds.of(K).t
    errors = np.sqrt(4 * D**2 + (t - 1.0) * (D + L * R) ** 2) / (t + 1.0)
    grown: Schedule = R * errors + L * R**2 / (2 * (t + 1.0))
    gaps: Schedule = (D * R + grown.summed() - grown) / t
    return float(gaps.sums()[-1])


ORGFW = Oracle(
    name="orgfw",
    rule=RecursiveGradient(),
    cite="Xie et al. 2020, ORGFW",
    alpha=Fraction(1, 2),
    settings=_settings,
    regret=_regret,
    why="for smooth functions and losses that are independent draws, regret O(K^(1/2)) with one linear minimisation a round",
    cost="one linear minimisation, two gradients",
    smooth=True,
    stochastic=True,
    symbols=(
        ("x_before", "the decision before this one, of the same block"),
        ("estimate", "the recursive estimate of the mean gradient"),
    ),
)
