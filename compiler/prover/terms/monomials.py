"""Products and quotients with powers of one base gathered: `(y / x) * (1 / y)` is `1 / x`, so that y stands in it no more."""

from __future__ import annotations

import math
from collections.abc import Callable

from oco.compiler.prover.terms.matching import is_all
from oco.dsl.atoms import form_of, forms
from oco.dsl.build import call
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Constant, Expr, uniform
from oco.dsl.intervals import Interval

Ranges = Callable[[Expr], Interval | None]
ROOT = 0.5


def gathered(node: Call, ranges: Ranges) -> Expr | None:
    """A product or quotient in which some base stands twice, with one power of each base; None where none does, or may be 0."""
    factors = _factors(node)
    powers: dict[int, float] = {}
    bases: dict[int, Expr] = {}
    count: dict[int, int] = {}
    for base, exponent in factors:
        bases[id(base)] = base
        powers[id(base)] = powers.get(id(base), 0.0) + exponent
        count[id(base)] = count.get(id(base), 0) + 1
    twice = [bases[k] for k, n in count.items() if n > 1 and not isinstance(bases[k], Constant)]
    if not twice or all(e > 0 for _, e in factors) or not all(_is_apart(b, factors, ranges) for b in twice):
        return None
    above = [_power(b, powers[k]) for k, b in bases.items() if powers[k] > 0]
    below = [_power(b, -powers[k]) for k, b in bases.items() if powers[k] < 0]
    result = _product(above) if above else uniform(1.0, ())
    if below:
        result = call("div", result, _product(below))
    if result.shape != node.shape:
        result = call("mul", uniform(1.0, known(node.shape)), result)
    return result


def _factors(node: Call) -> list[tuple[Expr, float]]:
    """Bases and their exponents, from left to right; each constant for itself."""
    results: list[tuple[Expr, float]] = []
    stack: list[tuple[Expr, float]] = [(node, 1.0)]
    while stack:
        e, exponent = stack.pop()
        match form_of(e), e.children:
            case forms.TIMES, (left, right):
                stack += [(right, exponent), (left, exponent)]
            case forms.QUOTIENT, (left, right):
                stack += [(right, -exponent), (left, exponent)]
            case forms.ROOT, (base,):
                stack.append((base, ROOT * exponent))
            case forms.Power(exponent=float(power)), (base,):
                stack.append((base, power * exponent))
            case forms.Power(), (base, Constant(value=value)) if value.array.shape == ():
                stack.append((base, float(value.array) * exponent))
            case _ if not is_all(e, 1.0):
                results.append((e, exponent))
    return results


def _is_apart(base: Expr, factors: list[tuple[Expr, float]], ranges: Ranges) -> bool:
    """True if powers of the base may be added: it is never 0, and positive where they are not integers."""
    result = ranges(base)
    if result is None or not math.isfinite(result.least):
        return False
    whole = all(e == round(e) for b, e in factors if b is base)
    return result.positive or (whole and result.greatest < 0)


def _power(base: Expr, exponent: float) -> Expr:
    match exponent:
        case 1.0:
            return base
        case 2.0:
            return call("square", base)
        case 0.5:
            return call("sqrt", base)
    return call("power", base, exponent)


def _product(factors: list[Expr]) -> Expr:
    total = factors[0]
    for f in factors[1:]:
        total = call("mul", total, f)
    return total
