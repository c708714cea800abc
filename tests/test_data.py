"""Data for a run: what maps to what, what is drawn, and errors that name file, row, column, stream and rule."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from oco.compiler.problem.canonical import Canonical, canonical
from oco.dsl.diagnostics import OcoError
from oco.dsl.distributions import TruncatedDistribution
from oco.dsl.load import load, parse
from oco.dsl.model import Model
from oco.evaluation.data import describe, from_rounds, load_data
from oco.evaluation.mapping import parse_map
from oco.evaluation.table import Table
from oco.evaluation.tables import read_table

ROOT = Path(__file__).parent.parent
MODEL = """model shop
horizon T = 4
decision x[3] in box(0, 1)
stream price[3] in [0, 10]
stream jobs ~ poisson(5) in [0, 20]
minimize price @ x
subject to
    service: jobs <= 50 * sum(x)        each round
"""
HEADER = "price[0],price[1],price[2],jobs\n"


@pytest.fixture(scope="module")
def model() -> Model:
    return parse(MODEL)


@pytest.fixture(scope="module")
def problem(model: Model) -> Canonical:
    return canonical(model)


def table(text: str) -> Table:
    """Table of the file `shop.csv` with this text."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "shop.csv")
        path.write_text(text, encoding="utf-8", newline="")
        return read_table(path)


def codes(problem: Canonical, source: Any, **options: Any) -> list[str]:
    with pytest.raises(OcoError) as caught:
        load_data(problem, source, **options)
    return [e.code for e in caught.value.errors]


def message(problem: Canonical, source: Any, **options: Any) -> str:
    with pytest.raises(OcoError) as caught:
        load_data(problem, source, **options)
    return str(caught.value)


# ---- what maps to what


@pytest.mark.parametrize(
    "header",
    [
        "price[0],price[1],price[2],jobs",
        "jobs,price[2],price[0],price[1]",
        "price.a,price.b,price.c,jobs",
        "price_2,price_1,jobs,price_0",
        "price_00,price_01,price_02,jobs",
        "time,price.a,price.b,price.c,jobs,other",
    ],
)
def test_columns_map_by_name(problem: Canonical, header: str) -> None:
    numbers = {f"price_{pad}{i}": i + 1 for i in range(3) for pad in ("", "0")}
    numbers |= {"price[0]": 1, "price[1]": 2, "price[2]": 3, "price.a": 1, "price.b": 2, "price.c": 3, "jobs": 7}
    row = ",".join(str(numbers.get(c, "2017-05-01 00:00" if c == "time" else 9)) for c in header.split(","))
    data = load_data(problem, table(f"{header}\n{row}\n"))
    assert data.rounds == 1
    np.testing.assert_array_equal(data.array("price"), [[1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(data.array("jobs"), [7.0])


def test_numbered_columns_sort_by_number_and_named_ones_keep_the_order_of_the_file() -> None:
    problem = canonical(
        parse("model m\nhorizon T = 1\ndecision x[11] in box(0, 1)\nstream c[11] in [0, 99]\nminimize c @ x\n")
    )
    numbered = ",".join(f"c[{i}]" for i in reversed(range(11)))
    row = ",".join(str(i) for i in reversed(range(11)))
    np.testing.assert_array_equal(load_data(problem, table(f"{numbered}\n{row}\n")).array("c"), [np.arange(11.0)])
    named = ",".join(f"c.z{i}" for i in reversed(range(11)))
    np.testing.assert_array_equal(
        load_data(problem, table(f"{named}\n{row}\n")).array("c"), [np.arange(10.0, -1.0, -1.0)]
    )


def test_entries_by_underscores_are_all_there_or_none() -> None:
    text = "model m\nhorizon T = 2\ndecision x in box(0, 1)\ncontext ahead[2, 2] in [0, 9]\nstream c in [0, 9]\nminimize c * x\n"
    problem = canonical(parse(text))
    whole = "ahead_1_0,ahead_0_0,ahead_0_1,ahead_1_1,c\n3,1,2,4,5\n"
    np.testing.assert_array_equal(load_data(problem, table(whole + "3,1,2,4,5\n")).array("ahead")[1], [[1, 2], [3, 4]])
    words = message(problem, table("ahead_0_0,ahead_0_1,ahead_2017,c\n1,2,3,4\n"))
    assert "no column for context `ahead`" in words
    assert "`ahead[0, 0]` to `ahead[1, 1]`, `ahead_0_0` to `ahead_1_1`, or `ahead.NAME` for each entry" in words


def test_an_explicit_mapping_wins(problem: Canonical) -> None:
    source = table("a,b,c,price[0],price[1],price[2],jobs\n1,2,3,4,5,6,7\n")
    data = load_data(problem, source, mapping=parse_map(["price=c,b,a"]))
    np.testing.assert_array_equal(data.array("price"), [[3.0, 2.0, 1.0]])
    data = load_data(problem, source, mapping={"price": "price*"})
    np.testing.assert_array_equal(data.array("price"), [[4.0, 5.0, 6.0]])


def test_without_a_header_columns_fill_the_only_stream_that_needs_data(problem: Canonical) -> None:
    data = load_data(problem, table("1,2,3\n4,5,6\n"))
    np.testing.assert_array_equal(data.array("price"), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert any("by position" in note for note in data.notes)


def test_the_shipped_prices_fill_the_shipped_model() -> None:
    path = ROOT / "examples" / "data" / "nyiso_2017-05.csv"
    report = describe(load(ROOT / "examples" / "job_scheduling.oco"), path)
    assert report.rounds == 744 and not report.problems
    assert [(a.stream, len(a.columns)) for a in report.assignments] == [("price", 10), ("jobs", 0)]
    assert report.unused == ("NORTH",) and report.times == ("time",)
    assert report.to_json()["streams"][1]["way"] == "drawn from its distribution"


def test_the_price_that_leaves_its_bounds_is_named() -> None:
    path = ROOT / "examples" / "data" / "nyiso_2017-05.csv"
    zones = ["CAPITL", "CENTRL", "DUNWOD", "GENESE", "HUD_VL", "LONGIL", "MHK_VL", "MILLWD", "NYC"]
    mapping = {"price": [*(f"price.{z}" for z in zones), "NORTH"]}
    text = message(canonical(load(ROOT / "examples" / "job_scheduling.oco")), path, mapping=mapping)
    lines = path.read_text().splitlines()
    worst = next(i for i, line in enumerate(lines[1:], 2) if float(line.split(",")[11]) < -1000)
    assert (
        "OCO830" in text
        and f"line {worst}" in text
        and "`NORTH`" in text
        and "`price[9]`" in text
        and "[-1000, 3000]" in text
    )


# ---- other forms


def test_arrays_frames_and_files_say_the_same(problem: Canonical, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    price, jobs = rng.uniform(0, 10, (6, 3)).round(3), rng.integers(0, 20, 6)
    np.savez(tmp_path / "shop.npz", price=price, jobs=jobs)
    lines = [HEADER.strip(), *(f"{a},{b},{c},{j}" for (a, b, c), j in zip(price, jobs))]
    (tmp_path / "shop.csv").write_text("\n".join(lines))
    (tmp_path / "shop.tsv").write_text("\n".join(lines).replace(",", "\t"))
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(tmp_path / "shop.csv")
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "shop.parquet")
    frame.to_feather(tmp_path / "shop.feather")
    arrow = pyarrow.Table.from_pandas(frame)
    for kind, writer in (("arrow", pyarrow.ipc.new_file), ("stream.arrow", pyarrow.ipc.new_stream)):
        with writer(tmp_path / f"shop.{kind}", arrow.schema) as file:
            file.write_table(arrow)
    sources = [
        {"price": price, "jobs": jobs},
        frame,
        polars.from_pandas(frame),
        arrow,
        *(tmp_path / f"shop.{kind}" for kind in ("npz", "csv", "tsv", "parquet", "feather", "arrow", "stream.arrow")),
    ]
    for source in sources:
        data = load_data(problem, source)
        np.testing.assert_array_equal(data.array("price"), price)
        np.testing.assert_array_equal(data.array("jobs"), jobs)


def test_numbers_and_lists_of_a_table_are_read_without_pandas(tmp_path: Path) -> None:
    """Which PyArrow loads for its own way to arrays, and an installation may have."""
    pytest.importorskip("pandas")
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    price = pyarrow.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], pyarrow.list_(pyarrow.float64(), 3))
    parquet.write_table(pyarrow.table({"price": price, "jobs": [3, 4]}), tmp_path / "shop.parquet")
    code = f"""
import sys
from pathlib import Path
from oco.evaluation.tables import read_table
columns = read_table(Path({str(tmp_path / "shop.parquet")!r})).arrays
print({{name: column.tolist() for name, column in columns.items()}}, "pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    expected = {"price": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "jobs": [3, 4]}
    assert done.stdout.split("\n")[0] == f"{expected} False", done.stderr


def test_a_plain_array_fills_the_only_stream(problem: Canonical, tmp_path: Path) -> None:
    price = np.random.default_rng(1).uniform(0, 10, (5, 3))
    np.save(tmp_path / "price.npy", price)
    np.testing.assert_array_equal(load_data(problem, tmp_path / "price.npy").array("price"), price)


def test_an_iterator_gives_round_by_round(problem: Canonical) -> None:
    rounds = list(from_rounds(problem, ({"price": [1.0, 2.0, k]} for k in range(3)), seed=4))
    assert [r["price"][2] for r in rounds] == [0.0, 1.0, 2.0]
    again = list(from_rounds(problem, ({"price": [1.0, 2.0, k]} for k in range(3)), seed=4))
    assert [r["jobs"] for r in rounds] == [r["jobs"] for r in again]


# ---- draws


def test_what_the_data_lacks_is_drawn_and_said(problem: Canonical) -> None:
    data = load_data(problem, {"price": np.ones((300, 3))}, seed=1)
    jobs = data.array("jobs")
    assert data.rounds == 300 and any("jobs" in note and "drawn" in note for note in data.notes)
    assert jobs.min() >= 0 and jobs.max() <= 20 and abs(jobs.mean() - 5) < 4 * np.sqrt(5 / 300)
    np.testing.assert_array_equal(jobs, load_data(problem, {"price": np.ones((300, 3))}, seed=1).array("jobs"))
    assert np.any(jobs != load_data(problem, {"price": np.ones((300, 3))}, seed=2).array("jobs"))


def test_draws_do_not_depend_on_the_parts_they_are_read_in() -> None:
    text = "model m\nhorizon T = 70\ndecision x[6000] in box(0, 1)\nstream a[6000] ~ normal(0, 1) in [-1, 1]\nstream b ~ uniform(0, 1)\n"
    data = load_data(canonical(parse(text + "minimize a @ x + b * sum(x)\n")), seed=3)
    whole = data.read(0, 70)
    for name in ("a", "b"):
        parts = np.concatenate([data.read(s, s + 7)[name] for s in range(0, 70, 7)])
        np.testing.assert_array_equal(parts, whole[name])
        np.testing.assert_array_equal(np.stack([r[name] for r in data]), whole[name])
    assert whole["a"].shape == (70, 6000) and abs(whole["a"]).max() <= 1
    assert abs(np.corrcoef(whole["a"][0], whole["a"][21])[0, 1]) < 0.06  # another block: another seed


def test_stored_draws_are_those_that_are_drawn_again() -> None:
    """In whatever order they are read, by copies of the data too; a block is drawn once, and not where all take too much."""
    text = "model m\nhorizon T = 70\ndecision x[6000] in box(0, 1)\nstream a[6000] ~ normal(0, 1) in [-1, 1]\n"
    data = load_data(canonical(parse(text + "stream k in 0..9 ~ poisson(3)\nminimize a @ x + k * sum(x)\n")), seed=3)
    stored, whole = data.storing(data.nbytes), data.read(0, 70)
    for start, stop in ((65, 70), (3, 5), (0, 70), (20, 50)):
        for own in (stored, replace(stored), stored.first(stop)):
            for name, values in own.read(start, stop).items():
                np.testing.assert_array_equal(values, whole[name][start:stop])
                assert values.dtype == whole[name].dtype and not values.flags.writeable
    np.testing.assert_array_equal(stored.after(30).read(0, 9)["a"], whole["a"][30:39])
    np.testing.assert_array_equal(replace(stored, seed=4).array("a"), replace(data, seed=4).array("a"))
    again, other = stored.array("a"), replace(stored).array("a")
    assert np.shares_memory(again, other)
    assert data.storing(data.nbytes - 1) is data


def test_the_rounds_after_some_are_those_of_the_whole(problem: Canonical) -> None:
    """Given and drawn ones; and what comes first of what comes after."""
    data = load_data(problem, {"price": np.random.default_rng(0).uniform(0, 10, (50, 3))}, seed=3)
    later, middle = data.after(20), data.after(20).first(7).after(2)
    assert (later.rounds, middle.rounds) == (30, 5)
    for name in ("price", "jobs"):
        np.testing.assert_array_equal(later.array(name), data.array(name)[20:])
        np.testing.assert_array_equal(middle.array(name), data.array(name)[22:27])


def test_data_far_within_their_bounds_are_told(problem: Canonical) -> None:
    """For settings are made for the bounds; not of few rounds, and not where the bounds are little wider."""
    rng = np.random.default_rng(0)
    (said,) = describe(parse(MODEL), {"price": rng.uniform(2, 4, (100, 3))}).notes[1:]
    assert said.startswith("`price` lies in [2.0") and "the model allows [0, 10]" in said
    for low, high, rounds in ((2, 4, 20), (2, 7, 100)):
        assert len(describe(parse(MODEL), {"price": rng.uniform(low, high, (rounds, 3))}).notes) == 1


def test_streams_without_a_law_cannot_be_drawn(problem: Canonical) -> None:
    assert codes(problem, None) == ["OCO825"]
    unknown = canonical(
        parse("model m\nhorizon T = 3\ndecision x in box(0, 1)\nstream c in [0, 1] iid\nminimize c * x\n")
    )
    assert "distribution is not stated" in message(unknown, None)


@pytest.mark.parametrize(
    ("bounds", "distribution"),
    [
        ("in [-1000, 3000]", "uniform(-1000, 3000)"),
        ("in [0, 2 * k] iid", "uniform(0, 2 * k)"),
        ("in [0, 9] iid mean = 4.5", "uniform(0, 9)"),
        ("in [[1, 2], [3, 5]]", "uniform([1, 2], [3, 5])"),
        ("in 0..1", "bernoulli(0.5)"),
        ("in 0..k", "categorical(ones(5) / 5)"),
        ("in 2..4 iid", "categorical(ones(5) / 5)"),
        ("in 1000..9000", "poisson(5000)"),
        ("iid", "normal(0, 1)"),
        ("in [1, 1]", ""),
        ("in -3..3", ""),
    ],
)
def test_the_distribution_that_is_proposed_fits_the_declaration(bounds: str, distribution: str) -> None:
    """What the hint says is written into the model, and the stream can be drawn, within its bounds."""
    text = f"model m\nhorizon T = 3\nparam k = 4\ndecision x[2] in box(0, 1)\nstream c[2] {bounds}\nminimize c @ x\n"
    asked = canonical(parse(text))
    with pytest.raises(OcoError) as caught:
        load_data(asked, None)
    hint = caught.value.errors[0].hint
    if not distribution:
        assert "a distribution" not in hint
        return
    proposed = hint.split("or a distribution: ")[1]
    assert proposed.endswith(f" ~ {distribution}")
    drawable = canonical(parse(text.replace(f"stream c[2] {bounds}", proposed)))
    drawn = load_data(drawable, None, rounds=500).array("c")
    before = asked.streams[0]
    assert ((before.lower <= drawn) & (drawn <= before.upper)).all() and len(np.unique(drawn)) > 1
    assert not before.integer or (drawn == np.rint(drawn)).all()


def test_a_block_is_drawn_once_when_rounds_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the parts, the numbers are those of all rounds at once; nobody can change them for the next reader."""
    problem = canonical(
        parse("model m\nhorizon T = 9\ndecision x in box(0, 1)\nstream c ~ uniform(0, 1)\nminimize c * x\n")
    )
    monkeypatch.setattr("oco.evaluation.draws.BLOCK_ENTRIES", 4)
    whole = load_data(problem, None).array("c").copy()
    sampled: list[int] = []
    sample = TruncatedDistribution.sample

    def counted(distribution: TruncatedDistribution, rng: np.random.Generator, rounds: int) -> Any:
        sampled.append(rounds)
        return sample(distribution, rng, rounds)

    monkeypatch.setattr(TruncatedDistribution, "sample", counted)
    data = load_data(problem, None)
    parts = [data.read(t, t + 1)["c"] for t in range(9)]
    assert np.array_equal(np.concatenate(parts), whole)
    assert sampled == [4, 4, 4]
    with pytest.raises(ValueError, match="read-only"):
        parts[0][0] = 7.0


def test_an_unknown_horizon_needs_a_number_of_rounds() -> None:
    problem = canonical(
        parse("model m\nhorizon T unknown\ndecision x in box(0, 1)\nstream c ~ uniform(0, 1)\nminimize c * x\n")
    )
    assert codes(problem, None) == ["OCO826"]
    assert load_data(problem, None, rounds=5).rounds == 5


def test_an_empty_line_of_a_single_column_is_a_round_without_a_value(tmp_path: Path) -> None:
    """Rounds after a gap stay where they are, as a season by the round needs; empty lines at the end are none."""
    problem = canonical(parse("model m\nhorizon T = 6\ndecision x in box(0, 1)\nstream p in [0, 9]\nminimize p * x\n"))
    path = tmp_path / "p.csv"
    path.write_text("p\n1\n\n3\n\n\n6\n\n\n")
    assert load_data(problem, path, on_missing="hold").array("p").tolist() == [1, 1, 3, 3, 3, 6]
    with pytest.raises(OcoError) as refused:
        load_data(problem, path)
    assert refused.value.code == "OCO827" and "line 3" in str(refused.value)
    path.write_text("p;q\n1;0\n\n3;0\n")
    assert load_data(problem, path).array("p").tolist() == [1, 3]
