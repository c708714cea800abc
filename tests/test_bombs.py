"""Files of a few bytes that unpack to gigabytes are refused in moments, by a process that has 400 MB to do it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import bombs
import numpy as np
import pytest
from thorough import corners, thorough

import oco
from oco.dsl.diagnostics import OcoError
from oco.dsl.readers.quota import RATIO, Quota, QuotaExceeded

SECONDS, MEGABYTES = 3.0, 150.0
"""Of the processor, and of memory, for each file."""
KINDS = {"fixed": bombs.FIXED, "rounds": bombs.ROUNDS, "traces": bombs.TRACES}
ALIKE = {name for name, make in bombs.ROUNDS.items() if bombs.FIXED.get(name) is make} - {
    "constant.parquet",
    "zeros.npz",
}
"""Files of rounds that are those of values, and take a second or two to make."""
NAMES = [f"{kind}/{name}" for kind, table in KINDS.items() for name in table]
LARGE = (
    "rounds/constant.parquet",
    "rounds/zeros.npz",
    "rounds/lists.parquet",
    "rounds/bzip.npz",
    "rounds/longline.csv.gz",
    "rounds/blank.csv.gz",
)
"""Files of rounds that take long, and are as those of values, or as one longer line, but for their size."""
FITS = {"rounds/text.parquet", "rounds/indices.arrow"}
"""Texts that stand often are there once: these are read, in as little memory."""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
pytest.importorskip("pyarrow")
pytest.importorskip("zarr")


def measure(root: Path, paths: list[Path]) -> dict[str, tuple[str, float, float]]:
    """What each file gave, read by a process with little memory: the code of the error or `read`, seconds, megabytes."""
    bombs.parquet(root / "rounds" / "small.parquet", {"a": np.arange(3.0)})
    done = subprocess.run([sys.executable, bombs.__file__, *map(str, paths)], capture_output=True, text=True)
    found = {name: (said, seconds, size) for name, said, seconds, size in map(json.loads, done.stdout.splitlines())}
    assert len(found) == len(paths), (done.returncode, done.stderr[-2000:])
    return found


@pytest.fixture(scope="module")
def measured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[str, float, float]]:
    """What each file that is asked for gave."""
    root = tmp_path_factory.mktemp("bombs")
    calls = [item.callspec for item in request.session.items if hasattr(item, "callspec")]
    wanted = {call.params.get("name") for call in calls}
    for kind, table in KINDS.items():
        (root / kind).mkdir()
        for name, make in table.items():
            if f"{kind}/{name}" not in wanted:
                continue
            if kind == "rounds" and name in ALIKE and (root / "fixed" / name).exists():
                shutil.copy(root / "fixed" / name, root / kind / name)
            else:
                make(root / kind / name)
    paths = [root / name for name in NAMES if name in wanted]
    assert all(path.stat().st_size < 10**7 for path in paths)
    return measure(root, paths)


@pytest.mark.parametrize("name", corners(NAMES, [name for name in NAMES if name not in LARGE]))
def test_what_unpacks_to_gigabytes_takes_moments(name: str, measured: dict[str, tuple[str, float, float]]) -> None:
    said, seconds, megabytes = measured[name]
    assert said in ("OCO801", "OCO804", "OCO805", "OCO820", "OCO833", "OCO834") or (said == "read" and name in FITS), (
        said
    )
    assert seconds < SECONDS and megabytes < MEGABYTES


@pytest.mark.parametrize("count", [12, thorough(200)])
def test_files_with_changed_bytes_take_no_more(count: int, tmp_path: Path) -> None:
    """Sizes in headers and footers become others at random; each file is read, or refused, in little memory."""
    import pyarrow
    from pyarrow import feather

    rng, paths = np.random.default_rng(0), []
    (tmp_path / "rounds").mkdir()
    columns = {"a": np.zeros(300), "b": ["abc", "de", None] * 100, "c": [[1.0, 2.0]] * 300}
    bombs.parquet(tmp_path / "whole.parquet", columns, 2)
    feather.write_feather(pyarrow.table(columns), tmp_path / "whole.arrow", compression="zstd")
    np.savez_compressed(tmp_path / "whole.npz", a=columns["a"])
    for whole in sorted(tmp_path.glob("whole.*")):
        content = whole.read_bytes()
        for k in range(count):
            changed = bytearray(content)
            for place in rng.integers(0, len(content), rng.integers(1, 4)):
                changed[place] = rng.choice([0, 127, 128, 255, rng.integers(256)])
            paths.append(tmp_path / "rounds" / f"{k}{whole.suffix}")
            paths[-1].write_bytes(changed)
    found = measure(tmp_path, paths)
    assert {said for said, _, _ in found.values()} <= {"read", "OCO820", "OCO821", "OCO834"}
    assert max(seconds for _, seconds, _ in found.values()) < SECONDS
    assert max(megabytes for _, _, megabytes in found.values()) < MEGABYTES


def test_a_quota_counts_all_files_together() -> None:
    quota = Quota(1000)
    quota.open(10)
    quota.add(900)
    with pytest.raises(QuotaExceeded, match="10 bytes"):
        quota.add(900)
    large = Quota(1000)
    large.open(10_000)
    large.add(RATIO * 10_000)
    with pytest.raises(QuotaExceeded):
        large.add(1)


def test_large_files_pass_where_they_are_saved_unpacked(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", a=np.zeros(21 * 10**6))
    text = 'model m\nhorizon T = 9\nparam a[21000000] = file("a.npz")\ndecision x in box(0, 1)\nminimize x\n'
    with pytest.raises(OcoError) as caught:
        oco.parse(text, folder=tmp_path)
    assert caught.value.code == "OCO805" and "save it unpacked" in str(caught.value)
    np.savez(tmp_path / "a.npz", a=np.zeros(21 * 10**6))
    assert oco.parse(text, folder=tmp_path).params[0].data.size == 21 * 10**6
