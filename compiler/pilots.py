"""What pilot runs found, as a value that a choice can rest on. The runs themselves are made in `evaluation.pilot`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PilotResult:
    """One algorithm over all seeds: means a round of the normalized loss and violation, and of their weighted sum.

    `behind` is how much the sum is above the best algorithm's in the mean, `error` the standard error of that difference, seed by seed.
    """

    algorithm: str
    loss: float
    violation: float
    cost: float
    behind: float = 0.0
    error: float = 0.0

    def __str__(self) -> str:
        return f"{self.algorithm} {self.cost:.4g} (loss {self.loss:.4g}, violation {self.violation:.4g})"


@dataclass(frozen=True)
class Pilots:
    """Results, the best first. `source` says where the rounds came from; `skipped` why there are no results."""

    results: tuple[PilotResult, ...] = ()
    rounds: int = 0
    seeds: int = 0
    source: str = ""
    skipped: str = ""

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(r.algorithm for r in self.results)

    def why(self, algorithm: str) -> str:
        """Why an algorithm stands where it does."""
        found = next((r for r in self.results if r.algorithm == algorithm), None)
        if found is None:
            return "its guarantee is vacuous, and it was not among the pilot runs"
        if algorithm == self.order[0]:
            runs = f"{self.seeds} pilot run{'s' if self.seeds > 1 else ''} of {self.rounds} rounds {self.source}"
            said = "; ".join(str(r) for r in self.results)
            return f"every guarantee is vacuous at this horizon, so it is chosen by pilot, on {runs}: {said}"
        return f"in the pilot runs it cost {found.behind:.3g} a round more (standard error {found.error:.2g})"
