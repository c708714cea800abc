"""Measures of a run, which can be worked out while its rounds are played: comparators, rules of practice, the certificate."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import field, replace
from functools import cached_property, partial

from oco.compiler.certificates.certificate import Certificate
from oco.compiler.problem.canonical import Canonical
from oco.dsl.diagnostics import OcoError
from oco.dsl.records import dataclass
from oco.evaluation.baselines.held import HeldLines, held_in_all
from oco.evaluation.baselines.rule_table import Beside
from oco.evaluation.certified import certificates
from oco.evaluation.comparators.base import Comparator, ComparatorBudget
from oco.evaluation.comparators.compare import FINAL, compare
from oco.evaluation.comparators.dynamic import HOPELESS
from oco.evaluation.concurrently import PlayedSoFar, Step
from oco.evaluation.data import Data
from oco.evaluation.measured_run import MeasuredRun, RegretKind, tell

KINDS: tuple[RegretKind, ...] = ("static", "dynamic")


@dataclass(eq=False)
class Hindsight:
    """Comparators within a budget, the rules that `play` plays, what is held in all rounds, and the certificate of the decisions; each is
    worked out once.

    held  totals of the first decision, and of the decision 0, in all rounds; None where they were not worked out
    """

    problem: Canonical
    data: Data
    budget: ComparatorBudget
    play: Callable[[Canonical, Data], Beside | None]
    held: HeldLines | None = field(default=None, init=False)
    _comparators: dict[str, Comparator] = field(default_factory=dict, init=False)
    _certificate: Certificate | None = field(default=None, init=False)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Work that gives all of it, the parts one after another; the last two follow the rounds."""
        kinds = KINDS if self.budget.wanted else ()
        return (*(partial(self._compare, kind) for kind in kinds), lambda _: self.rules, self._hold, self._certify)

    @cached_property
    def rules(self) -> Beside | None:
        """Rules beside the learner; None where none are asked for."""
        return self.play(self.problem, self._own_data)

    def tell(self, run: MeasuredRun) -> None:
        """Give a run what is known of it, but for comparators that stopped early and may end within its budget, which is longer. What is
        not known yet is worked out on the run's data, which have what rounds left to the next.
        """
        self.data = run.data
        longer = run.budget.seconds > self.budget.seconds

        def known(c: Comparator) -> bool:
            return c.status in FINAL or not longer or c.needed > HOPELESS * run.budget.seconds

        tell(run, {kind: c for kind, c in self._comparators.items() if known(c)}, self._certificate)

    @cached_property
    def _own_data(self) -> Data:
        """Data with a block of draws of its own, since the learner reads other rounds at the same time."""
        return replace(self.data)

    def _compare(self, kind: RegretKind, _: PlayedSoFar) -> None:
        self._comparators[kind] = compare(self.problem, self._own_data, kind, self.budget)

    def _hold(self, played: PlayedSoFar) -> None:
        if played.decisions:
            self.held = held_in_all(self.problem, self._own_data, played.decisions)

    def _certify(self, played: PlayedSoFar) -> None:
        with suppress(OcoError):  # the run says why it has none
            (self._certificate,) = certificates(self.problem, self._own_data, played.decisions, (self.data.rounds,))
