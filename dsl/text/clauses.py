"""Parts of statements that the grammar reads as expressions: bounds, names, domains, distributions."""

from __future__ import annotations

from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.source import Span
from oco.dsl.text import syntax
from oco.dsl.text.spacing import canonical
from oco.dsl.text.tokens import Token


def attribute(token: Token) -> OcoError:
    """Error for a dot before anything but T."""
    return fail(
        "OCO121",
        f"`.{token.text}` means nothing here",
        token.span,
        "write `.T` for the transpose"
        if token.text.lower() in ("t", "transpose")
        else "only `.T`, the transpose, follows a dot",
    )


def bounds_of(within: syntax.Expression) -> tuple[tuple[syntax.Expression, syntax.Expression], bool]:
    """Bounds after `in`, `[lo, hi]` or `lo..hi`, and a flag for integers; of an index, `in zone`, both ends are its name."""
    if isinstance(within, syntax.Identifier) and "." not in within.name:
        return (within, within), True
    if isinstance(within, syntax.Call) and within.operator == "..":
        return (within.args[0], within.args[1]), True
    if isinstance(within, syntax.ArrayLiteral) and len(within.items) == 2:
        return (within.items[0], within.items[1]), False
    hint = ""
    if isinstance(within, syntax.ValueSet):
        hint = "a set of values is for streams; write the least and the greatest"
    elif isinstance(within, syntax.ArrayLiteral):
        hint = "one entry is the least value, the other the greatest; either may be an array"
    elif isinstance(within, syntax.Call) and within.name == "box" and len(within.args) == 2:
        hint = f"write in [{canonical(within.args[0].span.text)}, {canonical(within.args[1].span.text)}]"
    elif isinstance(within, syntax.Call) and not within.operator:
        hint = f"a distribution follows `~`: ~ {canonical(within.span.text)}"
    raise fail("OCO120", "values lie `in [lo, hi]`, or `in lo..hi` for integers", within.span, hint)


def names_of(value: syntax.Expression) -> tuple[str, ...]:
    """Names that an index lists: words, texts in quotes, integers."""
    hint = 'list them: `[NYC, WEST]`, in quotes where they are no words: `["N.Y.C.", "MHK VL"]`'
    if not isinstance(value, syntax.ArrayLiteral):
        raise fail("OCO218", "an index is a list of names, or read from a file", value.span, hint)
    names = []
    for item in value.items:
        match item:
            case syntax.Identifier(name=name) if "." not in name:
                names.append(name)
            case syntax.QuotedString(value=text):
                names.append(text)
            case syntax.Number(value=int(number)):
                names.append(str(number))
            case _:
                raise fail("OCO218", "this is no name", item.span, hint)
    return tuple(names)


def number_of(item: syntax.Expression) -> float | int:
    """Number of a set, perhaps with a minus."""
    match item:
        case syntax.Number(value=value):
            return value
        case syntax.Call(name="minus", args=(syntax.Number(value=value),)):
            return -value
    raise fail("OCO120", "a set of values lists numbers", item.span, "write the numbers: {-1, 1}")


def domain_of(domain: syntax.Expression) -> syntax.Call:
    """Domain of a decision, as a call; an interval is a box. Raises OCO120."""
    call = _as_call(domain)
    if call is not None:
        return call
    if (missing := _missing_in(domain)) is not None:
        raise missing
    if isinstance(domain, syntax.ArrayLiteral) and len(domain.items) == 2:
        return syntax.Call("box", domain.items, span=domain.span)
    hint = "write the name of a domain, or an interval: box(lo, hi), [lo, hi], ball(r), simplex, ..."
    if isinstance(domain, syntax.ValueSet):
        if sorted(number_of(i) for i in domain.items) == [0, 1]:
            return syntax.Call("box", tuple(sorted(domain.items, key=number_of)), span=domain.span)
        hint = "decisions lie in convex sets, or in {0, 1}: box(lo, hi) holds what lies between"
    if isinstance(domain, syntax.Call) and domain.operator == "..":
        lower, upper = (canonical(a.span.text) for a in domain.args)
        hint = f"decisions lie in convex sets, or in {{0, 1}}: write `[{lower}, {upper}]`"
    raise fail("OCO120", "a decision lies in a domain", domain.span, hint)


def distribution_of(distribution: syntax.Expression) -> syntax.Call:
    """Distribution of a stream, as a call. Raises OCO120."""
    call = _as_call(distribution)
    if call is not None:
        return call
    if (missing := _missing_in(distribution)) is not None:
        raise missing
    hint = "write uniform(0, 1), normal(0, 1), poisson(5), ..."
    raise fail("OCO120", "a distribution follows `~`", distribution.span, hint)


def _missing_in(expression: syntax.Expression) -> OcoError | None:
    """Hint for a forgotten `in`: `~ normal(0, 1) [-6, 6]` reads as an index."""
    if not isinstance(expression, syntax.Subscript):
        return None
    source, start = expression.span.source, expression.base.span.end
    span = Span(source, start + source.text[start:].find("["), expression.span.end)
    return fail("OCO119", "expected `in` before the bounds", span, f"write `in {canonical(span.text)}`")


def _as_call(expression: syntax.Expression) -> syntax.Call | None:
    """Call from a name with or without arguments."""
    if isinstance(expression, syntax.Identifier) and "." not in expression.name:
        return syntax.Call(expression.name, (), span=expression.span)
    if isinstance(expression, syntax.Call) and not expression.operator:
        return expression
    return None
