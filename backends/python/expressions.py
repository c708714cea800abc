"""Pieces of Python expressions with their precedence, so that parentheses stand where they are needed and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum

from oco.compiler.ir.lanes import LANE
from oco.compiler.ir.program import DType, Literal, Type
from oco.dsl.records import dataclass

LANES = "_lanes"
"""Name of the number of lanes in functions of many learners; no identifier begins so."""


class Level(IntEnum):
    """Precedence of operators, loosest first."""

    CONDITIONAL = 1
    OR = 2
    AND = 3
    NOT = 4
    COMPARISON = 5
    BIT_OR = 6
    BIT_AND = 7
    SUM = 8
    PRODUCT = 9
    SIGN = 10
    POWER = 11
    ATOM = 12


@dataclass(frozen=True, slots=True)
class Text:
    """Python expression with the precedence of its outermost operator and the type of its value.

    `plain` replaces `code` beside a float array: an integer is printed without its point, a mask without a
    conversion. `function` and `arguments` are those of a call, so that a long one can be written on several lines. `whole`
    says that `plain` is an integer; `weak` that the value may be a Python float, whose division
    by zero raises; `nonzero` that it is known not to be zero, `nonnegative` that it is not below zero.
    """

    code: str
    level: Level
    type: Type
    plain: str = ""
    plain_level: Level = Level.ATOM
    is_literal: bool = False
    whole: bool = False
    weak: bool = False
    nonzero: bool = False
    nonnegative: bool = False
    function: str = ""
    arguments: tuple[str, ...] = ()

    def at(self, least: Level) -> str:
        """Code, in parentheses if it binds less tightly than `least`."""
        return self.code if self.level >= least else f"({self.code})"

    def beside(self, other: Text) -> Text:
        """Shorter spelling where `other` makes the result float anyway."""
        usable = (
            not (other.is_literal or other.type.shape)
            if self.is_literal
            else bool(other.type.shape) and not other.plain
        )
        return replace(self, code=self.plain, level=self.plain_level) if self.plain and usable else self


def literal(value: Literal) -> Text:
    """Number as Python source that gives back the same bits."""
    number = value.value
    if isinstance(number, bool) or not isinstance(number, float):
        level = Level.SIGN if number < 0 else Level.ATOM
        return Text(repr(number), level, value.type, is_literal=True)
    if not math.isfinite(number):
        code = "np.nan" if math.isnan(number) else "np.inf" if number > 0 else "-np.inf"
        return Text(
            code, Level.SIGN if code[0] == "-" else Level.ATOM, value.type, is_literal=True, weak=True, nonzero=True
        )
    code, level = repr(number), Level.SIGN if math.copysign(1.0, number) < 0 else Level.ATOM
    whole = number == int(number) and abs(number) < 1e15 and not (number == 0 and code[0] == "-")
    plain = str(int(number)) if whole else ""
    return Text(code, level, value.type, plain, level, is_literal=True, weak=True, nonzero=number != 0)


def infix(symbol: str, level: Level, args: Sequence[Text], made: Type) -> Text:
    """Expression `a + b`; the right side is parenthesized at the same level, since rounding depends on the order."""
    a, b = args[0].beside(args[1]), args[1].beside(args[0])
    weak = a.weak and b.weak and not made.shape
    return Text(f"{a.at(level)} {symbol} {b.at(Level(level + 1))}", level, made, weak=weak)


def comparison(symbol: str, args: Sequence[Text], made: Type) -> Text:
    """Expression `a < b`; a number on the left goes to the right."""
    a, b = args[0].beside(args[1]), args[1].beside(args[0])
    if args[0].is_literal and not args[1].is_literal:
        a, b, symbol = b, a, {"<": ">", "<=": ">=", "==": "=="}[symbol]
    return Text(f"{a.at(Level.BIT_OR)} {symbol} {b.at(Level.BIT_OR)}", Level.COMPARISON, made)


def call(name: str, args: Sequence[Text | str], made: Type) -> Text:
    """Call of a function."""
    shown = tuple(a if isinstance(a, str) else a.code for a in args)
    return Text(f"{name}({', '.join(shown)})", Level.ATOM, made, function=name, arguments=shown)


def method(x: Text, name: str, options: str, made: Type) -> Text:
    """Call of a method."""
    return Text(f"{x.at(Level.ATOM)}.{name}({options})", Level.ATOM, made)


def subscript(x: Text, index: str, made: Type) -> Text:
    """Expression `x[index]`."""
    return Text(f"{x.at(Level.ATOM)}[{index}]", Level.ATOM, made)


def in_rows(items: Sequence[str], width: int) -> list[str]:
    """Items on indented lines, as many on one as fit, each with a comma."""
    rows: list[str] = []
    for item in items:
        if rows and len(rows[-1]) + len(item) + 2 <= width:
            rows[-1] += f" {item},"
        else:
            rows.append(f"    {item},")
    return rows


def length_text(n: int) -> str:
    """Source of a length: a number, or the name of the number of lanes."""
    return LANES if n == LANE else str(n)


def shape_text(shape: tuple[int, ...]) -> str:
    """Source of a shape: `5` for one axis, else a tuple."""
    return length_text(shape[0]) if len(shape) == 1 else f"({', '.join(map(length_text, shape))})"


NUMPY_KINDS = {DType.FLOAT: "np.float64", DType.INT: "np.int64", DType.BOOL: "np.bool_"}
