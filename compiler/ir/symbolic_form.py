"""Symbolic formulas in one form: numbers are folded, equal terms and powers of equal bases collected, numbers multiplied into sums.

Every symbol stands for a positive number, so that (a b)^p = a^p b^p. What is not a real number is `UNDEFINED`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import reduce

from oco.compiler.ir.exact_numbers import (
    EXACT,
    NAN,
    Number,
    decimal,
    exact_number,
    is_exact_power,
    plus,
    root_of,
    times,
)
from oco.compiler.ir.symbolic import (
    HALF,
    MINUS_ONE,
    ONE,
    UNDEFINED,
    ZERO,
    Call,
    Formula,
    Numeral,
    Sum,
    Symbol,
    SymbolicPower,
    SymbolicProduct,
    factor_order,
    term_order,
)


def exact(number: float | Fraction | Decimal) -> Numeral:
    """A short decimal as the fraction that it is meant to be; any other number as it is, to thirty digits."""
    return _constant(exact_number(number))


def _constant(number: Number) -> Numeral:
    return UNDEFINED if isinstance(number, Decimal) and number.is_nan() else Numeral(number)


def total(terms: Iterable[Formula]) -> Formula:
    """Sum, with the multiples of equal terms collected."""
    number: Number = Fraction(0)
    multiples: dict[Formula, Number] = {}
    for term in _flat(Sum, terms):
        if isinstance(term, Numeral):
            number = plus(number, term.number)
        else:
            multiple, rest = split(term)
            multiples[rest] = plus(multiples.get(rest, Fraction(0)), multiple)
    parts = [product((_constant(k), f)) for f, k in multiples.items() if k]
    if _constant(number) is UNDEFINED:
        return UNDEFINED
    parts += [_constant(number)] if number or not parts else []
    if len(parts) == 2 and number > 0 and split(parts[0])[0] < 0:
        return Sum(*reversed(parts))  # `1 - t`
    return parts[0] if len(parts) == 1 else Sum(*sorted(parts, key=term_order))


def split(term: Formula) -> tuple[Number, Formula]:
    """Number and the rest of a product."""
    if not isinstance(term, SymbolicProduct) or not isinstance(term.args[0], Numeral):
        return Fraction(1), term
    rest = term.args[1:]
    return term.coefficient, rest[0] if len(rest) == 1 else SymbolicProduct(*rest)


def product(factors: Iterable[Formula]) -> Formula:
    """Product, with the powers of equal bases collected; a number times a sum is a sum."""
    number: Number = Fraction(1)
    exponents: dict[Formula, Formula] = {}
    for factor in _flat(SymbolicProduct, factors):
        if isinstance(factor, Numeral):
            number = times(number, factor.number)
        else:
            base, exponent = (factor.base, factor.exponent) if isinstance(factor, SymbolicPower) else (factor, ONE)
            exponents[base] = total((exponents[base], exponent)) if base in exponents else exponent
    rest: list[Formula] = []
    for part in _flat(SymbolicProduct, (power(b, e) for b, e in exponents.items())):
        if isinstance(part, Numeral):
            number = times(number, part.number)
        else:
            rest.append(part)
    if not rest or not number or _constant(number) is UNDEFINED:
        return _constant(number)
    if number == 1 and isinstance(number, Fraction):
        return rest[0] if len(rest) == 1 else SymbolicProduct(*sorted(rest, key=factor_order))
    if len(rest) == 1 and isinstance(rest[0], Sum):
        return total(product((_constant(number), t)) for t in rest[0].args)
    return SymbolicProduct(_constant(number), *sorted(rest, key=factor_order))


def _flat(kind: type[Formula], parts: Iterable[Formula]) -> Iterator[Formula]:
    for part in parts:
        yield from part.args if isinstance(part, kind) else (part,)


def negative(f: Formula) -> Formula:
    """Formula with the other sign."""
    return product((MINUS_ONE, f))


def quotient(above: Formula, below: Formula) -> Formula:
    """One formula over another."""
    return product((above, power(below, MINUS_ONE)))


def power(base: Formula, exponent: Formula) -> Formula:
    """Power; of a product with positive factors that of each, where the exponent is a number."""
    if exponent == ZERO or base == ONE:
        return ONE
    if exponent == ONE or base is UNDEFINED:
        return base
    if not isinstance(exponent, Numeral):
        return SymbolicPower(base, exponent)
    if isinstance(base, Numeral):
        return _power_of_number(base.number, exponent.number)
    integral = exponent.number == int(exponent.number)
    if isinstance(base, SymbolicPower) and (integral or base.base.is_positive):
        return power(base.base, product((base.exponent, exponent)))
    if isinstance(base, Call) and base.name == "exp":
        return call("exp", product((base.args[0], exponent)))
    if isinstance(base, SymbolicProduct):
        free = [f for f in base.args if integral or f.is_positive]
        rest = [f for f in base.args if f not in free]
        if free:
            return product(
                (*(power(f, exponent) for f in free), *((SymbolicPower(product(rest), exponent),) if rest else ()))
            )
    return SymbolicPower(base, exponent)


def _power_of_number(base: Number, exponent: Number) -> Formula:
    """Power of a number: a fraction where it is one, roots of integers, or a decimal."""
    if not base:
        return ZERO if exponent > 0 else UNDEFINED
    if not is_exact_power(base, exponent):
        return exact(EXACT.power(decimal(base), decimal(exponent)))
    assert isinstance(base, Fraction) and isinstance(exponent, Fraction)
    whole = math.floor(exponent)
    part, front = exponent - whole, base**whole
    if not part:
        return Numeral(front)
    if base < 0:
        return UNDEFINED
    front, roots = front / base.denominator, []
    for n, e in ((base.numerator, part), (base.denominator, 1 - part)):  # (p / q)^e = p^e q^(1 - e) / q
        whole_root, rest = root_of(n, e)
        front *= whole_root
        roots += [SymbolicPower(Numeral(Fraction(rest)), Numeral(e))] if rest > 1 else []
    parts = [*([Numeral(front)] if front != 1 or not roots else []), *sorted(roots, key=factor_order)]
    return parts[0] if len(parts) == 1 else SymbolicProduct(*parts)


def call(name: str, *args: Formula) -> Formula:
    """Function of formulas, worked out where its arguments are numbers."""
    if UNDEFINED in args:
        return UNDEFINED
    return FUNCTIONS[name](*args)


def _logarithm(x: Formula) -> Formula:
    if isinstance(x, Call) and x.name == "exp":
        return x.args[0]
    if not isinstance(x, Numeral):
        return Call("log", x)
    if x == ONE or not x.is_positive:
        return ZERO if x == ONE else UNDEFINED
    if isinstance(x.number, Decimal):
        return exact(EXACT.ln(x.number))
    return negative(Call("log", Numeral(1 / x.number))) if x.number.numerator == 1 else Call("log", x)


def _exponential(x: Formula) -> Formula:
    if isinstance(x, Call) and x.name == "log":
        return x.args[0]
    if x == ZERO:
        return ONE
    if isinstance(x, Numeral) and isinstance(x.number, Decimal):
        return exact(EXACT.exp(x.number))
    return Call("exp", x)


def _integer(name: str, rounding: str) -> Callable[[Formula], Formula]:
    def made(x: Formula) -> Formula:
        if x.symbols:
            return x if isinstance(x, Call) and x.name in ("floor", "ceiling") else Call(name, x)
        return Numeral(Fraction(int(decimal_value(x).to_integral_value(rounding))))

    return made


def _absolute(x: Formula) -> Formula:
    if x.is_positive:
        return x
    return Call("abs", x) if x.symbols else (x if decimal_value(x) >= 0 else negative(x))


def _extreme(name: str, sign: int) -> Callable[..., Formula]:
    """Least or greatest: of the numbers one stays, and a number that is not positive none beside positive formulas."""

    def made(*args: Formula) -> Formula:
        flat = dict.fromkeys(a for x in args for a in (x.args if isinstance(x, Call) and x.name == name else (x,)))
        rest = [a for a in flat if a.symbols]
        numbers = sorted((a for a in flat if not a.symbols), key=lambda a: sign * decimal_value(a))[-1:]
        if numbers and decimal_value(numbers[0]) <= 0 and (positive := [a for a in rest if a.is_positive]):
            if sign < 0:
                rest = [a for a in rest if a not in positive]
            else:
                numbers = []
        kept = [*numbers, *sorted(rest, key=factor_order)]
        return kept[0] if len(kept) == 1 else Call(name, *kept)

    return made


FUNCTIONS: Mapping[str, Callable[..., Formula]] = {
    "log": _logarithm,
    "exp": _exponential,
    "floor": _integer("floor", ROUND_FLOOR),
    "ceiling": _integer("ceiling", ROUND_CEILING),
    "abs": _absolute,
    "min": _extreme("min", -1),
    "max": _extreme("max", 1),
}
"""Functions of formulas by name, as constructors."""


def substituted(f: Formula, values: Mapping[str, Formula]) -> Formula:
    """Formula with formulas in the place of some of its symbols."""
    if f.symbols.isdisjoint(values):
        return f
    if isinstance(f, Symbol):
        return values[f.name]
    return mapped(f, lambda a: substituted(a, values))


def mapped(f: Formula, change: Callable[[Formula], Formula]) -> Formula:
    """Formula with changed arguments."""
    args = [change(a) for a in f.args]
    if isinstance(f, Call):
        return call(f.name, *args)
    if isinstance(f, SymbolicPower):
        return power(*args)
    return total(args) if isinstance(f, Sum) else product(args) if isinstance(f, SymbolicProduct) else f


def decimal_value(f: Formula) -> Decimal:
    """Value of a formula without symbols, to about thirty digits; NaN where it is not a finite real number."""
    if isinstance(f, Numeral):
        return decimal(f.number)
    args = [decimal_value(a) for a in f.args]
    if any(a.is_nan() for a in args):
        return NAN
    if isinstance(f, Sum | SymbolicProduct):
        return reduce(EXACT.add if isinstance(f, Sum) else EXACT.multiply, args)
    if isinstance(f, SymbolicPower):
        return EXACT.sqrt(args[0]) if f.exponent == HALF else EXACT.power(*args)
    assert isinstance(f, Call)
    worked_out = call(f.name, *map(Numeral, args))
    assert isinstance(worked_out, Numeral)
    return decimal(worked_out.number)


def nearest_float(f: Formula) -> float | None:
    """Float64 nearest to a formula without symbols; None where it is not a finite real number."""
    value = decimal_value(f)
    result = float(value) if value.is_finite() else math.nan
    return result if math.isfinite(result) else None
