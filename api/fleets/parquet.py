"""ShardRounds of more learners than memory holds: Parquet files by shard, in which the rounds stand one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass
from oco.dsl.writing import make_folder
from oco.fleets.places import FilePlace
from oco.fleets.tables import KEY, ROUND, Arrays, aligned, arrays_of, arrow, rounds_in, shard_of, table_of

MOST_ROWS = 1 << 16
"""Rows that are in memory at once while files are divided: some megabytes."""

REPEATED = [ROUND]
"""Columns that are written by their few values. Numbers and keys hardly come twice: dictionaries take thrice the time there, and room."""


def shard_file(folder: str | Path, shard: int) -> Path:
    """File with the rounds of a shard."""
    return Path(folder) / f"shard-{shard:05}.parquet"


def part_name(shard: int, first: int, count: int) -> str:
    """Name of the file with decisions of a shard in so many rounds."""
    return f"shard-{shard:05}-rounds-{first}-{first + count - 1}.parquet"


def divide(data: str | Path, folder: str | Path, shards: int) -> list[str]:
    """Divide the rows of a Parquet file or of a folder of them by the shard of their keys, in their order; returns all keys.

    Rows are in the order of their rounds, and every key has a row in every round. Raises OCO878 for columns, OCO880 for files that cannot
    be read, OCO903 for those that cannot be written.
    """
    pa = arrow()
    from pyarrow import dataset, parquet

    make_folder(Path(folder))
    homes: dict[str, int] = {}
    with ExitStack() as stack:
        writers: dict[int, Any] = {}
        try:
            source = dataset.dataset(str(data), format="parquet")
            _check(source.schema.names)
            for batch in source.to_batches(batch_size=MOST_ROWS):
                keys = batch.column(KEY).cast(pa.string()).dictionary_encode()
                names = keys.dictionary.to_pylist()
                homes |= {key: shard_of(key, shards) for key in names if key not in homes}
                of_row = np.array([homes[key] for key in names], np.int64)[keys.indices.to_numpy()]
                for shard in np.unique(of_row).tolist():
                    if shard not in writers:
                        path = shard_file(folder, shard)
                        writers[shard] = parquet.ParquetWriter(path, batch.schema, use_dictionary=REPEATED)
                        stack.callback(writers[shard].close)
                    writers[shard].write_batch(batch.filter(pa.array(of_row == shard)))
        except (pa.ArrowException, OSError) as error:
            raise fail("OCO880", f"{data} cannot be divided: {error}") from None
    return list(homes)


def _check(names: list[str]) -> None:
    missing = [name for name in (KEY, ROUND) if name not in names]
    if missing:
        hint = "a row has `key`, `round` and the streams by name"
        raise fail("OCO878", f"the data have no column `{missing[0]}`: they have {', '.join(names):.200}", hint=hint)


@dataclass(frozen=True)
class ShardRounds:
    """ShardRounds of a shard in a Parquet file: as many rows as keys for each, one after another.

    streams, contexts  shapes of a row's values by name
    """

    file: str
    keys: Any
    streams: Mapping[str, tuple[int, ...]]
    contexts: Mapping[str, tuple[int, ...]]

    def last(self) -> int:
        """Number of rounds in the file. Raises OCO878, OCO880."""
        rows = self._opened().metadata.num_rows
        if rows % len(self.keys):
            message = f"{self.file} has {rows} rows, and the shard {len(self.keys)} keys"
            raise fail("OCO878", message, hint="every key has a row in every round")
        return int(rows // len(self.keys))

    def read(self, first: int, count: int) -> Iterator[tuple[int, Arrays, Arrays]]:
        """Streams and contexts of rounds from `first` on, those of a round at a time. Raises OCO840, OCO841, OCO878, OCO879, OCO880."""
        pa, size = arrow(), len(self.keys)
        skip, waiting, round = (first - 1) * size, [], first
        for batch in self._batches(skip):
            waiting.append(batch)
            while round < first + count and sum(len(b) for b in waiting) >= size:
                table = pa.Table.from_batches(waiting)
                yield round, *self._of_round(round, table.slice(0, size))
                waiting, round = table.slice(size).to_batches(), round + 1
            if round == first + count:
                return
        raise fail("OCO879", f"{self.file} ends before round {round}")

    def _batches(self, skip: int) -> Iterator[Any]:
        """Batches of rows after the first `skip`; groups of rows that end before them are not read."""
        file = self._opened()
        groups = list(range(file.num_row_groups))
        while groups and (rows := file.metadata.row_group(groups[0]).num_rows) <= skip:
            skip, groups = skip - rows, groups[1:]
        for batch in file.iter_batches(MOST_ROWS, groups) if groups else ():
            if len(batch) > skip:
                yield batch.slice(skip)
            skip = max(0, skip - len(batch))

    def _of_round(self, round: int, table: Any) -> tuple[Arrays, Arrays]:
        if rounds_in(table) != [round]:
            message = f"{self.file}: rows of round {rounds_in(table)[0]} stand where all {len(self.keys)} of round {round} are to be"
            raise fail("OCO879", message, hint="rows stand in the order of their rounds, a row for each key in each")
        arrays = arrays_of(aligned(table, self.keys), {**self.streams, **self.contexts})
        return {n: arrays[n] for n in self.streams}, {n: arrays[n] for n in self.contexts}

    @contextmanager
    def writing(self, place: FilePlace, name: str) -> Iterator[Callable[[int, Arrays], None]]:
        """Function that writes the results of a round; the file takes its place once all are written. Raises OCO903."""
        from pyarrow import parquet

        with place.writing(name) as file, ExitStack() as stack:
            writers: list[Any] = []

            def write(round: int, results: Arrays) -> None:
                table = table_of(self.keys, round, [results])
                if not writers:
                    writers.append(
                        stack.enter_context(parquet.ParquetWriter(file, table.schema, use_dictionary=REPEATED))
                    )
                writers[0].write_table(table)

            yield write

    def _opened(self) -> Any:
        from pyarrow import ArrowException, parquet

        try:
            return parquet.ParquetFile(self.file)
        except (ArrowException, OSError) as error:
            raise fail("OCO880", f"{self.file} cannot be read: {error}") from None
