"""Builder: a model written with Python objects. It is equivalent to a model file, which `to_oco` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from oco.dsl.assembly import Assembly
from oco.dsl.builder_arguments import (
    checked_name,
    checked_word,
    ends_of,
    entry_names,
    formula,
    listed_values,
    timing_of,
)
from oco.dsl.caller import caller_span
from oco.dsl.calls import arguments_checked
from oco.dsl.diagnostics import Findings, OcoError, fail
from oco.dsl.expressions import Expr, File, Kind, Name, constant
from oco.dsl.fact_keys import catalogue, of_the_whole
from oco.dsl.habits import OF_MODEL, Suggesting
from oco.dsl.keyed import by_name
from oco.dsl.labels import axes_of
from oco.dsl.limits import admitted
from oco.dsl.model import Model
from oco.dsl.predictions import prediction
from oco.dsl.scope import Scope
from oco.dsl.source import Span
from oco.dsl.statements import Distribution, DomainSpec, Feedback, Measure, Relation
from oco.dsl.suggest import did_you_mean
from oco.dsl.terms import Comparison, Operand, Term, common_scope, term, wrong_argument
from oco.dsl.values import as_array, is_data

Duty: TypeAlias = "tuple[bool, Operand | None, float | None, bool]"
"""Time at which a constraint has to hold, and its price: each round or not, penalty, percentage of the rounds, in total or not."""
Shape: TypeAlias = "Operand | Sequence[Operand] | None"
Following: TypeAlias = "Callable[[Term], Operand] | Operand"
_WHERE_FACTS_ARE = "`oco help OCO651` lists the facts"


@arguments_checked
class ModelBuilder(Suggesting):
    """Builder of a model: `m = oco.Model("job_scheduling", horizon=2880)`.

    Every method checks its arguments at once, and an error points at the caller's line. `horizon` None means unknown;
    `folder` contains the files that `oco.file("...")` names.
    """

    _known_as, _lines = "a model", OF_MODEL

    def __init__(self, name: str, horizon: Operand | None = None, folder: str | Path = ".") -> None:
        span = caller_span()
        self._scope = Scope(Path(folder))
        self._assembly = Assembly(self._scope, checked_name(name, "a model", span), span)
        self._assembly.set_horizon(self._rounds(horizon, span), span)

    # declarations

    def horizon(self, rounds: Operand | None) -> None:
        """Set the number of rounds, None where it is unknown. Raises OCO323 for what is no integer from 1 on."""
        span = caller_span()
        self._assembly.set_horizon(self._rounds(rounds, span), span)

    def index(self, name: str, names: Iterable[str] | Term | None = None) -> Term:
        """Declare names for the entries of axes: `zone = m.index("zone", ["NYC", "WEST"])`, then `m.decision("x", zone, ...)`.

        names  each once; or `oco.file("zones.csv", column="name")`; None where they are given to `oco.compile`. Raises OCO218
        """
        span = caller_span()
        file = names.expr if isinstance(names, Term) and isinstance(names.expr, File) else None
        if file is None and names is not None and (isinstance(names, (str, Term)) or not isinstance(names, Iterable)):
            raise wrong_argument("`names`", 'a list such as ["NYC", "WEST"]', names, span)
        with self._statement(name, "an index", span):
            self._assembly.index(name, None if file is not None or names is None else list(names), file, span)
        return self._name(name, span)

    def param(
        self, name: str, shape: Shape = None, value: Operand | None = None, *, bounds: Any = None, integer: bool = False
    ) -> Term:
        """Declare fixed data. Without a value it is given later, to `oco.compile`. The shape may be omitted where there
        is a value: `m.param("A", value=A)`, or `m.param("A", A)` for an array, a table, nested lists or a float. Raises OCO321, OCO806.
        """
        span = caller_span()
        if value is None and is_data(shape):
            shape, value = None, as_array(shape)
        dims = self._dims(shape, span)
        if value is not None:
            value = by_name(name, value, axes_of(dims, self._scope.indexes), span)
        given = None if value is None else self._expr(entry_names(value, span), span)
        if shape is None and given is not None:
            dims = self._dims(tuple(given.shape), span)
        ends, whole = self._bounds(bounds, integer, span)
        with self._statement(name, "a param", span):
            self._assembly.param(name, dims, ends, whole, given, span)
        return self._name(name, span)

    def decision(
        self,
        name: str,
        shape: Shape = None,
        *,
        domain: Any = None,
        cuts: Callable[[Term], Comparison | Sequence[Comparison]] | None = None,
    ) -> Term:
        """Declare a decision of each round, in a domain such as `oco.box(0, 1)`. Raises OCO526 without one, OCO412 for another shape.

        cuts  narrows it by affine comparisons of fixed data: `cuts=lambda x: [oco.sum(x) <= 3, A @ x >= b]`
        """
        span = caller_span()
        spec = getattr(domain, "spec", None)
        if not isinstance(spec, DomainSpec):
            hint = 'write `m.decision("x", 3, domain=oco.box(0, 1))`'
            raise wrong_argument("`domain`", "a domain such as oco.box(0, 1)", domain, span, hint)
        self._own(domain, span)
        with self._statement(name, "a decision", span):
            self._assembly.decision(name, self._dims(shape, span), spec, span)
            for c in self._comparisons(cuts, self._name(name, span), span):
                left, right = (admitted(side.expr, span) for side in (c.left, c.right))
                self._assembly.cut(name, left, c.relation, right, c.span)
        return self._name(name, span)

    def _comparisons(self, cuts: Any, decision: Term, span: Span | None) -> list[Comparison]:
        """Comparisons that narrow a domain."""
        results = [] if cuts is None else cuts(decision)
        several = list(results) if isinstance(results, Sequence) else [results]
        for c in several:
            if not isinstance(c, Comparison):
                raise wrong_argument("a cut of a domain", "a comparison such as oco.sum(x) <= 3", c, span)
            self._own(c.left, span)
            self._own(c.right, span)
        return several

    def stream(
        self,
        name: str,
        shape: Shape = None,
        *,
        bounds: Any = None,
        dist: Any = None,
        iid: bool = False,
        mean: Operand | None = None,
        integer: bool = False,
        known: bool = False,
    ) -> Term:
        """Declare data revealed each round: within `bounds`, from a known `dist`, or `iid` with an unknown one (and
        perhaps a known `mean`).

        bounds  (lo, hi); range(k) for integers; {-1, 1} for a set of values
        known   before the decision (a context). Raises OCO526, OCO427
        """
        span = caller_span()
        spec = getattr(dist, "spec", None)
        if dist is not None and not isinstance(spec, Distribution):
            hint = 'write `m.stream("p", dist=oco.poisson(5), bounds=(0, 20))`'
            raise wrong_argument("`dist`", "a distribution such as oco.poisson(5)", dist, span, hint)
        self._own(dist, span)
        if mean is not None and not iid:
            raise fail("OCO427", f"`{name}` has a mean, so it must be iid", span, "add iid=True")
        values = listed_values(bounds, span) if isinstance(bounds, (set, frozenset)) else ()
        if values:
            bounds, integer = (values[0], values[-1]), all(isinstance(v, int) for v in values)
        ends, whole = self._bounds(bounds, integer, span)
        known_mean = None if mean is None else self._expr(mean, span)
        with self._statement(name, "a stream", span):
            dims = self._dims(shape, span)
            self._assembly.stream(name, dims, ends, whole, iid, known_mean, spec, span, values, known)
        return self._name(name, span)

    def context(self, name: str, shape: Shape = None, **options: Any) -> Term:
        """Declare data known before the decision, which `decide` is given, with the options and errors of `stream`."""
        return self.stream(name, shape, known=True, **options)

    def state(self, name: str, shape: Shape = None, *, following: Following, bounds: Any, start: Operand) -> Term:
        """Declare what a round leaves to the next: `m.state("stored", following=lambda s: s + charge, bounds=(0, 400), start=200)`, or
        `following=charge` where nothing of the state itself is left."""
        span = caller_span()
        ends, _ = self._bounds(bounds, False, span)
        first = self._expr(start, span)
        with self._statement(name, "a state", span):
            self._assembly.state(name, self._dims(shape, span), ends, first, span)
            left = following(self._name(name, span)) if callable(following) else following
            self._assembly.follow(name, self._expr(left, span))
        return self._name(name, span)

    def let(self, name: str, value: Operand) -> Term:
        """Name an expression, and return it by its name. Raises OCO203 for a name that is taken."""
        span = caller_span()
        with self._statement(name, "an abbreviation", span):
            self._assembly.let(name, self._expr(value, span), span)
        return self._name(name, span)

    @property
    def t(self) -> Term:
        """Number of the round, counted from 1, as an expression."""
        return Term(Name("t", Kind.ROUND, integer=True, span=caller_span()), self._scope)

    @property
    def T(self) -> Term:
        """Number of rounds, as an expression."""
        return Term(Name("T", Kind.HORIZON, integer=True, span=caller_span()), self._scope)

    def minimize(self, objective: Operand) -> None:
        """Set the loss of a round, one number. Raises OCO324 for an array, OCO208 for a second objective."""
        self._optimize(objective, False)

    def maximize(self, gain: Operand) -> None:
        """Set the gain of a round, one number: the loss is its negative. Raises OCO324, OCO208 as `minimize` does."""
        self._optimize(gain, True)

    def _optimize(self, objective: Operand, maximized: bool) -> None:
        span = caller_span()
        if self._assembly.objective is not None:
            raise fail("OCO208", "the model has an objective already", span, "a model has one")
        self._assembly.minimize(self._expr(objective, span), maximized)

    def predict(self, stream: Term, value: Operand) -> None:
        """State what a decision may assume of a stream: of contexts, and of `last`, `ewma`, `season` and `mean` of the rounds before."""
        span = caller_span()
        predicted, own = self._expr(stream, span), self._expr(value, span)
        name = predicted.name if isinstance(predicted, Name) else ""
        self._assembly.predictions.append(prediction(self._assembly, name, own, span))

    def subject_to(
        self,
        constraint: Comparison | Iterable[Comparison],
        name: str | None = None,
        each_round: bool = False,
        penalty: Operand | None = None,
        percent: float | None = None,
        in_total: bool = False,
    ) -> None:
        """Add a constraint, in each round, on average over the rounds, in `percent` of them or in total. Without a name it is called
        c1, c2, ...

        A list or a generator of comparisons adds them all; with a name they are called name_1, name_2, ... `penalty` is the loss that a
        unit of violation is worth, one number or one for each entry. Raises OCO526 for what is no comparison.
        """
        span = caller_span()
        if isinstance(constraint, Iterable) and not isinstance(constraint, (str, bytes, np.ndarray, Term)):
            self._several(list(constraint), name, (each_round, penalty, percent, in_total), span)
            return
        self._one(constraint, name, (each_round, penalty, percent, in_total), span)

    def _several(self, constraints: list[Any], name: str | None, duty: Duty, span: Span | None) -> None:
        """Add constraints one after another; none where one of them is wrong."""
        kept, labels = list(self._assembly.constraints), dict(self._scope.labels)
        try:
            for k, c in enumerate(constraints, 1):
                self._one(c, name if name is None else f"{name}_{k}", duty, span)
        except OcoError:
            self._assembly.constraints, self._scope.labels = kept, labels
            raise

    def _one(self, constraint: Any, name: str | None, duty: Duty, span: Span | None) -> None:
        each_round, penalty, percent, in_total = duty
        if not isinstance(constraint, Comparison):
            hint = "compare an expression of decisions: `m.subject_to(x <= 1)`; numbers alone are compared by Python"
            raise wrong_argument("a constraint", "a comparison such as x <= 1", constraint, span, hint)
        self._own(constraint.left, span)
        self._own(constraint.right, span)
        label = checked_name(name, "a constraint", span) if name is not None else self._free_label()
        timing = timing_of(each_round, percent, in_total, span)
        share = None if percent is None else float(percent)
        left, right = (admitted(side.expr, span) for side in (constraint.left, constraint.right))
        price = None if penalty is None else self._expr(penalty, span)
        labels = dict(self._scope.labels)
        try:
            self._assembly.constraint(
                label, left, constraint.relation, right, timing, span, constraint.span, price, share
            )
        except OcoError:
            self._scope.labels = labels
            raise

    def measure(self, regret: str) -> None:
        """Choose "static" or "dynamic" regret. Raises OCO210 for another word."""
        self._assembly.chosen_measure = Measure(checked_word(regret, [m.value for m in Measure], "regret"))

    def feedback(self, feedback: str, delayed: Operand | None = None) -> None:
        """Set the feedback of a round: "full", "gradient", "two_point" or "bandit", `delayed` by so many rounds at most. Raises OCO210."""
        self._assembly.chosen_feedback = Feedback(checked_word(feedback, [f.value for f in Feedback], "feedback"))
        self._assembly.chosen_delay = None if delayed is None else self._expr(delayed, caller_span())

    def assume(self, facts: str | Mapping[str, Operand]) -> None:
        """Assume what is known but cannot be proved: that a fact holds, `m.assume("feasible.common")`, or bounds,
        `m.assume({"slater.margin": 0.5})`, each an upper or lower one, whichever theorems use. Raises OCO651.
        """
        span = caller_span()
        for key, value in ({facts: None} if isinstance(facts, str) else facts).items():
            whole = of_the_whole(key)
            labels = (whole.split(".")[1],) if whole.startswith("constraints.") and whole.count(".") > 1 else ()
            keys = catalogue(labels)
            if whole not in keys:  # of constraints that are not there yet `build` tells
                raise fail("OCO651", f"there is no fact `{key}`", span, did_you_mean(whole, keys, _WHERE_FACTS_ARE))
            fact = keys[whole]
            if value is None:
                self._assembly.assume_claim(key, span)
                continue
            relation = Relation(fact.relation) if fact.relation else Relation.GE
            self._assembly.assume(key, relation, self._expr(value, span), span, span)

    def using(self, algorithm: str | None = None, **settings: Any) -> None:
        """Fix the algorithm, or settings of it, instead of the automatic choice: `m.using("coldq", alpha="sqrt(t)")`. Raises OCO701."""
        span = caller_span()
        if algorithm is None and not settings:
            raise wrong_argument("what `using` takes", "the name of an algorithm, or settings", None, span)
        texts = tuple((name, formula(value, name, span)) for name, value in settings.items())
        self._assembly.using(algorithm, texts, span)

    def build(self) -> Model:
        """Build the immutable model, equal to `oco.parse(m.to_oco())`. Raises OCO207 without an objective, OCO805 for what is too large."""
        findings = Findings()
        for word, there in (("decision", self._assembly.decisions), ("minimize", self._assembly.objective)):
            if not there:
                hint = f"call `{word}(...)` on the model"
                findings.add(fail("OCO207", f"the model has no {word} statement", None, hint).diagnostics)
        for error in self._assembly.check_assumptions():
            findings.add(error.diagnostics)
        findings.raise_if_any()
        return self._assembly.finish()

    def to_oco(self) -> str:
        """Text of the model as a file of the language. Raises what `build` raises."""
        return self.build().to_oco()

    def __repr__(self) -> str:
        return f"<model {self._assembly.name}>"

    def _repr_html_(self) -> str | None:
        return self._shown(Model._repr_html_)

    def _repr_latex_(self) -> str | None:
        return self._shown(Model._repr_latex_)

    def _shown(self, show: Callable[[Model], str]) -> str | None:
        """Model as a notebook shows it; None while it is incomplete."""
        try:
            return show(self.build())
        except OcoError:
            return None

    # parts

    def _rounds(self, rounds: Operand | None, span: Span | None) -> Expr | None:
        if isinstance(rounds, str):
            wanted = "an integer number of rounds, or None where it is unknown"
            raise wrong_argument("`horizon`", wanted, rounds, span, 'write `oco.Model("shop", horizon=1000)`')
        return None if rounds is None else self._expr(rounds, span)

    def _expr(self, value: Operand, span: Span | None) -> Expr:
        result = term(value, span)
        self._own(result, span)
        return admitted(result.expr, span)

    def _own(self, part: Any, span: Span | None) -> None:
        """Refuse an object that belongs to another model."""
        scope = getattr(part, "scope", None)
        if scope is not None:
            common_scope([Term(constant(0), scope), Term(constant(0), self._scope)], span)

    def _name(self, name: str, span: Span | None) -> Term:
        return Term(self._scope.name(name, span), self._scope)

    def _dims(self, shape: Shape, span: Span | None) -> tuple[Expr, ...]:
        if shape is None:
            return ()
        return tuple(self._expr(d, span) for d in (shape if isinstance(shape, (tuple, list)) else (shape,)))

    def _bounds(self, bounds: Any, integer: bool, span: Span | None) -> tuple[tuple[Expr, Expr] | None, bool]:
        """Bounds of a declaration as expressions, and a flag for integers."""
        self._own(bounds, span)
        ends, whole = ends_of(bounds, integer, self._scope, span)
        return None if ends is None else (self._expr(ends[0], span), self._expr(ends[1], span)), whole

    @contextmanager
    def _statement(self, name: str, what: str, span: Span | None) -> Iterator[None]:
        """Context of a declaration: on failure nothing stays declared."""
        checked_name(name, what, span)
        before = {part: dict(getattr(self._scope, part)) for part in ("declared", "values", "sizes", "indexes")}
        streams = list(self._assembly.streams)
        try:
            yield
        except OcoError:
            self._assembly.streams = streams
            for part, entries in before.items():
                setattr(self._scope, part, entries)
            raise

    def _free_label(self) -> str:
        taken = self._scope.labels
        return next(name for name in map("c{}".format, count(len(taken) + 1)) if name not in taken)
