"""Arrow tables of rounds, a row a key, and the arrays in them, the learner first."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import IO, Any

import numpy as np

from oco.dsl.diagnostics import fail
from oco.dsl.extras import require_package

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
KEY, ROUND = "key", "round"
"""Columns of every table beside the streams or the decisions."""


def arrow() -> Any:
    """Module of Arrow. Raises OCO911 where it is not installed."""
    require_package("pyarrow", "a fleet by key")
    import pyarrow

    return pyarrow


def shard_of(key: str, shards: int) -> int:
    """Number of the shard of a key, from 0: the same in every process and version, by BLAKE2b."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") % shards


def keys_of(values: Any) -> Any:
    """Keys as an Arrow array of texts. Raises OCO878 for keys that are none, or stand twice."""
    pa = arrow()
    try:
        keys = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        keys = _one(keys.cast(pa.string()))
    except pa.ArrowException as error:
        raise fail("OCO878", f"keys are texts or numbers, no two the same: {error}") from None
    if not len(keys) or keys.null_count or len(keys.unique()) < len(keys):
        raise fail("OCO878", "keys are texts or numbers, at least one, no two the same and none missing")
    return keys


def aligned(table: Any, keys: Any) -> Any:
    """Table with a row for each key, in the order of `keys`. Raises OCO878 where keys are missing, unknown or there twice."""
    pa = arrow()
    from pyarrow import compute

    if KEY not in table.column_names:
        names = ", ".join(table.column_names)
        raise fail(
            "OCO878", f"the batch has no column `{KEY}`: it has {names:.200}", hint="a row has `key` and streams"
        )
    own = _one(table.column(KEY).cast(pa.string()))
    if own.equals(keys):
        return table
    places = compute.index_in(own, value_set=keys)
    if places.null_count:
        unknown = own.filter(places.is_null())[0].as_py()
        raise fail("OCO878", f"the fleet has no key {unknown!r:.60}", hint="a fleet has the keys that it began with")
    counts = np.bincount(places.to_numpy(), minlength=len(keys))
    if (counts != 1).any():
        wrong = int(np.argmax(counts != 1))
        how = "is missing in the batch" if not counts[wrong] else f"is there {counts[wrong]} times in the batch"
        raise fail("OCO878", f"key {keys[wrong].as_py()!r} {how}", hint="a batch has one row for each key")
    order = np.empty(len(keys), np.int64)
    order[places.to_numpy()] = np.arange(len(keys))
    return table.take(pa.array(order))


def rounds_in(table: Any) -> list[int]:
    """Numbers of the rounds in a table, without repetition; none where it has no such column."""
    return [] if ROUND not in table.column_names else sorted(table.column(ROUND).unique().to_pylist())


def arrays_of(table: Any, shapes: Mapping[str, tuple[int, ...]]) -> Arrays:
    """Columns as arrays (n, *shape): numbers, or lists of them row by row. Raises OCO840, OCO841."""
    other = [name for name in table.column_names if name not in (KEY, ROUND, *shapes)]
    missing = [name for name in shapes if name not in table.column_names]
    if other or missing:
        wrong = f"`{missing[0]}` is missing" if missing else f"there is no stream `{other[0]}`"
        raise fail("OCO840", f"a batch has the columns {', '.join((KEY, *shapes))}: {wrong}")
    return {name: _array(name, _one(table.column(name)), shape) for name, shape in shapes.items()}


def _array(name: str, column: Any, shape: tuple[int, ...]) -> Array:
    pa = arrow()
    size = int(np.prod(shape, dtype=np.int64))
    values, lists = column, isinstance(column.type, pa.FixedSizeListType | pa.ListType | pa.LargeListType)
    if lists:
        values = column.flatten()
    if lists is not bool(shape) or len(values) != size * len(column) or values.null_count or column.null_count:
        wanted = f"lists of {size} numbers" if shape else "numbers"
        raise fail("OCO841", f"column `{name}` has {wanted}, none missing; here it is of type {column.type}")
    try:
        return np.asarray(values.to_numpy(zero_copy_only=False), np.float64).reshape(len(column), *shape)
    except (ValueError, TypeError):
        raise fail("OCO841", f"column `{name}` has numbers; here it is of type {column.type}") from None


def table_of(keys: Any, round: int, parts: Sequence[Arrays]) -> Any:
    """Table of a round from the arrays of its shards, which lie in it as they are; entries stand row by row in lists."""
    pa = arrow()
    columns: dict[str, Any] = {KEY: keys, ROUND: pa.array(np.full(len(keys), round))}
    names = list(parts[0]) if parts else []
    return pa.table(columns | {name: pa.chunked_array([_column(part[name]) for part in parts]) for name in names})


def _column(array: Array) -> Any:
    pa = arrow()
    flat = pa.array(np.ascontiguousarray(array).reshape(-1))
    return flat if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, int(np.prod(array.shape[1:])))


def write_keys(keys: Any, file: IO[bytes]) -> None:
    """Write keys as an Arrow file."""
    table = arrow().table({KEY: keys})
    with arrow().ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def read_keys(file: IO[bytes]) -> Any:
    """Keys that `write_keys` wrote. Raises OCO880 where they are damaged."""
    pa = arrow()
    try:
        return keys_of(pa.ipc.open_file(pa.py_buffer(file.read())).read_all().column(KEY))
    except (pa.ArrowException, KeyError) as error:
        raise fail("OCO880", f"the keys of the snapshot cannot be read: {error}") from None


def by_shard(keys: Any, shards: int) -> tuple[Any, list[int]]:
    """Keys in the order of their shards, and the number of those in each."""
    homes = np.array([shard_of(key, shards) for key in keys.to_pylist()])
    return keys.take(arrow().array(np.argsort(homes, kind="stable"))), np.bincount(homes, minlength=shards).tolist()


def ranges(counts: Iterable[int]) -> list[range]:
    """Rows of each shard."""
    ends = np.cumsum([0, *counts])
    return [range(int(a), int(b)) for a, b in pairwise(ends)]


def _one(column: Any) -> Any:
    """Column as one array."""
    pa = arrow()
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
