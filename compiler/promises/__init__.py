"""Guarantees as statements over rationals: made of a plan, written as a file of Lean, read back and verified."""
