"""Range of a store whose drift is known only afterwards, by what keeps z = s', what a round leaves, within it.

* A constraint of the model k (l - z) <= 0 or k (z - u) <= 0, k > 0, in each round or in a share of them: its end is that of the store.
* The loss, where it has a term p [l - z]_+ at the lower end l of the state, whose cut takes what is missing: of unsold stock that is the
  price of lost sales; also max(a, b) = b + [a - b]_+ and min(a, b) = a - [a - b]_+ are such terms. Or another cost of z alone that falls
  there, as 300 [200 - z]_+ does at 0.
* The cut alone, where units cost: an empty queue has nothing to serve. Or where nothing takes z below the lower end.
* The cut alone at the upper end u, which takes what is too much: no unit above it has a value. The loss may have a term p [z - u]_+ there,
  as for bikes that find no dock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np

from oco.compiler.problem.affine_entries import SAME, Multiple, affine_rows, decided_products, multiples
from oco.compiler.problem.by_round import by_round, cycle_of, over_like_rounds, shortened
from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.state_costs import LEVEL, level_name, slope_of_costs, usual_data, without_state_costs
from oco.compiler.problem.stream_ranges import StreamRange
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms
from oco.dsl.enclose import enclose
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Call, Expr, Kind, Name, constant, names, rewrite
from oco.dsl.intervals import Interval, interval
from oco.dsl.records import dataclass
from oco.dsl.statements import Timing

Floats = np.ndarray[Any, Any]
OUTSIDE = "_outside"


class End(Enum):
    """End of a range."""

    LOWER = "lower"
    UPPER = "upper"


@dataclass(frozen=True, eq=False)
class KeptRange:
    """Range of a store, numbers for each of its m entries, (m,).

    lowers        lower ends of what a round leaves: a table by the round (`by_round`), (P, m)
    uppers        upper ends, so too
    given         1 where nothing but the cut keeps the lower end, else 0
    paid          p, what the loss pays for a unit that is missing at the lower end, and for no other; 0 where constraints keep it
    free          1 where the cut takes units below the lower end that cost, as of an empty queue, else 0
    wasted        1 where nothing but the cut keeps the upper end, else 0
    charged       p, what the loss pays for a unit that is too much at the upper end; 0 where constraints keep it
    """

    lowers: Floats
    uppers: Floats
    given: Floats
    paid: Floats
    free: Floats
    wasted: Floats
    charged: Floats

    @property
    def lower(self) -> Floats:
        """Least lower end of all rounds, (m,)."""
        return np.asarray(self.lowers.min(axis=0))

    @property
    def upper(self) -> Floats:
        """Greatest upper end of all rounds, (m,)."""
        return np.asarray(self.uppers.max(axis=0))

    @property
    def soft(self) -> Floats:
        """1 where nothing but the cut keeps an end, else 0, (m,)."""
        return ((self.given > 0) | (self.wasted > 0)).astype(np.float64)


def kept_range(canonical: Canonical, s: StreamRange, moved: Floats) -> KeptRange | str:
    """Range of a state, and what keeps it; or the reason why it is none: nothing keeps the lower end of an entry that decisions move, of
    those `moved`, (m,), or a constraint on the state changes otherwise. The cut keeps the ends of other entries.
    """
    assert s.uncut is not None
    lower, upper = (np.broadcast_to(np.asarray(e, dtype=np.float64), s.shape).ravel() for e in (s.lower, s.upper))
    before = {o.name for o in canonical.streams if o.stream.known or o.stream.previous}
    made = _constrained(canonical, s, lower.size)
    if isinstance(made, str):
        return made
    least, most = made
    ends = np.fmax(least, lower), np.fmin(most, upper)
    if set(names(s.uncut, Kind.STREAM)) <= before:
        none, cut = np.zeros(lower.size), (~moved).astype(np.float64)
        return KeptRange(*ends, cut, none, none, cut, none)
    given = np.isnan(least).any(axis=0) | ~moved
    paid = np.where(given, np.maximum(_price(canonical, s, End.LOWER), 0.0), 0.0)
    wasted = np.isnan(most).any(axis=0) | ~moved
    charged = np.where(wasted, np.maximum(_price(canonical, s, End.UPPER), 0.0), 0.0)
    free = given & moved & (paid <= 0)
    if free.any():
        free &= ~_is_paid_above(canonical, s, lower)
        if (free & ~_is_burden(canonical, s, ~wasted | (charged > 0))).any():
            end = f" below {lower[0]:g}" if (lower == lower[0]).all() else ""
            return f"nothing keeps its lower end, no fixed price of what is missing{end} and no constraint"
    return KeptRange(*ends, *(v.astype(np.float64) for v in (given, paid, free, wasted, charged)))


def _towards(expr: Expr, s: StreamRange) -> Expr:
    """Derivative of an expression towards a state, of its shape."""
    own = rewrite(expr, lambda n: replace(n, kind=Kind.DECISION) if isinstance(n, Name) and n.name == s.name else n)
    return algebra.broadcast(gradient(own, (s.name,))[s.name], s.shape)


def _is_burden(canonical: Canonical, s: StreamRange, capped: Floats) -> Floats:
    """True for entries of which units cost at some level and earn at none, or whose upper end alone is kept (`capped`), and for those that
    nothing takes below their lower end, (m,).
    """
    loss = canonical.objective if canonical.moving is None else canonical.moving
    slope, of_rest = (_towards(e, s) for e in (loss, without_state_costs(canonical, s, loss)[0]))
    if names(of_rest, Kind.DECISION):  # a product of the level and a decision is no cost of units
        return np.zeros(capped.size, dtype=bool)
    ends = enclose(slope, _ranges(canonical))
    least, most = (np.broadcast_to(np.asarray(e), s.shape).ravel() for e in (ends.lo, ends.hi))
    return ((least >= 0) & ((most > 0) | capped)) | _never_below(canonical, s)


def _ranges(canonical: Canonical) -> dict[str, Interval]:
    """Ranges of decisions, streams and the round, by name."""
    ranges = {b.name: interval(b.domain.lower, b.domain.upper, b.shape) for b in canonical.blocks}
    ranges |= {o.name: interval(o.lower, o.upper, o.shape) for o in canonical.streams}
    return {**ranges, "t": interval(1.0, float(canonical.horizon or np.inf), ())}


def _never_below(canonical: Canonical, s: StreamRange) -> Floats:
    """True for entries whose z is affine and never below the lower end, whatever is decided and comes, (m,)."""
    assert s.uncut is not None
    lower = np.broadcast_to(np.asarray(s.lower, dtype=np.float64), s.shape).ravel()
    rows = affine_rows(canonical, s.uncut, s.shape)
    if rows is None:
        return np.zeros(lower.size, dtype=bool)
    ranges = _ranges(canonical)
    for name, product in decided_products(canonical).items():
        ranges[name] = enclose(product, ranges)
    order = (*(b.name for b in canonical.blocks), *decided_products(canonical), *(o.name for o in canonical.streams))
    low, high = (np.concatenate([ranges[n].expanded()[k].ravel() for n in order]) for k in (0, 1))
    slopes = rows[:, :, 1:]
    with np.errstate(invalid="ignore"):
        least = rows[:, :, 0] + np.where(slopes, np.minimum(slopes * low, slopes * high), 0.0).sum(axis=2)
    return np.asarray((least >= lower - SAME * (1 + abs(lower))).all(axis=0))


def awaited_range(canonical: Canonical, s: StreamRange) -> KeptRange | None:
    """Range of a state that decisions reach rounds later, which the cut keeps; None where the loss pays for nothing at its lower end, or
    constraints of the model are on the state.
    """
    lower, upper = (np.broadcast_to(np.asarray(e, dtype=np.float64), s.shape).ravel() for e in (s.lower, s.upper))
    if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
        return None
    own = {f"{s.name}.least", f"{s.name}.most"}
    constraints = (c for c in (*canonical.constraints, *canonical.known) if c.label not in own)
    if any(s.name in names(c.expr, Kind.STREAM) for c in constraints):
        return None
    paid, charged = (np.maximum(_price(canonical, s, end), 0.0) for end in End)
    if not ((paid > 0) | _is_paid_above(canonical, s, lower, at_once=False)).all():
        return None
    none, one = np.zeros(lower.size), np.ones(lower.size)
    return KeptRange(lower.reshape(1, -1), upper.reshape(1, -1), one, paid, none, one, charged)


def _is_paid_above(canonical: Canonical, s: StreamRange, lower: Floats, at_once: bool = True) -> Floats:
    """True for entries of which the loss pays for less at the lower end as it does above it, (m,): for usual data of a round, and for what
    a round begins with or leaves where decisions fill the state `at_once`, else for what it leaves alone, whatever comes.
    """
    loss = canonical.objective if canonical.moving is None else canonical.moving
    costs = [c for c in without_state_costs(canonical, s, loss, with_data=at_once)[1] if c.left or at_once]
    if not costs:
        return np.zeros(lower.size, dtype=bool)
    slope = slope_of_costs(costs, level_name(1, s))
    cycle, at = cycle_of(canonical.horizon, slope) or 1, {LEVEL: lower.reshape(1, *s.shape)}
    falls = ((by_round(slope, cycle, {**seen, **at}) < 0).any(axis=0) for seen in usual_data(canonical, costs))
    return np.broadcast_to(np.any(list(falls), axis=0), (1, *s.shape)).ravel()


def _changing(label: str, s: StreamRange) -> str:
    return f"`{label}` asks for another level of `{s.name}` in every round"


def _is_end_of_another(canonical: Canonical, s: StreamRange, expr: Expr) -> bool:
    """True where a constraint is on the end of the range of another state that this one moves."""
    others = (o for o in canonical.streams if o.uncut is not None and o.name != s.name and s.name in names(o.uncut))
    return any(_ends_in(canonical, o, expr) is not None for o in others)


def _changes_on(expr: Expr, s: StreamRange) -> bool:
    """True where a constraint is on the state, and on what changes beside."""
    own = names(expr, Kind.STREAM)
    return s.name in own and bool(names(expr, Kind.ROUND) or set(own) - {s.name})


def _constrained(canonical: Canonical, s: StreamRange, size: int) -> tuple[Floats, Floats] | str:
    """Ends of z that constraints keep, tables by the round (P, size), NaN where none does; a reason where another constraint on the state
    changes.
    """
    least, most = np.full((1, size), np.nan), np.full((1, size), np.nan)
    own = {f"{s.name}.least", f"{s.name}.most"}
    for c in (*canonical.inequalities, *canonical.known):
        expr = c.expr if c.margin is None else c.margin.measured
        if s.name not in names(expr, Kind.STREAM) or c.label in own:
            continue
        ends = None if c.timing is Timing.ON_AVERAGE else _ends_in(canonical, s, expr)
        if ends is None and _changes_on(expr, s) and not _is_end_of_another(canonical, s, expr):
            return _changing(c.label, s)
        for end in ends or ():
            if end.factor < 0:
                least = _tightened(least, end, np.fmax)
            else:
                most = _tightened(most, end, np.fmin)
    changing = next((c.label for c in canonical.equalities if _changes_on(c.expr, s)), None)
    return (shortened(least), shortened(most)) if changing is None else _changing(changing, s)


def _tightened(ends: Floats, by: Multiple, of_both: Callable[[Floats, Floats], Floats]) -> Floats:
    """Ends by the round, (P, m), with those of an entry that a constraint keeps."""
    table, own = over_like_rounds([ends, by.end])
    table[:, by.entry] = of_both(table[:, by.entry], own)
    return table


def _ends_in(canonical: Canonical, s: StreamRange, expr: Expr) -> list[Multiple] | None:
    """Entries of an expression as k (z_i - e) in all rounds; None where one has another form."""
    assert s.uncut is not None
    following = affine_rows(canonical, s.uncut, s.shape)
    made = None if following is None else multiples(canonical, expr, following)
    return made if made is not None and all(m.holds.all() for m in made) else None


def outside(s: StreamRange, end: End) -> Expr:
    """[l - z]_+ or [z - u]_+, of the shape of the state."""
    assert s.uncut is not None
    at = constant(np.broadcast_to(_at(s, end), s.shape))
    beyond = algebra.sub(at, s.uncut) if end is End.LOWER else algebra.sub(s.uncut, at)
    return algebra.call("pos", beyond)


def with_outside(canonical: Canonical, s: StreamRange, end: End, expr: Expr, by: Expr) -> Expr:
    """Expression in which `by`, of the shape of the state, stands for what is `outside` an end."""

    def other(node: Expr) -> Expr:
        form = form_of(node)
        if not isinstance(node, Call) or node.shape != s.shape or not isinstance(form, forms.Extreme) or form.over:
            return node
        pieces = form.pieces(algebra, *node.args)
        sign = _sign_of_outside(canonical, s, end, algebra.sub(*pieces)) if len(pieces) == 2 else 0
        if not sign:
            return node
        more, less = pieces if sign > 0 else pieces[::-1]  # more - less is what is outside, where it is positive
        return algebra.add(less, by) if form.largest else algebra.sub(more, by)

    return rewrite(expr, other)


def _at(s: StreamRange, end: End) -> Any:
    return s.lower if end is End.LOWER else s.upper


def _sign_of_outside(canonical: Canonical, s: StreamRange, end: End, expr: Expr) -> int:
    """1 where an expression is l - z, or z - u at the upper end, -1 where it is the negative of that, else 0."""
    if s.name not in names(expr, Kind.STREAM) or expr.shape != s.shape:
        return 0
    rows, at = _ends_in(canonical, s, expr) or [], np.broadcast_to(np.asarray(_at(s, end)), s.shape).ravel()
    if not rows or any(
        m.entry != place or (abs(m.end - at[place]) > SAME * (1 + abs(m.end))).any() for place, m in enumerate(rows)
    ):
        return 0
    factors, outward = np.array([m.factor for m in rows]), -1 if end is End.LOWER else 1
    return next((sign for sign in (1, -1) if np.allclose(factors, sign * outward, rtol=SAME)), 0)


def _price(canonical: Canonical, s: StreamRange, end: End) -> Floats:
    """p of each entry where the loss has a term p of what is `outside` an end, with a number p, else 0, (m,)."""
    by = Name(OUTSIDE, Kind.DECISION, shape=s.shape)
    loss = canonical.objective if canonical.moving is None else canonical.moving
    slope = gradient(with_outside(canonical, s, end, loss, by), (OUTSIDE,))[OUTSIDE]
    none = np.zeros(math.prod(s.shape))
    return none if names(slope) else none + np.broadcast_to(evaluate(slope, {}), s.shape).ravel()
