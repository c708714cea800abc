"""Optimization follows the work that a plan states, and changes no bit of a decision."""

import numpy as np
import pytest

import oco
from oco.backends.c99 import backend
from oco.backends.round_work import optimizing_pays
from oco.plan import Plan

TEXTS = {
    "weighed": """model weighed
horizon T = {T}
decision x[2] in box(-4, 4)
stream price[2] in [-5, 5]
minimize price @ x + 0.1 * sum_squares(x)
using hedged
""",
    "served": """model served
horizon T = {T}
decision x[3] in box(0, 10)
stream price[3] in [0, 5]
stream jobs in [0, 20]
minimize price @ x
subject to
    service: jobs - 4 * sum(log(1 + x)) <= 0  each round
""",
}
ROUNDS = 120


def plan_of(name: str, T: int = ROUNDS) -> Plan:
    return oco.compile(oco.parse(TEXTS[name].format(T=T)))


@pytest.mark.parametrize("name", TEXTS)
def test_code_that_is_optimized_less_decides_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, traces = np.random.default_rng(0), []
    ranges = plan_of(name).canonical.revealed
    data = {s.name: rng.uniform(s.lower, s.upper, (ROUNDS, *s.shape)) for s in ranges}
    for fully in (True, False):
        monkeypatch.setattr(backend, "optimizing_pays", lambda *_, fully=fully: fully)
        traces.append(plan_of(name).run(data, backend="c"))
    one, two = traces
    np.testing.assert_array_equal(one.decisions, two.decisions)


def test_long_runs_are_optimized() -> None:
    assert not optimizing_pays(plan_of("weighed", 100).program, 100, "c")
    assert optimizing_pays(plan_of("weighed", 100).program, 10**7, "c")
    assert optimizing_pays(plan_of("weighed", 100).program, None, "c")
