"""Files of a few bytes that unpack to gigabytes, and a process with little memory that reads them.

`python tests/bombs.py FOLDER NAMES...` reads them one by one under a limit of address space, and prints for each the code of the error,
the seconds and the megabytes it took beyond what the libraries take.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import resource
import struct
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MEMORY = 1300
"""Megabytes of address space beyond what is there before a file is read."""

FIXED: dict[str, Callable[[Path], None]] = {}
ROUNDS: dict[str, Callable[[Path], None]] = {}
TRACES: dict[str, Callable[[Path], None]] = {}


def bomb(table: dict[str, Callable[[Path], None]], name: str) -> Callable[[Callable[[Path], None]], Any]:
    def entered(make: Callable[[Path], None]) -> Callable[[Path], None]:
        table[name] = make
        return make

    return entered


def header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The header of an NPY file."""
    room = io.BytesIO()
    np.lib.format.write_array_header_1_0(room, {"descr": dtype, "fortran_order": False, "shape": shape})
    return room.getvalue()


def parquet(path: Path, columns: dict[str, Any], times: int = 1, **options: Any) -> None:
    """The columns, `times` times: groups of rows that all lie where the first one does."""
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="zstd", **options)
    once, footer, groups = path.read_bytes(), io.BytesIO(), pyarrow.parquet.read_metadata(path)
    one = pyarrow.parquet.read_metadata(path)
    for _ in range(times - 1):
        groups.append_row_groups(one)
    groups.write_metadata_file(footer)
    pages = once[: -8 - int.from_bytes(once[-8:-4], "little")]
    path.write_bytes(pages + footer.getvalue()[4:])  # after the mark with which a file begins


@bomb(FIXED, "constant.parquet")
@bomb(ROUNDS, "constant.parquet")
def _constant(path: Path) -> None:
    parquet(path, {"a": np.zeros(10**6)}, 95 if path.parent.name == "fixed" else 200, write_statistics=False)


@bomb(FIXED, "text.parquet")
@bomb(ROUNDS, "text.parquet")
def _text(path: Path) -> None:
    """A text of half a megabyte, a hundred thousand times."""
    import pyarrow

    texts = pyarrow.DictionaryArray.from_arrays(np.zeros(10**5, dtype=np.int32), ["x" * 500_000])
    parquet(path, {"a": np.zeros(10**5), "b": texts}, 2, store_schema=False)


@bomb(ROUNDS, "differences.parquet")
def _differences(path: Path) -> None:
    """Each text is the one before."""
    encodings = {"b": "DELTA_BYTE_ARRAY"}
    columns = {"a": np.zeros(300), "b": ["x" * 500_000] * 300}
    parquet(path, columns, 3, use_dictionary=False, column_encoding=encodings)


@bomb(FIXED, "lists.parquet")
@bomb(ROUNDS, "lists.parquet")
def _lists(path: Path) -> None:
    import pyarrow

    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(np.zeros(10**6)), 10**5)
    parquet(path, {"a": lists.cast(pyarrow.list_(pyarrow.float64()))}, 60, write_statistics=False)


@bomb(FIXED, "page.parquet")
@bomb(ROUNDS, "page.parquet")
def _page(path: Path) -> None:
    """The header of the page promises two gigabytes; the footer knows of some kilobytes."""
    import pyarrow.parquet

    from oco.dsl.readers.thrift import Compact

    parquet(path, {"a": np.arange(1000.0)}, use_dictionary=False)
    data = path.read_bytes()
    start = pyarrow.parquet.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
    reader = Compact(data, start)
    fields = reader.struct()
    written = [(1, fields[1]), (2, 2**31 - 1), (3, fields[3])]
    head = b"".join(b"\x15" + varint(value) for _, value in written)
    head += b"\x2c" + b"".join(b"\x15" + varint(fields[5][k]) for k in (1, 2, 3, 4)) + b"\x00"
    left = reader.position - start - len(head) - 1
    head += (
        b"\x98" + bytes([left - 2]) + bytes(left - 2) + b"\x00"
    )  # a field that nobody knows fills what statistics took
    path.write_bytes(data[:start] + head + data[reader.position :])


def varint(value: int) -> bytes:
    """A positive integer in Thrift's compact protocol."""
    value, made = 2 * value, b""
    while value >= 128:
        value, made = value >> 7, made + bytes([128 | value & 127])
    return made + bytes([value])


@bomb(FIXED, "rows.parquet")
@bomb(ROUNDS, "rows.parquet")
def _rows(path: Path) -> None:
    """No values for a number of rows that the footer makes up."""
    parquet(path, {"a": np.zeros(10**6)})
    data = path.read_bytes()
    assert data.count(varint(10**6)) >= 4
    path.write_bytes(data.replace(varint(10**6), varint(2 * 10**6 - 1)))


@bomb(ROUNDS, "zeros.arrow")
def _zeros(path: Path) -> None:
    from pyarrow import ipc, record_batch

    batch = record_batch({"a": np.zeros(10**7)})
    options = ipc.IpcWriteOptions(compression="zstd")
    with ipc.new_file(path, batch.schema, options=options) as writer:
        for _ in range(30):
            writer.write_batch(batch)


@bomb(ROUNDS, "nothing.arrow")
def _nothing(path: Path) -> None:
    """A column of nulls has no buffers at all."""
    import pyarrow
    from pyarrow import ipc

    nulls = pyarrow.Array.from_buffers(pyarrow.null(), 10**12, [None])
    batch = pyarrow.record_batch({"a": nulls})
    with ipc.new_stream(path, batch.schema, options=ipc.IpcWriteOptions(allow_64bit=True)) as writer:
        writer.write_batch(batch)


@bomb(ROUNDS, "indices.arrow")
def _indices(path: Path) -> None:
    import pyarrow
    from pyarrow import ipc

    texts = pyarrow.DictionaryArray.from_arrays(np.zeros(10**7, dtype=np.int8), ["x" * 500_000])
    batch = pyarrow.record_batch({"a": texts})
    with ipc.new_file(path, batch.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)


@bomb(FIXED, "bzip.npz")
@bomb(ROUNDS, "bzip.npz")
def _bzip(path: Path) -> None:
    """Zeros of 240 MB in less than a kilobyte; the packing gives them all at once, whatever the directory says of their size."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive, archive.open("a.npy", "w") as member:
        member.write(header("<f8", (3 * 10**7,)))
        for _ in range(60):
            member.write(bytes(4 * 10**6))


@bomb(FIXED, "zeros.npz")
@bomb(ROUNDS, "zeros.npz")
def _deflated(path: Path) -> None:
    names, megabytes = ("a", 240) if path.parent.name == "fixed" else ("abc", 400)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in names:
            with archive.open(f"{name}.npy", "w") as member:
                member.write(header("<f8", (megabytes * 10**6 // 8,)))
                for _ in range(megabytes):
                    member.write(bytes(10**6))


@bomb(FIXED, "narrow.npz")
@bomb(ROUNDS, "narrow.npz")
def _narrow(path: Path) -> None:
    """Entries of no bytes, three hundred million of them."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", header("<U0", (3 * 10**8,)))


@bomb(FIXED, "narrow.npy")
@bomb(ROUNDS, "narrow.npy")
def _narrow_too(path: Path) -> None:
    path.write_bytes(header("|S0", (10**12,)))


@bomb(ROUNDS, "wide.npy")
def _wide(path: Path) -> None:
    """A billion columns of no rows."""
    path.write_bytes(header("<f8", (0, 10**9)))


@bomb(FIXED, "short.npy")
@bomb(ROUNDS, "short.npy")
def _short(path: Path) -> None:
    path.write_bytes(header("<f8", (9 * 10**7,)) + bytes(100))


@bomb(FIXED, "lists.json")
def _empty_lists(path: Path) -> None:
    path.write_text("[" + "[]," * 2_500_000 + "[]]")


@bomb(ROUNDS, "numbers.csv.gz")
def _numbers(path: Path) -> None:
    path.write_bytes(gzip.compress(b"1.5\n" * 10**6) * 400)


@bomb(ROUNDS, "line.csv.gz")
def _line(path: Path) -> None:
    path.write_bytes(gzip.compress(b"1" * 10**6) * 4000)


@bomb(ROUNDS, "longline.csv.gz")
def _long_line(path: Path) -> None:
    path.write_bytes(gzip.compress(b"1" * 10**6) * 200)


@bomb(ROUNDS, "blank.csv.gz")
def _blank(path: Path) -> None:
    path.write_bytes(gzip.compress(b"\n" * 10**6) * 400)


@bomb(TRACES, "filled.nc")
def _filled(path: Path) -> None:
    """A dataset without chunks is full of its fill value."""
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("loss", (10**11,), chunks=(10**6,), dtype="f8")
        file.attrs["manifest"] = "{}"


@bomb(TRACES, "packed.nc")
def _packed(path: Path) -> None:
    """A chunk of a thousand numbers that unpacks to 400 MB."""
    import h5py

    with h5py.File(path, "w") as file:
        made = file.create_dataset("loss", (1000,), chunks=(1000,), dtype="f8", compression="gzip")
        packer, zeros, total = zlib.compressobj(1, wbits=-15), bytes(10**7), 1
        block = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)  # the same bytes wherever it stands
        for _ in range(40):
            total = zlib.adler32(zeros, total)
        made.id.write_direct_chunk((0,), b"\x78\x01" + 40 * block + packer.flush() + total.to_bytes(4, "big"))
        file.attrs["manifest"] = "{}"


@bomb(TRACES, "texts.nc")
def _texts(path: Path) -> None:
    """A text of a megabyte that a thousand entries share."""
    import h5py

    with h5py.File(path, "w") as file:
        made = file.create_dataset("loss", (2000,), dtype=h5py.string_dtype())
        made[0] = "x" * 10**6
    data = path.read_bytes()
    spot = data.index(struct.pack("<I", 10**6))
    reference = data[spot : spot + 16]
    path.write_bytes(data.replace(reference + bytes(16 * 1999), reference * 2000))


@bomb(TRACES, "external.nc")
def _external(path: Path) -> None:
    """A dataset whose numbers lie in another file."""
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("loss", (100,), dtype="u1", external=[("/proc/self/environ", 0, 100)])
        file.attrs["manifest"] = "{}"


@bomb(TRACES, "filled.zarr")
def _filled_store(path: Path) -> None:
    _store(path, {"shape": [10**11], "chunks": [10**6], "compressor": None})


@bomb(TRACES, "chunks.zarr")
def _many_chunks(path: Path) -> None:
    _store(path, {"shape": [10**7], "chunks": [1], "compressor": None})


@bomb(TRACES, "packed.zarr")
def _packed_store(path: Path) -> None:
    """A chunk of a thousand numbers that unpacks to 200 MB."""
    _store(path, {"shape": [1000], "chunks": [1000], "compressor": {"id": "bz2", "level": 1}})
    (path / "loss" / "0").write_bytes(bz2.compress(bytes(2 * 10**7)) * 10)


def _store(path: Path, array: dict[str, Any]) -> None:
    (path / "loss").mkdir(parents=True)
    array |= {"zarr_format": 2, "dtype": "<f8", "fill_value": 0, "order": "C", "filters": None}
    metadata = {
        ".zgroup": {"zarr_format": 2},
        ".zattrs": {"manifest": "{}"},
        "loss/.zarray": array,
        "loss/.zattrs": {"_ARRAY_DIMENSIONS": ["round"]},
    }
    for name, content in metadata.items():
        (path / name).write_text(json.dumps(content))
    (path / ".zmetadata").write_text(json.dumps({"zarr_consolidated_format": 1, "metadata": metadata}))


def memory(what: str) -> float:
    """Megabytes of this process: `VmSize`, `VmHWM` since `forget`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


def read(path: Path) -> None:
    """Read a file as what its folder says."""
    import oco
    from oco.evaluation.tables import read_table

    match path.parent.name:
        case "fixed":
            model = f'model m\nhorizon T = 9\nparam a[9] = file("{path.name}")\ndecision x in box(0, 1)\nminimize x\n'
            oco.parse(model, folder=path.parent)
        case "rounds":
            read_table(path)
        case "traces":
            oco.load_trace(path)


def main(paths: list[str]) -> None:
    import h5py  # noqa: F401
    import pyarrow.parquet
    import xarray  # noqa: F401
    import zarr  # noqa: F401

    import oco
    from oco.dsl.diagnostics import OcoError

    small = Path(paths[0]).parent.parent / "rounds" / "small.parquet"
    read(small)  # loads what is loaded once
    most = int((memory("VmSize") + MEMORY) * 2**20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for path in map(Path, paths):
        Path("/proc/self/clear_refs").write_text("5")
        before, begin = memory("VmHWM"), time.process_time()
        try:
            read(path)
            said = "read"
        except OcoError as error:
            said = error.code
        seconds, megabytes = time.process_time() - begin, memory("VmHWM") - before
        print(json.dumps([f"{path.parent.name}/{path.name}", said, round(seconds, 3), round(megabytes, 1)]), flush=True)
    assert oco and pyarrow


if __name__ == "__main__":
    main(sys.argv[1:])
