"""Record of a run, within a memory cap."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from oco.backends.arguments import is_integer
from oco.backends.factors import Factors, part_names
from oco.backends.feedback import Feedback, carried
from oco.backends.learner import Learner
from oco.backends.monitor import DUALS
from oco.backends.play import PlayedRounds
from oco.compiler.problem.canonical import Canonical
from oco.dsl.diagnostics import fail
from oco.dsl.spill import RowFile, release, spacious
from oco.evaluation.data import Data
from oco.evaluation.measured_run import Record

Array = np.ndarray[Any, Any]
Keep = Literal["all", "last"] | int | Sequence[str]

DECISION_BYTES = 1 << 30  # decisions beyond this are thinned
STREAM_BYTES = 4 << 30  # rounds of an iterator, which cannot be read again, are kept up to this


class Recorder:
    """Recorder with arrays that grow by doubling, or files where all rounds come in blocks. `expected` is the number of rounds where it is
    known.
    """

    def __init__(self, problem: Canonical, learner: Learner, expected: int | None, keep: Keep, collect: bool) -> None:
        self.problem = problem
        self.learner = learner
        self.expected = expected
        self.collects = collect
        self.count = 0
        self.loss_sum = self.violation_sum = self.seconds = 0.0
        self.notes: tuple[str, ...] = ()
        self.names, self.every = self._kept(keep)
        self._last: dict[str, Array] = {}
        self._duals = [f.name for f in learner.compiled.program.state if f.name in DUALS]
        self._carried = [s.name for s in problem.carried]
        self._columns: dict[str, Array] = {}
        self._written: dict[str, tuple[RowFile, tuple[int, ...]]] | None = None if collect or expected is None else {}

    def _kept(self, keep: Keep) -> tuple[tuple[str, ...], int]:
        """Names of the decisions to keep, and the interval in rounds (0: only the last)."""
        names = tuple(b.name for b in self.problem.blocks)
        if isinstance(keep, str) and keep in names:
            names, every = (keep,), 1
        elif isinstance(keep, str):
            if keep not in ("all", "last"):
                hint = f"decisions of the model: {', '.join(names)}"
                raise fail("OCO831", f'keep is "all", "last", a number or names of decisions, not {keep!r}', hint=hint)
            every = 0 if keep == "last" else 1
        elif not isinstance(keep, Iterable):
            if not is_integer(keep) or keep < 1:
                raise fail("OCO831", f"keep={keep!r}: decisions of every n-th round are kept, n from 1")
            every = int(keep)
        else:
            unknown = [n for n in keep if n not in names]
            if unknown:
                raise fail(
                    "OCO831", f"`{unknown[0]}` is no decision of the model", hint=f"there are: {', '.join(names)}"
                )
            if not keep:
                raise fail(
                    "OCO831",
                    'keep names no decision; keep="last" keeps the least',
                    hint=f"there are: {', '.join(names)}",
                )
            names, every = tuple(keep), 1
        size = 8 * sum(self._entries(b.name) for b in self.problem.blocks if b.name in names)
        needed = size * (self.expected or 1) // max(every, 1)
        if every and needed > DECISION_BYTES:
            every = max(every, -(-size * (self.expected or 1) // DECISION_BYTES))
            self.notes = (f"all decisions would take {needed / 2**30:.1f} GiB: every {every}th was kept",)
        return names, every

    def _entries(self, name: str) -> int:
        """Number of floats in a decision: in its array, or in its factors."""
        fields = [f for f in self.learner.compiled.program.decision if f.name in (name, *part_names(name))]
        return sum(math.prod(f.type.shape) for f in fields)

    def _fields(self, decisions: Mapping[str, Any]) -> dict[str, Array]:
        """Decisions as arrays: those kept as factors under the names of their fields."""
        kept = {f.name for f in self.learner.compiled.program.decision}
        results: dict[str, Array] = {}
        for name, x in decisions.items():
            parts = zip(part_names(name), x.parts) if isinstance(x, Factors) else [(name, x)]
            results |= {part: np.asarray(value) for part, value in parts if part in kept}
        return results

    def add(
        self,
        decision: Any,
        loss: float,
        constraints: Array,
        equalities: Array,
        values: Mapping[str, Array],
        carried: Mapping[str, Array],
    ) -> None:
        """Record one round: `values` of its data, `carried` among all that the learner took in."""
        self._put("loss", self.count, np.float64(loss))
        self._put("constraints", self.count, constraints)
        self._put("equalities", self.count, equalities)
        for name in self._duals:
            self._put(f"dual.{name}", self.count, self.learner.value(name))
        for name in self._carried:
            self._put(f"carried.{name}", self.count, carried[name])
        self.collect({name: np.asarray(value)[None] for name, value in values.items()})
        parts = decision if isinstance(decision, dict) else {self.problem.blocks[0].name: decision}
        self._last = self._fields({name: parts[name] for name in self.names})
        if self.every and self.count % self.every == 0:
            for name, value in self._last.items():
                self._put(f"decision.{name}", self.count // self.every, value)
        self.count += 1
        self.loss_sum += loss
        if constraints.size:
            self.violation_sum += float(np.maximum(constraints, 0.0).sum())

    def collect(self, values: Mapping[str, Array]) -> None:
        """Keep the data of the next rounds, the round first, where data are collected: where all of it becomes too much nothing is kept,
        and the run goes on.
        """
        for name, value in values.items() if self.collects else ():
            rows = slice(self.count, self.count + len(value))
            self._room(f"stream.{name}", rows.stop - 1, value[0])[rows] = value
        streams = [name for name in self._columns if name.startswith("stream.")]
        if sum(self._columns[name].nbytes for name in streams) > STREAM_BYTES:
            for name in streams:
                del self._columns[name]
            self.collects = False
            lost = "without them there is no comparator and no replay; give the path of a file for those"
            self.notes += (f"the iterator's rounds were not kept beyond {STREAM_BYTES / 2**30:.2g} GiB: {lost}",)

    def wants(self, before: int, start: int, stop: int) -> bool:
        """True where a decision of rounds `start` up to, not including, `stop` (from 0, counted after `before`) is kept, or may be last."""
        if not self.every:
            return self.expected in (None, before + stop)
        return -(-(before + start) // self.every) * self.every < before + stop

    def add_block(self, played: PlayedRounds) -> None:
        """Record several rounds at once."""
        measured = {"loss": played.loss, "constraints": played.constraints, "equalities": played.equalities}
        measured |= {f"dual.{name}": played.after[name] for name in self._duals}
        measured |= {f"carried.{name}": played.left[name] for name in self._carried}
        for name, values in measured.items():
            self._append(name, self.count, values)
        if self.every and played.decisions:
            first, start = -self.count % self.every, -(-self.count // self.every)
            for name in self.names:
                if len(kept := played.decisions[name][first :: self.every]):
                    self._append(f"decision.{name}", start, kept)
        elif played.decisions:
            self._last = {name: played.decisions[name][-1].copy() for name in self.names}  # not the whole block
        for column in self._columns.values():
            release(column[: self.count])
        self.count += played.rounds
        self.loss_sum += float(played.loss.sum())
        self.violation_sum += float(np.maximum(played.constraints, 0.0).sum())

    @property
    def duals(self) -> list[str]:
        """Names of the fields of the state that are kept after each round."""
        return self._duals

    def _append(self, name: str, start: int, values: Array) -> None:
        """Put the next values of a column, the first at `start`."""
        if self._written is None or values.dtype != np.float64:
            self._room(name, start + len(values) - 1, values[0])[start : start + len(values)] = values
            return
        if name not in self._written:
            width = math.prod(values.shape[1:])
            self._written[name] = RowFile(self._rows(name), width, self._among), values.shape[1:]
        self._written[name][0].add(np.ascontiguousarray(values).reshape(len(values), -1))

    def decided(self, name: str, start: int, stop: int) -> Array:
        """Decisions of recorded rounds (from 0) of a name that is kept in all rounds; another thread may record others meanwhile."""
        column = f"decision.{name}"
        if self._written is None or column not in self._written:
            return self._columns[column][start:stop]
        file, shape = self._written[column]
        return file.rows(start, stop).reshape(stop - start, *shape)

    def _end(self) -> None:
        """Make columns of what was written to files."""
        for name, (file, shape) in (self._written or {}).items():
            rows = file.array()
            self._columns[name] = rows.reshape(len(rows), *shape)
        self._written = None

    def _rows(self, name: str) -> int:
        """Rows of a column, as far as they are known before the first."""
        rows = self.expected or 256
        return max(1, -(-rows // self.every) if name.startswith("decision.") and self.every else rows)

    @property
    def _among(self) -> int:
        """Number of columns like each of them."""
        return 3 + len(self._duals)

    def _put(self, name: str, row: int, value: Any) -> None:
        self._room(name, row, value)[row] = value

    def _room(self, name: str, row: int, value: Any) -> Array:
        """Column of that name, long enough to hold `row`."""
        column = self._columns.get(name)
        if column is None or row >= len(column):
            entry = np.asarray(value)
            rows = self._rows(name) if column is None else 2 * len(column)
            grown = spacious((max(rows, row + 1), *entry.shape), entry.dtype, self._among)
            if column is not None:
                grown[: len(column)] = column
            self._columns[name] = column = grown
        return column

    def streams(self) -> dict[str, Array]:
        """Rounds of an iterator, as arrays."""
        return self._starting("stream.", self.count)

    def carried(self) -> dict[str, Array]:
        """Values that rounds left to the next, as arrays."""
        self._end()
        return self._starting("carried.", self.count)

    def _starting(self, prefix: str, rows: int) -> dict[str, Array]:
        return {n.removeprefix(prefix): c[:rows] for n, c in self._columns.items() if n.startswith(prefix)}

    def record(self) -> Record:
        """Record of all that was kept."""
        self._end()
        rows = self.count
        kept = np.arange(0, rows, self.every) if self.every else np.array([rows - 1])
        if self.every:
            decisions = self._starting("decision.", len(kept))
        else:
            decisions = {n: np.asarray(v)[None] for n, v in self._last.items()}
        return Record(
            self._columns["loss"][:rows],
            self._columns["constraints"][:rows].reshape(rows, -1),
            self._columns["equalities"][:rows].reshape(rows, -1),
            self._multipliers(),
            decisions,
            kept,
            self.seconds,
        )

    def _multipliers(self) -> Array:
        """Multipliers of each round in the model's units, shape (rounds, D); a single field is not copied."""
        rows, units = self.count, self.learner.contract.duals
        results = []
        for name in self._duals:
            column = self._columns.pop(f"dual.{name}")[:rows]
            if np.any(np.asarray(units.get(name, 1.0)) != 1.0):
                column *= units[name]
            results.append(column.reshape(rows, -1))
        return results[0] if len(results) == 1 else np.concatenate([np.zeros((rows, 0)), *results], axis=1)


def data_of(played: PlayedRounds, data: Data, first: int) -> Mapping[str, Array]:
    """Streams of played rounds, and what rounds before left to them, the round first; `first` is the round with which the data begin."""
    start = played.first - first
    return {**data.read(start, start + played.rounds), **played.left}


def feedback_of(played: PlayedRounds, streams: Mapping[str, Array]) -> Iterator[Feedback]:
    """Feedback of each of the played rounds, measured; `streams` are those of `data_of`."""
    for k in range(played.rounds):
        values, decisions = {name: array[k] for name, array in streams.items()}, [*played.decisions.values()]
        measured = played.loss[k], played.constraints[k], played.equalities[k]
        yield carried(played.first + k, values, tuple(d[k] for d in decisions), measured)
