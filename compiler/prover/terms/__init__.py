"""Expressions rewritten and taken apart: sums, monomials, entries, pieces, kinks."""
