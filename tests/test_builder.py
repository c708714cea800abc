"""Models that the builder makes are those of the language."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oco
from oco.dsl.atoms import ATOMS
from oco.dsl.builder import ModelBuilder
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


def test_shared_parts_cost_no_more_than_their_number() -> None:
    m = oco.Model("m", horizon=10)
    x = m.decision("x", 3, domain=oco.box(0, 1))
    i = m.stream("i", bounds=(0, 0), integer=True)
    doubled, whole = x[0], i
    for _ in range(60):
        doubled, whole = doubled + doubled, whole + whole
    m.minimize(doubled + x[whole])
