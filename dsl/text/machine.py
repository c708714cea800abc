"""Parser: an LALR(1) machine that is fed token by token, so that the tokens possible at a mistake are known (Aho et al.
2006, 4.5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oco.dsl.text.tables import GrammarReduction, Tables

END = "$END"
"""Kind of the token that marks the end of the input."""


class Machine:
    """Parser of one statement or formula, token by token."""

    def __init__(self, made: Tables, builder: object, start: str) -> None:
        self.tables = made
        self.builder = builder
        self.path = [made.first[start]]
        self.values: list[Any] = []
        self.last = made.last[start]

    def fits(self, kind: str) -> bool:
        """True where a token of this kind may come next, judged by this state alone."""
        return kind in self.tables.states[self.path[-1]]

    def feed(self, kind: str, token: Any) -> bool:
        """Take the next token; False where none of this kind can stand here."""
        while True:
            action = self.tables.states[self.path[-1]].get(kind)
            if action is None:
                return False
            if action >= 0:
                self.path.append(action)
                self.values.append(token)
                return True
            self._reduce(self.tables.rules[~action])
            if kind == END and self.path[-1] == self.last:
                return True

    def _reduce(self, rule: GrammarReduction) -> None:
        first = len(self.values) - rule.size
        value = self._value(rule, self.values[first:])
        del self.values[first:], self.path[first + 1 :]
        self.path.append(self.tables.states[self.path[-1]][rule.origin])
        self.values.append(value)

    def _value(self, rule: GrammarReduction, symbols: list[Any]) -> Any:
        parts: list[Any] = []
        for k, symbol in enumerate(symbols):
            parts += [None] * rule.absent[k]
            if k not in rule.lists:
                parts.append(symbol)
            elif parts:
                parts += symbol
            else:  # a list that grows at its end is not copied
                parts = symbol
        parts += [None] * rule.absent[-1]
        if rule.method is None or (rule.plain and len(parts) == 1):
            return parts if rule.method is None else parts[0]
        make: Callable[[list[Any]], Any] = getattr(self.builder, rule.method)
        return make(parts)

    def accepts(self) -> frozenset[str]:
        """Kinds of token that can come next."""
        kinds = self.tables.states[self.path[-1]]
        return frozenset(kind for kind in kinds if kind.isupper() and self._takes(kind))

    def _takes(self, kind: str) -> bool:
        path = self.path.copy()
        while True:
            action = self.tables.states[path[-1]].get(kind)
            if action is None:
                return False
            if action >= 0:
                return True
            rule = self.tables.rules[~action]
            del path[len(path) - rule.size :]
            path.append(self.tables.states[path[-1]][rule.origin])
            if kind == END and path[-1] == self.last:
                return True
