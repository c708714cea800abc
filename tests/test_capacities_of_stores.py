"""Capacities that flows into several stores share, as known constraints: their multipliers, and what shares none."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import oco
from oco.compiler.algorithms.shared_flows import charged_by_shared, shared_known, tied_known
from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Type
from oco.compiler.lowering.points import Point
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec
from oco.compiler.problem.canonical import canonical

QUEUES = """\
model queues
horizon T = 480
decision run[2] in {domain}
context price in [0, 800]
context free in [0, 100]
stream jobs[2] in [0, 100]
state backlog[2] = backlog - run + jobs in [0, 2000] start 0
minimize price * sum(run) + [8, 3] @ backlog
subject to
    there: run <= backlog each round
"""
CAPACITY = "    capacity: sum(run) <= {} each round\n"
STATIONS = """\
model stations
horizon T = 100
decision move[2, 2] in box(0, 8)
decision {other} in box(0, 8)
stream taken[2] in [0, 20]
state bikes[2] = bikes - sum(move, axis = 1) + sum(move, axis = 0) - taken in [0, 30] start 15
minimize 0.4 * sum(move) + {other} + 5 * sum(pos(taken - bikes + sum(move, axis = 1) - sum(move, axis = 0)))
subject to
    there: sum(move, axis = 1) <= bikes each round
    truck: {truck} each round
"""


def problem_of(text: str) -> Any:
    return canonical(oco.parse(text)).learned


@pytest.mark.parametrize(
    ("text", "shared", "tied"),
    [
        (QUEUES.format(domain="box(0, 100)") + CAPACITY.format("free"), ("capacity",), ()),
        (QUEUES.format(domain="box(0, 100)"), (), ()),
        (STATIONS.format(other="hours", truck="sum(move) <= 12"), ("truck",), ()),
        (STATIONS.format(other="hours", truck="sum(move) <= 12 + hours"), (), ("truck",)),
        (STATIONS.format(other="hours", truck="move[0, 1] <= 5"), (), ()),
    ],
)
def test_constraints_that_stores_share(text: str, shared: tuple[str, ...], tied: tuple[str, ...]) -> None:
    """What is moved from a place to itself is of no use, so that it ties no store to other decisions."""
    problem = problem_of(text)
    assert shared_known(problem) == shared
    assert tuple(c.origin for c in tied_known(problem)) == tied


def test_multipliers_of_a_capacity_are_the_duals_of_cvxpy() -> None:
    problem, rng, bound = (
        problem_of(QUEUES.format(domain="box(0, 100)") + CAPACITY.format("free")),
        np.random.default_rng(3),
        0,
    )

    def charged(t: Any, x: Any, g: Any, free: Any, backlog: Any) -> Any:
        spec = TraceSpec(problem, {}, problem.structure[0], problem.horizon)
        p = Problem(t, spec, {"free": free, "backlog": backlog}, t.lift(1))
        return charged_by_shared(p, Point((x,)), Point((g,))).blocks[0]

    of = as_numpy("charged", charged, *(Type(DType.FLOAT, s) for s in ((2,), (2,), (), (2,))))
    for _ in range(12):
        w, c, backlog, free = (
            rng.uniform(0.5, 2, 2),
            rng.uniform(10, 90, 2),
            rng.uniform(20, 80, 2),
            rng.uniform(30, 90),
        )
        u = cp.Variable(2)
        capacity = cp.sum(u) <= free
        cp.Problem(cp.Minimize(w @ cp.square(u - c)), [capacity, u >= 0, u <= backlog]).solve(solver="CLARABEL")
        expected = float(capacity.dual_value)
        assert_allclose(
            of(u.value, 2 * w * (u.value - c), np.array(free), backlog)[0], expected, atol=1e-3 * (1 + expected)
        )
        bound += expected > 1.0
    assert bound > 6


def test_a_capacity_is_planned_for_as_one_of_the_domain_is() -> None:
    """Flows that share a capacity of 70 cannot all wait for the best hour."""
    hours, rng = np.arange(480), np.random.default_rng(5)
    price = 300 + 90 * np.cos(2 * np.pi * (hours - 19) / 24) + rng.normal(0, 12, 480)
    mean = np.stack(
        [20 + 12 * np.sin(2 * np.pi * (hours - 9) / 24), 10 + 6 * np.sin(2 * np.pi * (hours - 4) / 24)], axis=1
    )
    data = {"price": price, "jobs": rng.poisson(mean).astype(float), "free": np.full(480, 70.0)}
    cut, known = (
        oco.compile(oco.parse(QUEUES.format(domain=domain) + row), "hedged").run(data).loss.sum()
        for domain, row in (("box(0, 70) with sum(run) <= 70", ""), ("box(0, 100)", CAPACITY.format("free")))
    )
    assert known <= 1.01 * cut


def test_a_unit_is_worth_no_more_the_more_there_is() -> None:
    """Where units cost, what the cut of the range takes is none that is worth keeping."""
    text = """\
model account
horizon T = 200
decision deposit in box(0, 60)
decision withdraw in box(0, 60)
stream flow in [-120, 120]
state balance = balance + withdraw - deposit + flow in [-100, 150] start 40
minimize 0.005 * (deposit + withdraw) + 0.02 * neg(balance + withdraw - deposit + flow) + 0.001 * pos(balance + withdraw - deposit + flow)
"""
    learner, rng = oco.compile(oco.parse(text)).learner(), np.random.default_rng(2)
    for flow in rng.normal(0, 6, 40):
        learner.decide()
        learner.observe(flow=flow)
    (values,) = learner.value("value")
    assert values[0] > 0 > values[-1]
    assert (np.diff(values) <= 1e-12).all()
