"""How much a check may search. What is counted are steps, not seconds: facts are the same on every machine, however busy it is."""

from __future__ import annotations

MOST_STEPS = 150_000
"""Parts of expressions that searches of one model evaluate, all in all: about a quarter of a second."""
MOST_STRETCHED = 300_000
"""Entries of Jacobians whose singular values are taken: some tenths of a second, and one as large as is ever written out."""


class Work:
    """What is left to spend. Searches that tighten what is proved anyhow end when it is gone."""

    def __init__(self, steps: int = MOST_STEPS) -> None:
        self.left = steps

    def spend(self, steps: int) -> bool:
        """Take steps; False where there were none left."""
        allowed = self.left > 0
        self.left -= steps
        return allowed
