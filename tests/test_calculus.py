"""Derivatives against central differences at smooth points, against closed forms, and as they are written."""

from __future__ import annotations

import numpy as np
import pytest
from atom_cases import CASES, Case, each_case

import oco
from oco.compiler.problem.calculus import gradient, hessian_vector, vector_jacobian
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.jacobians import jacobian
from oco.dsl.build import array, call, index
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, Kind, Name, Slice, constant, walk
from oco.dsl.text.printer import print_expr

STEP = 1e-6


def decision(name: str, *shape: int) -> Name:
    return Name(name, Kind.DECISION, shape=shape)


def stream(name: str, *shape: int, integer: bool = False) -> Name:
    return Name(name, Kind.STREAM, shape=shape, integer=integer)


def differences(expr: Expr, at: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Central differences of every entry of expr: shape expr.shape + decision.shape."""
    x = np.asarray(at[name], dtype=float)
    found = np.zeros(np.shape(evaluate(expr, at)) + x.shape)
    for i in np.ndindex(*x.shape):
        ahead, behind = x.copy(), x.copy()
        ahead[i] += STEP
        behind[i] -= STEP
        found[(..., *i)] = (evaluate(expr, at | {name: ahead}) - evaluate(expr, at | {name: behind})) / (2 * STEP)
    return found


def close(found: np.ndarray, expected: np.ndarray, tolerance: float = 2e-7) -> None:
    assert found.shape == expected.shape
    assert np.max(np.abs(found - expected), initial=0) <= tolerance * (1 + np.max(np.abs(expected), initial=0))


# ---- every atom


@each_case(CASES)
def test_derivatives_of_every_atom(case: Case) -> None:
    """<weights, atom> towards each argument. Random points are away from kinks by far more than the step."""
    rng = np.random.default_rng(4)
    expr, at = case.call(), case.draw(rng)
    weights = rng.normal(size=expr.shape)
    found = vector_jacobian(expr, constant(weights), case.boxes)
    for name in case.boxes:
        expected = np.tensordot(weights, differences(expr, at, name), axes=weights.ndim)
        close(np.broadcast_to(evaluate(found[name], at), expected.shape), expected)


@each_case(CASES)
def test_jacobians_of_every_atom(case: Case) -> None:
    at = case.draw(np.random.default_rng(5))
    expr = case.call()
    found = jacobian(expr, case.boxes)
    for name in case.boxes:
        expected = differences(expr, at, name)
        close(np.broadcast_to(evaluate(found[name], at), expected.shape), expected)


@pytest.mark.parametrize(
    "text",
    [
        "sum(exp(x[0, 1] * [1, 2, 3]))",
        "sum_squares(x[[0, 2, 2], [1, 3, 3]])",
        "sum(x[[0, 2, 2], [1, 3, 3]] ** 3)",
        "exp(sum(x[[1, 1, 0], :]) / 9)",
        "sum(exp(x[:, 2]))",
        "log_sum_exp(x[[2, 0, 2], [0, 0, 3]])",
        "sum((x[1] + [[1, 2, 3, 4], [5, 6, 7, 8]]) ** 3)",
        "sum(square(sum(x[[0, 1, 0], [1, 1, 2]]) + x))",
    ],
)
def test_hessians_written_out_of_gathers_and_broadcasts(text: str) -> None:
    """The Hessian as a matrix of expressions, against differences of the gradient."""
    model = oco.parse(
        f"model m\nhorizon T = 9\ndecision x[3, 4] in box(0.5, 2)\nstream c[3] in [0, 1]\nminimize {text} + sum(c)\n"
    )
    first = gradient(canonical(model).objective, ("x",))["x"]
    at = {"x": np.random.default_rng(8).uniform(0.5, 2, (3, 4)), "c": np.zeros(3)}
    found = np.asarray(evaluate(jacobian(first, ("x",))["x"], at))
    close(np.broadcast_to(found, (3, 4, 3, 4)), differences(first, at, "x"), 2e-6)


SMOOTH = [c for c in CASES if c.atom not in ("nuclear_norm", "sigma_max") and len(c.boxes) == 1]


@each_case(SMOOTH)
def test_second_derivatives_of_every_atom(case: Case) -> None:
    """The Hessian times a direction, against differences of the gradient."""
    rng = np.random.default_rng(6)
    expr, at = case.call(), case.draw(rng)
    scalar = call("sum", call("mul", rng.normal(size=expr.shape), expr)) if expr.shape else expr
    ((name, (shape, _)),) = case.boxes.items()
    direction = rng.normal(size=shape)
    first = gradient(scalar, (name,))[name]
    found = hessian_vector(scalar, {name: constant(direction)})[name]
    expected = np.tensordot(differences(first, at, name), direction, axes=direction.ndim)
    close(np.broadcast_to(evaluate(found, at), shape), np.broadcast_to(expected, shape), 2e-6)


# ---- kinks


@pytest.mark.parametrize(
    ("atom", "at", "expected"),
    [
        ("pos", [-1.0, 0.0, 2.0], [0.0, 0.0, 1.0]),
        ("neg", [-1.0, 0.0, 2.0], [-1.0, 0.0, 0.0]),
        ("abs", [-1.0, 0.0, 2.0], [-1.0, 0.0, 1.0]),
        ("hinge", [0.0, 1.0, 2.0], [-1.0, 0.0, 0.0]),
        ("max", [2.0, 0.0, 2.0], [0.5, 0.0, 0.5]),
        ("min", [2.0, 0.0, 2.0], [0.0, 1.0, 0.0]),
        ("norm2", [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ("norm_inf", [-3.0, 1.0, 0.0], [-1.0, 0.0, 0.0]),
    ],
)
def test_subgradients_at_kinks(atom: str, at: list[float], expected: list[float]) -> None:
    x = decision("x", 3)
    expr = call(atom, x)
    scalar = call("sum", expr) if expr.shape else expr
    assert evaluate(gradient(scalar, ("x",))["x"], {"x": at}).tolist() == expected


def test_an_extreme_that_is_not_attained_hides_an_infinite_slope() -> None:
    """sqrt(min(q, d)) at d = 0 < q does not depend on q, though the root's slope is infinite there."""
    loss = call("sum", call("sqrt", call("minimum", decision("q", 2), stream("d", 2))))
    with np.errstate(divide="ignore"):
        found = evaluate(gradient(loss, ("q",))["q"], {"q": [3.0, 1.0], "d": [0.0, 4.0]})
    assert found.tolist() == [0.0, 0.5]


def test_ties_of_maximum_go_to_the_first() -> None:
    x, y = decision("x", 2), decision("y", 2)
    found = gradient(call("sum", call("maximum", x, y)), ("x", "y"))
    at = {"x": [1.0, 0.0], "y": [1.0, 3.0]}
    assert evaluate(found["x"], at).tolist() == [1.0, 0.0]
    assert evaluate(found["y"], at).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("atom", ["nuclear_norm", "sigma_max"])
def test_subgradients_of_matrix_norms_support_them(atom: str) -> None:
    """f(y) >= f(x) + <g, y - x>, also at matrices of low rank."""
    rng = np.random.default_rng(8)
    x = decision("X", 4, 3)
    expr = call(atom, x)
    g = gradient(expr, ("X",))["X"]
    low = np.outer(rng.normal(size=4), rng.normal(size=3))
    for at in (low, np.zeros((4, 3)), rng.normal(size=(4, 3))):
        slope = evaluate(g, {"X": at})
        for _ in range(50):
            other = rng.normal(size=(4, 3))
            below = evaluate(expr, {"X": at}) + np.sum(slope * (other - at))
            assert evaluate(expr, {"X": other}) >= below - 1e-9


# ---- the models of the examples: gradients as a person would write them

x100, price, region = decision("x", 100), stream("price", 10), stream("region", 100, integer=True)
w, relative = decision("w", 30), stream("relative", 30)
z, H, y = decision("z", 10), stream("H", 4, 10), stream("y", 4)
v, theta = decision("v", 2), stream("theta", 2)
X, row, col, rating = (
    decision("X", 50, 40),
    *(stream(n, 100, integer=True) for n in ("row", "col")),
    stream("rating", 100),
)
user, item, grade = stream("user", integer=True), stream("item", integer=True), stream("grade")

WRITTEN = [
    (call("sum", call("mul", index(price, (region,)), x100)), "x", "price[region]"),
    (call("minus", call("log", call("matmul", relative, w))), "w", "-relative / (relative @ w)"),
    (call("mul", 0.5, call("sum_squares", call("sub", call("matmul", H, z), y))), "z", "H.T @ (H @ z - y)"),
    (call("sum_squares", call("sub", v, theta)), "v", "2 * (v - theta)"),
    (
        call("sub", stream("jobs"), call("mul", 4, call("sum", call("log", call("add", 1, call("mul", 4, x100)))))),
        "x",
        "-16 / (1 + 4 * x)",
    ),
]


@pytest.mark.parametrize(("expr", "name", "text"), WRITTEN, ids=[t for _, _, t in WRITTEN])
def test_gradients_read_as_a_person_writes_them(expr: Expr, name: str, text: str) -> None:
    said = print_expr(gradient(expr, (name,))[name]).replace(".0", "")
    assert said.replace("(", "").replace(")", "") == text.replace("(", "").replace(")", "")


def test_second_derivatives_gather_their_numbers() -> None:
    service = call("mul", -4, call("sum", call("log", call("add", 1, call("mul", 4, x100)))))
    weighted = call("mul", stream("weight"), service)
    along = constant(np.ones(100))
    said = print_expr(hessian_vector(weighted, {"x": along})["x"]).replace(".0", "")
    assert said == "64 * weight / square(1 + 4 * x)"


def test_the_gradient_of_a_gather_is_a_scatter() -> None:
    rng = np.random.default_rng(9)
    loss = call("mul", 0.5, call("sum_squares", call("sub", index(X, (row, col)), rating)))
    at = {
        "X": rng.normal(size=(50, 40)),
        "row": rng.integers(50, size=100),
        "col": rng.integers(40, size=100),
        "rating": rng.normal(size=100),
    }
    expected = np.zeros((50, 40))
    np.add.at(expected, (at["row"], at["col"]), at["X"][at["row"], at["col"]] - at["rating"])
    close(evaluate(gradient(loss, ("X",))["X"], at), expected, 1e-14)
    one = call("mul", 0.5, call("pow", call("sub", index(X, (user, item)), grade), 2))
    found = evaluate(gradient(one, ("X",))["X"], at | {"user": 3, "item": 4, "grade": 0.5})
    assert np.flatnonzero(found).tolist() == [3 * 40 + 4]
    assert found[3, 4] == at["X"][3, 4] - 0.5


def test_constraints_of_the_data_centre() -> None:
    """pacing: group @ (use * mu) - beta * sum(use * mu), with the Jacobian group * use - beta use'."""
    rng = np.random.default_rng(10)
    mu, use, group, beta = decision("mu", 50), stream("use", 50), stream("group", 4, 50), stream("beta", 4)
    power = call("mul", use, mu)
    pacing = call("sub", call("matmul", group, power), call("mul", beta, call("sum", power)))
    at = {"mu": rng.random(50), "use": rng.random(50), "group": rng.integers(2, size=(4, 50)), "beta": rng.random(4)}
    expected = at["group"] * at["use"] - np.outer(at["beta"], at["use"])
    close(evaluate(jacobian(pacing, ("mu",))["mu"], at), expected, 1e-14)
    weights = rng.normal(size=4)
    close(evaluate(vector_jacobian(pacing, constant(weights), ("mu",))["mu"], at), weights @ expected, 1e-14)


def test_slices_arrays_and_shared_nodes() -> None:
    rng = np.random.default_rng(11)
    x = decision("x", 6)
    shared = call("exp", index(x, (Slice(constant(1), constant(4)),)))
    parts = array((call("sum", shared), index(x, (constant(0),)), call("dot", shared, shared)))
    expr = call("log_sum_exp", parts)
    at = {"x": rng.normal(size=6)}
    close(evaluate(gradient(expr, ("x",))["x"], at), differences(expr, at, "x"))
    close(evaluate(jacobian(parts, ("x",))["x"], at), differences(parts, at, "x"))


def test_two_decisions_and_one_that_does_not_occur() -> None:
    p, q = decision("p", 3), decision("q", 3)
    found = gradient(call("dot", p, call("square", q)), ("p", "q", "r"))
    at = {"p": np.array([1.0, 2, 3]), "q": np.array([4.0, 5, 6])}
    assert evaluate(found["p"], at).tolist() == [16, 25, 36]
    assert evaluate(found["q"], at).tolist() == [8, 20, 36]
    assert evaluate(found["r"], at | {"r": [0, 0]}).tolist() == 0


@pytest.mark.parametrize("shapes", [((3,), ()), ((2, 3), (3,)), ((2, 1), (3,)), ((1,), (3,))], ids=str)
def test_what_was_stretched_is_summed_back(shapes: tuple) -> None:
    rng = np.random.default_rng(12)
    a, b = (decision(n, *s) for n, s in zip("ab", shapes))
    at = {n: rng.normal(size=s) for n, s in zip("ab", shapes)}
    expr = call("sum", call("exp", call("sub", call("mul", a, b), b)))
    for name, found in gradient(expr, ("a", "b")).items():
        close(evaluate(found, at), differences(expr, at, name))


def test_mixed_second_derivatives() -> None:
    """f = sum(exp(A x) y): the Hessian towards (x, y) is not block diagonal."""
    rng = np.random.default_rng(13)
    x, y, matrix = decision("x", 3), decision("y", 2), rng.normal(size=(2, 3))
    expr = call("dot", call("exp", call("matmul", matrix, x)), y)
    at = {"x": rng.normal(size=3), "y": rng.normal(size=2)}
    along = {"x": rng.normal(size=3), "y": rng.normal(size=2)}
    e = np.exp(matrix @ at["x"])
    found = hessian_vector(expr, {n: constant(d) for n, d in along.items()})
    close(evaluate(found["x"], at), matrix.T @ (e * at["y"] * (matrix @ along["x"]) + e * along["y"]), 1e-13)
    close(evaluate(found["y"], at), e * (matrix @ along["x"]), 1e-13)


@pytest.mark.parametrize("atom", ["maximum", "minimum"])
def test_the_gradient_of_a_chain_of_extremes_is_linear_in_its_length(atom: str) -> None:
    def size(length: int) -> int:
        chain: Expr = decision("x0")
        for k in range(1, length):
            chain = call(atom, chain, decision(f"x{k}"))
        slopes = gradient(call("square", chain), [f"x{k}" for k in range(length)])
        return len({id(node) for slope in slopes.values() for node in walk(slope)})

    assert size(200) <= 2.1 * size(100)


def test_the_size_of_a_gradient_is_linear_in_the_expression() -> None:
    """A chain of shared squares: reverse accumulation visits each node once."""
    sizes = []
    for length in (50, 100, 200):
        expr: Expr = decision("x")
        for _ in range(length):
            expr = call("sub", call("mul", expr, expr), 0.5)
        found = gradient(expr, ("x",))["x"]
        assert np.isfinite(evaluate(found, {"x": 0.3}))
        sizes.append(sum(1 for _ in walk(found)))
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


def test_the_gradient_of_many_terms_over_arrays_is_no_deep_chain():
    """300 slices of one decision each give an array: added one after another they would nest 300 deep."""
    terms = " + ".join(f"sum_squares(x[{k}:{k + 3}])" for k in range(300))
    model = oco.parse(f"model m\nhorizon T = 9\ndecision x[310] in box(0, 1)\nminimize {terms}\n")
    (slope,) = gradient(canonical(model).objective, ["x"]).values()
    depth: dict[int, int] = {}
    for node in walk(slope):
        depth[id(node)] = 1 + max((depth[id(c)] for c in node.children), default=0)
    x = np.linspace(0, 1, 310)
    count = np.array([len([k for k in range(300) if k <= i < k + 3]) for i in range(310)])
    assert depth[id(slope)] < 40
    np.testing.assert_allclose(evaluate(slope, {"x": x}), 2 * count * x, rtol=1e-12)
