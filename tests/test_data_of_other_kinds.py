"""Data in forms that people have and the other tests do not: read as it is meant, or refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import oco
from oco.compiler.problem.canonical import canonical
from oco.dsl.load import parse
from oco.evaluation.data import load_data

MODEL = parse(
    "model m\nhorizon T = 3\ndecision x[2] in box(0, 1)\nstream price[2] in [-5, 5]\nstream k in 0..1\nminimize price @ x + x[k]\n"
)
GOOD: dict[str, Any] = {"price[0]": [1.0, 2.0, 3.0], "price[1]": [0.0, 1.0, 2.0], "k": [0, 1, 0]}


def refused(source: Any) -> oco.OcoError:
    with pytest.raises(oco.OcoError) as found:
        load_data(canonical(MODEL), source)
    return found.value


def test_a_lazy_frame_is_collected() -> None:
    data = load_data(canonical(MODEL), polars.LazyFrame(GOOD))
    np.testing.assert_array_equal(data.array("price"), [[1, 0], [2, 1], [3, 2]])


def test_an_array_fills_the_only_stream_and_a_structured_one_all() -> None:
    price = np.arange(6.0).reshape(3, 2) - 2
    alone = canonical(
        parse("model m\nhorizon T = 3\ndecision x[2] in box(0, 1)\nstream price[2] in [-5, 5]\nminimize price @ x\n")
    )
    np.testing.assert_array_equal(load_data(alone, price).array("price"), price)
    both = np.zeros(3, dtype=[("price", float, 2), ("k", int)])
    both["price"], both["k"] = price, [0, 1, 0]
    found = load_data(canonical(MODEL), both)
    np.testing.assert_array_equal(found.array("price"), price)
    np.testing.assert_array_equal(found.array("k"), [0, 1, 0])
    plan = oco.compile(MODEL)
    np.testing.assert_array_equal(plan.run(both).loss, plan.run({"price": price, "k": [0, 1, 0]}).loss)
    assert "the array is a single number" in str(refused(np.array(3.0)))


@pytest.mark.parametrize(("source", "code"), [(3, "OCO526"), (iter([]), "OCO526"), ("nowhere.csv", "OCO820")])
def test_pilot_rounds_of_no_kind_are_refused_where_they_are_not_needed(source: Any, code: str) -> None:
    for call in (oco.compile, oco.tune):
        with pytest.raises(oco.OcoError) as found:
            call(MODEL, data=source)
        assert found.value.code == code


def test_masked_entries_are_missing() -> None:
    price = np.ma.masked_equal(np.array([[1.0, 2.0], [3.0, 4.0], [3.0, 0.5]]), 4.0)
    error = refused({"price": price, "k": [0, 1, 0]})
    assert error.code == "OCO827" and "round 2" in str(error)


def test_one_number_in_an_archive_is_no_column(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", price=np.ones((3, 2)), k=np.int64(1))
    error = refused(tmp_path / "a.npz")
    assert error.code == "OCO821" and "`k` in a.npz is a single number" in str(error)


def test_rounds_of_different_lengths_are_named() -> None:
    error = refused({"price": [[1, 2], [3], [4, 5]], "k": [0, 1, 0]})
    assert error.code == "OCO821" and "round 2 of `price`" in str(error)


def test_two_columns_of_one_name_in_a_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(GOOD)
    frame.columns = ["price[0]", "price[0]", "k"]
    error = refused(frame)
    assert error.code == "OCO821" and "more than one column called `price[0]`" in str(error)


@pytest.mark.parametrize("wrong", [None, (1, 2), 3.0])
def test_an_iterator_gives_dicts(wrong: Any) -> None:
    rounds = [{"price": [1, 2], "k": 0}, wrong]
    with pytest.raises(oco.OcoError) as found:
        oco.compile(MODEL).run(iter(rounds))
    assert found.value.code == "OCO820" and "round 2 of the data is of type" in str(found.value)


def test_masked_values_of_an_iterator_are_refused() -> None:
    rounds = [{"price": np.ma.masked_equal([1.0, 2.0], 2.0), "k": 0}]
    with pytest.raises(oco.OcoError) as found:
        oco.compile(MODEL).run(iter(rounds))
    assert "masked" in str(found.value)


@pytest.mark.parametrize("columns", [("price[0]", "price[2]"), ("price[1]", "price[2]"), ("price[0,0]", "price[0,1]")])
def test_columns_with_other_numbers_than_the_entries_fill_nothing(columns: tuple[str, str]) -> None:
    """A column of an entry that the stream has not is no other entry; a mapping says that it is meant."""
    values = {columns[0]: [1.0, 2.0, 3.0], columns[1]: [0.0, 1.0, 2.0], "k": [0, 1, 0]}
    error = refused(values)
    assert error.code == "OCO823" and f"`{columns[1]}`" in str(error) and "--map 'price=" in error.hint
    found = load_data(canonical(MODEL), values, mapping={"price": columns})
    np.testing.assert_array_equal(found.array("price"), [[1, 0], [2, 1], [3, 2]])


def test_a_numbered_column_may_hold_a_row() -> None:
    """And what is wrong in it is named by its column."""
    text = "model m\nhorizon T = 3\ndecision x[2] in box(0, 1)\nstream a[2, 3] in [-5, 5]\nminimize sum_squares(a[:, 0] - x)\n"
    problem, rows = canonical(parse(text)), np.arange(18.0).reshape(2, 3, 3) / 9
    found = load_data(problem, {"a[1]": rows[1], "a[0]": rows[0]}).array("a")
    np.testing.assert_array_equal(found, rows.transpose(1, 0, 2))
    rows[1, 2, 1] = np.nan
    with pytest.raises(oco.OcoError) as caught:
        load_data(problem, {"a[1]": rows[1], "a[0]": rows[0]})
    assert "round 3, column `a[1]`: `a[1, 1]` is missing" in str(caught.value)


def test_lists_in_the_cells_of_a_frame_are_rows() -> None:
    pandas = pytest.importorskip("pandas")
    rows = {"price": [[1.0, 0.0], [2.0, 1.0], [3.0, 2.0]], "k": [0, 1, 0]}
    for frame in (polars.DataFrame(rows), pandas.DataFrame(rows)):
        np.testing.assert_array_equal(load_data(canonical(MODEL), frame).array("price"), rows["price"])
    error = refused(polars.DataFrame({**rows, "price": [[1.0, 0.0], [2.0], [3.0, 2.0]]}))
    assert error.code == "OCO821" and "round 2 of `price`" in str(error)


def test_columns_of_several_levels_have_one_name() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({("price", "a"): [1.0, 2.0], ("price", "b"): [0.0, 1.0], ("k", ""): [0, 1]})
    np.testing.assert_array_equal(load_data(canonical(MODEL), frame).array("price"), [[1, 0], [2, 1]])


@pytest.mark.parametrize("name", ["junk.npz", "junk.npy", "junk.parquet", "cut.npz", "cut.csv.gz", "latin.csv"])
def test_files_that_are_damaged_are_said_to_be(name: str, tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "whole.npz", price=np.random.default_rng(0).uniform(size=(300, 2)))
    whole = (tmp_path / "whole.npz").read_bytes()
    contents = {"cut.npz": whole[:900] + bytes(200) + whole[1100:], "latin.csv": b"pr\xe9is,k\n1,0\n"}
    (tmp_path / name).write_bytes(contents.get(name, b"\x1f\x8b\x08 this is no such file"))
    error = refused(tmp_path / name)
    assert error.code == "OCO820" and name in str(error) and "pickle" not in str(error)
    assert "UTF-8" in error.hint or name != "latin.csv"


def test_nothing_to_hold_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("price.A,price.B,k\n1,,0\nNA,4,1\n2,3,0\n")
    with pytest.raises(oco.OcoError) as caught:
        load_data(canonical(MODEL), tmp_path / "a.csv", on_missing="hold")
    assert "line 2, column `price.B`: `price[1]` is missing, and no value comes before it" in str(caught.value)
    assert "skip" in caught.value.hint and "hold" not in caught.value.hint


def test_rounds_of_an_iterator_go_by_the_names_of_streams() -> None:
    plan = oco.compile(MODEL)
    with pytest.raises(oco.OcoError) as caught:
        plan.run(iter([{"a": [1, 2], "k": 0}]), mapping={"price": "a"})
    assert caught.value.code == "OCO824" and "iterator" in str(caught.value)
    with pytest.raises(oco.OcoError) as caught:
        plan.run(iter([{"price[0]": 1, "price[1]": 2, "k": 0}]))
    assert "round 1 of the data (it has price[0], price[1]) has no values for stream `price`" in str(caught.value)


@pytest.mark.parametrize("rounds", [0, -1, 1.5, True])
def test_a_number_of_rounds_is_whole_and_positive(rounds: Any) -> None:
    with pytest.raises(oco.OcoError) as caught:
        oco.compile(MODEL).run(GOOD, rounds=rounds)
    assert caught.value.code == "OCO826"
