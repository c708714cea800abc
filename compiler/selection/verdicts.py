"""The verdict on one algorithm, and how verdicts rank."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any

from oco.compiler.algorithms import Algorithm
from oco.compiler.algorithms.common import FEASIBLE_COMPARATOR
from oco.compiler.theory.best_constants import Optimum
from oco.compiler.theory.guarantees import Guarantee
from oco.compiler.theory.objective import terms
from oco.compiler.theory.scales import Scales
from oco.compiler.theory.settings import Setting
from oco.compiler.theory.theorems import Objection, Situation, Theorem
from oco.dsl.expressions import names
from oco.dsl.records import dataclass
from oco.dsl.statements import Measure, Timing


class Applicability(StrEnum):
    """Standing of an algorithm on a model."""

    CHOSEN = "chosen"
    APPLICABLE = "applicable"
    REFUSED = "refused"


class Informativeness(StrEnum):
    """Informativeness of a guarantee at the horizon, from most to least."""

    NUMBERS = "numbers"
    RATES = "rates"
    VACUOUS = "vacuous"
    NONE = "none"


@dataclass(frozen=True, eq=False)
class Verdict:
    """Verdict on one algorithm.

    theorem          that speaks for it, or that came nearest where it is refused
    objections       to that theorem; none where it holds
    guarantee        in the user's units; None where nothing is promised
    score            sum by which guarantees are compared (`weigh`)
    reason           for its place among the others
    scales           units that its settings are made for; None: the user's
    best             result of the search for its free constants; None where they were not searched
    inner_cost       what solving its step here adds to the algorithm's `cost_rank`
    """

    algorithm: Algorithm
    applicability: Applicability
    theorem: Theorem | None
    objections: tuple[Objection, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)
    guarantee: Guarantee | None = None
    score: float = math.inf
    informativeness: Informativeness = Informativeness.NONE
    reason: str = ""
    scales: Scales | None = None
    best: Optimum | None = None
    inner_cost: int = 0

    @property
    def cost_rank(self) -> int:
        """Rank of the cost of a round, with that of inner solves."""
        return self.algorithm.cost_rank + self.inner_cost

    @property
    def name(self) -> str:
        """Name of the algorithm."""
        return self.algorithm.name

    @property
    def exponent(self) -> float:
        """Sum of the exponents of T in the rates; infinite without a guarantee."""
        return math.inf if self.guarantee is None else self.guarantee.exponent

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons of a refusal, or of the rank."""
        return tuple(o.reason for o in self.objections) if self.objections else ((self.reason,) if self.reason else ())

    @property
    def fix(self) -> str:
        """The changes for all objections together; "" where one of them has none."""
        changes = list(dict.fromkeys(o.fix for o in self.objections))
        return "; ".join(changes) if changes and all(changes) else ""


# Ranking.


def weigh(s: Situation, guarantee: Guarantee, weight: float = 1.0) -> tuple[Informativeness, float]:
    """Informativeness of a guarantee, and its sum: regret over the loss's range plus `weight` times
    violations over the constraints' scales.

    Where a number is missing or vacuous the trivial bound stands in the sum: it holds of everything.
    """
    result = terms(s, guarantee, weight)
    informativeness = Informativeness.RATES if any(t.number is None for t in result) else Informativeness.NUMBERS
    return Informativeness.VACUOUS if any(t.vacuous for t in result) else informativeness, sum(
        t.counted for t in result
    )


def withheld(theorem: Theorem, s: Situation, settings: Mapping[str, Setting]) -> str:
    """Why nothing is promised although a theorem's hypotheses hold, where decisions are moved into known constraints; else ""."""
    if (why := theorem.withholds(s, settings)) or not s.canonical.known:
        return why
    own = {p.name for p in s.canonical.previous if p.stream.previous}
    if moving := ", ".join(dict.fromkeys(f"`{c.origin}`" for c in s.canonical.known if own & set(names(c.expr)))):
        return f"{moving} asks of decisions to stay near the learner's own ones before, and comparators do not"
    if not theorem.moves:
        return "its proof is for a domain that stays the same, and known constraints cut it in every round"
    comparator = FEASIBLE_COMPARATOR.test(s)
    return comparator.reason if isinstance(comparator, Objection) else ""


def rank(v: Verdict) -> tuple[Any, ...]:
    """Key of the rank: fewest conditions that are open, then fewest that hold on data alone; numbers that say something, then rates, then
    vacuous ones (by rate); on a tie what asks less of a round.
    """
    order = list(Informativeness)
    against = (0, 0) if v.guarantee is None else v.guarantee.openness
    by_rate = 0.0 if v.informativeness is Informativeness.NUMBERS else v.exponent
    by_score = (v.score, v.algorithm.baseline, v.cost_rank, v.name)
    return v.guarantee is None, _only_compared(v), against, order.index(v.informativeness), by_rate, *by_score


def _only_compared(v: Verdict) -> bool:
    """True if it is there to compare with: a baseline whose guarantee is not a number that says something."""
    return v.algorithm.baseline and v.informativeness is not Informativeness.NUMBERS


def why_first(usable: Sequence[Verdict]) -> str:
    """Reason why the first of the applicable algorithms is chosen."""
    best = usable[0]
    if best.guarantee is None:
        return "nothing is promised of any that can run here; it costs least a round"
    if len(usable) == 1:
        return "it is the only one whose theorem holds here"
    if best.informativeness is Informativeness.NUMBERS:
        return "its guarantee is the best number at this horizon"
    if best.informativeness is Informativeness.RATES:
        return "its rates are the best, and no other guarantee is a number that says more"
    return "every guarantee has a vacuous number at this horizon; its rates are the best"


def why_lost(v: Verdict, best: Verdict) -> str:
    """Reason why an applicable algorithm comes behind the best one."""
    known = best.guarantee.reservations if best.guarantee is not None else ()
    if more := [r for r in (v.guarantee.reservations if v.guarantee is not None else ()) if r not in known]:
        return more[0]
    if v.guarantee is None:
        return f"nothing is promised of it: {v.reason}"
    message = {
        Informativeness.RATES: "is a rate without a number",
        Informativeness.VACUOUS: "is vacuous at this horizon",
    }
    if _only_compared(v) and not _only_compared(best):
        return f"it is a baseline, there to compare with: its guarantee {message[v.informativeness]}"
    if v.informativeness is not best.informativeness:
        return f"its guarantee {message.get(v.informativeness, 'says less')}"
    if v.score > best.score * (1 + 1e-12):
        return f"its guarantee is weaker: {v.score:.3g} against {best.score:.3g} (regret and violations in units of one round's range)"
    costs = " and it costs more a round" if v.cost_rank > best.cost_rank else ""
    return f"its guarantee is no better{costs}"


def constraint_words(s: Situation) -> str:
    """The kinds of constraints of the model, for a reader."""
    each = any(c.timing is Timing.EACH_ROUND and c.learned is None for c in s.canonical.inequalities)
    shares = dict.fromkeys(c.when for c in s.canonical.inequalities if c.learned is not None)
    mean = any(c.timing is Timing.ON_AVERAGE for c in s.canonical.inequalities) or bool(s.canonical.equalities)
    kinds = [w for w, there in (("each round", each), ("on average", mean)) if there] + list(shares)
    measure = "static" if s.canonical.measure is Measure.STATIC else "dynamic"
    return f"{measure} regret, constraints {' and '.join(kinds)}" if kinds else f"{measure} regret, no constraints"
