"""Curvature where composition says nothing: from bounds of the second derivative over the domain."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oco.compiler.prover.phrasing import say, span_of_values
from oco.compiler.prover.ranges.cells import CELL, NotCovered
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.compiler.prover.search_budget import size
from oco.compiler.prover.suprema.entry_sup import FINEST, MOST_NUMBERS, EntrySup
from oco.compiler.prover.terms.kinks import smooth
from oco.compiler.prover.terms.leaves import Entrywise, entrywise
from oco.compiler.prover.types import ProofRule, Step
from oco.dsl.atoms import Curvature, is_entrywise
from oco.dsl.build import call
from oco.dsl.expressions import Call, Expr, Name
from oco.dsl.intervals import Interval, interval

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext

DERIVATIVE_STEPS = 40  # steps that a node takes for each part
MANY_CELLS = 4000  # of several leaves together
MANY_TIMES = 6  # as many ranges of all cells are evaluated for both ends
FEW_NUMBERS = 5000  # cells times entries where there are no steps left for all
FLAT = (Curvature.AFFINE, Curvature.CONSTANT)


def by_second_derivative(setting: ProofContext, node: Call) -> tuple[Curvature, Step] | None:
    """Convex or concave where the second derivative has one sign on the whole domain, for every value of the streams."""
    if not setting.search.take(DERIVATIVE_STEPS * size(node)):
        return None
    if is_entrywise(node):
        result = _entry_by_entry(setting, node)
        if result is not None:
            return result
    if node.shape != ():
        return None
    return _as_a_whole(setting, node)


def _entry_by_entry(setting: ProofContext, node: Call) -> tuple[Curvature, Step] | None:
    """A function of one affine map, applied to each entry: the sign of phi''."""
    split = entrywise(node, lambda n: not setting.depends(n) or isinstance(n, Name))
    moving = [n for n, leaf in split.leaves.items() if setting.depends(leaf)]
    if len(moving) != 1 or not smooth(split.body) or setting.composition(split.leaves[moving[0]]) not in FLAT:
        return None
    box = {n: setting.ranges(leaf).broadcast(split.shape) for n, leaf in split.leaves.items()}
    second = split.second_derivatives[moving[0], moving[0]]
    second_derivative = _narrowed(setting, Entrywise(second, split.leaves), Enclosure({**setting.box, **box})(second))
    if not (second_derivative.nonnegative or second_derivative.nonpositive):
        return None
    kind = Curvature.CONVEX if second_derivative.nonnegative else Curvature.CONCAVE
    words = f"{say(node)} is {kind}: its second derivative in {say(split.leaves[moving[0]])} lies in {span_of_values(second_derivative)}"
    premises = tuple(setting.ranges.step(leaf) for leaf in split.leaves.values())
    return kind, Step(ProofRule.SECOND_DERIVATIVE_OF_ENTRIES, words, str(kind), premises, node.span, node)


def _narrowed(setting: ProofContext, second: Entrywise, second_derivative: Interval) -> Interval:
    """The range of the second derivative again, over cells of its leaves, where its sign is open."""
    if second_derivative.nonnegative or second_derivative.nonpositive or not second_derivative.bounded:
        return second_derivative
    upward = Entrywise(setting.simplify(second.body), second.leaves)
    numbers = _numbers(setting, upward)
    if not numbers:
        return second_derivative
    suprema = EntrySup(setting)
    try:
        most = suprema.largest(upward, numbers).value
        downward = Entrywise(setting.simplify(call("minus", second.body)), second.leaves)
        least = -suprema.largest(downward, numbers).value
    except NotCovered:
        return second_derivative
    return interval(max(least, second_derivative.least), min(most, second_derivative.greatest))


def _numbers(setting: ProofContext, second: Entrywise) -> int:
    """Number of cells times entries that the steps suffice for, all or few; 0 where they suffice for none."""
    finest = FINEST if len(second.leaves) == 1 else MANY_CELLS
    wanted = min(MOST_NUMBERS, finest * math.prod(second.shape))
    for numbers in (wanted, min(FEW_NUMBERS, wanted)):
        if setting.search.left >= MANY_TIMES * CELL * numbers * size(second.body):
            return numbers if numbers < wanted else MOST_NUMBERS
    return 0


def _as_a_whole(setting: ProofContext, node: Expr) -> tuple[Curvature, Step] | None:
    least, most, step = setting.hessians.eigenvalues(node)
    if math.isnan(least) or math.isnan(most) or (least < 0 < most) or (least < 0 and math.isinf(most)):
        return None
    if least < 0 and most > 0:
        return None
    kind = Curvature.CONVEX if least >= 0 else Curvature.CONCAVE
    return kind, Step(ProofRule.SECOND_DERIVATIVE, f"{say(node)} is {kind}", str(kind), (step,), node.span, node)
