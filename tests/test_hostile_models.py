"""Model files that were written to do harm: under limits of the system each ends in an OcoError, in a plan, or with the limits."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hostile import BODY, CASES, HEAD, MEMORY, Examiner
from thorough import corners

import oco
from oco.dsl import limits
from oco.dsl.codes import CODES
from oco.dsl.diagnostics import OcoError

GRANTED = 2.0
"""Seconds beyond the limit: systems count whole ones, and what ends must give its memory back."""


@pytest.fixture(scope="module")
def seconds(request):
    """Processor time of each file: most of those that take any end at the limit, whatever it is."""
    return request.config.getoption("--hostile-seconds")


@pytest.fixture(scope="module")
def examine(seconds):
    """One process for the files: most of the time of each would be that of its imports."""
    with Examiner(seconds=seconds) as run:
        yield run


@pytest.mark.parametrize("name", corners(CASES, [*CASES][::3]))
def test_hostile_files_end_under_the_limits(examine, seconds, name):
    assert len(CASES[name].encode()) < 100_000
    ran = examine(name, CASES[name])
    assert ran.is_contained and all(code in ("done", "ended") or code in CODES for code in ran.said), ran
    assert ran.seconds <= seconds + GRANTED and ran.megabytes <= MEMORY / 2**20, ran


# Files.


def load(path: str, folder: Path):
    text = f'{HEAD}param w[3] = file("{path}")\n{BODY}'
    (folder / "m.oco").write_text(text)
    return oco.load(folder / "m.oco")


@pytest.fixture
def place(tmp_path):
    """A model's folder with data in it, and data beside it."""
    folder = tmp_path / "model"
    (folder / "data").mkdir(parents=True)
    for where in (tmp_path, folder, folder / "data"):
        (where / "w.csv").write_text("1\n2\n3\n")
    return folder


def test_data_within_the_folder_is_read(place):
    for path in ("w.csv", "data/w.csv", "./w.csv", "data/../w.csv"):
        assert load(path, place).params[0].data.tolist() == [1, 2, 3] or load(path, place).params[0].data.shape == (
            3,
            1,
        )


OUTSIDE = [
    "../w.csv",
    "data/../../w.csv",
    "/etc/passwd",
    "{tmp}/w.csv",
    "..",
    ".",
    "",
    "~/w.csv",
    "C:\\\\w.csv",
    "//host/w.csv",
]
OUTSIDE += [
    "data/../../model/../w.csv",
    "file:///etc/passwd",
    "/dev/zero",
    "/dev/stdin",
    "/proc/self/mem",
    "link.csv",
    "way/w.csv",
    "loop.csv",
]
OUTSIDE += [
    "w.csv/../../w.csv",
    "pipe.csv",
    "zero.npy",
    "data",
    "w.py",
    "w.pkl",
    "w.oco",
    "w.CSV.gz",
    "w.csv%00.npy",
    "none.csv",
    "socket.csv",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_files_outside_the_folder_or_of_another_kind_are_never_read(place, tmp_path, path):
    (place / "link.csv").symlink_to(tmp_path / "w.csv")
    (place / "way").symlink_to(tmp_path)
    (place / "loop.csv").symlink_to(place / "loop.csv")
    (place / "zero.npy").symlink_to("/dev/zero")
    os.mkfifo(place / "pipe.csv")
    for name in ("w.py", "w.pkl"):
        (place / name).write_text("1\n2\n3\n")
    with pytest.raises(OcoError) as caught:
        load(path.replace("{tmp}", str(tmp_path)), place)
    assert caught.value.code.startswith("OCO"), caught.value


def test_large_files_and_large_promises_are_refused_unread(place, monkeypatch):
    with (place / "huge.csv").open("wb") as file:
        file.truncate(limits.MOST_TEXT_BYTES + 1)  # sparse: no room is taken
    with (place / "huge.npy").open("wb") as file:
        file.truncate(limits.MOST_BYTES + 1)
    for path in ("huge.csv", "huge.npy"):
        with pytest.raises(OcoError) as caught:
            load(path, place)
        assert caught.value.code == "OCO805"
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
    with (place / "promise.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(OcoError) as caught:
        load("promise.npy", place)
    assert caught.value.code == "OCO804"
    np.save(place / "objects.npy", np.array([{}, None]), allow_pickle=True)
    with pytest.raises(OcoError, match="objects"):
        load("objects.npy", place)


def test_a_chain_of_lets_may_be_long_but_not_deep():
    long = "".join(f"let a{k} = c @ x + {k}\n" for k in range(300))
    assert oco.check(oco.parse(HEAD + BODY.replace("minimize c @ x", long + "minimize a7")))["loss.convex"]
    deep = "let a0 = c @ x\n" + "".join(f"let a{k} = a{k - 1} + 1\n" for k in range(1, 900))
    with pytest.raises(OcoError) as caught:
        oco.check(oco.parse(HEAD + BODY.replace("minimize c @ x", deep + "minimize a899")))
    assert caught.value.code == "OCO107"
