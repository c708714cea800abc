"""Values that a round hands to the next where feedback is late: known with its decision, none waits for the feedback.

Learners take turns, and round t + 1 is that of another one than round t (`lowering.learning_together`). So each keeps, once it has decided,
what its round leaves: the decision, and states that follow from decisions, contexts and what the round before left. The learner of the next
round takes it before it decides (`Program.handed`). Rounds whose feedback never comes were decided too, and hand on what they left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from oco.compiler.ir.program import HANDED
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import Informed, Rule, State
from oco.compiler.proximal.known_step import kept_after, kept_at_start


class HandingOn:
    """Any rule with values that rounds leave to the next, as that of one of the learners in turn.

    informed  whether the rule itself prepares the decision of a round
    more      symbols of its state that are of the round before, each with the symbol of this round's values once it is prepared
    """

    def __init__(self, rule: Rule, informed: bool, more: Mapping[str, str]) -> None:
        self.rule, self.informed, self.more = rule, informed, more

    def init(self, p: Problem, start: Point) -> State:
        """State before the first round, which was left what the model says."""
        own = self.rule.init(p, start)
        left = {**kept_at_start(p, start), **{name: own[name] for name in self.more if name in own}}
        return {**own, **_handed(left)}

    def decide(self, p: Problem, state: State) -> Point:
        """Decision of the round."""
        return self.rule.decide(p, _own(state))

    def prepare(self, p: Problem, state: State) -> State:
        """State with the decision of this round, and with what it leaves to the next."""
        own = _own(state)
        after = cast(Informed, self.rule).prepare(p, own) if self.informed else own
        p.note("what this round leaves to the next")
        left = kept_after(p, self.rule.decide(p, after))
        left |= {name: after[now] for name, now in self.more.items() if name in after}
        return {**after, **_handed(left)}

    def update(self, p: Problem, state: State) -> State:
        """State after the round: what it left stays."""
        return {**self.rule.update(p, _own(state)), **{n: v for n, v in state.items() if n.startswith(HANDED)}}


def _handed(left: State) -> State:
    return {f"{HANDED}{name}": value for name, value in left.items()}


def _own(state: State) -> State:
    return {name: value for name, value in state.items() if not name.startswith(HANDED)}
