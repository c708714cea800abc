"""Errors of the builder: each points at the part of the line that made the mistake, and says what to write."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oco
from oco.dsl.builder import ModelBuilder
from oco.dsl.diagnostics import OcoError

# Each function makes one mistake, on the line that holds `# here`.


def fresh() -> tuple[ModelBuilder, oco.Term]:
    m = oco.Model("m", horizon=10)
    return m, m.decision("x", 3, domain=oco.box(0, 1))


def shapes() -> None:
    m, x = fresh()
    m.minimize(oco.sum(1 + 2 * (x + oco.ones(4))))  # here


def chain() -> None:
    m, x = fresh()
    m.subject_to(0 <= x <= 1)  # here


def truth() -> None:
    m, x = fresh()
    if x[0] >= 0:  # here
        m.minimize(x[0])


def strict() -> None:
    m, x = fresh()
    m.subject_to(x < 1)  # here


def text() -> None:
    _, x = fresh()
    x + "1"  # here


def ufunc() -> None:
    m, x = fresh()
    m.minimize(x @ [None, 1, 2])  # here


def two_models() -> None:
    _, x = fresh()
    other, y = fresh()
    other.minimize(oco.sum(x) + oco.sum(y))  # here


def foreign_constraint() -> None:
    _, x = fresh()
    other, _ = fresh()
    other.subject_to(oco.sum(x) <= 1)  # here


def domain() -> None:
    m, _ = fresh()
    m.decision("y", 3, domain=oco.box(1, 0))  # here


def no_domain() -> None:
    m, _ = fresh()
    m.decision("y", 3, domain=(0, 1))  # here


def radius() -> None:
    oco.ball(1, 2)  # here


def duplicate() -> None:
    m, _ = fresh()
    m.stream("x", 3, bounds=(0, 1))  # here


def name() -> None:
    m, _ = fresh()
    m.stream("my price", 3, bounds=(0, 1))  # here


def bounds() -> None:
    m, _ = fresh()
    m.stream("c", 3, bounds=(1, 0))  # here


def vector_objective() -> None:
    m, x = fresh()
    m.minimize(2 * x)  # here


def index() -> None:
    _, x = fresh()
    x[3]  # here


def step() -> None:
    _, x = fresh()
    x[0:3:2]  # here


def not_finite() -> None:
    _, x = fresh()
    x * float("nan")  # here


def regret() -> None:
    m, _ = fresh()
    m.measure("dinamic")  # here


def algorithm() -> None:
    m, _ = fresh()
    m.using("coldq", step=1)  # here


def formula() -> None:
    m, _ = fresh()
    m.using("coldq", alpha="sqrt(")  # here


def horizon() -> None:
    oco.Model("m", horizon=0)  # here


WRONG: dict[str, tuple[Callable[[], None], str, str]] = {
    "shapes": (shapes, "OCO301", "x + oco.ones(4)"),
    "chain": (chain, "OCO523", "0 <= x <= 1"),
    "truth": (truth, "OCO523", "x[0] >= 0"),
    "strict": (strict, "OCO522", "x < 1"),
    "text": (text, "OCO524", 'x + "1"'),
    "ufunc": (ufunc, "OCO524", "x @ [None, 1, 2]"),
    "two models": (two_models, "OCO525", "oco.sum(x) + oco.sum(y)"),
    "foreign constraint": (foreign_constraint, "OCO525", "other.subject_to(oco.sum(x) <= 1)"),
    "domain": (domain, "OCO410", "oco.box(1, 0)"),
    "no domain": (no_domain, "OCO526", 'm.decision("y", 3, domain=(0, 1))'),
    "radius": (radius, "OCO403", "oco.ball(1, 2)"),
    "duplicate": (duplicate, "OCO203", 'm.stream("x", 3, bounds=(0, 1))'),
    "name": (name, "OCO526", 'm.stream("my price", 3, bounds=(0, 1))'),
    "bounds": (bounds, "OCO424", 'm.stream("c", 3, bounds=(1, 0))'),
    "vector objective": (vector_objective, "OCO324", "2 * x"),
    "index": (index, "OCO312", "x[3]"),
    "step": (step, "OCO313", "x[0:3:2]"),
    "not finite": (not_finite, "OCO524", 'x * float("nan")'),
    "regret": (regret, "OCO210", 'm.measure("dinamic")'),
    "algorithm": (algorithm, "OCO702", "step"),
    "formula": (formula, "OCO721", 'm.using("coldq", alpha="sqrt(")'),
    "horizon": (horizon, "OCO323", 'oco.Model("m", horizon=0)'),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_an_error_points_at_the_part_of_the_callers_line(mistake: str) -> None:
    function, code, part = WRONG[mistake]
    with pytest.raises(OcoError) as caught:
        function()
    error = caught.value
    assert error.code == code
    assert error.span is not None
    assert error.span.source.name == __file__
    assert error.span.source.line(error.span.line).endswith("# here")
    assert error.span.text == part


def test_a_failed_declaration_can_be_made_again() -> None:
    m, _ = fresh()
    with pytest.raises(OcoError):
        m.decision("y", 3, domain=oco.ball(-1))
    m.decision("y", 3, domain=oco.ball(1))
    with pytest.raises(OcoError):
        m.subject_to(oco.sum(oco.ones(3)) <= 1, name="cap")
    m.subject_to(m.decision("z", domain=oco.box(0, 1)) <= 1, name="cap")


def test_what_is_missing_is_said_when_the_model_is_built() -> None:
    with pytest.raises(OcoError) as caught:
        oco.Model("m", horizon=10).build()
    assert [d.code for d in caught.value.diagnostics] == ["OCO207", "OCO207"]


def test_an_unknown_fact_is_said_at_the_call() -> None:
    m, x = fresh()
    m.minimize(oco.sum(x))
    with pytest.raises(OcoError) as caught:
        m.assume({"slater.margn": 0.5})
    assert caught.value.code == "OCO651" and "slater.margin" in caught.value.hint


def test_an_assumption_about_a_constraint_that_is_not_there_is_said_when_the_model_is_built() -> None:
    m, x = fresh()
    m.minimize(oco.sum(x))
    m.assume({"constraints.cap.bound": 0.5})
    with pytest.raises(OcoError) as caught:
        m.build()
    assert caught.value.code == "OCO651"


@pytest.mark.parametrize(
    ("call", "code", "way_out"),
    (
        (lambda m, x: np.log(x), "OCO524", "oco.log"),
        (lambda m, x: np.abs(x), "OCO524", "oco.abs"),
        (lambda m, x: np.add.reduce(x), "OCO524", "oco.sum"),
        (lambda m, x: np.maximum.reduce(x), "OCO524", "oco.max"),
        (lambda m, x: np.maximum(x, 0), "OCO524", "oco.maximum"),
        (lambda m, x: math.log(x[0]), "OCO523", "oco.log"),
        (lambda m, x: max(x[0], x[1]), "OCO522", "oco.maximum"),
        (lambda m, x: min(x), "OCO522", "oco.minimum"),
        (lambda m, x: 1 if x[0] > 0 else 2, "OCO522", "oco.pos"),
        (lambda m, x: 1 if x[0] else 2, "OCO523", "oco.pos"),
        (lambda m, x: m.decision("z", 3, domain=oco.simplex), "OCO526", "call it: `oco.simplex"),
        (lambda m, x: m.stream("z", dist=oco.poisson), "OCO526", "call it: `oco.poisson"),
        (lambda m, x: oco.Model("a", horizon="ten"), "OCO526", ""),
    ),
)
def test_python_and_numpy_that_need_values_name_the_function_to_write(call: Any, code: str, way_out: str) -> None:
    m, x = fresh()
    with pytest.raises(OcoError) as caught:
        call(m, x)
    assert caught.value.code == code and way_out in caught.value.hint
    assert caught.value.span is not None and caught.value.span.source.name.endswith("test_builder_errors.py")


def test_arrays_on_the_left_are_the_terms_own_arithmetic() -> None:
    _, x = fresh()
    ones = np.ones(x.shape[0])
    for left in (ones, np.float64(2)):
        assert [type(e) for e in (left + x, left - x, left * x, left / (x + 9))] == [type(x)] * 4
    assert (ones @ x).shape == () and "@" in repr(ones @ x)
    assert isinstance(ones <= x, type(x >= ones))


def test_an_error_in_a_notebook_cell_points_into_the_cell() -> None:
    cell = "import oco\nm = oco.Model('m', horizon=9)\nx = m.decision('x', 2, domain=oco.box(0, 1))\nm.minimize(x @ oco.ones(3))\n"
    filename = "<ipython-input-3-0123456789ab>"
    linecache.cache[filename] = (len(cell), None, cell.splitlines(keepends=True), filename)
    with pytest.raises(OcoError) as caught:
        exec(compile(cell, filename, "exec"), {"__name__": "__main__"})
    assert str(caught.value).startswith(
        "<notebook cell>:4:12: error OCO302: `x` has shape [2] and `oco.ones(3)` has shape [3]"
    )


def test_an_error_without_source_text_is_still_an_error() -> None:
    with pytest.raises(OcoError) as caught:
        exec("import oco\noco.ball(1, 2)", {"__name__": "__main__"})
    assert (caught.value.code, caught.value.span) == ("OCO403", None)
