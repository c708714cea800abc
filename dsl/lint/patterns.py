"""Expressions that differ in an index alone, and the vector that says them all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from oco.dsl.atoms import ATOMS, forms, is_entrywise_atom
from oco.dsl.lint.context import LintContext
from oco.dsl.records import dataclass
from oco.dsl.text import syntax

FEWEST = 3
"""Fewest terms or constraints that are worth one vector: two read as well as they are."""
LARGEST = 60
"""Most nodes of a term that is compared with others."""
WEIGHTED = (forms.TIMES, forms.SUM, forms.DIFFERENCE)
"""Forms in which a number may give way to an array of numbers."""


@dataclass(frozen=True)
class Slot:
    """Number of an expression; `entry` is the `x[number]` whose only index it is."""

    number: syntax.Number
    entry: syntax.Subscript | None = None


@dataclass(frozen=True)
class Pattern:
    """Expressions without their numbers: `form` is equal for those that differ in numbers alone, `slots` are the numbers."""

    roots: tuple[syntax.Expression, ...]
    form: tuple[Any, ...]
    slots: tuple[Slot, ...]

    @property
    def values(self) -> tuple[float, ...]:
        """Numbers in order."""
        return tuple(slot.number.value for slot in self.slots)


def pattern(context: LintContext, *roots: syntax.Expression, beside: tuple[Any, ...] = ()) -> Pattern:
    """Pattern of expressions that are taken together, with other things that have to be equal `beside` them.

    A name that picks an entry stands for the number of its place.
    """
    form: list[Any] = [beside]
    slots: list[Slot] = []
    entries: dict[int, syntax.Subscript] = {}
    for node in (node for root in roots for node in syntax.walk(root)):
        entry = entries.get(id(node))
        place = None if entry is None else context.place(entry)
        if entry is not None and place is not None:
            node = syntax.Number(place, span=node.span)
            entries[id(node)] = entry
        match node:
            case syntax.Number():
                slots.append(Slot(node, entries.get(id(node))))
                form.append(None)
            case syntax.Identifier(name=name):
                form.append(name)
            case syntax.QuotedString(value=text):
                form.append((text,))
            case syntax.Call(name=name, args=args, options=options):
                form.append((name, len(args), tuple(key for key, _ in options)))
            case syntax.Subscript(base=base, items=items):
                form.append(("[]", *map(_kind, items)))
                if isinstance(base, syntax.Identifier) and len(items) == 1:
                    entries[id(items[0])] = node
            case syntax.ArrayLiteral(items=parts) | syntax.ValueSet(items=parts):
                form.append((type(node).__name__, len(parts)))
    return Pattern(roots, tuple(form), tuple(slots))


def _kind(item: syntax.Item) -> tuple[Any, ...]:
    match item:
        case syntax.Slice(start=start, stop=stop):
            return ("slice", start is None, stop is None)
        case syntax.GroupItem(variable=variable):
            return ("in", variable.name)
    return ()


def runs(patterns: Sequence[Pattern | None]) -> Iterator[tuple[int, int]]:
    """First and last place (not included) of each longest run in which indexes go up by one from each to the next."""
    start = 0
    while start < len(patterns):
        stop = _end(patterns, start)
        if stop - start >= FEWEST:
            yield start, stop
        start = max(stop, start + 1)


def _end(patterns: Sequence[Pattern | None], start: int) -> int:
    first, moving = patterns[start], None
    if first is None or len(first.form) > LARGEST:
        return start + 1
    for k, other in enumerate(patterns[start + 1 :], 1):
        if other is None or other.form != first.form:
            return start + k
        steps = tuple(_step(a, b, k) for a, b in zip(first.slots, other.slots))
        if None in steps or 1 not in steps or moving not in (None, steps):
            return start + k
        moving = steps
    return len(patterns)


def _step(first: Slot, other: Slot, k: int) -> int | None:
    """1 for an index that has gone up k times by one, 0 for one that stayed, and for any number that is no index; else None."""
    a, b = first.number.value, other.number.value
    if first.entry is None or a == b:
        return 0
    return 1 if isinstance(a, int) and isinstance(b, int) and b == a + k else None


class NoVectorError(Exception):
    """Error for a pattern that is no function of single entries."""


@dataclass(frozen=True)
class VectorForm:
    """Run of patterns written once, over arrays in the place of their entries."""

    context: LintContext
    run: tuple[Pattern, ...]

    def text(self, root: syntax.Expression) -> str:
        """Text of a root of the first pattern, entries replaced by their arrays. Raises NoVectorError where it is not one of each entry."""
        self.is_vector(root)
        source, edits = root.span.source.text, []
        for node in syntax.walk(root):
            if id(node) in self._arrays:
                edits.append((node.span, self._arrays[id(node)]))
        written, at = "", root.span.start
        for span, replaced in edits:
            written, at = written + source[at : span.start] + replaced, span.end
        return written + source[at : root.span.end]

    def is_vector(self, node: syntax.Expression) -> bool:
        """True where a node changes from one pattern to the next. Raises NoVectorError where it does so otherwise than entry by entry."""
        if id(node) in self._arrays:
            if isinstance(node, syntax.Subscript) and self._dimensions(node) != 1:
                raise NoVectorError
            return True
        if not isinstance(node, syntax.Call):
            if any(id(part) in self._arrays for part in syntax.walk(node)):
                raise NoVectorError
            return False
        if self._rows(node):
            return True
        changing = [a for a in node.args if self.is_vector(a)]
        inside = any(self.is_vector(value) for _, value in node.options)
        numbers = any(isinstance(a, syntax.Number) for a in changing)
        if inside or (changing and not (node.name in ATOMS and is_entrywise_atom(node.name))):
            raise NoVectorError
        if numbers and ATOMS[node.name].form not in WEIGHTED:
            raise NoVectorError
        return bool(changing)

    def _rows(self, node: syntax.Call) -> bool:
        """True for `A[i] @ x` with a matrix A and the same x in all patterns."""
        if (
            node.name not in ATOMS
            or ATOMS[node.name].form is not forms.MATRIX_PRODUCT
            or id(node.args[0]) not in self._arrays
        ):
            return False
        row, other = node.args
        return isinstance(row, syntax.Subscript) and self._dimensions(row) == 2 and not self.is_vector(other)

    def _dimensions(self, entry: syntax.Subscript) -> int:
        assert isinstance(entry.base, syntax.Identifier)
        return len(self.context.shape(entry.base.name) or ())

    @cached_property
    def _arrays(self) -> Mapping[int, str]:
        """Text of the array in the place of each node that changes, by the id of the node in the first pattern."""
        results = {}
        for slots in zip(*(p.slots for p in self.run)):
            first = slots[0]
            if first.number.value == slots[1].number.value and len({s.number.value for s in slots}) == 1:
                continue
            if first.entry is None:
                results[id(first.number)] = "[" + ", ".join(s.number.span.text for s in slots) + "]"
            else:
                results[id(first.entry)] = self._part(first.entry, int(first.number.value))
        return results

    def _part(self, entry: syntax.Subscript, start: int) -> str:
        assert isinstance(entry.base, syntax.Identifier)
        name, stop = entry.base.name, start + len(self.run)
        shape = self.context.shape(name) or ()
        return name if start == 0 and shape[:1] == (stop,) else f"{name}[{start}:{stop}]"
