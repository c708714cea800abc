"""Values that a round hands to the next where feedback is late: known with its decision, none waits for the feedback.

Learners take turns, and round t + 1 is that of another one than round t (`lowering.learning_together`). So each keeps, once it has decided,
what its round leaves: the decision, and states that follow from decisions, contexts and what the round before left. The learner of the next
round takes it before it decides (`Program.handed`). Rounds whose feedback never comes were decided too, and hand on what they left.

States that streams move are known late, with the feedback: they and statistics of the data are in common to all learners, and what a
decision rests on are the levels that are expected before it (`expected_levels`).

What was spent of a budget is not known with the decision. It counts as the most that it can be, a^_t(x_t), and a_t(x_t) - a^_t(x_t) <= 0 is
added to a sum of corrections when the feedback of round t comes. With S_t that sum before round t, over the rounds observed by then,

    spent_{t+1} = spent_t + a^_t(x_t) + S_{t+1} - S_t,

so that spent_t is at least what was spent in the rounds before t, and equal to it once their feedback is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import lru_cache
from typing import cast

from oco.compiler.ir.program import CORRECTED, HANDED, OBSERVED
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import Informed, Rule, State, array, joined
from oco.compiler.problem.canonical import Canonical, StreamRange
from oco.compiler.proximal.expected_levels import BEGUN, OPEN, OVER, USUAL, ExpectedLevels, in_common, late_states
from oco.compiler.proximal.known_step import carried_field, decided_before, kept_at_start
from oco.dsl.expressions import Expr, Kind, names

SINCE = "since_"


class HandingOn:
    """Any rule with values that rounds leave to the next, as that of one of the learners in turn.

    informed  whether the rule itself prepares the decision of a round
    more      symbols of its state that are of the round before, each with the symbol of this round's values once it is prepared
    counted   whether the learners have the number of the rounds that all of them observed in any case
    """

    def __init__(self, rule: Rule, informed: bool, more: Mapping[str, str], counted: bool) -> None:
        self.rule, self.informed, self.more, self.counted = rule, informed, more, counted

    def init(self, p: Problem, start: Point) -> State:
        """State before the first round, which was left what the model says."""
        own, first = self.rule.init(p, start), kept_at_start(p, start)
        carried = {n: first[n] for n in map(carried_field, handed(p.spec.canonical))}
        left = joined(decided_before(p, start), carried, {name: own[name] for name in self.more if name in own})
        levels, none = ExpectedLevels(p), {s.name: p.tracer.zeros(s.shape) for s in _corrected(p)}
        since = joined({f"{SINCE}{n}": zeros for n, zeros in none.items()}, levels.handed_at_start())
        common = joined({f"{CORRECTED}{n}": zeros for n, zeros in none.items()}, levels.common_at_start())
        counts = not self.counted and bool(common or in_common(p.spec.canonical))
        observed = {OBSERVED: p.tracer.lift(0)} if counts else {}
        return joined(own, _handed(joined(left, since)), since, common, observed)

    def decide(self, p: Problem, state: State) -> Point:
        """Decision of the round."""
        return self.rule.decide(p, _own(state))

    def prepare(self, p: Problem, state: State) -> State:
        """State with the decision of this round, and with what it leaves to the next."""
        p, known = _as_corrected(p, state)
        levels = ExpectedLevels(p)
        p, known = _as_expected(p, known, levels.before_round(state))
        own = {**_own(state), **known}
        after = cast(Informed, self.rule).prepare(p, own) if self.informed else own
        x, canonical = self.rule.decide(p, after), p.spec.canonical
        p.note("what this round leaves to the next")
        left = decided_before(p, x)
        for s in canonical.carried:
            if s.name in handed(canonical):
                left[carried_field(s.name)] = p.tracer.reshape(p.values([handed(canonical)[s.name]], x), s.shape)
        left |= {name: after[now] for name, now in self.more.items() if name in after}
        left |= {f"{SINCE}{s.name}": array(state, f"{CORRECTED}{s.name}") for s in _corrected(p)}
        return {**state, **after, **_handed({**left, **levels.decided(x, state)})}

    def update(self, p: Problem, state: State) -> State:
        """State after the round: what it left stays, and the sum of corrections has that of its cost."""
        corrected, x = dict[str, object](), self.rule.decide(p, _own(state))
        for s in _corrected(p):
            assert s.following is not None
            paid, counted = p.values([s.following], x), p.values([handed(p.spec.canonical)[s.name]], x)
            name = f"{CORRECTED}{s.name}"
            corrected[name] = array(state, name) + p.tracer.reshape(paid - counted, s.shape)
        if OBSERVED in state:
            corrected[OBSERVED] = array(state, OBSERVED) + 1
        common = ExpectedLevels(p).observed(state)
        return {**state, **self.rule.update(p, _own(state)), **cast(State, corrected), **common}


@lru_cache(maxsize=16)
def handed(canonical: Canonical) -> Mapping[str, Expr]:
    """Values that rounds leave to the next, by name, as they count once the round is decided; none that wait for its feedback."""
    late = {s.name for s in canonical.revealed if not s.stream.known}
    own = (s for s in canonical.carried if not s.late)
    following = ((s.name, s.following if s.at_once is None else s.at_once) for s in own)
    return {name: e for name, e in following if e is not None and not late & {*names(e, Kind.STREAM)}}


def _as_corrected(p: Problem, state: State) -> tuple[Problem, State]:
    """View of the round, and its state, with the corrections since the round before was decided."""
    known = {}
    for s in _corrected(p):
        later = array(state, f"{CORRECTED}{s.name}") - array(state, f"{SINCE}{s.name}")
        known[s.name] = p.tracer.name(s.name, array(state, carried_field(s.name)) + later)
    result = copy(p)
    result.seen = {**p.seen, **known}
    return (result if known else p), {carried_field(name): value for name, value in known.items()}


def _as_expected(p: Problem, known: State, levels: Mapping[str, Value]) -> tuple[Problem, State]:
    """View of the round, and what its state has of what is known before it, with levels as expected, and without those that are late."""
    if not levels:
        return p, known
    result, late = copy(p), {s.name for s in late_states(p.spec.canonical)}
    result.seen = {**{name: v for name, v in p.seen.items() if name not in late}, **levels}
    return result, {**known, **{carried_field(name): value for name, value in levels.items()}}


def _corrected(p: Problem) -> list[StreamRange]:
    """Values that count as something else until the feedback of their rounds comes."""
    canonical = p.spec.canonical
    return [s for s in canonical.carried if s.at_once is not None and s.at_once != s.following]


def _handed(left: State) -> State:
    return {f"{HANDED}{name}": value for name, value in left.items()}


def _own(state: State) -> State:
    """State of the rule alone."""
    more = (HANDED, SINCE, CORRECTED, OPEN, USUAL)
    return {n: v for n, v in state.items() if n not in (OBSERVED, BEGUN, OVER) and not n.startswith(more)}
