"""Experts of `hedged`: gradients of several steps and prices, and rounds solved again on predictions (see `hedged`)."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from oco.compiler.algorithms.dual_prices import averaged
from oco.compiler.algorithms.learned_margins import NO_MARGIN
from oco.compiler.algorithms.loss_steps import beside, point_count, second_order
from oco.compiler.algorithms.predictions import FORGETTING, OVERALL, SPREAD_OF, places, stated_rows
from oco.compiler.lowering.predicted_round import positions, predicted_of
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.structure import is_affine

Floats = np.ndarray[Any, Any]
GRADIENTS = ((0.1, 1.0), (1.0, 1.0))
"""Factors c of AdaGrad's step and r of the prices of the gradient experts; the theorem is of the one with 1 and 1."""
UNPREDICTED = tuple(product((0.3, 3.0, 10.0), (0.3, 1.0)))
"""More of them where data have no average, so that no round is solved on predictions."""
REACH, FAR, AT_ONCE = 3.0, 30.0, 1000.0
"""Reach, as a factor of AdaGrad's step, of experts on averages of the data, and that of those on other predictions. The last goes to the
minimizer of a linear loss at once, whatever slopes came before."""
QUANTILES, OF_OVERALL = (0.75, 0.96, 0.998), (0.75, 0.9, 0.98, 0.998)
"""Quantiles of the experts on averages that forget, and of those on the mean of all rounds, whose margins converge."""
SOLVED = tuple((i, REACH, q) for i in range(len(FORGETTING)) for q in (OF_OVERALL if i == OVERALL else QUANTILES))
"""Experts that solve the next round on averages: the average, its place in `FORGETTING`; the reach; the quantile."""
FOLLOWING = (0.5, 0.75, 0.9, 0.98, 0.995, 0.999)
"""Quantiles of the experts that solve the round on each other prediction: of the season, of the contexts, of the model."""
SHIFTED = (0.5, 0.75, 0.95)
"""Quantiles of the experts that solve the round at quantiles of the errors: where levels jump, or constraints are about the same data,
another quantile is best than for the mean of the loss."""
LOWEST = 2
"""First of these quantiles that has such experts."""
UNCONSTRAINED = (0.03, 0.3, REACH, FAR, AT_ONCE)
"""Reach of the experts that solve the round on each prediction where no margins are learned."""
TIED = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Reach of these experts where a curved loss ties entries together, so that they take its slope alone: longer steps go past its minimizer.
Where entries have several widths, as an order in box(0, 60) beside a level in box(-1000, 1000), the narrow ones need the shortest.
"""
UNLIKELY = 1e-8
"""Weight before the first round of each expert but those at second-order steps, where there are some: it moves the mean little even in a
domain 10^6 times too wide."""
TRUSTED = 0.5
"""Weight before the first round of the experts that follow what the model predicts of data whose distribution it states, together."""
Solved = tuple[tuple[int, float, float], ...]


def gradients(canonical: Canonical) -> tuple[tuple[float, float], ...]:
    """Factors of the steps and of the prices of the gradient experts."""
    return (*GRADIENTS, *UNPREDICTED) if positions(canonical) else GRADIENTS


@lru_cache(maxsize=16)
def solving(canonical: Canonical, season: int, curved: bool = False) -> Solved:
    """Experts that solve the next round: the row of the prediction, the reach, the quantile; none where data are positions.

    What is told of the round, by contexts, the model or its stated distributions, is followed at once where the loss is linear. The last
    experts are those of `sampled`, of `blind` and of `beside`; curved: the loss is known to be exp-concave.
    """
    if positions(canonical):
        return ()
    last = (*sampled(canonical, season), *blind(canonical), *beside(canonical, curved))
    if point_count(canonical, curved) and season == 1 and not is_informed(canonical):
        return last
    if not learns_margins(canonical):
        kinds = places(canonical, season)
        rows = [row for rows in (*kinds[:3], *kinds[4:]) for row in rows] if predicted_of(canonical).size else [0]
        return (*((row, c, NO_MARGIN) for row in rows for c in _reaches(canonical)), *last)
    if not predicted_of(canonical).size:
        return (*SOLVED, *last)
    _, seasonal, stated, levels, regression, own = places(canonical, season)
    reach = AT_ONCE if is_affine(canonical.objective, tuple(b.name for b in canonical.blocks)) else FAR
    reaches = (*((row, FAR) for row in seasonal), *((row, reach) for row in (*regression, *own)))
    followed = ((row, c, q) for row, c in reaches for q in FOLLOWING)
    spread = ((row, FAR, q) for row in levels[LOWEST:] for q in SHIFTED)
    return (*SOLVED, *followed, *spread, *((row, reach, NO_MARGIN) for row in stated), *last)


def _reaches(canonical: Canonical) -> tuple[float, ...]:
    """Reaches where no margins are learned."""
    curved = not is_affine(canonical.objective, tuple(b.name for b in canonical.blocks))
    return TIED if curved and predicted_of(canonical).whole is None else UNCONSTRAINED


def sampled(canonical: Canonical, season: int) -> Solved:
    """Experts that solve the round with the mean of its loss over quantiles of the errors of a prediction, of equal shares: a sample
    average (Kleywegt, Shapiro & Homem-de-Mello 2002), whose minimizer moves with what is known of the round, as a price.
    """
    _, seasonal, _, shifted, *_ = places(canonical, season)
    if not shifted:
        return ()
    row = seasonal[SPREAD_OF] if seasonal else 0
    if learns_margins(canonical):
        return tuple((row, FAR, q) for q in FOLLOWING)
    return tuple((row, c, NO_MARGIN) for c in _reaches(canonical))


def blind(canonical: Canonical) -> Solved:
    """Experts that solve the round as if moves cost nothing, where the loss charges them: what a move costs now later rounds may earn."""
    if canonical.moving is None:
        return ()
    return SOLVED if learns_margins(canonical) else tuple((0, c, NO_MARGIN) for c in _reaches(canonical))


def learns_margins(canonical: Canonical) -> bool:
    """True where experts differ in the margins of their constraints, else in their reaches: without constraints, or where all of them have
    prices, which need no margins, and the round is solved with its curved loss, whose minimizer moves little with what is predicted.
    """
    priced = bool(averaged(canonical).all()) and predicted_of(canonical).whole is not None
    return bool(canonical.inequalities) and not priced


def expert_count(canonical: Canonical, season: int, curved: bool = False) -> int:
    """Number of experts."""
    return len(gradients(canonical)) + len(solving(canonical, season, curved))


def first_weights(canonical: Canonical, season: int, curved: bool = False) -> Floats | None:
    """Weights of the experts before the first round, (K,); None where they are alike."""
    count, favoured = expert_count(canonical, season, curved), second_order(canonical, curved)
    first = np.full(count, 1.0 / count)
    if favoured:
        first[:], first[-favoured:] = UNLIKELY, (1.0 - UNLIKELY * (count - favoured)) / favoured
        return first
    following = _following_the_model(canonical, season, curved)
    if not following:
        return None
    first[:] = (1.0 - TRUSTED) / (count - len(following))
    first[list(following)] = TRUSTED / len(following)
    return first


def _following_the_model(canonical: Canonical, season: int, curved: bool) -> tuple[int, ...]:
    """Places of the experts that go farthest to what is best as the model predicts the round, where all data that are predicted come from
    distributions that it states; else none: what it says of others may be wrong.
    """
    stated = {s.name for s in canonical.streams if s.stochastic}
    if positions(canonical) or not set(predicted_of(canonical).streams) <= stated:
        return ()
    solved, rows = solving(canonical, season, curved), stated_rows(canonical, season)
    farthest = max((reach for row, reach, _ in solved if row in rows), default=0.0)
    begin = len(gradients(canonical))
    return tuple(begin + k for k, (row, reach, _) in enumerate(solved) if row in rows and reach == farthest)


def is_informed(canonical: Canonical) -> bool:
    """True where a round has something that is known before its decision, or that the round before leaves to it."""
    return bool(canonical.known or canonical.context or canonical.carried or canonical.predictions)
