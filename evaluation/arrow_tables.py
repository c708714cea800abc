"""Tables of Arrow: Parquet files, files and streams of Arrow, and tables in memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from oco.dsl.diagnostics import fail
from oco.dsl.readers import arrow
from oco.dsl.readers import parquet as sizes
from oco.dsl.readers.quota import Quota
from oco.evaluation.table import COLUMN, Array, Parts, Table, check_header, uneven

BATCH = 1 << 19
"""Numbers of a file that are read together: 4 MB, so that the time for a batch of a column is that of its numbers."""
PIECE = 1 << 16
"""Bytes of a column of Parquet that are read at a time: the whole column of a group of rows may be the whole file."""


def read_arrow_table(path: Path, suffix: str, quota: Quota) -> Table:
    """Table from a Parquet, Arrow or Feather file, or from an Arrow stream. Raises ValueError where it is damaged."""
    try:
        import pyarrow
    except ImportError:
        kind = "Parquet" if suffix == ".parquet" else "Arrow"
        hint = "pip install ocolang[parquet]"
        raise fail("OCO820", f"{path.name}: reading {kind} needs pyarrow", hint=hint) from None
    try:
        if suffix == ".parquet":
            return _of_parquet(path, quota)
        with pyarrow.memory_map(str(path)) as file:
            return _of_stream(file, path.name, quota)
    except (pyarrow.ArrowException, KeyError, TypeError, IndexError) as error:
        raise ValueError(str(error)) from error


def _of_parquet(path: Path, quota: Quota) -> Table:
    from pyarrow import parquet

    with parquet.ParquetFile(path, pre_buffer=False) as file:
        quota.add(COLUMN * file.metadata.num_columns)
        sizes.check_sizes(path, file, quota)
        schema, metadata = file.schema_arrow, file.metadata
    texts = [f.name for f in schema if _is_text(f.type)]  # kept as a dictionary: a text that stands often is there once
    columns = [f.name for f in schema if _is_read(f.type)]
    options: dict[str, Any] = {
        "pre_buffer": False,
        "buffer_size": PIECE,
        "metadata": metadata,
        "read_dictionary": texts,
    }
    with parquet.ParquetFile(path, **options) as file:
        size = max(1, BATCH // max(1, metadata.num_columns))
        batches = file.iter_batches(batch_size=size, columns=columns)
        return _of_batches(batches, schema, path.name, metadata.num_rows)


def table_of_arrow(frame: Any, name: str) -> Table:
    """Table from an Arrow table in memory."""
    batches = frame.to_batches(max_chunksize=max(1, BATCH // max(1, frame.num_columns)))
    return _of_batches(batches, frame.schema, name, frame.num_rows)


def _of_stream(file: Any, name: str, quota: Quota) -> Table:
    """Table from an Arrow file or stream, mapped into memory: its offsets and lengths are checked before they are
    followed.
    """
    from pyarrow import ipc

    start = arrow.start_of(file)
    schema = ipc.open_stream(file).schema
    quota.add(COLUMN * len(schema))
    file.seek(start)
    rows = arrow.check_sizes(file, sum(_is_text(_values_of(f.type)) for f in schema), quota)
    file.seek(start)

    def batches() -> Iterable[Any]:
        for batch in ipc.open_stream(file):
            batch.validate(full=True)
            step = max(1, BATCH // max(1, batch.num_columns))
            yield from (batch.slice(k, step) for k in range(0, batch.num_rows, step))

    return _of_batches(batches(), schema, name, rows)


def _of_batches(batches: Iterable[Any], schema: Any, name: str, rows: int) -> Table:
    """One table of batches."""
    check_header(schema.names, name)
    from pyarrow import default_memory_pool

    parts, count = Parts(name, rows), 0
    kinds = [(f.name, f.type, _is_read(f.type), _is_plain(f.type)) for f in schema]
    for batch in batches:
        if not batch.num_rows:
            continue
        places = {key: k for k, key in enumerate(batch.schema.names)}
        columns = dict[str, Any]()
        for key, kind, read, plain in kinds:
            if not read or key not in places:
                columns[key] = _unread(kind, batch.num_rows, count)
                continue
            column = batch.column(places[key])
            if plain and not column.null_count:
                columns[key] = _entries(column)
            else:
                columns[key] = _cells(column, key, name, count)
        parts.add(columns)
        count += batch.num_rows
    default_memory_pool().release_unused()
    if not count:
        parts.add(dict.fromkeys(schema.names, ()))
    return parts.table(row_word="row")


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _is_plain(kind: Any) -> bool:
    """True where columns of this type without gaps are arrays of NumPy as they are."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind))


def _is_time(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_timestamp(kind) or types.is_date(kind))


def _is_read(kind: Any) -> bool:
    """True where columns of this type become numbers, texts or times; others (structs, maps, bytes) have no meaning
    here.
    """
    if _is_list(kind):
        return _is_number(kind.value_type) or (_is_list(kind.value_type) and _is_read(kind.value_type))
    return _is_text(_values_of(kind)) or _is_number(kind) or _is_time(kind)


def _values_of(kind: Any) -> Any:
    """Type of the values of a dictionary type; other types unchanged."""
    from pyarrow import types

    return kind.value_type if types.is_dictionary(kind) else kind


def _unread(kind: Any, rows: int, before: int) -> Array:
    """Cells of a column that cannot be numbers: the first names its type, unless that has no values; the others are
    missing.
    """
    from pyarrow import types

    if before or types.is_null(kind):
        return np.broadcast_to(np.float64(np.nan), (rows,))
    return np.array([f"<{kind}>"[:60], *[None] * (rows - 1)], dtype=object)


def _cells(column: Any, key: str, name: str, before: int) -> Array:
    """The cells of a part of a column: numbers (NaN where there is none), texts and None as objects, rows for lists."""
    import pyarrow
    from pyarrow import types

    kind = column.type
    if _is_time(kind):
        return np.asarray(column.cast(pyarrow.timestamp("us"), safe=False).to_numpy(zero_copy_only=False))
    if types.is_dictionary(kind):
        texts = np.array([*column.dictionary.to_pylist(), None], dtype=object)
        indices = column.indices.cast(pyarrow.int64()).fill_null(-1)
        return np.asarray(texts[indices.to_numpy(zero_copy_only=False)])
    if _is_text(kind):
        return np.array(column.to_pylist(), dtype=object)
    if _is_list(kind):
        return _rows(column, key, name, before)
    if _is_plain(kind) and not column.null_count:
        return _entries(column)
    if column.null_count or types.is_decimal(kind):
        column = column.cast(pyarrow.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _entries(column: Any) -> Array:
    """Entries of a column of numbers without gaps. PyArrow's `to_numpy` loads pandas where there is one, a third of a second."""
    return np.from_dlpack(column)


def _rows(column: Any, key: str, name: str, before: int) -> Array:
    """Lists of one length as rows of an array. Raises OCO821 where a list has another length than the first."""
    from pyarrow import compute

    lengths = compute.list_value_length(column)
    lengths = lengths.fill_null(-1).to_numpy(zero_copy_only=False) if lengths.null_count else _entries(lengths)
    other = np.flatnonzero(lengths != lengths[:1])
    if len(other) or (lengths[:1] < 0).any():
        raise uneven(key, before + int(other[0] if len(other) else 0) + 1, name)
    entries = _cells(column.flatten(), key, name, before)
    return entries.reshape(len(column), int(lengths[0]), *entries.shape[1:]) if len(column) else entries
