"""Pieces of C expressions with their precedence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum

from oco.compiler.ir.program import DType, Literal
from oco.dsl.records import dataclass

C_TYPES = {DType.FLOAT: "double", DType.INT: "int64_t", DType.BOOL: "bool"}


class Level(IntEnum):
    """Precedence of operators, loosest first."""

    CONDITIONAL = 1
    OR = 2
    AND = 3
    COMPARISON = 4
    SUM = 5
    PRODUCT = 6
    UNARY = 7
    ATOM = 8


@dataclass(frozen=True, slots=True)
class Text:
    """C expression with the precedence of its outermost operator."""

    code: str
    level: Level = Level.ATOM

    def at(self, least: Level) -> str:
        """Code, in parentheses if it binds less tightly than `least`."""
        return self.code if self.level >= least else f"({self.code})"

    @property
    def is_number(self) -> bool:
        """True for a literal number that is finite."""
        return self.code.lstrip("-")[:1].isdigit() and self.level >= Level.UNARY


def literal(value: Literal) -> Text:
    """Number that reads back to the same bits."""
    number = value.value
    if isinstance(number, bool):
        return Text("true" if number else "false")
    if isinstance(number, int):
        small = abs(number) < 2**31
        code = str(number) if small else f"INT64_C({number})"
        if number == -(2**63):
            return Text("INT64_MIN")
        return Text(code, Level.UNARY if number < 0 else Level.ATOM)
    if math.isnan(number):
        return Text("NAN")
    code = repr(number) if math.isfinite(number) else ("INFINITY" if number > 0 else "-INFINITY")
    return Text(code, Level.UNARY if code[0] == "-" else Level.ATOM)


def infix(symbol: str, level: Level, args: Sequence[Text]) -> Text:
    """Expression `a + b`; the right side is parenthesized at the same level, since rounding depends on the order."""
    left = args[0].at(level)
    right = args[1].at(Level(level + 1))
    return Text(f"{left} {symbol} {right}", level)


def comparison(symbol: str, args: Sequence[Text]) -> Text:
    """Expression `a < b`."""
    return Text(f"{args[0].at(Level.SUM)} {symbol} {args[1].at(Level.SUM)}", Level.COMPARISON)


def logical(symbol: str, level: Level, args: Sequence[Text]) -> Text:
    """Expression `a && b`; `&&` and `||` are never mixed without parentheses."""

    def side(x: Text) -> str:
        return x.code if x.level >= Level.COMPARISON or x.level == level else f"({x.code})"

    return Text(f"{side(args[0])} {symbol} {side(args[1])}", level)


def call(name: str, args: Sequence[Text | str]) -> Text:
    """Call of a function."""
    return Text(f"{name}({', '.join(a if isinstance(a, str) else a.code for a in args)})")


def conditional(args: Sequence[Text]) -> Text:
    """Expression `c ? a : b`."""
    condition, a, b = args
    return Text(f"{condition.at(Level.OR)} ? {a.at(Level.OR)} : {b.at(Level.OR)}", Level.CONDITIONAL)
