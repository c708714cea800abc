"""Spellings of CVXPY and NumPy users in the builder: methods, gains, data in place of shapes, lists of constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import oco

SPELLINGS = {
    "methods": lambda x, v: (
        x.sum() + x.mean() + x.max() - x.min(),
        oco.sum(x) + oco.mean(x) + oco.max(x) - oco.min(x),
    ),
    "numpy": lambda x, v: (np.sum(x) + np.mean(x) + np.max(x), oco.sum(x) + oco.mean(x) + oco.max(x)),
    "axis": lambda x, v: (oco.outer(v, x).sum(axis=0) @ v, oco.sum(oco.outer(v, x), axis=0) @ v),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_methods_of_terms_are_the_functions_of_their_names(spelling: str) -> None:
    m = oco.Model("methods")
    x, v = m.decision("x", 3, domain=oco.box(0, 1)), m.stream("v", 3, bounds=(0, 1))
    method, function = SPELLINGS[spelling](x, v)
    assert repr(method) == repr(function)


def test_a_gain_is_minimized_as_its_negative() -> None:
    models = []
    for maximized in (True, False):
        m = oco.Model("gain", horizon=10)
        x, v = m.decision("x", 3, domain=oco.box(0, 1)), m.stream("v", 3, bounds=(0, 1))
        m.maximize(v @ x - oco.sum_squares(x)) if maximized else m.minimize(-(v @ x - oco.sum_squares(x)))
        models.append(m.build())
    gain, loss = models
    assert repr(gain.objective) == repr(loss.objective)
    assert gain.to_oco().splitlines()[-1] == "maximize v @ x - sum_squares(x)"
    assert "minimize" in loss.to_oco()
    assert oco.parse(gain.to_oco()) == gain != loss
    assert r"\max" in gain._repr_latex_()
    data = {"v": np.random.default_rng(0).uniform(0, 1, (10, 3))}
    runs = [oco.compile(model).run(data, backend="numpy") for model in models]
    np.testing.assert_array_equal(runs[0].decisions, runs[1].decisions)
    np.testing.assert_array_equal(runs[0].loss, runs[1].loss)


def test_errors_of_a_gain_speak_of_the_gain() -> None:
    text = "model m\nhorizon T = 10\ndecision x[3] in box(0, 1)\nstream c[3] in [0, 1]\nmaximize c @ square(x)\n"
    with pytest.raises(oco.OcoError, match=r"(?s)the gain is not concave.*put a minus before it") as caught:
        oco.compile(oco.parse(text))
    assert caught.value.diagnostics[0].code == "OCO501"
    with pytest.raises(oco.OcoError, match="there is a `minimize` statement already"):
        oco.parse(text + "minimize sum(x)\n")


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, np.asarray, np.ndarray.tolist])
def test_data_may_stand_where_the_shape_may(table: Any) -> None:
    values = np.array([[1.5, 2.0], [3.0, 4.25]])
    m, same = oco.Model("data"), oco.Model("data")
    assert m.param("A", table(values)).shape == same.param("A", value=values).shape == (2, 2)
    assert m.param("k", 2.5).shape == ()
    assert m.param("free", (2, 3)).shape == (2, 3)


def test_lists_and_generators_of_constraints_are_added_in_their_order() -> None:
    m = oco.Model("several", horizon=10)
    x, b = m.decision("x", 3, domain=oco.box(0, 1)), m.stream("b", 3, bounds=(0, 1))
    m.minimize(oco.sum(x))
    m.subject_to([x[i] <= b[i] for i in range(2)], each_round=True)
    m.subject_to((x[i] + x[i + 1] <= 1 for i in range(2)), name="pair")
    assert [c.label for c in m.build().constraints] == ["c1", "c2", "pair_1", "pair_2"]
    with pytest.raises(oco.OcoError, match="here it is 3"):
        m.subject_to([x[0] <= 1, 3], name="late")
    assert [c.label for c in m.build().constraints] == ["c1", "c2", "pair_1", "pair_2"]
    m.subject_to([x[0] >= 0], name="late")
