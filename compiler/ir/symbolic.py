"""Nodes of symbolic formulas: exact numbers, positive symbols, sums, products, powers and a few functions.

They are values, which print as text that can be read back, and which SymPy takes as the expressions that they stand for. Those of
`symbolic_form.py` make them, in one form.
"""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Self, cast

from oco.compiler.ir.exact_numbers import DIGITS, NAN, Number, decimal, opposite, written


class Formula:
    """Node of a formula: its parts, compared by value. Equal nodes are mostly one object, so that comparing them takes no time."""

    parts: tuple[Any, ...]
    _hash: int

    def __new__(cls, *parts: Any) -> Self:
        """Node of these parts."""
        return cast(Self, _node(cast(Hashable, cls), *parts))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self._hash == other._hash and self.parts == other.parts)

    @property
    def args(self) -> tuple[Formula, ...]:
        """Formulas that it is made of."""
        return cast(tuple[Formula, ...], self.parts)

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Names of its symbols."""
        return frozenset().union(*(a.symbols for a in self.args))

    @cached_property
    def is_positive(self) -> bool:
        """True where it is seen to be positive for all positive values of its symbols."""
        return all(a.is_positive for a in self.args)

    def __str__(self) -> str:
        return text(self)

    def _sympy_(self) -> Any:
        """Expression of SymPy."""
        import sympy

        if isinstance(self, Numeral):
            n = self.number
            return (
                sympy.Rational(n.numerator, n.denominator) if isinstance(n, Fraction) else sympy.Float(str(n), DIGITS)
            )
        if isinstance(self, Symbol):
            return sympy.Symbol(self.name, positive=True)
        kind = (
            _OF_SYMPY.get(self.name, self.name)
            if isinstance(self, Call)
            else {Sum: "Add", SymbolicProduct: "Mul", SymbolicPower: "Pow"}[type(self)]
        )
        return getattr(sympy, kind)(*map(sympy.sympify, self.args))


@lru_cache(maxsize=1 << 14, typed=True)
def _node(kind: type[Formula], *parts: Any) -> Formula:
    """Node of a kind; of a fraction another one than of a decimal of its value."""
    result = object.__new__(kind)
    result.parts, result._hash = parts, hash((kind, *map(type, parts), parts))
    return result


class Numeral(Formula):
    """Number."""

    @property
    def number(self) -> Number:
        """Its value."""
        return cast(Number, self.parts[0])

    @property
    def args(self) -> tuple[Formula, ...]:
        """None."""
        return ()

    @cached_property
    def is_positive(self) -> bool:
        """True above zero."""
        return self is not UNDEFINED and self.number > 0


class Symbol(Formula):
    """Positive number with a name."""

    @property
    def name(self) -> str:
        """Its name."""
        return cast(str, self.parts[0])

    @property
    def args(self) -> tuple[Formula, ...]:
        """None."""
        return ()

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Its own name."""
        return frozenset((self.name,))


class Sum(Formula):
    """Sum of at least two terms."""


class SymbolicProduct(Formula):
    """Product of at least two factors, the number first."""

    @property
    def coefficient(self) -> Number:
        """Number among its factors, or 1."""
        first = self.args[0]
        return first.number if isinstance(first, Numeral) else Fraction(1)


class SymbolicPower(Formula):
    """Power of a base."""

    @property
    def base(self) -> Formula:
        """Its base."""
        return self.args[0]

    @property
    def exponent(self) -> Formula:
        """Its exponent."""
        return self.args[1]

    @cached_property
    def is_positive(self) -> bool:
        """True for a positive base."""
        return self.base.is_positive


class Call(Formula):
    """Function of arguments, by its name in `FUNCTIONS`."""

    @property
    def name(self) -> str:
        """Name of the function."""
        return cast(str, self.parts[0])

    @property
    def args(self) -> tuple[Formula, ...]:
        """Its arguments."""
        return cast(tuple[Formula, ...], self.parts[1:])

    @cached_property
    def is_positive(self) -> bool:
        """True for exponentials, a maximum with a positive argument, and a minimum of positive ones."""
        if self.name == "max":
            return any(a.is_positive for a in self.args)
        return self.name == "exp" or (self.name == "min" and all(a.is_positive for a in self.args))


_OF_SYMPY = {"abs": "Abs", "min": "Min", "max": "Max"}
"""Names of functions in SymPy, where it calls them otherwise."""
ZERO, ONE, MINUS_ONE = (Numeral(Fraction(k)) for k in (0, 1, -1))
HALF = Numeral(Fraction(1, 2))
UNDEFINED = Numeral(NAN)
"""Number of a formula that has no real value."""


def text(f: Formula, digits: int = DIGITS) -> str:
    """Formula as it may be written: `2*T**(3/4)/log(t + 1)`, `sqrt(t)`. `digits`: those of its decimals."""
    if isinstance(f, Numeral):
        return written(f.number, digits)
    if isinstance(f, Symbol):
        return f.name
    if isinstance(f, Call):
        return f"{f.name}({', '.join(text(a, digits) for a in f.args)})"
    if isinstance(f, Sum):
        first, *rest = (text(a, digits) for a in f.args)
        return first + "".join(f" - {a[1:]}" if a.startswith("-") else f" + {a}" for a in rest)
    if isinstance(f, SymbolicProduct):
        return _product_text(f, digits)
    assert isinstance(f, SymbolicPower)
    if isinstance(f.exponent, Numeral) and f.exponent.number in (-1, Fraction(-1, 2)):
        return f"1/{_power_text(f.base, Numeral(opposite(f.exponent.number)), digits)}"
    return _power_text(f.base, f.exponent, digits)


def _power_text(base: Formula, exponent: Formula, digits: int) -> str:
    if exponent == ONE:
        return _enclosed(base, digits)
    if exponent == HALF:
        return f"sqrt({text(base, digits)})"
    return f"{_enclosed(base, digits, SymbolicPower)}**{_enclosed(exponent, digits, SymbolicPower)}"


def _enclosed(f: Formula, digits: int, within: type[Formula] = SymbolicProduct) -> str:
    """Operand, in parentheses where the operators around it bind closer."""
    shown = text(f, digits)
    is_power = within is SymbolicPower and not isinstance(f, Call) and not shown.replace("_", "").isalnum()
    return f"({shown})" if isinstance(f, Sum) or shown.startswith("-") or is_power else shown


def _product_text(f: SymbolicProduct, digits: int) -> str:
    """Product, with its negative powers in the denominator."""
    number, above, below = f.coefficient, [], []
    for a in f.args:
        if isinstance(a, SymbolicPower) and isinstance(a.exponent, Numeral) and a.exponent.number < 0:
            below.append(_power_text(a.base, Numeral(opposite(a.exponent.number)), digits))
        elif not isinstance(a, Numeral):
            above.append(_enclosed(a, digits))
    sign, number = ("-", opposite(number)) if number < 0 else ("", number)
    if isinstance(number, Fraction):
        below = [str(number.denominator), *below] if number.denominator != 1 else below
        number = Fraction(number.numerator)
    above = [written(number, digits), *above] if number != 1 or not above or isinstance(number, Decimal) else above
    denominator = f"({'*'.join(below)})" if len(below) > 1 else "".join(below)
    return f"{sign}{'*'.join(above)}" + (f"/{denominator}" if below else "")


def factor_order(f: Formula) -> Any:
    """Symbols, then sums, then functions, the extremes last; within each by name and exponent."""
    base, exponent = (f.base, f.exponent) if isinstance(f, SymbolicPower) else (f, ONE)
    shown = text(base)
    return _KINDS.index(type(base)), isinstance(base, Call) and base.name in ("min", "max"), shown, text(exponent)


_KINDS = (Numeral, Symbol, SymbolicProduct, Sum, SymbolicPower, Call)


def term_order(term: Formula) -> Any:
    """Terms as polynomials are written: higher powers of earlier symbols first, negative ones behind the number."""
    keys = []
    for f in term.args if isinstance(term, SymbolicProduct) else (term,):
        base, exponent = (f.base, f.exponent) if isinstance(f, SymbolicPower) else (f, ONE)
        if not isinstance(base, Numeral):
            size = decimal(exponent.number) if isinstance(exponent, Numeral) else Decimal(1)
            keys.append((_KINDS.index(type(base)), text(base), -size))
    place = 1 if not keys else 0 if keys[0][-1] < 0 else 2
    return place, [*keys, (len(_KINDS), "", Decimal(0))]
