"""Check of a stream's values against its declaration: a finding for each broken rule, with its count and places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import StreamRange
from oco.dsl.diagnostics import Diagnostic
from oco.dsl.labels import entry_name
from oco.dsl.records import dataclass
from oco.dsl.spill import release
from oco.evaluation.table import Array, Table

SHOWN = 3  # places that the message of a finding names
KEPT = 10_000  # places that a finding keeps
BLOCK = 1 << 17  # numbers that are looked at together
WIDE = 3.0  # bounds so many times as wide as the data are worth a word
ENOUGH = 64  # rounds that tell how wide the data are


@dataclass(frozen=True)
class Requirement:
    """Requirement on a cell: messages for one cell, for several together, and for each of several.

    They may name the `{value}` of a cell and its `{bounds}`; for several cells the `{stream}` and its `{word}` of the
    language, the `{least}` and the `{greatest}`.
    """

    code: str
    one: str
    many: str
    each: str
    hint: str


TEXT = Requirement(
    "OCO828",
    "is `{value}`, which is not a number",
    "cells of {word} `{stream}` are not numbers",
    " holds `{value}`",
    "write a number with a decimal point",
)
MISSING = Requirement(
    "OCO827",
    "is missing",
    "values of {word} `{stream}` are missing",
    "",
    'fill it, or say --on-missing hold (the last value before) or skip (leave the round out); in Python on_missing="hold"',
)
UNHELD = replace(
    MISSING,
    one="is missing, and no value comes before it",
    many="values of {word} `{stream}` are missing, and no value comes before them",
    hint='fill it, or leave such rounds out: --on-missing skip, in Python on_missing="skip"',
)
INFINITE = Requirement(
    "OCO827",
    "is infinite",
    "values of {word} `{stream}` are infinite",
    "",
    "correct it; where it stands for a missing value, leave the cell empty and say --on-missing hold or skip",
)
FRACTION = Requirement(
    "OCO829",
    "is {value}, and the stream takes integers",
    "values of {word} `{stream}` are not integers",
    " is {value}",
    "declare the stream without `in 0..k-1` if it may be fractional",
)
OUTSIDE = Requirement(
    "OCO830",
    "is {value}, outside the declared bounds {bounds}",
    "values of {word} `{stream}` leave its declared bounds; the least is {least:g}, the greatest {greatest:g}",
    " is {value}, outside {bounds}",
    "check the data, or widen the bounds in the model",
)
UNLISTED = Requirement(
    "OCO830",
    "is {value}, which is not one of {bounds}",
    "values of {word} `{stream}` are none of those that it is declared to take; the least is {least:g}, the greatest {greatest:g}",
    " is {value}, none of {bounds}",
    "check the data, or add the value in the model",
)


@dataclass(frozen=True)
class Place:
    """Cell of the data: its place in the source, the entry of the stream that it fills, and its content."""

    at: str
    column: str
    entry: str
    value: float | str

    def __str__(self) -> str:
        column = f", column `{self.column}`" if self.column else ""
        return f"{self.at}{column}"

    def to_json(self) -> dict[str, Any]:
        """Plain values; text for numbers that JSON cannot represent."""
        value = self.value if isinstance(self.value, str) or np.isfinite(self.value) else str(self.value)
        return {"at": self.at, "column": self.column, "entry": self.entry, "value": value}


@dataclass(frozen=True)
class Finding:
    """Problem in the data: `count` cells break the same rule, at `places`, the first `KEPT` of them."""

    diagnostic: Diagnostic
    count: int = 1
    places: tuple[Place, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        record = {"code": self.diagnostic.code, "message": self.diagnostic.message, "hint": self.diagnostic.hint}
        return record | {"count": self.count, "places": [p.to_json() for p in self.places]}


@dataclass
class _Tally:
    """Cells that break a rule: their number, the first of them as (row, entry), the least and the greatest number."""

    count: int = 0
    cells: list[tuple[int, int]] = field(default_factory=list)
    least: float = np.inf
    greatest: float = -np.inf

    def add(self, wrong: Array, values: Array, start: int) -> None:
        """Add a block of rounds: `wrong` and `values` (rounds, entries) from round `start` on."""
        result = int(np.count_nonzero(wrong))
        if not result:
            return
        self.count += result
        self.cells += [(int(r) + start, int(e)) for r, e in np.argwhere(wrong)[: KEPT - len(self.cells)]]
        known = values[wrong & np.isfinite(values)]
        self.least = min(self.least, float(known.min(initial=np.inf)))
        self.greatest = max(self.greatest, float(known.max(initial=-np.inf)))


def check_values(
    table: Table, stream: StreamRange, columns: Sequence[str], values: Array, held: bool = False
) -> tuple[Finding, ...]:
    """Findings in `values` (rounds, entries): cells that are not numbers, missing, not whole, or out of bounds.

    `held`: missing values have been filled from earlier rounds, where there were any.
    """
    texts = _texts(table, columns)
    tallies = {rule: _Tally() for rule in (TEXT, MISSING, INFINITE, FRACTION, OUTSIDE, UNLISTED)}
    step = max(1, BLOCK // max(1, values.shape[1]))
    for start in range(0, len(values), step):
        block = values[start : start + step]
        release(values[:start])
        if not texts and _plainly_within(stream, block):
            continue
        for rule, wrong in _wrong(stream, block, _within(texts, start, block.shape)):
            tallies[rule].add(wrong, block, start)
    notes = {MISSING: UNHELD} if held else {}
    return tuple(_finding(table, stream, columns, values, notes.get(r, r), t) for r, t in tallies.items() if t.count)


def _plainly_within(stream: StreamRange, values: Array) -> bool:
    """True where all values lie between the greatest lower and the least upper bound, which holds for none that is missing, and any
    number there may come.
    """
    if stream.integer or stream.stream.values or not values.size:
        return False
    low, high = float(np.max(stream.lower)), float(np.min(stream.upper))
    least, greatest = float(values.min()), float(values.max())
    return low <= least and greatest <= high and bool(np.isfinite(least) and np.isfinite(greatest))


def _wrong(stream: StreamRange, values: Array, texts: Array | None) -> Iterator[tuple[Requirement, Array]]:
    """Masks of `values` (rounds, entries), one for each broken rule; a cell of text breaks no other rule."""
    unknown = ~np.isfinite(values)
    if unknown.any():
        read = unknown if texts is None else unknown & ~texts
        infinite = np.isinf(values)
        yield MISSING, read & ~infinite
        yield INFINITE, read & infinite
    if texts is not None:
        yield TEXT, texts
        unknown |= texts
    if listed := stream.stream.values:
        yield UNLISTED, ~unknown & ~np.isin(values, listed)
        return
    if stream.integer:
        whole = np.where(unknown, 0.0, values)
        yield FRACTION, whole != np.rint(whole)
    low, high = _bounds(stream)
    yield OUTSIDE, ~unknown & ((values < low) | (values > high))


def _bounds(stream: StreamRange) -> tuple[Array, Array]:
    """The bounds of every entry, in row-major order."""
    low, high = (np.broadcast_to(b, stream.shape).reshape(-1) for b in (stream.lower, stream.upper))
    return low, high


def _texts(table: Table, columns: Sequence[str]) -> dict[tuple[int, int], str]:
    """Cells that are not numbers, by row and entry."""
    result, first = {}, 0
    for column in columns:
        width = table.width(column)
        for place, text in table.texts.get(column, {}).items():
            result[place // width, first + place % width] = text
        first += width
    return result


def _within(texts: Mapping[tuple[int, int], str], start: int, shape: tuple[int, ...]) -> Array | None:
    """Mask of the text cells in the rounds from `start` on; None where there are none."""
    cells = np.array(list(texts), dtype=np.int64).reshape(-1, 2) - [start, 0]
    cells = cells[(cells[:, 0] >= 0) & (cells[:, 0] < shape[0])]
    if not len(cells):
        return None
    result = np.zeros(shape, dtype=bool)
    result[tuple(cells.T)] = True
    return result


def _finding(
    table: Table, stream: StreamRange, columns: Sequence[str], values: Array, rule: Requirement, tally: _Tally
) -> Finding:
    texts = _texts(table, columns) if rule is TEXT else {}
    owners = [column for column in columns for _ in range(table.width(column))]
    places = tuple(
        Place(
            table.where(row),
            owners[entry],
            f"{stream.name}[{_index(stream, entry)}]" if stream.shape else stream.name,
            texts.get((row, entry), float(values[row, entry])),
        )
        for row, entry in tally.cells
    )
    span = stream.stream.span if rule in (OUTSIDE, UNLISTED) else None
    message, note = _reported(table, stream, rule, tally, places)
    return Finding(Diagnostic(rule.code, message, span, rule.hint, note=note), tally.count, places)


def _reported(
    table: Table, stream: StreamRange, rule: Requirement, tally: _Tally, places: Sequence[Place]
) -> tuple[str, str]:
    """Message, with the first places where there are several."""
    entries = [entry for _, entry in tally.cells[:SHOWN]]
    if tally.count == 1:
        return f"{table.name}, {places[0]}: `{places[0].entry}` {_words(rule.one, stream, entries[0], places[0])}", ""
    message = rule.many.format(word=stream.word, stream=stream.name, least=tally.least, greatest=tally.greatest)
    first = [f"{p}: `{p.entry}`{_words(rule.each, stream, e, p)}" for p, e in zip(places, entries)]
    more = [f"and {tally.count - SHOWN} more"] if tally.count > SHOWN else []
    return f"{table.name}: {tally.count} {message}", "; ".join(first + more)


def _words(words: str, stream: StreamRange, entry: int, place: Place) -> str:
    low, high = _bounds(stream)
    value = place.value if isinstance(place.value, str) else f"{place.value:g}"
    listed = ", ".join(f"{v:g}" for v in stream.stream.values)
    return words.format(value=value, bounds=f"{{{listed}}}" if listed else f"[{low[entry]:g}, {high[entry]:g}]")


def _index(stream: StreamRange, entry: int) -> str:
    return entry_name(stream.axes, [int(i) for i in np.unravel_index(entry, stream.shape)])


def far_within(stream: StreamRange, values: Array) -> str | None:
    """Remark on data that fill a small part of the bounds, for which settings are made; None where they fill enough of
    them. Values (rounds, entries) are looked at until they do.
    """
    low, high = float(np.min(stream.lower)), float(np.max(stream.upper))
    if stream.integer or len(values) < ENOUGH or not np.isfinite(high - low):
        return None
    least, greatest, step = np.inf, -np.inf, max(1, BLOCK // max(1, values.shape[1]))
    for start in range(0, len(values), step):
        part = values[start : start + step]
        least, greatest = np.minimum(least, part.min()), np.maximum(greatest, part.max())  # nan stays
        release(values[:start])
        if not WIDE * (greatest - least) < high - low:
            return None
    if not least < greatest:
        return None
    return (
        f"`{stream.name}` lies in [{least:.6g}, {greatest:.6g}] here, and the model allows [{low:.6g}, {high:.6g}], for which settings "
        "are made: if no other value can come, narrower bounds make them less careful"
    )
