"""Ways to bound what nothing bounds: lines to write in the model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Canonical, DecisionBlock
from oco.compiler.prover.phrasing import number
from oco.compiler.prover.ranges.enclosure import Enclosure, entries
from oco.dsl.build import call
from oco.dsl.diagnostics import OcoError
from oco.dsl.expressions import Expr, Kind, Name, constant, names
from oco.dsl.intervals import Interval, interval
from oco.dsl.model import Model
from oco.dsl.records import dataclass
from oco.dsl.statements import Cut, Relation

MARGIN = 0.01
"""Share of the way from an end of an entry's range to the centre of the set, which is left out where the gradient is infinite."""


@dataclass(frozen=True)
class Border:
    """End of a decision's entries near which a gradient is infinite, moved a little inwards."""

    block: DecisionBlock
    relation: Relation
    end: float

    def __str__(self) -> str:
        return f"{self.block.name} {self.relation.value} {number(self.end)}"

    def cut(self, model: Model) -> Model:
        """The model with this cut of the decision's set."""
        decision = next(d for d in model.decisions if d.name == self.block.name)
        one = Cut(Name(decision.name, Kind.DECISION, shape=decision.shape), self.relation, constant(np.array(self.end)))
        narrowed = replace(decision, domain=replace(decision.domain, cuts=(*decision.domain.cuts, one)))
        return replace(model, decisions=tuple(narrowed if d is decision else d for d in model.decisions))


def way_to_bound(canonical: Canonical, expr: Expr, key: str) -> str:
    """Advice for a fact of an expression that nothing bounds: bounds of a stream, a set that keeps away from where the gradient is
    infinite, or else an assumption.
    """
    for s in canonical.streams:
        if s.name in names(expr, Kind.STREAM) and not (np.isfinite(s.lower).all() and np.isfinite(s.upper).all()):
            return f"state bounds of `{s.name}`: `in [lo, hi]` behind its declaration"
    if not (away := borders_of_slopes(canonical, (expr,))):
        return f"`assume {key} <= ...`"
    whose = " and ".join(f"`{n}`" for n in dict.fromkeys(b.block.name for b in away))
    cuts = " and ".join(f"`with {b}`" for b in away)
    return f"keep {whose} from where the gradient is infinite: write {cuts} behind its domain"


def borders_of_slopes(canonical: Canonical, exprs: Sequence[Expr]) -> tuple[Border, ...]:
    """Fewest cuts, of one number for all entries each, over which the gradients of all expressions are bounded.

    Empty where they are bounded without, and where no such cuts bound them.
    """
    used = [b for b in canonical.blocks if any(b.name in names(e, Kind.DECISION) for e in exprs)]
    ranges = {b.name: entries(b.domain.lower, b.domain.upper, b.shape) for b in canonical.blocks}
    ranges |= {s.name: entries(s.lower, s.upper, s.shape) for s in (*canonical.streams, *canonical.previous)}
    ranges["t"] = interval(1.0, float(canonical.horizon or np.inf), ())

    def bounded(cuts: Sequence[Border]) -> bool:
        within = dict(ranges)
        for c in cuts:
            b, low = c.block, c.relation is Relation.GE
            lower, upper = (c.end, within[b.name].hi) if low else (within[b.name].lo, c.end)
            within[b.name] = entries(lower, upper, b.shape)
        return all(_bounded(e, used, within) for e in exprs)

    cuts = [c for b in used for c in _borders(b)]
    if bounded(()) or not bounded(cuts):
        return ()
    for c in reversed(cuts):
        if bounded(rest := [other for other in cuts if other is not c]):
            cuts = rest
    return tuple(cuts)


def _borders(block: DecisionBlock) -> Iterator[Border]:
    """Cuts of a block's entries a little inwards, where there is room."""
    domain, centre = block.domain, block.domain.centre()
    for relation, end, middle in (
        (Relation.GE, float(np.max(domain.lower)), float(np.min(centre))),
        (Relation.LE, float(np.min(domain.upper)), float(np.max(centre))),
    ):
        moved = _inside(end, middle)
        if moved is not None and (moved < middle if relation is Relation.GE else moved > middle):
            yield Border(block, relation, moved)


def _bounded(expr: Expr, blocks: list[DecisionBlock], ranges: Mapping[str, Interval]) -> bool:
    """True where the gradient has a finite range."""
    try:
        slopes = gradient(call("sum", expr) if expr.shape else expr, [b.name for b in blocks])
        return all(Enclosure(ranges)(g).bounded for g in slopes.values())
    except OcoError:
        return False


def _inside(end: float, centre: float) -> float | None:
    """Number with few digits a little on the way from an end to the centre; None where there is no way."""
    margin = MARGIN * (centre - end)
    if not math.isfinite(margin) or margin == 0:
        return None
    return round(end + margin, -math.floor(math.log10(abs(margin))))
