"""Comparators as one conic program over all rounds: the form of its functions, and a bound that does not rely on the
solver.

Over z = (x, s_1, ..., s_T), with smooth convex functions f and g of a lifted problem and norms of affine functions U_k:

    minimize f(z)   subject to   g(z) <= 0,  E z = e,  |U_k z + u_k| <= z_k,  x in X.

For multipliers lam >= 0, any nu, and any W_k with |W_k|_* <= tau_k in the dual norm, <W_k, U_k z + u_k> - tau_k z_k <=
0 where the norm is at most z_k, so that the bound of `certificate.py` holds with these terms in the Lagrangian.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, reduce
from typing import Any, Protocol

import numpy as np

from oco.compiler.problem.cvxpy_form import to_cvxpy
from oco.compiler.problem.degrees import degree
from oco.dsl import algebra as e
from oco.dsl.atoms import form_of, forms, norms
from oco.dsl.dims import known
from oco.dsl.expressions import Constant, Expr, Kind, Name, constant, walk
from oco.dsl.records import dataclass
from oco.dsl.statements import Timing
from oco.evaluation.comparators.affine_rows import AffineRows, Space
from oco.evaluation.comparators.functions import OfRounds
from oco.evaluation.comparators.lift import Lifted, NormOf
from oco.evaluation.comparators.of_expressions import implicit
from oco.evaluation.comparators.region import Region

Array = np.ndarray[Any, Any]

NODES = 25  # of expressions that take as long as a norm of a matrix


@dataclass(frozen=True, eq=False)
class NormBound:
    """Constraints that `norm` of each of the matrices U_k (m, n) in the rows of `inner` is at most z[places_k]."""

    norm: norms.Norm
    places: Array
    inner: AffineRows
    shape: tuple[int, int]

    @property
    def count(self) -> int:
        """Number of matrices K."""
        return len(self.places)

    def at(self, z: Array) -> Array:
        """Matrices (K, m, n) at z."""
        return self.inner.at(z).reshape(self.count, *self.shape)

    def violation(self, z: Array) -> Array:
        """Excess of each norm over its bound, negative where it holds."""
        return np.asarray(self.norm.value(self.at(z)) - z[self.places])


class VectorFunction(Protocol):
    """Vector of convex functions of z."""

    def at(self, z: Array) -> Array:
        """Values at z."""

    def tangent(self, z: Array) -> AffineRows:
        """First-order expansion at z."""
        ...

    def pulled(self, z: Array, weights: Array) -> Array:
        """Gradient in z of the functions added up with weights."""
        ...

    def changes(self, z: Array, width: Array) -> Array:
        """Change of each function, by its slope at z, as an entry of z moves between its bounds; positive."""
        ...

    def in_cvxpy(self, z: Any) -> Any:
        """CVXPY expression of the functions over a variable."""
        ...

    @property
    def nodes(self) -> int:
        """Approximate number of CVXPY expressions that the functions take."""
        ...


@dataclass(frozen=True, eq=False)
class Nonlinear:
    """Entries of an expression that is not affine: in each of the rounds that differ, or their `mean`.

    `words` is an equal expression that follows disciplined convex programming, where `expr` does not.
    """

    space: Space
    expr: Expr
    mean: bool
    words: Expr | None = None

    @cached_property
    def _function(self) -> OfRounds:
        return implicit(self.space.rounds, self.expr)

    @cached_property
    def rows(self) -> Array:
        """Rounds in which the expression is evaluated."""
        return self.space.deciding(self.expr)

    def at(self, z: Array) -> Array:
        """Values at z."""
        values = self._function.values(self.space.inner(z, self.rows), self.rows)
        return np.asarray(values.mean(axis=0) if self.mean else values.ravel())

    def tangent(self, z: Array) -> AffineRows:
        """First-order expansion at z."""
        rows = self.space.tangents(self._function, self.rows, z)
        return rows.averaged(self._function.entries) if self.mean else rows

    def pulled(self, z: Array, weights: Array) -> Array:
        """Gradient in z of the entries added up with weights."""
        return self.tangent(z).pulled(z, weights)

    def changes(self, z: Array, width: Array) -> Array:
        """Change of each entry, by its slope at z, as an entry of z moves between its bounds."""
        return self.tangent(z).changes(z, width)

    @property
    def nodes(self) -> int:
        """Approximate number of CVXPY expressions."""
        return len(self.rows) * sum(1 for _ in walk(self.expr))

    def in_cvxpy(self, z: Any) -> Any:
        """CVXPY expression over a variable z."""
        import cvxpy as cp

        rounds, space = self.space.rounds, self.space
        places = [(name, rounds.places[name], shape) for name, shape in rounds.layout]
        shared = {n: _shaped(cp, z, place, shape) for n, place, shape in places if place.stop <= space.common}
        results = []
        for t in map(int, self.rows):
            ahead = t * space.own
            own = {n: _shaped(cp, z, _later(p, ahead), shape) for n, p, shape in places if n not in shared}
            env = {n: values[t] for n, values in rounds.streams.items()}
            cvxpy_form = to_cvxpy(self.words or self.expr, shared | own, env, float(rounds.numbers[t]))
            results.append(cp.reshape(cvxpy_form, (self._function.entries,), order="C"))
        return sum(results) / len(results) if self.mean else cp.hstack(results)


def _later(place: slice, ahead: int) -> slice:
    return slice(place.start + ahead, place.stop + ahead)


def _shaped(cp: Any, z: Any, place: slice, shape: tuple[int, ...]) -> Any:
    return cp.reshape(z[place], shape, order="C") if shape else z[place.start]


@dataclass(frozen=True, eq=False)
class Added:
    """Sums of functions, entry by entry."""

    parts: tuple[VectorFunction, ...]

    def at(self, z: Array) -> Array:
        """Values at z."""
        return np.asarray(sum(p.at(z) for p in self.parts))

    def tangent(self, z: Array) -> AffineRows:
        """First-order expansion at z."""
        rows = [p.tangent(z) for p in self.parts]
        return AffineRows(sum(r.matrix for r in rows), np.sum([r.constant for r in rows], axis=0))

    def pulled(self, z: Array, weights: Array) -> Array:
        """Gradient in z of the sums added up with weights."""
        return np.asarray(sum(p.pulled(z, weights) for p in self.parts))

    def changes(self, z: Array, width: Array) -> Array:
        """Change of each sum as an entry of z moves between its bounds, at most."""
        return np.asarray(sum(p.changes(z, width) for p in self.parts))

    def in_cvxpy(self, z: Any) -> Any:
        """CVXPY expression over a variable z."""
        return sum(p.in_cvxpy(z) for p in self.parts)

    @property
    def nodes(self) -> int:
        """Approximate number of CVXPY expressions."""
        return sum(p.nodes for p in self.parts)

    @property
    def decisions(self) -> frozenset[str]:
        """Names of the decisions, new ones included, that the functions have."""
        every = (n for p in self.parts if isinstance(p, Nonlinear) for n in walk(p.expr))
        return frozenset(n.name for n in every if isinstance(n, Name) and n.kind is Kind.DECISION)


def terms(expr: Expr) -> list[Expr]:
    """Terms of a sum, each with its sign, where all have its shape."""
    match form_of(expr), expr.children:
        case forms.Signed(signs), args if all(a.shape == expr.shape for a in args):
            return [t if sign > 0 else e.minus(t) for sign, a in zip(signs, args) for t in terms(a)]
        case forms.TIMES, (Constant() as factor, inner) if inner.shape == expr.shape:
            return [e.mul(factor, t) for t in terms(inner)]
    return [expr]


@dataclass(frozen=True, eq=False)
class Limits:
    """Functions that are at most zero; `origin` is the index of their constraint in the model, None for definitions.

    Their multipliers are `ratio` times those of the solver's form of them.
    """

    function: VectorFunction
    origin: int | None = None
    ratio: float = 1.0


@dataclass(frozen=True, eq=False)
class ConicProgram:
    """Program above, with f = x' square x / 2 + linear z + constant + `loss` in all rounds; `lower` and `upper` enclose
    z.
    """

    space: Space
    square: Array
    linear: Array
    constant: float
    loss: Added | None
    limits: tuple[Limits, ...]
    equations: AffineRows
    norms: tuple[NormBound, ...]
    region: Region
    lower: Array
    upper: Array

    @property
    def common(self) -> int:
        """Number of variables that all rounds share."""
        return self.space.common

    @property
    def orders(self) -> list[int]:
        """Orders of the matrices that must be positive semidefinite."""
        results = [sum(b.shape) for b in self.norms if not b.norm.second_order for _ in range(b.count)]
        return results + [sum(b.shape) for b in self.region.blocks if b.domain.spectral]

    @property
    def nodes(self) -> int:
        """Approximate number of CVXPY expressions."""
        functions = [limits.function for limits in self.limits] + ([self.loss] if self.loss else [])
        return sum(f.nodes for f in functions) + NODES * len(self.orders)

    @property
    def width(self) -> Array:
        """Distance between the bounds of each variable."""
        return np.asarray(self.upper - self.lower)

    def least(self, slope: Array) -> float:
        """Minimum of <c, z> over the set of x and the bounds of the others."""
        tail, n = slope[self.common :], self.common
        rest = np.minimum(tail * self.lower[n:], tail * self.upper[n:]).sum()
        return float(self.region.least(slope[None, :n])[0] + rest)

    @property
    def nonlinear(self) -> bool:
        """True where the loss is more than quadratic or a limit more than affine."""
        return self.loss is not None or any(limits.function.nodes for limits in self.limits)

    def tangent(self, z: Array) -> ConicProgram:
        """Program linearized at z where it is curved; it is a relaxation, so its minimum is a lower bound."""
        limits = tuple(replace(limits, function=limits.function.tangent(z), ratio=1.0) for limits in self.limits)
        if self.loss is None:
            return replace(self, limits=limits)
        rows, times = self.loss.tangent(z), self.space.rounds.count
        linear, constant = (
            self.linear + times * rows.matrix.sum(axis=0),
            self.constant + times * float(rows.constant[0]),
        )
        return replace(self, limits=limits, linear=linear, constant=constant, loss=None)

    def objective(self, z: Array) -> tuple[float, Array]:
        """Value and gradient of f."""
        curved = self.square @ z[: self.common]
        value, slope = self.constant + self.linear @ z + curved @ z[: self.common] / 2, self.linear.copy()
        slope[: self.common] += curved
        if self.loss is not None:
            times = np.full(1, float(self.space.rounds.count))
            value += float(times @ self.loss.at(z))
            slope += self.loss.pulled(z, times)
        return float(value), slope


def program(lifted: Lifted, space: Space, region: Region) -> ConicProgram:
    """Program over all rounds of `space`, which are the lifted problem's.

    `region` is the set of the decisions and of the variables that all rounds share.
    """
    problem, rounds = lifted.problem, space.rounds
    square, rows, loss = _objective(space, problem.objective)
    times = rounds.count / len(rows.constant)
    limits = [
        Limits(_function(space, c.expr, c.timing is Timing.ON_AVERAGE), k) for k, c in enumerate(problem.inequalities)
    ]
    norms = {n: v for n, v in lifted.norms.items() if degree(v.argument, rounds.variables) <= 1}
    for d in lifted.definitions:
        if d.origin not in norms:
            norm = lifted.norms.get(d.origin)
            limits.append(
                _nonlinear_norm(space, d.expr, d.origin, norm) if norm else Limits(_function(space, d.expr, False))
            )
    tail = [b.domain for b in problem.blocks if b.name in lifted.each_round]
    lower, upper = (
        np.concatenate(
            [end, np.tile(np.concatenate([np.zeros(0), *(getattr(d, name).ravel() for d in tail)]), rounds.count)]
        )
        for end, name in ((region.lower, "lower"), (region.upper, "upper"))
    )
    return ConicProgram(
        space,
        square,
        times * np.asarray(rows.matrix.sum(axis=0)).ravel(),
        times * float(rows.constant.sum()),
        loss,
        tuple(limits),
        AffineRows.stacked([space.mean(c.expr) for c in problem.equalities], space.size),
        tuple(_bounded(space, name, norm) for name, norm in norms.items()),
        region,
        lower,
        upper,
    )


def _objective(space: Space, expr: Expr) -> tuple[Array, AffineRows, Added | None]:
    """Hessian of the part of degree two, the rows of this part at zero, and the mean of the remainder."""
    affine, nonlinear = _parted(space, expr, 2)
    square = space.square(affine)
    if square is not None:
        return square, space.each(affine), Added(nonlinear) if nonlinear else None
    affine, nonlinear = _parted(space, expr, 1)
    return np.zeros((space.common, space.common)), space.each(affine), Added(nonlinear)


def _parted(space: Space, expr: Expr, order: int) -> tuple[Expr, tuple[Nonlinear, ...]]:
    """Sum of the terms up to a degree, and the means of the others."""
    every = [(t, degree(t, space.rounds.variables) <= order) for t in terms(expr)]
    zero: Expr = constant(np.zeros(known(expr.shape)))
    return reduce(e.add, [t for t, low in every if low], zero), tuple(
        Nonlinear(space, t, True) for t, low in every if not low
    )


def _function(space: Space, expr: Expr, mean: bool) -> VectorFunction:
    if degree(expr, space.rounds.variables) <= 1:
        return space.mean(expr) if mean else space.each(expr)
    if not mean:
        return Nonlinear(space, expr, False)
    affine, nonlinear = _parted(space, expr, 1)
    return Added((space.mean(affine), *nonlinear))


def _nonlinear_norm(space: Space, definition: Expr, name: str, norm: NormOf) -> Limits:
    """Function |u|_2 - s <= 0 for a u that is not affine. The slope of |u|^2 / s - s is twice as large where both are
    zero.
    """
    shape = dict(space.rounds.layout)[name]
    length = e.call("norm2", norm.argument, axis=0) if norm.several else e.call("norm2", norm.argument)
    words = e.sub(length, Name(name, Kind.DECISION, shape=shape))
    return Limits(Nonlinear(space, definition, False, words), ratio=0.5)


def _bounded(space: Space, name: str, norm: NormOf) -> NormBound:
    argument = e.transpose(norm.argument) if norm.several else norm.argument
    inner, whole, place = space.each(argument), known(argument.shape), space.rounds.places[name]
    shape = (1, whole[-1]) if norm.several else (1, 1, *whole)[-2:]
    several = np.arange(place.start, place.stop)
    times = len(inner.constant) // (len(several) * shape[0] * shape[1])
    ahead = space.own * np.arange(times) if place.start >= space.common else np.zeros(times, dtype=np.int64)
    return NormBound(norm.norm, (several + ahead[:, None]).ravel(), inner, (int(shape[0]), int(shape[1])))
