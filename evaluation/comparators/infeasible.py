"""Report on infeasible constraints: the proof, the rounds in conflict, and the best of the least violating points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from oco.dsl.records import dataclass
from oco.evaluation.comparators.assembly import Assembled
from oco.evaluation.comparators.certificate import Certified, solve_certified
from oco.evaluation.comparators.elastic import Elastic, least_violation
from oco.evaluation.comparators.interior import take
from oco.evaluation.comparators.relaxed import Relaxed
from oco.evaluation.comparators.sums import Chosen

Array = np.ndarray[Any, Any]

FEASIBLE = 1e-6  # how much a program's constraints may be broken, in units of their slope over the region


@dataclass(frozen=True, eq=False)
class Infeasibility:
    """Elastic programs with their solutions: `least.f` is the least violation of each, in units of `elastic.scale`."""

    programs: Assembled
    elastic: Elastic
    least: Certified

    @property
    def proved(self) -> Array:
        """True for each program whose constraints are proved infeasible (B,)."""
        return self.least.bound > FEASIBLE

    def best(self, members: Array) -> Certified:
        """Best of the least violating points of each member, or one such point where the best was not found.

        The search continues from the iterates of the elastic programs: the least violating points have no interior to
        start in.
        """
        allowed = (self.least.f[members] * (1 + FEASIBLE) + FEASIBLE)[:, None] * self.elastic.scale[members]
        relaxed, last = Relaxed(self.programs, members, allowed), self.least.last and take(self.least.last, members)
        begin = last and replace(last, x=last.x[:, :-1], z=last.z[:, :-1], w=last.w[:, :-1])
        result = solve_certified(relaxed, self.programs.region.start, before=begin)
        x = np.where((result.violation <= FEASIBLE)[:, None], result.x, self.least.x[members, :-1])
        return replace(result, x=x, f=self.programs.jet(x, members).f, last=None)

    def conflicting(self, member: int) -> Array:
        """Rounds (from 0) whose constraints carry a multiplier in the proof of infeasibility."""
        weights, first, which = self.least.multipliers[member], 0, []
        for function in self.programs.inequalities:
            part = weights[first : first + function.entries]
            first += function.entries
            if isinstance(function, Chosen):
                own = int(self.programs.members[member])
                which.append(function.carrying(own, part, 1e-4 * weights.max(initial=0.0)))
        return np.unique(np.concatenate(which)) if which else np.zeros(0, dtype=np.int64)


def conflict(which: Array) -> str:
    """Phrase for an infeasible set of constraints: those of some rounds (from 0), or of none in particular."""
    shown = ", ".join(map(str, which[:8] + 1)) + (", ..." if len(which) > 8 else "")
    if len(which) > 1:
        return f"rounds {shown} cannot hold together"
    return f"round {shown} cannot hold" if len(which) else "the means cannot hold together"


def infeasibility_of(programs: Assembled) -> Infeasibility:
    """Least violation of each program, with the proof that there is none less."""
    return Infeasibility(programs, *least_violation(programs))
