"""Construction of the syntax tree: a method for each rule of `grammar/oco.lark`, called by the parser as soon as the
rule is complete.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from oco.dsl.diagnostics import InternalError, fail
from oco.dsl.source import Span
from oco.dsl.text import syntax
from oco.dsl.text.clauses import attribute, bounds_of, distribution_of, domain_of, names_of, number_of
from oco.dsl.text.spacing import canonical
from oco.dsl.text.tokens import Token, number_value

Child = Any
Children = list[Child]

FACT_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*|\[[0-9]+(, [0-9]+)*\])*")
"""Dotted name of a fact: `slater.margin`, `constraints.limits[0].bound`."""


def _span(children: Children) -> Span:
    """Span from the first part to the last."""
    first: Span = next(c.span for c in children if c is not None)
    last: Span = next(c.span for c in reversed(children) if c is not None)
    return Span(first.source, first.start, last.end)


def _nodes(children: Children) -> Children:
    """Parts that are not signs or words."""
    return [c for c in children if c is not None and not isinstance(c, Token)]


class _Clause:
    """Clause after a stream's name: its bounds, its distribution, or `iid`."""

    def __init__(self, what: str, span: Span, **fields: Child) -> None:
        self.what, self.span, self.fields = what, span, fields


class _Declared:
    """Declared name with its shape."""

    def __init__(self, name: syntax.Identifier, dims: tuple[syntax.Expression, ...], span: Span) -> None:
        self.name, self.dims, self.span = name, dims, span


class _Key:
    def __init__(self, text: str, span: Span) -> None:
        self.text, self.span = text, span


class _Option:
    """Option `key = value` among the arguments of a call, or after `with`."""

    def __init__(self, name: syntax.Identifier, value: syntax.Expression, span: Span) -> None:
        self.name, self.value, self.span = name, value, span


class _Timing:
    def __init__(self, text: str, percent: float | None, span: Span) -> None:
        self.text, self.percent, self.span = text, percent, span


class TreeBuilder:
    """Builder of the tree. Methods get the parts of their rule in order: tokens, finished nodes, and None for an absent
    optional part.
    """

    # statements

    def model(self, c: Children) -> syntax.ModelStatement:
        """Statement `model name`."""
        return syntax.ModelStatement(c[1], span=_span(c))

    def horizon(self, c: Children) -> syntax.HorizonStatement:
        """Statement `horizon T = rounds` or `horizon T unknown`."""
        return syntax.HorizonStatement(c[3] if len(c) == 4 else None, span=_span(c))

    def index(self, c: Children) -> syntax.IndexStatement:
        """Statement `index`. Raises OCO218 where its value is no list of names and no file."""
        _, name, _, value = c
        if isinstance(value, syntax.Call) and value.name == "file" and not value.operator:
            return syntax.IndexStatement(name, file=value, span=_span(c))
        return syntax.IndexStatement(name, None if value is None else names_of(value), span=_span(c))

    def param(self, c: Children) -> syntax.ParamStatement:
        """Statement `param`."""
        _, declared, _, within, _, value = c
        bounds, integer = bounds_of(within) if within is not None else (None, False)
        return syntax.ParamStatement(declared.name, declared.dims, bounds, integer, value, span=_span(c))

    def decision(self, c: Children) -> syntax.DecisionStatement:
        """Statement `decision`."""
        _, declared, _, domain, *rest = c
        cuts, whole = tuple(_nodes(rest)), isinstance(domain, syntax.ValueSet)
        rounded = whole or any(isinstance(r, Token) and r.type == "ROUNDED" for r in rest)
        return syntax.DecisionStatement(declared.name, declared.dims, domain_of(domain), cuts, rounded, span=_span(c))

    def stream(self, c: Children) -> syntax.StreamStatement:
        """Statement `stream`. Raises OCO124 for a repeated clause."""
        return self._data(c, known=False)

    def context(self, c: Children) -> syntax.StreamStatement:
        """Statement `context`. Raises OCO124 for a repeated clause."""
        return self._data(c, known=True)

    def _data(self, c: Children, known: bool) -> syntax.StreamStatement:
        declared = c[1]
        none = dict.fromkeys(("bounds", "mean", "distribution"))
        fields: dict[str, Child] = {**none, "integer": False, "iid": False, "values": (), "known": known}
        seen: dict[str, _Clause] = {}
        for clause in c[2:]:
            if clause.what in seen:
                raise fail("OCO124", f"{clause.what} is said twice", clause.span, "keep one of the two")
            seen[clause.what] = clause
            fields |= clause.fields
        return syntax.StreamStatement(declared.name, declared.dims, span=_span(c), **fields)

    def state(self, c: Children) -> syntax.StateStatement:
        """Statement `state`. Raises OCO120 where its range is none."""
        _, declared, _, following, _, within, _, first = c
        bounds, _ = bounds_of(within)
        return syntax.StateStatement(declared.name, declared.dims, following, bounds, first, span=_span(c))

    def predict(self, c: Children) -> syntax.PredictStatement:
        """Statement `predict`."""
        return syntax.PredictStatement(c[1], c[3], span=_span(c))

    def let(self, c: Children) -> syntax.LetStatement:
        """Statement `let`."""
        return syntax.LetStatement(c[1], c[3], span=_span(c))

    def minimize(self, c: Children) -> syntax.MinimizeStatement:
        """Statement `minimize` or `maximize`."""
        return syntax.MinimizeStatement(c[1], c[0].type == "MAXIMIZE", span=_span(c))

    def subject(self, c: Children) -> syntax.SubjectToStatement:
        """Words `subject to`."""
        return syntax.SubjectToStatement(span=_span(c))

    def constraint(self, c: Children) -> syntax.ConstraintStatement:
        """Labelled constraint with its timing and its penalty, if any."""
        label, _, variable, _, index, _, _, left, relation, right, timing, _, _, penalty = c
        family = None if variable is None else (variable, index)
        when, percent = (timing.text, timing.percent) if timing is not None else ("", None)
        parts = (label, left, relation.text, right, when, penalty, percent, family)
        return syntax.ConstraintStatement(*parts, span=_span(c))

    def measure(self, c: Children) -> syntax.MeasureStatement:
        """Statement `measure`."""
        return syntax.MeasureStatement(c[1].text, span=_span(c))

    def feedback(self, c: Children) -> syntax.FeedbackStatement:
        """Statement `feedback`."""
        return syntax.FeedbackStatement(c[1].text, c[3], span=_span(c))

    def assume(self, c: Children) -> syntax.AssumeStatement:
        """Statement `assume`."""
        relation, value = (c[2].text, c[3]) if c[2] is not None else (None, None)
        return syntax.AssumeStatement(c[1].text, relation, value, span=_span(c))

    def using(self, c: Children) -> syntax.UsingStatement:
        """Statement `using`. Raises OCO124 for a repeated setting, OCO100 where both algorithm and settings are absent."""
        settings: dict[str, str] = {}
        for setting in _nodes(c):
            name: str = setting.name.name
            if name in settings:
                raise fail("OCO124", f"the setting `{name}` is given twice", setting.span, "keep one of the two")
            settings[name] = canonical(setting.value.span.text)
        if len(c) > 1 and c[1] is None and not settings:
            raise fail("OCO100", "expected the name of an algorithm, or `with` and settings", c[0].span)
        algorithm = c[1].text if c[1] is not None else None
        return syntax.UsingStatement(algorithm, tuple(settings.items()), span=_span(c))

    # parts of statements

    def cut(self, c: Children) -> syntax.CutClause:
        """Comparison after `with`."""
        left, relation, right = c
        return syntax.CutClause(left, relation.text, right, span=_span(c))

    def declared(self, c: Children) -> _Declared:
        """Name with its dimensions."""
        return _Declared(c[0], tuple(_nodes(c[1:])), _span(c))

    def within(self, c: Children) -> _Clause:
        """Clause `in [lo, hi]`, `in a..b` or `in {a, b}`."""
        if isinstance(c[1], syntax.ValueSet):
            values = tuple(sorted({number_of(i) for i in c[1].items}))
            ends = tuple(syntax.Number(v, span=c[1].span) for v in (values[0], values[-1]))
            whole = all(isinstance(v, int) for v in values)
            return _Clause("where the values lie", _span(c), bounds=ends, integer=whole, values=values)
        bounds, integer = bounds_of(c[1])
        return _Clause("where the values lie", _span(c), bounds=bounds, integer=integer)

    def distribution(self, c: Children) -> _Clause:
        """Clause `~ distribution`."""
        return _Clause("the distribution", _span(c), distribution=distribution_of(c[1]))

    def iid(self, c: Children) -> _Clause:
        """Clause `iid`, perhaps with a mean."""
        return _Clause("`iid`", _span(c), iid=True, mean=c[3])

    def timing(self, c: Children) -> _Timing:
        """Words `each round`, `on average`, `in total` or `in 99% of rounds`."""
        if len(c) == 2:
            return _Timing(f"{c[0].text} {c[1].text}", None, _span(c))
        return _Timing("in % of rounds", float(c[1].text), _span(c))

    def key(self, c: Children) -> _Key:
        """Dotted key of a fact."""
        return _Key("".join(part.text for part in c), _span(c))

    def key_part(self, c: Children) -> _Key:
        """Part of a key with its index."""
        return _Key("".join(", " if token.type == "COMMA" else token.text for token in c), _span(c))

    def setting(self, c: Children) -> _Option:
        """Setting `name = formula` of `using`."""
        return _Option(c[0], c[2], _span(c))

    # expressions

    def number(self, c: Children) -> syntax.Number:
        """Number literal."""
        value = number_value(c[0].text)
        if value is None:
            raise InternalError(f"the scanner let the number {c[0].text} pass")
        return syntax.Number(value, span=c[0].span)

    def text(self, c: Children) -> syntax.QuotedString:
        """Quoted string without its quotes."""
        return syntax.QuotedString(c[0].text[1:-1], span=c[0].span)

    def name(self, c: Children) -> syntax.Identifier:
        """Identifier."""
        return syntax.Identifier(c[0].text, span=c[0].span)

    def group(self, c: Children) -> syntax.Expression:
        """Expression in brackets, which leave no node; its span includes them."""
        inner: syntax.Expression = c[1]
        return replace(inner, span=_span(c))

    def array(self, c: Children) -> syntax.ArrayLiteral:
        """Array literal."""
        return syntax.ArrayLiteral(tuple(_nodes(c)), span=_span(c))

    def among(self, c: Children) -> syntax.ValueSet:
        """Set of values."""
        return syntax.ValueSet(tuple(_nodes(c)), span=_span(c))

    def subscript(self, c: Children) -> syntax.Subscript:
        """Index `base[items]`."""
        return syntax.Subscript(c[0], tuple(_nodes(c[1:])), span=_span(c))

    def slice(self, c: Children) -> syntax.Slice:
        """Slice `start:stop`."""
        return syntax.Slice(c[0], c[2], span=_span(c))

    def chosen(self, c: Children) -> syntax.GroupItem:
        """Choice of entries `plant in at[z]`."""
        return syntax.GroupItem(c[0], c[2], span=_span(c))

    def option(self, c: Children) -> _Option:
        """Argument given by name."""
        return _Option(c[0], c[2], _span(c))

    def call(self, c: Children) -> syntax.Call:
        """Call of a function. Raises OCO124 for a repeated name, OCO125 for a positional argument after a named one."""
        args: list[syntax.Expression] = []
        options: dict[str, syntax.Expression] = {}
        for argument in _nodes(c[1:]):
            if not isinstance(argument, _Option):
                if options:
                    raise fail(
                        "OCO125", "this argument stands after one that has a name", argument.span, "put it first"
                    )
                args.append(argument)
            elif argument.name.name in options:
                raise fail("OCO124", f"`{argument.name.name}` is given twice", argument.span, "keep one of the two")
            else:
                options[argument.name.name] = argument.value
        return syntax.Call(c[0].name, tuple(args), tuple(options.items()), span=_span(c))

    def minus(self, c: Children) -> syntax.Expression:
        """Negative; a minus right before a number belongs to the number, `-(5)` stays an operation."""
        operand: syntax.Expression = c[1]
        if isinstance(operand, syntax.Number) and not operand.span.text.startswith("("):
            return syntax.Number(-operand.value, span=_span(c))
        return syntax.Call("minus", (operand,), operator="-", span=_span(c))

    def transpose(self, c: Children) -> syntax.Call:
        """Transpose `x.T`."""
        return syntax.Call("transpose", (c[0],), operator=".T", span=_span(c))

    def fact(self, c: Children) -> syntax.Identifier:
        """Key of a fact in a formula, as `loss.lipschitz.l2`: one name."""
        span = _span(c)
        key = canonical(span.text)
        if not FACT_KEY.fullmatch(key):
            raise attribute(c[2])
        return syntax.Identifier(key, span=span)

    def _binary(self, c: Children, atom: str) -> syntax.Call:
        return syntax.Call(atom, (c[0], c[2]), operator=c[1].text, span=_span(c))

    def range(self, c: Children) -> syntax.Call:
        """Range `a..b`."""
        return self._binary(c, "range")

    def add(self, c: Children) -> syntax.Call:
        """Sum."""
        return self._binary(c, "add")

    def sub(self, c: Children) -> syntax.Call:
        """Difference."""
        return self._binary(c, "sub")

    def mul(self, c: Children) -> syntax.Call:
        """Entrywise product."""
        return self._binary(c, "mul")

    def div(self, c: Children) -> syntax.Call:
        """Quotient."""
        return self._binary(c, "div")

    def mod(self, c: Children) -> syntax.Call:
        """Remainder."""
        return self._binary(c, "mod")

    def matmul(self, c: Children) -> syntax.Call:
        """Matrix product."""
        return self._binary(c, "matmul")

    def pow(self, c: Children) -> syntax.Call:
        """Power."""
        return self._binary(c, "pow")
