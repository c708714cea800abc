"""Functions of few affine forms of the decision: f_t(x) = phi_t(L_t x + c_t), as in -log(r @ w) or sum_squares(H @ x -
y).

Their derivatives are those of phi, in as many variables as there are forms, and products with L_t.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from oco.compiler.problem.calculus import dependence
from oco.compiler.problem.degrees import degrees
from oco.dsl.dims import known
from oco.dsl.expressions import Expr, Kind, Name, walk
from oco.dsl.records import dataclass
from oco.evaluation.comparators.functions import General, OfRounds, QuadraticRounds, RoundArrays, pick, stretches
from oco.evaluation.comparators.structure import separable

Array = np.ndarray[Any, Any]

PAIRS = 1 << 16  # pairs of a member and a round that one call holds
FORMS = 0.5  # a function is taken as one of affine forms when these are at most this share of the decision's entries


@dataclass(frozen=True, eq=False)
class Composite(OfRounds):
    """Composition of `outer` with the affine functions `inner`."""

    rounds: RoundArrays
    inner: QuadraticRounds
    outer: General

    @property
    def entries(self) -> int:  # type: ignore[override]
        """Number of entries in each round."""
        return self.outer.entries

    @property
    def diagonal(self) -> bool:  # type: ignore[override]
        """False: the affine forms mix the variables."""
        return False

    def _linear(self, rows: Array) -> Array:
        return self._between(0, len(rows)) if len(self.inner.linear) == 1 else pick(self.inner.linear, rows)

    def _between(self, start: int, stop: int) -> Array:
        """Matrices L_t of the rounds from `start` to `stop`."""
        linear = self.inner.linear
        return np.broadcast_to(linear, (stop - start, *linear.shape[1:])) if len(linear) == 1 else linear[start:stop]

    def _constant(self, rows: Array) -> Array:
        constant = self.inner.constant
        return constant if len(constant) == 1 else pick(constant, rows)

    def values(self, x: Array, rows: Array) -> Array:
        return self.outer.values(self.inner.values(x, rows), rows)

    def jet(self, x: Array, rows: Array) -> tuple[Array, Array]:
        values, slopes = self.outer.jet(self.inner.values(x, rows), rows)
        linear = self._linear(rows)
        return values, np.matmul(slopes, linear) if np.isfinite(slopes).all() else _steep(slopes, linear)

    def added_jet(self, x: Array, rows: Array, cuts: Array) -> tuple[Array, Array]:
        values, slopes = self.outer.jet(self.inner.values(x, rows), rows)
        if not np.isfinite(slopes).all():
            return super().added_jet(x, rows, cuts)
        linear, turned = self._linear(rows), slopes.transpose(1, 0, 2)
        flat = [_flat(turned[:, p], self.entries) @ _forms(linear[p]) for p in stretches(cuts, len(rows))]
        return np.add.reduceat(values, cuts, axis=0), np.stack(flat)

    def jet_upto(self, x: Array, ends: Array) -> tuple[Array, Array]:
        """Sums over the first ends_b rounds: members that share rounds are served by one product with their L_t."""
        values = np.zeros((len(ends), self.entries))
        slopes = np.zeros((len(ends), self.entries, x.shape[1]))
        for several in together(bands(ends)):
            linears = [self._between(band.start, band.stop) for band in several]
            inner = [_forms(linear) @ x[band.first :].T for band, linear in zip(several, linears)]
            pairs = [by_pairs(part, len(linear)) for part, linear in zip(inner, linears)]
            rows = [np.repeat(band.rows, band.members) for band in several]
            points, of_round = np.concatenate(pairs), np.concatenate(rows)
            points += self._constant(of_round)
            value, slope = self.outer.jet(points, of_round)
            if not np.isfinite(slope).all():
                return super().jet_upto(x, ends)
            place = 0
            for band, linear in zip(several, linears):
                part = slice(place, place + band.pairs)
                place += band.pairs
                values[band.first :] += value[part].reshape(len(linear), band.members, -1).sum(axis=0)
                slopes[band.first :] += self._pulled_back(slope[part], linear, band.members)
        return values, slopes

    def _pulled_back(self, slopes: Array, linear: Array, members: int) -> Array:
        """Sum over the rounds of the slopes of phi for each round and member (b members, entries, k) times L_t."""
        turned = slopes.reshape(len(linear), members * self.entries, -1).transpose(1, 0, 2)
        return (turned.reshape(members * self.entries, -1) @ _forms(linear)).reshape(members, self.entries, -1)

    def hessian(self, x: Array, weights: Array, rows: Array) -> Array:
        linear = self._linear(rows)
        hessians = self.outer.hessian(self.inner.values(x, rows), weights, rows)
        middle = hessians[:, :, None] * linear if self.outer.diagonal else np.matmul(hessians, linear)
        return np.asarray(np.matmul(linear.transpose(0, 2, 1), middle))

    def added_hessian(self, x: Array, weights: Array, rows: Array, cuts: Array) -> Array:
        linear = self._linear(rows)
        hessians = self.outer.hessian(self.inner.values(x, rows), weights, rows)
        return np.stack([self._folded(hessians[p], linear[p]) for p in stretches(cuts, len(rows))])

    def hessian_between(self, x: Array, weights: Array, starts: Array, ends: Array) -> Array:
        linears = [self._between(start, end) for start, end in zip(starts, ends)]
        points = np.concatenate([linear @ point for linear, point in zip(linears, x)])
        of_round = np.concatenate([np.arange(start, end) for start, end in zip(starts, ends)])
        spread = np.repeat(weights, ends - starts, axis=0)
        hessians = self.outer.hessian(points + self._constant(of_round), spread, of_round)
        cuts = np.cumsum(ends - starts)[:-1]
        return np.stack([self._folded(part, linear) for part, linear in zip(np.split(hessians, cuts), linears)])

    def _folded(self, hessians: Array, linear: Array) -> Array:
        """Sum sum_t L_t' B_t L_t: (n, n). The functions are convex, so that a diagonal B_t has a root."""
        if not np.isfinite(hessians).all():
            whole = (
                np.where(np.eye(hessians.shape[1]) > 0, hessians[:, :, None], 0.0) if self.outer.diagonal else hessians
            )
            return np.asarray(_steep(_steep(whole, linear).transpose(0, 2, 1), linear).sum(axis=0))
        if self.outer.diagonal:
            half = _forms(linear * np.sqrt(np.maximum(hessians, 0.0))[:, :, None])
            return np.asarray(half.T @ half)
        return np.asarray(_forms(linear).T @ _forms(np.matmul(hessians, linear)))


@dataclass(frozen=True, eq=False)
class Band:
    """Rounds from `start` to `stop`, shared by all members from `first` on and by no earlier one."""

    start: int
    stop: int
    first: int
    members: int

    @property
    def rows(self) -> Array:
        """Indices of the rounds."""
        return np.arange(self.start, self.stop)

    @property
    def pairs(self) -> int:
        """Number of pairs of a round and a member."""
        return (self.stop - self.start) * self.members


def bands(ends: Array) -> Iterator[Band]:
    """Bands of rounds between neighbouring ends (rising), cut where they are too large for one call."""
    start = 0
    for first, end in enumerate(ends):
        members = len(ends) - first
        most = max(1, PAIRS // members)
        for begin in range(start, int(end), most):
            yield Band(begin, min(begin + most, int(end)), first, members)
        start = int(end)


def together(parts: Iterable[Band]) -> Iterator[list[Band]]:
    """Groups of consecutive bands, each as large as one call should hold."""
    several: list[Band] = []
    held = 0
    for band in parts:
        if several and held + band.pairs > PAIRS:
            yield several
            several, held = [], 0
        several.append(band)
        held += band.pairs
    if several:
        yield several


def by_pairs(inner: Array, rounds: int) -> Array:
    """Values of the forms (b k, members) with a row for each round and member: (b members, k)."""
    members = inner.shape[1]
    return inner.reshape(rounds, -1, members).transpose(0, 2, 1).reshape(rounds * members, -1)


def _steep(slopes: Array, linear: Array) -> Array:
    """Products of slopes, some of them infinite, with L_t: a variable that does not enter a form has no slope by it."""
    with np.errstate(invalid="ignore"):
        terms = np.where(linear[:, None] == 0, 0.0, slopes[..., None] * linear[:, None])
        return np.asarray(terms.sum(axis=2))


def _forms(linear: Array) -> Array:
    """Forms of all rounds one below another: (b k, n)."""
    return linear.reshape(-1, linear.shape[2])


def _flat(slopes: Array, entries: int) -> Array:
    """Slopes (entries, b, k) as (entries, b k)."""
    return slopes.reshape(entries, -1)


def composite(rounds: RoundArrays, expr: Expr, entries: int) -> Composite | None:
    """Composite function of the expression over its largest affine parts, where these have few entries; else None."""
    forms = affine_forms(expr, rounds.variables)
    width = sum(int(np.prod(known(f.shape), dtype=np.int64)) for f in forms)
    if not forms or width > FORMS * rounds.size:
        return None
    names = {id(f): Name(f"_form{i}", Kind.DECISION, shape=f.shape) for i, f in enumerate(forms)}
    layout = tuple((n.name, known(n.shape)) for n in names.values())
    phi = replaced(expr, names)
    diagonal = entries == 1 and separable(phi, tuple(n for n, _ in layout))
    outer = General(rounds.over(layout), phi, entries, diagonal)
    return Composite(rounds, stacked([affine(rounds, f) for f in forms]), outer)


def affine_forms(expr: Expr, variables: tuple[str, ...]) -> list[Expr]:
    """Largest subexpressions that depend on the decisions and are affine in them, each once."""
    nodes = list(walk(expr))
    order = degrees(nodes, dependence(nodes, variables))
    results: dict[int, Expr] = {}
    for node in nodes:
        if order[id(node)] > 1:
            results |= {id(c): c for c in node.children if order[id(c)] == 1}
    return list(results.values())


def replaced(expr: Expr, results: Mapping[int, Expr]) -> Expr:
    """Expression with others in place of the nodes with these ids."""
    done: dict[int, Expr] = dict(results)
    for node in walk(expr):
        if id(node) not in done:
            children = tuple(done[id(c)] for c in node.children)
            done[id(node)] = node.with_children(children) if children else node
    return done[id(expr)]


def affine(rounds: RoundArrays, expr: Expr) -> QuadraticRounds:
    """Coefficients of an affine expression; those that no stream enters are stored once."""
    general = General(rounds, expr, int(np.prod(known(expr.shape), dtype=np.int64)), True)
    rows, origin = rounds.everything if rounds.enters(expr) else np.arange(1), np.zeros((1, rounds.size))
    if general.same_slope:
        return QuadraticRounds(general.values(origin, rows), general.jet(origin, rows[:1])[1], None, True)
    constant, linear = general.jet(origin, rows)
    return QuadraticRounds(constant, _once(linear), None, True)


def _once(coefficients: Array) -> Array:
    """Coefficients stored for one round where all rounds have equal ones."""
    return coefficients[:1] if bool(np.all(coefficients == coefficients[:1])) else coefficients


def stacked(parts: list[QuadraticRounds]) -> QuadraticRounds:
    """Several affine functions as one."""
    constants, linears = [p.constant for p in parts], [p.linear for p in parts]
    return QuadraticRounds(_side_by_side(constants), _side_by_side(linears), None, True)


def _side_by_side(parts: list[Array]) -> Array:
    if len(parts) == 1:
        return parts[0]
    rounds = max(map(len, parts))
    return np.concatenate([np.broadcast_to(p, (rounds, *p.shape[1:])) for p in parts], axis=1)
