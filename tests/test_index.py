"""Names of entries: the statement `index`, data by name in any order, and names in what is shown."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr

import oco
from oco.compiler.problem.canonical import canonical
from oco.dsl.diagnostics import OcoError
from oco.dsl.text.formatter import format_text
from oco.evaluation.data import Data, load_data
from oco.evaluation.rounds_file import write_rounds

TEXT = """\
model zones

horizon T = 40

index zone = [NYC, WEST, "MHK VL"]
param w[zone] = [1, 2, 3]

decision x[zone] in box(0, 1)

stream price[zone] in [-1, 1]
stream load in [0, 9]

minimize price @ x + load * sum(x) + 0.1 * x[2]

subject to
    cap: x - 0.5 * price <= 0.5  each round
    tot: w @ x <= zone / 2       on average
"""
NAMES, ORDER = ["MHK VL", "NYC", "WEST"], [2, 0, 1]
OWN = ["NYC", "WEST", "MHK VL"]
"""Names in another order than that of the index, and their places in it."""
TIMES = pd.date_range("2024-03-01", periods=40, freq="h")
RNG = np.random.default_rng(7)
PRICE, LOAD = RNG.uniform(-1, 1, (40, 3)), RNG.uniform(0, 9, 40)
BACKENDS = ("numpy", "c")


def loaded(source: Any, **options: Any) -> Data:
    return load_data(canonical(oco.parse(TEXT)), source, **options)


def code_of(call: Any, *args: Any, **options: Any) -> OcoError:
    with pytest.raises(OcoError) as caught:
        call(*args, **options)
    return caught.value


def long_frame() -> pd.DataFrame:
    stamps = np.repeat(TIMES.strftime("%m/%d/%Y %H:%M"), 3)
    rows = {"stamp time": stamps, "zone": NAMES * 40, "price": PRICE[:, ORDER].ravel(), "load": np.repeat(LOAD, 3)}
    return pd.DataFrame(rows).sample(frac=1, random_state=1).sort_values("stamp time", kind="stable")


def test_text_and_builder_say_the_same() -> None:
    model = oco.parse(TEXT)
    assert model.to_oco() == TEXT
    m = oco.Model("zones", horizon=40)
    zone = m.index("zone", ["NYC", "WEST", "MHK VL"])
    w = m.param("w", zone, pd.Series({"WEST": 2, "MHK VL": 3, "NYC": 1}))
    x = m.decision("x", zone, domain=oco.box(0, 1))
    price, load = m.stream("price", zone, bounds=(-1, 1)), m.stream("load", bounds=(0, 9))
    m.minimize(price @ x + load * oco.sum(x) + 0.1 * x["MHK VL"])
    m.subject_to(x - 0.5 * price <= 0.5, "cap", each_round=True)
    m.subject_to(w @ x <= zone / 2, "tot")
    assert m.build() == model
    by_name = TEXT.replace("x[2]", 'x["MHK VL"]').replace("load * sum(x)", "load * sum(x) + 0 * x[NYC]")
    assert format_text(by_name) == by_name
    assert oco.parse(by_name.replace(" + 0 * x[NYC]", "")) == model
    assert r"\mathrm{zone}" in model._repr_latex_()
    assert "<b>index</b>" in model._repr_html_()


def test_names_are_given_at_compile_time() -> None:
    text = TEXT.replace(' = [NYC, WEST, "MHK VL"]', "").replace("[1, 2, 3]", "[1, 2]").replace("0.1 * x[2]", "x[0]")
    model = oco.parse(text, {"zone": ["A", "B"]})
    assert model.axes("x")[0].names == ("A", "B")
    assert oco.parse(model.to_oco()) == model
    assert code_of(oco.parse, text, {"zone": 2}).code == "OCO218"


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("index zone = [NYC, NYC]", "OCO218", "twice"),
        ('index zone = [NYC, ""]', "OCO218", "cannot be a name"),
        ("index zone = 3", "OCO218", "list of names"),
        ("index zone = [NYC, 2.5]", "OCO218", "no name"),
        ("index zone = [WEST, EAST, SOUTH]\nlet first = ones(zone)[NYC]", "OCO327", "`NYC`"),
    ],
)
def test_mistakes_have_codes(line: str, code: str, words: str) -> None:
    error = code_of(oco.parse, TEXT.replace('index zone = [NYC, WEST, "MHK VL"]', line))
    assert [(d.code, words in d.message) for d in error.diagnostics] == [(code, True)]


def test_params_come_by_name(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text('name,weight,size\nWEST,2,20\n"MHK VL",3,30\nNYC,1,10\n')
    (tmp_path / "pairs.csv").write_text('zone,WEST,NYC,"MHK VL"\nNYC,2,1,3\n"MHK VL",8,7,9\nWEST,5,4,6\n')
    text = TEXT.replace("[1, 2, 3]", 'file("zones.csv", column = "weight")')
    text = text.replace("\ndecision", '\nparam A[zone, zone] = file("pairs.csv")\n\ndecision', 1)
    values = {p.name: p.data for p in oco.parse(text, folder=tmp_path).params}
    assert values["w"].tolist() == [1, 2, 3] and values["A"].tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    of_file = text.replace('[NYC, WEST, "MHK VL"]', 'file("zones.csv", column = "name")')
    model = oco.parse(of_file, folder=tmp_path)
    assert model.axes("x")[0].names == ("WEST", "MHK VL", "NYC")
    assert next(p.data for p in model.params if p.name == "w").tolist() == [2, 3, 1]
    assert oco.parse(model.to_oco(), folder=tmp_path) == model
    (tmp_path / "zones.csv").write_text("name,weight\nWEST,2\nEAST,3\nNYC,1\n")
    error = code_of(oco.parse, text, folder=tmp_path)
    assert error.code == "OCO808" and "MHK VL" in error.message and "EAST" in error.message
    frame = pd.DataFrame({"weight": [2.0, 3, 1]}, index=["WEST", "MHK VL", "NYC"])["weight"]
    assert oco.parse(TEXT, {"w": frame}) == oco.parse(TEXT, {"w": [1.0, 2, 3]}) == oco.parse(TEXT, {"w": dict(frame)})


def test_data_map_by_name_in_any_order(tmp_path: Path) -> None:
    shuffled = PRICE[:, ORDER]
    wide = pd.DataFrame(shuffled, columns=[f"price[{n}]" for n in NAMES], index=TIMES).assign(load=LOAD)
    bare = pd.DataFrame(shuffled, columns=NAMES, index=TIMES)
    labelled = xr.DataArray(shuffled.T, dims=("zone", "time"), coords={"zone": NAMES, "time": TIMES})
    long = long_frame()
    long.to_csv(tmp_path / "long.csv", index=False)
    renamed = long.rename(columns={"zone": "Name", "price": "LBMP"})
    wide.reset_index(names="time").to_parquet(tmp_path / "wide.parquet")
    sources: list[tuple[Any, dict[str, Any]]] = [
        (wide, {}),
        (wide.rename(columns=lambda c: c.replace("[", ".").replace("]", "")), {}),
        (wide.rename(columns=lambda c: c.replace("[", "_").replace("]", "")), {}),
        (bare.assign(load=LOAD), {}),
        ({"price": bare, "load": LOAD}, {}),
        (xr.Dataset({"price": labelled, "load": ("time", LOAD)}), {}),
        (long, {}),
        (renamed, {"mapping": {"zone": "Name", "price": "LBMP"}}),
        (tmp_path / "long.csv", {}),
        (tmp_path / "wide.parquet", {}),
    ]
    for source, options in sources:
        data = loaded(source, **options)
        assert np.array_equal(data.array("price"), PRICE) and np.array_equal(data.array("load"), LOAD)
        assert data.times is not None and np.array_equal(data.times, TIMES.to_numpy().astype("datetime64[s]"))
    without = loaded(pl.DataFrame(long.drop(columns="stamp time").to_dict("list")))
    assert np.array_equal(without.array("price"), PRICE) and without.times is None
    by_number = pd.DataFrame(PRICE, columns=[f"price[{k}]" for k in range(3)]).assign(load=LOAD)
    assert np.array_equal(loaded(by_number).array("price"), PRICE)


def test_missing_and_unknown_names_are_listed() -> None:
    wide = pd.DataFrame(PRICE, columns=["price[NYC]", "price[WST]", "price[MHK VL]"]).assign(load=LOAD)
    long = long_frame()
    cases = [
        (wide, "OCO835", ("price[WEST]", "price[WST]")),
        (long.replace("NYC", "NYCC"), "OCO835", ("NYC", "NYCC")),
        (pd.concat([long, long.iloc[:1]]), "OCO835", ("second row",)),
        (long.iloc[1:], "OCO827", ("missing",)),
        (long.assign(load=np.arange(120) % 7), "OCO835", ("one number a round",)),
    ]
    for source, code, words in cases:
        error = code_of(loaded, source)
        assert error.code == code and all(w in error.message for w in words), error.message


@pytest.mark.parametrize("backend", BACKENDS)
def test_learners_speak_names(backend: str) -> None:
    plan = oco.compile(oco.parse(TEXT))
    one, other = plan.learner(backend=backend), plan.learner(backend=backend)
    for price, load in zip(PRICE[:10], LOAD):
        x, y = one.decide(), other.decide()
        assert x["MHK VL"] == y[2] == x[2] and type(x + 1) is type(x.array) is np.ndarray
        forms = (dict(zip(NAMES, price[ORDER])), pd.Series(price[ORDER], NAMES))
        first = one.observe(price=forms[one.round % 2], load=load)
        second = other.observe(price=price, load=load)
        assert np.array_equal(first.constraints, second.constraints)
    assert one.state()["state"] == other.state()["state"] if "state" in one.state() else True
    assert code_of(one.observe, price={"NYC": 1.0, "WEST": 0.0, "MHKVL": 0.0}, load=1).code == "OCO861"
    assert code_of(lambda: x["EAST"]).code == "OCO327"


def test_traces_speak_names_and_times(tmp_path: Path) -> None:
    wide = pd.DataFrame(PRICE, columns=["NYC", "WEST", "MHK VL"], index=TIMES).assign(load=LOAD)
    trace = oco.compile(oco.parse(TEXT)).run(wide)
    assert trace.labels == ("cap[NYC]", "cap[WEST]", "cap[MHK VL]", "tot")
    dataset = trace.to_dataset()
    assert dataset["decision.x"].dims == ("kept", "zone")
    assert list(dataset["zone"].to_numpy()) == ["NYC", "WEST", "MHK VL"]
    assert "x[MHK VL]" in trace.to_dataframe()
    trace.save(tmp_path / "trace.nc")
    again = oco.load_trace(tmp_path / "trace.nc")
    assert again.labels == trace.labels
    assert np.array_equal(again.data.times, TIMES.to_numpy().astype("datetime64[s]"))
    page = trace.plot()
    page.canvas.draw()
    decisions = next(ax for ax in page.axes if ax.get_title(loc="left").startswith("decision"))
    assert any("x[" in text and "]" in text for text in decisions.get_legend_handles_labels()[1])
    assert any(label.get_text().startswith("2024-03-0") for label in decisions.get_xticklabels())


@pytest.mark.parametrize("backend", BACKENDS)
def test_fleets_speak_names(backend: str) -> None:
    plan = oco.compile(oco.parse(TEXT))
    one, other = plan.fleet(2, backend=backend), plan.fleet(2, backend=backend)
    for price, load in zip(PRICE[:5], LOAD):
        x, y = one.decide(), other.decide()
        np.testing.assert_array_equal(x[:, "MHK VL"], y.array[:, 2])
        each = np.stack([price, 0.5 * price])
        by_name = {name: each[:, k] for k, name in enumerate(OWN)}
        first = one.observe(price=dict(reversed(by_name.items())), load=np.full(2, load))
        second = other.observe(price=each, load=np.full(2, load))
        np.testing.assert_array_equal(first.constraints, second.constraints)
    wrong = {"NYC": np.zeros(2), "WEST": np.zeros(2), "MHKVL": np.zeros(2)}
    error = code_of(one.observe, price=wrong, load=np.ones(2))
    assert error.code == "OCO861" and "MHK VL" in error.message and "MHKVL" in error.message


def test_emitted_modules_speak_names() -> None:
    plan = oco.compile(oco.parse(TEXT))
    space: dict[str, Any] = {"__name__": "zones"}
    exec(compile(plan.source("numpy"), "zones.py", "exec"), space)
    assert space["NAMES"]["x"] == (("NYC", "WEST", "MHK VL"),)
    one, other = space["Learner"](), space["Learner"]()
    for price, load in zip(PRICE[:5], LOAD):
        np.testing.assert_array_equal(one.decide(), other.decide())
        first = one.observe(price=dict(reversed(list(zip(OWN, price)))), load=load)
        np.testing.assert_array_equal(first.constraints, other.observe(price=price, load=load).constraints)
    with pytest.raises(ValueError, match="without MHK VL and with MHKVL"):
        one.observe(price={"NYC": 1.0, "WEST": 0.0, "MHKVL": 0.0}, load=1)


def test_emitted_modules_read_columns_by_name(tmp_path: Path) -> None:
    """Names that are numbers are no places: `rate[1]` is the entry called 1, wherever it stands."""
    model = oco.parse(
        "model m\nhorizon T = 9\nindex line = [1, 0, 7]\ndecision x[line] in box(0, 1)\n"
        "stream rate[line] in [0, 9]\nminimize rate @ x\n"
    )
    rounds_of = runpy.run_path(str(oco.compile(model).write(tmp_path / "m.py")[0]))["rounds_of"]
    data, path = load_data(canonical(model), {"rate": np.array([[1.0, 2.0, 3.0]])}), tmp_path / "data.csv"
    write_rounds(data, path)
    assert load_data(canonical(model), path).array("rate").tolist() == [[1, 2, 3]]
    texts = [
        path.read_text(),
        *(f"{head}\n3,1,2\n" for head in ("rate[7],rate[1],rate[0]", "rate.7,rate_1,rate.0", "7,1,0")),
    ]
    for text in texts:
        path.write_text(text)
        (row,) = rounds_of(str(path))
        assert row["rate"].tolist() == [1, 2, 3]
    path.write_text("rate[0],rate[1],rate[2]\n1,2,3\n")
    with pytest.raises(ValueError, match="rate has no column for 7"):
        next(rounds_of(str(path)))
