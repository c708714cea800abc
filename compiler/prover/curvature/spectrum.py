"""Singular values of affine maps and eigenvalues of symmetric matrices whose entries lie in ranges.

For a matrix A = M + E with |E| <= R entrywise, every singular value of A lies within |R|_2 of one of M (Weyl), and |A|_2 is at most the
norm of the entrywise magnitudes. Floating-point decompositions are backward stable; `SLACK` times the norm covers their error.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.compiler.problem.jacobians import jacobian
from oco.compiler.prover.search_budget import Allowance
from oco.dsl.atoms import form_of, forms
from oco.dsl.dims import known
from oco.dsl.expressions import Constant, Expr, Index, Kind, Name, Slice, changes, walk
from oco.dsl.intervals import Interval, interval

if TYPE_CHECKING:
    from oco.compiler.prover.context import ProofContext

Floats = np.ndarray[Any, Any]
SLACK = 2.0**-44
MOST_DENSE = 250_000  # entries of a matrix that is decomposed: about a second


DENSE = 0.2  # steps that an entry of a Jacobian takes to be written out
SINGULAR, PRODUCT = 60, 4e-3
"""Steps that the singular values of a matrix take, and more for each of its entries times its shorter side."""


def matrix_norm(a: Interval, search: Allowance | None = None) -> float:
    """An upper bound of the spectral norm of every matrix in the range: the Frobenius norm where there are no steps for another."""
    if a.lo.size == 1 and a.hi.size == 1:
        return (interval(0.0, float(a.magnitude.max())) * interval(float(a.size), float(a.size)).sqrt()).greatest
    lo, hi = a.expanded()
    with np.errstate(invalid="ignore"):  # a range without ends has no middle
        middle, spread = lo / 2 + hi / 2, np.nextafter(hi / 2 - lo / 2, np.inf)
    frobenius = a.square().sum().sqrt().greatest
    if a.size > MOST_DENSE or not a.bounded or not (search is None or search.take(2 * singular_cost(a.shape))):
        return frobenius
    by_magnitude = _norm(np.maximum(np.abs(lo), np.abs(hi)))
    by_middle = _norm(middle) + (_norm(spread) if np.any(hi > lo) else 0.0)
    return min(frobenius, min(by_magnitude, by_middle) * (1 + SLACK))


def singular_cost(shape: tuple[int, ...]) -> float:
    """Steps that the singular values of a matrix take."""
    return SINGULAR + PRODUCT * math.prod(shape) * min(shape, default=0)


def least_singular(a: Interval) -> float:
    """A lower bound of the n-th singular value of every m x n matrix in the range; 0 where m < n."""
    rows, columns = a.shape
    if rows < columns or a.size > MOST_DENSE or not a.bounded:
        return 0.0
    lo, hi = a.expanded()
    values = np.linalg.svd(lo / 2 + hi / 2, compute_uv=False)
    spread = _norm(np.nextafter(hi / 2 - lo / 2, np.inf)) if np.any(hi > lo) else 0.0
    return max(0.0, float(values[-1]) - spread - SLACK * float(values[0]))


def eigenvalues(a: Interval) -> tuple[float, float]:
    """Bounds of every eigenvalue of every symmetric matrix in the range."""
    lo, hi = a.expanded()
    if not a.bounded:
        return -math.inf, math.inf
    middle, spread = lo / 2 + hi / 2, hi / 2 - lo / 2
    values = np.linalg.eigvalsh((middle + middle.T) / 2)
    slack = SLACK * float(np.abs(values).max(initial=0.0)) if np.any(middle != np.diag(np.diag(middle))) else 0.0
    radius = _norm(np.nextafter(spread, np.inf)) * (1 + SLACK) if np.any(hi > lo) else 0.0
    by_middle = float(values[0]) - radius - slack, float(values[-1]) + radius + slack
    size = np.maximum(np.maximum(np.abs(lo), np.abs(hi)), np.maximum(np.abs(lo), np.abs(hi)).T)
    np.fill_diagonal(size, 0.0)
    off = size.sum(1) * (1 + SLACK)
    gershgorin = float((np.diag(lo) - off).min()), float((np.diag(hi) + off).max())
    result = max(by_middle[0], gershgorin[0]), min(by_middle[1], gershgorin[1])
    if not np.any(hi > lo) or not np.any(size):
        return result
    return max(result[0], -_compared(-np.diag(lo), size)), min(result[1], _compared(np.diag(hi), size))


def _compared(diagonal: Floats, size: Floats) -> float:
    """At least every v' A v for unit v: |v|' B |v| with the largest diagonal and the sizes of the other entries."""
    matrix = size + np.diag(diagonal)
    return float(np.linalg.eigvalsh(matrix)[-1]) + SLACK * float(np.abs(matrix).sum(1).max())


def _norm(a: Floats) -> float:
    return float(np.linalg.norm(a, 2)) if a.size else 0.0


class Stretch:
    """Bounds of |J v|^2 over unit v in the whole decision space, J the Jacobian of an affine expression (its entries flattened)."""

    def __init__(self, setting: ProofContext) -> None:
        self.setting = setting

    def __call__(self, node: Expr) -> tuple[float, float]:
        """Least and greatest squared singular value of J, for every value of the streams; least 0 where J has a kernel."""
        matrix = self.rows(node)
        if matrix is None or not self.setting.search.take(2 * singular_cost(matrix.shape)):
            return self._rules(node)
        return least_singular(matrix) ** 2 * (1 - SLACK), matrix_norm(matrix, self.setting.search) ** 2 * (1 + SLACK)

    def rows(self, node: Expr, most: int = MOST_DENSE) -> Interval | None:
        """J itself, shape (entries of the node, of all decisions); None where it has more than `most` numbers, or no steps are left."""
        size = math.prod(known(node.shape))
        entries = size * self.setting.canonical.size
        if entries > most or _gathers(node) or not self.setting.search.take(DENSE * entries):
            return None
        blocks = self.setting.canonical.blocks
        slopes = jacobian(node, [b.name for b in blocks])
        parts = []
        for b in blocks:
            full = (*known(node.shape), *b.shape)
            parts.append(self.setting.ranges(self.setting.simplify(slopes[b.name])).broadcast(full).expanded())
        low, high = (np.concatenate([p[side].reshape(size, -1) for p in parts], axis=1) for side in (0, 1))
        return interval(low, high)

    def _rules(self, node: Expr) -> tuple[float, float]:
        """One structure at a time, for maps that are too large to write out."""
        ranges, depends = self.setting.ranges, self.setting.depends
        if not depends(node):
            return 0.0, 0.0
        if isinstance(node, Name) and node.kind is Kind.DECISION:
            return (1.0 if len(self.setting.canonical.blocks) == 1 else 0.0), 1.0
        match form_of(node), node.children:
            case forms.NEGATIVE | forms.TRANSPOSE | forms.Reshaped(), (base,):
                return self._rules(base)
            case forms.Signed(), args:
                return self._sum(args, known(node.shape))
            case forms.TIMES, (left, right):
                factor, base = (left, right) if not depends(left) else (right, left)
                least, most = self._stretched(base, known(node.shape))
                scale = ranges(factor).abs().square()
                return least * scale.least, most * scale.greatest
            case forms.QUOTIENT, (base, divisor):
                least, most = self._stretched(base, known(node.shape))
                scale = ranges(divisor).abs().square()
                return least / scale.greatest, most / scale.least
            case forms.MATRIX_PRODUCT, (left, right):
                matrix, base = (left, right) if not depends(left) else (right, left)
                result = ranges(matrix)
                shape = result.shape if len(result.shape) == 2 else (1, result.size)
                return 0.0, self._rules(base)[1] * matrix_norm(result.reshape(shape), self.setting.search) ** 2
            case forms.Total("", mean, False), (base,):
                count = math.prod(known(base.shape)) / max(1, math.prod(known(node.shape)))
                most = self._rules(base)[1]
                return 0.0, most / count if mean else most * count
        if isinstance(node, Index):
            return 0.0, self._rules(node.base)[1] * _multiplicity(node, node.items)
        return 0.0, math.inf

    def _sum(self, args: tuple[Expr, ...], shape: tuple[int, ...]) -> tuple[float, float]:
        moving = [a for a in args if self.setting.depends(a)]
        if len(moving) == 1:
            return self._stretched(moving[0], shape)
        return 0.0, sum(math.sqrt(self._stretched(a, shape)[1]) for a in moving) ** 2

    def _stretched(self, base: Expr, shape: tuple[int, ...]) -> tuple[float, float]:
        """An argument that stands once for each of several entries."""
        least, most = self._rules(base)
        copies = math.prod(shape) // max(1, math.prod(known(base.shape)))
        return least * copies, most * copies


def _gathers(node: Expr) -> bool:
    """True where a stream or the round decides which entries are taken."""
    return any(changes(i) for n in walk(node) if isinstance(n, Index) for i in n.items)


def _multiplicity(node: Index, items: tuple[Expr, ...]) -> float:
    """Largest number of times that one entry may be taken."""
    taken = math.prod(known(node.shape))
    if all(isinstance(i, Slice) for i in items):
        return 1.0
    if all(isinstance(i, (Slice, Constant)) for i in items):
        places = [i.value.array for i in items if isinstance(i, Constant)]
        spread = np.broadcast_arrays(*places)
        flat = np.stack([p.ravel() for p in spread])
        return float(np.unique(flat, axis=1, return_counts=True)[1].max())
    sliced = math.prod(known(node.base.shape)[k] for k, i in enumerate(items) if isinstance(i, Slice))
    return max(1.0, taken / max(1, sliced))
