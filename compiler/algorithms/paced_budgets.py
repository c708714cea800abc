"""Budgets in total as the theorems on their prices see them: costs in even parts of a budget, and errors of predicted losses."""

from __future__ import annotations

import numpy as np

from oco.compiler.lowering.predicted_round import predicted_of
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.parts import TotalBudget
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.theorems import Floats, Quantity, Situation, needed


def budgets_of(canonical: Canonical) -> tuple[TotalBudget, ...]:
    """Budgets of the constraints in total, in the order of the text."""
    return tuple(c.budget for c in canonical.known if c.budget is not None)


def is_predicted(canonical: Canonical) -> bool:
    """True where the loss of a round depends on data that come after the decision."""
    return predicted_of(canonical).size > 0


def kept_of_budgets(canonical: Canonical) -> Floats:
    """b: what each budget leaves for all rounds, shape (K,)."""
    return np.concatenate([np.array(b.kept) for b in budgets_of(canonical)])


def all_rounds(canonical: Canonical) -> float:
    """T: the rounds that the budgets are for."""
    return float(budgets_of(canonical)[0].rounds)


def shares(canonical: Canonical) -> Floats:
    """C_k: the most that a round can cost, in even parts of the budget, shape (K,)."""
    most = np.concatenate([np.array(b.most) for b in budgets_of(canonical)])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(most > 0, most * all_rounds(canonical) / kept_of_budgets(canonical), 0.0)


def largest_share(canonical: Canonical) -> Quantity:
    """Symbol of the largest C_k in guarantees."""
    words = "the most that a round can cost, in even parts of a budget"
    return Quantity("C", r"\max_k C_k", words, float(shares(canonical).max()))


def sizes(canonical: Canonical) -> Floats:
    """max(1, C_k - 1): the most that a round's cost differs from an even part by, shape (K,)."""
    return np.maximum(1.0, shares(canonical) - 1.0)


def error_terms(s: Situation) -> tuple[str, tuple[Quantity, ...]]:
    """Term of the regret for errors of predicted losses, and its symbols; none where losses are known."""
    if not is_predicted(s.canonical):
        return "", ()
    diameter, slope = needed(s, "domain.diameter.l2"), needed(s, "loss.lipschitz.l2")
    words = "errors of the predicted gradients: at most 2 G a round, little where predictions are good"

    def errors(rounds: Rounds, horizon: int) -> Floats:
        return np.asarray(rounds.last * 2 * slope)

    own = Quantity("D", "D", "diameter of the domain", diameter)
    return " + D * E", (own, Quantity("E", r"\sum_t \|\nabla f_t - \nabla g_t\|", words, errors))
