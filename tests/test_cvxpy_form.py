"""CVXPY as the second opinion: every atom has CVXPY's value, and whatever CVXPY calls convex the table does too."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from atom_cases import CASES, FIXED_CASES, Case, each_case

from oco.compiler.problem.calculus import vector_jacobian
from oco.compiler.problem.cvxpy_form import to_cvxpy
from oco.dsl.atoms import ATOMS, Curvature
from oco.dsl.build import array, call, index
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Kind, Name, Slice, constant
from oco.dsl.intervals import interval, point

every = each_case(CASES)

# CVXPY's rules that do not hold as they stand: it adds x >= 0 silently to powers such as x**3.
SILENT_DOMAIN = {"pow", "power"}


def variable(shape: tuple[int, ...], box: tuple[float, float]) -> cp.Variable:
    return cp.Variable(shape, nonneg=box[0] >= 0) if box[1] > 0 else cp.Variable(shape, nonpos=True)


def twin(case: Case, varying: tuple[str, ...], at: dict[str, np.ndarray]) -> cp.Expression:
    variables = {name: variable(*case.boxes[name]) for name in varying}
    for name, var in variables.items():
        var.value = at[name]
    return to_cvxpy(case.call(), variables, at)


def variations(case: Case) -> list[tuple[str, ...]]:
    """Each argument alone as the variable, and all of them where CVXPY has such an atom."""
    alone = [(name,) for name in case.boxes]
    bilinear = ("mul", "div", "matmul", "dot", "outer", "quad_form")
    return alone if case.atom in bilinear or len(alone) == 1 else [*alone, tuple(case.boxes)]


@every
def test_values_are_those_of_cvxpy(case: Case) -> None:
    rng = np.random.default_rng(0)
    at = case.draw(rng)
    expected = evaluate(case.call(), at)
    for varying in variations(case):
        found = twin(case, varying, at)
        assert found.shape == expected.shape
        assert np.allclose(found.value, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", FIXED_CASES, ids=lambda c: c.name)
def test_fixed_arrays_are_those_of_cvxpy(case: Case) -> None:
    args = [a if isinstance(a, tuple) else int(a) for a in case.args]
    direct = ATOMS[case.atom].cvxpy
    assert direct is not None
    assert np.array_equal(direct(cp, case.call(), *args).value, evaluate(case.call(), {}))


@every
def test_whatever_cvxpy_accepts_is_accepted(case: Case) -> None:
    at = case.draw(np.random.default_rng(0))
    ranges = tuple(interval(*a[1], a[0]) if isinstance(a, tuple) else point(a) for a in case.args)
    for varying in variations(case):
        if case.atom == "pow" and isinstance(case.args[0], float):
            continue
        expression = twin(case, varying, at)
        varies = tuple(f"a{i}" in varying for i in range(len(case.args)))
        fixed = tuple(
            r if v or not isinstance(a, tuple) else point(at[f"a{i}"])
            for i, (r, v, a) in enumerate(zip(ranges, varies, case.args))
        )
        found = ATOMS[case.atom].curvature(case.call(), fixed, varies)
        nonnegative = all(box[0] >= 0 for _, box in case.boxes.values())
        if case.atom in SILENT_DOMAIN and not nonnegative:
            continue
        if expression.is_convex():
            assert found in (Curvature.CONVEX, Curvature.AFFINE), varying
        if expression.is_concave():
            assert found in (Curvature.CONCAVE, Curvature.AFFINE), varying


X = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "items",
    [
        (constant(1),),
        (constant(1), Slice(constant(1), constant(3))),
        (constant([1, 0]), constant([0, 2])),
        (Slice(), constant([0, 1, 1])),
        (Slice(), Slice(None, constant(2)), constant([3, 3])),
    ],
    ids=str,
)
def test_indexing_is_cvxpys(items: tuple) -> None:
    node = index(Name("x", Kind.DECISION, shape=X.shape), items)
    var = cp.Variable(X.shape)
    var.value = X
    assert np.array_equal(to_cvxpy(node, {"x": var}, {}).value, evaluate(node, {"x": X}))


@pytest.mark.parametrize(
    "items", [(constant(1), Slice()), (constant([1, 0, 1]), constant([0, 2, 0])), (Slice(), constant([2, 2]))], ids=str
)
def test_scattering_is_linear_and_has_its_value(items: tuple) -> None:
    """The gradient of <weights(x), x[items]> holds a scatter; broadcasts and reshapes likewise."""
    y = Name("y", Kind.DECISION, shape=X.shape)
    selected = index(y, items)
    back = vector_jacobian(selected, Name("w", Kind.DECISION, shape=selected.shape), ("y",))["y"]
    var = cp.Variable(selected.shape)
    var.value = np.random.default_rng(1).normal(size=selected.shape)
    found = to_cvxpy(back, {"w": var}, {})
    assert found.is_affine()
    assert np.allclose(found.value, evaluate(back, {"w": var.value}), rtol=1e-14)


def test_stretching_and_reshaping_have_their_value() -> None:
    w = Name("w", Kind.DECISION, shape=(3,))
    var = cp.Variable(3)
    var.value = np.array([1.0, 2.0, 3.0])
    for expr in (call("_broadcast", w, shape=(2, 3)), call("_reshape", w, shape=(3, 1))):
        assert np.array_equal(to_cvxpy(expr, {"w": var}, {}).value, evaluate(expr, {"w": var.value}))


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 1), (2, 1), (2, 3)])
@pytest.mark.parametrize("atom", ["power", "huber"])
def test_parameters_of_every_shape_have_the_value_of_their_entries(atom: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    for of_x in ((3,), (2, 3)):
        x, p = rng.uniform(0.1, 3.0, of_x), rng.uniform(1.0, 2.0, shape)
        apply = call(atom, Name("x", Kind.DECISION, shape=of_x), constant(p))
        variable = cp.Variable(of_x, nonneg=True)
        variable.value = x
        form = to_cvxpy(apply, {"x": variable}, {})
        expected = x**p if atom == "power" else np.where(x <= p, x**2, 2 * p * x - p**2)
        assert form.shape == expected.shape and form.is_convex()
        assert np.allclose(form.value, expected, rtol=1e-12, atol=0)


def test_arrays_of_entries_and_streams_as_numbers() -> None:
    x, price = Name("x", Kind.DECISION, shape=(2,)), Name("price", Kind.STREAM, shape=(2,))
    entry = index(x, (constant(0),))
    expr = array((call("mul", index(price, (constant(1),)), entry), call("add", entry, 3), constant(2.5)))
    var = cp.Variable(2)
    var.value = np.array([2.0, 7.0])
    found = to_cvxpy(expr, {"x": var}, {"price": [4.0, 5.0]})
    assert found.value.tolist() == [10.0, 5.0, 2.5]
    assert found.is_affine()


def test_the_round_is_a_number() -> None:
    x, t = Name("x", Kind.DECISION), Name("t", Kind.ROUND)
    var = cp.Variable()
    var.value = 3.0
    assert to_cvxpy(call("div", x, call("sqrt", t)), {"x": var}, {}, t=4.0).value == pytest.approx(1.5)


def test_a_comparator_of_an_example_is_solved() -> None:
    """The best fixed portfolio: the twin's minimum is below the loss of any other weights."""
    rng = np.random.default_rng(5)
    relative = rng.uniform(0.5, 2, 4)
    w = Name("w", Kind.DECISION, shape=(4,))
    loss = call("minus", call("log", call("matmul", Name("relative", Kind.STREAM, shape=(4,)), w)))
    var = cp.Variable(4, nonneg=True)
    problem = cp.Problem(cp.Minimize(to_cvxpy(loss, {"w": var}, {"relative": relative})), [cp.sum(var) == 1])
    problem.solve()
    assert problem.value == pytest.approx(-np.log(relative.max()), abs=1e-6)
