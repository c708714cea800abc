"""Values of expressions in the notation of Lean, in exact rational arithmetic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import factorial

from oco.dsl.limits import LARGEST_EXPONENT

TOKEN = re.compile(r"\s*(\d+|∑|∈|[A-Za-z][A-Za-z.]*|[-+*/^(),:ℝ])")
SERIES = re.compile(r"∑ k ∈ range (\d+), (\w+) \^ k / \(Nat\.factorial k : ℝ\)")
Vectors = Mapping[str, tuple[Fraction, ...]]


class NotRead(Exception):
    """A text that is no expression of the numbers and vectors of a promise."""


def formula_value(
    text: str, numbers: Mapping[str, Fraction], vectors: Vectors, index: Mapping[str, int] | None = None
) -> Fraction:
    """Value of an expression: numbers, names, entries `slope i`, + - * / ^, sums over all entries `∑ i, ...`. Raises NotRead."""
    if whole := SERIES.fullmatch(text):
        terms, base = int(whole[1]), numbers.get(whole[2])
        if base is None or terms > LARGEST_EXPONENT:
            raise NotRead(text)
        return sum((base**k / factorial(k) for k in range(terms)), Fraction(0))
    if text.startswith("∑ i, "):
        body = text.removeprefix("∑ i, ")
        named = [vectors[n] for n in re.findall(r"(\w+) i\b", body) if n in vectors]
        if not named or len({len(v) for v in named}) != 1:
            raise NotRead(text)
        return sum((formula_value(body, numbers, vectors, {"i": k}) for k in range(len(named[0]))), Fraction(0))
    reader = _Reader(text, numbers, vectors, index or {})
    result = reader.sum()
    if reader.left:
        raise NotRead(text)
    return result


class _Reader:
    """Recursive descent over the tokens of an expression."""

    def __init__(self, text: str, numbers: Mapping[str, Fraction], vectors: Vectors, index: Mapping[str, int]) -> None:
        self.left, at = list[str](), 0
        while at < len(text.rstrip()):
            token = TOKEN.match(text, at)
            if token is None:
                raise NotRead(text)
            self.left.append(token[1])
            at = token.end()
        self.left.reverse()
        self.text, self.numbers, self.vectors, self.index = text, numbers, vectors, index

    def sum(self) -> Fraction:
        value = -self.product() if self._take("-") else self.product()
        while self.left and self.left[-1] in "+-":
            value = value + self.product() if self.left.pop() == "+" else value - self.product()
        return value

    def product(self) -> Fraction:
        value = self.power()
        while self.left and self.left[-1] in "*/":
            if self.left.pop() == "*":
                value *= self.power()
            elif (divisor := self.power()) != 0:
                value /= divisor
            else:
                raise NotRead(self.text)
        return value

    def power(self) -> Fraction:
        value = self.operand()
        if self._take("^"):
            exponent = self.left.pop() if self.left else ""
            if not exponent.isdigit() or int(exponent) > LARGEST_EXPONENT:
                raise NotRead(self.text)
            value = value ** int(exponent)
        return value

    def operand(self) -> Fraction:
        token = self.left.pop() if self.left else ""
        if token.isdigit():
            return Fraction(int(token))
        if token == "(":
            value = self.sum()
            if self._take(":") and not self._take("ℝ"):
                raise NotRead(self.text)
            if not self._take(")"):
                raise NotRead(self.text)
            return value
        if token in self.vectors and self.left and self.left[-1] in self.index:
            entries, at = self.vectors[token], self.index[self.left.pop()]
            if at < len(entries):
                return entries[at]
        elif token in self.numbers:
            return self.numbers[token]
        raise NotRead(self.text)

    def _take(self, token: str) -> bool:
        if self.left and self.left[-1] == token:
            self.left.pop()
            return True
        return False
