"""The values of a stream against its declaration: each finding names the file, the row, the column, the stream and the rule."""

from __future__ import annotations

import numpy as np

from oco.compiler.canonical import StreamRange
from oco.dsl.diagnostics import Diagnostic, fail
from oco.evaluation.tables import Array, Table

SHOWN = 20  # findings shown of one kind for one stream
BLOCK = 1 << 17  # numbers that are looked at together


def check_values(table: Table, stream: StreamRange, columns: tuple[str, ...], values: Array) -> tuple[Diagnostic, ...]:
    """What is wrong with `values` (rounds, entries): cells that are no numbers, missing, not whole, or out of bounds."""
    texts = _texts(table, columns)
    found: list[tuple[int, int, str, str]] = []
    for (row, entry), text in texts.items():
        found.append((row, entry, "OCO828", f"is `{text}`, which is not a number"))
    step = max(1, BLOCK // max(1, values.shape[1]))
    for start in range(0, len(values), step):
        for row, entry, code, words in _wrong(stream, values[start : start + step]):
            if (row + start, entry) not in texts:
                found.append((row + start, entry, code, words))
    return _report(table, stream, columns, found)


def _wrong(stream: StreamRange, values: Array) -> list[tuple[int, int, str, str]]:
    """The first entries that are missing, not whole, or out of bounds: row, entry, code and words."""
    found: list[tuple[int, int, str, str]] = []
    missing = ~np.isfinite(values)
    for row, entry in _first(missing):
        infinite = np.isinf(values[row, entry])
        found.append((row, entry, "OCO827", "is infinite" if infinite else "is missing"))
    if stream.integer:
        whole = np.where(missing, 0.0, values)
        for row, entry in _first(whole != np.rint(whole)):
            found.append((row, entry, "OCO829", f"is {values[row, entry]:g}, and the stream takes whole numbers"))
    low, high = (np.broadcast_to(b, stream.shape).reshape(-1) for b in (stream.lower, stream.upper))
    for row, entry in _first(~missing & ((values < low) | (values > high))):
        rule = f"[{low[entry]:g}, {high[entry]:g}]"
        found.append((row, entry, "OCO830", f"is {values[row, entry]:g}, outside the declared bounds {rule}"))
    return found


def _texts(table: Table, columns: tuple[str, ...]) -> dict[tuple[int, int], str]:
    """Cells that are no numbers, by row and entry (columns of text are never arrays, so a column is one entry)."""
    return {(row, i): text for i, c in enumerate(columns) for row, text in table.texts.get(c, {}).items()}


def _first(wrong: Array) -> list[tuple[int, int]]:
    """The places where it is so, by row, somewhat more than can be shown."""
    rows = np.flatnonzero(wrong.any(axis=1))[: SHOWN + 1]
    return [(int(r), int(e)) for r in rows for e in np.flatnonzero(wrong[r])]


_HINTS = {
    "OCO827": 'fill it, or say --on-missing hold (the last value before) or skip (leave the round out); in Python on_missing="hold"',
    "OCO828": "write a number with a decimal point",
    "OCO829": "declare the stream without `in 0..k-1` if it may be fractional",
    "OCO830": "check the data, or widen the bounds in the model",
}


def _report(
    table: Table, stream: StreamRange, columns: tuple[str, ...], found: list[tuple[int, int, str, str]]
) -> tuple[Diagnostic, ...]:
    whole_array = len(columns) == 1
    diagnostics: list[Diagnostic] = []
    for row, entry, code, words in sorted(found)[:SHOWN]:
        column = columns[0] if whole_array else columns[entry]
        place = (
            f"{table.name}, {table.where(row)}, column `{column}`" if column else f"{table.name}, {table.where(row)}"
        )
        name = stream.name if not stream.shape else f"{stream.name}[{_index(stream, entry)}]"
        problem = fail(
            code, f"{place}: `{name}` {words}", stream.stream.span if code == "OCO830" else None, _HINTS[code]
        )
        diagnostics.extend(problem.diagnostics)
    if len(found) > SHOWN:
        more = fail(found[SHOWN][2], f"{table.name}: stream `{stream.name}` has more findings like these, not shown")
        diagnostics.extend(more.diagnostics)
    return tuple(diagnostics)


def _index(stream: StreamRange, entry: int) -> str:
    return ", ".join(str(int(i)) for i in np.unravel_index(entry, stream.shape))
