"""Numbers that stand for zero and for infinity where arithmetic has to stay finite, in all packages."""

TINY = 1e-290
"""Least denominator: numbers up to 1e18 divided by it stay finite."""
SMALLEST = 1e-300
"""Least weight, size or argument of a logarithm, where zero has no quotient and no logarithm."""
HUGE = 1e300
"""Largest number: sums of 1e8 such numbers stay finite."""
