"""Penalized steps under sums of functions of single entries over a box, in closed form and by Newton's method, against bisection."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from driving import Run, plan_of
from scipy.optimize import brentq
from thorough import one_in, thorough

from oco.compiler.ir.build import trace_program
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.program import DType, Field, Type
from oco.compiler.ir.trace import Tracer
from oco.compiler.lowering.entry_functions import nonlinear_terms
from oco.compiler.lowering.kinked_functions import kinked_functions
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.canonical import Canonical, canonical
from oco.compiler.proximal.noise import most_rounded, rounded
from oco.compiler.proximal.separable_response import SeparableResponse
from oco.compiler.proximal.smooth_response import data_of_constraints
from oco.compiler.selection.plan import compile_plan
from oco.dsl.build import call
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Kind, Name
from oco.dsl.load import parse

Array = np.ndarray[Any, Any]
MODEL = """
model bent
horizon T = 60
decision x[7] in box(0, {width})
stream c[7] in [-3, 3]
stream w[7] in [0, 2]
stream r in [{low}, {high}]
minimize c @ x
subject to
    bent: {g} each round
"""
# A constraint with its derivative in x, the width of the box, and the range of r; one bend an entry.
CLOSED: dict[str, tuple[str, Callable[[Array, Array], Array], float, tuple[float, float]]] = {
    "log": ("r - sum(w * log(1 + 4 * x)) <= 0", lambda x, w: -4 * w / (1 + 4 * x), 10.0, (8, 16)),
    "log1p": ("r <= 2 * sum(log1p(w * x))", lambda x, w: -2 * w / (1 + w * x), 5.0, (6, 12)),
    "square": ("sum(w * square(x - 1)) + 0.5 * sum(x) <= r", lambda x, w: 2 * w * (x - 1) + 0.5, 3.0, (1, 4)),
    "sum_squares": ("sum_squares(x) <= r", lambda x, w: 2 * x, 2.0, (0.5, 2)),
    "power": ("sum(x ** 2) <= r", lambda x, w: 2 * x, 2.0, (0.5, 2)),
    "exp": ("w @ exp(2 - x) <= r", lambda x, w: -w * np.exp(2 - x), 6.0, (1, 9)),
    "entropy": ("r - sum(entr(0.1 + 0.2 * x)) <= 0", lambda x, w: 0.2 * (1 + np.log(0.1 + 0.2 * x)), 2.0, (2.45, 2.56)),
    "sqrt": ("r <= sum(w * sqrt(0.5 + x))", lambda x, w: -w / (2 * np.sqrt(0.5 + x)), 8.0, (5, 11)),
    "inverse": ("sum(w * inv_pos(0.2 + x)) <= r", lambda x, w: -w / (0.2 + x) ** 2, 4.0, (2, 9)),
    "huber": ("sum(huber(x - w, 0.5)) <= r", lambda x, w: 2 * np.clip(x - w, -0.5, 0.5), 2.0, (0.2, 1)),
    "abs": ("norm1(x - 1) <= r", lambda x, w: np.sign(x - 1), 2.0, (0.5, 2)),
    "hinge": ("sum(w * hinge(x)) <= r", lambda x, w: -w * (x < 1), 2.0, (0.5, 2)),
    "maximum": ("sum(maximum(2 * x - w, 0.25)) <= r", lambda x, w: 2.0 * (2 * x - w > 0.25), 2.0, (2, 9)),
    "kinks": (
        "sum(abs(x - w) + 2 * maximum(0.3 - x, w - 0.5 * x)) + norm1(1 - 2 * x) <= 0.4 * sum(minimum(x, 1)) + r",
        lambda x, w: np.sign(x - w) - np.where(0.3 - x > w - 0.5 * x, 2, 1) + 2 * np.sign(2 * x - 1) - 0.4 * (x < 1),
        2.0,
        (9, 22),
    ),
}
OPEN: dict[str, tuple[str, Callable[[Array, Array], Array], float, tuple[float, float]]] = {
    "logistic": ("sum(w * logistic(x)) <= r", lambda x, w: w / (1 + np.exp(-x)), 3.0, (3, 9)),
    "two bends": ("sum(exp(x)) + w @ square(x) <= r", lambda x, w: np.exp(x) + 2 * w * x, 2.0, (8, 12)),
}


def text(case: tuple[Any, ...]) -> str:
    return MODEL.format(g=case[0], width=case[2], low=case[3][0], high=case[3][1])


def terms_of(problem: Canonical) -> Any:
    exprs, decisions = [c.expr for c in problem.inequalities], tuple(b.name for b in problem.blocks)
    return nonlinear_terms(exprs, decisions) or kinked_functions(exprs, decisions)


def drawn(rng: np.random.Generator, case: tuple[Any, ...], t: int) -> dict[str, Any]:
    """A round whose costs pull against the constraint; some weights are zero in every fifth."""
    w = rng.uniform(0, 2, 7) if t % 5 else np.where(rng.random(7) < 0.5, 0.0, 1.0)
    uphill = np.sign(case[1](np.full(7, 0.9 * case[2]), np.ones(7)))
    return {"c": np.where(uphill > 0, -1.0, 1.0) * rng.uniform(0, 3, 7), "w": w, "r": rng.uniform(*case[3])}


def halved(f: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Where increasing functions change their sign, or the end where they do not."""
    for _ in range(56):
        middle = (low + high) / 2
        low, high = np.where(f(middle) < 0, middle, low), np.where(f(middle) < 0, high, middle)
    return (low + high) / 2


@pytest.mark.parametrize("name", [*one_in(3, CLOSED), *one_in(2, OPEN)])
def test_steps_equal_those_of_bisection(name: str) -> None:
    """The condition of optimality of every entry, by bisection, within a search for the root that is the multiplier."""
    case = (CLOSED | OPEN)[name]
    slope, width, rng = case[1], case[2], np.random.default_rng(5)
    plan = plan_of(text(case), "coldq", {"alpha": "sqrt(t) / 4", "gamma": 60})
    run, loose, g = Run(plan), 0, plan.canonical.inequalities[0].expr
    for t in range(1, 9):
        y, data, alpha = run.decisions[0], drawn(rng, case, t), math.sqrt(t) / 4
        run.play(data)
        Q = float(run.value("Q")[0])

        def decision(lam: float, y: Array = y, data: Any = data, alpha: float = alpha) -> Array:
            def equation(x: Array) -> Array:
                return data["c"] + 2 * alpha * (x - y) + lam * slope(x, data["w"])

            return halved(equation, np.zeros(7), np.full(7, width))

        def slack(lam: float, data: Any = data) -> float:
            return -float(evaluate(g, {"x": decision(lam), **data}))

        ends = slack(0.0), slack(Q)
        lam = 0.0 if ends[0] >= 0 else Q if ends[1] <= 0 else brentq(slack, 0.0, Q, xtol=1e-14, rtol=1e-15)
        loose += 1e-9 < lam < Q - 1e-9
        assert np.abs(run.decisions[0] - decision(lam)).max() <= 1e-9 * width
    assert loose >= 2, "the constraint decides"


MIXED = """
model mixed
horizon T = 60
decision x[4] in box(0, 10)
decision y[3] in box(-1, 3)
decision z in box(-2, 2)
stream c[4] in [-3, 3]
stream w[3] in [0, 2]
stream r in [0, 8]
minimize c @ x + c[0:3] @ y - 2 * z
subject to
    first: r - sum(log(1 + 4 * x)) + w @ square(y - 1) + 0.5 * sum(x) <= 0 each round
    second: 0.3 * w @ square(y - 1) + huber(z, 0.5) - sum(y) <= 1.5 each round
"""


@pytest.mark.parametrize("name", CLOSED)
def test_steps_have_closed_forms(name: str) -> None:
    assert terms_of(canonical(parse(text(CLOSED[name])))) is not None


KINKED = MIXED.replace("sum(log(1 + 4 * x))", "sum(4 * minimum(x, 2) - abs(x - 1))").replace(
    "square(y - 1)", "abs(2 * y - 1)"
)


@pytest.mark.parametrize("text", [MIXED, thorough(KINKED.replace("huber(z, 0.5)", "maximum(z, -z / 2)"))])
def test_closed_forms_equal_newtons_method_in_other_units(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several decisions, each with bends of its own, in the units of the optimal settings."""
    found: list[Array] = []
    problem = canonical(parse(text))
    assert terms_of(problem) is not None
    for closed in (True, False):
        if not closed:
            monkeypatch.setattr(TraceSpec, "entry_functions", None)
        plan = compile_plan(parse(text), algorithm="coldq")
        assert "Q" in [f.name for f in plan.program.state]
        run, rng, path = Run(plan), np.random.default_rng(2), list[Array]()
        for _ in range(15):
            run.play({"c": rng.uniform(-3, 3, 4), "w": rng.uniform(0, 2, 3), "r": rng.uniform(0, 8)})
            path.append(np.concatenate([np.ravel(d) for d in run.decisions]))
        found.append(np.array(path))
    assert np.abs(found[0] - found[1]).max() <= 1e-8
    assert np.ptp(found[0], axis=0).min() > 1e-3


@pytest.mark.parametrize(
    "g",
    [
        OPEN["logistic"][0],
        OPEN["two bends"][0],
        "sum(square(x[0:3])) <= r",
        "sum(log(1 + x) * x) <= r",
        "sum(square(square(x))) <= r",
        "sum(x ** 3) <= r",
    ],
)
def test_what_has_no_closed_form_is_left_to_newtons_method(g: str) -> None:
    source = MODEL.format(g=g, width=2, low=1, high=9)
    assert terms_of(canonical(parse(source))) is None


def test_sums_along_an_axis_bend_along_it() -> None:
    X = Name("X", Kind.DECISION, shape=(2, 3))
    constraint = call("sub", call("norm1", X, axis=0), 1.0)
    bends = nonlinear_terms([constraint], ["X"])
    assert bends is not None and bends.names == ("_bend_X",)
    at = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]])
    found = evaluate(bends.affine[0], {"_bend_X": np.abs(at)})
    np.testing.assert_array_equal(found, evaluate(constraint, {"X": at}))


SMOOTH = [name for name in (*CLOSED, *OPEN) if name not in ("abs", "hinge", "maximum", "kinks")]


@pytest.mark.parametrize("name", SMOOTH)
def test_no_decision_rounds_a_constraint_more_than_the_steepest_slopes_do(name: str) -> None:
    """`most_rounded` is at least the share of `rounded` at any decision and multiplier, with gradients that are known otherwise."""
    case = (CLOSED | OPEN)[name]
    slope, width, rng, problem = case[1], case[2], np.random.default_rng(8), canonical(parse(text(case)))
    t, spec = Tracer("noise"), TraceSpec(problem, {}, problem.structure[0], problem.horizon)

    def update(state: Any, seen: Any, drawn: Any) -> Any:
        p, x = Problem(t, spec, seen, state["round"]), Point((seen["x_t"],))
        parts = (Point((seen["y"],)), Point((seen["c"],)), seen["alpha"])
        response = SeparableResponse(p, *parts, *data_of_constraints(p))
        most = most_rounded(p, response, seen["Q"])
        assert most is not None
        return {"x": state["x"], "most": most, "rounded": rounded(p, response, seen["lam"], x)}

    number, vector = Type(DType.FLOAT, (1,)), Type(DType.FLOAT, (7,))
    given = {"x_t": vector, "y": vector, "alpha": Type(DType.FLOAT), "Q": number, "lam": number}
    program = trace_program(
        t,
        decision=[Field("x", vector)],
        feedback=[*spec.fields(), *(Field(n, made) for n, made in given.items())],
        init=lambda start: {"x": start["x"], "most": t.zeros((1,)), "rounded": t.zeros((1,))},
        decide=lambda state, drawn: {"x": state["x"]},
        update=update,
    )
    for round_ in range(20):
        data, x, Q = drawn(rng, case, round_), rng.uniform(0, width, 7), rng.uniform(0, 60)
        lam, alpha = rng.uniform(0, Q), rng.uniform(0.1, 3)
        seen = {**data, "x_t": x, "y": x, "alpha": alpha, "Q": np.array([Q]), "lam": np.array([lam])}
        state = {"round": 1, "x": x, "most": np.zeros(1), "rounded": np.zeros(1)}
        args = [state[f.name] for f in program.state] + [seen[f.name] for f in program.feedback]
        found = dict(zip((f.name for f in program.state), interpret(program, "update", args)))
        steep = abs(slope(x, data["w"]))
        expected = steep @ (width + (abs(data["c"]) + lam * steep) / (2 * alpha))
        assert found["rounded"][0] == pytest.approx(expected, rel=1e-12)
        assert found["most"][0] >= 1e-14 * expected * (1 - 1e-12)
