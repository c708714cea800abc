"""Resolution of the syntax tree into the model: lookup of names and inference of shapes.

All independent mistakes are found in one run. Consequences of a mistake are not reported: an expression that cannot be
typed is `None` here, and a name whose declaration failed is listed in `broken`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, assert_never

from oco.dsl.assembly import Assembly
from oco.dsl.checks import distribution_spec, domain_spec, find
from oco.dsl.diagnostics import Diagnostic, Findings, fail
from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.dsl.expressions import Expr, Kind
from oco.dsl.members import index_within, names_in
from oco.dsl.model import Model
from oco.dsl.predictions import prediction
from oco.dsl.scope import Scope, declared_already
from oco.dsl.source import Span
from oco.dsl.statements import Feedback, Measure, Relation, Timing
from oco.dsl.states_below import StatesBelow
from oco.dsl.suggest import did_you_mean
from oco.dsl.text import syntax
from oco.dsl.text.clauses import names_of
from oco.dsl.text.words import OBJECTIVES, STATEMENT_WORDS
from oco.dsl.typer import Typer, file_of, head_span

Typed = TypeVar("Typed")
ONCE = {
    syntax.ModelStatement: "model",
    syntax.HorizonStatement: "horizon",
    syntax.MinimizeStatement: "minimize",
    syntax.MeasureStatement: "measure",
    syntax.FeedbackStatement: "feedback",
    syntax.UsingStatement: "using",
}
Declaring = (
    syntax.IndexStatement
    | syntax.ParamStatement
    | syntax.DecisionStatement
    | syntax.StreamStatement
    | syntax.StateStatement
    | syntax.LetStatement
)
DECLARING: dict[type[Declaring], Kind] = {
    syntax.IndexStatement: Kind.PARAM,
    syntax.ParamStatement: Kind.PARAM,
    syntax.DecisionStatement: Kind.DECISION,
    syntax.StreamStatement: Kind.STREAM,
    syntax.StateStatement: Kind.STREAM,
    syntax.LetStatement: Kind.LET,
}


def resolve(
    file: syntax.SourceFile,
    params: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    syntax_errors: Sequence[Diagnostic] = (),
) -> Model:
    """Model that a file describes. `params` gives values to its params; `folder` is the folder of its data files.

    Raises one OcoError with every independent mistake, `syntax_errors` among them, in the order of the text.
    """
    resolver = _Resolver(file, params or {}, folder)
    resolver.findings.add(syntax_errors)
    resolver.run()
    resolver.findings.raise_if_any()
    return resolver.assembly.finish()


class _Resolver:
    def __init__(self, file: syntax.SourceFile, params: Mapping[str, Any], folder: Path | None) -> None:
        self.file = file
        self.findings = Findings()
        self.scope = Scope(folder, params)
        self.assembly = Assembly(self.scope)
        self.under_subject_to = any(
            isinstance(s, syntax.UnreadableStatement) and s.word in ("", "subject") for s in file.statements
        )
        self.broken_labels: set[str] = set()
        self.seen: dict[str, Span] = {}
        self.unread: set[str] = set()
        self.first: dict[str, tuple[Kind, Span]] = {}
        declarations = [s for s in reversed(file.statements) if isinstance(s, Declaring)]
        self.below = StatesBelow(s.name.name for s in declarations if isinstance(s, syntax.StateStatement))
        self.typer = Typer(self.scope, self.findings, {s.name.name: s.name.span for s in declarations})

    # statements

    def run(self) -> None:
        for statement in self.file.statements:
            if self.findings.full:
                return
            self._once(statement)
            if not (isinstance(statement, syntax.LetStatement) and self.below.holds(statement)):
                self._statement(statement)
        self._check_labels_of_assumptions()
        self._check_given()
        self._check_missing()

    def _statement(self, s: syntax.Statement) -> None:
        match s:
            case syntax.ModelStatement():
                self.assembly.name, self.assembly.span = s.name.name, s.span
            case syntax.HorizonStatement():
                self._horizon(s)
            case syntax.IndexStatement():
                self._index(s)
            case syntax.ParamStatement():
                self._param(s)
            case syntax.DecisionStatement():
                self._decision(s)
            case syntax.StreamStatement():
                self._stream(s)
            case syntax.StateStatement():
                self._state(s)
            case syntax.LetStatement():
                self._let(s)
            case syntax.PredictStatement():
                self._predict(s)
            case syntax.MinimizeStatement():
                objective = self.typer.expr(s.objective)
                if objective is not None:
                    self._try(lambda: self.assembly.minimize(objective, s.maximized))
            case syntax.SubjectToStatement():
                self.under_subject_to = True
            case syntax.ConstraintStatement():
                self._check_place(s)
                self._constraint(s)
            case syntax.MeasureStatement():
                self._try(lambda: self._measure(s))
            case syntax.FeedbackStatement():
                self._try(lambda: self._feedback(s))
            case syntax.AssumeStatement():
                self._assume(s)
            case syntax.UsingStatement():
                self._try(lambda: self.assembly.using(s.algorithm, s.settings, s.span))
            case syntax.UnreadableStatement():
                self._unreadable(s)
            case _:
                assert_never(s)

    def _try(self, step: Callable[[], Typed]) -> Typed | None:
        """Result of the step; None where it finds a mistake, which is kept."""
        with self.findings.guard():
            return step()
        return None

    def _once(self, statement: syntax.Statement) -> None:
        """Statements that may occur once in a file. One that could not be read may have been meant as another."""
        if isinstance(statement, syntax.UnreadableStatement):
            self.unread.add(statement.word)
            return
        word = ONCE.get(type(statement), "")
        if word in self.seen:
            message = f"there is a `{word}` statement already, on line {self.seen[word].line}"
            self.findings.add(fail("OCO208", message, statement.span, "a model has one").diagnostics)
        elif word:
            self.seen[word] = statement.span

    def _unreadable(self, s: syntax.UnreadableStatement) -> None:
        """Record the names in an unreadable statement: it may declare them, so they are not reported as undeclared."""
        self.typer.doubtful |= set(re.findall(r"[A-Za-z]\w*", s.span.text))
        if s.name is None:
            self.typer.nameless |= s.word in [str(kind) for kind in DECLARING.values()]
        elif s.word == "constraint":
            self.broken_labels.add(s.name.name)
        elif s.name.name not in self.scope.declared:
            self.typer.broken.add(s.name.name)

    def _horizon(self, s: syntax.HorizonStatement) -> None:
        rounds = None if s.rounds is None else self.typer.expr(s.rounds)
        if s.rounds is None or rounds is not None:
            self._try(lambda: self.assembly.set_horizon(rounds, s.span))

    def _index(self, s: syntax.IndexStatement) -> None:
        file = None if s.file is None else self._try(partial(file_of, s.file))
        if s.file is not None and file is None:
            self._break(s)
        else:
            self._declare(s, lambda: self.assembly.index(s.name.name, s.names, file, s.name.span))

    def _param(self, s: syntax.ParamStatement) -> None:
        dims, bounds = self.typer.exprs(s.dims), self.typer.bounds(s.bounds)
        value = self._param_value(s.value, index_within(bounds) or (s.bounds and not bounds))
        if dims is None:
            self._break(s)
        elif (bounds is None and s.bounds) or (value is None and s.value):
            self._declare(s, lambda: self.assembly.reserve(Kind.PARAM, s.name.name, dims, s.integer, s.name.span))
        else:
            self._declare(s, lambda: self.assembly.param(s.name.name, dims, bounds, s.integer, value, s.name.span))

    def _param_value(self, value: syntax.Expression | None, of_names: object) -> Expr | None:
        """Value of a param, the only place where `file("...")` and names of the entries of an index may occur."""
        if of_names and self.typer.lists_names(value):
            return self._try(lambda: names_in(names_of(value), value.span))
        if isinstance(value, syntax.Call) and value.name == "file" and not value.operator:
            return self._try(lambda: file_of(value))
        return None if value is None else self.typer.expr(value)

    def _decision(self, s: syntax.DecisionStatement) -> None:
        dims, call = self.typer.exprs(s.dims), s.domain
        known = self._try(lambda: find(call.name, DOMAINS, "OCO401", "domain", head_span(call)))
        parts = self._arguments(call)
        if dims is None:
            self._break(s)
            return
        spec = self._try(lambda: domain_spec(call.name, *parts, call.span)) if known and parts else None
        if spec is not None:
            spec = replace(spec, rounded=s.rounded)
            self._declare(s, lambda: self.assembly.decision(s.name.name, dims, spec, s.name.span))
            self._cuts(s)
        else:
            self._declare(s, lambda: self.assembly.reserve(Kind.DECISION, s.name.name, dims, False, s.name.span))

    def _cuts(self, s: syntax.DecisionStatement) -> None:
        """Cuts of the domain; they see the decision that has just been declared."""
        if all(d.name != s.name.name for d in self.assembly.decisions):
            return
        for cut in s.cuts:
            sides = self.typer.exprs((cut.left, cut.right))
            if sides is not None:
                made = (sides[0], Relation(cut.relation), sides[1], cut.span)
                self._try(partial(self.assembly.cut, s.name.name, *made))

    def _stream(self, s: syntax.StreamStatement) -> None:
        dims, bounds, distribution = self.typer.exprs(s.dims), self.typer.bounds(s.bounds), s.distribution
        mean = None if s.mean is None else self.typer.expr(s.mean)
        known = distribution and self._try(
            lambda: find(distribution.name, DISTRIBUTIONS, "OCO402", "distribution", head_span(distribution))
        )
        parts = self._arguments(distribution) if distribution else None
        spec = (
            self._try(lambda: distribution_spec(distribution.name, *parts, distribution.span))
            if distribution and known and parts
            else None
        )
        if dims is None:
            self._break(s)
            return
        if (bounds is None and s.bounds) or (spec is None and distribution) or (mean is None and s.mean):
            bounds, mean, spec = None, None, None
        self._declare(
            s,
            lambda: self.assembly.stream(
                s.name.name, dims, bounds, s.integer, s.iid, mean, spec, s.name.span, s.values, s.known
            ),
        )

    def _state(self, s: syntax.StateStatement) -> None:
        """State: declared first, since what follows it is made of it, and of other states and abbreviations that may wait for it."""
        waiting = self.below.reached(s.name.name)
        dims, bounds, first = self.typer.exprs(s.dims), self.typer.bounds(s.bounds), self.typer.expr(s.first)
        if dims is None or bounds is None or first is None:
            self._break(s)
        else:
            self._declare(s, lambda: self.assembly.state(s.name.name, dims, bounds, first, s.name.span))
            waiting.append(s)
        for own in (w for w in waiting if not self.below.holds(w)):
            if isinstance(own, syntax.LetStatement):
                self._let(own)
            else:
                self._follow(own)

    def _follow(self, s: syntax.StateStatement) -> None:
        following = self.typer.expr(s.following)
        if following is not None and any(stream.name == s.name.name for stream in self.assembly.streams):
            self._try(lambda: self.assembly.follow(s.name.name, following))

    def _let(self, s: syntax.LetStatement) -> None:
        value = self.typer.expr(s.value, inside=s.name.name)
        if value is None:
            self._break(s)
        else:
            self._declare(s, lambda: self.assembly.let(s.name.name, value, s.name.span))

    def _predict(self, s: syntax.PredictStatement) -> None:
        name, value = s.name, self.typer.prediction(s.value)
        if value is not None and name.name not in self.typer.broken:
            self._try(lambda: self.assembly.predictions.append(prediction(self.assembly, name.name, value, name.span)))

    def _declare(self, s: Declaring, step: Callable[[], None]) -> None:
        """Declare a name. Uses of one that is declared twice, perhaps with two shapes, are not checked."""
        name = s.name.name
        if name in self.first:
            kind, span = self.first[name]
            self.findings.add(declared_already(name, kind, span, s.name.span).diagnostics)
            self.typer.broken.add(name)
            return
        self.first[name] = (DECLARING[type(s)], s.name.span)
        known = len(self.findings)
        self._try(step)
        if name not in self.scope.declared:
            self.typer.broken.add(name)
        if any(d.code in ("OCO307", "OCO308") for d in self.findings.items[known:]):
            self._blame_sizes(s)

    def _blame_sizes(self, s: Declaring) -> None:
        """Mark the params of an invalid shape as reported, so that the next shape does not repeat it."""
        dims = () if isinstance(s, syntax.LetStatement) else s.dims
        for node in (n for dim in dims for n in syntax.walk(dim)):
            if isinstance(node, syntax.Identifier):
                self.typer.broken.add(node.name)

    def _break(self, s: Declaring) -> None:
        """Mark a declaration whose mistake has been reported."""
        self._declare(s, lambda: None)

    def _arguments(self, call: syntax.Call) -> tuple[tuple[Expr, ...], dict[str, Expr]] | None:
        """Arguments of a domain or a distribution."""
        args = self.typer.exprs(call.args)
        options = self.typer.exprs([value for _, value in call.options])
        if args is None or options is None:
            return None
        return args, dict(zip((name for name, _ in call.options), options))

    def _check_place(self, s: syntax.ConstraintStatement) -> None:
        """Check that constraints stand below `subject to`; the first that does not is reported."""
        if not self.under_subject_to:
            message = f"the constraint `{s.label.name}` does not stand below `subject to`"
            error = fail("OCO214", message, s.label.span, "write `subject to` above it")
            self.findings.add(error.diagnostics)
            self.under_subject_to = True

    def _constraint(self, s: syntax.ConstraintStatement) -> None:
        left, right = self.typer.sides(s)
        if left is None or right is None:
            self.broken_labels.add(s.label.name)
            return
        relation, timing = Relation(s.relation), Timing(s.timing or Timing.ON_AVERAGE)
        penalty = None if s.penalty is None else self.typer.expr(s.penalty)
        span = s.left.span.to(s.right.span)
        label = s.label
        self._try(
            lambda: self.assembly.constraint(
                label.name, left, relation, right, timing, label.span, span, penalty, s.percent
            )
        )

    def _measure(self, s: syntax.MeasureStatement) -> None:
        _check_word(Measure, s.measure, "regret called", "static or dynamic", s.span)
        self.assembly.chosen_measure = Measure(s.measure)

    def _feedback(self, s: syntax.FeedbackStatement) -> None:
        _check_word(Feedback, s.feedback, "feedback", "full, gradient, two_point or bandit", s.span)
        self.assembly.chosen_feedback = Feedback(s.feedback)
        self.assembly.chosen_delay = None if s.delay is None else self.typer.expr(s.delay)

    def _assume(self, s: syntax.AssumeStatement) -> None:
        start = s.span.start + max(0, s.span.text.find(s.key))
        key_span = Span(s.span.source, start, start + len(s.key))
        if s.relation is None or s.value is None:
            self._try(lambda: self.assembly.assume_claim(s.key, key_span))
            return
        relation, value = Relation(s.relation), self.typer.expr(s.value)
        if value is not None:
            self._try(lambda: self.assembly.assume(s.key, relation, value, key_span, s.span))

    # the whole file

    def _check_labels_of_assumptions(self) -> None:
        for error in self.assembly.check_assumptions(frozenset(self.broken_labels)):
            self.findings.add(error.diagnostics)

    def _check_given(self) -> None:
        """Check values for params that the model does not have."""
        declared = [name for name, (kind, _) in self.first.items() if kind is Kind.PARAM]
        for error in self.assembly.values_without_param(declared, self.typer.broken):
            self.findings.add(error.diagnostics)

    def _check_missing(self) -> None:
        """Check for the statements that every model has, unless an unreadable statement may be one of them."""
        if "" in self.unread:
            return
        doubtful = {OBJECTIVES.get(w, w) for w in self.unread | self.typer.doubtful}  # two statements on one line, say
        there = set(self.seen) | doubtful
        there |= {"decision" for s in self.file.statements if isinstance(s, syntax.DecisionStatement)}
        source, length = self.file.source, len(self.file.source.text.rstrip())
        start = self.file.statements[0].span.start if self.file.statements else length
        first = re.match(r"\w*", source.text[start:])
        top = Span(source, start, start + len(first.group() if first else ""))
        for word in ("model", "horizon", "decision", "minimize"):
            if word not in there:
                place = top if word in ("model", "horizon") else Span(source, length, length)
                error = fail("OCO207", f"there is no `{word}` statement", place, f"add `{STATEMENT_WORDS[word]}`")
                self.findings.add(error.diagnostics)


def _check_word(words: type[Measure | Feedback], word: str, what: str, usual: str, span: Span) -> None:
    known = [w.value for w in words]
    if word not in known:
        raise fail("OCO210", f"there is no {what} `{word}`", span, did_you_mean(word, known, usual))
