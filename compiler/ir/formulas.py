"""SymPy formulas in t, T and numbers as traced values: `sqrt(t)`, `2*T**(3/4)/log(1 + t)`.

What does not depend on the round is folded to one number at compile time, whose origin is the formula itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.dsl.diagnostics import InternalError


def trace_formula(t: Tracer, formula: Any, values: Mapping[str, Value | float], name: str = "", why: str = "") -> Value:
    """The formula with each symbol replaced by `values[symbol.name]`: numbers fold, traced values stay.

    A formula without traced symbols becomes the program constant `name`, with `why` (default: the formula) as its origin.
    """
    import sympy

    expr = sympy.sympify(formula)
    free = {s.name: s for s in expr.free_symbols}
    if missing := sorted(free.keys() - values.keys()):
        raise InternalError(f"the formula {expr} uses {', '.join(missing)}, which has no value")
    numbers = {s: sympy.Float(v, 30) for n, s in free.items() if not isinstance(v := values[n], Value)}
    traced = {n: v for n, v in values.items() if isinstance(v, Value)}
    if all(s in numbers for s in free.values()):
        return t.constant(_number(expr.subs(numbers)), name, why or str(expr))
    return _Formula(t, traced, {s.name: float(v) for s, v in numbers.items()}).value(expr)


def _number(expr: Any) -> float:
    """The nearest float64 to an expression without symbols."""
    result = expr.evalf(30)
    if not result.is_real and not result.is_infinite:
        raise InternalError(f"{expr} is not a real number")
    return float(result)


class _Formula:
    """Walks a SymPy tree; every case is a function that SymPy may leave in a formula of settings."""

    def __init__(self, t: Tracer, traced: Mapping[str, Value], numbers: Mapping[str, float]) -> None:
        self.t = t
        self.traced = traced
        self.numbers = numbers

    def value(self, expr: Any) -> Value:
        import sympy

        if expr.is_Symbol and expr.name in self.traced:
            return self.traced[expr.name]
        if not any(s.name in self.traced for s in expr.free_symbols) and not expr.is_Relational:
            symbols = {s: sympy.Float(self.numbers[s.name], 30) for s in expr.free_symbols}
            return self.t.lift(_number(expr.subs(symbols)))
        if expr.is_Add:
            return self._sum(expr)
        if expr.is_Mul:
            return self._product(expr)
        if expr.is_Pow:
            return self._power(expr.base, expr.exp)
        if isinstance(expr, sympy.Piecewise):
            return self._cases(expr)
        return self._function(expr)

    def _sum(self, expr: Any) -> Value:
        first, *rest = sorted(expr.args, key=lambda a: a.could_extract_minus_sign())
        total = self.value(first)
        for term in rest:
            negative = term.could_extract_minus_sign()
            total = total - self.value(-term) if negative else total + self.value(term)
        return total

    def _product(self, expr: Any) -> Value:
        """Factors with negative exponents make one denominator."""
        numerator, denominator = expr.as_numer_denom()
        if denominator != 1:
            return self.value(numerator) / self.value(denominator)
        known = [f for f in expr.args if not any(s.name in self.traced for s in f.free_symbols)]
        left = [self.value(f) for f in expr.args if f not in known]
        if known:
            factor = expr.func(*known)
            if factor == -1:
                return -self._times(left)
            left = [self.value(factor), *left]
        return self._times(left)

    def _times(self, factors: list[Value]) -> Value:
        total = factors[0]
        for factor in factors[1:]:
            total = total * factor
        return total

    def _power(self, base: Any, exponent: Any) -> Value:
        import sympy

        if exponent == sympy.Rational(1, 2):
            return self.t.sqrt(self.value(base))
        if base == sympy.E:
            return self.t.exp(self.value(exponent))
        if exponent.is_number and exponent.is_negative:
            return self.t.lift(1.0) / self._power_or_base(base, -exponent)
        return self.value(base) ** self.value(exponent)

    def _power_or_base(self, base: Any, exponent: Any) -> Value:
        return self.value(base) if exponent == 1 else self._power(base, exponent)

    def _function(self, expr: Any) -> Value:
        import sympy

        args = [self.value(a) for a in expr.args]
        rows: dict[Any, Callable[..., Value]] = {
            sympy.log: self.t.log,
            sympy.exp: self.t.exp,
            sympy.floor: self.t.floor,
            sympy.ceiling: lambda x: -self.t.floor(-x),
            sympy.Abs: self.t.abs,
            sympy.Max: lambda *xs: self._fold(self.t.maximum, xs),
            sympy.Min: lambda *xs: self._fold(self.t.minimum, xs),
        }
        if expr.func not in rows:
            raise InternalError(f"no equation for {expr.func.__name__} in a formula of settings")
        return rows[expr.func](*args)

    def _fold(self, op: Callable[[Value, Value], Value], values: tuple[Value, ...]) -> Value:
        total = values[0]
        for value in values[1:]:
            total = op(total, value)
        return total

    def _cases(self, expr: Any) -> Value:
        *cases, (last, _) = expr.args
        result = self.value(last)
        for value, condition in reversed(cases):
            result = self.t.where(self._condition(condition), self.value(value), result)
        return result

    def _condition(self, relation: Any) -> Value:
        rows: dict[str, Callable[[Value, Value], Value]] = {
            "<": lambda a, b: a < b,
            "<=": lambda a, b: a <= b,
            ">": lambda a, b: a > b,
            ">=": lambda a, b: a >= b,
        }
        if getattr(relation, "rel_op", None) not in rows:
            raise InternalError(f"no condition {relation} in a formula of settings")
        return rows[relation.rel_op](self.value(relation.lhs), self.value(relation.rhs))
