"""Formulas in t, T and numbers as traced values: `sqrt(t)`, `2*T**(3/4)/log(1 + t)`.

What does not depend on the round is folded to one number at compile time, whose origin is the formula itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import mul

from oco.compiler.ir.symbolic import (
    HALF,
    MINUS_ONE,
    ONE,
    Call,
    Formula,
    Numeral,
    Sum,
    Symbol,
    SymbolicPower,
    SymbolicProduct,
)
from oco.compiler.ir.symbolic_form import nearest_float, negative, power, product, split, substituted
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.dsl.diagnostics import InternalError
from oco.dsl.records import dataclass


def trace_formula(
    t: Tracer, formula: Formula, values: Mapping[str, Value | float], name: str = "", why: str = ""
) -> Value:
    """The formula with each symbol replaced by `values[symbol.name]`: numbers fold, traced values stay.

    A formula without traced symbols becomes the program constant `name`, with `why` (default: the formula) as its origin.
    """
    if missing := sorted(formula.symbols - values.keys()):
        raise InternalError(f"the formula {formula} uses {', '.join(missing)}, which has no value")
    traced = {n: v for n, v in values.items() if isinstance(v, Value)}
    numbers = {n: Numeral(Decimal(float(v))) for n, v in values.items() if not isinstance(v, Value)}
    if formula.symbols.isdisjoint(traced):
        return t.constant(_number(substituted(formula, numbers)), name, why or str(formula))
    return _Tracing(t, traced, numbers).value(formula)


def _number(formula: Formula) -> float:
    """The nearest float64 to a formula without symbols."""
    result = nearest_float(formula)
    if result is None:
        raise InternalError(f"{formula} is not a real number")
    return result


@dataclass(frozen=True)
class _Tracing:
    """Formulas as traced values, with values and numbers for their symbols."""

    t: Tracer
    traced: Mapping[str, Value]
    numbers: Mapping[str, Numeral]

    def value(self, f: Formula) -> Value:
        if self._is_known(f):
            return self.t.lift(_number(substituted(f, self.numbers)))
        match f:
            case Symbol():
                return self.traced[f.name]
            case Sum():
                return self._sum(f)
            case SymbolicProduct():
                return self._product(f)
            case SymbolicPower():
                return self._power(f.base, f.exponent)
            case Call():
                return self._function(f)
        raise InternalError(f"no equation for {f} in a formula of settings")

    def _is_known(self, f: Formula) -> bool:
        return f.symbols.isdisjoint(self.traced)

    def _sum(self, f: Sum) -> Value:
        first, *rest = sorted(f.args, key=_is_negative)
        result = self.value(first)
        for term in rest:
            result = result - self.value(negative(term)) if _is_negative(term) else result + self.value(term)
        return result

    def _product(self, f: SymbolicProduct) -> Value:
        """Factors with negative exponents make one denominator."""
        below = [power(a, MINUS_ONE) for a in f.args if _is_divisor(a)]
        front, _ = split(f)
        if isinstance(front, Fraction) and front.denominator != 1:
            below = [Numeral(Fraction(front.denominator)), *below]
        if below:
            above = product((f, *below))
            return self.value(above) / self.value(product(below))
        known = [a for a in f.args if self._is_known(a)]
        left = [self.value(a) for a in f.args if not self._is_known(a)]
        factor = product(known)
        if factor == MINUS_ONE:
            return -reduce(mul, left)
        return reduce(mul, left if factor == ONE else [self.value(factor), *left])

    def _power(self, base: Formula, exponent: Formula) -> Value:
        if exponent == HALF:
            return self.t.sqrt(self.value(base))
        if isinstance(exponent, Numeral) and exponent.number < 0:
            return self.t.lift(1.0) / self.value(power(base, negative(exponent)))
        return self.value(base) ** self.value(exponent)

    def _function(self, f: Call) -> Value:
        t = self.t
        rows: dict[str, Callable[..., Value]] = {
            "log": t.log,
            "exp": t.exp,
            "floor": t.floor,
            "ceiling": lambda x: -t.floor(-x),
            "abs": t.abs,
            "max": lambda *xs: _chained(t.maximum, xs),
            "min": lambda *xs: _chained(t.minimum, xs),
        }
        return rows[f.name](*map(self.value, f.args))


def _chained(operation: Callable[[Value, Value], Value], values: Sequence[Value]) -> Value:
    return reduce(operation, values)


def _is_negative(f: Formula) -> bool:
    return (f.number if isinstance(f, Numeral) else split(f)[0]) < 0


def _is_divisor(f: Formula) -> bool:
    return isinstance(f, SymbolicPower) and isinstance(f.exponent, Numeral) and f.exponent.number < 0
