"""Comparators in hindsight: the best fixed decision, and the best decision of each round, with certificates.

The types are defined here; the computation (`compare`, with solvers) is a module of its own, imported on first use.
"""

from oco.evaluation.comparators.base import Comparator, ComparatorBudget, ComparatorStatus, Prefixes

__all__ = ["Comparator", "ComparatorBudget", "ComparatorStatus", "Prefixes"]
