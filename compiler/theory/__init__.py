"""Theorems as data: hypotheses, settings, guarantees, and constants that make a guarantee least."""
