"""Margins of the constraints in shares of the rounds that a round can hold: those asked for, or where these fit together with no decision,
fallbacks at the stated shares.

With X_t(m) the decisions that the known constraints of the round allow at the margins m, the margins asked for are kept where X_t is not
empty. Else the constraints that its least violating decision breaks, those in the conflict, take their fallbacks, and where the round has
no room for that either, all constraints in shares do.
"""

from __future__ import annotations

from copy import copy

from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import Informed, State, array, joined
from oco.compiler.problem.canonical import Canonical, Inequality
from oco.compiler.proximal.known_point import nearest_known, rows_known, yields

FITS = "margin_fits"
SYMBOLS = {FITS: "1 where the margin asked for is that of this round, 0 where its fallback is"}
MISSED = Tolerance(1e-6)
"""Part of the domain's size by which the nearest decision may miss a margin that counts as one that fits."""


class WithFallbacks:
    """Rule whose decisions wait for what is known before them, in rounds whose margins are those that fit."""

    def __init__(self, rule: Informed) -> None:
        self.rule = rule

    def init(self, p: Problem, start: Point) -> State:
        """State before the first round."""
        return joined(self.rule.init(p, start), {FITS: p.tracer.ones((_entries(p),))})

    def decide(self, p: Problem, state: State) -> Point:
        """Decision of the round."""
        return self.rule.decide(p, _own(state))

    def prepare(self, p: Problem, state: State) -> State:
        """State with the decision of this round, once its margins are chosen."""
        p.note("the margins that the round can hold")
        fits = margins_that_fit(p, self.rule.decide(p, _own(state)))
        return {**self.rule.prepare(_with_margins(p, fits), _own(state)), FITS: fits}

    def update(self, p: Problem, state: State) -> State:
        """State after the round, with the margins that it had."""
        fits = array(state, FITS)
        return {**self.rule.update(_with_margins(p, fits), _own(state)), FITS: fits}


def has_fallbacks(canonical: Canonical) -> bool:
    """True where a constraint has a margin that may not fit."""
    return any(map(yields, canonical.known))


def margins_that_fit(p: Problem, near: Point) -> Value:
    """1 for each entry of constraints in shares of the rounds whose margin is the one asked for, 0 where it is the fallback.

    near  point at which the search for a decision begins
    """
    t, none = p.tracer, p.tracer.zeros((rows_known(p.spec.canonical),))
    x = nearest_known(p, near, none)[0]
    fits = t.name(FITS, _met(p, x))
    mixed = _with_margins(p, fits)
    together = t.min(_met(mixed, nearest_known(mixed, x, none)[0]))
    return t.name(FITS, fits * together)


def _met(p: Problem, x: Point) -> Value:
    """1 for each entry of constraints in shares of the rounds that x satisfies, else 0."""
    t, exprs = p.tracer, [c.expr for c in _in_shares(p)]
    size = sum(float(b.domain.radius) ** 2 for b in p.spec.canonical.blocks) ** 0.5 or 1.0
    slopes = t.sqrt(p.slopes_of(exprs, x).squared_norms())
    return t.to_float(p.values(exprs, x) <= MISSED * size * slopes)


def _with_margins(p: Problem, fits: Value) -> Problem:
    """View of the round with fallbacks in the places of the margins that do not fit."""
    t, seen, result, at = p.tracer, dict(p.seen), copy(p), 0
    for c in _in_shares(p):
        assert c.margin is not None
        own = t.reshape(fits[at : at + c.size], c.shape)
        for asked, fallback in c.margin.fallbacks:
            seen[asked] = t.name(asked, t.where(own > 0.5, p.seen[asked], p.seen[fallback]))
        at += c.size
    result.seen = seen
    return result


def _in_shares(p: Problem) -> list[Inequality]:
    return [c for c in p.spec.canonical.known if yields(c)]


def _entries(p: Problem) -> int:
    return sum(c.size for c in _in_shares(p))


def _own(state: State) -> State:
    return {name: value for name, value in state.items() if name != FITS}
