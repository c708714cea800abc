"""Feasible decisions, Slater points and multipliers, or the proof that there are none."""
