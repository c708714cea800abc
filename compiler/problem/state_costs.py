"""Costs of what is in a store that are known: parts of the loss that hang on its level alone.

    f(x, s, data) = b(x, s, data) + sum_j p_j h_j(z) + sum_j q_j k_j(s)

with z = s', what a round leaves before it is cut to the range, numbers p_j and q_j, and functions of single entries that are not affine:
300 [z - 1900]_+, (z - 20)^2, |s - 5|. Their slopes are known at every level, whatever levels come: only b has to be learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from oco.compiler.problem.affine_entries import affine_rows, factors_and_ends
from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms, is_entrywise
from oco.dsl.build import applied, call
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Call, Expr, Kind, Name, constant, names, rewrite, walk

Floats = np.ndarray[Any, Any]
LEVEL, PART = "_level", "_part"
LEVELS = 101
"""Levels at which slopes are compared, to see whether a part is convex: of a range, and of one as wide on either side."""
LINEAR = (forms.Signed, forms.Bilinear, forms.Quotient)
"""Forms of atoms that make affine expressions of affine ones: what they join is taken apart, down to its other atoms."""
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class _Affine:
    """k (v - e) entry by entry, of the shape of the state; v is z where it is of what is `left`, else s."""

    left: bool
    factor: Floats
    end: Floats


@dataclass(frozen=True, eq=False)
class StateCost:
    """Cost p h(v), p of the shape of the state and h entry by entry.

    part    h(v) as it stands in the loss, whose affine arguments are `within`, by id
    left    True where v is z, what a round leaves; False where it is s
    price   p
    """

    part: Expr
    within: Mapping[int, _Affine]
    left: bool
    price: Floats

    def at(self, level: Expr) -> Expr:
        """p h(v) at levels v, of the shape of the state or (P, *shape) for P levels of each entry."""

        def of(node: Expr) -> Expr:
            own = self.within.get(id(node))
            if own is not None:
                return algebra.mul(constant(own.factor), algebra.sub(level, constant(own.end)))
            return applied(node.atom, tuple(map(of, node.args)), node.options) if isinstance(node, Call) else node

        return algebra.mul(constant(self.price), of(self.part))

    def slope(self, level: Name) -> Expr:
        """p h'(v) at levels v, a name of shape (P, *shape) for P levels of each entry."""
        towards = replace(level, kind=Kind.DECISION)
        slope = gradient(call("sum", self.at(towards)), (level.name,))[level.name]
        return algebra.broadcast(rewrite(slope, lambda n: level if n == towards else n), level.shape)


def level_name(points: int, s: StreamRange) -> Name:
    """Stream with this many levels of a state."""
    return Name(LEVEL, Kind.STREAM, shape=(points, *s.shape))


def slope_of_costs(costs: Sequence[StateCost], level: Name) -> Expr:
    """Sum of the slopes of costs at levels, of shape (P, *shape)."""
    return reduce(algebra.add, (c.slope(level) for c in costs))


def without_state_costs(canonical: Canonical, s: StreamRange, loss: Expr) -> tuple[Expr, tuple[StateCost, ...]]:
    """Loss less the costs of a state that are known, and these costs."""
    loss = rewrite(loss, lambda node: _spelled(canonical, s, node))
    parts = _parts(canonical, s, loss)
    if not parts:
        return loss, ()
    own = {id(p): Name(f"{PART}{j}", Kind.DECISION, shape=s.shape) for j, (p, _) in enumerate(parts)}
    slopes = gradient(rewrite(loss, lambda node: own.get(id(node), node)), [n.name for n in own.values()])
    costs = list[StateCost]()
    for part, within in parts:
        slope = slopes[own[id(part)].name]
        if names(slope):
            continue
        price = np.broadcast_to(evaluate(slope, {}), s.shape)
        left = next(iter(within.values())).left
        cost = StateCost(part, within, left, np.asarray(price, dtype=np.float64))
        if _is_convex(cost, s):
            costs.append(cost)
    taken, none = {id(c.part) for c in costs}, constant(np.zeros(s.shape))
    return rewrite(loss, lambda node: none if id(node) in taken else node), tuple(costs)


def _is_convex(cost: StateCost, s: StreamRange) -> bool:
    """True where the slopes of a cost are finite and do not fall, in the range and beyond."""
    lower, upper = (np.broadcast_to(np.asarray(e, dtype=np.float64), s.shape) for e in (s.lower, s.upper))
    shares = np.linspace(-1.0, 2.0, LEVELS).reshape(-1, *(1 for _ in s.shape))
    with np.errstate(all="ignore"):
        slopes = np.asarray(evaluate(cost.slope(level_name(LEVELS, s)), {LEVEL: lower + shares * (upper - lower)}))
    return bool(np.isfinite(slopes).all() and (np.diff(slopes, axis=0) >= -ROUNDING * (1 + abs(slopes[1:]))).all())


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
    """Expression as k (z - e), or as k (s - e), entry by entry; None where it is neither."""
    if s.name not in names(expr, Kind.STREAM) or s.uncut is None:
        return None
    left = len(names(expr)) > 1
    of = s.uncut if left else Name(s.name, Kind.STREAM, shape=s.shape)
    rows = affine_rows(canonical, of, s.shape)
    made = None if rows is None else factors_and_ends(canonical, expr, rows)
    if made is None or any(i != place for place, (i, _, _) in enumerate(made)):
        return None
    factor, end = (np.array([row[k] for row in made]).reshape(s.shape) for k in (1, 2))
    return _Affine(left, factor, end)
