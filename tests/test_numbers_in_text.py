"""Numbers in text are plain decimal ones in ASCII, wherever text is read; what else Python takes for a number is a text."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oco
from oco.dsl.diagnostics import OcoError
from oco.dsl.load import parse
from oco.dsl.readers.decimals import decimal, decimals
from oco.evaluation.data import load_data

NUMBERS = {"1": 1, "-0.5": -0.5, "+2.5e-3": 0.0025, ".5": 0.5, "7.": 7, "1E3": 1000, " 4 ": 4, "00012": 12, "\t3": 3}
NO_NUMBERS = [
    "1_0",
    "1_000.5",
    "1e1_0",
    "１０",
    "1٣",
    "٣",
    "𝟙",
    "0x10",
    "1 0",
    "1,5",
    "e3",
    "--1",
    "1e",
    "½",
    "1" * 600,
    "_1",
]
MODEL = "model m\nhorizon T = 4\ndecision x in box(0, 1)\nstream s in [0, 1000]\nminimize s * x\n"


@pytest.mark.parametrize("text", NUMBERS)
def test_plain_numbers(text: str) -> None:
    found = decimals([text, "1"])
    assert decimal(text) == NUMBERS[text] and found is not None and found.tolist() == [NUMBERS[text], 1]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_else_python_takes_for_a_number_is_none(text: str) -> None:
    assert decimal(text) is None and decimals(["1", text]) is None


def quoted(text: str) -> str:
    return f'"{text}"'


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_fixed_data_with_it_is_an_error_that_names_the_cell(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"1,2\n3,{quoted(text)}\n", encoding="utf-8")
    with pytest.raises(OcoError) as caught:
        parse(f'{MODEL}param a[2, 2] = file("a.csv")\n', folder=tmp_path)
    assert caught.value.code == "OCO804" and "row 2, column 2" in str(caught.value)


def columns(text: str, tmp_path: Path) -> dict[str, Any]:
    """Sources of rounds whose third is this text."""
    cells = ["1", "2", text]
    (tmp_path / "s.csv").write_text("s,other\n" + "".join(f"{quoted(c)},0\n" for c in cells), encoding="utf-8")
    np.savez(tmp_path / "s.npz", s=np.array(cells))
    found: dict[str, Any] = {"csv": tmp_path / "s.csv", "npz": tmp_path / "s.npz", "objects": {"s": cells}}
    found["array"] = {"s": np.array(cells)}
    try:
        import pyarrow
        from pyarrow import feather, parquet
    except ImportError:
        return found
    table = pyarrow.table({"s": cells})
    parquet.write_table(table, tmp_path / "s.parquet")
    feather.write_feather(table, tmp_path / "s.arrow")
    return found | {"parquet": tmp_path / "s.parquet", "arrow": tmp_path / "s.arrow", "table": table}


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_rounds_with_it_are_an_error_that_names_the_cell(text: str, tmp_path: Path) -> None:
    plan = oco.compile(oco.parse(MODEL))
    for kind, source in columns(text, tmp_path).items():
        with pytest.raises(OcoError) as caught:
            load_data(plan.canonical, source)
        assert caught.value.code == "OCO828", (kind, caught.value)
        assert any(place in str(caught.value) for place in ("line 4", "row 3", "round 3")), kind


def test_texts_of_plain_numbers_are_numbers_in_every_kind_of_source(tmp_path: Path) -> None:
    plan = oco.compile(oco.parse(MODEL))
    for source in columns("2.5e2", tmp_path).values():
        assert load_data(plan.canonical, source).array("s").tolist() == [1, 2, 250]


def test_an_emitted_module_reads_them_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "emitted.py"
    oco.compile(oco.parse(MODEL)).write(path, "numpy")
    spec = importlib.util.spec_from_file_location("emitted", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for text in (t for t in NO_NUMBERS if len(t) < 512):
        (tmp_path / "s.csv").write_text(f"s\n1\n{quoted(text)}\n", encoding="utf-8")
        assert module.main([str(tmp_path / "s.csv")]) == 1
        assert "line 3" in capsys.readouterr().err
    (tmp_path / "s.csv").write_text("s\n1\n2.5e2\n", encoding="utf-8")
    assert module.main([str(tmp_path / "s.csv")]) == 0
