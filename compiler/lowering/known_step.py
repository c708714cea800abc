"""Known constraints: the decision of a round is the point nearest to the rule's own that satisfies them, found before it is played.

X_t is the domain cut by the constraints of round t whose streams are contexts; they are affine: g_t(x) = C x - r, with C and r traced
values. Where X_t is empty the decision is a point of the domain with the least sum of squares of what the rows, of norm one, are broken by.
"""

from __future__ import annotations

import numpy as np

from oco.compiler.domains.affine import in_units
from oco.compiler.domains.base import Domain
from oco.compiler.domains.dual_newton import CutDual
from oco.compiler.domains.product import Product
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Structured
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import Rule, State, array, point
from oco.compiler.problem.canonical import Canonical, Inequality, StreamRange

PLAYED, START, MULTIPLIERS, BEFORE = "played", "mu_before", "mu", "before"
CARRIED = "kept_"
SYMBOLS = {
    PLAYED: "the decision of this round within its known constraints",
    START: "multipliers of the known constraints, of the round before",
    MULTIPLIERS: "multipliers of the known constraints, of this round",
    BEFORE: "the decision of the round before, in the user's units",
}
MET = 1e-9
"""Part of the domain's size by which a row may be missed before the constraints count as impossible."""
GIVE, MOST_REPEATS, AT_REST = 1e-4, 100, 1e-11
"""Weight, number and least length of the proximal steps towards the least violating point."""
ABOVE = ".above"
"""Ending of the label of the first of the two inequalities that make an equality."""


def rows_known(canonical: Canonical) -> int:
    """Number of multipliers of the known constraints."""
    loose, tight = _parts(canonical.known)
    return sum(c.size for c in (*loose, *tight))


class WithinKnown:
    """Any rule that plays a point x of its state, with x moved into X_t: the rule goes on from the decision that was played."""

    def __init__(self, rule: Rule, x: str) -> None:
        self.rule, self.x = rule, x

    def init(self, p: Problem, start: Point) -> State:
        none = p.tracer.zeros((rows_known(p.task.canonical),))
        return {**self.rule.init(p, start), PLAYED: start, START: none, MULTIPLIERS: none, **left_at_first(p, start)}

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, PLAYED)

    def prepare(self, p: Problem, state: State) -> State:
        """State with the decision of this round, once its contexts are known."""
        y, multipliers = self.rule.decide(p, _own(state)), array(state, START)
        if p.task.canonical.known:
            y, multipliers = nearest_known(p, y, multipliers)
        return {**state, PLAYED: y, MULTIPLIERS: multipliers}

    def update(self, p: Problem, state: State) -> State:
        after = self.rule.update(p, {**_own(state), self.x: point(state, PLAYED)})
        multipliers = array(state, MULTIPLIERS)
        before = left_to_next(p, point(state, PLAYED))
        return {**after, PLAYED: self.rule.decide(p, after), START: multipliers, MULTIPLIERS: multipliers, **before}


class Remembering:
    """Any rule, with what each of its rounds leaves to the next, where no known constraint moves its decisions."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def init(self, p: Problem, start: Point) -> State:
        return {**self.rule.init(p, start), **left_at_first(p, start)}

    def decide(self, p: Problem, state: State) -> Point:
        return self.rule.decide(p, _own(state))

    def update(self, p: Problem, state: State) -> State:
        own = _own(state)
        return {**self.rule.update(p, own), **left_to_next(p, self.rule.decide(p, own))}


def carried_field(name: str) -> str:
    """Field of the state with the value of a stream that a round leaves to the next."""
    return f"{CARRIED}{name}"


def left_at_first(p: Problem, start: Point) -> State:
    """State that keeps what the first round is left with."""
    carried = {carried_field(s.name): p.tracer.constant(s.first, s.name) for s in _carried(p) if s.first is not None}
    return {**_decided(p, start), **carried}


def left_to_next(p: Problem, x: Point) -> State:
    """State that keeps what this round, with its decision x, leaves to the next."""
    results = _decided(p, x)
    for s in _carried(p):
        if s.following is not None:
            results[carried_field(s.name)] = p.tracer.reshape(p.values([s.following], x), s.shape)
    return results


def _decided(p: Problem, x: Point) -> dict[str, Structured]:
    """Decision in the user's units, where a constraint is about the decision before."""
    return {BEFORE: p.units.outward(x)} if any(s.stream.previous for s in _carried(p)) else {}


def _carried(p: Problem) -> tuple[StreamRange, ...]:
    return p.task.canonical.carried


def nearest_known(p: Problem, y: Point, start: Value) -> tuple[Point, Value]:
    """Point of X_t nearest to y, in the rule's units, and its multipliers; the search begins with the multipliers `start`."""
    t, blocks = p.tracer, p.task.canonical.blocks
    own = p.units.outward(y)
    domains = [b.domain for b in blocks]
    base: Domain = domains[0] if len(domains) == 1 else Product((sum(d.size for d in domains),), blocks=tuple(domains))
    size = float(base.radius) or 1.0
    C, r, inequalities = _rows(p, y, own)
    v = _flat(t, own) / size
    x, multipliers = _within(t, in_units(base, np.zeros(()), size), C, r / size, inequalities, v, start)
    x = x * size
    parts, before = [], 0
    for d in domains:
        part = d.shaped(t, x[before : before + d.size]) if len(domains) > 1 else d.shaped(t, x)
        parts.append(d.project(t, part) if d.is_box else part)  # a box is met to the last bit
        before += d.size
    return p.units.inward(Point(tuple(parts))), multipliers


def _within(
    t: Tracer, base: Domain, C: Value, r: Value, inequalities: int, v: Value, start: Value
) -> tuple[Value, Value]:
    """Point of { x in base : C x <= r } nearest to v, or where there is none the least violating one, and its multipliers.

    Proximal steps on half the sum of squares of what is broken (Rockafellar, SIAM J. Control Optim. 14, 1976), each as a projection with
    rows that give way, end in a point that breaks the rows least.
    """
    exact, giving = CutDual(t, base, C, r, inequalities), CutDual(t, base, C, r, inequalities, GIVE)
    multipliers, x = exact.solve(v, start)
    over = C @ x - r
    missed = t.max(t.where(exact.free, t.abs(over), over)) > MET

    def on_the_way(x: Value, moved: Value, count: Value) -> Value:
        return t.and_(moved > AT_REST, count < MOST_REPEATS)

    def towards(x: Value, moved: Value, count: Value) -> tuple[Value, Value, Value]:
        nearer = giving.solve(x, giving.none)[1]
        return nearer, t.max(t.abs(nearer - x)), count + 1

    x, *_ = t.while_(on_the_way, towards, (t.where(missed, v, x), t.where(missed, 1.0, 0.0), t.lift(0)))
    return x, t.where(missed, 0.0, multipliers)


def _rows(p: Problem, y: Point, own: Point) -> tuple[Value, Value, int]:
    """C (m, n) with rows of norm one and r (m,) of the known constraints in the user's units, inequalities first, and their number."""
    t, (loose, tight) = p.tracer, _parts(p.task.canonical.known)
    exprs = [c.expr for c in (*loose, *tight)]
    blocks = p.slopes_of(exprs, y).blocks
    flat = [t.reshape(m, (m.shape[0], m.size // m.shape[0])) for m in blocks]
    C = flat[0] if len(flat) == 1 else t.concat(*flat, axis=1)
    r = C @ _flat(t, own) - p.values(exprs, y)
    norms = t.sqrt(t.sum(C * C, axis=1))
    norms = t.where(norms > 0.0, norms, 1.0)
    return C / t.reshape(norms, (C.shape[0], 1)), r / norms, sum(c.size for c in loose)


def _parts(known: tuple[Inequality, ...]) -> tuple[list[Inequality], list[Inequality]]:
    """Inequalities, and one of the two that make an equality."""
    above = [c for c in known if c.label == f"{c.origin}{ABOVE}"]
    return [c for c in known if c.label == c.origin], above


def _flat(t: Tracer, x: Point) -> Value:
    parts = [t.reshape(b, (b.size,)) for b in x.blocks]
    return parts[0] if len(parts) == 1 else t.concat(*parts)


def _own(state: State) -> State:
    """State of the rule alone."""
    return {n: value for n, value in state.items() if n not in SYMBOLS and not n.startswith(CARRIED)}
