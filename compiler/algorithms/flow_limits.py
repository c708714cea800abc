"""Limits of flows into stores that known constraints set from round to round: what is sent is no more than the load, `send <= load`.

A row a x_i + b <= 0 of a known constraint on one entry alone, with a number a and with b made of contexts and the round, cuts the range of
the flows of that entry. The ranges of rounds to come are learned as costs are (`learned_costs`): by phases of the season, and by the last
rounds. Those that the round alone sets are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from oco.compiler.algorithms.detected_seasons import least_missed, seasons_tried
from oco.compiler.algorithms.learned_costs import KEPT, LearnedCosts
from oco.compiler.ir.value import Value
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State
from oco.compiler.problem.canonical import Canonical, Inequality
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.problem.pipelines import decision_ends
from oco.compiler.problem.store_forms import NO_ENTRY, StoreOfState
from oco.compiler.problem.structure import is_affine
from oco.dsl import algebra
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, Kind, Name, constant, names, rewrite
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
LIMITS = 2
"""Rows of limits: the least and the greatest flow."""
LIMIT = "limit"
SYMBOLS = {
    f"{LIMIT}_{part}": f"`cost_{part}` of the least and the greatest flows that constraints leave" for part in KEPT
}
"""State that is kept, by name."""


@dataclass(frozen=True, eq=False)
class EntryLimits:
    """Rows a x_i + b <= 0 of a known constraint.

    rest     b, (R,)
    factors  a, (R,), not 0
    entries  i, of the flattened decisions, (R,)
    """

    rest: Expr
    factors: Floats
    entries: Floats


@lru_cache(maxsize=16)
def entry_limits(canonical: Canonical) -> tuple[EntryLimits, ...]:
    """Known constraints of which each row is on one entry of the decisions alone, and on contexts and the round."""
    contexts = {s.name for s in canonical.streams if s.stream.known and s.uncut is None}
    made = (
        _limits(canonical, c)
        for c in canonical.known
        if c.margin is None and c.moving is None and c.budget is None and set(names(c.expr, Kind.STREAM)) <= contexts
    )
    return tuple(own for own in made if own is not None)


def _limits(canonical: Canonical, c: Inequality) -> EntryLimits | None:
    """Rows of a constraint as limits of entries; None where one is on several entries or on none, or its factors change."""
    shapes, size = {b.name: b.shape for b in canonical.blocks}, math.prod(known(c.expr.shape))
    if not is_affine(c.expr, tuple(shapes)):
        return None
    slopes = jacobian(c.expr, shapes)
    if any(names(e) for e in slopes.values()):
        return None
    whole = (np.broadcast_to(evaluate(e, {}), (*known(c.expr.shape), *shapes[n])) for n, e in slopes.items())
    factors = np.concatenate([a.reshape(size, -1) for a in whole], axis=1)
    if (np.count_nonzero(factors, axis=1) != 1).any():
        return None
    entries = np.argmax(factors != 0, axis=1)

    def nothing(node: Expr) -> Expr:
        is_decided = isinstance(node, Name) and node.kind is Kind.DECISION
        return constant(np.zeros(known(node.shape))) if is_decided else node

    rest = algebra.reshape(rewrite(c.expr, nothing), (size,))
    return EntryLimits(rest, factors[np.arange(size), entries], entries)


class FlowLimits:
    """Ranges of the F flows of stores by the round, as constraints leave them; `rows` is 0 where the domain alone limits them."""

    def __init__(self, p: Problem, own: Sequence[StoreOfState], begins: str = "") -> None:
        """Limits kept under names that begin so."""
        canonical = p.spec.canonical
        self.p, self.t = p, p.tracer
        self.entries, self.rate = (
            np.concatenate([getattr(s, n) for s in own]) if own else np.zeros(0, dtype=np.int64)
            for n in ("entries", "rate")
        )
        limits = entry_limits(canonical.unscaled or canonical) if own else ()
        self.limits = [e for e in limits if np.isin(e.entries, self.entries).any()]
        self.stated = [e for e in self.limits if not names(e.rest, Kind.STREAM)]
        self.rows, self.learned = LIMITS if self.limits else 0, None
        self.ends = decision_ends(canonical, np.maximum(self.entries, 0)) if self.limits else np.zeros((2, 0))
        if len(self.stated) < len(self.limits):
            seasons = seasons_tried(canonical, p.whole("season"))
            self.learned = LearnedCosts(p, f"{begins}{LIMIT}", LIMITS * self.entries.size, 1, seasons)

    def init(self) -> State:
        """State before the first round."""
        return {} if self.learned is None else self.learned.init()

    def update(self, state: State) -> State:
        """State after a round."""
        if self.learned is None:
            return {}
        now = self.t.reshape(self.of_round(self.p, self.limits), (1, LIMITS * self.entries.size))
        return self.learned.update(state, now)

    def to_come(self, state: State, begun: Value, rounds: Value) -> Callable[[Value], Value]:
        """Least and greatest flows, (2, F), of the h-th round after the next one, by h, once so many rounds have `begun` and `rounds` of
        them are over.
        """
        t, p, size = self.t, self.p, (LIMITS, self.entries.size)

        def stated(h: Value) -> Value:
            return self.of_round(Problem(t, p.spec, p.seen, begun + 1 + h, constants=p.constants), self.stated)

        if self.learned is None:
            return stated
        tried, usual = self.learned.to_come(state, begun, rounds), self.learned.kept(state, "usual")
        count = self.learned.count

        def of(h: Value) -> Value:
            by_season = tried(h)
            expected = t.reshape(least_missed(usual, [by_season[k, 0] for k in range(count)]), size)
            if not self.stated:
                return expected
            least, most = stated(h)
            return t.minimum(t.maximum(expected, least), most)

        return of

    def of_round(self, p: Problem, limits: Sequence[EntryLimits]) -> Value:
        """Least and greatest flows that these limits leave in a round, (2, F)."""
        t = self.t
        low, high = (t.constant(e, n) for e, n in zip(self.ends, ("low", "high")))
        if limits:
            factors, entries = (np.concatenate([getattr(e, n) for e in limits]) for n in ("factors", "entries"))
            ends = -p.values([e.rest for e in limits], p.centre()) / t.constant(factors, "factors")
            own = self.entries.reshape(-1, 1) == entries
            lower, upper = (
                t.constant(own & (sign * factors > 0), "limits", "rows that limit each flow") for sign in (-1, 1)
            )
            high = t.minimum(high, t.min(t.where(upper, ends, np.inf), axis=1))
            low = t.minimum(t.maximum(low, t.max(t.where(lower, ends, -np.inf), axis=1)), high)
        rate = t.constant(np.where(self.entries == NO_ENTRY, 0.0, self.rate), "rate")
        return t.stack(t.minimum(rate * low, rate * high), t.maximum(rate * low, rate * high))
