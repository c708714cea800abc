"""Mirror descent against Algorithms 1 and 2 of Wei, Yu & Neely 2020 written out: the steps by CVXPY, the duals by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from driving import Array, Round, Run, solved, trajectory

from oco.compiler.selection.plan import compile_plan
from oco.dsl.load import load, parse

EXAMPLES = Path(__file__).parent.parent / "examples"


@dataclass(frozen=True)
class Case:
    """A model and the same problem by hand. g gives values and gradients of the inequalities, h rows and right sides of the equalities."""

    text: str
    draw: Callable[[np.random.Generator], Round]
    gradient: Callable[[Round, Array], Array]
    g: Callable[[Round, Array], tuple[Array, Array]]
    h: Callable[[Round], tuple[Array, Array]]
    domain: Callable[[cp.Variable], list[object]]
    start: Array
    diameter: float
    entropy: bool = False
    tolerance: float = 1e-6  # of the diameter


def reference(case: Case, rounds: Sequence[Round], T: int) -> list[Array]:
    """(4), (5), (6) with V = sqrt(T), alpha = T, D = |x - y|^2 / 2; on the simplex (9) with KL at the mixed point, theta = 1/T."""
    V, alpha, theta = math.sqrt(T), float(T), 1 / T
    mu = case.start.copy()
    found, Q, H = [mu], None, None
    x, slope, centre = cp.Variable(len(mu)), cp.Parameter(len(mu)), cp.Parameter(len(mu))
    divergence = -cp.sum(cp.entr(x)) - centre @ x if case.entropy else cp.sum_squares(x - centre) / 2
    step = cp.Problem(cp.Minimize(slope @ x + divergence), case.domain(x))
    for data in rounds:
        values, slopes = case.g(data, mu)
        rows, right = case.h(data)
        Q = np.zeros(len(values)) if Q is None else Q
        H = np.zeros(len(right)) if H is None else H
        slope.value = (V * case.gradient(data, mu) + Q @ slopes + H @ rows) / alpha
        centre.value = np.log((1 - theta) * mu + theta / len(mu)) if case.entropy else mu
        solved(step)
        following = np.asarray(x.value)
        Q = np.maximum(Q + values + slopes @ (following - mu), 0)
        H = H + rows @ following - right
        mu = following
        found.append(mu)
    return found


SQUARE = np.array([[1.0, 0.5, -1.0, 0.0], [0.0, 1.0, 1.0, -2.0]])

BOX = Case(
    """
model power
horizon T = 50
decision x[4] in box(0, 3)
stream price[4] in [-1, 3]
stream jobs ~ uniform(2, 4)
stream speed[4] ~ uniform(0.5, 1.5)
stream use[4] ~ uniform(0.5, 1.5)
minimize 40 * price @ x
subject to
    service: 3 * jobs - 2 * sum(speed * log(1 + 4 * x)) <= 0 on average
    pace: 5 * (use[0:2] @ x[0:2] - 0.4 * use @ x) == 0 on average
    cap: [x[0] + x[1], 2 * x[2]] <= [2, 3] on average
""",
    lambda rng: {
        "price": rng.uniform(-1, 3, 4),
        "jobs": rng.uniform(2, 4),
        "speed": rng.uniform(0.5, 1.5, 4),
        "use": rng.uniform(0.5, 1.5, 4),
    },
    lambda d, x: 40 * d["price"],
    lambda d, x: (
        np.array([3 * d["jobs"] - 2 * d["speed"] @ np.log(1 + 4 * x), x[0] + x[1] - 2, 2 * x[2] - 3]),
        np.array([-8 * d["speed"] / (1 + 4 * x), [1, 1, 0, 0], [0, 0, 2, 0]]),
    ),
    lambda d: ((5 * d["use"] * np.array([0.6, 0.6, -0.4, -0.4]))[None, :], np.zeros(1)),
    lambda x: [x >= 0, x <= 3],
    np.full(4, 1.5),
    6.0,
)

BALL = Case(
    """
model track
horizon T = 50
decision x[3] in ball(2)
stream a[3] in [-1, 1]
stream w[3] iid in [-1, 1]
minimize 10 * log_sum_exp(2 * a * x)
subject to
    bent: 4 * sum_squares(x) - 6 <= w @ x on average
""",
    lambda rng: {"a": rng.uniform(-1, 1, 3), "w": rng.uniform(-1, 1, 3)},
    lambda d, x: 20 * d["a"] * np.exp(2 * d["a"] * x) / np.exp(2 * d["a"] * x).sum(),
    lambda d, x: (np.array([4 * x @ x - 6 - d["w"] @ x]), (8 * x - d["w"])[None, :]),
    lambda d: (np.zeros((0, 3)), np.zeros(0)),
    lambda x: [cp.norm2(x) <= 2],
    np.zeros(3),
    4.0,
)

SIMPLEX = Case(
    """
model portfolio
horizon T = 50
decision w[6] in simplex
stream r[6] in [0.5, 2]
stream shock[6] ~ uniform(0.5, 1.5)
stream tilt[6] ~ uniform(-1, 1)
minimize -20 * log(r @ w)
subject to
    sector: 30 * shock @ w <= 25 on average
    even: 20 * tilt @ w + 5 * w[0] == 1 on average
""",
    lambda rng: {"r": rng.uniform(0.5, 2, 6), "shock": rng.uniform(0.5, 1.5, 6), "tilt": rng.uniform(-1, 1, 6)},
    lambda d, x: -20 * d["r"] / (d["r"] @ x),
    lambda d, x: (np.array([30 * d["shock"] @ x - 25]), 30 * d["shock"][None, :]),
    lambda d: ((20 * d["tilt"] + 5 * np.eye(6)[0])[None, :], np.ones(1)),
    lambda x: [cp.sum(x) == 1],
    np.full(6, 1 / 6),
    math.sqrt(2),
    entropy=True,
    tolerance=1e-4,  # what Clarabel leaves in exponential cones; the closed form is compared to 1e-9 below
)


NUCLEAR = Case(
    """
model matrix
horizon T = 50
decision X[3, 3] in nuclear_ball(2)
stream c[3, 3] in [-2, 2]
stream A[2, 3, 3] ~ uniform(-1, 1)
minimize 5 * sum(huber(X - c))
subject to
    first: 4 * sum(A[0] * X) <= 0.1 on average
    second: 4 * sum(A[1] * X) <= 0.2 on average
""",
    lambda rng: {"c": rng.uniform(-2, 2, (3, 3)), "A": rng.uniform(-1, 1, (2, 3, 3))},
    lambda d, x: 10 * np.clip(x - d["c"].reshape(9), -1, 1),
    lambda d, x: (4 * d["A"].reshape(2, 9) @ x - np.array([0.1, 0.2]), 4 * d["A"].reshape(2, 9)),
    lambda d: (np.zeros((0, 9)), np.zeros(0)),
    lambda x: [cp.normNuc(cp.reshape(x, (3, 3), order="C")) <= 2],
    np.zeros(9),
    4.0,
)


@pytest.mark.parametrize("case", [BOX, BALL, SIMPLEX, NUCLEAR], ids=["box", "ball", "simplex", "nuclear"])
def test_trajectories_equal_the_listing(case: Case) -> None:
    rng = np.random.default_rng(11)
    rounds = [case.draw(rng) for _ in range(50)]
    ours = trajectory(compile_plan(parse(case.text), algorithm="mirror-descent"), rounds)
    theirs = reference(case, rounds, 50)
    moved = max(np.linalg.norm(z - case.start) for z in theirs)
    assert moved > 0.05 * case.diameter  # the rounds ask something of the learner
    worst = max(np.linalg.norm(np.ravel(x[0]) - z) for x, z in zip(ours, theirs))
    assert worst <= case.tolerance * case.diameter


def test_the_closed_form_keeps_its_digits() -> None:
    """Algorithm 2 by (10) in plain exponentials, where nothing under- or overflows: equal to rounding."""
    rng = np.random.default_rng(4)
    T = 50
    plan = compile_plan(parse(SIMPLEX.text), algorithm="mirror-descent")
    mu, Q, H = np.full(6, 1 / 6), 0.0, 0.0
    run = Run(plan)
    for _ in range(40):
        d = SIMPLEX.draw(rng)
        row = 20 * d["tilt"] + 5 * np.eye(6)[0]
        p = (math.sqrt(T) * -20 * d["r"] / (d["r"] @ mu) + Q * 30 * d["shock"] + H * row) / T
        weight = ((1 - 1 / T) * mu + 1 / (6 * T)) * np.exp(-p)
        Q, H = max(Q + 30 * d["shock"] @ (weight / weight.sum()) - 25, 0.0), H + row @ (weight / weight.sum()) - 1
        mu = weight / weight.sum()
        run.play(d)
        np.testing.assert_allclose(run.decisions[0], mu, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose([run.value("Q")[0], run.value("H")[0]], [Q, H], rtol=1e-9, atol=1e-9)


def test_huge_multipliers_do_not_overflow() -> None:
    """Weights are updated in log space: decisions stay finite and in the simplex."""
    text = SIMPLEX.text.replace("30 * shock @ w <= 25", "1e6 * shock @ w <= 1e5")
    run = Run(compile_plan(parse(text), algorithm="mirror-descent"))
    rng = np.random.default_rng(1)
    for _ in range(60):
        run.play(SIMPLEX.draw(rng))
        (w,) = run.decisions
        assert np.isfinite(w).all() and (w >= 0).all() and abs(w.sum() - 1) <= 1e-9


def test_gradient_feedback_gives_the_same_decisions() -> None:
    """What `feedback gradient` reveals is all that the rule reads."""
    full = compile_plan(parse(BALL.text), algorithm="mirror-descent")
    seen = compile_plan(parse(BALL.text + "feedback gradient\n"), algorithm="mirror-descent")
    a, b = Run(full), Run(seen)
    rng = np.random.default_rng(8)
    for _ in range(30):
        d = BALL.draw(rng)
        (x,) = b.decisions
        values, slopes = BALL.g(d, x)
        a.play(d)
        b.play({"loss": 0.0, "gradient": BALL.gradient(d, x), "constraints": values, "constraint_gradients": slopes})
        np.testing.assert_allclose(a.decisions[0], b.decisions[0], rtol=0, atol=1e-12)


def test_a_row_that_follows_from_the_others_has_no_multiplier() -> None:
    """The four pacing rows of the paper's experiment sum to zero: three multipliers remain, and the model keeps its four rows."""
    plan = compile_plan(load(EXAMPLES / "datacenter.oco"))
    program = plan.program
    shapes = {f.name: f.type.shape for f in program.state}
    assert shapes["H"] == (3,) and shapes["Q"] == (1,)
    assert program.measure is not None and program.measure.body.results[2].type.shape == (4,)
    assert any("pacing[3]" in w.message for w in plan.warnings)
