"""Data for a run: the values that each round reveals, from a file, arrays, an iterator, or drawn from the model's
distributions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from itertools import groupby
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical, StreamRange, canonical
from oco.dsl.diagnostics import Diagnostic, OcoError, fail, require
from oco.dsl.distributions import within
from oco.dsl.model import Model
from oco.dsl.records import dataclass
from oco.dsl.spill import release, spacious
from oco.dsl.text.printer import print_expr, print_stream
from oco.evaluation.check import BLOCK, Finding, check_values, far_within
from oco.evaluation.draws import BLOCK_ENTRIES, Blocks, StoredDraws, draw
from oco.evaluation.long_tables import widened
from oco.evaluation.mapping import Assignment, StreamMap, Way, assign, shorten, size, unused
from oco.evaluation.missing import repaired
from oco.evaluation.table import Array, Table
from oco.evaluation.tables import FORMS, existing_file, read, readable
from oco.evaluation.times import instants

Round = Mapping[str, Array]

FEWEST_ROUNDS = 20
"""Rounds of data below which nothing is concluded of them: neither that a limit has room to spare, nor which trial is better."""


@dataclass(frozen=True)
class MappingReport:
    """Mapping of columns to streams with its problems, as `oco data` shows it."""

    source: str
    rounds: int
    assignments: tuple[Assignment, ...]
    unused: tuple[str, ...]
    times: tuple[str, ...]
    findings: tuple[Finding, ...]
    fixed: tuple[str, ...] = ()
    wide: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """Diagnostics, one for a stream and a rule, however many values break it."""
        return tuple(f.diagnostic for f in self.findings)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on data that is not wrong."""
        drawn = [a.stream for a in self.assignments if a.way is Way.DRAWN]
        notes = [f"{self.source} has no {_names(drawn)}: drawn from the model's distribution"] if drawn else []
        return (*notes, *self.beside)

    @property
    def beside(self) -> tuple[str, ...]:
        """Remarks besides those on drawn streams."""
        by_position = [a for a in self.assignments if a.way is Way.POSITION]
        notes = [f"{self.source} has no names of columns: they fill `{a.stream}` by position" for a in by_position]
        notes += [f"columns not used: {shorten(self.unused)}"] if self.unused else []
        notes += [f"columns left out because they tell the time: {shorten(self.times)}"] if self.times else []
        return (*notes, *self.fixed, *self.wide)

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        return {
            "source": self.source,
            "rounds": self.rounds,
            "streams": [{"stream": a.stream, "columns": list(a.columns), "way": a.way.value} for a in self.assignments],
            "unused": list(self.unused),
            "times": list(self.times),
            "notes": list(self.notes),
            "problems": [f.to_json() for f in self.findings],
        }


@dataclass(frozen=True)
class Data:
    """Rounds of a run: `given` arrays with the round first, and streams that are drawn when they are read.

    Draws depend on the seed, the stream's name and the round alone, so any part can be read again without keeping it.
    """

    problem: Canonical
    rounds: int
    given: Mapping[str, Array]
    drawn: tuple[StreamRange, ...] = ()
    seed: int = 0
    notes: tuple[str, ...] = ()
    skipped: int = 0
    """Number of draws that precede the first round."""
    times: Array | None = field(default=None, compare=False)
    """Time of each round as datetime64[s], where the source tells it."""
    stored: StoredDraws | None = field(default=None, repr=False, compare=False)
    """Draws that were read before; None where they are drawn again each time."""
    _last: Blocks = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def names(self) -> set[str]:
        """Streams that there is data for."""
        return {*self.given, *(s.name for s in self.drawn)}

    @property
    def absent(self) -> list[str]:
        """Streams whose values were not kept with a run: without them there is no comparator and no replay."""
        return [s.name for s in self.problem.streams if s.name not in self.names]

    def read(self, start: int, stop: int) -> dict[str, Array]:
        """Rounds `start` up to, not including, `stop` (from 0): arrays with the round first. Mapped ones before leave the memory."""
        stop = min(stop, self.rounds)
        for array in self.given.values():
            release(array[:start])
        results = {name: array[start:stop] for name, array in self.given.items()}
        for stream in self.drawn:
            rows = self.seed, self.skipped + start, self.skipped + stop
            results[stream.name] = self.stored.read(stream, *rows) if self.stored else draw(stream, *rows, self._last)
        return {s.name: results[s.name] for s in self.problem.streams if s.name in results}

    def at(self, places: Iterable[int]) -> Iterator[tuple[int, dict[str, Array]]]:
        """Iterate over single rounds (from 0) in order, with their arrays. Neighbouring rounds are read together, since
        draws come in blocks.
        """
        near = max(1, BLOCK_ENTRIES // max((1, *(size(s) for s in self.problem.streams))))
        for _, block in groupby(sorted(places), lambda t: t // near):
            ordered = list(block)
            part = self.read(ordered[0], ordered[-1] + 1)
            for t in ordered:
                yield t, {name: array[t - ordered[0]] for name, array in part.items()}

    def array(self, name: str) -> Array:
        """All rounds of one stream."""
        if name in self.given:
            return self.given[name]
        return self.read(0, self.rounds)[name]

    def blocks(self, entries: int = 1 << 22) -> Iterator[tuple[int, dict[str, Array]]]:
        """Iterate over the rounds in order, in parts of about `entries` numbers: (first round, arrays)."""
        width = sum(size(s) for s in self.problem.streams)
        step = max(1, entries // max(1, width))
        for start in range(0, self.rounds, step):
            yield start, self.read(start, start + step)

    def __iter__(self) -> Iterator[dict[str, Array]]:
        for _, part in self.blocks():
            length = len(next(iter(part.values()))) if part else 0
            for i in range(length):
                yield {name: array[i] for name, array in part.items()}

    @property
    def nbytes(self) -> int:
        """Bytes that all rounds take as arrays."""
        return 8 * self.rounds * sum(size(s) for s in self.problem.streams)

    def storing(self, most: int) -> Data:
        """Data whose draws are stored once they are read, for many readers; as they are where all rounds take more than `most` bytes."""
        large = self.nbytes > most
        return self if large or not self.drawn else replace(self, stored=StoredDraws(self.skipped + self.rounds))

    def joined(self, carried: Mapping[str, Array]) -> Data:
        """Data with values that rounds left to the next, as a run recorded them."""
        return replace(self, given=MappingProxyType({**self.given, **carried})) if carried else self

    def first(self, rounds: int) -> Data:
        """Data of the first rounds alone."""
        given = MappingProxyType({name: array[:rounds] for name, array in self.given.items()})
        return replace(self, rounds=min(rounds, self.rounds), given=given, times=self._times(slice(rounds)))

    def after(self, start: int) -> Data:
        """Data of the rounds from `start` (from 0) on."""
        given = MappingProxyType({name: array[start:] for name, array in self.given.items()})
        times = self._times(slice(start, None))
        return replace(self, rounds=self.rounds - start, given=given, skipped=self.skipped + start, times=times)

    def _times(self, rounds: slice) -> Array | None:
        return None if self.times is None else self.times[rounds]


def share(data: Data, folder: Path) -> None:
    """Write the given arrays as files that other processes map into memory, so that none gets a copy."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in data.given.items():
        np.save(folder / f"{name}.npy", array)


def describe(model: Model, source: Any, mapping: StreamMap | None = None, on_missing: str = "error") -> MappingReport:
    """Map a source to the model's streams and check every value, without running anything."""
    return _examine(canonical(model), read(source), mapping, on_missing)[0]


def check_source(source: Any) -> None:
    """Check that something can be a source of rounds, without reading it. Raises OCO526 where it cannot, OCO820 where a
    file is absent.
    """
    if source is None or isinstance(source, Data):
        return
    if not readable(source):
        require(source, Data, "a source of rounds", f"give {FORMS}, or None to draw from the model")
    if isinstance(source, str | os.PathLike):
        existing_file(source)


def load_data(
    problem: Canonical,
    source: Any = None,
    *,
    mapping: StreamMap | None = None,
    seed: int = 0,
    rounds: int | None = None,
    on_missing: str = "error",
) -> Data:
    """Read or draw the data of a run.

    `source` is a path, a dict of arrays with the round first, a data frame, or None to draw every stream. `rounds`
    takes the first so many; it must be given, or the model's horizon known, when all is drawn. `on_missing` is "error",
    "hold" (take the last value before) or "skip" (leave the round out).
    """
    if isinstance(source, Data):
        return source if rounds is None else source.first(rounds)
    if source is None:
        return _all_drawn(problem, seed, rounds)
    report, given, times = _examine(problem, read(source), mapping, on_missing)
    if report.problems:
        raise OcoError(*report.problems)
    length = report.rounds
    if rounds is not None and rounds > length:
        raise fail("OCO826", f"{report.source} has {length} rounds, and {rounds} are asked for")
    kinds = {s.name: np.int64 if s.integer else np.float64 for s in problem.revealed}
    given = {name: values.astype(kinds[name], copy=False) for name, values in given.items()}
    drawn = tuple(s for s in problem.revealed if s.name not in given)
    data = Data(problem, length, MappingProxyType(given), drawn, seed, report.notes, times=times)
    return data if rounds is None else data.first(rounds)


def problem_of(model: Model, source: Any) -> Canonical:
    """Canonical problem of a model: that of the data where these were read for it."""
    read_for = source.problem if isinstance(source, Data) else None
    return read_for if read_for is not None and read_for.model is model else canonical(model)


def problem_for(model: Model, source: Any, seed: int = 0) -> Canonical:
    """Canonical problem with the number of rounds of its data as the horizon; an unknown horizon stays unknown."""
    problem = problem_of(model, source)
    if problem.horizon is None:
        return problem
    return problem.with_horizon(load_data(problem, source, seed=seed).rounds)


def from_rounds(
    problem: Canonical, rounds: Iterable[Mapping[str, Any]], seed: int = 0, mapping: StreamMap | None = None
) -> Iterator[dict[str, Array]]:
    """Iterate over the rounds of an iterator, drawing the streams that they lack. The learner checks the values."""
    if mapping:
        raise fail("OCO824", "rounds of an iterator have no columns to map", hint="yield dicts by the names of streams")
    by_name = {s.name: s for s in problem.revealed}
    last: Blocks = {}
    for index, values in enumerate(rounds):
        if not isinstance(values, Mapping):
            message = f"round {index + 1} of the data is of type {type(values).__name__}, not a dict of streams"
            raise fail("OCO820", message, hint=f'yield {{"{next(iter(by_name), "stream")}": value}} for every round')
        if values.keys() == by_name.keys() and all(type(value) is np.ndarray for value in values.values()):
            yield dict(values)
            continue
        masked = {name for name, value in values.items() if isinstance(value, np.ma.MaskedArray)}
        results = {name: value if name in masked else np.asarray(value) for name, value in values.items()}
        for name, stream in by_name.items():
            if name not in results:
                others = [n for n in values if n not in by_name]
                has = f" (it has {shorten(others)})" if others else ""
                _refuse_undrawable(stream, f"round {index + 1} of the data{has}")
                results[name] = draw(stream, seed, index, index + 1, last)[0]
        yield results


def _all_drawn(problem: Canonical, seed: int, rounds: int | None) -> Data:
    for stream in problem.revealed:
        _refuse_undrawable(stream, "this run")
    if rounds is None:
        rounds = problem.horizon
    if rounds is None:
        raise fail(
            "OCO826",
            "the horizon is unknown, so the number of rounds to draw must be given",
            hint="say --rounds N, in Python rounds=N",
        )
    names = [s.name for s in problem.revealed]
    notes = (f"{_names(names)} drawn from the model's distributions (seed {seed})",) if names else ()
    return Data(problem, rounds, MappingProxyType({}), problem.revealed, seed, notes)


def _refuse_undrawable(stream: StreamRange, where: str) -> None:
    if stream.stream.distribution is None:
        why = (
            "is iid, but its distribution is not stated"
            if stream.stream.iid
            else "is adversarial, so it has no distribution"
        )
        distribution = _with_distribution(stream)
        hint = "give its values (--data FILE, or --data drawn for a trial; in Python the first argument of run)" + (
            f", or a distribution: {distribution}" if distribution else ""
        )
        raise fail(
            "OCO825", f"{where} has no values for {stream.word} `{stream.name}`, which {why}", stream.stream.span, hint
        )


def _with_distribution(stream: StreamRange) -> str | None:
    """Declaration of the stream with a distribution that its bounds and integrality allow; None where there is none."""
    ends = tuple(map(print_expr, stream.stream.bounds or ()))
    low, high = (np.broadcast_to(b, stream.shape) for b in (stream.lower, stream.upper))
    distribution = within(low, high, stream.integer, (ends[0], ends[-1]) if ends else ("", ""))
    return f"{print_stream(replace(stream.stream, iid=False, mean=None))} ~ {distribution}" if distribution else None


def _examine(
    problem: Canonical, table: Table, mapping: StreamMap | None, on_missing: str
) -> tuple[MappingReport, dict[str, Array], Array | None]:
    try:
        table, mapping = widened(table, problem.revealed, mapping)
    except OcoError as error:
        return MappingReport(table.name, table.rounds, (), (), (), tuple(map(Finding, error.diagnostics))), {}, None
    assignments, problems = assign(problem.revealed, table, mapping)
    table, fixed = repaired(table, on_missing, [c for a in assignments for c in a.columns])
    findings = [Finding(p) for p in problems]
    streams = {s.name: s for s in problem.revealed}
    given: dict[str, Array] = {}
    lengths: dict[int, str] = {}
    wide: list[str | None] = []
    for result in assignments:
        if result.way is Way.DRAWN:
            continue
        stream = streams[result.stream]
        columns = [table.arrays[c] for c in result.columns]
        length = min(len(c) for c in columns)
        lengths.setdefault(length, stream.name)
        stacked = _beside([c[:length].reshape(length, prod(c.shape[1:])) for c in columns])
        findings += check_values(table, stream, result.columns, stacked, on_missing == "hold")
        wide.append(far_within(stream, stacked))
        given[stream.name] = stacked.reshape(length, *stream.shape)
    if len(lengths) > 1:
        words = ", ".join(f"`{name}` {length}" for length, name in lengths.items())
        findings += _about(f"{table.name} has streams of different numbers of rounds: {words}")
    rounds = min(lengths, default=0)
    if not rounds and not findings:
        findings += _about(f"{table.name} has no rounds")
    about = assignments, unused(table, assignments), tuple(table.times), tuple(findings), fixed
    report = MappingReport(table.name, rounds or table.rounds, *about, tuple(filter(None, wide)))
    known = (instants(cells[:rounds]) for cells in table.times.values() if len(cells) >= rounds > 0)
    return report, given, next((times for times in known if times is not None), None)


def _about(rounds: str) -> list[Finding]:
    return [Finding(d) for d in fail("OCO826", rounds).diagnostics]


def _beside(parts: list[Array]) -> Array:
    """Columns of all parts (rounds, entries) in one array; no copy where they already lie so in memory."""
    if len(parts) == 1:
        return parts[0]
    first, rounds, width = parts[0], len(parts[0]), sum(p.shape[1] for p in parts)
    addresses = [p.__array_interface__["data"][0] for p in parts]
    singles = all(p.shape[1] == 1 and p.strides[0] == first.strides[0] and p.dtype == first.dtype for p in parts)
    if singles and rounds and addresses == [addresses[0] + k * first.itemsize for k in range(width)]:
        return np.lib.stride_tricks.as_strided(first, (rounds, width), (first.strides[0], first.itemsize))
    result = spacious((rounds, width))
    step = max(1, BLOCK // width)
    for start in range(0, rounds, step):
        result[start : start + step] = np.concatenate([p[start : start + step] for p in parts], axis=1)
    return result


def _names(names: list[str]) -> str:
    quoted = [f"`{n}`" for n in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}" if quoted else ""
