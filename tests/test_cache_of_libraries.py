"""The cache of compiled learners: another user plants a library under the name that is looked for, and it is never loaded."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from oco.backends.c99 import cache
from oco.backends.c99.build import compiler, has_compiler
from oco.backends.c99.cache import libraries

STRANGER = 65534
needs_two_users = pytest.mark.skipif(os.geteuid() != 0, reason="planting a library as another user takes root")
pytestmark = pytest.mark.skipif(not has_compiler(), reason="no C compiler")

VICTIM = """
import os, sys, tempfile, oco
from oco.backends.c99 import build
build.FLAGS = tuple("-O0" if flag == "-O3" else flag for flag in build.FLAGS)
model = oco.parse('''
model small
horizon T = 100
decision x[2] in box(0, 1)
stream s[2] in [0, 1]
minimize s @ x
using ogd with eta = 0.1
''')
plan = oco.compile(model, backend="c")
for line in sys.stdin:
    if child := os.fork():
        print(os.waitpid(child, 0)[1], flush=True)
        continue
    os.environ["XDG_CACHE_HOME"], tempfile.tempdir = line.rstrip().split("\\t")
    learner = plan.learner()
    learner.decide()
    learner.observe(s=[0.5, 1.0])
    print(learner.decide(), flush=True)
    break
"""
"""Program that answers each line, a cache's place and one for other files, with the second decision of a learner in C and with 0. A child
of its own answers, which has made no learner before.
"""

PLANTED = """
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void planted(void) {{ close(open("{marker}", O_CREAT | O_WRONLY, 0666)); }}
"""


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user may write, where every user can reach it."""
    place = Path(tempfile.mkdtemp(prefix="shared-"))
    place.chmod(0o777)
    yield place
    shutil.rmtree(place)


@pytest.fixture
def shared() -> Iterator[Path]:
    with open_folder() as place:
        yield place


@pytest.fixture(scope="module")
def decided() -> Iterator[Callable[[Path, Path], str]]:
    """`decided(base, place)`: the second decision of a learner in C in a process whose cache is under `base`, other files in `place`."""
    with subprocess.Popen(
        [sys.executable, "-c", VICTIM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as victim:
        assert victim.stdin and victim.stdout

        def answer(base: Path, place: Path) -> str:
            victim.stdin.write(f"{base}\t{place}\n")
            victim.stdin.flush()
            said, ended = victim.stdout.readline(), victim.stdout.readline()
            assert ended == "0\n", (said, ended)
            return said

        yield answer
        victim.stdin.close()


def as_stranger(*words: object) -> None:
    subprocess.run([str(w) for w in words], user=STRANGER, group=STRANGER, extra_groups=[], check=True)


@pytest.fixture(scope="module")
def own(decided, tmp_path_factory):
    """The victim's own cache, in a folder that others could read, and what it decides with it."""
    place = tmp_path_factory.mktemp("own") / "oco"
    place.mkdir(0o755)
    return place, decided(place.parent, tmp_path_factory.mktemp("elsewhere"))


@pytest.fixture(scope="module")
def names(own):
    """The names of the libraries that the victim's process looks for, and what it decides with its own."""
    place, said = own
    return sorted(p.name for p in place.glob("*.so")), said


def planted(shared: Path, names: list[str]) -> tuple[Path, Path]:
    """A folder of the stranger with a library under each name, and the file that tells that one of them was loaded."""
    marker, source, made = shared / "loaded", shared / "planted.c", shared / "planted.so"
    source.write_text(PLANTED.format(marker=marker))
    subprocess.run([*compiler(), "-shared", "-fPIC", source, "-o", made], check=True)
    made.chmod(0o644)
    as_stranger("mkdir", shared / "folder")
    for name in names:
        as_stranger("cp", made, shared / "folder" / name)
    return shared / "folder", marker


WAYS = ("folder", "link", "files", "open folder", "link to a file")


@pytest.fixture(scope="module")
def attacked(
    decided: Callable[[Path, Path], str], names: tuple[list[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """Of each way: its shared folder, what a learner decides with its cache there, and whether a planted library was loaded."""
    place = tmp_path_factory.mktemp("victim")
    with ExitStack() as stack:
        folders = {way: stack.enter_context(open_folder()) for way in WAYS}
        markers = {way: plant(way, folders[way], names[0]) for way in WAYS}
        said = [decided(folder / "base", place) for folder in folders.values()]
        assert not list(place.glob("oco-*")), "a private folder outlived its process"
        yield {way: (folders[way], one, markers[way].exists()) for way, one in zip(WAYS, said, strict=True)}


def plant(way: str, shared: Path, names: list[str]) -> Path:
    """Plant a library where the cache will be; the file that tells that it was loaded."""
    folder, marker = planted(shared, names)
    base = shared / "base"
    base.mkdir()
    base.chmod(0o777)
    target = base / "oco"
    match way:
        case "folder":
            as_stranger("mv", folder, target)
        case "link":
            as_stranger("ln", "-s", folder, target)
        case "files":  # in a folder that was open to others and is not any more
            as_stranger("mv", folder, target)
            os.chown(target, os.geteuid(), os.getegid())
            target.chmod(0o755)
        case "open folder":
            target.mkdir()
            target.chmod(0o777)
            for name in names:
                as_stranger("cp", folder / name, target / name)
        case "link to a file":
            target.mkdir(0o700)
            for name in names:
                (target / name).symlink_to(folder / name)
    assert list(shared.rglob("*.so"))
    return marker


@needs_two_users
@pytest.mark.parametrize("way", WAYS)
def test_a_library_that_another_user_planted_is_never_loaded(
    way: str, attacked: dict[str, Any], names: tuple[list[str], str]
) -> None:
    shared, said, loaded = attacked[way]
    assert said == names[1] and not loaded
    # The test can fail: the library that was planted does tell when it is loaded.
    subprocess.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(shared / 'planted.so')!r})"], check=True)
    assert (shared / "loaded").exists()


@needs_two_users
def test_a_folder_that_is_exchanged_after_it_was_checked_is_not_gone_through(shared, names, monkeypatch):
    """The path of the cache leads to the folder that was checked, by its descriptor, though another lies under its name now."""
    names, _ = names
    folder, marker = planted(shared, names)
    base = shared / "base"
    base.mkdir()
    base.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    checked = libraries()
    if not cache.DESCRIPTORS.is_dir():
        pytest.skip("descriptors have no names here")
    as_stranger("mv", base / "oco", base / "away")
    as_stranger("mv", folder, base / "oco")
    assert all(checked.refusal(name) for name in names) and not marker.exists()
    assert checked.path.resolve() == (base / "away").resolve()


def test_the_cache_is_closed_to_others_and_kept(decided, own, tmp_path):
    place, said = own
    kept = {p: p.stat().st_mtime_ns for p in place.iterdir()}
    assert kept and stat.S_IMODE(place.stat().st_mode) == 0o700
    assert all(not p.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH) for p in kept)
    assert decided(place.parent, tmp_path) == said
    assert {p: p.stat().st_mtime_ns for p in place.iterdir()} == kept


def test_a_cache_that_is_deleted_meanwhile_is_made_again(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = libraries()
    (tmp_path / "oco").rmdir()
    after = libraries()
    assert (tmp_path / "oco").is_dir() and after.descriptor != before.descriptor
    os.close(after.descriptor)  # as a process does that becomes a daemon
    taken = os.open(tmp_path, os.O_RDONLY)
    assert libraries().path.resolve() == (tmp_path / "oco").resolve()
    os.close(taken)


def test_without_names_of_descriptors_the_way_to_the_cache_is_checked(monkeypatch, tmp_path):
    """On systems without /proc: a path that others can lead elsewhere is not taken."""
    monkeypatch.setattr(cache, "DESCRIPTORS", tmp_path / "none")
    for name, mode, taken in (("mine", 0o755, True), ("sticky", 0o1777, True), ("open", 0o777, False)):
        base = tmp_path / name
        base.mkdir()
        base.chmod(mode)
        monkeypatch.setenv("XDG_CACHE_HOME", str(base))
        folder = libraries()
        assert (folder.path == (base / "oco").resolve()) is taken
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
