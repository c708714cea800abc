"""The builder says the same as the language, and its errors point at the caller's line."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oco
from oco.dsl.atoms import ATOMS
from oco.dsl.builder import ModelBuilder
from oco.dsl.diagnostics import OcoError
from oco.dsl.functions import FUNCTIONS
from oco.dsl.load import load, parse

EXAMPLES = Path(__file__).parent.parent / "examples"


def job_scheduling() -> ModelBuilder:
    m = oco.Model("job_scheduling", horizon=2880)
    region = m.param("region", 100, oco.repeat(oco.range(0, 9), 10), bounds=range(10))
    x = m.decision("x", 100, domain=oco.box(0, 1000))
    price = m.stream("price", 10, bounds=(-1000, 3000))
    jobs = m.stream("jobs", dist=oco.poisson(2500), bounds=(0, 3200))
    m.minimize(oco.sum(price[region] * x))
    m.subject_to(jobs - 4 * oco.sum(oco.log(1 + 4 * x)) <= 0, name="service", each_round=True)
    return m


def datacenter() -> ModelBuilder:
    m = oco.Model("datacenter", horizon=10000, folder=EXAMPLES)
    zone = m.param("zone", 50, oco.repeat(oco.range(0, 4), 10), bounds=(0, 4), integer=True)
    group = m.param("group", (4, 50), oco.file("datacenter_groups.csv"))
    beta = m.param("beta", value=[0.05, 0.10, 0.25, 0.60])
    mu = m.decision("mu", 50, domain=oco.box(0, 30))
    price = m.stream("price", 5, bounds=(-1000, 3000))
    jobs = m.stream("jobs", dist=oco.poisson(1000), bounds=(0, 2000))
    speed = m.stream("speed", 50, dist=oco.pareto(3, mean=8), bounds=(0, 400))
    use = m.stream("use", 50, dist=oco.pareto(3, mean=5), bounds=(0, 250))
    m.minimize(oco.sum(price[zone] * mu))
    m.subject_to(jobs - oco.sum(speed * oco.log(1 + 4 * mu)) <= 0, name="service")
    m.subject_to(group @ (use * mu) - beta * oco.sum(use * mu) == 0, name="pacing")
    return m


def matrix_completion() -> ModelBuilder:
    m = oco.Model("matrix_completion", horizon=1000)
    rows, columns = m.param("m", value=50), m.param("n", value=50)
    radius = m.param("radius", value=5)
    X = m.decision("X", (rows, columns), domain=oco.nuclear_ball(radius))
    row = m.stream("row", 100, bounds=(0, rows - 1), integer=True, iid=True)
    col = m.stream("col", 100, bounds=(0, columns - 1), integer=True, iid=True)
    rating = m.stream("rating", 100, bounds=(-1, 1), iid=True)
    G = m.stream("G", (rows, columns), dist=oco.uniform(-1, 1))
    m.minimize(0.5 * oco.sum_squares(X[row, col] - rating))
    m.subject_to(oco.sum(G * X) <= 0, "side")
    return m


def tracking() -> ModelBuilder:
    m = oco.Model("tracking", horizon=5000)
    x = m.decision("x", 10, domain=oco.box(0, 5))
    H = m.stream("H", (4, 10), dist=oco.uniform(-1, 1))
    noise = m.stream("noise", 4, dist=oco.normal(0, 1), bounds=(-6, 6))
    A = m.stream("A", (2, 10), dist=oco.uniform(0, 1))
    b = m.stream("b", 2, dist=oco.uniform(0, 1))
    y = m.let("y", H @ oco.ones(10) + noise)
    m.minimize(0.5 * oco.sum_squares(H @ x - y))
    m.subject_to(A @ x <= b, name="limits", each_round=True)
    m.measure("dynamic")
    return m


BUILT = {f.__name__: f for f in (job_scheduling, datacenter, matrix_completion, tracking)}


@pytest.mark.parametrize("name", BUILT)
def test_the_builder_gives_the_model_of_the_file(name: str) -> None:
    assert BUILT[name]().build() == load(EXAMPLES / f"{name}.oco")


@pytest.mark.parametrize("name", BUILT)
def test_the_printed_model_reads_back(name: str) -> None:
    m = BUILT[name]()
    assert parse(m.to_oco(), folder=EXAMPLES) == m.build()


def everything() -> ModelBuilder:
    """Each method and operator at least once, with numbers and arrays on both sides."""
    m = oco.Model("everything", horizon=None)
    n = m.param("n")
    k = m.param("k", bounds=(0, 2), integer=True)
    P = m.param("P", value=np.array([[2.0, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]), bounds=(-3, 3))
    x = m.decision("x", 3, domain=oco.box(np.array([-1.0, -2, -3]), 1))
    z = m.decision("z", n, domain=oco.simplex())
    c = m.stream("c", 3, bounds=(np.array([-1, -1, 0]), 1), iid=True, mean=0.25)
    u = m.stream("u", n, bounds=(0, 1))
    w = m.stream("w", dist=oco.pareto(3, mean=8), bounds=(0, 400))
    double = m.let("double", 2 * x - -c / 3 + np.array([1, 2, 3]) * x)
    m.minimize(
        oco.quad_form(x, P) + np.array([0.5, 1e-9, -3e20]) @ double + x[k] ** 2 + u @ z + abs(x[0]) + w * oco.max(x)
    )
    m.subject_to(np.eye(3) @ x <= np.ones(3), name="upper")
    m.subject_to(-1 <= x[1:3], each_round=True)  # noqa: SIM300 (the reflected operator)
    m.subject_to(oco.sum(x.T @ P, axis=0) + 1 / m.t >= -(x[2] + 5))
    m.subject_to(oco.maximum(x[0], x[1], 0) <= np.array([2.5, x[2] + 7]), name="either")
    m.subject_to(oco.sum(c * x) == 0)
    m.feedback("gradient")
    m.assume({"slater.margin": 0.5, "path_length": 40 * n, "constraints.upper[1].lipschitz.l2": 2})
    m.assume("feasible.common")
    m.using("coldq", epsilon=0.25, alpha="2*sqrt( t )")
    return m


def test_everything_reads_back() -> None:
    m = everything()
    assert parse(m.to_oco()) == m.build()
    assert [c.label for c in m.build().constraints] == ["upper", "c2", "c3", "either", "c5"]
    assert [str(a.relation) for a in m.build().assumptions] == [">=", "<=", "<=", ">="]


def test_numbers_keep_every_digit() -> None:
    rng = np.random.default_rng(0)
    m = oco.Model("digits", horizon=5)
    x = m.decision("x", 40, domain=oco.ball(1 / 3))
    m.minimize((rng.normal(size=40) * 10.0 ** rng.integers(-290, 290, 40)) @ x)
    assert parse(m.to_oco()) == m.build()


def test_every_function_of_the_language_is_there() -> None:
    public = {name for name, row in ATOMS.items() if not name.startswith("_") and not row.operator}
    assert public <= set(FUNCTIONS)
    for name in public:
        assert getattr(oco, name) is FUNCTIONS[name]
        assert FUNCTIONS[name].__doc__


def test_an_array_on_the_left_leaves_the_operator_to_the_term() -> None:
    m = oco.Model("m", horizon=5)
    x = m.decision("x", 2, domain=oco.box(0, 1))
    a = np.array([1.0, 2.0])
    assert [repr(a + x), repr(a - x), repr(a * x), repr(a / x), repr(a @ x), repr(a**x)] == [
        "[1.0, 2.0] + x",
        "[1.0, 2.0] - x",
        "[1.0, 2.0] * x",
        "[1.0, 2.0] / x",
        "[1.0, 2.0] @ x",
        "[1.0, 2.0] ** x",
    ]
    assert repr(a <= x) == "x >= [1.0, 2.0]"
    assert [repr(e) for e in x] == ["x[0]", "x[1]"]
    assert np.float64(2) * x is not None and repr(np.float64(2) * x) == "2.0 * x"


# Errors. Each function makes one mistake, on the line that holds `# here`.


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
    assert caught.value.span is not None and caught.value.span.source.name.endswith("test_builder.py")


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


def test_shared_parts_cost_no_more_than_their_number() -> None:
    m, x = fresh()
    i = m.stream("i", bounds=(0, 0), integer=True)
    doubled, whole = x[0], i
    for _ in range(60):
        doubled, whole = doubled + doubled, whole + whole
    m.minimize(doubled + x[whole])
