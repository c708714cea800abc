"""Costs of what is in a store that are known: parts of the loss that hang on its level alone.

    f(x, s, data) = b(x, s, data) + sum_j p_j h_j(z, data) + sum_j q_j k_j(s)

with z = s', what a round leaves before it is cut to the range, and functions of single entries that are not affine in the level: 300 [z -
1900]_+, (z - 20)^2, value log(1 + z), [need - z]_+, |s - 5|. Their slopes are known at every level, whatever levels come: only b has to be
learned. Prices p_j and what is beside z within h_j may be data of the round, or hang on its number; a level hardly changes within one, so
that a little of s beside z counts as z.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from oco.compiler.problem.affine_entries import SAME, affine_rows, decided_products, multiples
from oco.compiler.problem.by_round import a_round_later, by_round, cycle_of, over_like_rounds, row_of_round
from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms, is_entrywise
from oco.dsl.build import applied, call
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Call, Expr, Kind, Name, constant, names, rewrite, walk
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
LEVEL, PART = "_level", "_part"
LEVELS = 101
"""Levels at which slopes are compared, to see whether a part is convex: of a range, and of one as wide on either side."""
LINEAR = (forms.Signed, forms.Bilinear, forms.Quotient)
"""Forms of atoms that make affine expressions of affine ones: what they join is taken apart, down to its other atoms."""
USUAL = (0.25, 0.75)
"""Shares of the range of data at which slopes that hang on them are compared."""
ROUNDING = 1e-9
LITTLE = 0.1
"""Largest part of the factor of z that the factor of s beside it has."""


@dataclass(frozen=True, eq=False)
class _Affine:
    """k (v - e) + data entry by entry, of the shape of the state; v is z where it is of what is `left`, else s. In other rounds than those
    in which it `holds`, a table by the round (P,), it is something else.
    """

    left: bool
    factor: Floats
    end: Floats
    data: Expr | None = None
    holds: Floats | None = None


@dataclass(frozen=True, eq=False)
class StateCost:
    """Cost p h(v), p of the shape of the state and h entry by entry.

    part    h(v) as it stands in the loss, whose affine arguments are `within`, by id
    left    True where v is z, what a round leaves; False where it is s
    price   p, made of data and numbers
    ends    levels beyond which the slope is that at the end, where h is convex between them alone, as log is
    """

    part: Expr
    within: Mapping[int, _Affine]
    left: bool
    price: Expr
    ends: tuple[Floats, Floats] | None = None

    @property
    def data(self) -> tuple[str, ...]:
        """Streams on which its slope hangs."""
        beside = (a.data for a in self.within.values() if a.data is not None)
        return tuple(dict.fromkeys(n for e in (self.price, *beside) for n in names(e, Kind.STREAM)))

    def at(self, level: Expr) -> Expr:
        """p h(v) at levels v, of the shape of the state or (P, *shape) for P levels of each entry."""

        def of(node: Expr) -> Expr:
            own = self.within.get(id(node))
            if own is not None:
                value = algebra.mul(constant(own.factor), algebra.sub(level, constant(own.end)))
                return value if own.data is None else algebra.add(value, own.data)
            return applied(node.atom, tuple(map(of, node.args)), node.options) if isinstance(node, Call) else node

        return algebra.mul(self.price, of(self.part))

    @property
    def by_round(self) -> bool:
        """True where it hangs on the round."""
        return any(
            names(e, Kind.ROUND) for e in (self.price, *(a.data for a in self.within.values() if a.data is not None))
        )

    def a_round_later(self, canonical: Canonical) -> StateCost:
        """Cost as it is in the next round."""
        if not self.by_round:
            return self
        later = {
            k: a if a.data is None else replace(a, data=a_round_later(canonical, a.data))
            for k, a in self.within.items()
        }
        return replace(self, within=later, price=a_round_later(canonical, self.price))

    def slope(self, level: Name) -> Expr:
        """p h'(v) at levels v, a name of shape (P, *shape) for P levels of each entry."""
        towards = replace(level, kind=Kind.DECISION)
        slope = gradient(call("sum", self.at(towards)), (level.name,))[level.name]
        there: Expr = level
        if self.ends is not None:
            there = call("minimum", call("maximum", level, constant(self.ends[0])), constant(self.ends[1]))
        return algebra.broadcast(rewrite(slope, lambda n: there if n == towards else n), level.shape)


def level_name(points: int, s: StreamRange) -> Name:
    """Stream with this many levels of a state."""
    return Name(LEVEL, Kind.STREAM, shape=(points, *s.shape))


def slope_of_costs(costs: Sequence[StateCost], level: Name) -> Expr:
    """Sum of the slopes of costs at levels, of shape (P, *shape)."""
    return reduce(algebra.add, (c.slope(level) for c in costs))


def usual_data(canonical: Canonical, costs: Sequence[StateCost]) -> list[dict[str, Floats]]:
    """Data on which the slopes of costs hang, by stream, a quarter of their ranges from either end; once none where they hang on none."""
    own = [o for o in canonical.streams if any(o.name in c.data for c in costs)]
    return [
        {o.name: np.broadcast_to(o.lower + share * (np.asarray(o.upper) - o.lower), o.shape) for o in own}
        for share in (USUAL if own else USUAL[:1])
    ]


def without_state_costs(
    canonical: Canonical, s: StreamRange, loss: Expr, with_data: bool = True
) -> tuple[Expr, tuple[StateCost, ...]]:
    """Loss less the costs of a state that are known, and these costs; `with_data`: also those that hang on data of the round."""
    loss = rewrite(loss, lambda node: _spelled(canonical, s, node))
    parts = _parts(canonical, s, loss)
    if not parts:
        return loss, ()
    own = {id(p): Name(f"{PART}{j}", Kind.DECISION, shape=s.shape) for j, (p, _) in enumerate(parts)}
    slopes = gradient(rewrite(loss, lambda node: own.get(id(node), node)), [n.name for n in own.values()])
    costs = list[StateCost]()
    for part, within in parts:
        price, left = slopes[own[id(part)].name], next(iter(within.values())).left
        if not names(price):
            price = constant(np.broadcast_to(np.asarray(evaluate(price, {}), dtype=np.float64), s.shape))
        elif names(price, Kind.DECISION) or not _is_data(canonical, price):
            continue
        if not _holds(canonical, price, within.values()):
            continue
        cost = StateCost(part, within, left, algebra.broadcast(price, s.shape))
        lower, upper = (np.array(np.broadcast_to(np.asarray(e, dtype=np.float64), s.shape)) for e in (s.lower, s.upper))
        within_range = replace(cost, ends=(lower, upper))
        if (left and with_data) or not (cost.data or cost.by_round):
            costs += [c for c in (cost, within_range) if _is_convex(canonical, c, s)][:1]
    taken, none = {id(c.part) for c in costs}, constant(np.zeros(s.shape))
    return rewrite(loss, lambda node: none if id(node) in taken else node), tuple(costs)


def _holds(canonical: Canonical, price: Expr, within: Iterable[_Affine]) -> bool:
    """True where the arguments of a cost are what they are said to be in all rounds that have a price."""
    tables = [a.holds for a in within if a.holds is not None]
    if not tables:
        return True
    cycle = cycle_of(canonical.horizon, price)
    if cycle is None or names(price, Kind.STREAM):
        return False
    costs = by_round(price, cycle)
    has_price = np.asarray((costs != 0).reshape(len(costs), -1).any(axis=1))
    charged, *tables = over_like_rounds([has_price, *tables])
    return bool((np.all(tables, axis=0) | ~charged).all())


def _is_data(canonical: Canonical, expr: Expr) -> bool:
    """True where all streams of an expression are those of the model, and none is a state or a previous decision."""
    data = {o.name for o in canonical.streams if o.uncut is None and not o.stream.previous}
    return data.issuperset(names(expr, Kind.STREAM))


def _is_convex(canonical: Canonical, cost: StateCost, s: StreamRange) -> bool:
    """True where the slopes of a cost are finite and do not fall, in the range and beyond, for data at either end of their ranges."""
    lower, upper = (np.broadcast_to(np.asarray(e, dtype=np.float64), s.shape) for e in (s.lower, s.upper))
    shares = np.linspace(-1.0, 2.0, LEVELS).reshape(-1, *(1 for _ in s.shape))
    slope = cost.slope(level_name(LEVELS, s))
    cycle = cycle_of(canonical.horizon, slope)
    if cycle is None:
        return False
    for seen in usual_data(canonical, [cost]):
        with np.errstate(all="ignore"):
            slopes = by_round(slope, cycle, {**seen, LEVEL: lower + shares * (upper - lower)})
        if not np.isfinite(slopes).all() or (np.diff(slopes, axis=1) < -ROUNDING * (1 + abs(slopes[:, 1:]))).any():
            return False
    return True


def _spelled(canonical: Canonical, s: StreamRange, node: Expr) -> Expr:
    """Node in whose place stand terms that show a function of the level: sums of functions of entries, and max(a, b) = b + [a - b]_+."""
    form = form_of(node)
    if not isinstance(node, Call) or s.name not in names(node, Kind.STREAM):
        return node
    if isinstance(form, forms.Total) and form.entrywise and not node.options and node.args[0].shape == s.shape:
        return call("sum", call(form.of, node.args[0])) if s.shape else call(form.of, node.args[0])
    if not isinstance(form, forms.Extreme) or form.over or node.shape != s.shape or len(node.args) != 2:
        return node
    if _within(canonical, s, node, {}) is not None:
        return node
    more, less = form.pieces(algebra, *node.args)
    above = algebra.sub(more, less)
    if above.shape != s.shape or _affine(canonical, s, above) is None:
        return node
    return algebra.add(less, call("pos", above)) if form.largest else algebra.sub(more, call("pos", above))


def _parts(canonical: Canonical, s: StreamRange, loss: Expr) -> list[tuple[Expr, Mapping[int, _Affine]]]:
    """Largest parts of a loss that are functions of the level, each with its affine arguments by id."""
    parts = dict[int, Mapping[int, _Affine]]()
    nodes = list(walk(loss))
    for node in nodes:
        if (within := _within(canonical, s, node, parts)) is not None:
            parts[id(node)] = within
    covered = set[int]()
    result = list[tuple[Expr, Mapping[int, _Affine]]]()
    for node in reversed(nodes):
        if id(node) in parts and id(node) not in covered:
            result.append((node, parts[id(node)]))
        if id(node) in parts or id(node) in covered:
            covered |= {id(c) for c in node.children}
    return result[::-1]


def _within(
    canonical: Canonical, s: StreamRange, node: Expr, parts: Mapping[int, Mapping[int, _Affine]]
) -> Mapping[int, _Affine] | None:
    """Affine arguments of a function of the level of single entries, which is not affine; None for other nodes. `parts` are those below."""
    if not is_entrywise(node) or isinstance(form_of(node), LINEAR) or node.shape != s.shape:
        return None
    if s.name not in names(node, Kind.STREAM):
        return None
    result = dict[int, _Affine]()
    for child in node.children:
        if not names(child):
            continue
        if id(child) in parts:
            result |= parts[id(child)]
        elif child.shape == s.shape and (own := _affine(canonical, s, child)) is not None:
            result[id(child)] = own
        else:
            return None
    return result if len({a.left for a in result.values()}) == 1 else None


def _affine(canonical: Canonical, s: StreamRange, expr: Expr) -> _Affine | None:
    """Expression as k (z - e), perhaps with data and a little of s beside, or as k (s - e), entry by entry; None where it is neither."""
    if s.name not in names(expr, Kind.STREAM) or s.uncut is None:
        return None
    left = len(names(expr)) - len(names(expr, Kind.ROUND)) > 1
    of = s.uncut if left else Name(s.name, Kind.STREAM, shape=s.shape)
    rows = affine_rows(canonical, of, s.shape)
    made = None if rows is None or expr.shape != s.shape else multiples(canonical, expr, rows)
    if made is None or any(m.entry != place for place, m in enumerate(made)):
        return _beside_data(canonical, s, expr) if left and rows is not None else None
    factor, holds = np.array([m.factor for m in made]).reshape(s.shape), np.all([m.holds for m in made], axis=0)
    if not holds.any():
        return None
    ends = np.where(holds[:, None], np.stack([m.end for m in made], axis=1), 0.0).reshape(-1, *s.shape)
    first = ends[int(np.argmax(holds))]
    partly = None if holds.all() else holds
    if (abs(ends[holds] - first) <= SAME * (1 + abs(first))).all():
        return _Affine(left, factor, first, holds=partly)
    return _Affine(left, factor, np.zeros(s.shape), row_of_round(-factor * ends), partly)


def _beside_data(canonical: Canonical, s: StreamRange, expr: Expr) -> _Affine | None:
    """Expression as k z + data with a little of s beside it, entry by entry; decisions or other states move z, or both."""
    assert s.uncut is not None
    one, other = (affine_rows(canonical, e, s.shape) for e in (expr, s.uncut))
    if one is None or other is None or expr.shape != s.shape:
        return None
    level, moves = _columns(canonical, s)
    factors = [
        _factor_of_left(mine[:, moves], others[:, moves], mine[:, level], others[:, level])
        for mine, others in zip(*over_like_rounds([one, other]))
    ]
    if factors[0] is None:
        return None
    k, beside = factors[0]
    if any(f is None or (f[0] != k).any() or (f[1] != beside).any() for f in factors):
        return None
    states = {o.name for o in canonical.streams if o.uncut is not None}

    def nothing(node: Expr) -> Expr:
        is_own = isinstance(node, Name) and (node.kind is Kind.DECISION or node.name in states)
        return constant(np.zeros(known(node.shape))) if is_own else node

    factor = k.reshape(s.shape)
    data = algebra.sub(rewrite(expr, nothing), algebra.mul(constant(factor), rewrite(s.uncut, nothing)))
    if not _is_data(canonical, data):
        return None
    factor = factor + beside.reshape(s.shape)
    return _Affine(True, factor, np.zeros(s.shape), algebra.broadcast(data, s.shape))


def _factor_of_left(mine: Floats, others: Floats, own: Floats, left: Floats) -> tuple[Floats, Floats] | None:
    """k, (m,), where rows `mine` are k times `others` in what moves the state, and what they have more of the levels, `own` beside k times
    `left`, (m, m), each of its own: a little; None where they are not.
    """
    most = np.argmax(abs(others), axis=1)
    z = others[np.arange(len(others)), most]
    if not z.all():
        return None
    k = mine[np.arange(len(mine)), most] / z
    beside = own - k[:, None] * left
    little = np.diag(beside)
    fits = np.allclose(mine, k[:, None] * others, rtol=SAME)
    if not k.all() or not fits or (abs(beside - np.diag(little)) > SAME).any() or (abs(little) > LITTLE * abs(k)).any():
        return None
    return k, little


def _columns(canonical: Canonical, s: StreamRange) -> tuple[Floats, Floats]:
    """Columns of `affine_rows` that are of the state s, (m,), and those of decisions, their products with data, and other states."""
    blocks = [(b.name, b.shape, True) for b in canonical.blocks]
    blocks += [(n, known(e.shape), True) for n, e in decided_products(canonical).items()]
    variables = blocks + [(o.name, o.shape, o.uncut is not None) for o in canonical.streams]
    places = pairwise(np.cumsum([1, *(math.prod(shape) for _, shape, _ in variables)]))
    own = {n: (np.arange(a, b), moves) for (n, _, moves), (a, b) in zip(variables, places, strict=True)}
    level, _ = own.pop(s.name)
    return level, np.concatenate([at for at, moves in own.values() if moves])
