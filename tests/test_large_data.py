"""Runs over data that need not fit in memory: arrays read in place, NPY and Parquet files and iterators with flat memory."""

from __future__ import annotations

import gc
import mmap
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_c99 import has_compiler
from thorough import thorough

import oco
from oco.dsl import spill
from oco.dsl.diagnostics import OcoError
from oco.evaluation import arrow_tables, recorder
from oco.evaluation import data as data_module
from oco.evaluation.data import load_data
from oco.evaluation.tables import read_table

MODEL = """
model large
horizon T = 1000
decision x[3] in box(0, 1)
stream c[3] in [-1, 1]
stream b in [0, 2]
minimize c @ x
subject to
    limit: sum(x) <= b each round
"""


def rounds_of(count: int) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return {"c": rng.uniform(-1, 1, (count, 3)), "b": rng.uniform(0, 2, count)}


@pytest.fixture
def plan() -> Any:
    return oco.compile(oco.parse(MODEL), algorithm="coldq", settings="paper")


@pytest.mark.parametrize("whole", [False, True])
def test_arrays_are_read_in_place(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a compiled program is given lies in the caller's arrays, of integers too."""
    if not has_compiler():
        pytest.skip("there is no C compiler")
    text = MODEL.replace("stream b in [0, 2]", "stream b in 0..2") if whole else MODEL
    plan = oco.compile(oco.parse(text), algorithm="coldq", settings="paper")
    given, seen = rounds_of(600), []
    if whole:
        given["b"] = np.rint(given["b"]).astype(np.int64)
    from oco.backends.c99.learner import NativeLearner

    advance = NativeLearner.advance

    def watched(self: Any, inputs: Any, rounds: int, keep: Any) -> Any:
        seen.append([np.shares_memory(a, given[f.name]) for a, f in zip(inputs, self.compiled.program.feedback)])
        kinds = [np.int64 if whole and f.name == "b" else np.float64 for f in self.compiled.program.feedback]
        assert all(a.flags.c_contiguous and a.dtype == kind for a, kind in zip(inputs, kinds, strict=True))
        return advance(self, inputs, rounds, keep)

    monkeypatch.setattr(NativeLearner, "advance", watched)
    plan.run(given, backend="c")
    assert seen and all(all(parts) for parts in seen)


@pytest.mark.parametrize("keep, numbers", [("last", 3), (10, 3 + 0.4)])
def test_a_round_takes_the_memory_of_what_is_kept_of_it(
    plan: Any, keep: Any, numbers: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight bytes for the loss, for the constraint, for its multiplier, for each entry of a decision that is kept, and its round."""
    monkeypatch.setattr(spill, "LARGE", 1 << 30)
    if not has_compiler():
        pytest.skip("there is no C compiler")
    few, many, held = 5_000, 55_000, {}
    gc.freeze()  # what other tests left is not searched
    for rounds in (few, few, many):  # the first fills the caches
        data = {name: np.broadcast_to(a[:1], (rounds, *a.shape[1:])) for name, a in rounds_of(1).items()}
        tracemalloc.start()
        trace = plan.run(data, keep=keep, backend="c")
        gc.collect()
        held[rounds] = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert trace.rounds == rounds
    gc.unfreeze()
    each = (held[many] - held[few]) / (many - few)
    assert each == pytest.approx(8 * numbers, abs=1.0)


def test_columns_of_a_matrix_are_a_view_of_it(plan: Any, tmp_path: Path) -> None:
    matrix = np.random.default_rng(1).uniform(0, 1, (50, 4))
    np.save(tmp_path / "rounds.npy", matrix)
    mapping = {"c": ["0", "1", "2"], "b": "3"}
    data = load_data(plan.canonical, tmp_path / "rounds.npy", mapping=mapping)
    assert (data.given["c"] == matrix[:, :3]).all() and (data.given["b"] == matrix[:, 3]).all()
    root = data.given["c"]
    while getattr(root, "base", None) is not None and not isinstance(root, np.memmap):
        root = root.base
    assert isinstance(root, np.memmap)
    back = load_data(plan.canonical, tmp_path / "rounds.npy", mapping={"c": ["2", "0", "1"], "b": "3"})
    assert (back.given["c"] == matrix[:, [2, 0, 1]]).all()


@pytest.mark.parametrize("large", [1 << 30, 0])
def test_a_parquet_file_read_in_blocks_is_the_file(
    plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    pandas = pytest.importorskip("pandas")
    monkeypatch.setattr(spill, "LARGE", large)
    monkeypatch.setattr(arrow_tables, "BATCH", 28)
    monkeypatch.setattr(data_module, "BLOCK", 33)
    given = rounds_of(40)
    columns = {f"c[{i}]": given["c"][:, i] for i in range(3)} | {"b": given["b"]}
    pandas.DataFrame(columns).to_parquet(tmp_path / "rounds.parquet")
    data = load_data(plan.canonical, tmp_path / "rounds.parquet")
    assert (data.given["c"] == given["c"]).all() and (data.given["b"] == given["b"]).all()
    columns["b"] = np.where(np.arange(40) == 33, np.nan, given["b"])
    columns["c[1]"] = np.where(np.arange(40) == 25, 3.0, given["c"][:, 1])
    pandas.DataFrame(columns).to_parquet(tmp_path / "wrong.parquet")
    with pytest.raises(oco.OcoError) as caught:
        load_data(plan.canonical, tmp_path / "wrong.parquet")
    said = str(caught.value)
    assert "row 34, column `b`" in said and "row 26, column `c[1]`" in said and len(caught.value.errors) == 2


@pytest.mark.parametrize("entry", ["c[{}, 0]", "c.{}", "c_{}_0"])
def test_columns_of_a_stream_lie_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    """A round of a stream is then read as it lies, however its columns are numbered."""
    pandas = pytest.importorskip("pandas")
    monkeypatch.setattr(spill, "LARGE", 0)
    values = np.random.default_rng(0).uniform(0, 1, (40, 4))
    names = [entry.format(0), "price", entry.format(1), entry.format(2)]
    pandas.DataFrame(values, columns=names).to_parquet(tmp_path / "rounds.parquet")
    table = read_table(tmp_path / "rounds.parquet")
    assert all((table.arrays[name] == values[:, k]).all() for k, name in enumerate(names))
    first = [table.arrays[name].__array_interface__["data"][0] for name in (names[0], names[2], names[3])]
    assert np.diff(first).tolist() == [8, 8] and table.arrays["price"].strides == (8,)


GROWTH = """
import os, sys, threading
import numpy as np, oco
from oco.dsl import spill
kind, folder, model = sys.argv[1:4]
plan = oco.compile(oco.parse(model), algorithm="coldq", settings="paper")
spill.LARGE = 1 << 20
if kind == "parquet":
    import pyarrow
    pyarrow.set_cpu_count(1)  # what threads hold at once depends on when they run
def private():
    return sum(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))
def played(rounds):
    most, over = [0], threading.Event()
    def look():
        most[0] = max(most[0], private())
    def watch():
        while not over.wait(0.002):
            look()
    def feed():
        rng = np.random.default_rng(0)
        c, b = rng.uniform(-1, 1, (1000, 400)), rng.uniform(0, 2, 1000)
        for t in range(rounds):
            if t % 50 == 0:
                look()
            yield {"c": c[t % 1000], "b": b[t % 1000]}
    source = f"{folder}/{rounds}.parquet" if kind == "parquet" else feed()
    if kind == "npy":
        source = {n: np.load(f"{folder}/{n}{rounds}.npy", mmap_mode="r") for n in "cb"}
    thread = threading.Thread(target=watch, daemon=True)  # an error of the run ends the process
    if kind != "iterator":  # it looks between its rounds
        thread.start()
    trace = plan.run(source, backend="c", keep="last")
    over.set()
    if thread.ident is not None:
        thread.join()
    look()
    print(most[0], len(trace.loss))
for rounds in map(int, sys.argv[4:]):
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0
        continue
    played(rounds)
    break
"""


def grown_to(kind: str, folder: Path, model: str, counts: tuple[int, ...]) -> list[int]:
    """Most private memory, in KiB, of processes that play so many rounds each and nothing else: allocators keep what earlier runs freed."""
    command = [sys.executable, "-c", GROWTH, kind, str(folder), model, *map(str, counts)]
    done = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    most, played = zip(*(map(int, line.split()) for line in done.splitlines()))
    assert played == counts
    return list(most)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    ("kind", "counts"),
    [
        ("npy", (2_000, 10_000)),  # what allocators keep differs by a megabyte from run to run
        ("parquet", (8_000, 20_000)),  # a reader holds some groups of rows
        ("iterator", (2_000, 6_000)),
        thorough("npy", (4_000, 12_000)),
        thorough("iterator", (4_000, 12_000)),
    ],
)
def test_memory_does_not_hold_the_data(kind: str, counts: tuple[int, int], tmp_path: Path) -> None:
    """Private memory grows with rounds of 3208 bytes by what a trace and its promise keep: some numbers a round."""
    if not has_compiler():
        pytest.skip("there is no C compiler")
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    model = MODEL.replace("c[3]", "c[400]").replace("x[3]", "x[400]")
    for rounds in counts:
        c, b = np.random.default_rng(0).uniform(-1, 1, (rounds, 400)), np.full(rounds, 0.5)
        if kind == "npy":
            np.save(tmp_path / f"c{rounds}.npy", c)
            np.save(tmp_path / f"b{rounds}.npy", b)
        if kind == "parquet":
            columns = {f"c[{i}]": c[:, i] for i in range(400)} | {"b": b}
            path = tmp_path / f"{rounds}.parquet"  # a reader keeps what is stated of each group, and dictionaries
            parquet.write_table(pyarrow.table(columns), path, row_group_size=4000, use_dictionary=False)
    least, most = grown_to(kind, tmp_path, model, counts)
    assert 1024 * (most - least) < 0.1 * 3208 * (counts[1] - counts[0])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_what_a_run_keeps_of_long_runs_lies_in_files() -> None:
    """From 2,000 to 200,000 rounds private memory stays; all columns of the longer run are whole."""
    code = f"""
import numpy as np, oco
from oco.dsl import spill
spill.LARGE = 1 << 18
plan = oco.compile(oco.parse({MODEL!r}), algorithm="coldq", settings="paper")
rng = np.random.default_rng(0)
c, b = rng.uniform(-1, 1, (200_000, 3)), rng.uniform(0, 2, 200_000)
def private():
    return sum(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))
traces = [plan.run({{"c": c[:n], "b": b[:n]}}, backend="c", keep="last") for n in (2_000, 2_000)]
before = private()
traces.append(plan.run({{"c": c, "b": b}}, backend="c", keep="last"))
long = traces[-1]
assert long.loss.shape == (200_000,) and long.constraints.shape == (200_000, 1) and long.duals.shape == (200_000, 1)
assert np.isfinite(long.loss).all() and (long.loss != 0).mean() > 0.9
print(private() - before)
"""
    if not has_compiler():
        pytest.skip("there is no C compiler")
    out = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert int(out.stdout) < 2_000, "kilobytes; loss, constraint and multiplier of 200,000 rounds are 4,700"


def test_arrays_that_find_no_file_stay_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spill, "LARGE", 100)
    mapped = spill.spacious((50, 2))
    mapped[:] = 3.0
    assert isinstance(mapped.base, mmap.mmap) and mapped.sum() == 300.0
    assert not isinstance(spill.spacious((12,)).base, mmap.mmap)
    assert isinstance(spill.spacious((12,), among=2).base, mmap.mmap)
    monkeypatch.setattr(spill.tempfile, "tempdir", str(tmp_path / "missing"))
    plain = spill.spacious((50, 2))
    assert plain.base is None and plain.shape == (50, 2)


def test_rounds_of_an_iterator_that_are_too_many_to_keep_end_no_run(plan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on, decides the same and says what is lost: the comparator and the replay, in words."""
    given = rounds_of(600)
    rows = [{name: array[t] for name, array in given.items()} for t in range(600)]
    whole = plan.run(iter(rows))
    monkeypatch.setattr(recorder, "STREAM_BYTES", 1000)
    trace = plan.run(iter(rows))
    assert (trace.loss == whole.loss).all() and (trace.constraints == whole.constraints).all()
    assert "were not kept" in " ".join(trace.notes) and not trace.data.names
    assert "`c`, `b` were not kept" in trace.comparator("static").words
    assert "not computed" in trace._repr_html_() and trace.plot() is not None
    with pytest.raises(OcoError, match="does not hold the values of `c`, `b`"):
        plan.replay(trace)
    assert plan.replay(whole).rounds == 600


def test_a_column_of_parquet_is_read_in_pieces(tmp_path: Path) -> None:
    """Not whole columns at once, which in a file of one group of rows are the whole file."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows, path = 500_000, tmp_path / "rounds.parquet"
    table = pa.table({f"c{k}": np.random.default_rng(k).normal(size=rows) for k in range(10)})
    parquet.write_table(table, path, row_group_size=rows)
    code = f"""
import pyarrow
from oco.evaluation.tables import read_table
assert len(read_table({str(path)!r}).arrays["c9"]) == {rows}
print(pyarrow.default_memory_pool().max_memory())
"""
    out = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert int(out.stdout) < table.nbytes
