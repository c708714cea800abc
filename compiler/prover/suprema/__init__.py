"""Suprema and the values that attain them: vertices, separable terms, balls, tangents."""
