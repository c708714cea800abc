"""Base of all algorithms: theorems and the update rule, which is written once over traced points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from oco.compiler.ir.build import Named
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.round_problem import Draw, TraceSpec
from oco.compiler.lowering.rule import Rule
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.stores import stores
from oco.compiler.theory.theorems import Hypothesis, Theorem
from oco.dsl.records import dataclass
from oco.dsl.statements import Feedback


@dataclass(frozen=True)
class Algorithm:
    """One row of the table of algorithms.

    name          as `using` writes it; its settings are in `dsl.settings.SETTINGS`
    cite          paper and listing
    theorems      in order of preference: the first whose hypotheses hold speaks for the algorithm
    requirements  what the rule needs of the model beside the theorems (an exact solver of its subproblem), asked first
    reads         the least feedback from which the rule can work; None: gradients, and functions for a theorem of hard violation
    cost          what a round costs, in words; `cost_rank` orders algorithms where guarantees tie
    baseline      shipped to compare with: chosen only for a number that says something, or where nothing else applies
    symbols       what the state's variables are, for the reader of generated code
    multipliers   those that weigh constraints against the loss; other queues add up values of constraints
    draws         the random arrays of a round, for a problem and its settings
    adapts        its steps follow the gradients that come: bounds of losses and constraints change no decision
    mixes         it weighs rules as the rounds come: on data, and where no guarantee says something, it goes before pilot runs
    gap           what is weighed less that of the best expert, at most, from the fields of a state; None where no experts are weighed
    departures    in what the rule or its settings are not the paper's
    plays         the point of its state that is its decision, where its update goes on from that: known constraints may move it
    prepares      whether its rule waits for what is known before the decision of a round, and keeps to the known constraints itself
    keeps_fixed   whether its rule keeps to fixed constraints of each round from the first one, as to those that contexts give
    hands         symbols of its state that are of the round before, each with the symbol of this round's values once it is prepared
    shared        symbols of its state that learners in turn have in common under delayed feedback; none: each learns alone
    predicts      whether its rule takes the predictions that the model states
    balances      whether its rule prices equalities on average, although its theorems are about violations of each round
    sees_round    whether its rule minimizes the loss of the round, which is known before the decision
    values_left   whether its rule values what a round leaves in stores for the rounds to come
    reads_draws   whether its rule reads the loss of the extreme point that was drawn in the place of its decision
    promises      whether a theorem promises anything of it, on some model
    frank_wolfe   whether the rule adds up linear minimisers and gradients alone, so that large matrices can be kept as factors
    """

    name: str
    title: str
    cite: str
    rule: type[Rule]
    theorems: tuple[Theorem, ...]
    cost: str
    cost_rank: int = 1
    requirements: tuple[Hypothesis, ...] = ()
    baseline: bool = False
    symbols: Mapping[str, str] = field(default_factory=dict)
    multipliers: tuple[str, ...] = ()
    reads: Feedback | None = None
    adapts: bool = False
    mixes: bool = False
    draws: Callable[[TraceSpec], tuple[Draw, ...]] = lambda spec: ()
    gap: Callable[[TraceSpec, Tracer, Named], Value] | None = None
    departures: tuple[str, ...] = ()
    plays: str = ""
    prepares: Callable[[Canonical], bool] = lambda canonical: False
    keeps_fixed: bool = False
    hands: Mapping[str, str] = field(default_factory=dict)
    shared: tuple[str, ...] = ()
    predicts: bool = False
    balances: bool = False
    sees_round: bool = False
    values_left: bool = False
    promises: bool = True
    frank_wolfe: Callable[[TraceSpec], bool] = lambda spec: False
    reads_draws: bool = False

    @property
    def looks_ahead(self) -> bool:
        """True where its rule uses what is known of a round before the decision, beside known constraints."""
        return self.predicts or self.sees_round

    def gap_on(self, canonical: Canonical) -> Callable[[TraceSpec, Tracer, Named], Value] | None:
        """`gap`, where it is of losses alone: None where what is left in stores has a value beside them."""
        return None if self.values_left and stores(canonical) else self.gap

    @property
    def reads_values_alone(self) -> bool:
        """True where its rule reads no gradients, whatever the feedback reveals."""
        return self.reads is not None and self.reads.gives_values_alone
