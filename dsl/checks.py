"""Checks of a decision's domain and a stream's distribution: names, arguments, shapes, and values where they are known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from oco.dsl import distributions
from oco.dsl.atoms import ATOMS
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.dims import broadcast, show
from oco.dsl.distributions import DISTRIBUTIONS, DistributionKind
from oco.dsl.domains import DOMAINS, Complaint
from oco.dsl.expressions import Expr, Kind, Name, walk
from oco.dsl.scope import Array, Scope, check_fixed
from oco.dsl.source import Span
from oco.dsl.statements import Decision, Distribution, DomainSpec, Relation, Stream, Timing
from oco.dsl.statistics import STATISTICS
from oco.dsl.suggest import did_you_mean, listed
from oco.dsl.values import fixed_value, is_known

Args = Sequence[Expr]
Options = Mapping[str, Expr]
Row = TypeVar("Row")


def find(kind: str, table: Mapping[str, Row], code: str, what: str, span: Span | None) -> Row:
    """Row of a domain or distribution by its name."""
    if kind in table:
        return table[kind]
    hint = did_you_mean(kind, table, f"the {what}s are {', '.join(table)}")
    if kind in SPELLED:
        hint = f"write {SPELLED[kind]}"
    raise fail(code, f"there is no {what} `{kind}`", span, hint)


def domain_spec(kind: str, args: Args, options: Options, span: Span | None) -> DomainSpec:
    """Domain from `box(0, 1)` or `box(lo = 0, hi = 1)`: arguments in the order of the table."""
    row = find(kind, DOMAINS, "OCO401", "domain", span)
    ordered = _ordered(row.signature, row.parameters, len(row.parameters) - row.optional, args, options, "OCO403", span)
    return DomainSpec(kind, tuple(ordered), span)


def _ordered(
    signature: str, parameters: Sequence[str], least: int, args: Args, options: Options, code: str, span: Span | None
) -> list[Expr]:
    """Arguments given in order and by name, all in order."""
    named = dict(zip(parameters, args))
    for name, value in options.items():
        if name not in parameters:
            hint = did_you_mean(
                name, parameters, f"its arguments are {listed(parameters)}" if parameters else "it has none"
            )
            raise fail(code, f"`{signature}` has no argument `{name}`", _with_name(value, name), hint)
        if name in named:
            raise fail(code, f"the argument `{name}` is given twice", _with_name(value, name), "keep one of the two")
        named[name] = value
    if len(args) > len(parameters):
        hint = (
            f"write `{signature}`; sizes stand behind names, as in `x[3]`"
            if code == "OCO403"
            else f"write `{signature}`"
        )
        raise fail(code, _arity(signature, parameters, len(args)), span, hint)
    missing = [p for p in parameters[:least] if p not in named]
    if missing:
        raise fail(code, f"`{signature}` needs {listed(missing)}", span, f"its arguments are {listed(parameters)}")
    given = [p for p in parameters if p in named]
    if tuple(given) != tuple(parameters[: len(given)]):
        skipped = listed(p for p in parameters if p not in named)
        raise fail(code, f"`{signature}` needs {skipped} before the last one", span, f"give {skipped} too")
    return [named[p] for p in given]


def _with_name(value: Expr, name: str) -> Span | None:
    """Span of `name = value` in the text of a call; that of the value where there is no such text."""
    if value.span is None:
        return None
    source, start = value.span.source, value.span.start
    before = re.search(rf"\b{re.escape(name)}\s*=\s*$", source.text[max(0, start - 200) : start])
    return value.span if before is None else Span(source, start - len(before.group()), value.span.end)


def _arity(signature: str, parameters: Sequence[str], given: int) -> str:
    takes = f"{len(parameters)} argument{'s' if len(parameters) != 1 else ''}" if parameters else "no arguments"
    return f"`{signature}` takes {takes}; here it has {given}"


def check_domain(scope: Scope, decision: Decision) -> None:
    """Check the arguments of a decision's domain against its shape, and their values where they are known."""
    spec = decision.domain
    row = DOMAINS[spec.kind]
    args = dict(zip(row.parameters, spec.args))
    for name, arg in args.items():
        check_fixed(arg, f"the argument `{name}` of {spec.kind}")
    _raise(row.shapes(decision.shape, {n: a.shape for n, a in args.items()}), args, spec.span)
    if is_known(decision.shape):
        shape = tuple(d for d in decision.shape if isinstance(d, int))
        _raise(row.values(shape, _values(scope, args, spec.kind)), args, spec.span)


def _values(scope: Scope, args: Options, kind: str) -> dict[str, Array]:
    results = {n: fixed_value(scope, a, f"the argument `{n}` of {kind}") for n, a in args.items()}
    return {n: np.asarray(v, dtype=np.float64) for n, v in results.items() if v is not None}


def _raise(complaint: Complaint | None, args: Options, span: Span | None) -> None:
    if complaint is not None:
        at = args[complaint.argument].span if complaint.argument in args else span
        raise fail(complaint.code, complaint.message, at, complaint.hint)


def distribution_spec(kind: str, args: Args, options: Options, span: Span | None) -> Distribution:
    """Distribution from `poisson(2500)`, `pareto(3, mean = 8)`."""
    row = find(kind, DISTRIBUTIONS, "OCO402", "distribution", span)
    by_name = {n: v for n, v in options.items() if n in row.keywords}
    rest = {n: v for n, v in options.items() if n not in row.keywords}
    if len(args) > len(row.parameters) and row.keywords:
        missing = row.keywords[0]
        extra = args[len(row.parameters)].span
        value = extra.text if extra is not None else "..."
        raise fail(
            "OCO421", f"`{row.signature}`: `{missing}` is given by its name", extra, f"write {missing} = {value}"
        )
    ordered = _ordered(row.signature, row.parameters, len(row.parameters), args, _known(row, rest), "OCO421", span)
    if len(by_name) < len(row.keywords):
        raise fail("OCO421", f"`{row.signature}` needs {listed(k for k in row.keywords if k not in by_name)}", span)
    return Distribution(kind, tuple(ordered), tuple((k, by_name[k]) for k in row.keywords), span)


def _known(row: DistributionKind, options: Options) -> Options:
    for name, value in options.items():
        if name not in row.names:
            hint = did_you_mean(name, row.names, f"its arguments are {listed(row.names)}")
            raise fail("OCO421", f"`{row.signature}` has no argument `{name}`", _with_name(value, name), hint)
    return options


def check_first(scope: Scope, state: Stream, first: Expr) -> None:
    """Check the value of a state in round 1: fixed, of its shape, within its range. Raises OCO529."""
    role = f"the start of `{state.name}`"
    check_fixed(first, role)
    if broadcast(first.shape, state.shape) != state.shape:
        raise fail("OCO529", f"{role} has shape {show(first.shape)}, the state {show(state.shape)}", first.span)
    value = fixed_value(scope, first, role)
    ends = [None if b is None else fixed_value(scope, b, role) for b in state.bounds or (None, None)]
    if value is None or ends[0] is None or ends[1] is None:
        return
    if not bool(np.all((ends[0] <= value) & (value <= ends[1]))):
        raise fail("OCO529", f"{role} lies outside its range", first.span, "widen the range, or start within it")


def check_decides(scope: Scope, label: str, sides: Args, span: Span | None) -> None:
    """Check that a constraint depends on a decision. Raises OCO520."""
    if any(Kind.DECISION in scope.kinds_in(side) for side in sides):
        return
    used = {e.name for side in sides for e in walk(side) if isinstance(e, Name)}
    state = next((d for d in map(scope.declared.get, sorted(used)) if isinstance(d, Stream) and d.first), None)
    message = f"constraint `{label}` contains no decision, so no decision can satisfy or break it"
    hint = ""
    if state is not None:
        hint = (
            f"`{state.name}` is what earlier rounds left: bound what this round leaves, in the range of the state "
            f"(`in [lo, hi]`), or here by what follows its `=`"
        )
    raise fail("OCO520", message, span, hint)


def check_timing(
    timing: Timing, label: str, relation: Relation, penalty: Expr | None, percent: float | None, span: Span | None
) -> None:
    """Check a constraint that says when it has to hold. Raises OCO528 for `in percent% of rounds`, OCO750 for `in total`."""
    if timing is Timing.IN_SHARE:
        _check_share(label, relation, penalty, percent, span)
    if timing is Timing.IN_TOTAL:
        _check_total(label, relation, penalty, span)


def _check_share(
    label: str, relation: Relation, penalty: Expr | None, percent: float | None, span: Span | None
) -> None:
    if percent is None or not 50 <= percent < 100:
        message = f"`{label}` holds in at least 50% of the rounds and less than 100%; here it is {percent or 0:g}%"
        raise fail("OCO528", message, span, "write `each round` for all of them")
    if relation is Relation.EQ:
        raise fail("OCO528", f"`{label}` is an equality, which a margin would break", span, "write `<=` or `>=`")
    if penalty is not None:
        message = f"`{label}` states both a share of the rounds and a penalty"
        raise fail("OCO528", message, span, "leave out `penalty`, or write `each round`")


def _check_total(label: str, relation: Relation, penalty: Expr | None, span: Span | None) -> None:
    if relation is Relation.EQ:
        message = f"`{label}` is an equality, and a total is a budget that need not be spent"
        raise fail("OCO750", message, span, "write `<=`, or an equality `on average`")
    if penalty is not None:
        message = f"`{label}` states a penalty, and a total is never exceeded"
        raise fail("OCO750", message, span, "leave out `penalty`, or write `on average`")


def check_distribution(scope: Scope, stream: Stream) -> None:
    """Check the arguments of a stream's distribution, and that it has probability within the stream's range."""
    spec = stream.distribution
    if spec is None:
        return
    row = DISTRIBUTIONS[spec.kind]
    args = dict(zip(row.parameters, spec.args)) | dict(spec.options)
    for name, arg in args.items():
        check_fixed(arg, f"the argument `{name}` of {spec.kind}")
    _raise(distributions.check_shapes(row, stream.shape, {n: a.shape for n, a in args.items()}), args, spec.span)
    values = _values(scope, args, spec.kind)
    _raise(distributions.check_values(row, values), args, spec.span)
    if stream.integer and not row.family.discrete and spec.kind != "constant":
        raise fail(
            "OCO425",
            f"`{stream.name}` takes integers, and {spec.kind} does not give integers",
            spec.span,
            "for any number in a range write in [lo, hi]",
        )
    if len(values) == len(args) and is_known(stream.shape):
        _check_probability(scope, stream, spec, values)


def _check_probability(scope: Scope, stream: Stream, spec: Distribution, values: Mapping[str, Array]) -> None:
    """Check that the distribution falls within the stream's range with a probability that a float can represent."""
    if stream.bounds is None:
        return
    ends = [fixed_value(scope, b, f"the range of `{stream.name}`") for b in stream.bounds]
    if ends[0] is None or ends[1] is None:
        return
    shape = tuple(d for d in stream.shape if isinstance(d, int))

    def array(e: Expr) -> Array:
        return np.asarray(fixed_value(scope, e, "an argument"))

    distribution = distributions.truncated(spec, array, shape, (ends[0], ends[1]))
    if not np.all(distribution.probability() > 0):
        shown = f"{spec.kind}(...)" if spec.span is None else spec.span.text
        raise fail(
            "OCO426",
            f"{shown} never falls within the range of `{stream.name}`",
            spec.span,
            "widen the range, or correct the distribution",
        )


def refuse_as_function(name: str, span: Span | None) -> OcoError:
    """Error for a call of something that is not a function of expressions."""
    if name in DOMAINS:
        return fail("OCO202", f"`{name}` is a domain: it stands after `in` where a decision is declared", span)
    if name in DISTRIBUTIONS:
        return fail("OCO202", f"`{name}` is a distribution: it stands after `~` where a stream is declared", span)
    if name == "file":
        return fail(
            "OCO213",
            "a file is read as the value of a param",
            span,
            'write `param data[...] = file("...")` and use `data` here',
        )
    if name in STATISTICS:
        hint = f"write `predict price = {STATISTICS[name]}`"
        what = "forecasts rounds to come" if name == "ahead" else "is of the rounds before"
        return fail("OCO202", f"`{name}` {what}, and stands in predictions alone", span, hint)
    known = [a for a, row in ATOMS.items() if not a.startswith("_") and not row.operator]
    return fail(
        "OCO202",
        f"there is no function `{name}`",
        span,
        _other_names(name) or did_you_mean(name, known, f"the functions are {', '.join(known)}"),
    )


def _other_names(name: str) -> str:
    """Hint with the function here that has another name elsewhere."""
    return f"write {ELSEWHERE[name]}" if name in ELSEWHERE else ""


SPELLED: dict[str, str] = {
    "R": "box(lo, hi), with wide bounds where there are no natural ones",
    "binary": "{0, 1}",
    "boolean": "{0, 1}",
    "combinations": "capped_simplex(1, k) rounded",
    "cube": "box(lo, hi)",
    "free": "box(lo, hi), with wide bounds where there are no natural ones",
    "hypercube": "box(lo, hi)",
    "interval": "box(lo, hi)",
    "k_sets": "capped_simplex(1, k) rounded",
    "l2_ball": "ball(r)",
    "linf_ball": "box(-r, r)",
    "nonneg": "box(0, hi)",
    "probability": "simplex",
    "psd": "spectrahedron(trace)",
    "reals": "box(lo, hi), with wide bounds where there are no natural ones",
    "sphere": "ball(r)",
    "subsets": "capped_simplex(1, k) rounded",
    "top_k": "capped_simplex(1, k) rounded",
    "const": "constant(v)",
    "dirac": "constant(v)",
    "exp": "exponential(mean)",
    "gaussian": "normal(mean, sd)",
    "multinomial": "categorical(p)",
    "unif": "uniform(lo, hi)",
}
"""Names here of domains and distributions that have another name elsewhere."""

ELSEWHERE: dict[str, str] = {
    "add": "x + y",
    "average": "mean(x)",
    "div": "x / y",
    "dot_product": "dot(x, y)",
    "entropy": "sum(entr(x))",
    "identity": "eye(n)",
    "inner": "dot(x, y)",
    "inv": "inv_pos(x), for positive x",
    "inverse": "inv_pos(x), for positive x",
    "lag": "prev(x), of a decision",
    "ln": "log(x)",
    "logsumexp": "log_sum_exp(x)",
    "lse": "log_sum_exp(x)",
    "matmul": "x @ y",
    "minus": "-x",
    "mul": "x * y",
    "multiply": "x * y",
    "norm": "norm2(x), norm1(x) or norm_inf(x)",
    "normNuc": "nuclear_norm(X)",
    "norm_nuc": "nuclear_norm(X)",
    "pow": "x ** p",
    "previous": "prev(x)",
    "quad": "quad_form(x, P)",
    "range": "a..b",
    "relu": "pos(x)",
    "sq": "square(x)",
    "sub": "x - y",
    "sum_of_squares": "sum_squares(x)",
    "tr": "trace(X)",
    "transpose": "x.T",
}
