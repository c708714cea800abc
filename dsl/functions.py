"""Functions of the builder under the names of the language: atoms, domains and distributions, each with its signature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from inspect import Parameter, Signature
from typing import Any, TypeVar

from oco.dsl.atoms import ATOMS
from oco.dsl.atoms.base import Atom
from oco.dsl.atoms.shapes import entrywise
from oco.dsl.caller import caller_span
from oco.dsl.checks import distribution_spec, domain_spec
from oco.dsl.diagnostics import OcoError
from oco.dsl.dims import Shape, show, symbol
from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.dsl.expressions import Call, Expr, Kind, Name
from oco.dsl.limits import admitted
from oco.dsl.previous import previous
from oco.dsl.scope import Scope
from oco.dsl.source import Span
from oco.dsl.statistics import ALONE, STATISTICS, statistic
from oco.dsl.terms import DistributionTerm, DomainTerm, Operand, Term, apply, common_scope, term

OPTIONS: dict[str, str] = {"axis": "int | None", "over": "Term | str | None", "by": "Term | None"}
"""Type of each option of the atoms. An option is given by name and may be left out."""


def atom_signature(row: Atom) -> Signature:
    """Signature of an atom's function: arguments in order, options by name."""
    least, greatest = row.arity
    names = row.argument_names
    if greatest is None:
        arguments = [Parameter(names[-1], Parameter.VAR_POSITIONAL, annotation="Operand")]
    else:
        arguments = _arguments_in_order(names[:1], names[:least], Parameter.POSITIONAL_ONLY)
        arguments += _arguments_in_order(names[1:], names[:least], Parameter.POSITIONAL_OR_KEYWORD)
    options = [Parameter(o, Parameter.KEYWORD_ONLY, default=None, annotation=OPTIONS[o]) for o in row.options]
    return Signature([*arguments, *options], return_annotation="Term")


def domain_signature(kind: str) -> Signature:
    """Signature of a domain's constructor."""
    row = DOMAINS[kind]
    required = row.parameters[: len(row.parameters) - row.optional]
    arguments = _arguments_in_order(row.parameters, required, Parameter.POSITIONAL_OR_KEYWORD)
    return Signature(arguments, return_annotation="Domain")


def distribution_signature(kind: str) -> Signature:
    """Signature of a distribution: its parameters in order, its keywords by name."""
    row = DISTRIBUTIONS[kind]
    arguments = _arguments_in_order(row.parameters, row.parameters, Parameter.POSITIONAL_OR_KEYWORD)
    keywords = [Parameter(k, Parameter.KEYWORD_ONLY, annotation="Operand") for k in row.keywords]
    return Signature([*arguments, *keywords], return_annotation="DistributionTerm")


def _arguments_in_order(names: Iterable[str], required: Iterable[str], kind: Any) -> list[Parameter]:
    needed = set(required)
    return [Parameter(n, kind, default=Parameter.empty if n in needed else None, annotation="Operand") for n in names]


F = TypeVar("F", bound=Callable[..., Any])


def _named(function: F, name: str, doc: str, signature: Signature) -> F:
    """Set the name, the docstring and the signature that editors show."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.__signature__ = signature  # type: ignore[attr-defined]  # what `inspect.signature` reads
    return function


def _function(name: str) -> Callable[..., Term]:
    row = ATOMS[name]

    def function(*operands: Operand, **options: Any) -> Term:
        if name in STATISTICS and len(operands) > 1:
            return _statistic(name, "")(*operands)
        while len(operands) - 1 < len(row.by_name) and operands and row.by_name[len(operands) - 1] in options:
            operands = (*operands, options.pop(row.by_name[len(operands) - 1]))
        return apply(name, *operands, **{n: v for n, v in options.items() if v is not None or n not in row.options})

    signature = atom_signature(row)
    takes = f"Arguments are expressions, numbers or arrays{_shapes(row)}"
    doc = _described(f"{name}({_parameters(signature)})", row.doc, takes, "OcoError (OCO3xx) where they do not fit")
    return _named(function, name, doc, signature)


M, N = symbol("m"), symbol("n")
EXAMPLES: Mapping[int | None, tuple[tuple[Shape, ...], ...]] = {
    1: (((N,),), ((M, N),), ((N, N),)),
    2: (((M,), (N,)), ((N,), (N,)), ((N,), (N, N))),
}
"""Shapes that arguments may have, by their number: those of the first that an atom takes stand in its docstring."""


def _shapes(row: Atom) -> str:
    """Clause on the shapes of arguments and of the result."""
    if row.shape is entrywise:
        return ", whose shapes broadcast: it acts entry by entry, and the result has their common shape"
    if row.options:
        return "; the result is a number, or an array of the axes that are left"
    taken: dict[int, str] = {}  # for a vector, and for a matrix
    for shapes in EXAMPLES.get(row.arity[1], ()):
        with suppress(OcoError):
            given = tuple(Name(f"_{k}", Kind.PARAM, shape=s) for k, s in enumerate(shapes))
            result = row.shape(Call(row.name, given, shape=()))
            taken.setdefault(
                len(shapes[0]), f"{' and '.join(map(show, shapes))} give{'s' * (len(shapes) == 1)} {show(result)}"
            )
    return f"; {', '.join(taken.values())}" if taken else ""


def _parameters(signature: Signature) -> str:
    """Parameters as they are written: `x, M = None`, `*x`."""
    parts = []
    for p in signature.parameters.values():
        star = "*" if p.kind is Parameter.VAR_POSITIONAL else ""
        parts.append(f"{star}{p.name}" if p.default is Parameter.empty else f"{p.name} = {p.default}")
    return ", ".join(parts)


def _described(call: str, doc: str, arguments: str, errors: str) -> str:
    """Docstring of a word of the language; `arguments` are those that it takes."""
    return f"`{call}`: {doc}.\n\n{arguments}. Raises {errors}."


def _domain(kind: str) -> Callable[..., DomainTerm]:
    def domain(*operands: Operand, **options: Operand) -> DomainTerm:
        args, named, scope, span = _arguments(operands, options)
        return DomainTerm(domain_spec(kind, args, named, span), scope)

    row = DOMAINS[kind]
    errors = "OCO403 for their number, and OCO412 where a decision of another shape takes it"
    doc = _described(row.signature, row.doc, "Arguments are numbers, arrays or params", errors)
    return _named(domain, kind, doc, domain_signature(kind))


def _distribution(kind: str) -> Callable[..., DistributionTerm]:
    def distribution(*operands: Operand, **options: Operand) -> DistributionTerm:
        args, named, scope, span = _arguments(operands, options)
        return DistributionTerm(distribution_spec(kind, args, named, span), scope)

    row = DISTRIBUTIONS[kind]
    takes = "Arguments are numbers, arrays or params that broadcast to the shape of the stream"
    doc = _described(
        row.signature, row.doc, takes, "OCO421 for their number, and OCO422 where a stream of another shape takes it"
    )
    return _named(distribution, kind, doc, distribution_signature(kind))


def _arguments(
    operands: tuple[Operand, ...], options: dict[str, Operand]
) -> tuple[list[Expr], dict[str, Expr], Scope | None, Span | None]:
    span = caller_span()
    args = [term(o, span) for o in operands]
    named = {n: term(o, span) for n, o in options.items() if o is not None}
    scope = common_scope([*args, *named.values()], span)
    named_exprs = {n: admitted(a.expr, span) for n, a in named.items()}
    return [admitted(a.expr, span) for a in args], named_exprs, scope, span


def _prev(x: Operand, /) -> Term:
    span = caller_span()
    decision = term(x, span)
    return Term(previous(decision.expr, span), decision.scope)


def _statistic(kind: str, doc: str) -> Callable[..., Term]:
    """Function of a stream, and but for those of `ALONE` a number, that stands in `predict` alone."""

    def function(x: Operand, /, number: Operand | None = None) -> Term:
        span = caller_span()
        args = [term(a, span) for a in (x, number) if a is not None]
        return Term(statistic(kind, [a.expr for a in args], span), common_scope(args, span))

    second = [] if kind in ALONE else [Parameter("number", Parameter.POSITIONAL_OR_KEYWORD, annotation="Operand")]
    first = Parameter("x", Parameter.POSITIONAL_ONLY, annotation="Operand")
    return _named(function, kind, doc, Signature([first, *second], return_annotation="Term"))


_PREV = Signature([Parameter("x", Parameter.POSITIONAL_ONLY, annotation="Operand")], return_annotation="Term")

FUNCTIONS: dict[str, Callable[..., Term]] = {
    name: _function(name) for name, row in ATOMS.items() if not name.startswith("_") and not row.operator
} | {
    "range": _function("range"),
    "prev": _named(
        _prev,
        "prev",
        "Decision x of the round before, of its shape; in round 1 the start. Raises OCO217 for other things.",
        _PREV,
    ),
    "last": _statistic(
        "last",
        "Value of a stream in the round before, of its shape, for `m.predict`. Raises OCO220 for other arguments.",
    ),
    "ewma": _statistic(
        "ewma",
        "Average a of a stream v, of its shape, that forgets at a rate 0 < r <= 1: a += max(r, 1/t) (v - a); `ewma(price, 0.1)`, "
        "for `m.predict`. Raises OCO220 for other arguments.",
    ),
    "season": _statistic(
        "season",
        "Value of a stream so many rounds before, of its shape, `season(price, 24)`, for `m.predict`. Raises OCO220 for other arguments.",
    ),
    "ahead": _statistic(
        "ahead",
        "Entry of a context, along its first axis, for the round that is predicted, for `m.predict`: 0 for the round itself, k for k "
        "rounds later. Raises OCO220 for other arguments.",
    ),
}
"""Functions of the language by name."""

DOMAIN_FUNCTIONS: dict[str, Callable[..., DomainTerm]] = {kind: _domain(kind) for kind in DOMAINS}
DISTRIBUTION_FUNCTIONS: dict[str, Callable[..., DistributionTerm]] = {
    kind: _distribution(kind) for kind in DISTRIBUTIONS
}
