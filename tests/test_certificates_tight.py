"""Certificates of the benchmark's problems say something: at most three times the measured regret, or a tenth of the loss above it."""

import pytest

import oco
from benchmarks.practice.problems import problems

ROUNDS = 120
CASES = {
    "charging": "sinha-vaze",
    "bandwidth": "sinha-vaze",
    "tracking": "coldq",
    "newsvendor": "coldq",
    "pacing": "recoo",
}


@pytest.mark.parametrize("name", CASES)
def test_tight(name: str) -> None:
    """Never below the regret to the best fixed decision, and near it."""
    problem = problems(None, 0)[name]()
    plan = oco.compile(problem.model, CASES[name])
    trace = plan.run(problem.data.first(ROUNDS), backend="numpy")
    regret, bound, loss = float(trace.regret()[-1]), trace.certificate().bound, abs(float(trace.loss.sum()))
    assert bound >= regret - 1e-6 * (1 + loss)
    assert bound <= max(3 * regret, regret + 0.1 * loss)
