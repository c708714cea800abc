"""Second derivatives over the domain: bounds of the eigenvalues of the Hessian, term by term and, where it is small, written out.

Where a function has kinks the same numbers mean: f - (least / 2) |x|^2 is convex, and (most / 2) |x|^2 - f is convex.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.prover.curvature import curve as curves
from oco.compiler.prover.curvature.curve import LARGEST, HessianBounds
from oco.compiler.prover.curvature.hessian_terms import Terms
from oco.compiler.prover.curvature.spectrum import SLACK, eigenvalues
from oco.compiler.prover.phrasing import number, say
from oco.compiler.prover.search_budget import size
from oco.compiler.prover.suprema.attained import SecondDerivatives
from oco.compiler.prover.terms.kinks import differentiable
from oco.compiler.prover.types import ProofRule, Step
from oco.dsl.atoms import Regularity, regularity_of
from oco.dsl.expressions import Expr, walk
from oco.dsl.intervals import Interval, interval
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext

Floats = np.ndarray[Any, Any]
USUAL_ROWS = 40  # of Hessians that are written out at the usual effort
WRITING_OUT = 80  # steps that a Hessian written out takes for each row and each part of the expression


@dataclass(frozen=True)
class Moduli:
    """On the domain: |grad f(x) - grad f(y)| <= steepest |x - y|, and second derivatives along it lie in [least, most].

    step    of these second derivatives
    change  of the first, where it does not follow from them
    """

    steepest: float
    least: float
    most: float
    step: Step
    change: Step | None = None


class Hessians:
    """Eigenvalues of the Hessian in the decisions of scalar expressions."""

    def __init__(self, setting: ProofContext) -> None:
        self.setting = setting
        self.terms = Terms(setting)
        self._known: dict[tuple[int, bool], tuple[Expr, Moduli]] = {}
        self._differentiable: dict[int, tuple[Expr, bool]] = {}
        self._matrices: dict[int, tuple[Expr, Interval | None]] = {}

    def eigenvalues(self, expr: Expr) -> tuple[float, float, Step]:
        """Least and greatest eigenvalue anywhere in the domain, for every value of the streams; infinite where nothing is known."""
        result = self._moduli(expr, whole=True)
        return result.least, result.most, result.step

    def moduli(self, expr: Expr) -> Moduli:
        """Moduli in directions in which the domain extends,
        with a Lipschitz constant of the gradient where it has no jumps."""
        return self._moduli(expr, whole=self.along is None)

    def _moduli(self, expr: Expr, whole: bool) -> Moduli:
        if (id(expr), whole) not in self._known:
            self._known[id(expr), whole] = expr, self._computed(expr, None if whole else self.along)
        return self._known[id(expr), whole][1]

    @cached_property
    def along(self) -> Floats | None:
        """An orthonormal basis of the directions in which the domain extends, in columns; None for all, or where they are too many."""
        blocks = self.setting.canonical.blocks
        if self.setting.canonical.size > LARGEST or all(b.domain.dimension == b.domain.size for b in blocks):
            return None
        result = _directions([b.domain.affine_hull()[0].reshape(-1, b.domain.size) for b in blocks])
        return result if result.shape[1] else None

    def smooth(self, expr: Expr) -> bool:
        """True if every function in it that the decision enters has a continuous slope."""
        return all(regularity_of(n) is Regularity.SMOOTH for n in walk(expr) if self.setting.depends(n))

    def differentiable(self, expr: Expr) -> bool:
        """True if the gradient has no jump on the domain."""
        if id(expr) not in self._differentiable:
            self._differentiable[id(expr)] = expr, differentiable(self.setting, expr)
        return self._differentiable[id(expr)][1]

    def tight(self, expr: Expr, steepest: float, modulus: float) -> tuple[bool, bool]:
        """Return if these numbers are shown to be within 5%
        of the least Lipschitz constant of the gradient, and of the largest modulus."""
        result = self.moduli(expr)
        same = result.least == result.most and result.steepest in (abs(result.least), math.inf)
        if same or (self.along is None and self.terms(expr).exact):
            return True, True
        attained = SecondDerivatives(self.setting, expr, self.along).extremes(steepest, modulus)
        return attained.show(steepest, modulus)

    # ---- bounds

    def _computed(self, expr: Expr, along: Floats | None) -> Moduli:
        curve, blocks = self.terms(expr), self.setting.canonical.blocks
        least, most = curves.least(curve, blocks, along), curves.most(curve, blocks, along)
        least = max(least, self._by_share(curve, along))
        steepest = curves.stretch(curve, blocks, along)
        rule = ProofRule.SECOND_DERIVATIVE_BY_TERMS
        matrix = self._matrix(expr) if least != most else None
        if matrix is not None:
            low, high, steep = _of_matrix(matrix, along)
            if low > least or high < most or steep < steepest:
                rule, least, most = ProofRule.SECOND_DERIVATIVE_WRITTEN_OUT, max(least, low), min(most, high)
                steepest = min(steepest, steep)
        where = "the eigenvalues of the second derivative" if along is None else "second derivatives along the domain"
        words = f"{where} of {say(expr)} lie in [{number(least)}, {number(most)}]"
        step, change = Step(rule, words, (least, most), (), expr.span, expr), None
        if along is not None:
            words = f"along the domain the gradient of {say(expr)} changes at a rate of at most {number(steepest)}"
            change = Step(ProofRule.CHANGE_OF_GRADIENT, words, (0.0, steepest), (), expr.span, expr)
        return Moduli(steepest, least, most, step, change)

    def _by_share(self, curve: HessianBounds, along: Floats | None) -> float:
        """With the diagonal c / x + d for x >= 0: sum_i v_i^2 / x_i >= |v|_1^2 / sum(x), by Cauchy and Schwarz."""
        positive = {n: (c.least, d) for n, (c, d) in curve.shares.items() if c.least > 0}
        if not positive:
            return -math.inf
        diagonal, start = dict(curve.diagonal), 0
        for b in self.setting.canonical.blocks:
            if b.name in positive:
                total = float(b.domain.support(np.ones(b.shape))) * (1 + SLACK)
                spread = 1.0 if along is None else _least_spread(along[start : start + b.domain.size])
                share, others = positive[b.name]
                floor = share * spread / total * (1 - SLACK) if total > 0 else 0.0
                diagonal[b.name] = (interval(floor, np.inf) + others).broadcast(b.shape)
            start += b.domain.size
        return curves.least(HessianBounds(diagonal, curve.rest, curve.rows), self.setting.canonical.blocks, along)

    # ---- written out

    def _matrix(self, expr: Expr) -> Interval | None:
        """The Hessian as a matrix of ranges; None where it is large, the gradient jumps, or no steps are left."""
        if id(expr) not in self._matrices:
            rows = self.setting.canonical.size
            search = self.setting.search
            few = self.differentiable(expr) and search.fits(rows, USUAL_ROWS)
            written = few and search.take(WRITING_OUT * rows * size(expr))
            self._matrices[id(expr)] = expr, self._written_out(expr) if written else None
        return self._matrices[id(expr)][1]

    def second(self, expr: Expr) -> Mapping[tuple[str, str], Expr] | None:
        """The second derivatives towards each pair of decisions; None where they are too long to be written."""
        order = [b.name for b in self.setting.canonical.blocks]
        results: dict[tuple[str, str], Expr] = {}
        for name, slope in zip(order, gradient(expr, order).values()):
            short = self.setting.simplify(slope)
            if not self.setting.search.take(WRITING_OUT * size(short)):
                return None
            second = jacobian(short, order)
            if not self.setting.search.take(WRITING_OUT * sum(map(size, second.values()))):
                return None
            results |= {(name, other): self.setting.simplify(e) for other, e in second.items()}
        return results

    def _written_out(self, expr: Expr) -> Interval | None:
        second = self.second(expr)
        if second is None:
            return None
        blocks = self.setting.canonical.blocks
        rows = []
        for b in blocks:
            sides = []
            for other in blocks:
                result = self.setting.ranges(second[b.name, other.name])
                lo, hi = result.broadcast((*b.shape, *other.shape)).expanded()
                sides.append((lo.reshape(-1, other.domain.size), hi.reshape(-1, other.domain.size)))
            shape = b.domain.size, self.setting.canonical.size
            rows.append([np.broadcast_to(np.concatenate([p[k] for p in sides], axis=1), shape) for k in (0, 1)])
        return interval(np.concatenate([r[0] for r in rows]), np.concatenate([r[1] for r in rows]))


def _directions(hulls: list[Floats]) -> Floats:
    """An orthonormal basis, in columns, of the directions that equalities with these rows, one set for each decision, leave."""
    size = sum(h.shape[1] for h in hulls)
    rows, start = [], 0
    for h in hulls:
        rows.append(np.pad(h, ((0, 0), (start, size - start - h.shape[1]))))
        start += h.shape[1]
    _, values, vectors = np.linalg.svd(np.concatenate(rows))
    rank = int(np.sum(values > 1e-9 * max(float(values.max(initial=0.0)), 1.0)))
    return vectors[rank:].T


def _least_spread(along: Floats) -> float:
    """A lower bound of |v|_1^2 / |v|^2 for v spanned by the columns: nearly 2 where their sums are nearly 0, for then the positive and the
    negative entries add up to nearly the same.
    """
    sums = float(np.linalg.norm(along.sum(0)))
    return max(1.0, 2.0 - 2 * sums**2 - SLACK)


def _of_matrix(matrix: Interval, along: Floats | None) -> tuple[float, float, float]:
    """Least and greatest second derivative along unit vectors of the span of `along`, and the largest |H v| of these."""
    low, high = eigenvalues(matrix)
    size = max(abs(low), abs(high))
    if along is None or not matrix.bounded:
        return low, high, size
    lo, hi = matrix.expanded()
    middle = lo / 2 + hi / 2
    middle = (middle + middle.T) / 2
    spread = np.nextafter(np.maximum(hi - middle, middle - lo), np.inf) * np.any(hi > lo)
    off = float(np.linalg.norm(spread, 2)) + SLACK * (size + float(np.abs(middle).sum()))
    inner = np.linalg.eigvalsh(along.T @ middle @ along)
    length = float(np.linalg.norm(middle @ along, 2)) + off
    return max(low, float(inner[0]) - off), min(high, float(inner[-1]) + off), min(size, length)
