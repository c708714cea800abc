"""Comparators in hindsight: the best fixed decision, and the best decision of each round, with certificates.

What a comparator is stands here; finding one (`compare`, with solvers) is a module of its own, imported when one is looked for.
"""

from oco.evaluation.comparators.base import Budget, Comparator, Prefixes, Status

__all__ = ["Budget", "Comparator", "Prefixes", "Status"]
