"""Value of what a round leaves for those to come: in stores that decisions fill at once, and of what they order for others."""

from __future__ import annotations

from oco.compiler.algorithms.costs_to_come import filling
from oco.compiler.algorithms.position_value import SYMBOLS as POSITION_SYMBOLS
from oco.compiler.algorithms.position_value import PositionValue
from oco.compiler.algorithms.stored_value import SYMBOLS as STORE_SYMBOLS
from oco.compiler.algorithms.stored_value import StoredValue
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, joined

SYMBOLS = joined(STORE_SYMBOLS, POSITION_SYMBOLS)


class ValueLeft:
    """Values of all stores of a round's problem."""

    def __init__(self, p: Problem) -> None:
        self.p, self.parts = p, (StoredValue(p), PositionValue(p))
        self.stores = tuple(s for part in self.parts for s in part.stores)

    def init(self) -> State:
        """State before the first round, in which nothing that is left has a value."""
        return joined(*(part.init() for part in self.parts))

    def viewed(self, state: State) -> Problem:
        """View of the round whose loss is less the value of what is left."""
        first, second = self.parts
        return second.viewed(first.viewed(state), state)

    def filling(self) -> Problem:
        """View of the round whose loss pays nothing for what is missing in stores, or too much."""
        return filling(self.p)

    def prepared(self, state: State) -> State:
        """State with the value of what this round may leave, from what is in store."""
        first, second = self.parts
        return {**first.prepared(state), **second.prepared(state)}

    def update(self, state: State, played: Point, slope: Point) -> State:
        """State after a round with the decision `played`, where the penalised loss had this slope, in units of the rule."""
        first, second = self.parts
        return {**first.update(state, played, slope), **second.update(state, played, slope)}
