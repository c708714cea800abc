"""From the syntax tree to the model: what each name means, and what every expression's shape is.

All independent mistakes are found in one run. What depends on a mistake is passed over in silence: an expression that cannot be typed is
`None` here, and a name whose declaration failed stands in `broken`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, assert_never

from oco.dsl import build, syntax
from oco.dsl.assembly import Assembly
from oco.dsl.atoms import ATOMS
from oco.dsl.checks import distribution_spec, domain_spec, find, refuse_as_function
from oco.dsl.diagnostics import Diagnostic, Findings, OcoError, fail
from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.dsl.expressions import Constant, Expr, File, Kind, Name, Slice, constant
from oco.dsl.model import Feedback, Measure, Model, Relation, Timing
from oco.dsl.scope import Scope, kind_of
from oco.dsl.source import Span
from oco.dsl.suggest import did_you_mean
from oco.dsl.words import STATEMENT_WORDS

Typed = TypeVar("Typed")
ONCE = {
    syntax.ModelStatement: "model",
    syntax.HorizonStatement: "horizon",
    syntax.MinimizeStatement: "minimize",
    syntax.MeasureStatement: "measure",
    syntax.FeedbackStatement: "feedback",
    syntax.UsingStatement: "using",
}


def resolve(
    file: syntax.File,
    params: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    syntax_errors: Sequence[Diagnostic] = (),
) -> Model:
    """The model that a file describes. `params` gives values to its params; `folder` is where its data files lie.

    Raises one OcoError with every independent mistake, `syntax_errors` among them, in the order of the text.
    """
    resolver = _Resolver(file, params or {}, folder)
    resolver.findings.add(syntax_errors)
    resolver.run()
    resolver.findings.raise_if_any()
    return resolver.assembly.finish()


class _Resolver:
    def __init__(self, file: syntax.File, params: Mapping[str, Any], folder: Path | None) -> None:
        self.file = file
        self.findings = Findings()
        self.scope = Scope(folder, params)
        self.assembly = Assembly(self.scope)
        self.broken: set[str] = set()
        self.reported: set[str] = set()
        self.broken_labels: set[str] = set()
        self.seen: dict[str, Span] = {}
        self.later = {
            s.name.name: s.name.span
            for s in reversed(file.statements)
            if isinstance(
                s, (syntax.ParamStatement, syntax.DecisionStatement, syntax.StreamStatement, syntax.LetStatement)
            )
        }

    # statements

    def run(self) -> None:
        for statement in self.file.statements:
            self._once(statement)
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
            case syntax.ParamStatement():
                self._param(s)
            case syntax.DecisionStatement():
                self._decision(s)
            case syntax.StreamStatement():
                self._stream(s)
            case syntax.LetStatement():
                self._let(s)
            case syntax.MinimizeStatement():
                objective = self.expr(s.objective)
                if objective is not None:
                    self._try(lambda: self.assembly.minimize(objective))
            case syntax.SubjectToStatement():
                pass
            case syntax.ConstraintStatement():
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
        """The step's result; None where it finds a mistake, which is kept."""
        with self.findings.guard():
            return step()
        return None

    def _once(self, statement: syntax.Statement) -> None:
        """Statements that may stand once in a file."""
        word = ONCE.get(type(statement), "")
        if isinstance(statement, syntax.UnreadableStatement):
            word = statement.word
        elif word in self.seen:
            line = self.seen[word].line
            error = fail(
                "OCO208", f"there is a `{word}` statement already, on line {line}", statement.span, "a model has one"
            )
            self.findings.add(error.diagnostics)
        if word:
            self.seen.setdefault(word, statement.span)

    def _unreadable(self, s: syntax.UnreadableStatement) -> None:
        if s.name is None:
            return
        if s.word == "constraint":
            self.broken_labels.add(s.name.name)
        elif s.name.name not in self.scope.declared:
            self.broken.add(s.name.name)

    def _horizon(self, s: syntax.HorizonStatement) -> None:
        rounds = None if s.rounds is None else self.expr(s.rounds)
        if s.rounds is None or rounds is not None:
            self._try(lambda: self.assembly.set_horizon(rounds, s.span))

    def _param(self, s: syntax.ParamStatement) -> None:
        dims, bounds = self.exprs(s.dims), self._bounds(s.bounds)
        value = self._param_value(s.value)
        if dims is None or (bounds is None and s.bounds) or (value is None and s.value):
            self._break(s.name)
        else:
            self._declare(s.name, lambda: self.assembly.param(s.name.name, dims, bounds, s.integer, value, s.name.span))

    def _param_value(self, value: syntax.Expression | None) -> Expr | None:
        """The only place where `file("...")` may stand."""
        if isinstance(value, syntax.Call) and value.name == "file" and not value.operator:
            return self._try(lambda: _file(value))
        return None if value is None else self.expr(value)

    def _decision(self, s: syntax.DecisionStatement) -> None:
        dims, call = self.exprs(s.dims), s.domain
        known = self._try(lambda: find(call.name, DOMAINS, "OCO401", "domain", _head(call)))
        parts = self._arguments(call)
        if dims is None:
            self._break(s.name)
            return
        spec = self._try(lambda: domain_spec(call.name, *parts, call.span)) if known and parts else None
        if spec is not None:
            self._declare(s.name, lambda: self.assembly.decision(s.name.name, dims, spec, s.name.span))
        else:
            self._declare(s.name, lambda: self.assembly.reserve_decision(s.name.name, dims, s.name.span))

    def _stream(self, s: syntax.StreamStatement) -> None:
        dims, bounds, law = self.exprs(s.dims), self._bounds(s.bounds), s.distribution
        mean = None if s.mean is None else self.expr(s.mean)
        known = law and self._try(lambda: find(law.name, DISTRIBUTIONS, "OCO402", "distribution", _head(law)))
        parts = self._arguments(law) if law else None
        spec = self._try(lambda: distribution_spec(law.name, *parts, law.span)) if law and known and parts else None
        if dims is None:
            self._break(s.name)
            return
        if (bounds is None and s.bounds) or (spec is None and law) or (mean is None and s.mean):
            bounds, mean, spec = None, None, None
        self._declare(
            s.name,
            lambda: self.assembly.stream(s.name.name, dims, bounds, s.integer, s.iid, mean, spec, s.name.span),
        )

    def _let(self, s: syntax.LetStatement) -> None:
        value = self.expr(s.value, inside=s.name.name)
        if value is None:
            self._break(s.name)
        else:
            self._declare(s.name, lambda: self.assembly.let(s.name.name, value, s.name.span))

    def _declare(self, name: syntax.Identifier, step: Callable[[], None]) -> None:
        self._try(step)
        if name.name not in self.scope.declared:
            self.broken.add(name.name)

    def _break(self, name: syntax.Identifier) -> None:
        if name.name not in self.scope.declared:
            self.broken.add(name.name)

    def _bounds(self, bounds: tuple[syntax.Expression, syntax.Expression] | None) -> tuple[Expr, Expr] | None:
        ends = None if bounds is None else self.exprs(bounds)
        return None if ends is None else (ends[0], ends[1])

    def _arguments(self, call: syntax.Call) -> tuple[tuple[Expr, ...], dict[str, Expr]] | None:
        """The arguments of a domain or a distribution."""
        args = self.exprs(call.args)
        options = self.exprs([value for _, value in call.options])
        if args is None or options is None:
            return None
        return args, dict(zip((name for name, _ in call.options), options))

    def _constraint(self, s: syntax.ConstraintStatement) -> None:
        left, right = self.expr(s.left), self.expr(s.right)
        if left is None or right is None:
            self.broken_labels.add(s.label.name)
            return
        relation, timing = Relation(s.relation), Timing(s.timing or Timing.ON_AVERAGE)
        span = s.left.span.to(s.right.span)
        self._try(lambda: self.assembly.constraint(s.label.name, left, relation, right, timing, s.label.span, span))

    def _measure(self, s: syntax.MeasureStatement) -> None:
        words = [m.value for m in Measure]
        if s.measure not in words:
            raise fail(
                "OCO210",
                f"there is no regret called `{s.measure}`",
                s.span,
                did_you_mean(s.measure, words, "static or dynamic"),
            )
        self.assembly.chosen_measure = Measure(s.measure)

    def _feedback(self, s: syntax.FeedbackStatement) -> None:
        words = [f.value for f in Feedback]
        if s.feedback not in words:
            raise fail(
                "OCO210",
                f"there is no feedback `{s.feedback}`",
                s.span,
                did_you_mean(s.feedback, words, "full, gradient or bandit"),
            )
        self.assembly.chosen_feedback = Feedback(s.feedback)

    def _assume(self, s: syntax.AssumeStatement) -> None:
        value = self.expr(s.value)
        start = s.span.start + max(0, s.span.text.find(s.key))
        key_span = Span(s.span.source, start, start + len(s.key))
        if value is not None:
            self._try(lambda: self.assembly.assume(s.key, Relation(s.relation), value, key_span, s.span))

    # the whole file

    def _check_labels_of_assumptions(self) -> None:
        for error in self.assembly.check_assumptions(frozenset(self.broken_labels)):
            self.findings.add(error.diagnostics)

    def _check_given(self) -> None:
        """Values for params that the model does not have."""
        declared = [p.name for p in self.assembly.params]
        for name in self.scope.given:
            if name not in declared and name not in self.broken:
                other = self.scope.declared.get(name)
                said = f"`{name}` is a {kind_of(other)}" if other else f"the model has no param `{name}`"
                hint = did_you_mean(
                    name, declared, f"its params are {', '.join(declared)}" if declared else "it has no params"
                )
                self.findings.add(fail("OCO211", f"{said}, but a value was given for it", None, hint).diagnostics)

    def _check_missing(self) -> None:
        """Statements that every model has. They are not missed while some statement has no known word."""
        if any(isinstance(s, syntax.UnreadableStatement) and not s.word for s in self.file.statements):
            return
        there = set(self.seen) | {"decision" for s in self.file.statements if isinstance(s, syntax.DecisionStatement)}
        end = Span(self.file.source, len(self.file.source.text.rstrip()), len(self.file.source.text.rstrip()))
        for word in ("model", "horizon", "decision", "minimize"):
            if word not in there:
                form = STATEMENT_WORDS[word]
                self.findings.add(fail("OCO207", f"there is no `{word}` statement", end, f"add `{form}`").diagnostics)

    # expressions

    def exprs(self, nodes: Sequence[syntax.Expression]) -> tuple[Expr, ...] | None:
        """All typed, or None when one of them cannot be."""
        typed = [self.expr(n) for n in nodes]
        kept = tuple(e for e in typed if e is not None)
        return kept if len(kept) == len(typed) else None

    def expr(self, node: syntax.Expression, inside: str = "") -> Expr | None:
        """The typed expression; None after a mistake, which is kept. `inside` is the `let` whose value this is."""
        match node:
            case syntax.Number(value=value):
                return constant(value, node.span)
            case syntax.Identifier():
                return self._name(node, inside)
            case syntax.Text():
                return self._refuse(
                    fail("OCO213", "a text means nothing here", node.span, 'only `file("...")` takes one')
                )
            case syntax.ArrayLiteral(items=items):
                typed = [self.expr(i, inside) for i in items]
                entries = tuple(e for e in typed if e is not None)
                return self._build(lambda: build.array(entries, node.span)) if len(entries) == len(typed) else None
            case syntax.Subscript():
                return self._subscript(node, inside)
            case syntax.Call():
                return self._call(node, inside)
        assert_never(node)

    def _build(self, step: Callable[[], Expr]) -> Expr | None:
        return self._try(lambda: self.scope.settle(step()))

    def _refuse(self, error: OcoError) -> None:
        self.findings.add(error.diagnostics)

    def _name(self, node: syntax.Identifier, inside: str) -> Expr | None:
        name, span = node.name, node.span
        if name in self.scope.declared and name not in self.broken:
            return self.scope.name(name, span)
        if name == "t":
            return Name("t", Kind.ROUND, integer=True, span=span)
        if name not in self.broken and name not in self.reported:
            self.reported.add(name)
            self._refuse(self._unknown(name, span, inside))
        return None

    def _unknown(self, name: str, span: Span, inside: str) -> OcoError:
        if name == inside:
            return fail(
                "OCO206", f"`{name}` is defined by itself", span, "an abbreviation uses names declared before it"
            )
        if name == "T":
            return fail(
                "OCO212",
                "the horizon cannot stand in an expression",
                span,
                "declare `param rounds = ...`, and write `horizon T = rounds`",
            )
        if name in self.later:
            line = self.later[name].line
            return fail(
                "OCO204", f"`{name}` is used before it is declared, on line {line}", span, "move its declaration up"
            )
        if name in ATOMS and not name.startswith("_") and not ATOMS[name].operator:
            return fail("OCO213", f"`{name}` is a function: it needs arguments", span, f"write {name}(...)")
        if "." in name:
            return fail("OCO213", f"`{name}` is a fact, and facts stand after `assume` and in formulas only", span)
        hint = did_you_mean(name, [*self.scope.declared, *self.broken, "t"], _declare_hint(name))
        return fail("OCO201", f"`{name}` is not declared", span, hint)

    def _subscript(self, node: syntax.Subscript, inside: str) -> Expr | None:
        base = self.expr(node.base, inside)
        items = [self._item(i, inside) for i in node.items]
        kept = tuple(i for i in items if i is not None)
        if base is None or len(kept) < len(items):
            return None
        return self._build(lambda: build.index(base, kept, node.span))

    def _item(self, item: syntax.Expression | syntax.Slice, inside: str) -> Expr | None:
        if not isinstance(item, syntax.Slice):
            if isinstance(item, syntax.Call) and item.operator == "..":
                return self._refuse_range(item)
            return self.expr(item, inside)
        ends = [None if e is None else self.expr(e, inside) for e in (item.start, item.stop)]
        if any(e is None and said is not None for e, said in zip(ends, (item.start, item.stop))):
            return None
        return Slice(ends[0], ends[1], span=item.span)

    def _refuse_range(self, item: syntax.Call) -> None:
        """`x[0..4]`: both ends are included by `..`, and left out by a slice, so that nobody should have to guess."""
        first, last = (a.span.text for a in item.args)
        stop = str(item.args[1].value + 1) if isinstance(item.args[1], syntax.Number) else f"{last} + 1"
        self._refuse(fail("OCO325", "`..` is no index", item.span, f"a slice leaves out its end: {first}:{stop}"))

    def _call(self, node: syntax.Call, inside: str) -> Expr | None:
        args = [self.expr(a, inside) for a in node.args]
        kept = tuple(a for a in args if a is not None)
        options = self._options(node)
        if not node.operator and not self._is_function(node):
            return None
        if options is None or len(kept) < len(args):
            return None
        return self._build(lambda: build.call(node.name, *kept, span=node.span, **options))

    def _is_function(self, node: syntax.Call) -> bool:
        name, head = node.name, _head(node)
        if name in ATOMS and not name.startswith("_") and not ATOMS[name].operator:
            return True
        if name in self.broken or name in self.reported:
            return False
        if name in self.scope.declared:
            kind = kind_of(self.scope.declared[name])
            hint = "write `*` between them to multiply, or [ ] for an entry"
            self._refuse(fail("OCO202", f"`{name}` is a {kind}, not a function", head, hint))
            return False
        self.reported.add(name)
        self._refuse(refuse_as_function(name, head))
        return False

    def _options(self, node: syntax.Call) -> dict[str, int | float] | None:
        """Options such as `axis = 0` are plain numbers."""
        found: dict[str, int | float] = {}
        for name, value in node.options:
            typed = self.expr(value)
            if typed is None:
                return None
            if not isinstance(typed, Constant) or typed.shape:
                self._refuse(fail("OCO304", f"the option `{name}` is a plain number", value.span))
                return None
            found[name] = typed.value.array.item()
        return found


def _head(call: syntax.Call) -> Span:
    """The name of a call, without its arguments."""
    return Span(call.span.source, call.span.start, call.span.start + len(call.name))


def _file(call: syntax.Call) -> File:
    if len(call.args) != 1 or call.options or not isinstance(call.args[0], syntax.Text):
        raise fail("OCO213", "`file` takes one name in quotes", call.span, 'write file("data.csv")')
    return File(call.args[0].value, span=call.span)


def _declare_hint(name: str) -> str:
    return f"declare it: `param {name} = ...` for fixed data, `stream {name} in [lo, hi]` for data of each round"
