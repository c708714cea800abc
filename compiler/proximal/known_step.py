"""Known constraints: the decision of a round is the point nearest to the rule's own that satisfies them, found before it is played."""

from __future__ import annotations

from oco.compiler.lowering.points import Point, Structured
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import Rule, State, array, joined, point
from oco.compiler.problem.canonical import StreamRange
from oco.compiler.proximal.known_point import nearest_known, rows_known

PLAYED, START, MULTIPLIERS, BEFORE = "played", "mu_before", "mu", "before"
CARRIED = "kept_"
SYMBOLS = {
    PLAYED: "the decision of this round within its known constraints",
    START: "multipliers of the known constraints, of the round before",
    MULTIPLIERS: "multipliers of the known constraints, of this round",
    BEFORE: "the decision of the round before, in the user's units",
}


class WithinKnown:
    """Any rule that plays a point x of its state, with x moved into X_t: the rule goes on from the decision that was played."""

    def __init__(self, rule: Rule, x: str) -> None:
        self.rule, self.x = rule, x

    def init(self, p: Problem, start: Point) -> State:
        none = p.tracer.zeros((rows_known(p.spec.canonical),))
        own: State = {PLAYED: start, START: none, MULTIPLIERS: none}
        return joined(self.rule.init(p, start), own, kept_at_start(p, start))

    def decide(self, p: Problem, state: State) -> Point:
        return point(state, PLAYED)

    def prepare(self, p: Problem, state: State) -> State:
        """State with the decision of this round, once its contexts are known."""
        y, multipliers = self.rule.decide(p, _own(state)), array(state, START)
        if p.spec.canonical.known:
            y, multipliers = nearest_known(p, y, multipliers)
        return {**state, PLAYED: y, MULTIPLIERS: multipliers}

    def update(self, p: Problem, state: State) -> State:
        after = self.rule.update(p, {**_own(state), self.x: point(state, PLAYED)})
        multipliers = array(state, MULTIPLIERS)
        kept = kept_after(p, point(state, PLAYED))
        return {**after, PLAYED: self.rule.decide(p, after), START: multipliers, MULTIPLIERS: multipliers, **kept}


class CarryingRule:
    """Any rule, with what each of its rounds leaves to the next, where no known constraint moves its decisions."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def init(self, p: Problem, start: Point) -> State:
        return joined(self.rule.init(p, start), kept_at_start(p, start))

    def decide(self, p: Problem, state: State) -> Point:
        return self.rule.decide(p, _own(state))

    def update(self, p: Problem, state: State) -> State:
        own = _own(state)
        return {**self.rule.update(p, own), **kept_after(p, self.rule.decide(p, own))}


def carried_field(name: str) -> str:
    """Field of the state with the value of a stream that a round leaves to the next."""
    return f"{CARRIED}{name}"


def kept_at_start(p: Problem, start: Point) -> State:
    """State that keeps what the first round is left with."""
    carried = {carried_field(s.name): p.tracer.constant(s.first, s.name) for s in _carried(p) if s.first is not None}
    return joined(decided_before(p, start), carried)


def kept_after(p: Problem, x: Point) -> State:
    """State that keeps what this round, with its decision x, leaves to the next."""
    results = decided_before(p, x)
    for s in _carried(p):
        if s.following is not None:
            results[carried_field(s.name)] = p.tracer.reshape(p.values([s.following], x), s.shape)
    return results


def decided_before(p: Problem, x: Point) -> dict[str, Structured]:
    """Decision in the user's units, where the next round is about the decision before it."""
    return {BEFORE: p.units.outward(x)} if any(s.stream.previous for s in _carried(p)) else {}


def _carried(p: Problem) -> tuple[StreamRange, ...]:
    return p.spec.canonical.carried


def _own(state: State) -> State:
    """State of the rule alone."""
    return {n: value for n, value in state.items() if n not in SYMBOLS and not n.startswith(CARRIED)}
