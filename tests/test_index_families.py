"""Families of constraints over an index: one constraint of arrays, with the entries that each name would have by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oco
from oco.dsl.diagnostics import OcoError
from oco.dsl.evaluate import evaluate
from oco.dsl.text.formatter import format_text

HEAD = """\
model families

horizon T = 20

index plant = [a, b, c, d]
index zone = [NYC, WEST, EAST]
param at[plant] in zone = [WEST, NYC, WEST, EAST]
param home[zone] in plant = [a, b, c]
param limit[zone] = [1.2, 0.6, 0.9]
param A[zone, 2] = [[1, 2], [3, 4], [5, 6]]
param share = 0.5

decision x[plant] in box(0, 1)
decision y[2] in box(0, 1)

stream price[zone] in [0, 1]
stream size[plant] in [0, 1]

minimize price @ sum(x, by = at) + sum(y)

subject to
"""
FAMILIES = {
    "cap[z in zone]: sum(x[plant in at[z]]) <= limit[z]": "cap: sum(x, by = at) <= limit",
    "cap[z in zone]: sum(size[p in at[z]] * x[p in at[z]]) <= price[z]": "cap: sum(size * x, by = at) <= price",
    "cap[z in zone]: sum(price[z] * x[p in at[z]]) - share <= limit[z]": "cap: sum(price[at] * x, by = at) - share <= limit",
    "cap[k in plant]: x[k] <= 0.5 * size[k] + sum(y)": "cap: x <= 0.5 * size + sum(y)",
    "cap[z in zone]: A[z, 0] * y[0] + square(y[1]) - log(1 + price[z]) <= 1": (
        "cap: A[:, 0] * y[0] + square(y[1]) - log(1 + price) <= 1"
    ),
    "cap[z in zone]: maximum(sum(x[p in at[z]]), limit[z]) <= 2": "cap: maximum(sum(x, by = at), limit) <= 2",
}


def code_of(line: str) -> OcoError:
    with pytest.raises(OcoError) as caught:
        oco.parse(f"{HEAD}    {line}\n")
    return caught.value


def with_line(line: str, timing: str = "each round") -> Any:
    return oco.parse(f"{HEAD}    {line}  {timing}\n")


@pytest.mark.parametrize(("family", "arrays"), FAMILIES.items())
def test_a_family_is_a_constraint_of_arrays(family: str, arrays: str) -> None:
    model = with_line(family)
    assert model == with_line(arrays) == oco.parse(model.to_oco())
    text = f"{HEAD}    {family}  each round\n"
    assert format_text(text) == text
    assert format_text(text.replace("<=", "<= ").replace("]: ", "] :", 1).replace("<=  ", "<=")) == text


def test_its_entries_are_those_of_each_name() -> None:
    rng = np.random.default_rng(5)
    values = {
        "x": rng.uniform(size=4),
        "y": rng.uniform(size=2),
        "price": rng.uniform(size=3),
        "size": rng.uniform(size=4),
    }
    members = {"NYC": [1], "WEST": [0, 2], "EAST": [3]}
    for number, family in enumerate(FAMILIES):
        model = with_line(family)
        data = values | {p.name: p.data for p in model.params}
        (c,) = model.constraints
        gaps = np.asarray(evaluate(c.left, data)) - evaluate(c.right, data)
        x, y, price, size = (values[n] for n in ("x", "y", "price", "size"))
        limit, A = data["limit"], data["A"]
        for z, (name, own) in enumerate(members.items()):
            wanted = [
                x[own].sum() - limit[z],
                (size[own] * x[own]).sum() - price[z],
                price[z] * x[own].sum() - 0.5 - limit[z],
                x[z] - 0.5 * size[z] - y.sum(),
                A[z, 0] * y[0] + y[1] ** 2 - np.log(1 + price[z]) - 1,
                max(x[own].sum(), limit[z]) - 2,
            ][number]
            assert np.isclose(gaps[z], wanted), (family, name)
        axis = model.axes_of_constraint("cap")[0]
        assert axis is not None and axis.index == ("plant" if number == 3 else "zone")


def test_runs_speak_the_names_of_its_entries() -> None:
    model = with_line("cap[z in zone]: sum(x[plant in at[z]]) <= limit[z] + price[z]")
    rng = np.random.default_rng(6)
    rows = {"price": rng.uniform(size=(20, 3)), "size": rng.uniform(size=(20, 4))}
    plan = oco.compile(model, algorithm="nested")
    runs = [plan.run(rows, backend=b) for b in ("numpy", "c")]
    assert runs[0].labels == ("cap[NYC]", "cap[WEST]", "cap[EAST]")
    assert np.allclose(runs[0].decisions["x"], runs[1].decisions["x"], atol=1e-9)


@pytest.mark.parametrize(
    ("line", "words", "hint"),
    [
        ("cap[z in zones]: sum(x[p in at[z]]) <= 1", "is over an index", "declare it: `index"),
        ("cap[z in share]: sum(x[p in at[z]]) <= 1", "is over an index", "declare it: `index"),
        ("cap[x in zone]: limit[x] <= 1", "cannot be the variable", "another name"),
        ("cap[z in zone]: sum(x) <= 1", "nothing in this constraint depends on `z`", "leave out the brackets"),
        ("cap[z in zone]: x + limit[z] <= 1", "`x` has several entries", "`[z]` behind it"),
        ("cap[z in zone]: norm2(A[z] * y) <= 1", "`norm2(A[z] * y)` is not made entry by entry", "by = at"),
        ("cap[z in zone]: sum(y) * z <= limit[z]", "is not made entry by entry", "by = at"),
        ("cap[z in zone]: sum(A[z, 0:2]) <= sum(y)", "is not made entry by entry", "by = at"),
        ("cap[z in zone]: A[z] * y[0] <= 1", "`A[z]` is not one entry", "`limit[z]`"),
        ("cap[z in zone]: A[z, 0:1] * y[0] <= 1", "is not one entry", "`limit[z]`"),
        ("cap[z in zone]: x[z] <= 1", "`x[z]` is not one entry for each name of `zone`", "`limit[z]`"),
        ("cap[z in zone]: limit[z] <= x[home[z]]", "`x[home[z]]` is not one entry", "`limit[z]`"),
        ("cap[z in zone]: sum(x[p in home[z]]) <= 1", "chooses no group", "`param at[plant] in zone = [...]`"),
        ("cap[z in zone]: sum(x[p in at[0]]) <= limit[z]", "chooses no group", "`x[plant in at[z]]`"),
        ("cap[z in zone]: x[p in at[z]] <= limit[z]", "chosen by `in` in the sums", "by = at"),
        ("cap[z in zone]: sum(y * x[p in at[z]]) <= limit[z]", "`y` has several entries", "`[z]` behind it"),
        ("cap: sum(x[p in at[0]]) <= 1", "chosen by `in` in the sums", "by = at"),
    ],
)
def test_what_is_no_family_says_why(line: str, words: str, hint: str) -> None:
    (found,) = code_of(line).diagnostics
    assert found.code == "OCO554", found.message
    assert words in found.message and hint in found.hint
    assert found.span is not None and found.span.line == HEAD.count("\n") + 1


def test_unknown_names_are_reported_once() -> None:
    assert [d.code for d in code_of("cap[z in zone]: sum(x[p in at[z]]) <= limt[z]").diagnostics] == ["OCO201"]
    assert [d.code for d in code_of("cap[z in zone]: sum(w[p in at[z]]) <= limit[z]").diagnostics] == ["OCO201"]
