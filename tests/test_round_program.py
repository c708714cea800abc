"""Programs of single rounds: parts without a decision are parameters, and where nothing is allowed known constraints come first."""

import cvxpy as cp
import numpy as np
import pytest

import oco
from oco.compiler.problem.canonical import canonical
from oco.evaluation.baselines.round_program import RoundProgram

MODEL = """model rounds
horizon T = 10
decision x[3] in box(0, 4)
context load in [0, 20]
stream price[3] in [0, 5]
stream wear in [-2, 2]
stream need in [0, 20]
minimize square(price) @ x + exp(wear) * sum_squares(x) + sum_squares(x - price) + 2 * max(pos(x - 1))
subject to
    most:  sum(x) <= load   each round
    least: sum(x) >= need   each round, penalty 3
"""
CUT = MODEL.replace("    least:", "    even:  x[0] == x[1]     each round\n    least:")


def drawn(rng: np.random.Generator, load: float, need: float) -> dict[str, np.ndarray]:
    return {
        "price": rng.uniform(0, 5, 3),
        "wear": np.array(rng.uniform(-2, 2)),
        "load": np.array(load),
        "need": np.array(need),
    }


def loss_of(x: cp.Variable, data: dict[str, np.ndarray]) -> cp.Expression:
    moved = float(np.exp(data["wear"])) * cp.sum_squares(x) + cp.sum_squares(x - data["price"])
    return np.square(data["price"]) @ x + moved + 2 * cp.max(cp.pos(x - 1))


@pytest.mark.parametrize("text", [MODEL, CUT])
@pytest.mark.parametrize(("load", "need"), [(12.0, 0.0), (9.0, 8.0), (5.0, 5.0), (3.0, 2.0)])
def test_rounds_are_the_literal_problem(text: str, load: float, need: float) -> None:
    program = RoundProgram.of(canonical(oco.parse(text)))
    assert program is not None
    for seed in range(2):  # the second round takes the program of the first
        data = drawn(np.random.default_rng(seed), load, need)
        x = cp.Variable(3)
        held = [x >= 0, x <= 4, cp.sum(x) <= load, cp.sum(x) >= need, *([x[0] == x[1]] if text == CUT else [])]
        cp.Problem(cp.Minimize(loss_of(x, data)), held).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(program.solved(data), x.value, atol=2e-6)


def test_known_constraints_hold_where_others_cannot() -> None:
    program = RoundProgram.of(canonical(oco.parse(MODEL)))
    assert program is not None
    data = drawn(np.random.default_rng(3), 6.0, 15.0)
    x = cp.Variable(3)
    cp.Problem(cp.Minimize(loss_of(x, data)), [x >= 0, x <= 4, cp.sum(x) == 6.0]).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(program.solved(data), x.value, atol=1e-4)


def test_entries_that_data_choose_have_no_program() -> None:
    text = "model m\nhorizon T = 9\ndecision x[3] in box(0, 1)\nstream i in 0..2\nminimize x[i]\n"
    assert RoundProgram.of(canonical(oco.parse(text))) is None


def test_remainders_of_integers_in_data_are_parameters() -> None:
    text = "model m\nhorizon T = 9\ndecision x in box(0, 4)\ncontext load in [0, 4]\nstream hour in 0..23\nminimize square(x - load)\n"
    text += "subject to\n    half: x <= minimum(hour % 12, 1) * load  each round\n"
    program = RoundProgram.of(canonical(oco.parse(text)))
    assert program is not None
    for hour, best in ((12, 0.0), (5, 3.0)):
        solved = program.solved({"load": np.array(3.0), "hour": np.array(hour)})
        np.testing.assert_allclose(solved, best, atol=1e-4)
