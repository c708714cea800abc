"""Results of pilot runs, as a value that a choice can rest on. The runs themselves are made in `evaluation.pilot`."""

from __future__ import annotations

from oco.dsl.records import dataclass

WITH_PAPERS = "with the paper's constants"
WITH_LEAST = "with those of the least guarantee"


@dataclass(frozen=True)
class PilotResult:
    """One algorithm over all seeds: means a round of the normalized loss and violation, and of their weighted sum, as they would be at the
    horizon: the first half of the rounds once, the second half for all others.

    `behind` is how much the sum is above the first run's in the mean, `error` the standard error of that difference by blocks of rounds.
    papers_constants  True with the paper's constants, on the problem without units; else with those that make the guarantee least
    grows             a constraint on average without a penalty was broken in the second half of the rounds, whatever was saved before
    """

    algorithm: str
    loss: float
    violation: float
    cost: float
    behind: float = 0.0
    error: float = 0.0
    papers_constants: bool = False
    grows: bool = False

    @property
    def constants(self) -> str:
        """Constants that the run used, in words."""
        return WITH_PAPERS if self.papers_constants else WITH_LEAST

    def __str__(self) -> str:
        growing = ", growing" if self.grows else ""
        return f"{self.cost:.4g} (loss {self.loss:.4g}, violation {self.violation:.4g}{growing})"


@dataclass(frozen=True)
class Pilots:
    """Results, the best first. `source` says where the rounds came from; `skipped` why there are no results.

    literal   the algorithm that is chosen, with the paper's settings in the model's units: to be reported, and never taken by itself
    measured  the rounds are the user's data, on which what was earned decides, whatever the guarantees say
    left_out  algorithms that the time did not suffice for, and `seconds` that it was
    """

    results: tuple[PilotResult, ...] = ()
    rounds: int = 0
    seeds: int = 0
    source: str = ""
    skipped: str = ""
    literal: PilotResult | None = None
    measured: bool = False
    left_out: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the algorithms, the best first, each once."""
        return tuple(dict.fromkeys(r.algorithm for r in self.results))

    @property
    def papers_constants(self) -> bool:
        """True if the best run had the paper's constants."""
        return bool(self.results) and self.results[0].papers_constants

    def why(self, algorithm: str, promised: bool = True) -> str:
        """Reason for an algorithm's place. `promised`: it has a guarantee."""
        result = next((r for r in self.results if r.algorithm == algorithm), None)
        if result is None:
            return "it was not among the pilot runs"
        if algorithm == self.order[0]:
            return "; ".join(
                filter(None, (self._best(promised), self._by_chance(), self._left(), self._taken(), self._hint()))
            )
        if result.grows and not self.results[0].grows:
            return (
                "in the pilot runs its violation grew to the end, and the model states no penalty that would weigh it"
            )
        if result.behind < 0:
            return f"in the pilot runs it cost {-result.behind:.3g} a round less, which chance may show"
        return f"in the pilot runs it cost {result.behind:.3g} a round more (standard error {result.error:.2g})"

    def _best(self, promised: bool) -> str:
        """Why the first algorithm is chosen, and what each one cost."""
        runs = f"{self.seeds} pilot run{'s' if self.seeds > 1 else ''} of {self.rounds} rounds {self.source}"
        runs = f"{runs}, the second half of which counts for all rounds to come"
        costs = "; ".join(f"{name} {self._both(name)}" for name in self.order)
        why = self._why_tried(promised) if len(self.order) > 1 else self._why_alone(promised)
        return f"{why} on {runs}: {costs}"

    def _why_tried(self, promised: bool) -> str:
        vacuous = "every guarantee is vacuous at this horizon" if promised else "nothing is promised"
        return "it is chosen by pilot," if self.measured else f"{vacuous}, so it is chosen by pilot,"

    def _why_alone(self, promised: bool) -> str:
        if self.left_out:
            return "no other one was tried. It cost"
        if promised:
            return "it is the only one whose theorem holds here, and its guarantee is vacuous at this horizon. It cost"
        return "it is the only one that can run here, without a promise. It cost"

    def _by_chance(self) -> str:
        less = [r.algorithm for r in self.results if r.behind < 0]
        return f"that {' and '.join(less)} cost less there, chance may show" if less else ""

    def _left(self) -> str:
        if not self.left_out:
            return ""
        return f"not tried within {self.seconds:g} s: {', '.join(self.left_out)} (`--budget` gives more time)"

    def _both(self, algorithm: str) -> str:
        """The better of the runs of an algorithm, and the other beside it."""
        best, *others = (r for r in self.results if r.algorithm == algorithm)
        return "".join((str(best), *(f", {r.constants} {r.cost:.4g}" for r in others)))

    def _taken(self) -> str:
        if not self.papers_constants or all(r.papers_constants for r in self.results):
            return ""
        return (
            "the least guarantee is vacuous too, and the pilots favoured the paper's constants, on the problem without units: "
            "these are taken (`--settings optimal` takes the others)"
        )

    def _hint(self) -> str:
        known = self.literal
        if known is None or not known.cost < self.results[0].cost:
            return ""
        return f"the paper's own settings, which change with the model's units, cost {known} there: `--settings paper` takes them"
