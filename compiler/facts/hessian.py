"""Second derivatives over the domain: bounds of the eigenvalues of the Hessian, term by term.

For phi applied entry by entry to an affine map u with the Jacobian J the Hessian is J' diag(phi''(u)) J; a chain rule serves scalar
compositions, and a small Hessian is also written out and bounded as a matrix of ranges. Where a function has kinks the same numbers
mean: f - (least / 2) |x|^2 is convex, and (most / 2) |x|^2 - f is convex.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from oco.compiler.calculus import gradient
from oco.compiler.facts.budget import size
from oco.compiler.facts.enclosure import Enclosure
from oco.compiler.facts.kinks import KINKED, smooth
from oco.compiler.facts.leaves import entrywise
from oco.compiler.facts.spectrum import Stretch, eigenvalues
from oco.compiler.facts.sums import summands
from oco.compiler.facts.types import Step
from oco.compiler.facts.words import number, say
from oco.compiler.jacobians import jacobian
from oco.dsl.atoms import ATOMS, Curvature
from oco.dsl.atoms.shapes import entrywise as entrywise_shape
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Expr, Name, walk
from oco.dsl.intervals import Interval, interval, point

if TYPE_CHECKING:
    from oco.compiler.facts.setting import Setting

MOST_WRITTEN_OUT = 40  # decisions with at most as many entries get their Hessian written out
BEND = 200  # steps that second derivatives take for each part and each leaf: they are written for each pair of leaves
WRITING_OUT = 80  # steps that a Hessian written out takes for each row and each part of the expression


@dataclass(frozen=True, eq=False)
class Curve:
    """The Hessian lies between diag + rest.lo I and diag + rest.hi I, the diagonal being given for some decisions, else 0."""

    diagonal: Mapping[str, Interval] = field(default_factory=dict)
    rest: Interval = field(default_factory=lambda: point(0.0))

    def __add__(self, other: Curve) -> Curve:
        both = dict(self.diagonal)
        for name, d in other.diagonal.items():
            both[name] = both[name] + d if name in both else d
        return Curve(both, self.rest + other.rest)

    def times(self, factor: Interval) -> Curve:
        """The Hessian times a number in a range."""
        return Curve({n: d * factor for n, d in self.diagonal.items()}, self.rest * factor)


class Hessians:
    """Eigenvalues of the Hessian in the decisions of scalar expressions."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.stretch = Stretch(setting)
        self._known: dict[int, tuple[Expr, Curve]] = {}

    def eigenvalues(self, expr: Expr) -> tuple[float, float, Step]:
        """Least and greatest eigenvalue anywhere in the domain, for every value of the streams; infinite where nothing is known."""
        curve = self.curve(expr)
        least, most = curve.rest.least, curve.rest.greatest
        blocks = self.setting.canonical.blocks
        if curve.diagonal:
            found = [curve.diagonal.get(b.name, point(0.0)) + curve.rest for b in blocks]
            least, most = min(d.least for d in found), max(d.greatest for d in found)
        rule = "second derivative by terms"
        rows = self.setting.canonical.size
        few = rows <= MOST_WRITTEN_OUT and self.smooth(expr) and least != most
        if few and self.setting.search.take(WRITING_OUT * rows * size(expr)):
            low, high = self._written_out(expr)
            if low > least or high < most:
                rule, least, most = "second derivative written out", max(least, low), min(most, high)
        words = f"the eigenvalues of the second derivative of {say(expr)} lie in [{number(least)}, {number(most)}]"
        return least, most, Step(rule, words, (least, most), (), expr.span, expr)

    def smooth(self, expr: Expr) -> bool:
        """Whether every function in it that the decision enters has a second derivative on its range."""
        return all(n.atom not in KINKED for n in walk(expr) if isinstance(n, Call) and self.setting.depends(n))

    def _written_out(self, expr: Expr) -> tuple[float, float]:
        """The whole Hessian as a matrix of ranges; infinite where its entries are too long to be written."""
        blocks = self.setting.canonical.blocks
        order = [b.name for b in blocks]
        rows = []
        for b, slope in zip(blocks, gradient(expr, order).values()):
            short = self.setting.simplify(slope)
            if not self.setting.search.take(WRITING_OUT * size(short)):
                return -math.inf, math.inf
            second = jacobian(short, order)
            if not self.setting.search.take(WRITING_OUT * sum(map(size, second.values()))):
                return -math.inf, math.inf
            sides = []
            for other in blocks:
                found = self.setting.ranges(self.setting.simplify(second[other.name]))
                shape = (*(b.shape if slope.shape else ()), *other.shape)
                lo, hi = (
                    found.broadcast(shape).expanded()
                    if found.shape
                    else found.broadcast((*b.shape, *other.shape)).expanded()
                )
                sides.append((lo.reshape(-1, other.domain.size), hi.reshape(-1, other.domain.size)))
            rows.append(
                tuple(
                    np.broadcast_to(
                        np.concatenate([p[side] for p in sides], axis=1), (b.domain.size, self.setting.canonical.size)
                    )
                    for side in (0, 1)
                )
            )
        return eigenvalues(interval(np.concatenate([r[0] for r in rows]), np.concatenate([r[1] for r in rows])))

    # ---- term by term

    def curve(self, node: Expr) -> Curve:
        setting = self.setting
        if not setting.depends(node) or setting.composition(node) in (Curvature.AFFINE, Curvature.CONSTANT):
            return Curve()
        if id(node) not in self._known:
            self._known[id(node)] = node, self._meet(self._rule(node), node)
        return self._known[id(node)][1]

    def _meet(self, found: Curve, node: Expr) -> Curve:
        """A convex function has no negative eigenvalue, a concave one no positive, whatever the terms say."""
        kind = self.setting.composition(node)
        if kind is Curvature.CONVEX and not found.diagonal and found.rest.least < 0:
            return Curve({}, interval(0.0, found.rest.hi))
        if kind is Curvature.CONCAVE and not found.diagonal and found.rest.greatest > 0:
            return Curve({}, interval(found.rest.lo, 0.0))
        return found

    def _rule(self, node: Expr) -> Curve:
        setting = self.setting
        match node:
            case Call(atom="add" | "sub" | "minus") if all(a.shape == node.shape for a in node.args):
                found = Curve()
                for sign, term in summands(node):
                    found += self.curve(term) if sign > 0 else self.curve(term).times(point(-1.0))
                return found
            case Call(atom="mul", args=(left, right)) if setting.depends(left) != setting.depends(right):
                factor, base = (left, right) if not setting.depends(left) else (right, left)
                return self.curve(base).times(setting.ranges(factor))
            case Call(atom="div", args=(base, divisor)) if not setting.depends(divisor):
                return self.curve(base).times(point(1.0) / setting.ranges(divisor))
            case Call(atom="sum", args=(base,)) if not node.options:
                return self._entries(base)
            case Call(atom="mean", args=(base,)) if not node.options:
                return self._entries(base).times(point(1.0) / point(float(math.prod(known(base.shape)))))
            case Call(atom="sum_squares", args=(base,)):
                return self._entries(call("square", base))
            case Call(atom="dot" | "matmul", args=(left, right)) if left.shape == right.shape and len(left.shape) == 1:
                return self._entries(call("mul", left, right))
            case Call(atom="quad_form", args=(base, matrix)) if not setting.depends(matrix) and self._affine(base):
                form = setting.ranges(matrix)
                return self._through(interval(*eigenvalues(form + form.transpose())), base)
            case Call(atom="log_sum_exp", args=(base,)) if not node.options and self._affine(base):
                # diag(p) - p p' for a probability vector p has eigenvalues in [0, 1/2].
                return self._through(interval(0.0, 0.5), base)
            case Call(atom=atom) if _is_smooth_entrywise(atom):
                return self._entries(node)
        return self._by_curvature(node)

    def _by_curvature(self, node: Expr) -> Curve:
        kind = self.setting.composition(node)
        low = 0.0 if kind is Curvature.CONVEX else -np.inf
        return Curve({}, interval(low, 0.0 if kind is Curvature.CONCAVE else np.inf))

    def _affine(self, node: Expr) -> bool:
        return self.setting.composition(node) in (Curvature.AFFINE, Curvature.CONSTANT)

    # ---- sums of entrywise functions

    def _entries(self, body: Expr) -> Curve:
        """The Hessian of sum(body)."""
        whole = call("sum", body) if body.shape else body
        split = entrywise(body, lambda n: not self.setting.depends(n) or isinstance(n, Name))
        moving = {n: leaf for n, leaf in split.leaves.items() if self.setting.depends(leaf)}
        leaves = max(1, len(split.leaves))
        if not (smooth(split.body) and self.setting.search.take(BEND * leaves * size(body))):
            return self._by_curvature(whole)
        box = {n: self.setting.ranges(leaf).broadcast(split.shape) for n, leaf in split.leaves.items()}
        ranges = Enclosure({**self.setting.box, **box})
        bends = {
            pair: ranges(h).broadcast(split.shape) for pair, h in split.bends().items() if set(pair) <= set(moving)
        }
        if all(self._affine(leaf) for leaf in moving.values()):
            return self._affine_leaves(bends, moving, split.shape)
        if split.shape:
            return self._by_curvature(whole)
        slopes = {n: ranges(d) for n, d in split.slopes().items() if n in moving}
        return self._chain(slopes, bends, moving)

    def _affine_leaves(
        self, bends: Mapping[tuple[str, str], Interval], moving: Mapping[str, Expr], shape: tuple[int, ...]
    ) -> Curve:
        if len(moving) == 1:
            ((name, leaf),) = moving.items()
            bend = bends[name, name]
            if isinstance(leaf, Name) and leaf.shape == shape:
                return Curve({leaf.name: bend})
            return self._through(interval(bend.least, bend.greatest), leaf, shape)
        low, high = _pair_eigenvalues(bends, list(moving))
        distinct = [leaf for leaf in moving.values() if isinstance(leaf, Name) and leaf.shape == shape]
        if len(distinct) == len(moving) and len(moving) == 2:
            return Curve({leaf.name: interval(low, high, shape) for leaf in distinct})
        total = Curve()
        for leaf in moving.values():
            total += self._through(interval(min(0.0, float(low.min())), max(0.0, float(high.max()))), leaf, shape)
        return total

    def _through(self, bend: Interval, leaf: Expr, shape: tuple[int, ...] | None = None) -> Curve:
        """J' diag(bend) J for the Jacobian J of an affine expression that stands once for each entry of `shape`."""
        least, most = self.stretch(leaf)
        copies = 1 if shape is None else math.prod(shape) // max(1, math.prod(known(leaf.shape)))
        least, most = least * copies, most * copies
        low = bend.least * (least if bend.least >= 0 else most) if bend.least != 0 else 0.0
        high = bend.greatest * (most if bend.greatest >= 0 else least) if bend.greatest != 0 else 0.0
        return Curve(
            {}, interval(np.nextafter(low, -np.inf) if low else 0.0, np.nextafter(high, np.inf) if high else 0.0)
        )

    def _chain(
        self, slopes: Mapping[str, Interval], bends: Mapping[tuple[str, str], Interval], moving: Mapping[str, Expr]
    ) -> Curve:
        """phi(v_1, ..., v_k) of scalars: sum_a phi_a Hess v_a + J' Hess phi J with the gradients of the v_a as rows of J."""
        total = Curve()
        squares = interval(0.0, 0.0)
        for name, leaf in moving.items():
            total += self.curve(leaf).times(slopes[name])
            for g in gradient(leaf, list(self.setting.decisions)).values():
                squares = squares + self.setting.ranges(self.setting.simplify(g)).square().sum()
        low, high = _pair_eigenvalues(bends, list(moving))
        outer = interval(min(0.0, float(low.min())), max(0.0, float(high.max()))) * interval(0.0, squares.greatest)
        return total + Curve({}, outer)


def _is_smooth_entrywise(atom: str) -> bool:
    return ATOMS[atom].shape is entrywise_shape and not ATOMS[atom].options


def _pair_eigenvalues(bends: Mapping[tuple[str, str], Interval], order: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the eigenvalues of the symmetric matrix of second derivatives, at every entry (Gershgorin; exact for 1 x 1)."""
    lows, highs = [], []
    for a in order:
        radius = np.asarray(0.0)
        for b in order:
            if b != a:
                radius = np.nextafter(radius + bends[(a, b) if (a, b) in bends else (b, a)].magnitude, np.inf)
        own = bends[a, a]
        lows.append(np.nextafter(own.lo - radius, -np.inf) if np.any(radius) else own.lo)
        highs.append(np.nextafter(own.hi + radius, np.inf) if np.any(radius) else own.hi)
    return np.minimum.reduce(np.broadcast_arrays(*lows)), np.maximum.reduce(np.broadcast_arrays(*highs))
