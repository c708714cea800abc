"""The problem as every later stage reads it: canonical form, derivatives, structure."""
