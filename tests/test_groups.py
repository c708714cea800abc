"""Sums over the axis of an index and by groups of entries: shapes, names, values, both ways of writing, and mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import oco
from oco.compiler.problem.canonical import canonical
from oco.dsl.bind import bind
from oco.dsl.diagnostics import OcoError
from oco.dsl.evaluate import evaluate
from oco.dsl.text.formatter import format_text

TEXT = """\
model grouped

horizon T = 30

index plant = [a, b, c]
index zone = [NYC, WEST]
param at[plant] in zone = [NYC, WEST, NYC]
param limit[zone] = [1.2, 0.6]

decision x[plant] in box(0, 1)
decision f[plant, zone] in box(0, 1)

stream price[zone] in [-1, 1]

minimize price @ sum(x, by = at) + sum_squares(sum(f, over = zone) - x)

subject to
    cap: sum(x, by = at) <= limit         each round
    out: max(f, over = plant) <= 0.9      each round
    both: sum(f, by = at) <= price + 1.5  each round
    even: 2 * mean(f.T, over = zone) <= 1
"""
WRITTEN = {
    "[NYC, WEST, NYC]": '["NYC", "WEST", "NYC"]',
    "sum(x, by = at)": "(x @ eye(zone)[at])",
    "sum(f, over = zone)": "sum(f, axis = 1)",
    "max(f, over = plant)": "max(f, axis = 0)",
    "sum(f, by = at)": "eye(zone)[at].T @ f",
    "mean(f.T, over = zone)": "mean(f.T, axis = 0)",
}
"""What each form is short for."""
RNG = np.random.default_rng(3)
X, F = RNG.uniform(size=3), RNG.uniform(size=(3, 2))


def code_of(call: Any, *args: Any, **options: Any) -> OcoError:
    with pytest.raises(OcoError) as caught:
        call(*args, **options)
    return caught.value


def plain() -> str:
    """Text with each form written out."""
    text = TEXT
    for short, long in WRITTEN.items():
        text = text.replace(short, long)
    return text


def test_forms_are_short_for_what_they_mean_and_round_trip() -> None:
    model = oco.parse(TEXT)
    assert model == oco.parse(plain()) == oco.parse(model.to_oco())
    assert 'param at[plant] in zone = ["NYC", "WEST", "NYC"]\n' in model.to_oco()
    assert format_text(TEXT) == TEXT


def test_values_are_sums_along_the_axis_and_by_group() -> None:
    model = oco.parse(TEXT)
    values = {p.name: p.data for p in model.params} | {"x": X, "f": F, "price": np.zeros(2)}
    left = {c.label: evaluate(c.left, values) for c in model.constraints}
    assert np.allclose(left["cap"], [X[0] + X[2], X[1]])
    assert np.allclose(left["out"], F.max(0))
    assert np.allclose(left["both"], [F[0] + F[2], F[1]])
    assert np.allclose(left["even"], F.sum(1))


def test_entries_have_the_names_of_the_index() -> None:
    model = oco.parse(TEXT)
    axes = {c.label: [a.index for a in model.axes_of_constraint(c.label)] for c in model.constraints}
    assert axes == {"cap": ["zone"], "out": ["zone"], "both": ["zone", "zone"], "even": ["plant"]}


def test_the_builder_says_the_same() -> None:
    m = oco.Model("grouped", horizon=30)
    plant, zone = m.index("plant", ["a", "b", "c"]), m.index("zone", ["NYC", "WEST"])
    at = m.param("at", plant, {"b": "WEST", "c": "NYC", "a": "NYC"}, bounds=zone)
    limit = m.param("limit", zone, [1.2, 0.6])
    x, f = m.decision("x", plant, domain=oco.box(0, 1)), m.decision("f", (plant, zone), domain=oco.box(0, 1))
    price = m.stream("price", zone, bounds=(-1, 1))
    m.minimize(price @ x.sum(by=at) + oco.sum_squares(f.sum(over="zone") - x))
    m.subject_to(oco.sum(x, by=at) <= limit, "cap", each_round=True)
    m.subject_to(f.max(over=plant) <= 0.9, "out", each_round=True)
    m.subject_to(oco.sum(f, by=at) <= price + 1.5, "both", each_round=True)
    m.subject_to(2 * oco.mean(f.T, over=zone) <= 1, "even")
    assert m.build() == oco.parse(TEXT)
    for wrong in (lambda: x.sum(over="zones"), lambda: x.sum(over=zone), lambda: x.max(axis=0, over=plant)):
        assert code_of(wrong).code == "OCO551"
    assert code_of(lambda: x.sum(by=limit)).code == "OCO552"
    assert code_of(lambda: oco.log(x, over=plant)).code == "OCO304"


def test_c_decides_as_numpy_does_and_traces_speak_names() -> None:
    text = TEXT.replace(" + sum_squares(sum(f, over = zone) - x)", "").replace("<= limit", "<= price + 1")
    kept = [line for line in text.splitlines() if not line.strip().startswith(("decision f", "out", "both", "even"))]
    model, rows = oco.parse("\n".join(kept)), {"price": RNG.uniform(-1, 1, (30, 2))}
    runs = [oco.compile(model, backend=b).run(rows) for b in ("numpy", "c")]
    assert runs[0].labels == ("cap[NYC]", "cap[WEST]")
    assert np.allclose(runs[0].decisions, runs[1].decisions, atol=1e-9)
    served = np.stack([runs[0].decisions[:, [0, 2]].sum(1), runs[0].decisions[:, 1]], 1)
    assert np.allclose(runs[0].constraints, served - rows["price"] - 1)


def test_members_come_by_name(tmp_path: Path) -> None:
    (tmp_path / "plants.csv").write_text("plant,place,number\nb,WEST,1\na,NYC,0\nc,NYC,0\n")
    for column in ("place", "number"):
        text = TEXT.replace("[NYC, WEST, NYC]", f'file("plants.csv", column = "{column}")')
        model = oco.parse(text, folder=tmp_path)
        assert model.params[2].data.tolist() == [0, 1, 0]
        assert oco.parse(model.to_oco(), folder=tmp_path) == model
    open_ = TEXT.replace(" = [NYC, WEST, NYC]", "")
    by_name = {"b": "WEST", "a": "NYC", "c": "NYC"}
    for given in (["NYC", "WEST", "NYC"], by_name, pd.Series(by_name), np.array(["NYC", "WEST", "NYC"]), [0, 1, 0]):
        assert oco.parse(open_, {"at": given}).params[2].data.tolist() == [0, 1, 0]
    unnamed = oco.parse(TEXT.replace("index zone = [NYC, WEST]", "index zone"))
    assert oco.parse(unnamed.to_oco()) == unnamed
    assert bind(unnamed, {"zone": ["WEST", "NYC"]}).params[2].data.tolist() == [1, 0, 1]
    assert canonical(bind(unnamed, {"zone": ["NYC", "WEST"]})).constraints


def test_groups_may_be_numbers_with_a_range() -> None:
    text = "model m\nhorizon T = 9\nparam at[4] in 0..2 = [0, 2, 0, 2]\ndecision x[4] in box(0, 1)\nstream c[3] in [0, 1]\n"
    model = oco.parse(text + "minimize c @ sum(x, by = at)\n")
    assert "x @ eye(3)[at]" in model.to_oco()


@pytest.mark.parametrize(
    ("old", "new", "code", "hint"),
    [
        ("sum(f, over = zone)", "sum(x, over = zone)", "OCO551", "its only axis is `plant` (axis = 0)"),
        ("sum(f, over = zone)", "sum(f, over = at)", "OCO551", "`plant` (axis = 0) and `zone` (axis = 1)"),
        ("sum(f, over = zone)", "sum(f, over = 1)", "OCO551", "`zone` (axis = 1)"),
        ("sum(f, over = zone)", "sum(f, over = zone, axis = 1)", "OCO551", "keep one"),
        ("sum(f, over = zone)", "sum(f @ ones(zone, plant), over = plant)", "OCO551", "`axis = 0` or `axis = 1`"),
        ("sum(f, by = at)", "max(f, by = at)", "OCO304", "axis, over"),
        ("price @ sum(x, by = at)", "sum(sum(price, by = at))", "OCO552", "`zone` (axis = 0)"),
        ("price @ sum(x, by = at)", "sum(sum(x, by = limit))", "OCO552", "`param at[plant] in zone = [...]`"),
        ("price @ sum(x, by = at)", "sum(sum(x, by = price))", "OCO320", "numbers and params"),
        ("[NYC, WEST, NYC]", "[NYC, WST, NYC]", "OCO327", "`WEST`"),
        ("at[plant] in zone", "at[plant] in zon", "OCO120", "`zone`"),
    ],
)
def test_mistakes_have_codes(old: str, new: str, code: str, hint: str) -> None:
    error = code_of(oco.parse, TEXT.replace(old, new, 1))
    first = error.diagnostics[0]
    assert (first.code, hint in (first.hint or "")) == (code, True)


def test_names_lie_in_an_index() -> None:
    text = TEXT.replace("at[plant] in zone = [NYC, WEST, NYC]", "at[plant] in 0..1")
    assert code_of(oco.parse, text, {"at": ["NYC", "WEST", "NYC"]}).code == "OCO553"
