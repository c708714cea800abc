"""Convexity by composition and by second derivatives, and witnesses against it."""
