"""Penalized steps under constraints that are neither affine nor separable over a box, each against CVXPY from the same state."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from driving import Run, plan_of, situation, solve
from thorough import corners, thorough

from oco.compiler.problem.canonical import canonical
from oco.compiler.selection.choice import named
from oco.compiler.selection.judging import judge
from oco.compiler.selection.verdicts import Applicability, Verdict
from oco.dsl.load import parse

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Steps:
    """A model and what CVXPY needs of it: constraints g and the domain over a variable, values of g, the domain's diameter."""

    text: str
    shape: tuple[int, ...]
    draw: Callable[[np.random.Generator], dict[str, Array]]
    convex: Callable[[dict[str, Array], cp.Variable], list[cp.Expression]]
    values: Callable[[dict[str, Array], Array], list[float]]
    domain: Callable[[cp.Variable], list[cp.Constraint]]
    diameter: float
    rounds: int = 12


ELLIPSES = Steps(
    """
model ellipses
horizon T = 300
decision x[4] in {domain}
stream c[4] in [-2, 2]
stream A[3, 4] in [-1, 1]
stream b[4] in [-1, 1]
minimize c @ x
subject to
    ellipse: sum_squares(A @ x) <= 0.4 each round
    soft: log_sum_exp(x + b) <= 1.3 each round
""",
    (4,),
    lambda rng: {"c": rng.uniform(-2, 2, 4), "A": rng.uniform(-1, 1, (3, 4)), "b": rng.uniform(-1, 1, 4)},
    lambda d, x: [cp.sum_squares(d["A"] @ x) - 0.4, cp.log_sum_exp(x + d["b"]) - 1.3],
    lambda d, x: [((d["A"] @ x) ** 2).sum() - 0.4, np.log(np.exp(x + d["b"]).sum()) - 1.3],
    lambda x: [],
    0.0,
)
DOMAINS: dict[str, tuple[str, Callable[[cp.Variable], list[cp.Constraint]], float]] = {
    "box": ("box(-1, 1)", lambda x: [x >= -1, x <= 1], 4.0),
    "ball": ("ball(1.5)", lambda x: [cp.norm(x) <= 1.5], 3.0),
    "simplex": ("simplex(2)", lambda x: [x >= 0, cp.sum(x) == 2], 2 * math.sqrt(2)),
    "cut ball": (
        "ball(1.5) with x[0] + x[1] <= 0.2, sum(x) == 0.3",
        lambda x: [cp.norm(x) <= 1.5, x[0] + x[1] <= 0.2, cp.sum(x) == 0.3],
        2 * math.sqrt(1.5**2 - 0.15**2),
    ),
}
SEPARABLE = """
model separable
horizon T = 300
decision x[4] in {domain}
stream c[4] in [-2, 2]
stream w[4] in [0.5, 2]
minimize c @ x
subject to
    energy: w @ square(x) + 0.2 * sum(exp(x)) <= {level} each round
"""
NUCLEAR = """
model matrix
horizon T = 300
decision X[3, 4] in nuclear_ball(2)
stream c[3, 4] in [-2, 2]
stream G[3, 4] in [-1, 1]
minimize sum(c * X)
subject to
    flat: sum_squares(X) + sum(G * X) <= 0.8 each round
"""

FUNCTIONS = ELLIPSES.draw, ELLIPSES.convex, ELLIPSES.values
CASES = {
    **{
        f"coupled-{name}": Steps(
            ELLIPSES.text.format(domain=text), (4,), *FUNCTIONS, domain, diameter, 4 if name == "cut ball" else 12
        )
        for name, (text, domain, diameter) in DOMAINS.items()
    },
    **{
        f"separable-{name}": Steps(
            SEPARABLE.format(domain=DOMAINS[name][0], level=level),
            (4,),
            lambda rng: {"c": rng.uniform(-2, 2, 4), "w": rng.uniform(0.5, 2, 4)},
            lambda d, x, level=level: [cp.sum(cp.multiply(d["w"], cp.square(x))) + 0.2 * cp.sum(cp.exp(x)) - level],
            lambda d, x, level=level: [d["w"] @ x**2 + 0.2 * np.exp(x).sum() - level],
            *DOMAINS[name][1:],
        )
        for name, level in (("ball", 1.6), ("simplex", 2.8))
    },
    "affine-nuclear": Steps(
        NUCLEAR.replace("sum_squares(X) + sum(G * X) <= 0.8", "4 * sum(G * X) <= 0.2"),
        (3, 4),
        lambda rng: {"c": rng.uniform(-2, 2, (3, 4)), "G": rng.uniform(-1, 1, (3, 4))},
        lambda d, x: [4 * cp.sum(cp.multiply(d["G"], x)) - 0.2],
        lambda d, x: [4 * (d["G"] * x).sum() - 0.2],
        lambda x: [cp.normNuc(x) <= 2],
        4.0,
    ),
    "nuclear": Steps(
        NUCLEAR,
        (3, 4),
        lambda rng: {"c": rng.uniform(-2, 2, (3, 4)), "G": rng.uniform(-1, 1, (3, 4))},
        lambda d, x: [cp.sum_squares(x) + cp.sum(cp.multiply(d["G"], x)) - 0.8],
        lambda d, x: [(x**2).sum() + (d["G"] * x).sum() - 0.8],
        lambda x: [cp.normNuc(x) <= 2],
        4.0,
    ),
}


@pytest.mark.parametrize("name", corners(CASES, ["coupled-ball", "separable-simplex", "affine-nuclear", "nuclear"]))
def test_steps_equal_those_of_cvxpy(name: str) -> None:
    """Rounds of coldq; the objective of our step is compared too, since solvers are the less exact where curvature is small."""
    case, rng = CASES[name], np.random.default_rng(3)
    run = Run(plan_of(case.text, "coldq", {"alpha": "sqrt(t) / 4", "gamma": 6}))
    active = 0
    for t in range(1, case.rounds + 1):
        data = case.draw(rng)
        y = np.array(run.decisions[0])
        run.play(data)
        x, Q, alpha = np.array(run.decisions[0]), run.value("Q"), math.sqrt(t) / 4
        variable = cp.Variable(case.shape)
        cost = cp.sum(cp.multiply(data["c"], variable - y)) + alpha * cp.sum_squares(variable - y)
        cost += sum(q * cp.pos(g) for q, g in zip(Q, case.convex(data, variable)))
        solve(cost, case.domain(variable))

        def value(z: Array, data: Any = data, y: Array = y, Q: Array = Q, alpha: float = alpha) -> float:
            penalty = sum(q * max(g, 0) for q, g in zip(Q, case.values(data, z)))
            return float((data["c"] * (z - y)).sum() + alpha * ((z - y) ** 2).sum() + penalty)

        # Where the solver's decision is further from ours, it is worse by what alpha-strong convexity says of the minimizer.
        apart, worse = float(np.linalg.norm(x - variable.value)), value(variable.value) - value(x)
        assert apart <= 1e-6 * case.diameter or (worse >= 0.99 * alpha * apart**2 and apart <= 1e-4 * case.diameter)
        active += any(abs(g) <= 1e-7 for g in case.values(data, x))
    assert active >= 3  # constraints that hold with equality, between the ends of their multipliers


HUBER = "ellipse: sum(huber(A @ x)) <= 0.4"


def with_ellipse(line: str) -> str:
    """The ellipses in a box with another constraint in place of the first, and x = 0 satisfying every round."""
    text = ELLIPSES.text.format(domain="box(-1, 1)").replace("<= 1.3", "<= 3")
    return text.replace("ellipse: sum_squares(A @ x) <= 0.4", line)


@pytest.mark.parametrize(
    ("kinked", "fix", "mended"),
    [
        ("ellipse: norm2(A @ x) <= 0.6", "`sum_squares(A @ x)`", "ellipse: sum_squares(A @ x) <= 0.36"),
        thorough("ellipse: norm2(A @ x) + abs(x[0]) <= 0.6", "`sum_squares(A @ x)`", "ellipse: norm1(A @ x) <= 0.36"),
        ("ellipse: square(pos(sum(x)) + 1) <= 1.4", "pieces of `pos(sum(x))`", "ellipse: square(pos(sum(x))) <= 0.03"),
    ],
)
def test_kinks_are_refused_with_a_way_out(kinked: str, fix: str, mended: str) -> None:
    def verdict(line: str) -> Verdict:
        return judge(named("coldq"), situation(with_ellipse(line)))

    refused = verdict(kinked)
    assert refused.applicability is Applicability.REFUSED and [
        r for r in refused.reasons if "`ellipse` has kinks in" in r
    ]
    assert fix in refused.fix and verdict(mended).applicability is not Applicability.REFUSED


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("many", "fewer"),
    [
        ("ellipse: norm1(outer(ones(50), A @ x)) <= 40", HUBER),
        ("ellipse: norm_inf(outer(ones(50), A @ x)) <= 1", "ellipse: norm_inf(A @ x) <= 1"),
    ],
)
def test_many_pieces_of_kinks_are_for_who_asks_for_the_algorithm(many: str, fewer: str) -> None:
    refused = judge(named("coldq"), situation(with_ellipse(many)))
    assert "300 pieces of kinks in `ellipse`, more than 256" in refused.reasons[0]
    assert "smooth the kinks" in refused.fix and "by its name" in refused.fix
    assert judge(named("coldq"), situation(with_ellipse(fewer))).applicability is not Applicability.REFUSED


PIECEWISE: dict[str, Callable[[Array, cp.Variable], cp.Expression]] = {
    HUBER: lambda A, v: cp.sum(cp.huber(A @ v)) - 0.4,
    "ellipse: square(pos(sum(A @ x))) <= 0.1": lambda A, v: cp.square(cp.pos(cp.sum(A @ v))) - 0.1,
    "ellipse: norm2(A @ x)**2 + sum(hinge(1 + A @ x)**2) <= 0.4": lambda A, v: (
        cp.sum_squares(A @ v) + cp.sum_squares(cp.neg(A @ v)) - 0.4
    ),
}


@pytest.mark.parametrize("line", corners(PIECEWISE, [HUBER]))
def test_the_step_under_pieces_that_meet_smoothly_is_solved(line: str) -> None:
    """12 steps from the learner's own state against CVXPY: there is a second derivative almost everywhere, which is enough."""
    rng = np.random.default_rng(5)
    run, active = Run(plan_of(with_ellipse(line), "coldq", {"alpha": "sqrt(t) / 4", "gamma": 6})), 0
    for t in range(1, 13):
        data, y = ELLIPSES.draw(rng), np.array(run.decisions[0])
        run.play(data)
        x, v, alpha = np.array(run.decisions[0]), cp.Variable(4), math.sqrt(t) / 4
        g = [PIECEWISE[line](data["A"], v), cp.log_sum_exp(v + data["b"]) - 3]
        cost = data["c"] @ (v - y) + alpha * cp.sum_squares(v - y)
        solve(cost + sum(q * cp.pos(h) for q, h in zip(run.value("Q"), g)), [v >= -1, v <= 1])
        assert np.linalg.norm(x - v.value) <= 1e-6 * 4
        active += abs(float(g[0].value)) <= 1e-5
    assert active >= 3


@pytest.mark.parametrize(
    ("domain", "line", "words", "rank"),
    [
        ("box(-1, 1)", "sum(x) + s <= 0", "each with a projection onto the domain and its derivative", 0),
        ("box(-1, 1)", "sum_squares(x) + s <= 0", "each with 4 equations in one unknown", 0),
        ("ball(1)", "sum_squares(x) + s <= 0", "solves systems of 4 unknowns", 1),
        ("box(-1, 1)", "norm1(x) + s <= 0", "each with 4 equations in one unknown", 0),
        (
            "ball(1)",
            "norm1(x) + s <= 0",
            "4 levels above kinks of 8 pieces, each with a few Newton steps in 9 multipliers",
            1,
        ),
        ("ball(1)", "max(x) + sum_squares(x) + s <= 0", "1 level above kinks of 4 pieces", 2),
    ],
)
def test_the_facts_say_what_a_penalized_step_costs(domain: str, line: str, words: str, rank: int) -> None:
    """As the program has it: systems of the decision's size are solved where the facts say so, and nowhere else; the tie rule knows."""
    text = f"model m\nhorizon T = 100\ndecision x[4] in {domain}\nstream s in [-1, 0]\nminimize sum(x)\n"
    text += f"subject to\n    u: {line} each round\n"
    plan = plan_of(text, "coldq")
    assert words in plan.facts["domain.penalized_step"].value
    assert bool(re.search(r"float64\[[45]\] = solve\(", str(plan.program))) == ("unknowns" in words or rank == 2)
    penalized, free = (judge(named(name), situation(text)) for name in ("coldq", "ofw-tvc"))
    assert penalized.cost_rank == penalized.algorithm.cost_rank + rank and free.inner_cost == 0


@pytest.mark.parametrize(
    ("g", "form"), [("sum_squares(A @ x)", "other"), ("sum(A @ square(x))", "separable"), ("A @ x", "affine")]
)
def test_the_form_of_a_constraint_with_a_known_matrix(g: str, form: str) -> None:
    text = f"""
model m
horizon T = 9
decision x[2] in ball(1)
param A[2, 2] = [[1, 2], [0, 1]]
minimize sum(x)
subject to
    u: {g} <= 1 each round
"""
    assert canonical(parse(text)).structure[0] == form
