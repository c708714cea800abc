"""Functions of the rounds over one long vector z = (x, s_1, ..., s_T): variables shared by all rounds, then variables
of each round.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
import scipy.sparse as sp

from oco.compiler.problem.degrees import degree
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, Name, walk
from oco.dsl.records import dataclass
from oco.evaluation.comparators.functions import ALL, OfRounds, RoundArrays
from oco.evaluation.comparators.of_expressions import implicit

Array = np.ndarray[Any, Any]

CHUNK = 1 << 22  # numbers of a dense Jacobian that are held at once


@dataclass(frozen=True, eq=False)
class AffineRows:
    """Sparse block of affine functions, matrix z + constant."""

    matrix: Any
    constant: Array

    @classmethod
    def stacked(cls, parts: list[AffineRows], size: int) -> AffineRows:
        """Blocks one below another, over `size` variables."""
        if not parts:
            return cls(sp.csr_array((0, size)), np.zeros(0))
        return cls(sp.vstack([p.matrix for p in parts], format="csr"), np.concatenate([p.constant for p in parts]))

    def at(self, z: Array) -> Array:
        """Values at z."""
        return np.asarray(self.matrix @ z + self.constant)

    def averaged(self, entries: int) -> AffineRows:
        """Mean over the rounds of rows that come `entries` to a round."""
        count = len(self.constant) // entries
        averaging = sp.kron(np.full((1, count), 1.0 / count), sp.eye_array(entries), format="csr")
        return AffineRows(averaging @ self.matrix, averaging @ self.constant)

    def tangent(self, z: Array) -> AffineRows:
        """Rows themselves, which are their own tangents."""
        return self

    def pulled(self, z: Array, weights: Array) -> Array:
        """Gradient in z of the rows added up with weights."""
        return np.asarray(self.matrix.T @ weights)

    def changes(self, z: Array, width: Array) -> Array:
        """Largest change of each row as one entry of z moves between its bounds; the row's own size where there is
        none.
        """
        change = abs(self.matrix) @ sp.diags_array(width)
        largest = change.max(axis=1).toarray().ravel() if change.nnz else np.zeros(len(self.constant))
        return np.where(largest > 0, largest, np.fmax(np.abs(self.constant), 1.0))

    def in_cvxpy(self, z: Any) -> Any:
        """CVXPY expression of the rows over a variable."""
        return self.matrix @ z + self.constant

    @property
    def nodes(self) -> int:
        """Number of nodes as CVXPY expressions, negligible for affine rows."""
        return 0


@dataclass(frozen=True, eq=False)
class Space:
    """Variables z, and functions of (x, s_t) over them. `rounds` are those of a lifted problem; `names` lists the parts
    of s_t, `fixed` says of each entry of (x, s_t) that its bounds meet: a slope by it may be infinite, and counts for
    nothing.
    """

    rounds: RoundArrays
    own: int
    names: frozenset[str] = field(default_factory=frozenset)
    fixed: Array | None = None

    @property
    def common(self) -> int:
        """Number of variables that all rounds share."""
        return self.rounds.size - self.own

    @property
    def size(self) -> int:
        """Number of variables in z."""
        return self.common + self.own * self.rounds.count

    def has_own(self, expr: Expr) -> bool:
        """True where the expression depends on variables of a single round."""
        return any(isinstance(n, Name) and n.name in self.names for n in walk(expr))

    def deciding(self, expr: Expr) -> Array:
        """Rounds in which an expression has to be evaluated: the first alone where all are alike."""
        return self.rounds.everything if self.rounds.enters(expr) or self.has_own(expr) else np.arange(1)

    def inner(self, z: Array, rows: Array) -> Array:
        """Variables (x, s_t) of each of the rounds: (b, n)."""
        own = z[self.common :].reshape(self.rounds.count, self.own)[rows]
        return np.concatenate([np.broadcast_to(z[: self.common], (len(rows), self.common)), own], axis=1)

    def tangents(self, function: OfRounds, rows: Array, z: Array) -> AffineRows:
        """First-order expansions at z of functions of the rounds, for each of the consecutive `rows`."""
        step = max(1, CHUNK // (function.entries * self.rounds.size))
        parts = [self._tangents(function, rows[a : a + step], z) for a in range(0, len(rows), step)]
        return AffineRows.stacked(parts, self.size)

    def _tangents(self, function: OfRounds, rows: Array, z: Array) -> AffineRows:
        inner = self.inner(z, rows)
        with np.errstate(invalid="ignore"):  # by fixed entries, which are left out
            values, slopes = function.jet(inner, rows)
        if self.fixed is not None:
            slopes = np.where(np.isfinite(slopes) | ~self.fixed, slopes, 0.0)
        t, k, column = np.nonzero(slopes)
        place = np.where(column < self.common, column, column + rows[t] * self.own)
        matrix = sp.csr_array((slopes[t, k, column], (t * slopes.shape[1] + k, place)), shape=(values.size, self.size))
        return AffineRows(matrix, (values - np.einsum("bkn,bn->bk", slopes, inner)).ravel())

    def each(self, expr: Expr) -> AffineRows:
        """Entries of an affine expression, in every round where the rounds differ and else once."""
        return self.tangents(implicit(self.rounds, expr), self.deciding(expr), np.zeros(self.size))

    def mean(self, expr: Expr) -> AffineRows:
        """Mean of an affine expression over the rounds."""
        return self.each(expr).averaged(int(np.prod(known(expr.shape), dtype=np.int64)))

    def square(self, expr: Expr) -> Array | None:
        """Hessian in x of the sum over the rounds; None where it is not constant, or involves a round's own variables."""
        order = degree(expr, self.rounds.variables)
        if order <= 1:
            return np.zeros((self.common, self.common))
        if order > 2:
            return None
        origin, every = np.zeros((1, self.rounds.size)), self.rounds.everything
        result = implicit(self.rounds, expr).added_hessian(origin, np.ones((len(every), 1)), every, ALL)[0]
        whole = np.diag(result) if result.ndim == 1 else result
        return None if np.any(whole[self.common :]) else np.asarray(whole[: self.common, : self.common])
