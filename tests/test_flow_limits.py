"""Limits of flows by contexts and by the round: against bisection, and what the constraints say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_c99 import has_compiler

import oco
from oco.compiler.algorithms.flow_limits import entry_limits
from oco.compiler.algorithms.shared_flows import SharedFlows
from oco.compiler.algorithms.store_flows import SeveralFlows
from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Type
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.canonical import canonical
from oco.compiler.problem.stores import stores

MODEL = """\
model battery
horizon T = 200
param open[7] = [0, 20, 30, 30, 30, 30, 5]
decision charge in box(0, 50)
decision discharge in box(-10, 40)
decision buy in box(0, 90)
stream price in [0, 100]
context most in [0, 80]
context least in [0, 5]
state stored = stored + 0.9 * charge - discharge / 0.9 in [0, 200] start 100
minimize price * buy
subject to
    sun:     2 * charge <= most                    each round
    hours:   discharge <= open[t % 7]              each round
    flowing: least - discharge <= 0                each round
    balance: buy + discharge - charge >= least     each round
"""


def test_limits_are_constraints_on_one_entry_alone() -> None:
    limits = entry_limits(canonical(oco.parse(MODEL)).learned)
    assert [(e.entries.tolist(), e.factors.tolist()) for e in limits] == [([0], [2]), ([1], [1]), ([1], [-1])]


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_ranges_that_are_learned_are_those_that_constraints_leave() -> None:
    learner, seen = oco.compile(oco.parse(MODEL)).learner(backend="c"), []
    rng = np.random.default_rng(0)
    for t in range(1, 9):
        most, least = rng.uniform(20, 80), rng.uniform(0, 4)
        learner.decide(most=most, least=least)
        learner.observe(price=50.0)
        high = min(40, [0, 20, 30, 30, 30, 30, 5][t % 7])
        low = min(max(-10, least), high)
        seen.append([0, -high / 0.9, 0.9 * min(50, most / 2), -low / 0.9])
        assert_allclose(learner.value("limit_overall")[0, 0], np.mean(seen, axis=0), rtol=1e-9)


def test_flows_within_limits_and_the_store_have_one_price() -> None:
    """The value before a round is where bisection finds that flows at this price, within their limits, leave a store with this value."""
    problem = canonical(oco.parse(MODEL)).learned
    own, kept, slope, rng = stores(problem), np.linspace(0, 200, 9), 0.3, np.random.default_rng(3)

    def traced(t: Any, v: Any, row: Any) -> Any:
        p = Problem(t, TraceSpec(problem, {}, problem.structure[0], problem.horizon), {}, t.lift(1))
        none = SharedFlows(p, ())
        flows = SeveralFlows(t, own, curved=False, kinks=False, shared=none, limited=slice(4, 6))
        return flows.at_one_price(t.constant(kept.reshape(1, -1)), lambda left: v - slope * left, row)

    run = as_numpy("one_price", traced, Type(DType.FLOAT, ()), Type(DType.FLOAT, (6, 2)))
    for _ in range(20):
        v, costs, row = rng.uniform(0, 150), rng.uniform(-20, 120, 2), np.zeros((6, 2))
        least, most = np.array([0.0, -rng.uniform(0, 40)]), np.array([rng.uniform(0, 45), rng.uniform(0, 10)])
        row[0], row[4], row[5] = costs, least, most
        for k, value in zip(kept, run(np.float64(v), row)[0].ravel(), strict=True):
            low, high = -1e4, 1e4
            for _ in range(80):
                middle = (low + high) / 2
                flow = np.where(costs < middle, most, least).sum()
                low, high = (middle, high) if v - slope * (k + flow) > middle else (low, middle)
            assert_allclose(value, low, atol=1e-9)
