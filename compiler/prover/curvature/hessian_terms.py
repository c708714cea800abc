"""Enclosures of the Hessian of scalar expressions, term by term, by the sum and chain rules.

For phi applied entry by entry to an affine map u with the Jacobian J the Hessian is J' diag(phi''(u)) J. For phi(v_1, ..., v_k) of
scalars it is sum_a phi_a Hess v_a + J' Hess phi J with the gradients of the v_a as rows of J.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.problem.calculus import gradient
from oco.compiler.prover.curvature import curve as curves
from oco.compiler.prover.curvature.curve import LARGEST, HessianBounds, WeightedRows
from oco.compiler.prover.curvature.single_nonlinearity import NonlinearEntries, of_entries
from oco.compiler.prover.curvature.spectrum import SLACK, Stretch, eigenvalues, matrix_norm
from oco.compiler.prover.terms.matching import options_of
from oco.compiler.prover.terms.summands import summands
from oco.dsl.atoms import Curvature, form_of, forms, is_entrywise
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.expressions import Array, Expr, Kind, Name
from oco.dsl.intervals import Interval, interval, point

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext

MOST_NUMBERS = 40_000  # in the Jacobian of an affine map that is kept as it is
FLAT = (Curvature.AFFINE, Curvature.CONSTANT)
Pairs = Mapping[tuple[str, str], Interval]


class Terms:
    """The enclosure of the Hessian in all decisions of each scalar expression, each worked out once."""

    def __init__(self, setting: ProofContext) -> None:
        self.setting = setting
        self.stretch = Stretch(setting)
        self._known: dict[int, tuple[Expr, HessianBounds]] = {}
        self._jacobians: dict[int, tuple[Expr, Interval | None]] = {}

    def __call__(self, node: Expr) -> HessianBounds:
        if not self.setting.depends(node) or self._affine(node):
            return HessianBounds()
        if id(node) not in self._known:
            self._known[id(node)] = node, self._meet(self._rule(node), node)
        return self._known[id(node)][1]

    def _affine(self, node: Expr) -> bool:
        return self.setting.composition(node) in FLAT

    def _meet(self, result: HessianBounds, node: Expr) -> HessianBounds:
        """A convex function has no negative eigenvalue, a concave one no positive, whatever the terms say."""
        kind, blocks = self.setting.composition(node), self.setting.canonical.blocks
        if kind is Curvature.CONVEX and result.has_negative and curves.least(result, blocks) < 0:
            return result.nonnegative()
        if kind is Curvature.CONCAVE and result.minus.has_negative and curves.most(result, blocks) > 0:
            return result.minus.nonnegative().minus
        return result

    def _rule(self, node: Expr) -> HessianBounds:
        depends = self.setting.depends
        match form_of(node), node.children:
            case forms.Signed(), args if all(a.shape == node.shape for a in args):
                return self._sum(node)
            case forms.TIMES, (left, right) if depends(left) != depends(right):
                factor, base = (left, right) if not depends(left) else (right, left)
                return self(base).times(self.setting.ranges(factor))
            case forms.QUOTIENT, (base, divisor) if not depends(divisor):
                return self(base).times(point(1.0) / self.setting.ranges(divisor))
            case forms.Quadratic(), (base, matrix) if not depends(matrix) and self._affine(base):
                return self._quadratic(node, base, self.setting.ranges(matrix))
            case forms.SoftMaximum(), (base,) if not options_of(node):
                return self._soft_maximum(node, base)
            case forms.LENGTH, (base,) if not options_of(node) and self._affine(base):
                return self._length(node, base)
        body = summed_up(node)
        inner = None if body is None else of_entries(self.setting, body)
        return self._by_curvature(node) if inner is None or not inner.continuous else self._entries(node, inner)

    def _by_curvature(self, node: Expr) -> HessianBounds:
        kind = self.setting.composition(node)
        low = 0.0 if kind is Curvature.CONVEX else -np.inf
        return HessianBounds(rest=interval(low, 0.0 if kind is Curvature.CONCAVE else np.inf))

    # ---- sums

    def _sum(self, node: Expr) -> HessianBounds:
        """Terms that add up functions of each entry of one decision also count together: their second derivatives peak elsewhere."""
        result = HessianBounds()
        groups: dict[str, list[tuple[HessianBounds, Expr]]] = {}
        for sign, term in summands(node):
            own = self(term) if sign > 0 else self(term).minus
            body = summed_up(term)
            if len(own.diagonal) != 1 or own.rows or body is None or not _stays(own):
                result += own
                continue
            (name,) = own.diagonal
            groups.setdefault(name, []).append((own, body if sign > 0 else call("minus", body)))
        for name, members in groups.items():
            total = sum((c for c, _ in members), HessianBounds())
            result += total if len(members) < 2 else self._together(name, total, [b for _, b in members])
        return result

    def _together(self, name: str, total: HessianBounds, bodies: list[Expr]) -> HessianBounds:
        """The sum of diagonal enclosures, met with the range of the sum of the second derivatives."""
        body = bodies[0]
        for b in bodies[1:]:
            body = call("add", body, b)
        if total.diagonal[name].is_point or any(b.shape != self.setting.variables[name].shape for b in bodies):
            return total
        inner = of_entries(self.setting, self.setting.simplify(body))
        if inner is None or not inner.continuous or len(inner.moving) != 1:
            return total
        ((leaf, _),) = inner.moving.items()
        return total.met(name, inner.ranges()[leaf, leaf])

    # ---- functions of entries

    def _entries(self, node: Expr, inner: NonlinearEntries) -> HessianBounds:
        if all(map(self._affine, inner.moving.values())):
            return self._of_affine(inner)
        return self._by_curvature(node) if inner.split.shape else self._chain(inner)

    def _of_affine(self, inner: NonlinearEntries) -> HessianBounds:
        shape, pairs = inner.split.shape, inner.ranges()
        weights = eigenvalues_of_pairs(pairs, list(inner.moving), shape)
        total = HessianBounds()
        for leaf in inner.moving.values():
            total += self._through(weights, leaf)
        ((_, leaf), *others) = inner.moving.items()
        if not others and isinstance(leaf, Name) and leaf.shape == shape and self._is_coupled(leaf):
            total = total.sharing(leaf.name, inner.share())
        return total if others else replace(total, exact=inner.exact)

    def _is_coupled(self, leaf: Name) -> bool:
        return not self.setting.blocks[leaf.name].domain.is_box

    def _through(self, weights: Interval, leaf: Expr) -> HessianBounds:
        """J' diag(w) J for the Jacobian J of an affine expression, of which each entry may stand for several of the weights."""
        own = collapsed(weights, known(leaf.shape))
        if isinstance(leaf, Name) and leaf.kind is Kind.DECISION:
            return HessianBounds({leaf.name: own})
        rows = self._jacobian(leaf)
        if rows is not None:
            return HessianBounds(rows=(WeightedRows(rows, own.reshape((own.size,))),))
        least, most = self.stretch(leaf)
        low = own.least * (least if own.least >= 0 else most) if own.least != 0 else 0.0
        high = own.greatest * (most if own.greatest >= 0 else least) if own.greatest != 0 else 0.0
        ends = np.nextafter(low, -np.inf) if low else 0.0, np.nextafter(high, np.inf) if high else 0.0
        return HessianBounds(rest=interval(*ends))

    def _jacobian(self, leaf: Expr) -> Interval | None:
        if id(leaf) not in self._jacobians:
            self._jacobians[id(leaf)] = leaf, self.stretch.rows(leaf, MOST_NUMBERS)
        return self._jacobians[id(leaf)][1]

    def _chain(self, inner: NonlinearEntries) -> HessianBounds:
        total = HessianBounds()
        slopes = inner.slope_ranges()
        weights = eigenvalues_of_pairs(inner.ranges(), list(inner.moving), ())
        for name, leaf in inner.moving.items():
            total += self(leaf).times(slopes[name])
            total += self._through(weights, leaf) if self._affine(leaf) else self._along(weights, leaf)
        return total

    def _along(self, weights: Interval, leaf: Expr) -> HessianBounds:
        """w g g' for the gradient g of a scalar."""
        parts = []
        for b, g in zip(self.setting.canonical.blocks, gradient(leaf, list(self.setting.blocks)).values()):
            parts.append(self.setting.ranges(self.setting.simplify(g)).broadcast(b.shape))
        if self.setting.canonical.size <= MOST_NUMBERS:
            lo, hi = (np.concatenate([p.expanded()[side].ravel() for p in parts])[None] for side in (0, 1))
            return HessianBounds(rows=(WeightedRows(interval(lo, hi), weights.reshape((1,))),))
        squares = sum((p.square().sum() for p in parts), point(0.0))
        return HessianBounds(rest=interval(0.0, squares.greatest) * weights)

    # ---- functions of vectors

    def _quadratic(self, node: Expr, base: Expr, form: Interval) -> HessianBounds:
        """P + P' through its eigenvectors where P is fixed and small."""
        whole = form + form.transpose()
        n = whole.shape[0]
        middle = whole.expanded()[0]
        if not whole.is_point or n > LARGEST:
            low, high = eigenvalues(whole)
            return self._through(interval(low, high, (n,)), base)
        if not np.any(middle - np.diag(np.diag(middle))):
            return self._through(point(np.diag(middle)), base)
        values, vectors = np.linalg.eigh(middle)
        slack = SLACK * float(np.abs(values).max(initial=0.0))
        floor = {Curvature.CONVEX: 0.0}.get(self.setting.composition(node), -np.inf)
        rows = self._jacobian(base)
        if rows is None:
            return self._through(interval(max(float(values[0]) - slack, floor), float(values[-1]) + slack, (n,)), base)
        return HessianBounds(
            rows=(WeightedRows(point(vectors.T) @ rows, interval(np.maximum(values - slack, floor), values + slack)),)
        )

    def _length(self, node: Expr, base: Expr) -> HessianBounds:
        """(I - u u') / |v| for v with the direction u."""
        length = self.setting.ranges(node)
        if not length.positive:
            return self._by_curvature(node)
        return self._through((interval(0.0, 1.0) / length).broadcast(known(base.shape)), base)

    def _soft_maximum(self, node: Expr, base: Expr) -> HessianBounds:
        """J' (diag(p) - p p') J for a probability vector p.

        diag(p) - p p' is at most diag(p), max(p) I and I / 2, and 0 along the vector of ones: the mean of the rows of J may be taken out.
        """
        if self._affine(base):
            rows, total = self._jacobian(base), HessianBounds()
        elif isinstance(base, Array) and not base.items[0].shape:
            parts = [self(i) for i in base.items]
            ends = [
                (curves.least(c, self.setting.canonical.blocks), curves.most(c, self.setting.canonical.blocks))
                for c in parts
            ]
            total = HessianBounds(rest=interval(min(e[0] for e in ends), max(e[1] for e in ends)))
            rows = self._gradients(base)
        else:
            return self._by_curvature(node)
        if rows is None:
            return (
                total + self._through(interval(0.0, 0.5, known(base.shape)), base)
                if self._affine(base)
                else self._by_curvature(node)
            )
        count, search = rows.shape[0], self.setting.search
        share = self.setting.ranges(call("_softmax", base)).broadcast(known(base.shape)).reshape((count,))
        half = interval(0.0, min(0.5, share.greatest), (count,))
        options = (
            WeightedRows(rows, interval(0.0, share.hi, (count,))),
            WeightedRows(rows, half),
            WeightedRows(point(np.eye(count) - 1 / count) @ rows, half),
        )
        best = min(options, key=lambda r: matrix_norm(r.scaled(np.broadcast_to(r.weights.hi, (count,))), search))
        slack = SLACK * matrix_norm(rows, search) ** 2  # the rows that are centred are so up to rounding
        return total + HessianBounds(rest=interval(0.0, slack), rows=(best,))

    def _gradients(self, base: Array) -> Interval | None:
        if len(base.items) * self.setting.canonical.size > MOST_NUMBERS:
            return None
        weight = point(np.ones(()))
        rows = [self._along(weight, i).rows[0].matrix.expanded() for i in base.items]
        low, high = (np.concatenate([r[side] for r in rows]) for side in (0, 1))
        return interval(low, high)


def summed_up(node: Expr) -> Expr | None:
    """The array of which the scalar `node` is the sum, entry by entry; None where it is of another form."""
    match form_of(node), node.children:
        case forms.Total(of, mean, root=False), (base,) if not options_of(node):
            body = call(of, base) if of else base
            return call("div", body, float(math.prod(known(base.shape)))) if mean else body
        case forms.MATRIX_PRODUCT, (left, right) if left.shape == right.shape and len(left.shape) == 1:
            return call("mul", left, right)
        case forms.TIMES, (left, right) if left.shape == () and (inner := _inner(right)) is not None:
            return call("mul", left, inner)
    return node if is_entrywise(node) else None


def _inner(node: Expr) -> Expr | None:
    result = summed_up(node)
    return result if result is not None and result.shape else None


def _stays(own: HessianBounds) -> bool:
    (diagonal,) = own.diagonal.values()
    return diagonal.bounded and own.rest.least == 0 == own.rest.greatest


def collapsed(weights: Interval, shape: tuple[int, ...]) -> Interval:
    """Weights added up over the entries that one entry of an array of this shape stands for."""
    while len(weights.shape) > len(shape):
        weights = weights.sum(0)
    for axis, (own, size) in enumerate(zip(shape, weights.shape)):
        if own == 1 < size:
            kept = (*weights.shape[:axis], 1, *weights.shape[axis + 1 :])
            weights = weights.sum(axis).reshape(kept)
    return weights


def eigenvalues_of_pairs(pairs: Pairs, order: list[str], shape: tuple[int, ...]) -> Interval:
    """Bounds of the eigenvalues of the symmetric matrix of second derivatives, at every entry: exact for one leaf, and nearly for two."""
    if len(order) == 1:
        return pairs[order[0], order[0]]
    if len(order) == 2:
        first, cross, second = pairs[order[0], order[0]], pairs[order[0], order[1]], pairs[order[1], order[1]]
        low = 0.0 - _larger(0.0 - first.lo, cross.magnitude, 0.0 - second.lo)
        return interval(low, _larger(first.hi, cross.magnitude, second.hi), shape)
    lows, highs = [], []
    for a in order:
        own = pairs[a, a]
        radius = point(0.0)
        for b in order:
            if b != a:
                radius = radius + pairs[(a, b) if (a, b) in pairs else (b, a)].abs()
        lows.append((interval(own.lo, own.lo) - radius).lo)
        highs.append((interval(own.hi, own.hi) + radius).hi)
    return interval(
        np.minimum.reduce(np.broadcast_arrays(*lows)), np.maximum.reduce(np.broadcast_arrays(*highs)), shape
    )


def _larger(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """At least the larger eigenvalue of [[a, b], [b, c]]; the larger of a and c where b is 0."""
    first, cross, second = (point(np.asarray(v, dtype=np.float64)) for v in (a, b, c))
    half = point(0.5)
    root = ((half * (first - second)).square() + cross.square()).sqrt()
    result = half * (first + second) + root
    return np.where(np.asarray(b) == 0, np.maximum(a, c), result.hi)
