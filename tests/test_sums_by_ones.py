"""Sums of vectors where every operation is a call: inner products with ones, as exact as a sum, for vectors that BLAS does not split."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_c99_log_sums import FLOAT
from test_reciprocals import learner

from oco.compiler.ir.build import trace_program
from oco.compiler.ir.dot_products import LONGEST, SHORTEST, sum_by_ones
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.masked_sums import sum_under_masks
from oco.compiler.ir.program import Field, Program, Type
from oco.compiler.ir.rewrite import equations_of
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.verifier import check


def total(n: int) -> Program:
    return learner(lambda t, x, a, s: x * t.sum(a), n)


@pytest.mark.parametrize("n", [SHORTEST, 100, LONGEST])
def test_a_sum_is_as_exact_and_keeps_what_is_no_number(n):
    program = check(sum_by_ones(total(n)))
    assert "sum" not in {e.op for e in equations_of(program.update.body)}
    rng = np.random.default_rng(n)
    a = rng.normal(size=n) * 10 ** rng.uniform(-8, 8, n)
    found = interpret(program, "update", [np.array(1), np.ones(n), a, np.array(0.0)])[1]
    assert abs(found[0] - math.fsum(a)) <= n * 2.0**-53 * np.abs(a).sum()
    for wrong in (np.inf, -np.inf, np.nan):
        a[n // 2] = wrong
        found = interpret(program, "update", [np.array(1), np.ones(n), a, np.array(0.0)])[1]
        np.testing.assert_equal(found[0], a.sum())


@pytest.mark.parametrize("n", [SHORTEST - 1, LONGEST + 1])
def test_other_sums_stay(n):
    assert sum_by_ones(total(n)) == total(n)


def test_sums_of_a_length_share_their_ones_and_those_along_an_axis_stay():
    t = Tracer("sums")
    program = trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (4,)))],
        feedback=[Field("a", Type(FLOAT, (5, 4)))],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": t.sum(seen["a"], axis=0) * t.sum(state["x"]) + t.sum(seen["a"][0])},
    )
    summed = sum_by_ones(program)
    assert [g.value.shape for g in summed.constants] == [(4,)]
    assert [e.op for e in equations_of(summed.update.body)].count("sum") == 1


def masked(floor: float) -> Program:
    """A program that adds up quotients, where their divisor is floor + a^2, of the entries of x between two numbers."""

    def update(t, x, a, s):
        return x * t.sum(t.where(t.and_(x > -1.0, x < 1.0), s / (floor + a * a), 0.0))

    return learner(update, 100)


def test_quotients_under_a_mask_are_summed_by_it_where_divisors_are_positive():
    made = check(sum_under_masks(masked(0.5)))
    assert [e.op for e in equations_of(made.update.body)].count("matmul") == 1
    assert sum_under_masks(masked(0.0)) == masked(0.0)
    rng = np.random.default_rng(0)
    for x, a in [(rng.normal(size=100), rng.normal(size=100)), (np.full(100, np.nan), np.ones(100))]:
        chosen = 3.0 / (0.5 + a * a) * (np.abs(x) < 1)
        found = interpret(made, "update", [np.array(1), x, a, np.array(3.0)])[1]
        np.testing.assert_allclose(found, x * math.fsum(chosen), rtol=1e-14)
