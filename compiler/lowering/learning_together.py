"""Delayed feedback: learners in turn that learn together, so that what a round teaches is known to all of them.

Round t is that of learner (t - 1) mod (d + 1), which decides round t + d + 1 when the feedback of round t has come. A state is made of
what is its own, as decisions, and of what all have in common, as averages of the data: before a learner observes a round it takes what is
in common from the one that observed last. So a decision rests on the rounds that were observed before its learner's last one and on that,
and feedback of any order may be observed at any time: as d + 1 rounds are open at most, round t never waits for one after t - d - 1.
"""

from __future__ import annotations

from typing import cast

from oco.compiler.ir.program import NUMBER, OBSERVED
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import Informed, Rule, State, array, joined

SYMBOLS = {
    NUMBER: "the number of this round among those of all learners in turn",
    OBSERVED: "the rounds that all learners in turn observed",
}


class LearningTogether:
    """Any rule that takes feedback `count` - 1 rounds late, as one of so many learners."""

    def __init__(self, rule: Informed, count: int) -> None:
        self.rule, self.count = rule, count

    def init(self, p: Problem, start: Point) -> State:
        """State before the first round of the first learner; those of the others have other numbers."""
        first, none = p.tracer.lift(1), p.tracer.lift(0)
        return joined(self.rule.init(p.in_turn(self.count, first, none), start), {NUMBER: first, OBSERVED: none})

    def decide(self, p: Problem, state: State) -> Point:
        """Decision of the round."""
        return self.rule.decide(self._in_turn(p, state), _own(state))

    def prepare(self, p: Problem, state: State) -> State:
        """State with the decision of this round, once its contexts are known."""
        return {**self.rule.prepare(self._in_turn(p, state), _own(state)), **_kept(state)}

    def update(self, p: Problem, state: State) -> State:
        """State after the round."""
        after = self.rule.update(self._in_turn(p, state), _own(state))
        return {**after, NUMBER: array(state, NUMBER) + self.count, OBSERVED: array(state, OBSERVED) + 1}

    def _in_turn(self, p: Problem, state: State) -> Problem:
        return p.in_turn(self.count, array(state, NUMBER), array(state, OBSERVED))


class LearningAlone:
    """Any rule as one of `count` learners in turn, each of which learns of its own rounds: it knows their numbers among those of all."""

    def __init__(self, rule: Rule, count: int) -> None:
        self.rule, self.count = rule, count

    def init(self, p: Problem, start: Point) -> State:
        """State before the first round of the first learner; those of the others have other numbers."""
        return joined(self.rule.init(p, start), {NUMBER: p.tracer.lift(1)})

    def decide(self, p: Problem, state: State) -> Point:
        """Decision of the round."""
        return self.rule.decide(_numbered(p, state), _unnumbered(state))

    def prepare(self, p: Problem, state: State) -> State:
        """State with the decision of this round, once its contexts are known."""
        prepared = cast(Informed, self.rule).prepare(_numbered(p, state), _unnumbered(state))
        return {**prepared, NUMBER: state[NUMBER]}

    def update(self, p: Problem, state: State) -> State:
        """State after the round."""
        after = self.rule.update(_numbered(p, state), _unnumbered(state))
        return {**after, NUMBER: array(state, NUMBER) + self.count}


def _numbered(p: Problem, state: State) -> Problem:
    return p.numbered(array(state, NUMBER))


def _unnumbered(state: State) -> State:
    return {name: value for name, value in state.items() if name != NUMBER}


def _kept(state: State) -> State:
    return {name: state[name] for name in SYMBOLS}


def _own(state: State) -> State:
    return {name: value for name, value in state.items() if name not in SYMBOLS}
