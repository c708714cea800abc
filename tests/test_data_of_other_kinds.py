"""Data in forms that people have and the other tests do not: read as it is meant, or refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import oco
from oco.compiler.canonical import canonical
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
