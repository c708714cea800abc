"""Fleet by key on a cluster: shards in several processes, batches as Arrow tables, snapshots from which lost shards go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

from oco.backends.arguments import is_integer
from oco.backends.identity import plan_hash
from oco.backends.registry import usable
from oco.dsl.diagnostics import OcoError, fail
from oco.fleets.parquet import ShardRounds, part_name, shard_file
from oco.fleets.places import FilePlace, Snapshot
from oco.fleets.shard import Answer, results
from oco.fleets.sharing import moved, placed
from oco.fleets.tables import (
    ROUND,
    Arrays,
    aligned,
    arrays_of,
    by_shard,
    keys_of,
    ranges,
    read_keys,
    rounds_in,
    table_of,
    write_keys,
)
from oco.fleets.workers import Here, Lost, RayWorkers, see_room
from oco.plan import Plan
from oco.serving.states import LONG, seed_of

MANIFEST = "fleet.json"
KEYS = "keys.arrow"
FORMAT = "oco-cluster 1"
Call = Callable[[int], tuple[Any, ...]]
"""Method and arguments of a call of a shard, by its number."""
TRIES = 3
"""Times that processes are started anew for one call, before the cluster is taken to have no room for them."""


class ClusterFleet:
    """Learners of one plan, one for each key, in shards that processes share. All are in the same round.

    keys       texts or numbers, no two the same; a key is always in the same shard
    shards     number of them, by default four for each worker: so many more workers can share them later
    engine     "here" for this process, "ray" for a Ray cluster on this machine or around it, or an address as "ray://HOST:10001"
    workers    processes, each on a core of its own; by default 1 here, 2 on Ray
    snapshots  folder or address (`s3://...`) that all workers reach; without one the fleet ends with a worker that dies
    every      rounds between snapshots. The batches since the last one are kept, and played again where a worker is lost
    seed       of all that learners draw, each by its key, as in `oco serve`

    Decisions and states are bit for bit those of one fleet, whatever the shards and workers are, and after losses as well. Raises OCO878
    for keys, OCO880 for a place that has a fleet, OCO881 where the cluster has fewer free processors than workers, OCO882 for plans whose
    feedback is delayed, OCO909 without Ray, OCO911 without pyarrow.
    """

    def __init__(
        self,
        plan: Plan,
        keys: Any,
        *,
        shards: int | None = None,
        engine: str = "here",
        workers: int | None = None,
        snapshots: str | None = None,
        every: int = 100,
        seed: int = 0,
        backend: str | None = None,
    ) -> None:
        if plan.contract.delay:
            hint = "`oco pipe` and `oco serve` take late data, and so do the jobs of `oco emit`"
            raise fail(
                "OCO882", "a fleet by key takes each round at once, and the feedback of this plan is late", hint=hint
            )
        count = workers or (1 if engine == "here" else 2)
        own, counts = by_shard(keys_of(keys), shards or 4 * count)
        self._begin(plan, own, counts, seed, backend or plan.backend_for(plan.horizon or LONG).name)
        self._place, self._every = None if snapshots is None else FilePlace(str(snapshots)), every
        self._last: Snapshot | None = None
        if self._place is not None and self._place.has(MANIFEST):
            hint = "ClusterFleet.restore(...) goes on with it; or name another place"
            raise fail("OCO880", f"{self._place.address} has the snapshot of a fleet", hint=hint)
        self._start(engine, count)
        if self._place is not None:
            with self._place.writing(KEYS) as file:
                write_keys(self.keys, file)

    def _begin(self, plan: Plan, keys: Any, counts: list[int], seed: int, backend: str) -> None:
        """Set what does not change."""
        self.plan, self.keys, self.seed, self.backend = plan, keys, seed, backend
        self.size, self._counts, self._ranges = len(keys), counts, ranges(counts)
        self._filled = [s for s, count in enumerate(counts) if count]
        self.round, self._decided = 1, 0
        program = plan.compiled(backend).program
        filled = dict(program.previous)
        self._contexts = {f.name: f.type.shape for f in program.feedback if f.name in program.context}
        known = {*self._contexts, *filled}
        self._streams = {f.name: f.type.shape for f in program.feedback if f.name not in known}

    def _start(self, engine: str, workers: int) -> None:
        """Start processes, and give each its shards."""
        self.workers = Here() if engine == "here" else RayWorkers(None if engine == "ray" else engine, workers)
        self._homes = dict[int, int]()
        self._width, self._log = workers, list[Call]()
        self._alive = {*range(workers)}
        self._nowhere = {*self._filled}
        try:
            see_room(self.workers, 0, workers, "name fewer, `workers=...`, or give the cluster more processors")
            for worker in self._alive:
                self.workers.start(worker, self.plan.recipe, self.backend)
            self._all(lambda shard: ("begun",))
        except BaseException:
            self.close()
            raise

    @classmethod
    def restore(cls, snapshots: str, *, engine: str = "here", workers: int | None = None) -> Self:
        """Fleet from its last snapshot, which continues bit for bit with the round that `fleet.round` says. Raises OCO880, OCO881."""
        place = FilePlace(str(snapshots))
        with place.reading(MANIFEST) as file:
            about = json.loads(file.read())
        if about.get("format") != FORMAT:
            raise fail(
                "OCO880", f"{place.address} has the format {about.get('format')!r}; this version reads {FORMAT!r}"
            )
        with place.reading(KEYS) as file:
            keys = read_keys(file)
        fleet = cls.__new__(cls)
        plan = Plan.from_recipe(about["recipe"], usable(about["backend"]))
        fleet._begin(plan, keys, about["counts"], about["seed"], about["backend"])
        if plan_hash(plan.program, plan.contract) != about["plan_hash"]:
            raise fail("OCO851", f"{place.address} belongs to another plan than the one that its model gives now")
        fleet._place, fleet._every = place, about["every"]
        fleet._last, fleet.round = Snapshot(about["round"]), about["round"]
        fleet._start(engine, workers or (1 if engine == "here" else 2))
        return fleet

    def __repr__(self) -> str:
        name = self.plan.model.name
        return f"ClusterFleet({name}, {self.size} keys in {len(self._filled)} shards, {len(self._alive)} workers, round={self.round})"

    @property
    def shards(self) -> int:
        """Number of shards that keys are divided by; some may have none."""
        return len(self._counts)

    @property
    def alive(self) -> tuple[int, ...]:
        """Numbers of the workers that have shards."""
        return tuple(sorted(self._alive))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers. Snapshots stay, and `restore` goes on from the last of them."""
        self.workers.close()

    # ShardRounds.

    def decide(self, contexts: Any = None) -> Any:
        """Table of the decisions of this round: `key`, `round` and the decisions by name, arrays as lists row by row.

        contexts  table with `key` and the model's contexts, where it has some
        """
        given = self._given(contexts, self._contexts) if self._contexts else dict.fromkeys(self._filled, Arrays())
        decided = self._all(lambda shard: ("decide", self.round, given[shard]))
        self._decided = self.round
        return self._table(decided, self.round)

    def observe(self, batch: Any) -> Any:
        """Take the data of this round, after which all learners are in the next; table of `key`, `round`, `loss` and violations.

        batch  Arrow table with `key`, a row for each key in any order, the streams by name (and the contexts again, where the model has
               some), and `round` where it is to be compared

        Where the data of a shard are wrong, its error is raised; the others have the round, and the batch can be given again, corrected.
        Raises OCO878 for keys, OCO879 for a round, OCO840 and OCO841 for columns, OCO863 before `decide`, OCO881 where workers are lost.
        """
        round = self.round
        if self._decided != round:
            raise fail("OCO863", f"round {round} is observed before it was decided", hint="call `decide` first")
        streams, contexts = (self._given(batch, shapes) for shapes in (self._streams, self._contexts))
        kept = {s: tuple(map(self.workers.keep, (streams[s], contexts[s]))) for s in self._filled}

        def call(shard: int) -> tuple[Any, ...]:
            return "observe", round, *kept[shard]

        observed = self._all(call)
        self._done(call, 1)
        return self._table(observed, round)

    def play(self, folder: str | Path, out: str | Path, rounds: int | None = None) -> dict[str, float]:
        """Play the rounds of Parquet files by shard (`divide`), each read by the worker that has its shard; more than memory holds.

        Decisions, losses and violations go to a file of Parquet for each shard and `every` rounds in `out`. Returns the sums of losses and
        violations. Raises what `observe` raises, OCO880 where files are missing.
        """
        files = self._files(folder)
        have = min(self._all(lambda shard: ("rounds_of", files[shard])).values())
        last = have if rounds is None else self.round + rounds - 1
        totals: dict[str, float] = {}
        while self.round <= last:
            first, count = self.round, min(self._every, last + 1 - self.round)
            call = partial(_playing, files, str(out), first, count)
            for sums in self._whole(call).values():
                totals = {name: totals.get(name, 0.0) + float(v[0]) for name, v in sums.items()}
            self._done(call, count)
        return totals

    def comparators(self, folder: str | Path, rounds: int | None = None) -> Any:
        """Table of the best fixed decision of each key over the first so many rounds of files by shard (`divide`), by default
        all: `key`, the sum of its losses as `value`, the least that any fixed decision could have as `bound`, `status` (`Comparator`).

        A worker has the rounds of one shard in memory. Raises OCO882 where losses take what decisions left, and what reading raises.
        """
        if names := [s.name for s in self.plan.canonical.carried]:
            message = f"the best fixed decision is of data alone, and `{names[0]}` is what earlier decisions left"
            raise fail("OCO882", message, hint="run such learners one by one: `plan.run(data).comparator()`")
        files = self._files(folder)
        count = rounds or min(self._all(lambda shard: ("rounds_of", files[shard])).values())
        best = self._all(lambda shard: ("comparators", files[shard], count))
        return self._table(best, count).drop_columns([ROUND])

    def _files(self, folder: str | Path) -> dict[int, ShardRounds]:
        """Rounds of files by shard."""
        own = self._streams, self._contexts
        return {s: ShardRounds(str(shard_file(folder, s)), self._keys(s), *own) for s in self._filled}

    def _whole(self, call: Call) -> dict[int, Any]:
        """Results of a call of many rounds; after an error all shards go back to the round before it, where there are snapshots."""
        try:
            return self._all(call)
        except OcoError:
            if self._place is not None:
                self._nowhere = {*self._filled}
            raise

    def snapshot(self) -> None:
        """Write all shards to the place of snapshots, from which a lost shard, and `restore`, goes on. Raises OCO880, OCO903."""
        if self._place is None:
            raise fail("OCO880", "this fleet has no place for snapshots", hint="ClusterFleet(..., snapshots=FOLDER)")
        place, taken, before = self._place, Snapshot(self.round), self._last
        if taken == before:
            return
        self._all(lambda shard: ("save", place.address, taken.file(shard)))
        program, contract = self.plan.program, self.plan.contract
        about = {
            "format": FORMAT,
            "round": self.round,
            "counts": self._counts,
            "seed": self.seed,
            "backend": self.backend,
            "every": self._every,
        }
        about |= {"plan_hash": plan_hash(program, contract), "recipe": dict(contract.recipe)}
        with place.writing(MANIFEST) as file:
            file.write(json.dumps(about, sort_keys=True).encode())
        self._last = taken
        self._log.clear()
        for name in () if before is None else [*map(before.file, self._filled), before.folder]:
            place.remove(name)

    def rebalance(self, workers: int | None = None) -> None:
        """Share the shards evenly between so many workers, by default as many as the fleet began with: after losses, or where nodes were
        added or are to go. Shards that move go through a snapshot, and all stays bit for bit.

        Raises OCO880 without a place for snapshots, OCO881 where the cluster has no room for so many, OCO852 for a number that is none.
        """
        count = self._width if workers is None else workers
        if not is_integer(count) or count < 1:
            raise fail("OCO852", f"one worker or more share a fleet, not {count!r}")
        self.snapshot()
        self._all(lambda shard: ("begun",))  # workers that were lost are known then
        stay = {*sorted(self._alive)[:count]}
        new = [w for w in range(len(stay) + count) if w not in self._alive][: count - len(stay)]
        see_room(self.workers, len(stay), count, "wait for the new node, or name fewer: `fleet.rebalance(workers=...)`")
        for worker in new:
            self.workers.start(worker, self.plan.recipe, self.backend)
        leaving, before = moved(self._homes, {*stay, *new}), dict(self._homes)
        retired, self._alive, self._width = self._alive - stay, {*stay, *new}, count
        self._nowhere |= {*leaving}
        self._all(lambda shard: ("begun",))
        for worker in retired:
            self.workers.stop(worker)
        for shard in leaving:
            if before[shard] in stay and self._homes[shard] != before[shard]:
                self._drop(before[shard], shard)

    def _drop(self, worker: int, shard: int) -> None:
        """Let a worker forget a shard that another one has."""
        try:
            self.workers.result(self.workers.send(worker, "drop", shard))
        except Lost as error:
            self._lose(worker, str(error))

    def _done(self, call: Call, rounds: int) -> None:
        """Count rounds that all shards have played, by calls that are made again where a shard is lost."""
        self.round += rounds
        if self._place is not None:
            self._log.append(call)
            if self.round - (1 if self._last is None else self._last.round) >= self._every:
                self.snapshot()

    # Workers.

    def _all(self, call: Call) -> dict[int, Any]:
        """Results of a call of each shard. Shards that are lost are taken over by others first. Raises OCO881, and errors of the call."""
        answers: dict[int, Answer] = {}
        for _ in range(TRIES):
            self._take_over()
            left = [shard for shard in self._filled if shard not in answers]
            answers |= self._asked(left, lambda shard: ("call", shard, *call(shard)))
            answers = {shard: answer for shard, answer in answers.items() if shard not in self._nowhere}
            if len(answers) == len(self._filled):
                return results(answers)
        message = f"workers were lost {TRIES} times in one call; the last time: {self._reason}"
        raise fail(
            "OCO881", message, hint="see that the cluster has room for them; `restore` goes on from the last snapshot"
        )

    def _asked(self, shards: Iterable[int], call: Call) -> dict[int, Answer]:
        """Answers of shards whose workers live; the shards of the others are nowhere then."""
        promises = {shard: self.workers.send(self._homes[shard], *call(shard)) for shard in shards}
        answers: dict[int, Answer] = {}
        for shard, promise in promises.items():
            try:
                answers[shard] = self.workers.result(promise)
            except Lost as error:
                self._lose(self._homes[shard], str(error))
        return answers

    def _lose(self, worker: int, reason: str) -> None:
        if self._place is None:
            hint = "begin with `snapshots=FOLDER`: a fleet goes on from these"
            raise fail("OCO881", f"a worker was lost, and there are no snapshots: {reason}", hint=hint)
        self._alive.discard(worker)
        self._reason = reason
        self._nowhere |= {shard for shard, home in self._homes.items() if home == worker}

    def _take_over(self) -> None:
        """Give the shards that are nowhere to workers that live, from the last snapshot on and with the batches since."""
        taken, self._nowhere = sorted(self._nowhere), set()
        if not self._alive and taken:
            self._alive = {0}
            self.workers.start(0, self.plan.recipe, self.backend)
        self._homes = placed({s: w for s, w in self._homes.items() if s not in taken}, taken, self._alive)
        calls: list[Call] = [lambda shard: ("begin", shard, len(self._ranges[shard]), self._seeds(shard))]
        if self._last is not None and self._place is not None:
            address, last = self._place.address, self._last
            calls.append(lambda shard: ("call", shard, "load", address, last.file(shard)))
        calls += [lambda shard, call=call: ("call", shard, *call(shard)) for call in self._log]  # type: ignore[misc]
        for call in calls:
            results(self._asked([shard for shard in taken if shard not in self._nowhere], call))

    def _seeds(self, shard: int) -> list[int] | None:
        """Seeds of the learners of a shard, where the algorithm draws."""
        draws = self.plan.program.draws
        return [seed_of(self.seed, key) for key in self._keys(shard).to_pylist()] if draws else None

    # Batches.

    def _keys(self, shard: int) -> Any:
        rows = self._ranges[shard]
        return self.keys.slice(rows.start, len(rows))

    def _given(self, batch: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[int, Arrays]:
        """Arrays of a batch by shard."""
        if batch is None:
            raise fail(
                "OCO840", f"the model has contexts: {', '.join(shapes)}", hint="give a table with `key` and these"
            )
        if (numbers := rounds_in(batch)) and numbers != [self.round]:
            message = (
                f"the batch is of round {', '.join(map(str, numbers[:3]))}, and the fleet is in round {self.round}"
            )
            raise fail("OCO879", message, hint="rounds come in order, each once")
        known = (*self._streams, *self._contexts)
        own = batch.select([name for name in batch.column_names if name in shapes or name not in known])
        arrays = arrays_of(aligned(own, self.keys), shapes)
        return {
            s: {name: array[rows.start : rows.stop] for name, array in arrays.items()}
            for s, rows in ((s, self._ranges[s]) for s in self._filled)
        }

    def _table(self, parts: Mapping[int, Arrays], round: int) -> Any:
        return table_of(self.keys, round, [parts[shard] for shard in self._filled])


def _playing(files: Mapping[int, ShardRounds], out: str, first: int, count: int, shard: int) -> tuple[Any, ...]:
    """Call of a shard that plays rounds of its file."""
    return "play", files[shard], first, count, out, part_name(shard, first, count)
