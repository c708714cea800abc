"""Assembly of a model from typed parts. The text, the builder and new values for params all use it, so that they agree.

Each method checks its statement and keeps it, or raises. A name whose shape is valid stays declared even when something
else about it is wrong, so that one mistake is reported once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field, replace
from itertools import islice
from typing import Any

import numpy as np

from oco.dsl.assumptions import wrong_key
from oco.dsl.atoms.expression_names import describe
from oco.dsl.build import call
from oco.dsl.checks import check_decides, check_distribution, check_domain, check_first, check_timing
from oco.dsl.diagnostics import MOST_MISTAKES, OcoError, fail
from oco.dsl.dims import Shape, broadcast, show
from oco.dsl.expressions import Expr, File, Kind, constant, names, rewrite, written_out
from oco.dsl.fact_keys import FUNCTION_FACTS, MODEL_FACTS, catalogue, of_the_whole
from oco.dsl.formulas import check_using
from oco.dsl.keyed import by_name, index_names
from oco.dsl.labels import axes_of, checked_names
from oco.dsl.limits import FACTORED, LONGEST, MOST_FACTORED, MOST_NUMBERS
from oco.dsl.model import Model
from oco.dsl.records import dataclass
from oco.dsl.scope import Scope, check_fixed, check_new_label, check_new_name, kind_of
from oco.dsl.source import Span
from oco.dsl.statements import (
    Assumption,
    Constraint,
    Cut,
    Decision,
    Distribution,
    DomainSpec,
    Feedback,
    Horizon,
    Let,
    Measure,
    Param,
    Prediction,
    Relation,
    Stream,
    Timing,
    Using,
)
from oco.dsl.suggest import did_you_mean
from oco.dsl.values import (
    check_count,
    check_range,
    entry,
    fixed_value,
    given_value,
    is_known,
    param_value,
    shown,
    wrong_shape,
)

Bounds = tuple[Expr, Expr] | None


@dataclass
class Assembly:
    """Model under construction."""

    scope: Scope
    name: str = ""
    span: Span | None = None
    horizon: Horizon | None = None
    params: list[Param] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    lets: list[Let] = field(default_factory=list)
    objective: Expr | None = None
    maximized: bool = False
    constraints: list[Constraint] = field(default_factory=list)
    predictions: list[Prediction] = field(default_factory=list)
    chosen_measure: Measure = Measure.STATIC
    chosen_feedback: Feedback = Feedback.FULL
    chosen_delay: Expr | None = None
    assumptions: list[Assumption] = field(default_factory=list)
    chosen_algorithm: Using | None = None

    # declarations

    def set_horizon(self, rounds: Expr | None, span: Span | None) -> None:
        """Set the horizon: `horizon T = rounds`, or unknown."""
        if rounds is not None:
            value = fixed_value(self.scope, rounds, "the horizon")
            if rounds.shape != ():
                raise fail(
                    "OCO323",
                    f"the horizon is one number of rounds; here it has shape {show(rounds.shape)}",
                    rounds.span,
                )
            if value is not None and (value < 1 or value != int(value) or value > 2**62):
                raise fail(
                    "OCO323",
                    f"the horizon must be an integer number of rounds from 1 on; here it is {value.item()!r}",
                    rounds.span,
                    "`horizon T unknown` where the number of rounds is not known",
                )
            if value is not None and value > LONGEST:
                raise fail(
                    "OCO323",
                    f"the horizon is at most {LONGEST:,} rounds; here it is {int(value):,}",
                    rounds.span,
                    "give the most that is allowed: after it a learner goes on with its settings",
                )
            self.scope.horizon = None if value is None else int(value)
        self.horizon = Horizon(rounds, span)

    def param(
        self, name: str, dims: tuple[Expr, ...], bounds: Bounds, integer: bool, value: Expr | None, span: Span | None
    ) -> None:
        """Add `param name[dims] in bounds = value`; a value from the caller replaces the one written."""
        scope = self.scope
        check_new_name(scope, name, Kind.PARAM, span)
        shape = self._shape(dims, f"`{name}`")
        check_count(shape, f"`{name}`", span)
        axes = axes_of(dims, scope.indexes)
        if name in scope.given:
            value = given_value(name, by_name(name, scope.given[name], axes, span), span, bounds is not None)
        whole = integer if bounds is not None else value is not None and value.integer
        param = Param(name, dims, shape, bounds, value, whole, None, span)
        if shape:
            scope.declare(param)
        if bounds is not None:
            check_range(scope, bounds, shape, f"`{name}`", integer)
        if value is not None:
            check_fixed(value, f"the value of `{name}`")
            fits = not is_known(value.shape) or not is_known(shape) or value.shape in (shape, ())
            if not isinstance(value, File) and not fits:
                raise wrong_shape(name, shape, value.shape, value)
        data = param_value(scope, param, axes)
        if data is not None:
            data.setflags(write=False)
            scope.learn(name, data)
            param = replace(param, data=data)
        scope.declare(param)
        self.params.append(param)

    def index(self, name: str, names: Sequence[Any] | None, file: File | None, span: Span | None) -> None:
        """Add `index name = [names]`, or with the names in a column of a file; names from the caller replace them."""
        scope = self.scope
        check_new_name(scope, name, Kind.PARAM, span)
        if name in scope.given:
            names, file = scope.given[name], None
            if isinstance(names, (str, bytes)) or not hasattr(names, "__iter__"):
                message = f"`{name}` is an index, and what is given for it is no list of names"
                raise fail("OCO218", message, span, f'give {{"{name}": ["NYC", "WEST"]}}')
            names = list(names)
        if file is not None:
            names = index_names(scope, name, file)
        labels = () if names is None else checked_names(name, names, span)
        check_count((len(labels),), f"`{name}`", span)
        value = file or (constant(len(labels), span) if labels else None)
        param = Param(name, (), (), None, value, True, None, span, labels, True)
        if labels:
            scope.indexes[name] = labels
            data = np.array(len(labels))
            data.setflags(write=False)
            scope.learn(name, data)
            param = replace(param, data=data)
        scope.declare(param)
        self.params.append(param)

    def decision(self, name: str, dims: tuple[Expr, ...], domain: DomainSpec, span: Span | None) -> None:
        """Add `decision name[dims] in domain`."""
        check_new_name(self.scope, name, Kind.DECISION, span)
        decision = Decision(name, dims, self._shape(dims, f"`{name}`"), domain, span)
        self.scope.declare(decision)
        check_count(decision.shape, f"`{name}`", span, MOST_FACTORED if domain.kind in FACTORED else MOST_NUMBERS)
        check_domain(self.scope, decision)
        self.decisions.append(decision)

    def cut(self, name: str, left: Expr, relation: Relation, right: Expr, span: Span | None) -> None:
        """Add `with left relation right` to the domain of the decision."""
        known = {Kind.PARAM, Kind.DECISION}
        for side in (left, right):
            if self.scope.kinds_in(side) - known or set(names(side, Kind.DECISION)) - {name}:
                message = f"what narrows the domain of `{name}` is known before the first round: it has params and `{name}` in it"
                raise fail("OCO419", message, side.span, "write what changes from round to round below `subject to`")
        if not any(name in names(side, Kind.DECISION) for side in (left, right)):
            raise fail("OCO419", f"this does not contain `{name}`, so it narrows nothing", span)
        call("sub", left, right, span=span)  # the shapes fit
        place = next(k for k, d in enumerate(self.decisions) if d.name == name)
        domain = self.decisions[place].domain
        cuts = (*domain.cuts, Cut(left, relation, right, span))
        self.decisions[place] = replace(self.decisions[place], domain=replace(domain, cuts=cuts))

    def reserve(self, kind: Kind, name: str, dims: tuple[Expr, ...], integer: bool, span: Span | None) -> None:
        """Declare a param or a decision of which only the shape could be read, so that its uses are still checked."""
        check_new_name(self.scope, name, kind, span)
        shape = self._shape(dims, f"`{name}`")
        if kind is Kind.DECISION:
            self.scope.declare(Decision(name, dims, shape, DomainSpec("box"), span))
        elif shape:  # a number may stand in shapes, so that its value matters
            self.scope.declare(Param(name, dims, shape, None, None, integer, None, span))

    def stream(
        self,
        name: str,
        dims: tuple[Expr, ...],
        bounds: Bounds = None,
        integer: bool = False,
        iid: bool = False,
        mean: Expr | None = None,
        distribution: Distribution | None = None,
        span: Span | None = None,
        values: tuple[float, ...] = (),
        known: bool = False,
    ) -> None:
        """Add `stream name[dims] in bounds`, `iid` or `~ distribution`; `values` and `known` as in `Stream`."""
        check_new_name(self.scope, name, Kind.STREAM, span)
        stream = Stream(
            name, dims, self._shape(dims, f"`{name}`"), bounds, integer, iid, mean, distribution, span, values, known
        )
        self.scope.declare(stream)
        check_count(stream.shape, f"`{name}`", span)
        if bounds is not None:
            check_range(self.scope, bounds, stream.shape, f"`{name}`", integer)
        check_distribution(self.scope, stream)
        if values and distribution is not None:
            message = f"`{name}` has a known distribution, which says what its values are"
            raise fail("OCO427", message, span, "leave out the set of values, or the distribution")
        if iid and distribution is not None:
            raise fail("OCO427", f"`{name}` has a known distribution, so it is iid already", span, "leave out `iid`")
        if mean is not None:
            self._check_mean(stream, mean)
        self.streams.append(stream)

    def state(self, name: str, dims: tuple[Expr, ...], bounds: Bounds, first: Expr, span: Span | None) -> None:
        """Add `state name[dims] ... in bounds start first`; `follow` says what a round leaves to the next."""
        check_new_name(self.scope, name, Kind.STREAM, span)
        shape = self._shape(dims, f"`{name}`")
        state = Stream(name, dims, shape, bounds, span=span, known=True, first=first)
        self.scope.declare(state)
        check_count(shape, f"`{name}`", span)
        if bounds is not None:
            check_range(self.scope, bounds, shape, f"`{name}`", False)
        check_first(self.scope, state, first)
        self.streams.append(state)

    def follow(self, name: str, following: Expr) -> None:
        """Set what a round leaves to the next of a state, abbreviations written out. Raises OCO529 where its shape is another."""
        place = next(k for k, s in enumerate(self.streams) if s.name == name)
        state = self.streams[place]
        if broadcast(following.shape, state.shape) != state.shape:
            message = f"`{name}` has shape {show(state.shape)}, and what follows it {show(following.shape)}"
            raise fail("OCO529", message, following.span, "give both one shape")
        lets = {let.name: let.value for let in self.lets}
        plain = rewrite(following, lambda e: written_out(e, lets))
        self.streams[place] = replace(state, following=plain)
        self.scope.declared[name] = self.streams[place]

    def let(self, name: str, value: Expr, span: Span | None) -> None:
        """Add `let name = value`."""
        check_new_name(self.scope, name, Kind.LET, span)
        let = Let(name, value, span)
        self.scope.declare(let)
        self.lets.append(let)

    def _shape(self, dims: tuple[Expr, ...], role: str) -> Shape:
        return tuple(self.scope.dim(d, f"a length of {role}") for d in dims)

    def _check_mean(self, stream: Stream, mean: Expr) -> None:
        role = f"the mean of `{stream.name}`"
        if broadcast(mean.shape, stream.shape) != stream.shape:
            raise fail("OCO322", f"{role} has shape {show(mean.shape)}, the stream {show(stream.shape)}", mean.span)
        value = fixed_value(self.scope, mean, role)
        if value is None or stream.bounds is None:
            return
        low, high = (fixed_value(self.scope, b, f"the range of `{stream.name}`") for b in stream.bounds)
        if low is not None and high is not None and not ((low <= value) & (value <= high)).all():
            at = tuple(
                np.argwhere(
                    ~np.broadcast_to(
                        (low <= value) & (value <= high), np.broadcast_shapes(low.shape, value.shape, high.shape)
                    )
                )[0]
            )
            raise fail(
                "OCO428",
                f"{entry(role, at)} is {shown(value, at)}, outside [{shown(low, at)}, {shown(high, at)}]",
                mean.span,
            )

    # what is wanted

    def minimize(self, objective: Expr, maximized: bool = False) -> None:
        """Set `minimize objective`, or `maximize objective`: a scalar that depends on a decision."""
        if objective.shape:
            message = (
                f"the objective must be one number; {describe(objective, 'this')} has shape {show(objective.shape)}"
            )
            raise fail("OCO324", message, objective.span, "add its entries up: sum(...)")
        if self.decisions and Kind.DECISION not in self.scope.kinds_in(objective):
            raise fail("OCO521", "the objective contains no decision, so every decision costs the same", objective.span)
        self.objective = call("minus", objective, span=objective.span, shape=None) if maximized else objective
        self.maximized = maximized

    def constraint(
        self,
        label: str,
        left: Expr,
        relation: Relation,
        right: Expr,
        timing: Timing,
        label_span: Span | None,
        span: Span | None,
        penalty: Expr | None = None,
        percent: float | None = None,
    ) -> None:
        """Add `label: left relation right timing, penalty p`, or with `in percent% of rounds` as its timing."""
        check_new_label(self.scope, label, label_span)
        self.scope.labels[label] = label_span
        shape = call("sub", left, right, span=span).shape
        if self.decisions:
            check_decides(self.scope, label, (left, right), span)
        if penalty is not None:
            check_fixed(penalty, "a penalty")
            if penalty.shape and penalty.shape != shape:
                message = f"the penalty of `{label}` has shape {show(penalty.shape)}, the constraint {show(shape)}"
                raise fail("OCO527", message, penalty.span, "write one number, or one for each entry")
        check_timing(timing, label, relation, penalty, percent, span)
        self.constraints.append(Constraint(label, left, relation, right, timing, shape, penalty, span, percent))

    def assume(self, key: str, relation: Relation, value: Expr, key_span: Span | None, span: Span | None) -> None:
        """Add `assume key relation value`; keys are checked when all labels are known, by `check_assumptions`."""
        check_fixed(value, "the bound in an assumption")
        if relation is Relation.EQ:
            raise fail("OCO653", "an assumption is a bound: `<=` or `>=`", span)
        if any(a.key == key for a in self.assumptions):
            raise fail("OCO652", f"`{key}` is assumed twice", key_span, "keep one of the two")
        self.assumptions.append(Assumption(key, relation, value, key_span))

    def assume_claim(self, key: str, span: Span | None) -> None:
        """Add `assume key`: that a fact of the yes-or-no kind holds. Raises OCO653 for a fact that is a number."""
        numeric = {f.key: f.relation for f in (*FUNCTION_FACTS, *MODEL_FACTS) if f.relation}
        plain = of_the_whole(key)
        relation = next((r for k, r in numeric.items() if plain == k or plain.endswith(f".{k}")), "")
        if relation:
            message = f"`{key}` is a number: an assumption about it is a bound"
            raise fail("OCO653", message, span, f"write `assume {key} {relation} ...`")
        self.assume(key, Relation.GE, constant(1.0), span, span)

    def using(self, algorithm: str | None, settings: tuple[tuple[str, str], ...], span: Span | None) -> None:
        """Set `using algorithm with settings`."""
        chosen = Using(algorithm, settings, span)
        check_using(chosen, [p.name for p in self.params], tuple(self.scope.labels))
        self.chosen_algorithm = chosen

    def values_without_param(self, declared: Collection[str], excused: Collection[str] = ()) -> list[OcoError]:
        """Errors for values from the caller that belong to none of the params `declared`."""
        errors = []
        hint = f"its params are {', '.join(declared)}" if declared else "it has no params"
        for name in self.scope.given:
            if name not in declared and name not in excused:
                other = self.scope.declared.get(name)
                message = f"`{name}` is a {kind_of(other)}" if other else f"the model has no param `{name}`"
                message = f"{message}, but a value was given for it"
                errors.append(fail("OCO211", message, None, did_you_mean(name, declared, hint)))
        return errors

    def check_assumptions(self, unreadable: frozenset[str] = frozenset()) -> list[OcoError]:
        """Errors for assumptions about unknown facts; labels in `unreadable` are taken as declared."""
        keys = catalogue((*self.scope.labels, *unreadable))
        relations = {k: f.relation for k, f in keys.items()}
        wrong = (e for a in self.assumptions if (e := wrong_key(a, relations)))
        return list(islice(wrong, MOST_MISTAKES))

    def finish(self) -> Model:
        """Model of all statements. Raises OcoError where a required one is missing."""
        assert self.horizon is not None
        return Model(
            self.name,
            self.horizon,
            tuple(self.params),
            tuple(self.decisions),
            tuple(self.streams),
            tuple(self.lets),
            self.objective,
            tuple(self.constraints),
            self.chosen_measure,
            self.chosen_feedback,
            tuple(self.assumptions),
            self.chosen_algorithm,
            self.chosen_delay,
            self.scope.folder,
            self.span,
            self.maximized,
            tuple(self.predictions),
        )
