"""Data that do not fit a model: errors that name file, row, column, stream and rule, and values that are missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_data import HEADER, MODEL, codes, message, table

import oco
from oco.compiler.problem.canonical import Canonical, canonical
from oco.dsl.diagnostics import OcoError
from oco.dsl.load import parse
from oco.evaluation import check
from oco.evaluation.data import describe, load_data


@pytest.fixture(scope="module")
def problem() -> Canonical:
    return canonical(parse(MODEL))


GOOD = "1,2,3,4\n"


@pytest.mark.parametrize(
    ("rows", "code", "words"),
    [
        ("1,2,,4\n", "OCO827", ("line 3", "`price[2]`", "missing")),
        ("1,nan,3,4\n", "OCO827", ("line 3", "`price[1]`", "missing")),
        ("1,inf,3,4\n", "OCO827", ("line 3", "infinite")),
        ("1,2,cheap,4\n", "OCO828", ("line 3", "`cheap`", "`price[2]`")),
        ("1,2,3,4.5\n", "OCO829", ("line 3", "`jobs`", "4.5")),
        ("1,2,11,4\n", "OCO830", ("line 3", "`price[2]`", "11", "[0, 10]")),
        ("1,2,3,21\n", "OCO830", ("line 3", "`jobs`", "[0, 20]")),
        ("1,2,3\n", "OCO821", ("line 3", "3 cells")),
    ],
)
def test_a_wrong_cell_is_named(rows: str, code: str, words: tuple[str, ...]) -> None:
    problem = canonical(parse(MODEL.replace("~ poisson(5) in [0, 20]", "in 0..20")))
    with pytest.raises(OcoError) as caught:
        load_data(problem, table(HEADER + GOOD + rows + GOOD))
    assert [e.code for e in caught.value.errors] == [code]
    for word in ("shop.csv", *words):
        assert word in str(caught.value)


def test_a_rule_that_many_values_break_is_one_finding(problem: Canonical) -> None:
    rows = "".join(f"{11 + k},2,{'' if k % 2 else 'cheap'},{-k}\n" for k in range(30))
    report = describe(problem.model, table(HEADER + GOOD + rows))
    found = {(d.code, d.message.split("stream ")[1].split()[0]): f for d, f in zip(report.problems, report.findings)}
    counts = {key: f.count for key, f in found.items()}
    rules = {("OCO828", "`price`"): 15, ("OCO827", "`price`"): 15, ("OCO830", "`price`"): 30, ("OCO830", "`jobs`"): 29}
    assert counts == rules
    outside = found["OCO830", "`price`"].diagnostic
    assert "30 values" in outside.message and "the least is 11, the greatest 40" in outside.message
    assert "line 3, column `price[0]`: `price[0]` is 11, outside [0, 10]; line 4" in outside.note
    assert outside.note.endswith("and 27 more")
    assert "the least is -29, the greatest -1" in found["OCO830", "`jobs`"].diagnostic.message


def test_every_place_of_a_finding_is_in_the_report(problem: Canonical, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "BLOCK", 12)  # four rounds of prices together
    prices = np.ones((50, 3))
    prices[7:40, 1], prices[3::10, 2], prices[4] = 11.5, np.nan, np.inf
    told = describe(problem.model, {"price": prices}).to_json()["problems"]
    placed = [{(int(p["at"].split()[-1]), p["entry"], p["value"]) for p in f["places"]} for f in told]
    assert [f["count"] for f in told] == [len(p) for p in placed] == [5, 3, 33]
    assert placed[0] == {(t + 1, "price[2]", "nan") for t in range(3, 50, 10)}
    assert placed[1] == {(5, f"price[{k}]", "inf") for k in range(3)}
    assert placed[2] == {(t + 1, "price[1]", 11.5) for t in range(7, 40)}


def test_the_number_of_columns_must_fit(problem: Canonical) -> None:
    assert codes(problem, table("price.a,price.b,jobs\n1,2,3\n")) == ["OCO823"]
    assert codes(problem, {"price": np.ones((4, 2))}) == ["OCO823"]
    said = message(problem, {"price": np.ones((4, 2))})
    assert "shape (rounds, 3)" in said and "--map" not in said, "an array is not a matter of columns"
    assert codes(problem, {"price": np.ones((4, 3)), "jobs": np.ones(3)}) == ["OCO826"]
    assert "has no rounds" in message(problem, table("price.a,price.b,price.c,jobs\n"))


def test_what_cannot_be_found_is_named_with_the_nearest(problem: Canonical) -> None:
    assert codes(problem, table("cost.a,cost.b,cost.c,jobs\n1,2,3,4\n")) == ["OCO822"]
    likely = message(problem, table("price0,price1,price2,jobs\n1,2,3,4\n"))
    assert '--map price=price0,price1,price2, in Python mapping={"price": ["price0", "price1", "price2"]}' in likely
    assert "--map price=COLUMNS" in message(problem, table("price0,price1,jobs\n1,2,4\n"))
    assert codes(problem, table(HEADER + GOOD), mapping={"prices": "a"}) == ["OCO824"]
    assert "did you mean `price[0]`?" in message(
        problem, table(HEADER + GOOD), mapping={"price": ["price0", "jobs", "jobs"]}
    )
    assert codes(problem, 17) == ["OCO820"]
    assert codes(problem, "nowhere.csv") == ["OCO820"]


@pytest.mark.parametrize("text", ["", "a,a\n1,2\n"])
def test_tables_without_rows_or_with_a_name_twice(text: str) -> None:
    with pytest.raises(OcoError):
        table(text)


def test_missing_values_can_be_held_or_skipped(problem: Canonical) -> None:
    source = table(HEADER + "1,2,3,4\n5,,6,7\n8,9,9,1\n")
    np.testing.assert_array_equal(load_data(problem, source, on_missing="hold").array("price")[:, 1], [2, 2, 9])
    skipped = load_data(problem, source, on_missing="skip")
    np.testing.assert_array_equal(skipped.array("price"), [[1, 2, 3], [8, 9, 9]])
    arrays = {"price": np.array([[1, 2, 3], [5, np.nan, 6], [8, 9, np.nan]]), "jobs": np.array([4.0, 7, 1])}
    held = load_data(problem, arrays, on_missing="hold").array("price")
    np.testing.assert_array_equal(held, [[1, 2, 3], [5, 2, 6], [8, 9, 6]])
    assert codes(problem, table(HEADER + ",2,3,4\n1,2,3,4\n"), on_missing="hold") == ["OCO827"]
    assert "line 4" in message(problem, table(HEADER + "1,,3,4\n1,2,3,4\n1,2,30,4\n"), on_missing="skip")


def test_values_that_are_missing_where_nobody_reads_them_count_for_nothing(problem: Canonical) -> None:
    header = "remark," + HEADER
    source = table(header + ",1,2,3,4\n,5,,6,7\nx,8,9,9,1\n")
    skipped, held = (load_data(problem, source, on_missing=how) for how in ("skip", "hold"))
    np.testing.assert_array_equal(skipped.array("price"), [[1, 2, 3], [8, 9, 9]])
    np.testing.assert_array_equal(held.array("price")[1], [5, 2, 6])
    assert "1 of 3 rounds left out, which lack values: line 3" in skipped.notes
    assert "missing values that hold the last one before: `price[1]` 1" in held.notes
    whole = load_data(problem, table(header + ",1,2,3,4\n"), on_missing="skip")
    assert whole.rounds == 1 and not any("missing" in note or "left out" in note for note in whole.notes)


def test_an_iterator_can_lack_values_too() -> None:
    plan = oco.compile(parse(MODEL))
    rounds = [{"price": np.array([1.0, 2.0, k]), "jobs": 3.0} for k in (3.0, np.nan, 5.0)]
    with pytest.raises(OcoError, match=r"round 2 of the data: price\[2\] is nan"):
        plan.run(iter(rounds))
    skipped, held = (plan.run(iter(rounds), on_missing=how) for how in ("skip", "hold"))
    np.testing.assert_array_equal(skipped.data.array("price")[:, 2], [3, 5])
    np.testing.assert_array_equal(held.data.array("price")[:, 2], [3, 3, 5])
    assert any("1 round left out" in note for note in skipped.notes)
    with pytest.raises(OcoError, match="no way to treat"):
        plan.run(iter(rounds), on_missing="drop")
    with pytest.raises(OcoError, match="integer"):
        plan.run(iter(rounds), 2.5)  # type: ignore[arg-type]


def test_fewer_rounds_can_be_taken_but_not_more(problem: Canonical) -> None:
    source = table(HEADER + GOOD * 5)
    assert load_data(problem, source, rounds=2).rounds == 2
    assert len(load_data(problem, source, rounds=2).array("price")) == 2
    assert codes(problem, source, rounds=6) == ["OCO826"]


def test_text_in_an_array_of_several_numbers_a_row_is_named_by_row_and_entry(problem: Canonical) -> None:
    price = np.array([["1", "2", "3"], ["1", "", "3"], ["1", "2", "cheap"]])
    said = message(problem, {"price": price})
    assert "`price[2]` is `cheap`" in said and "round 3" in said and "`price[1]` is missing" in said
    kept = load_data(problem, {"price": price[:2], "jobs": np.ones(2)}, on_missing="skip")
    np.testing.assert_array_equal(kept.array("price"), [[1, 2, 3]])
    assert "round 3" in message(problem, {"price": price}, on_missing="skip")
    assert codes(problem, {"price": np.full((4, 3), 1j)}) == ["OCO828"]
    assert load_data(problem, {"price": np.ones((2, 3)), "names": price[:2, :2]}).rounds == 2, "unused text is no error"


def test_text_may_be_separated_by_spaces() -> None:
    bare = table("1050 215  3\n1050 250 2.5\n")
    assert list(bare.arrays) == ["0", "1", "2"] and not bare.headed
    np.testing.assert_array_equal(bare.arrays["2"], [3, 2.5])
    headed = table("user item\n 1 2 \n\n3 4\n")
    assert list(headed.arrays) == ["user", "item"] and headed.where(1) == "line 4"
    assert list(table("two words\n1\n").arrays) == ["two words"]
    with pytest.raises(OcoError, match="line 3 has 1 cell"):
        table("a b\n1 2\n3\n")


def test_the_rounds_of_a_file_are_counted_where_nothing_fills_a_stream(problem: Canonical) -> None:
    assert describe(problem.model, table("a,b\n1,2\n3,4\n")).rounds == 2


def test_a_trace_keeps_which_rounds_were_drawn(problem: Canonical, tmp_path: Path) -> None:
    """Of a run that begins after some rounds of the data, as a tuned one does."""
    data = load_data(problem, {"price": np.random.default_rng(0).uniform(0, 10, (30, 3))}, seed=3).after(20)
    trace = oco.compile(parse(MODEL), "coldq").run(data)
    trace.save(tmp_path / "t.nc")
    np.testing.assert_array_equal(oco.load_trace(tmp_path / "t.nc").data.array("jobs"), data.array("jobs"))
