"""Places for files that all processes of a cluster reach: a folder, or an object store by its address."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from oco.dsl.diagnostics import fail
from oco.dsl.extras import require_package
from oco.dsl.records import dataclass
from oco.dsl.writing import make_folder, reason_of, replacing


@dataclass(frozen=True)
class Snapshot:
    """Snapshot of all shards before a round."""

    round: int

    def file(self, shard: int) -> str:
        """Name of the file of a shard."""
        return f"{self.folder}/shard-{shard:05}.npz"

    @property
    def folder(self) -> str:
        """Name of its folder."""
        return f"before-round-{self.round}"


@dataclass(frozen=True)
class FilePlace:
    """Folder at a path, or at an address as `s3://bucket/folder` that fsspec knows. A file is there whole or not at all."""

    address: str

    @property
    def remote(self) -> bool:
        """True for an address, of which fsspec reads and writes the files."""
        return "://" in self.address

    def path(self, name: str) -> str:
        """Path or address of a file."""
        return f"{self.address.rstrip('/')}/{name}"

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """File that takes its place once it is complete and on the disk. Raises OCO903."""
        if self.remote:
            with self._errors("written"), _fsspec().open(self.path(name), "wb") as file:
                yield file
            return
        path = Path(self.path(name))
        make_folder(path.parent)
        with replacing(path) as neighbour, open(neighbour, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def reading(self, name: str) -> Iterator[IO[bytes]]:
        """File that is there. Raises OCO880 where it is not."""
        with self._errors("read"), self._opened(name) as file:
            yield file

    def _opened(self, name: str) -> Any:
        return _fsspec().open(self.path(name), "rb") if self.remote else Path(self.path(name)).open("rb")

    def has(self, name: str) -> bool:
        """True where a file is there. Raises OCO880 where the place does not answer."""
        with self._errors("read"):
            if not self.remote:
                return Path(self.path(name)).exists()
            system, path = _fsspec().core.url_to_fs(self.path(name))
            return bool(system.exists(path))

    def remove(self, name: str) -> None:
        """Remove a file, or a folder whose files are removed; nothing where there is none."""
        with self._errors("removed"):
            if self.remote:
                system, path = _fsspec().core.url_to_fs(self.path(name))
                if system.exists(path):
                    system.rm(path, recursive=True)
            elif Path(self.path(name)).is_dir():
                Path(self.path(name)).rmdir()
            else:
                Path(self.path(name)).unlink(missing_ok=True)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            code = "OCO903" if what == "written" else "OCO880"
            raise fail(code, f"{self.address} cannot be {what}: {reason_of(error)}") from None


def _fsspec() -> Any:
    require_package("fsspec", "a place with an address")
    import fsspec

    return fsspec
