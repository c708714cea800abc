"""The model in the form that every later stage reads: minimize f, g <= 0, h = 0, with params folded to constants.

Lets stand where they are used (one shared node each), `a >= b` is `b - a <= 0`, and everything that is known before the first round
is a constant. Decisions and streams keep their names; the round `t` stays symbolic.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from oco.compiler.problem.constraint_parts import difference, penalties_of
from oco.compiler.problem.cuts import steps_each
from oco.compiler.problem.equalities import both_sides, has_multipliers
from oco.compiler.problem.expanded_products import with_products_expanded
from oco.compiler.problem.families import Families, families
from oco.compiler.problem.feedback_delay import delay_of, with_late_states
from oco.compiler.problem.fixed_rows import can_be_kept, with_fixed
from oco.compiler.problem.folding import Folding
from oco.compiler.problem.known_constraints import KnownBefore
from oco.compiler.problem.opposed_kinks import ranges_of, with_kinks_joined
from oco.compiler.problem.parts import Assumed as Assumed
from oco.compiler.problem.parts import DecisionBlock as DecisionBlock
from oco.compiler.problem.parts import Equality as Equality
from oco.compiler.problem.parts import Inequality as Inequality
from oco.compiler.problem.parts import entry_labels as entry_labels
from oco.compiler.problem.previous import (
    moving_loss,
    of_previous,
    previous_streams,
    refuse_elsewhere,
    standing_still,
)
from oco.compiler.problem.shares import kept_for_learning
from oco.compiler.problem.stated_predictions import NO_LOOKAHEAD, Lookahead, stated_predictions
from oco.compiler.problem.stream_ranges import StreamRange as StreamRange
from oco.compiler.problem.stream_ranges import stream_range
from oco.compiler.problem.structure import Structure, structure_of
from oco.compiler.problem.totals import timed, with_free_decision
from oco.compiler.problem.whole_decisions import REMARK, check_rounded
from oco.dsl.build import call
from oco.dsl.diagnostics import Findings, fail
from oco.dsl.expressions import Expr, Kind, changes, names
from oco.dsl.labels import Axes
from oco.dsl.limits import check_entries
from oco.dsl.model import Model
from oco.dsl.records import dataclass
from oco.dsl.statements import Decision, Feedback, Measure, Relation, Timing

Floats = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Canonical:
    """The problem of one round: minimize `objective` over the blocks, subject to inequalities and equalities in the order of the text,
    the known ones last.

    `known` holds the known inequalities where they are apart from the others (`learned`), `previous` the previous decisions as streams,
    `moving` the loss over them where it has some: in `objective` they are the decision itself. `predictions` has the stated prediction of
    each stream that has one, `lookahead` those of rounds to come, `statistics` the streams that these use beside contexts. `horizon` is
    None where the model says that it is unknown, and `reads_horizon` tells whether other fields depend on it; feedback comes `delay`
    rounds later at most. `unscaled` is the problem in the user's units where this one is in others, `seasons` are those of the data that
    margins try, where they are known.
    """

    model: Model
    horizon: int | None
    blocks: tuple[DecisionBlock, ...]
    streams: tuple[StreamRange, ...]
    objective: Expr
    inequalities: tuple[Inequality, ...]
    equalities: tuple[Equality, ...]
    assumptions: tuple[Assumed, ...] = ()
    unscaled: Canonical | None = None
    known: tuple[Inequality, ...] = ()
    previous: tuple[StreamRange, ...] = ()
    moving: Expr | None = None
    delay: int = 0
    predictions: tuple[tuple[str, Expr], ...] = ()
    lookahead: Lookahead = NO_LOOKAHEAD
    statistics: tuple[StreamRange, ...] = ()
    reads_horizon: bool = True
    seasons: tuple[int, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Hash of all fields, worked out once: caches ask for it often, and models have thousands of constraints."""
        return hash(tuple(getattr(self, f.name) for f in fields(self)))

    def with_horizon(self, rounds: int) -> Canonical:
        """Canonical problem of the model for so many rounds, made anew only where its parts depend on their number."""
        if rounds == self.horizon:
            return self
        model = self.model.with_horizon(rounds)
        return canonical(model, self.seasons) if self.reads_horizon else replace(self, model=model, horizon=rounds)

    def with_seasons(self, seasons: tuple[int, ...]) -> Canonical:
        """Canonical problem whose margins try seasons that were measured on data, in rounds; this one where it has no margins."""
        margins = any(c.margin is not None for c in self.inequalities)
        return canonical(self.model, seasons) if margins and seasons != self.seasons else self

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model.name

    @property
    def measure(self) -> Measure:
        """Measure of the model: what regret compares with."""
        return self.model.measure

    @property
    def feedback(self) -> Feedback:
        """Feedback that a round reveals."""
        return self.model.feedback

    @property
    def learner_rounds(self) -> int | None:
        """Rounds that one learner plays, at most: under delays as many learners take turns as rounds are open at once."""
        return None if self.horizon is None else -(-self.horizon // (self.delay + 1))

    @property
    def constraints(self) -> tuple[Inequality | Equality, ...]:
        """All constraints: the inequalities, then the equalities on average."""
        return (*self.inequalities, *self.equalities)

    @cached_property
    def learned(self) -> Canonical:
        """Problem that an algorithm sees: the known inequalities stand apart, since each decision satisfies them."""
        joins = bool(self.previous) and len(self._own_streams) == len(self.streams)
        if not joins and self.moving is None and not any(c.known for c in self.inequalities):
            return self
        inequalities, known = (tuple(c for c in self.inequalities if c.known is known) for known in (False, True))
        moving = tuple(c.before_round for c in known)
        return replace(self, inequalities=inequalities, known=moving, streams=(*self._own_streams, *self.previous))

    @cached_property
    def keeping_fixed(self) -> Canonical:
        """Problem in which fixed constraints of each round are known, too, as far as their nearest points are found."""
        kept = [can_be_kept(c, self.model, self.blocks) for c in self.inequalities]
        if not any(kept):
            return self
        fixed = tuple(replace(c, known=True) for c, k in zip(self.inequalities, kept) if k)
        others = tuple(c for c, k in zip(self.inequalities, kept) if not k)
        return replace(self, inequalities=others, known=(*fixed, *self.known))

    @cached_property
    def whole(self) -> Canonical:
        """Problem with all constraints, as it is measured: what is over previous decisions over what these were, margins left out."""
        known = (c.as_measured for c in self.known)
        return (self if not self.known else replace(self, inequalities=(*self.inequalities, *known), known=())).played

    @cached_property
    def played(self) -> Canonical:
        """Problem whose loss is over previous decisions where it has some: `learned` once these are known."""
        return self if self.moving is None else replace(self, objective=self.moving)

    @cached_property
    def standing(self) -> Canonical:
        """Problem with all constraints in which no decision moves, as comparators see it; `learned` of it is this one again."""
        if not self.known and self.moving is None and len(self._own_streams) == len(self.streams):
            return self
        still = tuple(c.in_hindsight for c in self.known)
        return replace(self, inequalities=(*self.inequalities, *still), known=(), streams=self._own_streams)

    @property
    def _own_streams(self) -> tuple[StreamRange, ...]:
        """Streams of the model itself."""
        added = {s.name for s in self.previous}
        return tuple(s for s in self.streams if s.name not in added)

    @cached_property
    def predicting(self) -> Canonical:
        """Problem with the statistics of stated predictions as values that rounds leave to the next."""
        more = tuple(s for s in self.statistics if s not in self.streams)
        return replace(self, streams=(*self.streams, *more), statistics=())

    @cached_property
    def context(self) -> tuple[str, ...]:
        """Names of the streams that are known before the decision."""
        return tuple(s.name for s in self.revealed if s.stream.known)

    @cached_property
    def revealed(self) -> tuple[StreamRange, ...]:
        """Streams that data give: all but the values that rounds leave to the next."""
        return tuple(s for s in self.streams if s.following is None and not (s.stream.previous or s.expects))

    @cached_property
    def carried(self) -> tuple[StreamRange, ...]:
        """Values that rounds leave to the next: states, and beside learned constraints previous decisions and margins."""
        return tuple(s for s in self.streams if s.following is not None or s.stream.previous or s.expects)

    @cached_property
    def timed(self) -> bool:
        """True where loss, constraints, predictions or what rounds leave to the next are about the number of the round."""
        rows = (*(c.expr for c in (*self.inequalities, *self.known)), *(h.expr for h in self.equalities))
        rows += tuple(s.following for s in self.carried if s.following is not None)
        return any(names(e, Kind.ROUND) for e in (self.objective, *rows, *(e for _, e in self.predictions)))

    @cached_property
    def size(self) -> int:
        """Number of entries of a decision, all blocks together."""
        return sum(int(np.prod(b.shape, dtype=np.int64)) for b in self.blocks)

    @cached_property
    def fixed(self) -> bool:
        """True if no inequality changes from round to round."""
        return not any(changes(c.expr) for c in self.inequalities)

    @cached_property
    def structure(self) -> tuple[Structure, str]:
        """Structure of the inequalities in the decisions, and the label of the first that is no better (`structure_of`)."""
        return structure_of([(c.origin, c.expr) for c in self.inequalities], tuple(b.name for b in self.blocks))

    @cached_property
    def families(self) -> Families:
        """The inequalities with like ones as one, for what is done to all of them at once."""
        return families([c.expr for c in self.inequalities])

    @cached_property
    def revealed_on_average(self) -> tuple[str, ...]:
        """The inequalities, as they are named in the model, that data enters and that bind on average only."""
        loose = (c.origin for c in self.inequalities if c.timing is Timing.ON_AVERAGE and names(c.expr, Kind.STREAM))
        return tuple(dict.fromkeys(loose))

    def each_round(self) -> Canonical:
        """Problem whose inequalities all bind in each round, those on average included."""
        return replace(self, inequalities=tuple(replace(c, timing=Timing.EACH_ROUND) for c in self.inequalities))

    def as_inequalities(self) -> Canonical:
        """Problem without equalities: each is two inequalities on average, after the others."""
        pairs = [
            both_sides(c.label, c.shape, (c.expr, call("neg", c.expr)), Timing.ON_AVERAGE, c.span, c.penalties)
            for c in self.equalities
        ]
        return replace(self, inequalities=(*self.inequalities, *(c for pair in pairs for c in pair)), equalities=())

    @cached_property
    def constraint_labels(self) -> tuple[str, ...]:
        """One label for each entry of the inequalities: `service`, `limits[0]`, `limits[1]`."""
        return tuple(label for c in self.inequalities for label in entry_labels(c.label, c.shape))

    @cached_property
    def equality_labels(self) -> tuple[str, ...]:
        """One label for each entry of the equalities."""
        return tuple(label for c in self.equalities for label in entry_labels(c.label, c.shape))

    @cached_property
    def constraint_names(self) -> tuple[str, ...]:
        """Labels of the entries of the inequalities as people read them: `limits[NYC]` where an index names the entries."""
        return tuple(name for c in self.inequalities for name in self._named(c.label, c.origin, c.shape))

    @cached_property
    def equality_names(self) -> tuple[str, ...]:
        """Labels of the entries of the equalities as people read them."""
        return tuple(name for c in self.equalities for name in self._named(c.label, c.label, c.shape))

    def names_of(self, c: Inequality | Equality) -> tuple[str, ...]:
        """Names of the entries of a constraint in the user's model: both halves of an equality of each round are the equality."""
        origin = c.origin or c.label if isinstance(c, Inequality) else c.label
        return self._named(origin, origin, c.shape)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Guarantee of each constraint in a share of the rounds, and what none is of: words beside the guarantee of an algorithm."""
        every = (*self.inequalities, *self.known)
        words = [f"{c.origin}, {c.when}: {c.learned.words}" for c in every if c.learned is not None]
        if states := [s.name for s in self.streams if s.stream.following is not None]:
            words.append(f"what a decision leaves to later rounds in {', '.join(states)} is not part of the regret")
        if late := [s.name for s in self.streams if s.expected]:
            words.append(
                f"decisions rest on what is expected of {', '.join(late)}, and feedback comes in the order of the rounds"
            )
        if drawn := [b.name for b in self.blocks if b.rounded]:
            words.append(REMARK.format(f"{', '.join(drawn)} {'is' if len(drawn) == 1 else 'are'}"))
        return tuple(words)

    def _named(self, label: str, origin: str, shape: tuple[int, ...]) -> tuple[str, ...]:
        if not shape:
            return (label,)
        constraint = any(c.label == origin for c in self.model.constraints)
        axes = self.model.axes_of_constraint(origin) if constraint else self.model.axes(origin.split(".")[0])
        return entry_labels(label, shape, axes)

    @cached_property
    def axes(self) -> dict[str, Axes]:
        """Names of the entries of decisions and streams, where an index gives them."""
        names = (*(d.name for d in self.model.decisions), *(s.name for s in self.model.streams))
        return {name: axes for name in names if (axes := self.model.axes(name))}


def canonical(model: Model, seasons: tuple[int, ...] = ()) -> Canonical:
    """Bring a model, whose data may have seasons of so many rounds, into canonical form.

    Raises OcoError where a param has no value, a bound or domain is not acceptable, or a round has no entry of what it indexes.
    """
    folding, findings = Folding(model, seasons), Findings()
    stated = _stated_objective(model)
    blocks, made, steps = list[DecisionBlock](), list[StreamRange](), steps_each(model)
    for decision in model.decisions:
        with findings.guard():
            blocks.append(_block(decision, folding, steps))
    for stream in model.streams:
        with findings.guard():
            made.append(stream_range(stream, folding))
    findings.raise_if_any()
    drawn, delay = {s.name for s in made if s.stochastic}, delay_of(model, folding)
    streams, expected = with_late_states(made, delay, folding.declared)
    predicted = stated_predictions(model, folding, streams, late=delay > 0)
    decisions, every = tuple(b.name for b in blocks), (*streams, *expected)
    inequalities, equalities = list[Inequality](), list[Equality]()
    for c in model.constraints:
        shape, left, right = folding.shape(c.shape, c.span), folding.fold(c.left), folding.fold(c.right)
        above, below = difference(left, right), difference(right, left)
        penalties = penalties_of(c, folding, shape)
        if c.relation is Relation.EQ and c.timing is Timing.ON_AVERAGE and has_multipliers(model, above, drawn):
            equalities.append(Equality(c.label, shape, above, c.span, penalties))
        elif c.relation is Relation.EQ:
            inequalities += both_sides(c.label, shape, (above, below), c.timing, c.span, penalties)
        else:
            g = _composed(above if c.relation is Relation.LE else below, decisions, every)
            own = Inequality(c.label, shape, g, c.timing, c.label, c.span, penalties)
            inequalities.append(timed(own, c, folding, blocks, every, predicted.of, delay))
    objective = _composed(folding.fold(stated), decisions, every)
    carried = [s.following for s in streams if s.following is not None]
    before = previous_streams(blocks, [objective, *carried, *predicted.exprs, *(c.expr for c in inequalities)], model)
    fields = {name: s.name for name, s in before.items()}
    inequalities = KnownBefore(model, before, blocks, streams).applied(inequalities, folding)
    kept = (*before.values(), *expected, *kept_for_learning(inequalities, predicted.statistics))
    inequalities = with_free_decision(with_fixed(inequalities, model, blocks), folding, blocks, (*streams, *kept))
    moving = moving_loss(model, objective, fields)
    refuse_elsewhere([*carried, *(c.expr for c in equalities)], [(c.expr, c.timing) for c in inequalities])
    check_rounded(blocks, objective, [*inequalities, *equalities], model.feedback)
    return Canonical(
        model,
        folding.stated_horizon,
        tuple(blocks),
        streams,
        objective if moving is None else standing_still(objective),
        tuple(inequalities),
        tuple(equalities),
        tuple(Assumed(a.key, a.relation, folding.number(a.value, a.key), a.span) for a in model.assumptions),
        previous=kept,
        moving=moving,
        delay=delay,
        predictions=tuple((n, of_previous(e, fields)) for n, e in predicted.of.items()),
        lookahead=replace(predicted.ahead, of=tuple((n, of_previous(e, fields)) for n, e in predicted.ahead.of)),
        statistics=predicted.statistics,
        reads_horizon=folding.reads_horizon,
        seasons=seasons,
    )


def _composed(function: Expr, decisions: tuple[str, ...], streams: tuple[StreamRange, ...]) -> Expr:
    """Function in a form whose curvature composition sees where it can, of equal value."""
    return with_kinks_joined(with_products_expanded(function, ranges_of(streams)), decisions, streams)


def _stated_objective(model: Model) -> Expr:
    """Loss as it is written. Raises OCO207 where there is none, and what `check_entries` raises."""
    if model.objective is None:
        raise fail("OCO207", "the model has nothing to minimize", model.span, "add a line: minimize EXPRESSION")
    check_entries(model)
    return model.objective


def _block(decision: Decision, folding: Folding, steps: int) -> DecisionBlock:
    shape = folding.shape(decision.shape, decision.span)
    for argument in decision.domain.args:
        folding.fold(argument)  # names a param without a value
    domain = folding.sets.made(decision.domain, shape, folding.values, steps)
    if decision.domain.cuts:
        cuts = decision.domain.cuts
        sides = [(difference(folding.fold(c.left), folding.fold(c.right)), c.relation, c.span) for c in cuts]
        domain = folding.sets.narrowed(domain, decision.name, sides, steps)
    return DecisionBlock(decision.name, shape, domain, decision.span, decision.domain.rounded)
