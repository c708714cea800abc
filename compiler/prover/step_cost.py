"""Cost of a penalized step beside its oracle calls, in words."""

from __future__ import annotations

from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.structure import Structure, separable_over_box
from oco.compiler.prover.epigraph import lifted
from oco.compiler.prover.phrasing import plural
from oco.dsl.records import dataclass


@dataclass(frozen=True)
class StepCost:
    """Cost of a penalized step beside its theorem's oracle calls, in words; `rank` is added to that of the algorithm."""

    words: str
    rank: int


def step_cost(canonical: Canonical) -> StepCost:
    """Cost of argmin <c, x> + alpha |x - y|^2 + sum_n Q_n [g_n(x)]_+, solved by Newton's method on its N multipliers (see `penalty`)."""
    above = lifted(canonical)
    if above is not None:
        inner = _smooth_cost(above.canonical)
        kinks = f"{plural(above.levels, 'level')} above kinks of {plural(len(above.owner), 'piece')}"
        return StepCost(f"a few proximal points in {kinks}, each with {inner.words}", inner.rank + 1)
    return _smooth_cost(canonical)


def _smooth_cost(canonical: Canonical) -> StepCost:
    structure, _ = canonical.structure
    n = sum(c.size for c in canonical.inequalities)
    steps = f"a few Newton steps in {plural(n, 'multiplier')}, each with"
    if structure is Structure.AFFINE:
        return StepCost(f"{steps} a projection onto the domain and its derivative", 0)
    if separable_over_box(structure, [b.domain for b in canonical.blocks]):
        return StepCost(f"{steps} {plural(canonical.size, 'equation')} in one unknown, solved by a search", 0)
    inner = f"an inner Newton's method that solves systems of {plural(canonical.size, 'unknown')} and projects, twice a step"
    return StepCost(f"{steps} {inner}", 1)
