"""Comparators in hindsight: the best fixed decision, and the best decision of each round, with certificates."""

from oco.evaluation.comparators.base import Budget, Comparator, Prefixes, Status
from oco.evaluation.comparators.compare import compare, compare_prefixes

__all__ = ["Budget", "Comparator", "Prefixes", "Status", "compare", "compare_prefixes"]
