"""Ranges of expressions over boxes and domains, in outward-rounded interval arithmetic."""
