"""Lowering to the step IR: every atom, its derivative and every kind of index gives there what it gives in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from atom_cases import CASES, FIXED_CASES, Case, each_case

from oco.compiler.ir.interpret import run_function
from oco.compiler.ir.program import DType, Type
from oco.compiler.ir.trace import Tracer
from oco.compiler.lowering.expressions import Lowering
from oco.compiler.problem.calculus import vector_jacobian
from oco.compiler.problem.jacobians import jacobian
from oco.dsl.atoms.internal import INTERNAL
from oco.dsl.build import array, call, index
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Call, Expr, Kind, Name, Slice, constant, walk

every = each_case(CASES + FIXED_CASES)


def lowered(expr: Expr, at: dict[str, np.ndarray]) -> np.ndarray:
    """The value through the IR: traced with one parameter a name, then interpreted."""
    values = {name: np.asarray(v) for name, v in at.items()}
    kinds = {name: DType.INT if v.dtype.kind == "i" else DType.FLOAT for name, v in values.items()}
    tracer = Tracer("test")
    function = tracer.function(
        "value",
        lambda *vs: Lowering(tracer, dict(zip(values, vs)))(expr),
        [(name, Type(kinds[name], v.shape)) for name, v in values.items()],
    )
    (found,) = run_function(function, list(values.values()), tracer.functions, tracer.constants)
    return np.asarray(found)


@every
def test_every_atom(case: Case) -> None:
    at = case.draw(np.random.default_rng(0))
    assert np.array_equal(lowered(case.call(), at), evaluate(case.call(), at))


def derivatives(case: Case, rng: np.random.Generator) -> dict[str, list[Expr]]:
    expr = case.call()
    along = vector_jacobian(expr, constant(rng.normal(size=expr.shape)), case.boxes)
    rows = jacobian(expr, case.boxes)
    return {name: [along[name], rows[name]] for name in case.boxes}


@every
def test_every_derivative(case: Case) -> None:
    rng = np.random.default_rng(1)
    at = case.draw(rng)
    for found in derivatives(case, rng).values():
        for expr in found:
            assert np.allclose(lowered(expr, at), evaluate(expr, at), rtol=1e-13, atol=1e-13)


def second_derivatives(case: Case) -> list[Expr]:
    """Derivatives of the slope of the sum of the entries."""
    slopes = vector_jacobian(case.call(), constant(np.ones(case.call().shape)), case.boxes)
    return [found for slope in slopes.values() for found in jacobian(slope, case.boxes).values()]


SMOOTH = [case for case in CASES if case.call().atom in ("huber", "logistic")]


@each_case(SMOOTH)
def test_second_derivatives(case: Case) -> None:
    at = case.draw(np.random.default_rng(1))
    for expr in second_derivatives(case):
        assert np.allclose(lowered(expr, at), evaluate(expr, at), rtol=1e-13, atol=1e-13)


def test_the_derivatives_of_the_cases_use_every_internal_atom() -> None:
    rng = np.random.default_rng(2)
    first = [expr for case in CASES for found in derivatives(case, rng).values() for expr in found]
    second = [expr for case in SMOOTH for expr in second_derivatives(case)]
    used = {node.atom for expr in (*first, *second) for node in walk(expr) if isinstance(node, Call)}
    assert {a.name for a in INTERNAL} - {"_scatter", "_masked", "_quantile"} <= used


def test_the_quantile_of_rows_is_that_of_sorted_ones() -> None:
    rng = np.random.default_rng(4)
    rows, count, amount = Name("a0", Kind.DECISION, shape=(9, 2)), np.array([9.0, 5.0]), np.array([7.0, 1.0])
    at = {"a0": rng.uniform(-1, 1, (9, 2))}
    node = call("_quantile", rows, constant(count), constant(amount))
    expected = [np.sort(at["a0"][: int(n), k])[int(m) - 1] for k, (n, m) in enumerate(zip(count, amount))]
    np.testing.assert_array_equal(lowered(node, at), expected)


def test_an_infinite_slope_of_an_argument_that_is_not_extreme_is_masked() -> None:
    """Slopes of the sum of sqrt(minimum(x, y)) are known: 1 / (2 sqrt) at the smaller one, 0 at the other, be it 0 or not."""
    x, y = (Name(n, Kind.DECISION, shape=(3,)) for n in "xy")
    slopes = vector_jacobian(call("sum", call("sqrt", call("minimum", x, y))), constant(1.0), ["x", "y"])
    assert any(isinstance(node, Call) and node.atom == "_masked" for node in walk(slopes["x"]))
    at = {"x": np.array([4.0, 1.0, 9.0]), "y": np.array([1.0, 4.0, 0.25])}
    with np.errstate(divide="ignore"):
        for name, known in (("x", [0, 0.5, 0]), ("y", [0.5, 0, 1.0])):
            assert np.allclose(lowered(slopes[name], at), known)
            assert np.allclose(evaluate(slopes[name], at), known)


@pytest.mark.parametrize(
    ("part", "at", "slope"),
    [("pos", [-1.0, 0.25], [0, 1]), ("neg", [1.0, -0.25], [0, -1]), ("hinge", [2.0, 0.75], [0, -1])],
)
@pytest.mark.parametrize("root", [lambda e: call("sqrt", e), lambda e: call("pow", e, 0.5)], ids=["sqrt", "pow"])
def test_an_infinite_slope_of_a_part_that_is_not_active_is_masked(
    root: Callable[[Expr], Expr], part: str, at: list[float], slope: list[float]
) -> None:
    """Slopes of the root of a part are known: 0 where the part is 0, and 1 / (2 sqrt) times its own elsewhere."""
    x = Name("x", Kind.DECISION, shape=(2,))
    slopes = vector_jacobian(call("sum", root(call(part, x))), constant(1.0), ["x"])["x"]
    with np.errstate(divide="ignore"):
        assert np.allclose(lowered(slopes, {"x": np.array(at)}), slope)
        assert np.allclose(evaluate(slopes, {"x": np.array(at)}), slope)


X = np.arange(24.0).reshape(2, 3, 4)
X_NAME = Name("x", Kind.DECISION, shape=X.shape)
ONE, MANY = Name("i", Kind.STREAM, integer=True), Name("j", Kind.STREAM, shape=(5,), integer=True)
AT = {"x": X, "i": np.int64(1), "j": np.array([0, 2, 1, 2, 2])}


@pytest.mark.parametrize(
    "items",
    [
        (constant(1),),
        (constant(1), Slice(constant(1), constant(3))),
        (Slice(), constant(2)),
        (Slice(), Slice(), Slice(constant(1), None)),
        (ONE,),
        (ONE, MANY),
        (Slice(), MANY),
        (Slice(), MANY, ONE),
        (ONE, Slice(), MANY),
        (ONE, Slice(None, constant(2)), constant(3)),
        (constant([1, 0, 1]), constant([2, 2, 0])),
    ],
    ids=str,
)
def test_indices_and_their_transposes(items: tuple[Expr, ...]) -> None:
    """The transpose of selecting: <weights, x[items]> = <scatter(weights), x>."""
    used = {n for item in items for node in walk(item) if isinstance(node, Name) for n in [node.name]}
    at = {name: AT[name] for name in AT if name in used | {"x"}}
    node = index(X_NAME, items)
    assert np.array_equal(lowered(node, at), evaluate(node, at))
    weights = np.random.default_rng(3).normal(size=node.shape)
    back = vector_jacobian(node, constant(weights), ("x",))["x"]
    assert back.shape == X.shape
    scattered = lowered(back, at)
    assert np.allclose(scattered, evaluate(back, at), rtol=1e-14)
    assert np.sum(scattered * X) == pytest.approx(np.sum(weights * evaluate(node, at)), rel=1e-12)


def test_arrays_and_the_round() -> None:
    expr = array((call("sum", X_NAME), call("sqrt", Name("t", Kind.ROUND)), constant(2.5)))
    assert lowered(expr, {"x": X, "t": np.asarray(9.0)}).tolist() == [X.sum(), 3.0, 2.5]


def test_shared_nodes_are_traced_once() -> None:
    """Also between expressions that one `Lowering` has seen."""
    x = Name("x", Kind.DECISION, shape=(3,))
    shared = call("exp", x)
    loss, constraint = call("sum", call("mul", shared, shared)), call("sub", call("max", shared), 1)
    tracer = Tracer("test")

    def traced(value):
        lower = Lowering(tracer, {"x": value})
        return lower(loss), lower(constraint)

    function = tracer.function("both", traced, [("x", Type(DType.FLOAT, (3,)))])
    assert [e.op for e in function.body.equations].count("exp") == 1


def test_numbers_are_literals_and_arrays_are_constants() -> None:
    x = Name("x", Kind.DECISION, shape=(2,))
    expr = call("add", call("mul", 4, x), np.array([1.0, 2.0]))
    tracer = Tracer("test")
    tracer.function("f", lambda v: Lowering(tracer, {"x": v})(expr), [("x", Type(DType.FLOAT, (2,)))])
    assert [g.value.tolist() for g in tracer.constants] == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("atom", "at", "expected"),
    [
        ("logistic", [-1000.0, 0.0, 1000.0], [0.0, np.log(2), 1000.0]),
        ("entr", [0.0, 1.0, np.e], [0.0, 0.0, -np.e]),
        ("huber", [-1e200, 0.5, 2.0], [2e200, 0.25, 3.0]),
    ],
)
def test_stable_at_the_ends(atom: str, at: list[float], expected: list[float]) -> None:
    assert np.allclose(evaluate(call(atom, constant(np.array(at))), {}), expected, rtol=1e-15)


def test_log_sum_exp_does_not_overflow() -> None:
    x = Name("x", Kind.DECISION, shape=(2, 2))
    at = {"x": np.array([[1000.0, 1000.0], [-1000.0, -1001.0]])}
    assert evaluate(call("log_sum_exp", x), at) == pytest.approx(1000 + np.log(2))
    rows = evaluate(call("log_sum_exp", x, axis=1), at)
    assert np.allclose(rows, [1000 + np.log(2), -1000 + np.log1p(np.exp(-1))])


def test_relative_entropy_is_zero_at_zero() -> None:
    for atom, expected in (("rel_entr", [0.0, 0.0]), ("kl_div", [2.0, 0.0])):
        found = evaluate(call(atom, np.array([0.0, 1.0]), np.array([2.0, 1.0])), {})
        assert found.tolist() == expected
