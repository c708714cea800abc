"""Suprema of expressions over domain and streams: from the cheapest bound to the tightest, until one is within 2% of a value reached."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from oco.compiler.prover.phrasing import number, say
from oco.compiler.prover.ranges.cells import NotCovered
from oco.compiler.prover.ranges.occurs_once import occurs_once
from oco.compiler.prover.ranges.refine import bilinear_supremum
from oco.compiler.prover.search_budget import size
from oco.compiler.prover.suprema.corners import branch_sup, corner_sup
from oco.compiler.prover.suprema.entry_sup import Supremum
from oco.compiler.prover.suprema.lower_bound import LARGEST_ENTRIES, Attained, Climber
from oco.compiler.prover.suprema.quadratic import ball_sup
from oco.compiler.prover.suprema.separable import Separable
from oco.compiler.prover.suprema.tangent import tangent_sup
from oco.compiler.prover.types import ProofRule, Step
from oco.dsl.diagnostics import InternalError, OcoError
from oco.dsl.expressions import Expr, entries, names
from oco.dsl.intervals import point
from oco.dsl.magnitudes import SMALLEST
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext

Method = Callable[[Expr, float], "Supremum | None"]
TIGHT, LOOSE = 0.01, 0.05  # relative gaps between bound and reached value: good enough, and worth a word
ROUNDING = 1e-9  # relative
CLIMB, METHOD = (
    40,
    40,
)  # steps that a climb and a method take for each part of the expression, beside what they count themselves
STEADY = 20  # parts that stand for what the smallest expression takes
LARGEST_CLIMB = 20_000  # numbers in decision and streams


@dataclass(frozen=True, eq=False)
class UpperBound:
    """A proved upper bound; `reached` is a value at some point (None: not sought, or none found), `scale` the largest absolute value."""

    value: float
    step: Step
    reached: Attained | None = None
    exact: bool = False
    scale: float = 0.0

    @property
    def attained(self) -> float:
        """A value that is reached: -inf where none is known."""
        return self.value if self.exact else -math.inf if self.reached is None else self.reached.value

    def tight(self, size: float = 0.0) -> bool:
        """True if it is shown to be within 5% of the supremum, or of 2% of a number that |f| is known to reach."""
        if not (math.isfinite(self.value) and math.isfinite(self.attained)):
            return False
        return self.value - self.attained <= LOOSE * max(abs(self.attained), 0.02 * size)


def _gap(bound: UpperBound) -> float:
    if bound.reached is None or not math.isfinite(bound.value):
        return math.inf
    scale = max(abs(bound.value), abs(bound.reached.value), 0.02 * bound.scale, SMALLEST)
    return (bound.value - bound.reached.value) / scale


class Bounds:
    """Upper bounds of scalar expressions of one model, each worked out once."""

    def __init__(self, setting: ProofContext) -> None:
        self.setting = setting
        self._known: dict[int, tuple[Expr, UpperBound]] = {}
        separable = Separable(setting)
        self._methods: tuple[tuple[ProofRule, str, Method], ...] = (
            (ProofRule.VERTICES, "by its values at vertices and corners", lambda e, _: _plain(corner_sup(setting, e))),
            (ProofRule.ENTRY_BY_ENTRY, "as a sum of functions of single entries", lambda e, _: separable.upper(e)),
            (ProofRule.BALL, "as a quadratic over the ball, by duality", lambda e, _: _plain(ball_sup(setting, e))),
            (
                ProofRule.TANGENT,
                "by its tangent at one point: it is concave",
                lambda e, _: _plain(tangent_sup(setting, e)),
            ),
            (
                ProofRule.BRANCH_AND_BOUND,
                "over cells of domain and streams",
                lambda e, most: _plain(branch_sup(setting, e, most)),
            ),
        )

    def upper(self, expr: Expr) -> UpperBound:
        """An upper bound of the supremum of a scalar expression."""
        result = self._known.get(id(expr))
        if result is not None:
            return result[1]
        bound = self._improved(expr, self._natural(expr))
        self._known[id(expr)] = (expr, bound)
        return bound

    def largest(self, exprs: list[Expr]) -> tuple[UpperBound, tuple[Step, ...]]:
        """An upper bound of all these expressions, with a step for each. Only those whose range may exceed the others are tightened."""
        naturals = sorted(((self._natural(e), e) for e in exprs), key=lambda pair: -pair[0].value)
        best = self.upper(naturals[0][1])
        steps = [best.step]
        for natural, expr in naturals[1:]:
            bound = natural if natural.value <= best.value else self.upper(expr)
            steps.append(bound.step)
            best = max(best, bound, key=lambda b: b.value)
        return best, tuple(steps)

    def _natural(self, expr: Expr) -> UpperBound:
        """Interval arithmetic with the domain's support function."""
        result = self.setting.ranges(expr)
        step = self.setting.ranges.step(expr)
        size = float(result.magnitude.max())
        exact = occurs_once(self.setting, expr) or self._bilinear(expr, result.greatest)
        return UpperBound(result.greatest, step, None, exact, size if math.isfinite(size) else 0.0)

    def _bilinear(self, expr: Expr, value: float) -> bool:
        """True if the range of an affine function of few ingredients is its range exactly."""
        supremum = bilinear_supremum(self.setting, expr)
        return supremum is not None and value <= supremum + 1e-12 * abs(supremum)

    def _improved(self, expr: Expr, bound: UpperBound) -> UpperBound:
        if bound.exact or not math.isfinite(bound.value):
            return bound
        steps, search = STEADY + size(expr), self.setting.search
        reached = self._reached(expr, bound.value) if search.take(CLIMB * steps) else None
        if reached is not None:
            above(reached, bound.value, expr)
        bound = replace(bound, reached=reached)
        for rule, words, method in self._methods:
            if _gap(bound) <= TIGHT:
                break
            if not search.take(METHOD * steps):
                return replace(bound, step=self._ended(expr, bound))
            enough = -math.inf if reached is None else reached.value + TIGHT / 2 * max(abs(reached.value), 1e-9)
            try:
                result = method(expr, enough)
            except (NotCovered, OcoError):
                continue
            if result is None or not result.value <= bound.value:
                continue
            value = result.value if reached is None else above(reached, result.value, expr)
            if value < bound.value:
                claim = f"{say(expr)} is at most {number(value)}: {words}"
                step = Step(rule, claim, value, (bound.step,), expr.span, expr)
                bound = replace(bound, value=value, step=step)
            bound = replace(bound, exact=result.attained)
            if bound.exact:
                break
        return bound

    def _ended(self, expr: Expr, bound: UpperBound) -> Step:
        """The step of a bound that the search did not tighten to the end."""
        claim = f"{say(expr)} is at most {number(bound.value)}, {ProofRule.NOT_SEARCHED}: {self.setting.search.advice}"
        return Step(ProofRule.NOT_SEARCHED, claim, bound.value, (bound.step,), expr.span, expr)

    def _reached(self, expr: Expr, enough: float) -> Attained | None:
        numbers = sum(self.setting.box[n].size for n in names(expr))
        if numbers > LARGEST_CLIMB or entries(expr) > LARGEST_ENTRIES:
            return None
        return Climber(self.setting, expr).climb(enough * (1 - TIGHT / 2) if enough > 0 else enough)

    def square_root(self, bound: UpperBound) -> UpperBound:
        """The bound of a quantity from that of its square."""
        value = point(max(bound.value, 0.0)).sqrt().greatest
        reached = None
        if bound.reached is not None:
            reached = replace(bound.reached, value=point(max(bound.reached.value, 0.0)).sqrt().least)
        return UpperBound(value, bound.step, reached, bound.exact, point(bound.scale).sqrt().greatest)


def above(reached: Attained, bound: float, expr: Expr) -> float:
    """Greater of a bound and the value that is reached.

    Raises InternalError where the value passes the bound by more than the rounding of a method and of the point.
    """
    if reached.value - bound > ROUNDING * max(abs(reached.value), abs(bound), reached.sensitivity):
        raise InternalError(f"{say(expr)} reaches {number(reached.value)} and was bounded by {number(bound)}")
    return max(bound, reached.value)


def _plain(value: float | None) -> Supremum | None:
    return None if value is None else Supremum(value, False)
