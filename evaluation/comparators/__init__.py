"""Comparators in hindsight: the best fixed decision, and the best decision of each round, with certificates."""

from oco.evaluation.comparators.base import Budget, Comparator, Status
from oco.evaluation.comparators.compare import compare

__all__ = ["Budget", "Comparator", "Status", "compare"]
