"""States that stand below what is made of them: other states, and abbreviations."""

from __future__ import annotations

from collections.abc import Iterable

from oco.dsl.text import syntax

Waiting = syntax.StateStatement | syntax.LetStatement


class StatesBelow:
    """Names of the states that are not declared yet, and the statements that wait for them, in the order of the text."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names, self._waiting = set(names), list[Waiting]()

    def holds(self, s: Waiting) -> bool:
        """True where a statement is made of a state that stands below, or of an abbreviation that waits for one: then it waits, too."""
        expr = s.following if isinstance(s, syntax.StateStatement) else s.value
        missing = self._names | {w.name.name for w in self._waiting if isinstance(w, syntax.LetStatement)}
        if missing.isdisjoint(n.name for n in syntax.walk(expr) if isinstance(n, syntax.Identifier)):
            return False
        self._waiting.append(s)
        return True

    def reached(self, name: str) -> list[Waiting]:
        """Statements that waited, now that this state is declared; those that wait for others have to be held again."""
        self._names.discard(name)
        waiting, self._waiting = self._waiting, []
        return waiting
