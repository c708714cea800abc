"""Reading and atomic writing of text files, with errors in words."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from oco.dsl.diagnostics import fail


def read_text(path: Path) -> str:
    """Text of a file. Raises OCO901 where it cannot be read, OCO902 where it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise fail("OCO902", f"{path} is not text in UTF-8: byte {error.start} cannot be read") from None
    except (OSError, ValueError) as error:
        raise fail("OCO901", f"{path} cannot be read: {reason_of(error)}") from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Temporary neighbour to write, a file or a folder, that replaces `path` once it is complete. Raises OCO903.

    No half of a file is ever seen under `path`. An existing folder is moved aside first, since folders cannot be
    swapped.
    """
    try:
        room = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part"))
        try:
            neighbour = room / path.name
            yield neighbour
            if neighbour.is_dir() and path.is_dir():
                os.replace(path, room / "before")
            elif neighbour.is_file():
                os.chmod(neighbour, _mode(path))
            os.replace(neighbour, path)
        finally:
            shutil.rmtree(room, ignore_errors=True)
    except (OSError, ValueError) as error:
        hint = "name a file in it" if path.is_dir() else ""
        raise fail("OCO903", f"{path} cannot be written: {reason_of(error)}", hint=hint) from None


def write_text(path: Path, text: str) -> None:
    """Write a file completely or not at all. Raises OCO903."""
    with replacing(path) as neighbour:
        neighbour.write_text(text, encoding="utf-8")


def write_files(files: Mapping[Path, str | bytes]) -> None:
    """Write several files, of text or bytes, which take their places once all of them are complete; on failure new ones are removed
    again.
    """
    new = list[Path]()
    try:
        with ExitStack() as stack:
            for path, content in files.items():
                make_folder(path.parent)
                new += [] if path.exists() else [path]
                data = content if isinstance(content, bytes) else content.encode()
                stack.enter_context(replacing(path)).write_bytes(data)
    except BaseException:
        for path in new:
            with suppress(OSError, ValueError):
                path.unlink()
        raise


def make_folder(folder: Path) -> None:
    """Create a folder and check that it can be written. Raises OCO903."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise fail("OCO903", f"{folder} cannot be made: {reason_of(error)}") from None
    if not os.access(folder, os.W_OK):
        raise fail("OCO903", f"{folder} cannot be written: permission denied")


def _mode(path: Path) -> int:
    """Permissions of the file that is replaced, or those of a new file."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def reason_of(error: Exception) -> str:
    """Reason of a failure with a file, in the system's words."""
    return error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
