"""Text of models and expressions. `parse(print_model(m)) == m`: numbers are printed so that they read back exactly."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oco.dsl.atoms import ATOMS
from oco.dsl.chains import Chains, Signed
from oco.dsl.diagnostics import InternalError, OcoError, fail
from oco.dsl.expressions import Array, Call, Constant, EntryNames, Expr, File, Index, Name, Slice, constant, names, walk
from oco.dsl.fact_keys import is_claim
from oco.dsl.limits import TEXT_LIMIT
from oco.dsl.members import index_within
from oco.dsl.source import Span
from oco.dsl.statements import (
    Assumption,
    Constraint,
    Decision,
    Distribution,
    DomainSpec,
    Feedback,
    Horizon,
    Measure,
    Param,
    Relation,
    Statements,
    Stream,
    Using,
)
from oco.dsl.text.tokens import WORDS, is_name

ATOMIC = 100
"""Precedence of expressions that never need brackets: names, numbers, calls."""

BLANK = "\0"
"""Blank inside a name while lines are filled."""

WIDTH = 100
"""Longer values of params are broken into a line for each row."""


class _Text(str):
    """Text of an expression, with the precedence of its outermost operator."""

    precedence: int

    def __new__(cls, text: str, precedence: int = ATOMIC) -> _Text:
        self = super().__new__(cls, text)
        self.precedence = precedence
        return self

    def within(self, least: int) -> str:
        """Text in brackets where it binds looser than `least`."""
        return f"({self})" if self.precedence < least else str(self)


def print_expr(expr: Expr) -> str:
    """Text of the expression with as few brackets as its operators need."""
    return str(_text(expr))


def _text(expr: Expr) -> _Text:
    done: dict[int, _Text] = {}
    chains = Chains()
    for node in walk(expr):
        text = _expression(node, done, chains.terms(node))
        if len(text) > TEXT_LIMIT:
            raise _too_long(node.span)
        done[id(node)] = text
    return done[id(expr)]


class Excerpts:
    """First characters of expressions. Each node is printed once, so excerpts of all parts take little more time than
    that of the whole.

    most      number of characters after which the text may break off
    instead   text of nodes that are not to be spelled out; None for others
    """

    def __init__(self, most: int, instead: Callable[[Expr], str | None]) -> None:
        self._most = most
        self._instead = instead
        self._done: dict[int, _Text] = {}
        self._chains = Chains()
        self._kept: list[Expr] = []

    def __call__(self, expr: Expr) -> str:
        self._kept.append(expr)
        for node in walk(expr, self._done):
            message = self._instead(node)
            text = _Text(message) if message is not None else _expression(node, self._done, self._chains.terms(node))
            # What follows a part's first characters cannot stand among the first of the whole.
            self._done[id(node)] = _Text(text[: self._most], text.precedence)
        return str(self._done[id(expr)])


def _expression(node: Expr, done: Mapping[int, _Text], terms: list[Signed] | None) -> _Text:
    if terms is not None:
        return _sum(terms, done)
    match node:
        case Constant(value=value):
            return _constant(value.array)
        case Name(name=name):
            return _Text(name)
        case Call():
            return _call(node, [done[id(a)] for a in node.args])
        case Slice(start=start, stop=stop):
            return _Text(":".join("" if end is None else done[id(end)] for end in (start, stop)))
        case Index(base=base, items=items):
            return _Text(f"{done[id(base)].within(_precedence('transpose'))}[{', '.join(done[id(i)] for i in items)}]")
        case Array(items=items):
            return _Text(f"[{', '.join(done[id(i)] for i in items)}]")
        case EntryNames(names=given):
            return _Text("[" + ", ".join(f'"{name}"' for name in given) + "]")
        case File(path=path, column=column):
            return _Text(f'file("{path}", column = "{column}")' if column else f'file("{path}")')
    raise InternalError(f"no text for the expression {type(node).__name__}")


def _sum(terms: list[Signed], done: Mapping[int, _Text]) -> _Text:
    """Text of a long sum, from the left, without brackets."""
    own = _precedence("add")
    first, *rest = ((minus, done[id(term)]) for minus, term in terms)
    return _Text("".join([first[1].within(own), *(f" {'-' if m else '+'} {t.within(own + 1)}" for m, t in rest)]), own)


def _precedence(atom: str) -> int:
    return ATOMS[atom].precedence


def _call(node: Call, args: list[_Text]) -> _Text:
    """Text of an operator, or `atom(args, option = value)`."""
    row = ATOMS[node.atom]
    if not row.operator:
        options = [f"{key} = {_number(value)}" for key, value in node.options]
        return _Text(f"{node.atom.removeprefix('_')}({', '.join([*args, *options])})")
    own = row.precedence
    if len(args) == 1:
        operand = f"({args[0]})" if _is_number(node.args[0]) else args[0].within(own)
        return _Text(f"{operand}.T" if row.operator == ".T" else f"{row.operator}{operand}", own)
    left, right = args
    if row.operator == "**":
        return _Text(f"{left.within(own + 1)} ** {right.within(_precedence('minus'))}", own)
    if row.operator == "..":
        return _Text(f"{_tight(left, own)}..{_tight(right, own)}", own)
    return _Text(f"{left.within(own)} {row.operator} {right.within(own + 1)}", own)


def _is_number(expr: Expr) -> bool:
    """True for a plain number: a minus before it would become part of it, and so would the dot of `.T` behind it."""
    return isinstance(expr, Constant) and expr.shape == ()


def _tight(text: _Text, own: int) -> str:
    """End of a range, without blanks round its outer operators: `0..m-1`."""
    return _without_outer_blanks(text.within(own + 1))


def _without_outer_blanks(text: str) -> str:
    depth = 0
    kept: list[str] = []
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character != " " or depth:
            kept.append(character)
    return "".join(kept)


def _constant(array: np.ndarray[Any, Any]) -> _Text:
    if array.shape == ():
        text = _number(array.item())
        return _Text(text, _precedence("minus") if text.startswith("-") else ATOMIC)
    if array.size == 0:
        raise InternalError("an array without entries cannot be written")
    return _Text(_array(array.tolist()))


def _array(entries: list[Any]) -> str:
    return f"[{', '.join(_array(e) if isinstance(e, list) else _number(e) for e in entries)}]"


def _number(value: float | int) -> str:
    """Shortest text that reads back as the same number; integers have no point, others have one or an exponent."""
    text = repr(value)
    if not text.lstrip("-")[0].isdigit():
        raise InternalError(f"the number {text} cannot be written")
    return text


def print_model(model: Statements) -> str:
    """Canonical text of the model: the statements in the order of the language reference, a group of each kind."""
    horizon, params = [_horizon(model.horizon)], [_param(p) for p in model.params]
    sized = model.horizon.rounds is not None and bool(names(model.horizon.rounds))
    groups = [
        [f"model {model.name}"],
        *([params, horizon] if sized else [horizon, params]),
        [_decision(d) for d in model.decisions],
        [print_stream(s) for s in model.streams],
        [f"let {let.name} = {print_expr(let.value)}" for let in model.lets],
        [f"predict {p.stream} = {print_expr(p.value)}" for p in model.predictions],
        _objective(model),
        ["subject to", *_constraints(model.constraints)] if model.constraints else [],
        [f"measure {model.measure} regret"] if model.measure is not Measure.STATIC else [],
        _feedback(model),
        [_assumption(a) for a in model.assumptions],
        [_using(model.using)] if model.using is not None else [],
    ]
    text = "\n\n".join("\n".join(group) for group in groups if group) + "\n"
    if len(text) > TEXT_LIMIT:
        raise _too_long(model.span)
    return text


def _objective(model: Statements) -> list[str]:
    if model.objective is None:
        return []
    gain = model.gain
    return [f"minimize {print_expr(model.objective)}" if gain is None else f"maximize {print_expr(gain)}"]


def _too_long(span: Span | None) -> OcoError:
    message = f"the text of this model has more than {TEXT_LIMIT} characters, the most that are read back"
    return fail("OCO129", message, span, "put large data in a file, and name what is used often with `let`")


def _horizon(horizon: Horizon) -> str:
    return "horizon T unknown" if horizon.rounds is None else f"horizon T = {print_expr(horizon.rounds)}"


def _declared(name: str, dims: tuple[Expr, ...]) -> str:
    return f"{name}[{', '.join(map(print_expr, dims))}]" if dims else name


def _bounds(bounds: tuple[Expr, Expr] | None, integer: bool) -> str:
    if bounds is None:
        return ""
    low, high = bounds
    if not (integer and low.integer and high.integer and low.shape == high.shape == ()):
        return f" in [{print_expr(low)}, {print_expr(high)}]"
    ends = (_tight(_text(end), _precedence("range")) for end in (low, high))
    return f" in {'..'.join(ends)}"


def _param(param: Param) -> str:
    if param.is_index:
        return _index(param)
    index = index_within(param.bounds) if isinstance(param.value, EntryNames) else None
    within = _bounds(param.bounds, param.integer) if index is None else f" in {index.name}"
    head = f"param {_declared(param.name, param.dims)}{within}"
    if param.value is None:
        return head
    text = print_expr(param.value)
    if isinstance(param.value, Constant) and len(text) > WIDTH:
        text = _rows(param.value.value.array.tolist(), len(head) + 4)
    return f"{head} = {text}"


def _index(index: Param) -> str:
    """Index with its names: words as they are, others in quotes."""
    head = f"index {index.name}"
    if isinstance(index.value, File):
        return f"{head} = {print_expr(index.value)}"
    if not index.labels:
        return head
    indent = len(head) + 4
    names = ", ".join(_label(name).replace(" ", BLANK) for name in index.labels)
    lines = textwrap.wrap(names, max(WIDTH - indent, 40), break_on_hyphens=False, break_long_words=False)
    margin = "\n" + " " * indent
    return f"{head} = [{margin.join(lines).replace(BLANK, ' ')}]"


def _label(name: str) -> str:
    """Name of an entry as it reads back: a word or an integer as it is, anything else in quotes."""
    word = is_name(name) and name not in WORDS
    return name if word or (name.isdecimal() and name == str(int(name))) else f'"{name}"'


def _rows(entries: list[Any], indent: int) -> str:
    """Array in brackets whose rows start in column `indent`; a row of numbers is filled up to the width."""
    margin = "\n" + " " * indent
    if isinstance(entries[0], list):
        return f"[{(',' + margin).join(_rows(row, indent + 1) for row in entries)}]"
    lines = textwrap.wrap(", ".join(map(_number, entries)), max(WIDTH - indent, 40), break_on_hyphens=False)
    return f"[{margin.join(lines)}]"


def _decision(decision: Decision) -> str:
    return f"decision {_declared(decision.name, decision.dims)} in {_domain(decision.domain)}"


def _domain(domain: DomainSpec) -> str:
    kind = f"{domain.kind}({', '.join(map(print_expr, domain.args))})" if domain.args else domain.kind
    cuts = ", ".join(f"{print_expr(c.left)} {c.relation} {print_expr(c.right)}" for c in domain.cuts)
    return f"{kind}{' with ' if cuts else ''}{cuts}{' rounded' if domain.rounded else ''}"


def print_distribution(distribution: Distribution) -> str:
    """Text of a distribution, as `poisson(2500)`."""
    options = [f"{key} = {print_expr(value)}" for key, value in distribution.options]
    return f"{distribution.kind}({', '.join([*map(print_expr, distribution.args), *options])})"


def print_stream(stream: Stream) -> str:
    """Text of a declaration, as `stream jobs ~ poisson(2500) in [0, 3200]`."""
    if stream.following is not None and stream.first is not None:
        head = f"state {_declared(stream.name, stream.dims)} = {print_expr(stream.following)}"
        return f"{head}{_bounds(stream.bounds, False)} start {print_expr(stream.first)}"
    distribution = f" ~ {print_distribution(stream.distribution)}" if stream.distribution is not None else ""
    iid = " iid" if stream.iid else ""
    mean = f" mean = {print_expr(stream.mean)}" if stream.mean is not None else ""
    among = (
        f" in {{{', '.join(map(_number, stream.values))}}}" if stream.values else _bounds(stream.bounds, stream.integer)
    )
    word = "context" if stream.known else "stream"
    return f"{word} {_declared(stream.name, stream.dims)}{distribution}{among}{iid}{mean}"


def _constraints(constraints: tuple[Constraint, ...]) -> list[str]:
    """Lines of the constraints, with the words for their timing in one column and penalties after them."""
    lines = [f"    {c.label}: {print_expr(c.left)} {c.relation} {print_expr(c.right)}" for c in constraints]
    column = max((len(line) for line in lines if len(line) <= WIDTH), default=0)
    return [f"{line.ljust(column)}  {c.when}{_penalty(c)}" for line, c in zip(lines, constraints)]


def _feedback(model: Statements) -> list[str]:
    if model.feedback is Feedback.FULL and model.delay is None:
        return []
    delay = "" if model.delay is None else f" delayed {print_expr(model.delay)}"
    return [f"feedback {model.feedback}{delay}"]


def _penalty(c: Constraint) -> str:
    return "" if c.penalty is None else f", penalty {print_expr(c.penalty)}"


def _assumption(assumption: Assumption) -> str:
    value = assumption.value
    if is_claim(assumption.key) and assumption.relation is Relation.GE and value == constant(1.0):
        return f"assume {assumption.key}"
    return f"assume {assumption.key} {assumption.relation} {print_expr(value)}"


def _using(using: Using) -> str:
    name = f" {using.algorithm}" if using.algorithm is not None else ""
    settings = ", ".join(f"{key} = {formula}" for key, formula in using.settings)
    return f"using{name}{f' with {settings}' if settings else ''}"
