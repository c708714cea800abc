"""Cache of compiled libraries: a folder that belongs to this user alone. Files that another user may have put there are
never loaded.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass
from oco.dsl.writing import reason_of

ELSEWHERE = "make room, or name another folder for compiled learners in the environment variable XDG_CACHE_HOME"
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
DESCRIPTORS = Path("/proc/self/fd")
"""Names of open descriptors, where the system has them: a path through one reaches the folder that was checked, under any name."""


@dataclass(frozen=True)
class Folder:
    """Folder that only this user may write. Its descriptor stays open to the end of the process, so that its number is
    not reused.
    """

    descriptor: int
    path: Path
    """Path that other users cannot redirect."""
    identity: tuple[int, int]
    """Its device and number."""

    @property
    def there(self) -> bool:
        """True where the folder was not deleted, and the descriptor not closed or reused, as when a process becomes a
        daemon.
        """
        with suppress(OSError):
            status = os.fstat(self.descriptor)
            return (status.st_dev, status.st_ino) == self.identity and status.st_nlink > 0
        return False

    def refusal(self, name: str) -> str | None:
        """Reason not to load a library in it: absent, of another user, open to others, damaged. None for one that can
        be loaded.
        """
        try:
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self.descriptor)
        except OSError as error:
            return reason_of(error)
        try:
            status = os.fstat(file)
        finally:
            os.close(file)
        if not stat.S_ISREG(status.st_mode) or not _own(status):
            return f"{name} may have been written by another user"
        try:
            self.load(name)
        except OSError as error:
            return str(error)
        return None

    def load(self, name: str) -> ctypes.CDLL:
        """Library of that name. Raises OSError."""
        return ctypes.CDLL(str(self.path / name))

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """Temporary folder in it, removed at the end."""
        with tempfile.TemporaryDirectory(dir=self.path, prefix=".build-") as made:
            yield Path(made)


def libraries() -> Folder:
    """User's folder of compiled learners, created on first use; a private temporary one where others may write to it.

    Raises OCO903 where no folder can be made.
    """
    folder = _folder(cache_folder())
    if not folder.there:
        _folder.cache_clear()
        _private.cache_clear()
        folder = _folder(cache_folder())
    return folder


def cache_folder() -> Path:
    """Path of the cache of compiled learners. Raises OCO903 for a user without a home."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "oco"
    try:
        return Path.home() / ".cache" / "oco"
    except RuntimeError:
        raise fail("OCO903", "compiled learners have no folder: this user has no home", hint=ELSEWHERE) from None


@cache
def _folder(place: Path) -> Folder:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(place, 0o700)
    except OSError as error:
        raise fail("OCO903", f"{place} cannot be made: {reason_of(error)}", hint=ELSEWHERE) from None
    return _opened(place) or _private()


def _opened(place: Path) -> Folder | None:
    """Folder, closed to others; None where it is another's, a link, or others could write to it until now."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    path = DESCRIPTORS / str(descriptor) if DESCRIPTORS.is_dir() else _out_of_reach(place)
    status = os.fstat(descriptor)
    if path is None or not _own(status):
        os.close(descriptor)
        return None
    os.fchmod(descriptor, 0o700)
    return Folder(descriptor, path, (status.st_dev, status.st_ino))


def _own(status: os.stat_result) -> bool:
    """True where it belongs to this user, and no other may write to it."""
    return status.st_uid == os.geteuid() and not status.st_mode & OTHERS_WRITE


def _out_of_reach(place: Path) -> Path | None:
    """Path without links, where only root and this user can rename a folder on it; else None."""
    real = place.resolve()
    above = [folder.stat() for folder in real.parents]
    owned = all(s.st_uid in (0, os.geteuid()) for s in above)
    closed = all(not s.st_mode & OTHERS_WRITE or s.st_mode & stat.S_ISVTX for s in above)
    return real if owned and closed else None


@cache
def _private() -> Folder:
    """Temporary folder of this process, removed with it."""
    try:
        place = Path(tempfile.mkdtemp(prefix="oco-"))
    except OSError as error:
        raise fail("OCO903", f"no temporary folder can be made: {reason_of(error)}", hint=ELSEWHERE) from None
    atexit.register(_remove, place, os.getpid())
    opened = _opened(place)
    if opened is None:
        raise fail("OCO903", f"{place} may be written by other users", hint="name a folder of your own in TMPDIR")
    return opened


def _remove(place: Path, owner: int) -> None:
    """Remove a folder at the end of the process that made it, not of one forked from it."""
    if os.getpid() == owner:
        shutil.rmtree(place, ignore_errors=True)
