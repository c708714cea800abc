"""Mapping of columns to streams: by name, by number, or as given. Nothing is read or drawn here."""

from __future__ import annotations

import difflib
import fnmatch
import json
import math
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum

import numpy as np

from oco.compiler.problem.canonical import StreamRange
from oco.dsl.diagnostics import Diagnostic, Findings, fail
from oco.dsl.labels import entry_name
from oco.dsl.records import dataclass
from oco.evaluation.table import Table

StreamMap = Mapping[str, str | Sequence[str]]

_NUMBERED = re.compile(r"\[(\d+(?:\s*,\s*\d+)*)\]$")
_UNDERSCORED = re.compile(r"_(\d+(?:_\d+)*)$")


class Way(StrEnum):
    """Means by which a stream gets its values."""

    NAME = "by name"
    LABEL = "by the names of the index"
    NUMBER = "by number"
    PREFIX = "by the columns' common first part"
    MAPPING = "as told"
    POSITION = "by position"
    DRAWN = "drawn from its distribution"


@dataclass(frozen=True)
class Assignment:
    """Stream with the columns that fill its entries, in row-major order; one column may hold all entries as an array."""

    stream: str
    columns: tuple[str, ...]
    way: Way

    def __str__(self) -> str:
        if self.way is Way.DRAWN:
            return f"{self.stream}: {self.way}"
        return f"{self.stream}: {shorten(self.columns)} ({self.way})"


def shorten(names: Sequence[str], limit: int = 6) -> str:
    """`a, b, c`, or the first and the last of many with their number."""
    if len(names) <= limit:
        return ", ".join(names)
    return f"{', '.join(names[:3])}, ..., {names[-1]} ({len(names)} columns)"


def parse_map(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Parse the arguments of `--map`, `["price=CAPITL,CENTRL", "jobs=arrivals"]`, into a mapping."""
    mapping: dict[str, tuple[str, ...]] = {}
    for text in texts:
        stream, equals, columns = text.partition("=")
        if not equals or not stream.strip() or not columns.strip():
            raise fail(
                "OCO824", f"`{text}` does not say which columns fill which stream", hint="write stream=column,column"
            )
        mapping[stream.strip()] = tuple(c.strip() for c in columns.split(",") if c.strip())
    return mapping


def size(stream: StreamRange) -> int:
    """Number of entries of a stream in a round."""
    return math.prod(stream.shape)


def assign(
    streams: Sequence[StreamRange], table: Table, mapping: StreamMap | None = None
) -> tuple[tuple[Assignment, ...], tuple[Diagnostic, ...]]:
    """Find the columns of every stream. All problems come back as diagnostics."""
    findings = Findings()
    given = {name: (c,) if isinstance(c, str) else tuple(c) for name, c in (mapping or {}).items()}
    with findings.guard():
        _refuse_unknown_streams(given, [s.name for s in streams])
    assignments: list[Assignment] = []
    for stream in streams:
        with findings.guard():
            result = _assignment(stream, table, given.get(stream.name), streams)
            _check_count(stream, result, table)
            assignments.append(result)
    return tuple(assignments), tuple(findings.items)


def unused(table: Table, assignments: Sequence[Assignment]) -> tuple[str, ...]:
    """Columns that fill no stream."""
    taken = {c for a in assignments for c in a.columns}
    return tuple(name for name in table.arrays if name not in taken)


def _refuse_unknown_streams(given: Mapping[str, Sequence[str]], streams: Sequence[str]) -> None:
    for name in given:
        if name not in streams:
            raise fail(
                "OCO824", f"the mapping names `{name}`, which is no stream of the model", hint=_nearest(name, streams)
            )


def _nearest(name: str, candidates: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, candidates, n=1)
    return f"did you mean `{close[0]}`?" if close else f"there are: {shorten(list(candidates), 12)}"


def _assignment(
    stream: StreamRange, table: Table, given: Sequence[str] | None, streams: Sequence[StreamRange]
) -> Assignment:
    if given is not None:
        return Assignment(stream.name, _expand(stream, given, table), Way.MAPPING)
    name = stream.name
    if name in table.arrays:
        return Assignment(name, (name,), Way.NAME)
    labelled = _labelled(stream, table, streams)
    if labelled:
        return Assignment(name, labelled, Way.LABEL)
    numbered = _numbered(stream, table)
    if numbered:
        return Assignment(name, numbered, Way.NUMBER)
    underscored = _underscored(stream, table)
    if underscored:
        return Assignment(name, underscored, Way.NUMBER)
    prefixed = tuple(c for c in table.arrays if c.startswith(f"{name}."))
    if prefixed:
        return Assignment(name, prefixed, Way.PREFIX)
    if not table.headed and _alone(stream, streams):
        return Assignment(name, tuple(table.arrays), Way.POSITION)
    if stream.stream.distribution is not None:
        return Assignment(name, (), Way.DRAWN)
    raise _no_column(stream, table)


def _alone(stream: StreamRange, streams: Sequence[StreamRange]) -> bool:
    """True where this is the only stream that must come from data."""
    return [s.name for s in streams if s.stream.distribution is None] == [stream.name]


def _labelled(stream: StreamRange, table: Table, streams: Sequence[StreamRange]) -> tuple[str, ...]:
    """Columns of a stream over an index, in its order: `price[NYC]`, `price.NYC`, `price_NYC`, or `NYC` where no other stream is over it.
    Raises OCO835 where a name is missing or unknown.
    """
    if not stream.axes:
        return ()
    wanted = [entry_name(stream.axes, place) for place in np.ndindex(*stream.shape)]
    columns: dict[str, str] = {}
    for column in table.arrays:
        if (entry := _entry_of(column, stream.name, wanted)) is not None:
            columns.setdefault(entry, column)
    alone = (
        sum(a.index == stream.axes[0].index for s in streams for a in s.axes if a is not None and stream.axes[0]) == 1
    )
    if not columns and alone and len(stream.shape) == 1:
        columns = {name: name for name in wanted if name in table.arrays}
    if not columns or (not set(columns) & set(wanted) and set(columns) <= {str(i) for i in range(size(stream))}):
        return ()  # nothing is by name, or all by number
    missing, unknown = [w for w in wanted if w not in columns], [c for e, c in columns.items() if e not in wanted]
    if missing or unknown:
        index = ", ".join(f"`{a.index}`" for a in stream.axes if a is not None)
        has = [f"no {shorten([f'`{stream.name}[{m}]`' for m in missing])}"] if missing else []
        has += [f"{shorten([f'`{c}`' for c in unknown])}, which {index} does not have"] if unknown else []
        hint = f"say which columns are meant: --map {stream.name}=..." if unknown else "add a column for each name"
        raise fail("OCO835", f"{table.name} has {' and '.join(has)}", stream.stream.span, hint)
    return tuple(columns[entry] for entry in wanted)


def _entry_of(column: str, stream: str, wanted: Sequence[str]) -> str | None:
    """Entry of the stream that a column is called after; None for a column of something else."""
    if column.startswith(f"{stream}[") and column.endswith("]"):
        return ", ".join(part.strip() for part in column[len(stream) + 1 : -1].split(","))
    if column.startswith(f"{stream}."):
        return column[len(stream) + 1 :]
    rest = column.removeprefix(f"{stream}_")
    return rest if rest != column and rest in wanted else None


def _numbered(stream: StreamRange, table: Table) -> tuple[str, ...]:
    """The columns `NAME[i]`, `NAME[i, j]`, in order; of an array of more axes, each may hold the entries of the others. Raises OCO823."""
    results: dict[tuple[int, ...], str] = {}
    for column in table.arrays:
        match = _NUMBERED.search(column)
        if match and column[: match.start()] == stream.name:
            results[tuple(int(i) for i in match.group(1).split(","))] = column
    axes = min(map(len, results), default=0)
    wanted = list(np.ndindex(*stream.shape[:axes]))
    if results and set(results) != set(wanted):
        absent = [f"`{stream.name}[{', '.join(map(str, place))}]`" for place in wanted if place not in results]
        extra = [f"`{column}`" for place, column in sorted(results.items()) if place not in wanted]
        has = [f"lacks {shorten(absent)}"] if absent else []
        has += [f"has {shorten(extra)}, which the stream has not"] if extra else []
        columns = ",".join(column for _, column in sorted(results.items()))
        hint = "entries are counted from 0"
        hint += (
            f"; where these columns are meant: --map '{stream.name}={columns}'"
            if len(results) == len(wanted) < 9
            else ""
        )
        raise fail("OCO823", f"{table.name} {' and '.join(has)}", stream.stream.span, hint)
    return tuple(results[place] for place in wanted) if results else ()


def _underscored(stream: StreamRange, table: Table) -> tuple[str, ...]:
    """The columns `NAME_i`, `NAME_i_j`, in order, where there is one for each entry, counted from 0; other names may end in numbers."""
    places = list(np.ndindex(*stream.shape)) if stream.shape else []
    ends = {c: _UNDERSCORED.search(c) for c in table.arrays if c.startswith(f"{stream.name}_")}
    columns = {
        tuple(int(i) for i in end.group(1).split("_")): column
        for column, end in ends.items()
        if end is not None and column[: end.start()] == stream.name
    }
    return tuple(columns[place] for place in places) if set(columns) == set(places) else ()


def _expand(stream: StreamRange, given: Sequence[str], table: Table) -> tuple[str, ...]:
    """Replace patterns (`price.*`) by the columns they match, in the order of the file."""
    columns: list[str] = []
    for text in given:
        if text in table.arrays:
            columns.append(text)
            continue
        matches = [c for c in table.arrays if fnmatch.fnmatchcase(c, text)] if set("*?[") & set(text) else []
        if not matches:
            hint = _nearest(text, list(table.arrays))
            raise fail(
                "OCO824",
                f"{table.name} has no column `{text}`, which {stream.word} `{stream.name}` is to take",
                hint=hint,
            )
        columns.extend(matches)
    return tuple(columns)


def _no_column(stream: StreamRange, table: Table) -> Exception:
    what = "nothing" if not table.arrays else f"no column for {stream.word} `{stream.name}`"
    wanted = f"`{stream.name}`" if not stream.shape else _names_looked_for(stream)
    given = _likely(stream, table)
    in_python = json.dumps({stream.name: given[0] if len(given) == 1 else given})
    hint = f"call it {wanted}, or say --map {stream.name}={','.join(given)}, in Python mapping={in_python}"
    if not table.headed:
        picked = f"or say --map {stream.name}={','.join(given)}, in Python mapping={in_python}"
        hint = f'give arrays by name, {{"{stream.name}": ...}}, or a file with a line of names; {picked}'
    has = f" (it has {shorten(list(table.arrays))})" if table.arrays else ""
    return fail("OCO822", f"{table.name} has {what}{has}", stream.stream.span, hint)


def _names_looked_for(stream: StreamRange) -> str:
    """Names of columns that an array's entries are looked for under."""
    first, last = [0] * len(stream.shape), [n - 1 for n in stream.shape]
    name = stream.name
    brackets = [f"`{name}[{', '.join(map(str, place))}]`" for place in (first, last)]
    scores = [f"`{name}_{'_'.join(map(str, place))}`" for place in (first, last)]
    return f"{' to '.join(brackets)}, {' to '.join(scores)}, or `{name}.NAME` for each entry"


def _likely(stream: StreamRange, table: Table) -> list[str]:
    """Columns that a stream may be meant to take."""
    columns = [c for c in table.arrays if c.lower().startswith(stream.name.lower())]
    if len(columns) == size(stream) and len(columns) < 9:
        return columns
    near = difflib.get_close_matches(stream.name, list(table.arrays), n=1)
    fits = near and int(table.arrays[near[0]][:1].size) == size(stream)
    return near if fits else ["COLUMNS"]


def _check_count(stream: StreamRange, result: Assignment, table: Table) -> None:
    if result.way is Way.DRAWN:
        return
    need = size(stream)
    have = sum(math.prod(table.arrays[c].shape[1:]) for c in result.columns)
    if have != need:
        entries = "1 number" if need == 1 else f"{need} numbers"
        names = shorten(result.columns)
        raise fail(
            "OCO823",
            f"{stream.word} `{stream.name}` has {entries} a round, and {table.name} gives {have} ({names})",
            stream.stream.span,
            _how_many(stream, result, table),
        )


def _how_many(stream: StreamRange, result: Assignment, table: Table) -> str:
    """Advice on a wrong number of entries: an array has a shape, columns are chosen."""
    if len(result.columns) == 1 and (result.way is Way.NAME or not table.headed):
        shape = "".join(f", {n}" for n in stream.shape)
        return f"give `{result.columns[0] or stream.name}` as an array of shape (rounds{shape}), or change the shape in the model"
    if not table.headed:
        return "give a file with as many columns, or with their names in the first line"
    return f'choose the columns with --map {stream.name}=..., in Python mapping={{"{stream.name}": [...]}}'
